"""Query inference (QuIA): which query of a log was meant, judging by its variants.

The attacker sees the N variants q'_1 … q'_N of one query and has a log Q that holds it. They
encode both with an encoder T of their own and sort the log by

    score(q) = cos(c, T(q)),   c = (T(q'_1) + … + T(q'_N)) / N.

Our encoders give vectors of length 1, so each variant has the same weight in c (the paper took
DistilBERT's vectors as they come). Variants, originals and log are folded alike before they are
encoded: no case, spacing or normal form makes a difference. The original's rank is

    rank = 1 + #{q: score(q) > s*} + 1/2 #{other q: score(q) = s*},

s* its own score; scores within ``TIE`` of each other are equal. From the rank come the risks: lazy
P@1 = 1[rank = 1], active R@k = 1[rank <= k], motivated RR = 1/rank, and rank-biased precision
(1 - p) p^(rank - 1) with persistence p = .8, also divided by 1 - p, so that rank 1 gives 1. An
original that ties for the first place has a rank beyond 1, and P@1 = 0 as it is defined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sottovoce.arrays import accumulated_error
from sottovoce.encoders import Encoder, load_encoder
from sottovoce.errors import UsageError
from sottovoce.privacy.attacks.query_log import NOT_THERE, QueryLog
from sottovoce.privacy.attacks.releases import Released
from sottovoce.statistics import LEVEL, bootstrap_mean, clopper_pearson
from sottovoce.text.comparing import folded_text
from sottovoce.threads import parallel_map
from sottovoce.types import Float32Array, Float64Array, IntArray, Progress

TIE = 1e-6
"""Scores no farther apart are equal: encoders add up float32 numbers, in an order that depends on
the order of the words and on the batch, and two queries of the same words must tie."""
PERSISTENCE = 0.8
DEPTH = 10
"""How many guesses the active attacker makes."""

RELEASES_AT_A_TIME = 64
LOG_AT_A_TIME, POINTS_AT_A_TIME, PAIRS_AT_A_TIME = 4096, 512, 4096
"""Together they bound the memory of a thread, whatever the log and the releases."""


@dataclass(frozen=True)
class Attacked:
    """What became of one query: the rank of the original, its score, how many others tie."""

    id: str
    variants: int
    rank: float
    score: float
    ties: int


@dataclass(frozen=True)
class Risk:
    """The mean of a measure over the queries, an interval, and what a blind guess would reach."""

    measure: str
    value: float
    low: float
    high: float
    interval: str
    chance: float


@dataclass(frozen=True, repr=False)
class Inference:
    """The ranks of all attacked queries, and the risks that follow from them.

    Intervals are Clopper-Pearson's for P@1 and R@k. For RR and RBP they are bootstraps over the
    queries, which shrink to a point where all queries fare alike: then read those of P@1 and R@k.
    """

    encoder: str
    log: int
    added: int
    """Originals that the log lacked and that were put beside it; ``log`` counts them too."""
    unreleased: int
    """Releases without a single variant: there is nothing to attack, they are left out."""
    depth: int
    queries: tuple[Attacked, ...]

    @property
    def ranks(self) -> Float64Array:
        """The rank of each original."""
        return np.array([each.rank for each in self.queries])

    @cached_property
    def lazy(self) -> Risk:
        """P@1: the first guess is right."""
        return self._counted("P@1", 1, 1 / self.log)

    @cached_property
    def active(self) -> Risk:
        """R@k: one of k guesses is right."""
        return self._counted(f"R@{self.depth}", self.depth, min(1.0, self.depth / self.log))

    @cached_property
    def motivated(self) -> Risk:
        """RR: the attacker goes down the list until they are right."""
        chance = float((1 / np.arange(1, self.log + 1)).mean())
        return self._averaged("RR", 1 / self.ranks, chance)

    @cached_property
    def biased(self) -> Risk:
        """RBP: the attacker looks at the next guess with probability p."""
        return self._rank_biased("RBP", 1 - PERSISTENCE)

    @cached_property
    def biased_from_one(self) -> Risk:
        """RBP divided by 1 - p: 1 where every first guess is right."""
        return self._rank_biased("RBP/(1-p)", 1.0)

    @cached_property
    def risks(self) -> dict[str, Risk]:
        """All risks by name."""
        return {
            "lazy": self.lazy,
            "active": self.active,
            "motivated": self.motivated,
            "rank_biased": self.biased,
            "rank_biased_from_one": self.biased_from_one,
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON; no text is in it."""
        return {
            "attack": "query inference",
            "encoder": self.encoder,
            "log": self.log,
            "added": self.added,
            "unreleased": self.unreleased,
            "level": LEVEL,
            "persistence": PERSISTENCE,
            "risks": {name: vars(risk) for name, risk in self.risks.items()},
            "queries": [vars(each) for each in self.queries],
        }

    def __repr__(self) -> str:
        return f"Inference({len(self.queries)} queries, {self.encoder}, log of {self.log})"

    def _counted(self, measure: str, depth: int, chance: float) -> Risk:
        right = int((self.ranks <= depth).sum())
        low, high = map(float, clopper_pearson(right, len(self.queries)))
        return Risk(measure, right / len(self.queries), low, high, "Clopper-Pearson", chance)

    def _averaged(self, measure: str, values: Float64Array, chance: float) -> Risk:
        low, high = bootstrap_mean(values)
        return Risk(measure, float(values.mean()), low, high, "bootstrap over queries", chance)

    def _rank_biased(self, measure: str, top: float) -> Risk:
        chance = top * (1 - PERSISTENCE**self.log) / (1 - PERSISTENCE) / self.log
        return self._averaged(measure, top * PERSISTENCE ** (self.ranks - 1), chance)


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
    attacked = [each for each in releases if each.variants]
    if not attacked:
        raise UsageError("there is nothing to attack: no release has a variant")
    originals = [folded_text(each.text) for each in attacked]
    if blank := originals.count(""):
        raise UsageError(f"{blank} of the originals are blank: leave those releases out")
    distinct = list(dict.fromkeys(originals))
    places = log.places(distinct)
    missing = np.flatnonzero(places == NOT_THERE)
    if len(missing) and not add_originals:
        raise UsageError(
            f"{len(missing)} of the {len(distinct)} originals are not in the log: no attacker "
            "could find them there, so a risk of 0 would be a lie. Add them to what is searched "
            "(add_originals, --add-originals), as the paper does, or give a log that holds them"
        )
    beside = encoder.encode([distinct[at] for at in missing])
    places[missing] = len(log) + np.arange(len(missing))
    place_of = dict(zip(distinct, places, strict=True))
    vectors = log.vectors(encoder, progress)
    texts = [[folded_text(each) for each in release.variants[:variants]] for release in attacked]
    ranks, scores, ties = mid_ranks(
        centroids(encoder, texts, progress),
        np.array([place_of[text] for text in originals]),
        (vectors, beside),
    )
    return Inference(
        encoder=encoder.name,
        log=len(log) + len(missing),
        added=len(missing),
        unreleased=len(releases) - len(attacked),
        depth=depth,
        queries=tuple(
            Attacked(release.id, len(seen), float(rank), float(score), int(tied))
            for release, seen, rank, score, tied in zip(
                attacked, texts, ranks, scores, ties, strict=True
            )
        ),
    )


def centroids(
    encoder: Encoder, texts: Sequence[Sequence[str]], progress: Progress | None = None
) -> Float64Array:
    """The directions of the mean vectors of lists of texts; zeros where all texts are blank."""
    out = np.zeros((len(texts), encoder.dimension))
    total, done = sum(map(len, texts)), 0
    for start in range(0, len(texts), RELEASES_AT_A_TIME):
        some = texts[start : start + RELEASES_AT_A_TIME]
        rows = {text: at for at, text in enumerate(dict.fromkeys(t for each in some for t in each))}
        vectors = encoder.encode(list(rows)).astype(np.float64)
        for at, each in enumerate(some, start=start):
            out[at] = vectors[[rows[text] for text in each]].mean(axis=0)
            done += len(each)
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
            some = slice(start, start + POINTS_AT_A_TIME)
            products = rounded[some] @ block.T
            above = products > high[some]
            counts[0, some] += np.count_nonzero(above, axis=1)
            near, rows = np.nonzero((products >= low[some]) & ~above)
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
    others = tied - 1
    return 1 + above + others / 2, scores, others


def _gathered(parts: Sequence[Float32Array], rows: IntArray) -> Float32Array:
    """Rows of several arrays, counted through."""
    out = np.empty((len(rows), parts[0].shape[1]), dtype=np.float32)
    first = 0
    for part in parts:
        here = np.flatnonzero((rows >= first) & (rows < first + len(part)))
        out[here] = part[rows[here] - first]
        first += len(part)
    return out


def _products(left: Float64Array, right: Float32Array) -> Float64Array:
    """Inner products row by row in float64: the same for any number of rows."""
    return np.asarray((left * right.astype(np.float64)).sum(axis=1))


def attacker_encoders(engine: str | None = None, asked: str | None = None) -> list[Encoder]:
    """The attacker's encoders: others than the engine's, which they do not run.

    The one asked for, else every one that is installed: which is the strongest depends on the
    mechanism (the light one against cmp, the strong one against wbb).
    """
    from sottovoce.encoders.strong import StrongEncoder

    installed = ["light", "strong"] if StrongEncoder.installed() else ["light"]
    auto = installed[-1]
    theirs = auto if engine == "auto" else engine
    wanted = installed if asked is None else [auto if asked == "auto" else asked]
    mine = [name for name in wanted if name != theirs]
    if not mine:
        raise UsageError(
            "the attacker's encoder must be another one than the engine's: use light against "
            "strong and strong against light (sottovoce spaces add strong)"
        )
    return [load_encoder(name) for name in mine]
