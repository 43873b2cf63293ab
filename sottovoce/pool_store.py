"""Pools that were made, on disk: a folder each, with strings, popularity and mapped vectors.

A folder gets its name when everything in it is whole. The vectors grow in the cache of vectors
before, so that work which was killed goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.arrays import read_array
from sottovoce.encoders.base import Encoder, corpus_vectors, vectors_file
from sottovoce.errors import SottovoceError, UsageError, did_you_mean
from sottovoce.files import move_folder, parse_json
from sottovoce.paths import pools_folder
from sottovoce.resources.install import room_to_write
from sottovoce.text.text_index import TextIndex
from sottovoce.types import Float32Array, Float64Array, Progress

LAYOUT = 1
DESCRIPTION, STRINGS = "pool.json", "strings.txt"
POPULARITY, VECTORS = "popularity.npy", "vectors.npy"
HASHES, PLACES = "hashes.npy", "places.npy"
POOL_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
"""What the names of pools look like, so that none of them leads out of its folder."""


@dataclass(frozen=True)
class PoolFacts:
    """What is known of a made pool without reading it.

    strings, sha256
        How many there are, and the hash of the file that holds them.
    encoder, encoder_fingerprint, dimension
        What gave them their vectors.
    popularity
        What the popularity of a string is, in words; None: all are alike.
    sources, read, joined, left_out
        Where they come from; how many strings were read, how many of these were one that had come
        before, and how many were left out for which reason.
    """

    name: str
    strings: int
    sha256: str
    encoder: str
    encoder_fingerprint: str
    dimension: int
    popularity: str | None
    sources: tuple[str, ...]
    read: int
    joined: int
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return pools_folder() / self.name

    @property
    def disk_bytes(self) -> int:
        return sum(file.stat().st_size for file in self.folder.iterdir())

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "folder": str(self.folder), "disk_bytes": self.disk_bytes}


def is_made(name: str) -> bool:
    """Whether there is a pool of this name."""
    return bool(POOL_NAME.fullmatch(name)) and (pools_folder() / name / DESCRIPTION).is_file()


def made_pools() -> list[str]:
    """The names of all pools that were made."""
    return sorted(file.parent.name for file in pools_folder().glob(f"[!.]*/{DESCRIPTION}"))


def pool_facts(name: str) -> PoolFacts:
    """What is known of a pool; an unknown name is an error."""
    if not is_made(name):
        hint = did_you_mean(name, made_pools())
        raise UsageError(
            f"no pool of that name was made{hint and f' ({hint})'}: 'sottovoce pools list' shows "
            "those that were"
        )
    try:
        data = parse_json((pools_folder() / name / DESCRIPTION).read_text(encoding="utf-8"))
        if data.pop("layout") != LAYOUT:
            raise ValueError
        return PoolFacts(**{**data, "name": name, "sources": tuple(data["sources"])})
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise damaged(name) from None


def damaged(name: str) -> SottovoceError:
    """What to do about a pool whose files are not what they were."""
    return SottovoceError(
        f"the pool '{name}' is damaged, or of another version: make it again with 'sottovoce pools "
        "make --replace'"
    )


def read_stored(facts: PoolFacts) -> tuple[tuple[str, ...], Float64Array | None, TextIndex]:
    """The strings of a pool, their popularity, if it states one, and where each text stands."""
    try:
        data = (facts.folder / STRINGS).read_bytes()
    except OSError:
        raise damaged(facts.name) from None
    popularity = None
    if facts.popularity is not None:
        popularity = _mapped(facts, POPULARITY, (facts.strings,), np.float64)
    index = TextIndex(
        _mapped(facts, HASHES, (facts.strings,), np.uint32),
        _mapped(facts, PLACES, (facts.strings,), np.int64),
    )
    if facts.strings and not 0 <= index.places.min() <= index.places.max() < facts.strings:
        raise damaged(facts.name)
    strings = tuple(data.decode("utf-8", "replace").split("\n")[:-1])
    if hashlib.sha256(data).hexdigest() != facts.sha256 or len(strings) != facts.strings:
        raise damaged(facts.name)
    return strings, popularity, index


def map_vectors(facts: PoolFacts) -> Float32Array:
    """The vectors of a pool, mapped: they are read as they are needed."""
    return _mapped(facts, VECTORS, (facts.strings, facts.dimension), np.float32)


def _mapped(
    facts: PoolFacts, file: str, shape: tuple[int, ...], kind: type[np.generic]
) -> NDArray[Any]:
    try:
        array = read_array(facts.folder / file)
    except (OSError, ValueError, EOFError):
        raise damaged(facts.name) from None
    if array.shape != shape or array.dtype != kind:
        raise damaged(facts.name)
    return np.asarray(array)


def check_name(name: str, *, replace: bool = False) -> None:
    """Refuse a name that a new pool cannot have."""
    if not POOL_NAME.fullmatch(name) or name == "demo":
        raise UsageError(
            "a pool's name is made of lower-case letters, digits, '.', '_' and '-', and is not "
            "'demo': choose another name"
        )
    if is_made(name) and not replace:
        raise UsageError(f"there is a pool '{name}' already: choose another name, or --replace")


def strings_data(strings: Sequence[str]) -> bytes:
    """The strings as their file has them, one a line."""
    return "".join(f"{string}\n" for string in strings).encode("utf-8")


def store_pool(
    facts: PoolFacts,
    strings: Sequence[str],
    popularity: Float64Array | None,
    index: TextIndex,
    encoder: Encoder,
    *,
    replace: bool = False,
    progress: Progress | None = None,
) -> None:
    """Write a pool whole or not at all; its vectors are computed unless they are there."""
    check_name(facts.name, replace=replace)
    with room_to_write(pools_folder()) as scratch:
        folder = scratch / facts.name
        folder.mkdir()
        (folder / STRINGS).write_bytes(strings_data(strings))
        if popularity is not None:
            np.save(folder / POPULARITY, popularity)
        np.save(folder / HASHES, index.hashes)
        np.save(folder / PLACES, index.places)
        corpus_vectors(encoder, strings, progress)
        vectors_file(encoder, strings).replace(folder / VECTORS)
        content = {"layout": LAYOUT, **asdict(facts)}
        (folder / DESCRIPTION).write_text(json.dumps(content, indent=2), encoding="utf-8")
        move_folder(folder, facts.folder, scratch)


def remove_pool(name: str) -> None:
    """Remove a pool from this machine, its description first: half of it is no pool."""
    if not is_made(name):
        pool_facts(name)  # It says what there is instead.
    folder = pools_folder() / name
    (folder / DESCRIPTION).unlink()
    shutil.rmtree(folder)
