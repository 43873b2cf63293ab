"""The only code that asks a store: it gets a noisy vector and a store, nothing else.

Neither the text nor its true vector ever comes here, so no error in this file can reveal them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sottovoce.engines.base import EngineError
from sottovoce.engines.vector_engine import VectorEngine, VectorHit, check_depth
from sottovoce.errors import SottovoceError
from sottovoce.types import Float32Array


@dataclass(frozen=True, repr=False)
class OutgoingVector:
    """A vector that may leave. Only :meth:`VectorBoundary.check` makes one."""

    vector: Float32Array

    def __repr__(self) -> str:
        return f"OutgoingVector({len(self.vector)} dimensions)"


class VectorBoundary:
    """Asks a store with noisy vectors, one at a time."""

    def __init__(self, engine: VectorEngine) -> None:
        self.engine = engine

    def check(self, noisy: Float32Array) -> OutgoingVector:
        """The vector as it would be sent; refuses what is no vector of finite numbers."""
        if noisy.ndim != 1 or noisy.dtype != np.float32 or not np.isfinite(noisy).all():
            raise SottovoceError("the noisy vector is not made of finite numbers: nothing was sent")
        return OutgoingVector(noisy.copy())

    def send(self, outgoing: OutgoingVector, depth: int) -> list[VectorHit]:
        """Ask for the nearest documents."""
        check_depth(depth)
        try:
            hits = self.engine.nearest(outgoing.vector, depth)
        except SottovoceError:
            raise
        except Exception as error:
            raise EngineError(f"{self.engine.name} failed ({type(error).__name__})") from None
        return list(hits[:depth])
