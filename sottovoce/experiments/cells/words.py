"""Words by themselves: how deniable they are, releases, neighbours, a plotted word's relatives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce.experiments.grid import Deny, Neighbours, Samples
from sottovoce.experiments.measures import (
    ANGLE,
    DISTANCE,
    DISTINCT,
    MOVED,
    SUPPORT,
    UNCHANGED,
    RelativeKind,
    neighbour_label,
    relatives_label,
)
from sottovoce.experiments.resource_cache import ResourceCache
from sottovoce.experiments.store import CellResult
from sottovoce.experiments.tables import make_table
from sottovoce.language.wordnet import Sense, WordNet
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.privacy.equivalent_epsilons import epsilon_with_unchanged
from sottovoce.privacy.plausible_deniability import (
    deniability,
    neighbour_distances,
    word_mechanism,
)
from sottovoce.privacy.text_similarity import installed_wordnet
from sottovoce.privacy.word_draws import Sampler
from sottovoce.privacy.word_samples import nearest_others as nearest_words
from sottovoce.spaces.distances import Distances
from sottovoce.spaces.space import WordSpace
from sottovoce.types import UNKNOWN, IntArray

Row: TypeAlias = tuple[Any, ...]

NEAREST, AT_RANDOM = 20, 20
"""Other words around a plotted one that are shown."""
MOST_RELATIVES = 30
"""Synonyms, and as many hyponyms, that are shown."""
MOST_SENSES = 2000
"""Senses below a word that are looked at: some words have all others below them."""
DRAWN_FOR_SAMPLES = 200
"""Releases of a word among which different ones are looked for."""
NO_WORDNET = "WordNet is not on this machine: plotted words have neighbours alone"


def deny(job: Deny, cache: ResourceCache) -> CellResult:
    """N_w, S_w, different words in so many draws, and how far words move."""
    mechanism = word_mechanism(cache.mechanism(job.spec, job.epsilon, job.texts))
    ids = cache.sample(job.texts.only("space"), job.deniability.words)
    measured = deniability(mechanism, ids, draws=job.deniability.draws, rng=job.seed)
    words = mechanism.space.words(ids)
    measures = {
        UNCHANGED: measured.unchanged,
        SUPPORT: measured.support,
        DISTINCT: measured.distinct,
        MOVED: measured.moved,
    }
    setting = (mechanism.space.name, job.mechanism, job.epsilon, job.seed)
    rows = [
        (*setting, word, measure, float(value))
        for measure, values in measures.items()
        for word, value in zip(words, values, strict=True)
    ]
    how = "exact" if measured.exact else f"counted, {measured.draws} draws a word"
    facts = {"deniability": {"mechanism": job.mechanism, "how": how, "eta": measured.eta}}
    return CellResult("words", make_table("words", rows), facts=facts)


def samples(job: Samples, cache: ResourceCache) -> CellResult:
    """Words released for some words: table 1 of the CMP paper."""
    asked, texts = job.samples, job.texts
    mechanism = word_mechanism(cache.mechanism(job.spec, None, texts))
    space, average = mechanism.space, cache.sample(texts.only("space"), asked.over)
    words = [word for word in asked.words if word in space]
    rows: list[Row] = []
    for level in asked.levels:
        match = epsilon_with_unchanged(
            mechanism, level, average, draws=asked.draws, rng=job.seed
        ).measured.mechanism
        setting = (space.name, job.mechanism, level, match.epsilon, job.seed)
        for word, released in _released(match, words, asked.count, job.seed):
            rows += [(*setting, word, number, other) for number, other in enumerate(released, 1)]
    unknown = [word for word in asked.words if word not in space]
    facts = {"sampled words that the space lacks": unknown} if unknown else {}
    return CellResult("samples", make_table("samples", rows), facts=facts)


def _released(
    mechanism: WordMechanism, words: list[str], count: int, seed: int
) -> Iterator[tuple[str, list[str]]]:
    """Each word with the first different words that are drawn for it; never the word itself."""
    ids = mechanism.space.ids(words)
    drawn = Sampler(mechanism.name, ids, seed).all(
        mechanism, np.arange(len(ids)), DRAWN_FOR_SAMPLES
    )
    for word, word_id, row in zip(words, ids.tolist(), drawn.tolist(), strict=True):
        others = [other for other in dict.fromkeys(row) if other != word_id]
        yield word, mechanism.space.words(others[:count])


def neighbours(job: Neighbours, cache: ResourceCache) -> CellResult:
    """Distances of sampled words to their neighbours, and the surroundings of plotted words."""
    space, ids = cache.space(job.texts), cache.sample(job.texts, job.words)
    words = space.words(ids)
    rows: list[Row] = [
        (space.name, "", None, 0, word, neighbour_label(rank), float(distance))
        for rank, distances in neighbour_distances(space, ids, job.ranks).items()
        for word, distance in zip(words, distances, strict=True)
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
    return CellResult("words", make_table("words", rows), facts=facts)


def _plotted(space: WordSpace, word: str, wordnet: WordNet | None) -> Iterator[Row]:
    """Where the relatives of a word lie, seen from it."""
    word_id = space.id(word)
    seen = {word_id}
    senses = list(wordnet.senses(word)) if wordnet else []
    synonyms = (lemma for sense in senses for lemma in sense.lemmas)
    relatives: dict[RelativeKind, IntArray] = {
        "synonym": _first_new(space, synonyms, seen),
        "hyponym": _first_new(space, _hyponyms(senses), seen),
        "neighbour": _around(space, word_id, seen),
    }
    for kind, ids in relatives.items():
        label, origin = relatives_label(kind, word), np.full(len(ids), word_id)
        distances = Distances(space, ids).pairs(origin, ids)
        # Distances of the metric "angle" are 1 - cosine.
        cosines = 1 - Distances(space, ids, "angle").pairs(origin, ids)
        angles = np.degrees(np.arccos(np.clip(cosines, -1, 1)))
        for measure, values in ((DISTANCE, distances), (ANGLE, angles)):
            for relative, value in zip(space.words(ids), values, strict=True):
                yield space.name, label, None, 0, relative, measure, float(value)


def _hyponyms(level: list[Sense]) -> Iterator[str]:
    """Kinds of these, then kinds of those, level by level."""
    met = set(level)
    while level and len(met) < MOST_SENSES:
        below = [hyponym for sense in level for hyponym in sense.hyponyms()]
        level = [sense for sense in dict.fromkeys(below) if sense not in met]
        met.update(level)
        for sense in level:
            yield from sense.lemmas


def _first_new(space: WordSpace, words: Iterable[str], seen: set[int]) -> IntArray:
    """The first words that the space has and that were not seen; they are, from now on."""
    ids: list[int] = []
    for word in words:
        word_id = space.id(word.lower())
        if word_id != UNKNOWN and word_id not in seen:
            seen.add(word_id)
            ids.append(word_id)
        if len(ids) == MOST_RELATIVES:
            break
    return np.array(ids, dtype=np.int64)


def _around(space: WordSpace, word_id: int, seen: set[int]) -> IntArray:
    """The nearest words, and some of all; none that is a relative."""
    output = space.output.ids
    ranks = list(range(1, min(NEAREST, len(output) - 1) + 1))
    near = nearest_words(space, np.array([word_id]), ranks)[0][0] if ranks else output[:0]
    at_random = Generator(PCG64(0)).choice(output, min(AT_RANDOM, len(output)), replace=False)
    both = dict.fromkeys([*near.tolist(), *at_random.tolist()])
    return np.array([other for other in both if other not in seen], dtype=np.int64)
