"""Decoys as systems without a law made them, and made-up persons: for attacks on company."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sottovoce.mechanisms import Mechanism
from sottovoce.obfuscation.obfuscator import Obfuscator
from sottovoce.pools import Pool
from sottovoce.text.comparing import folded_text
from sottovoce.text.words import words

K = 20


class Persons(NamedTuple):
    """Searches with the name of who asked each, and what else they asked before."""

    texts: list[str]
    names: list[str]
    histories: dict[str, list[str]]


def near_subjects(pool: Pool, subjects: Sequence[str], size: int) -> list[str]:
    """The strings of a pool that are nearest to some subjects, each once: a kind of query."""
    places = pool.best(pool.encoder.encode(list(subjects)), size)
    return [pool.strings[at] for at in dict.fromkeys(places.ravel().tolist())]


def persons_on_subjects(
    pool: Pool, subjects: Sequence[str], searches: int, different: int, rng: np.random.Generator
) -> Persons:
    """For each subject a person who asks about it, ``different`` queries in all.

    They are some of the nearest of the pool; as many others are what was asked before.
    """
    texts, names, histories = [], [], {}
    for number, subject in enumerate(subjects):
        near = pool.best(pool.encoder.encode([subject]), different + 10)[0]
        strings = [pool.strings[at] for at in rng.permutation(near)]
        asked = [strings[search % different] for search in range(searches)]
        texts += asked
        names += [f"person {number}"] * searches
        histories[names[-1]] = strings[different:]
    return Persons(texts, names, histories)


def with_decoys(
    texts: Sequence[str], decoys: Sequence[str], rng: np.random.Generator, k: int = K
) -> list[list[str]]:
    """Each text itself with k - 1 of the decoys, in random order: nothing else is done."""
    folded = np.array([folded_text(decoy) for decoy in decoys])
    sets = []
    for text in texts:
        different = np.flatnonzero(folded != folded_text(text))
        company = [decoys[at] for at in rng.choice(different, k - 1, replace=False)]
        sets.append(rng.permutation([text, *company]).tolist())
    return sets


def random_words(pool: Pool, count: int, rng: np.random.Generator) -> list[str]:
    """Decoys of random words of the pool, as long as its strings are."""
    vocabulary = np.array(sorted({word for string in pool.strings for word in words(string)}))
    lengths = rng.choice([max(len(words(string)), 1) for string in pool.strings], count)
    return [" ".join(rng.choice(vocabulary, length)) for length in lengths]


def harmless(pool: Pool, subjects: Sequence[str], count: int) -> list[str]:
    """The strings that are farthest from some subjects."""
    cosines = (pool.vectors @ pool.encoder.encode(list(subjects)).T).max(axis=1)
    return [pool.strings[at] for at in np.argsort(cosines, kind="stable")[:count]]


def released(
    cover: Mechanism, texts: Sequence[str], seed: int | None = 1, key: bytes | None = None
) -> list[tuple[str, ...]]:
    """The sets of some texts: drawn by a seed, or remembered by a key."""
    made = Obfuscator(cover, rng=None if key else seed, memory_key=key)
    return [result.variants for result in made.obfuscate(texts)]
