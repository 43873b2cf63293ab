"""Where synonyms and hyponyms lie, seen from a word: the study of 10,000 words of 000, section 4.1.

    python benchmarks/related_words.py

Of each space 10,000 words are drawn at random. Those that WordNet has are compared with their
synonyms and direct hyponyms that the space has, and each such relative with one word drawn at
random: by Euclidean distance and by the angle. *Nearer* is the share of relatives that are nearer
to the word than the random one; *between* is how many words of the space lie nearer to the word
than the relative does, the median over 300 pairs. The spaces of 50, 100 and 300 dimensions are
those of ``sottovoce spaces``; there is none of 200. One seed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sottovoce.language.wordnet import WordNet, load_wordnet
from sottovoce.resources.local import load_space
from sottovoce.spaces.distances import Distances
from sottovoce.spaces.space import WordSpace
from sottovoce.types import UNKNOWN, Float64Array, IntArray

SPACES = ("glove-6b-50d", "glove-6b-100d", "glove-840b-34k")
WORDS = 10_000
RANKED = 300


def main() -> None:
    """Print a row for each space and kind of relative."""
    wordnet = load_wordnet()
    print(
        "space, dimensions | relatives | pairs of words | distance: theirs, random, nearer | "
        "degrees: theirs, random, nearer | between"
    )
    for name in SPACES:
        space = load_space(name)
        rng = np.random.default_rng(0)
        sample = rng.choice(space.size, min(WORDS, space.size), replace=False)
        for kind in ("synonyms", "hyponyms"):
            pairs = np.array(list(related(space, wordnet, sample, kind)))
            strangers = rng.integers(0, space.size, len(pairs))
            print(
                f"{name}, {space.dimension} | {kind} | {len(pairs):,} of "
                f"{len(np.unique(pairs[:, 0])):,} | "
                f"{compared(space, pairs, strangers, 'euclidean')} | "
                f"{compared(space, pairs, strangers, 'angle')} | "
                f"{between(space, rng.permutation(pairs)[:RANKED]):,.0f}",
                flush=True,
            )


def related(
    space: WordSpace, wordnet: WordNet, sample: IntArray, kind: str
) -> Iterator[tuple[int, int]]:
    """Ids of the words of the sample, each with a relative that is another word of the space."""
    for number in sample.tolist():
        senses = wordnet.senses(space.word(number))
        if kind == "hyponyms":
            senses = tuple(below for sense in senses for below in sense.hyponyms())
        lemmas = dict.fromkeys(lemma.lower() for sense in senses for lemma in sense.lemmas)
        for other in map(space.id, lemmas):
            if other not in (UNKNOWN, number):
                yield number, other


def compared(space: WordSpace, pairs: IntArray, strangers: IntArray, measure: str) -> str:
    """Means of relatives and of random words, and how often a relative is nearer."""
    words, relatives = pairs.T
    theirs, others = (
        distances(space, words, partners, measure) for partners in (relatives, strangers)
    )
    return f"{theirs.mean():.2f}, {others.mean():.2f}, {(theirs < others).mean():.3f}"


def distances(space: WordSpace, words: IntArray, partners: IntArray, measure: str) -> Float64Array:
    """Euclidean distances, or angles in degrees."""
    if measure == "euclidean":
        return Distances(space, partners).pairs(words, partners)
    cosines = 1 - Distances(space, partners, "angle").pairs(words, partners)
    return np.asarray(np.degrees(np.arccos(np.clip(cosines, -1, 1))))


def between(space: WordSpace, pairs: IntArray) -> float:
    """The median number of words that lie nearer to a word than its relative."""
    everything = Distances(space, np.arange(space.size))
    counts = []
    for word, relative in pairs.tolist():
        row = everything.rows(np.array([word]))[0]
        counts.append(int((row < row[relative]).sum()) - 1)  # The word itself is nearest.
    return float(np.median(counts))


if __name__ == "__main__":
    main()
