"""Whose folder it is: an experiment goes on in its own, and never writes into another's."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

from sottovoce.errors import UsageError
from sottovoce.experiments.description import Experiment

COPY = "experiment.toml"
BEGUN = {".lock", "cells", "runs", "variants"}
"""What a run that was killed at its very beginning leaves."""


def holds_experiment(folder: Path) -> bool:
    """Whether an experiment was begun in a folder."""
    return (folder / COPY).is_file()


def check_folder(folder: Path, experiment: Experiment) -> None:
    """Refuse a folder that holds another experiment, or anything else."""
    if os.path.lexists(folder) and not folder.is_dir():
        raise UsageError("--out names a file: give a folder, which is made if it is not there")
    if holds_experiment(folder):
        name = _name(folder / COPY)
        if name != experiment.name:
            other = f"another experiment, '{name}'" if name else "an experiment without a name"
            raise UsageError(
                f"the folder holds {other}: choose another folder for '{experiment.name}', or give "
                "the file that name to go on with it"
            )
    elif folder.is_dir() and any(_foreign(each.name) for each in folder.iterdir()):
        raise UsageError(
            "the folder holds files, but no experiment: choose an empty or a new one, nothing of "
            "yours is overwritten"
        )


def _foreign(name: str) -> bool:
    return name not in BEGUN and not (name.startswith(".") and name.endswith(".growing"))


def _name(copy: Path) -> str | None:
    """The name in the copy of an experiment's file."""
    try:
        name = tomllib.loads(copy.read_text("utf-8-sig")).get("name")
    except (OSError, ValueError, RecursionError):
        return None
    return name.strip() if isinstance(name, str) else None
