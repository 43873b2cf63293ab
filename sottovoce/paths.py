"""Where sottovoce keeps what it may make again: one cache folder per user."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path

HOME_VARIABLE = "SOTTOVOCE_HOME"


def cache_folder() -> Path:
    """The user's cache folder, or ``$SOTTOVOCE_HOME``."""
    chosen = os.environ.get(HOME_VARIABLE)
    return Path(chosen).expanduser() if chosen else user_cache_path("sottovoce")


def spaces_folder() -> Path:
    """The folder of the converted word spaces, one subfolder each."""
    return cache_folder() / "spaces"
