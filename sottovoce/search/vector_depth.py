"""How deep to ask a store, so that the true top ten is inside with a stated probability.

How far noise pushes a document down depends on the documents around it, which only the store has.
So it is tried out with public queries, which need no hiding: the store is asked for the true top k
of each, and again with noise. The *reach* of a query is the least depth at which the noisy answer
holds all of its true top k. Let R(1) <= ... <= R(m) be the reaches of m public queries, drawn like
the private one, and F the law of a reach. Then for any law, and any store,

    P( F(R(j)) < share ) <= P( Binomial(m, share) >= j ):

F(R(j)) < share means that j reaches fell below the share-quantile of F, and each does so with
probability at most share. The least j that makes the right side no larger than 1 - confidence
gives the depth R(j).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

from sottovoce.defaults import TOP
from sottovoce.engines.vector_engine import VectorEngine
from sottovoce.errors import UsageError
from sottovoce.files import parse_json, read_text, write_whole
from sottovoce.obfuscation.vectors import VectorNoise, on_grid
from sottovoce.randomness import Draws, Randomness, Streams
from sottovoce.statistics import at_least
from sottovoce.text import folded_text
from sottovoce.types import Progress, count_up

SHARE, CONFIDENCE = 0.9, 0.95
DEEPEST = 1000
NEVER = math.inf
"""The reach of a query whose top k is not inside at the greatest depth that was tried."""


@dataclass(frozen=True, repr=False)
class DepthPromise:
    """The reaches of public queries in one store at one epsilon, and what follows from them.

    It holds numbers alone: no query, and nothing of the documents.
    """

    engine: str
    encoder: str
    """The hash of the encoder."""
    mechanism: str
    k: int
    deepest: int
    reaches: tuple[float, ...]
    seeded: bool = False

    def depth(self, share: float = SHARE, confidence: float = CONFIDENCE) -> int | None:
        """The least depth of which the promise holds; None: not up to the greatest one tried."""
        place = order_statistic(len(self.reaches), share, confidence)
        reach = sorted(self.reaches)[place - 1]
        return None if reach == NEVER else int(reach)

    def inside(self, depth: int, confidence: float = CONFIDENCE) -> float:
        """The least share of queries whose top k is inside at a depth fixed beforehand."""
        right = sum(reach <= depth for reach in self.reaches)
        return float(at_least(right, len(self.reaches), 1 - confidence))

    def sentence(self, share: float = SHARE, confidence: float = CONFIDENCE) -> str:
        """The promise in plain words."""
        return (
            f"The true top {self.k} of this store is inside for at least {share:.0%} of queries "
            f"like the {len(self.reaches)} public ones that were tried, with {confidence:.0%} "
            "confidence."
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON; a reach that was not found is null."""
        reaches = [None if reach == NEVER else reach for reach in self.reaches]
        return {**asdict(self), "reaches": reaches}

    def write(self, file: Path) -> None:
        """Keep it for searches."""
        write_whole(file, json.dumps(self.to_dict(), indent=1).encode())

    @classmethod
    def read(cls, file: Path) -> DepthPromise:
        """What :meth:`write` wrote."""
        try:
            kept = parse_json(read_text(file))
            kept["reaches"] = tuple(NEVER if r is None else float(r) for r in kept["reaches"])
            return cls(**kept)
        except (ValueError, TypeError, KeyError, OverflowError):
            raise UsageError(
                "this file is no promise: 'sottovoce vectors --out' writes it"
            ) from None

    def check(self, engine: str, mechanism: VectorNoise) -> None:
        """Refuse to speak of another store, encoder or epsilon than those that were tried."""
        tried = (self.engine, self.encoder, self.mechanism)
        if tried != (engine, mechanism.made_with, mechanism.spec):
            raise UsageError(
                "this promise was made for another store, encoder or epsilon: make one for these "
                "with 'sottovoce vectors', or search with those"
            )

    def __repr__(self) -> str:
        return f"DepthPromise({self.mechanism}, {len(self.reaches)} public queries)"


def order_statistic(m: int, share: float, confidence: float) -> int:
    """The least j, from 1, with P(Binomial(m, share) >= j) <= 1 - confidence."""
    if not (0 < share < 1 and 0 < confidence < 1):
        raise UsageError("share and confidence lie between 0 and 1, as 0.9")
    tails = binom.sf(np.arange(m), m, share)
    enough = np.flatnonzero(tails <= 1 - confidence)
    if not len(enough):
        needed = math.ceil(math.log(1 - confidence) / math.log(share))
        raise UsageError(
            f"a promise for {share:.0%} with {confidence:.0%} confidence needs {needed} public "
            f"queries, and there are {m}: give more, or promise less"
        )
    return int(enough[0]) + 1


def promise_depth(
    engine: VectorEngine,
    mechanism: VectorNoise,
    public: Sequence[str],
    *,
    name: str | None = None,
    k: int = TOP,
    deepest: int = DEEPEST,
    rng: Randomness = None,
    progress: Progress | None = None,
) -> DepthPromise:
    """Try public queries out. Each is sent twice, once as it is: never give private ones.

    public
        Queries drawn like those to be hidden; the promise is about more of the same kind.
    name
        What the store is called in the promise; its own name by default.
    """
    if not public:
        raise UsageError("give public queries, such as a log")
    if not 1 <= k <= deepest:
        raise UsageError(f"a top {k} is not inside {deepest} documents: ask deeper")
    streams = Streams(rng, mechanism.spec)
    count = count_up(progress, len(public))
    reaches = []
    for number, text in enumerate(public):
        true = mechanism.encode([folded_text(text)])
        draws = Draws([(streams.generator(number, 0, Streams.WORDS, 0), 1)])
        best = [near.hit.doc_id for near in engine.nearest(on_grid(true)[0], k)]
        noisy = engine.nearest(mechanism.move(true, draws)[0], deepest)
        places = {near.hit.doc_id: place for place, near in enumerate(noisy, start=1)}
        reaches.append(max((places.get(doc_id, NEVER) for doc_id in best), default=NEVER))
        count(1)
    return DepthPromise(
        engine=name or engine.name,
        encoder=mechanism.made_with,
        mechanism=mechanism.spec,
        k=k,
        deepest=deepest,
        reaches=tuple(reaches),
        seeded=streams.reproducible,
    )


def store_name(spec: str) -> str:
    """What a store is called in a promise: a spec may hold a path, so a hash of it stands there."""
    return hashlib.sha256(spec.strip().encode()).hexdigest()[:16]
