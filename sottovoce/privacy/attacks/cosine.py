"""Query inference (QuIA): which query of a log was meant, judging by its variants.

The attacker sees the N variants q'_1 … q'_N of one query and has a log Q that holds it. They
encode both with an encoder T of their own and sort the log by

    score(q) = cos(c, T(q)),   c = (T(q'_1) + … + T(q'_N)) / N.

Our encoders give vectors of length 1, so each variant has the same weight in c (the paper took
DistilBERT's vectors as they come). Variants, originals and log are folded alike before they are
encoded: no case, spacing or normal form makes a difference.

Scores within ``TIE`` of each other are equal; ranks and risks are those of ``ranked.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sottovoce.arrays import accumulated_error
from sottovoce.encoders import Encoder, load_encoder
from sottovoce.encoders.base import at_unit_length
from sottovoce.errors import UsageError
from sottovoce.privacy.attacks.query_log import NOT_THERE, QueryLog, require_in_log
from sottovoce.privacy.attacks.ranked import DEPTH, Attacked, Inference
from sottovoce.privacy.attacks.releases import Released
from sottovoce.text.comparing import folded_text
from sottovoce.threads import parallel_map
from sottovoce.types import Float32Array, Float64Array, IntArray, Progress

TIE = 1e-6
"""Scores no farther apart are equal: encoders add up float32 numbers, in an order that depends on
the order of the words and on the batch, and two queries of the same words must tie."""

RELEASES_AT_A_TIME = 64
LOG_AT_A_TIME, POINTS_AT_A_TIME, PAIRS_AT_A_TIME = 4096, 512, 4096
"""Together they bound the memory of a thread, whatever the log and the releases."""


def infer(
    releases: Sequence[Released],
    log: QueryLog,
    encoder: Encoder,
    *,
    variants: int | None = None,
    depth: int = DEPTH,
    add_originals: bool = False,
    progress: Progress | None = None,
) -> Inference:
    """Attack every release by itself.

    variants
        How many of its variants the attacker sees, the first ones; all by default.
    add_originals
        Put originals that the log lacks beside it, as the paper does. They are encoded in memory:
        a person's own queries never come to the vectors on disk.
    progress
        Called with the texts encoded so far and their number: of the log, then of the variants.
    """
    for name, value in (("variants", variants), ("depth", depth)):
        if value is not None and value < 1:
            raise UsageError(f"{name}: give a whole number, 1 or more")
    attacked = [release for release in releases if release.variants]
    if not attacked:
        raise UsageError("there is nothing to attack: no release has a variant")
    targets, beside = originals_in(log, [release.text for release in attacked], add_originals)
    encoder = at_unit_length(encoder)
    vectors = log.vectors(encoder, progress)
    texts = [list(map(folded_text, release.variants[:variants])) for release in attacked]
    ranks, _, ties = mid_ranks(
        centroids(encoder, texts, progress),
        targets,
        (vectors, encoder.encode(beside)),
    )
    return Inference(
        attack=encoder.name,
        knows=f"a log of {len(log) + len(beside):,} queries with the true one in it; compares "
        f"texts by the encoder {encoder.name}, and does not use the mechanism",
        log=len(log) + len(beside),
        added=len(beside),
        unreleased=len(releases) - len(attacked),
        depth=depth,
        queries=tuple(
            Attacked(release.id, len(seen), float(rank), int(tied))
            for release, seen, rank, tied in zip(attacked, texts, ranks, ties, strict=True)
        ),
    )


def originals_in(
    log: QueryLog, texts: Sequence[str], add_originals: bool
) -> tuple[IntArray, list[str]]:
    """Where the originals stand in the log, and those that it lacks: they are put beside it.

    They are encoded in memory: a person's own queries never come to the vectors on disk.
    """
    originals = list(map(folded_text, texts))
    if blank := originals.count(""):
        raise UsageError(f"{blank} of the originals are blank: leave those releases out")
    distinct = list(dict.fromkeys(originals))
    places = log.places(distinct)
    missing = np.flatnonzero(places == NOT_THERE)
    require_in_log(len(missing), len(distinct), add_originals)
    places[missing] = len(log) + np.arange(len(missing))
    place_of = dict(zip(distinct, places, strict=True))
    targets = np.array([place_of[text] for text in originals])
    return targets, [distinct[number] for number in missing]


def centroids(
    encoder: Encoder, texts: Sequence[Sequence[str]], progress: Progress | None = None
) -> Float64Array:
    """The directions of the mean vectors of lists of texts; zeros where all texts are blank."""
    out = np.zeros((len(texts), encoder.dimension))
    total, done = sum(map(len, texts)), 0
    for start in range(0, len(texts), RELEASES_AT_A_TIME):
        lists = texts[start : start + RELEASES_AT_A_TIME]
        distinct = dict.fromkeys(text for listed in lists for text in listed)
        rows = {text: row for row, text in enumerate(distinct)}
        vectors = encoder.encode(list(rows)).astype(np.float64)
        for at, listed in enumerate(lists, start=start):
            out[at] = vectors[[rows[text] for text in listed]].mean(axis=0)
            done += len(listed)
        if progress is not None:
            progress(done, total)
    lengths = np.sqrt((out * out).sum(axis=1))[:, None]
    return np.asarray(out / np.where(lengths > 0, lengths, 1.0))


def mid_ranks(
    points: Float64Array, targets: IntArray, parts: Sequence[Float32Array]
) -> tuple[Float64Array, Float64Array, IntArray]:
    """Rank row ``targets[i]`` of the parts, taken together, by the product with ``points[i]``.

    Answers ranks, the targets' scores, and how many other rows tie. All rows have length 1 or 0.
    Float32 products decide what is farther from the target's score than their proven error; the
    few other rows are decided in float64, so that neither blocks nor threads change a rank.
    """
    scores = _products(points, _gathered(parts, targets))
    # Twice the error of unit rows: encoders round them, too.
    margin = 2 * accumulated_error(points.shape[1]) + TIE
    low = (scores - margin).astype(np.float32)[:, None]
    high = (scores + margin).astype(np.float32)[:, None]
    rounded = points.astype(np.float32)

    def count(block: Float32Array) -> IntArray:
        """How many rows of a block lie above each target's score, and how many tie with it."""
        counts = np.zeros((2, len(points)), dtype=np.int64)
        for start in range(0, len(points), POINTS_AT_A_TIME):
            rows_of_points = slice(start, start + POINTS_AT_A_TIME)
            products = rounded[rows_of_points] @ block.T
            above = products > high[rows_of_points]
            counts[0, rows_of_points] += np.count_nonzero(above, axis=1)
            near, rows = np.nonzero((products >= low[rows_of_points]) & ~above)
            for at in range(0, len(near), PAIRS_AT_A_TIME):
                point = near[at : at + PAIRS_AT_A_TIME] + start
                lead = _products(points[point], block[rows[at : at + PAIRS_AT_A_TIME]])
                lead -= scores[point]
                np.add.at(counts[0], point[lead > TIE], 1)
                np.add.at(counts[1], point[np.abs(lead) <= TIE], 1)
        return counts

    blocks = [
        part[start : start + LOG_AT_A_TIME]
        for part in parts
        for start in range(0, len(part), LOG_AT_A_TIME)
    ]
    above, tied = np.sum(parallel_map(count, blocks), axis=0)
    ties = tied - 1  # Not with itself.
    return 1 + above + ties / 2, scores, ties


def _gathered(parts: Sequence[Float32Array], rows: IntArray) -> Float32Array:
    """Rows of several arrays, counted through."""
    out = np.empty((len(rows), parts[0].shape[1]), dtype=np.float32)
    first = 0
    for part in parts:
        inside = np.flatnonzero((rows >= first) & (rows < first + len(part)))
        out[inside] = part[rows[inside] - first]
        first += len(part)
    return out


def _products(left: Float64Array, right: Float32Array) -> Float64Array:
    """Inner products row by row in float64: the same for any number of rows."""
    return np.asarray((left * right.astype(np.float64)).sum(axis=1))


def attacker_encoders(engine: str | None = None, asked: str | None = None) -> list[Encoder]:
    """The attacker's encoders: the one asked for, else every one that is installed.

    The engine is the stranger, so its own encoder is always among them. Which is the strongest
    depends on the mechanism (the light one against cmp, the strong one against wbb).
    """
    from sottovoce.encoders.strong import StrongEncoder

    installed = ["light", "strong"] if StrongEncoder.installed() else ["light"]
    names = [*(installed if asked is None else [asked]), *([] if engine is None else [engine])]
    return [
        load_encoder(name)
        for name in dict.fromkeys(installed[-1] if name == "auto" else name for name in names)
    ]
