"""Jobs in words, without any machine's paths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sottovoce.experiments.jobs import Job

TOLD = ("collection", "task", "engine", "reranker", "mechanism", "epsilon", "release", "n", "seed")
"""Fields of jobs, in the order in which they are told."""


def kind_of(job: Job) -> str:
    """How jobs of this kind are called in tables of time."""
    return type(job).__name__.lower()


def described(job: Job) -> str:
    """Which cell it is, in words of the experiment's file."""
    return f"the {kind_of(job)} cell of " + ", ".join(parts_of(job))


def parts_of(job: Job) -> list[str]:
    """What tells a job from the others of its kind, without paths."""
    fields = {**vars(getattr(job, "source", job)), **vars(job)}
    numbers = {
        name: f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
        for name in ("epsilon", "n", "seed")
        if (value := fields.get(name)) is not None
    }
    parts = [numbers.get(name) or without_paths(fields.get(name)) for name in TOLD]
    return [part for part in parts if part]


def without_paths(value: Any) -> Any:
    """The same, with base names for absolute paths: whose machine it was is nobody's business."""
    if isinstance(value, dict):
        return {without_paths(name): without_paths(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [without_paths(each) for each in value]
    return without_path(value) if isinstance(value, str) else value


def without_path(name: str) -> str:
    """A name as tables show it: of an absolute path, also behind ``file:``, the last part."""
    kind, colon, rest = name.partition(":")
    if colon and Path(rest).is_absolute() and not rest.startswith("//"):  # No URL.
        return f"{kind}:{Path(rest).name}"
    return Path(name).name if Path(name).is_absolute() else name
