"""What is installed, what is missing and what it would bring, and whether what is here is sound.

Nothing is fetched, written or sent. A missing part is no fault; a damaged one is.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from sottovoce import __version__
from sottovoce.errors import SottovoceError
from sottovoce.extras import base_packages, installed_extras
from sottovoce.ledger import Ledger, NoLedgerError
from sottovoce.paths import cache_folder, data_folder
from sottovoce.pool_store import made_pools, map_vectors, pool_facts, read_stored
from sottovoce.resources import listed

State: TypeAlias = Literal["here", "missing", "broken"]


@dataclass(frozen=True)
class Finding:
    """One part: whether it is here, what it is or would bring, and what to type, if anything."""

    area: str
    name: str
    state: State
    about: str
    command: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def examine() -> list[Finding]:
    """Look at everything, in the order in which people need it."""
    return [
        *_programs(),
        *_folders(),
        *_extras(),
        *_resources(),
        *_pools(),
        _ledger(),
    ]


def _programs() -> Iterator[Finding]:
    python = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    yield Finding("base", "sottovoce", "here", f"version {__version__}, {python}")
    missing = [package for package, version in base_packages().items() if version is None]
    if missing:
        about = f"without {', '.join(missing)} much will fail"
        yield Finding("base", "packages", "broken", about, "pip install sottovoce")


def _folders() -> Iterator[Finding]:
    for name, folder in (("cache", cache_folder()), ("data", data_folder())):
        if os.access(_nearest_existing(folder), os.W_OK):
            yield Finding("folders", name, "here", str(folder))
        else:
            about = f"{folder} cannot be written"
            yield Finding("folders", name, "broken", about, "export SOTTOVOCE_HOME=FOLDER")


def _nearest_existing(folder: Path) -> Path:
    """The folder, or the one in which it would be made."""
    return next(path for path in (folder, *folder.parents) if path.exists())


def _extras() -> Iterator[Finding]:
    for extra in installed_extras():
        if extra.missing:
            yield Finding("extras", extra.name, "missing", extra.brings, extra.command)
        else:
            yield Finding("extras", extra.name, "here", extra.brings)


def _resources() -> Iterator[Finding]:
    for resource in listed():
        add = f"sottovoce spaces add {resource.alias or resource.name}"
        name = resource.alias or resource.name
        if resource.problem:
            yield Finding("spaces", name, "broken", resource.problem, add)
        elif resource.installed:
            yield Finding("spaces", name, "here", resource.about)
        else:
            yield Finding("spaces", name, "missing", resource.about, add)


def _pools() -> Iterator[Finding]:
    for name in made_pools():
        try:
            facts = pool_facts(name)
            read_stored(facts)
            map_vectors(facts)
        except SottovoceError as error:
            yield Finding("pools", name, "broken", str(error), f"sottovoce pools remove {name}")
        else:
            yield Finding("pools", name, "here", f"{facts.strings:,} public strings")


def _ledger() -> Finding:
    try:
        count = Ledger.open(create=False).check()
    except NoLedgerError:
        return Finding("ledger", "ledger", "here", "none yet: the first search begins it")
    except SottovoceError as error:
        return Finding("ledger", "ledger", "broken", str(error), "sottovoce ledger reset")
    return Finding("ledger", "ledger", "here", f"{count:,} records, none changed or removed")
