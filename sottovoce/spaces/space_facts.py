"""Facts about a word space, for people: size, origin, geometry, words that may be released."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sottovoce.spaces.space import WordSpace
from sottovoce.spaces.vocabularies import admitted, choose_output, read_word_list
from sottovoce.types import IntArray

SAMPLE = 200
FILE = "file:"


@dataclass(frozen=True)
class SpaceFacts:
    """Size, origin and shape of a space."""

    name: str
    words: int
    dimension: int
    sha256: str
    folder: str | None
    disk_bytes: int | None
    source: dict[str, str]
    output_vocabularies: dict[str, int]
    """How many words each choice may release."""
    missing_words: dict[str, int]
    """How many words of each list (``file:PATH``) the space lacks."""
    median_norm: float
    median_nearest_distance: float | None
    """From a word to the nearest other one: what epsilon is measured against."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def describe(space: WordSpace, choices: tuple[str, ...] = ("all", "clean")) -> SpaceFacts:
    """Gather the facts; the geometry comes from words spread evenly over the whole space."""
    spread = np.unique(np.linspace(0, space.size - 1, min(SAMPLE, space.size)).astype(np.int64))
    sample = space.vectors[spread].astype(np.float64)
    return SpaceFacts(
        name=space.name,
        words=space.size,
        dimension=space.dimension,
        sha256=space.sha256,
        folder=str(space.folder) if space.folder else None,
        disk_bytes=disk_bytes(space.folder) if space.folder else None,
        source=space.source,
        output_vocabularies={choice: len(admitted(space, choice)) for choice in choices},
        missing_words={
            choice: read_word_list(space, choice.removeprefix(FILE)).missing
            for choice in choices
            if choice.startswith(FILE)
        },
        median_norm=float(np.median(np.linalg.norm(sample, axis=1))),
        median_nearest_distance=_median_nearest_distance(space, spread),
    )


def disk_bytes(folder: Path) -> int:
    """How much room a space takes."""
    return sum(file.stat().st_size for file in folder.iterdir())


def _median_nearest_distance(space: WordSpace, ids: IntArray) -> float | None:
    if space.size < 2:
        return None
    everything = space.with_output(choose_output(space, "all"))
    _, distances = everything.nearest_output.top(space.vectors[ids], k=2)
    return float(np.median(distances[:, 1]))
