"""Distances in a word space: to the k-th neighbours, and from a plotted word to its relatives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce.experiments.jobs import Neighbours
from sottovoce.experiments.product import Product
from sottovoce.experiments.shelf import Shelf
from sottovoce.experiments.tables import make_table
from sottovoce.language.wordnet import Sense, WordNet
from sottovoce.privacy.plausible_deniability import neighbour_distances
from sottovoce.privacy.text_similarity import installed_wordnet
from sottovoce.privacy.word_samples import nearest_others as neighbours
from sottovoce.spaces.distances import Distances
from sottovoce.spaces.space import WordSpace
from sottovoce.types import UNKNOWN, IntArray

NEAR, ANY = 20, 20
"""Neighbours of a plotted word that are shown: the nearest, and some at random."""
RELATIVES = 30
"""Synonyms, and as many hyponyms, that are shown at most."""
SENSES = 2000
"""Senses below a word that are looked at: some words have all others below them."""
NO_WORDNET = "WordNet is not on this machine: plotted words have neighbours alone"


def neighbour(job: Neighbours, shelf: Shelf) -> Product:
    """Distances of sampled words to their neighbours, and the surroundings of plotted words."""
    space = shelf.space(job.texts.space, job.texts.output_vocabulary)
    ids = shelf.sample(job.texts.space, job.texts.output_vocabulary, job.words)
    words = space.words(ids)
    rows = [
        (space.name, "", None, 0, word, f"distance to neighbour {rank}", float(far))
        for rank, distances in neighbour_distances(space, ids).items()
        for word, far in zip(words, distances, strict=True)
    ]
    wordnet = installed_wordnet()
    unknown = [word for word in job.plotted if word not in space]
    for word in job.plotted:
        if word not in unknown:
            rows += _plotted(space, word, wordnet)
    facts: dict[str, object] = {}
    if job.plotted and wordnet is None:
        facts["plotted words"] = NO_WORDNET
    if unknown:
        facts["plotted words that the space lacks"] = unknown
    return Product("words", make_table("words", rows), facts=facts)


def _plotted(
    space: WordSpace, word: str, wordnet: WordNet | None
) -> Iterator[tuple[str, str, None, int, str, str, float]]:
    """Where the relatives of a word lie, seen from it."""
    own = space.id(word)
    seen = {own}
    kinds = {
        "synonym": _known(space, _synonyms(word, wordnet), seen, RELATIVES),
        "hyponym": _known(space, _hyponyms(word, wordnet), seen, RELATIVES),
        "neighbour": _around(space, own, seen),
    }
    for kind, ids in kinds.items():
        here = np.full(len(ids), own)
        far = Distances(space, ids).pairs(here, ids)
        turned = Distances(space, ids, "angle").pairs(here, ids)
        angles = np.degrees(np.arccos(np.clip(1 - turned, -1, 1)))
        for measure, values in (("distance", far), ("angle", angles)):
            for relative, value in zip(space.words(ids), values, strict=True):
                yield (
                    *(space.name, f"{kind} of {word}", None, 0),
                    *(relative, measure, float(value)),
                )


def _synonyms(word: str, wordnet: WordNet | None) -> Iterator[str]:
    for sense in wordnet.senses(word) if wordnet else ():
        yield from sense.lemmas


def _hyponyms(word: str, wordnet: WordNet | None) -> Iterator[str]:
    """Kinds of it, then kinds of these, level by level."""
    level: list[Sense] = list(wordnet.senses(word)) if wordnet else []
    met = set(level)
    while level and len(met) < SENSES:
        below = [each for sense in level for each in sense.hyponyms()]
        level = [each for each in dict.fromkeys(below) if each not in met]
        met.update(level)
        for sense in level:
            yield from sense.lemmas


def _known(space: WordSpace, words: Iterable[str], seen: set[int], most: int) -> IntArray:
    """The first words that the space has and that were not seen; they are, from now on."""
    found: list[int] = []
    for word in words:
        known = space.id(word.lower())
        if known != UNKNOWN and known not in seen:
            seen.add(known)
            found.append(known)
        if len(found) == most:
            break
    return np.array(found, dtype=np.int64)


def _around(space: WordSpace, own: int, seen: set[int]) -> IntArray:
    """The nearest words, and some of all; none that is a relative."""
    ranks = list(range(1, min(NEAR, len(space.output) - 1) + 1))
    near = neighbours(space, np.array([own]), ranks)[0][0] if ranks else space.output.ids[:0]
    some = Generator(PCG64(0)).choice(space.output.ids, min(ANY, len(space.output)), replace=False)
    both = dict.fromkeys([*near.tolist(), *some.tolist()])
    return np.array([each for each in both if each not in seen], dtype=np.int64)
