"""How tables, messages and files call things: never by the path on somebody's machine."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from sottovoce.collections import DEMO, FROM_PACKAGE


def without_path(name: str) -> str:
    """A name as tables show it: of an absolute path, also behind ``file:``, the last part."""
    kind, colon, rest = name.partition(":")
    if colon and Path(rest).is_absolute() and not rest.startswith("//"):  # No URL.
        return f"{kind}:{Path(rest).name}"
    return Path(name).name if Path(name).is_absolute() else name


def without_paths(value: Any) -> Any:
    """The same for every text in nested lists and mappings."""
    if isinstance(value, dict):
        return {without_paths(name): without_paths(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_paths(item) for item in value]
    return without_path(value) if isinstance(value, str) else value


def collection_name(collection: str) -> str:
    """How tables name a collection."""
    name = collection.removeprefix(FROM_PACKAGE)
    return name if name != collection or name == DEMO else os.path.basename(name)


def task_name(file: str) -> str:
    """How tables name a task: its file without folder and endings."""
    return Path(file).name.split(".")[0]


def log_name(file: str) -> str:
    """How tables name a log of queries: as they name tasks."""
    return task_name(file)


def encoder_name(encoder: str) -> str:
    """How tables name an encoder: ``auto`` as the one that it stands for."""
    from sottovoce.encoders.strong import StrongEncoder

    if encoder == "auto":
        return "strong" if StrongEncoder.installed() else "light"
    return encoder


def last_part(name: str) -> str:
    """The last part of a path that some machine wrote; other names as they are."""
    return re.split(r"[/\\]", name.rstrip("/\\"))[-1] or name


def slug(*parts: str) -> str:
    """The stem of a file's name."""
    joined = "-".join(last_part(part) for part in parts if part)
    return re.sub(r"[^a-z0-9.]+", "-", joined.lower()).strip("-.") or "table"


def counted(number: int, what: str, many: str | None = None) -> str:
    """As in ``1 query`` and ``43 queries``."""
    return f"{number:,} {what if number == 1 else many or what + 's'}"
