"""Folders of sottovoce: a cache for what can be made again, another one for the rest."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path, user_data_path, user_state_path

HOME_VARIABLE = "SOTTOVOCE_HOME"


def cache_folder() -> Path:
    """The user's cache folder, or ``$SOTTOVOCE_HOME``."""
    home = os.environ.get(HOME_VARIABLE)
    return Path(home).expanduser() if home else user_cache_path("sottovoce")


def spaces_folder() -> Path:
    """The folder of the converted word spaces, one subfolder each."""
    return cache_folder() / "spaces"


def pools_folder() -> Path:
    """The folder of the pools that were made, one subfolder each."""
    return cache_folder() / "pools"


def data_folder() -> Path:
    """The user's folder for what cannot be made again, or ``$SOTTOVOCE_HOME``."""
    home = os.environ.get(HOME_VARIABLE)
    return Path(home).expanduser() if home else user_data_path("sottovoce")


def ledger_folder() -> Path:
    """The folder of the ledger and its key, private to the user."""
    return data_folder() / "ledger"


def ledger_anchor() -> Path:
    """Where it is noted how far the user's ledger is: not in the folder that backups restore."""
    home = os.environ.get(HOME_VARIABLE)
    folder = Path(home).expanduser() if home else user_state_path("sottovoce")
    return folder / "ledger.anchor"


def experiments_folder() -> Path:
    """What experiments measured on each collection, for the local app."""
    return data_folder() / "experiments"


def denoisers_folder() -> Path:
    """Networks that were trained to undo releases, one file each."""
    return cache_folder() / "denoisers"
