"""Query inference by words: which query of a log has words like those of the variants.

As the attack by encoders (``cosine.py``), with vectors of texts that are made of their words:

    means          the vectors of a word space; words that it lacks count nothing
    centred means  the same less the mean word of the log, so that they say what is special about a
                   word; one that the space lacks has a direction of its own
    same words     a direction of its own for every word: only the very words of the variants count

and their sums. Words were mostly drawn around the true ones in such a space, so that noise averages
out over variants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sottovoce.mechanisms.base import Mechanism
from sottovoce.privacy.attacks.cosine import RELEASES_AT_A_TIME, originals_in
from sottovoce.privacy.attacks.queries import Scored, largest
from sottovoce.privacy.attacks.query_log import QueryLog
from sottovoce.privacy.attacks.ranked import DEPTH, Attacked, Inference
from sottovoce.privacy.attacks.releases import Released
from sottovoce.privacy.attacks.word_bags import Bags, TextVectors, WordVectors, centroids
from sottovoce.resources.local import load_space
from sottovoce.spaces.space import WordSpace
from sottovoce.text.comparing import folded_text
from sottovoce.types import Float64Array, IntArray, Progress

SCORES_AT_A_TIME = 8_000_000
"""Bounds the memory of a block of releases, whatever the log."""

MEANS, CENTRED, SAME = "means", "centred means", "same words"
SAME_WORDS = WordVectors(SAME, listed=1.0, unlisted=1.0)
COMPARED: dict[str, tuple[str, ...]] = {
    CENTRED: (CENTRED,),
    f"{MEANS} + {SAME}": (MEANS, SAME),
    f"{CENTRED} + {SAME}": (CENTRED, SAME),
}
"""The attacks by name, and the vectors whose cosines each adds up. Each is the strongest against
some mechanism; the means and the same words alone are against none."""
WITHOUT_SPACE: dict[str, tuple[str, ...]] = {SAME: (SAME,)}
"""What is left where no word space is there."""


def infer_by_words(
    releases: Sequence[Released],
    log: QueryLog,
    space: WordSpace | None,
    *,
    variants: int | None = None,
    add_originals: bool = False,
    is_own: bool = False,
    progress: Progress | None = None,
) -> list[Inference]:
    """Attack every release by itself, in each of the ways of :data:`COMPARED`.

    space
        Where words have vectors; without one, only the same words count.
    is_own
        Whether it is the mechanism's own, so that the attacker knows that much of it.
    """
    attacks = WITHOUT_SPACE if space is None else COMPARED
    attacked = [release for release in releases if release.variants]
    targets, beside = originals_in(log, [release.text for release in attacked], add_originals)
    texts = [list(map(folded_text, release.variants[:variants])) for release in attacked]
    ranked: dict[str, list[Attacked]] = {name: [] for name in attacks}
    size = len(log) + len(beside)
    everyone = np.arange(size)
    for at, scores in enumerate(_scores(texts, log, beside, space, attacks)):
        for name, row in scores.items():
            rank, ties = Scored(everyone, row).rank(int(targets[at]), size)
            ranked[name].append(Attacked(attacked[at].id, len(texts[at]), rank, ties))
        if progress is not None:
            progress(at + 1, len(texts))
    uses = "uses nothing else of it" if is_own else "does not use the mechanism"
    whose = "the mechanism's space" if is_own else "the space"
    where = "" if space is None else f" in {whose} {space.name}"
    return [
        Inference(
            attack=name,
            knows=f"a log of {size:,} queries with the true one in it; compares texts by "
            f"{_in_words(by, where)}, and {uses}",
            log=size,
            added=len(beside),
            unreleased=len(releases) - len(attacked),
            depth=DEPTH,
            queries=tuple(ranked[name]),
        )
        for name, by in attacks.items()
    ]


def likely_by_words(
    releases: Sequence[Released],
    log: QueryLog,
    space: WordSpace | None,
    count: int,
    *,
    add_originals: bool = False,
) -> list[IntArray]:
    """The queries whose words are most like those of each release, the likeliest first."""
    attacked = [release for release in releases if release.variants]
    _, beside = originals_in(log, [release.text for release in attacked], add_originals)
    texts = [list(map(folded_text, release.variants)) for release in attacked]
    by = WITHOUT_SPACE if space is None else {CENTRED: COMPARED[CENTRED]}
    return [
        largest(row, count)
        for scores in _scores(texts, log, beside, space, by)
        for row in scores.values()
    ]


def _scores(
    texts: Sequence[Sequence[str]],
    log: QueryLog,
    beside: Sequence[str],
    space: WordSpace | None,
    attacks: dict[str, tuple[str, ...]],
) -> Iterator[dict[str, Float64Array]]:
    """The scores of the log, and of what is beside it, by each attack; one release at a time."""
    parts = {vectors.name: _parts(log, beside, vectors) for vectors in _vectors(log, space)}
    at_a_time = max(1, min(RELEASES_AT_A_TIME, SCORES_AT_A_TIME // (len(log) + len(beside))))
    for start in range(0, len(texts), at_a_time):
        block = texts[start : start + at_a_time]
        cosines = {name: _cosines(listed, block) for name, listed in parts.items()}
        for column in range(len(block)):
            yield {
                name: np.sum([cosines[kind][:, column] for kind in by], axis=0)
                for name, by in attacks.items()
            }


def space_for(mechanism: Mechanism | None, space: WordSpace | None = None) -> WordSpace:
    """The word space to compare in: the mechanism's own, else the one given, else the default."""
    of_mechanism = getattr(mechanism, "space", None)
    if isinstance(of_mechanism, WordSpace):
        return of_mechanism
    return load_space() if space is None else space


def _vectors(log: QueryLog, space: WordSpace | None) -> Iterator[WordVectors]:
    if space is not None:
        yield WordVectors(MEANS, space)
        center, away = log.mean_word(space)
        yield WordVectors(CENTRED, space, center, unlisted=away)
    yield SAME_WORDS


def _parts(log: QueryLog, beside: Sequence[str], vectors: WordVectors) -> list[TextVectors]:
    """The log, and what is put beside it; that is kept nowhere."""
    beside_it = [TextVectors(Bags.of(beside), vectors)] if beside else []
    return [log.text_vectors(vectors), *beside_it]


def _cosines(parts: Sequence[TextVectors], texts: Sequence[Sequence[str]]) -> Float64Array:
    points = centroids(texts, parts[0].vectors)
    return np.concatenate([part.cosines(points) for part in parts])


def _in_words(by: Sequence[str], where: str) -> str:
    spoken = {
        MEANS: f"their words' mean vectors{where}",
        CENTRED: f"their words' centred mean vectors{where}",
        SAME: "the words that they share",
    }
    return " and ".join(spoken[kind] for kind in by)
