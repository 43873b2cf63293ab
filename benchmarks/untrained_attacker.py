"""Query inference by an encoder that was never trained for similarity, on the releases of 001.

    python benchmarks/untrained_attacker.py DATA

The attacker of 001 has DistilBERT, whose states were trained to fill gaps, not to compare texts.
Here two others play that part: means of GloVe vectors, and means of random vectors, which know
nothing but whether two words are the same; beside them the light encoder, which was trained to
compare. The first 50 variants of each query of TREC DL 2019 that the authors published, a log
of 120,644 queries; printed is the risk of the motivated attacker (mean reciprocal rank). DATA is as
in replication/README.md; the space: sottovoce spaces add large.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce.arrays import unit_rows
from sottovoce.encoders import Encoder, load_encoder
from sottovoce.privacy import QueryLog, infer, read_log, read_releases
from sottovoce.resources.local import load_space
from sottovoce.spaces import WordSpace
from sottovoce.text.words import words
from sottovoce.types import UNKNOWN, BoolArray, Float32Array, IntArray

MECHANISMS = ("CMP", "Mahalanobis", "VickreyCMP", "VickreyMhl", "SanText", "TEM", "CusText", "WBB")
EPSILONS = ("1", "5", "10", "12.5", "15", "20", "50")


class MeanOfWords:
    """The mean of the vectors of the words that a space has, at length 1.

    The vectors are the space's own, or others in their place.
    """

    exact_batches = True

    def __init__(self, name: str, space: WordSpace, vectors: Float32Array | None = None) -> None:
        self.name = f"means of {name}"
        self.dimension = space.dimension
        self._space = space
        self._vectors = space.vectors if vectors is None else vectors

    @property
    def fingerprint(self) -> str:
        """Of the space, and of what its vectors are called."""
        return f"{self.name}-{self._space.sha256}"

    def encode(self, texts: Sequence[str]) -> Float32Array:
        """A row for each text, zeros where no word is known."""
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, known in enumerate(map(self._known, texts)):
            if known.size:
                rows[row] = self._vectors[known].mean(axis=0)
        return unit_rows(rows)

    def knows(self, texts: Sequence[str]) -> BoolArray:
        """Where any word is known."""
        return np.array([self._known(text).size > 0 for text in texts], dtype=np.bool_)

    def _known(self, text: str) -> IntArray:
        ids = self._space.ids(words(text))
        known: IntArray = ids[ids != UNKNOWN]
        return known


def main() -> None:
    """A line a mechanism and encoder, a column an epsilon."""
    data = Path(sys.argv[1])
    log = QueryLog(read_log(data / "querylog" / "pool_distinct.tsv.gz"))
    space = load_space("glove-6b-100d")
    noise = Generator(PCG64(0)).standard_normal(space.vectors.shape, dtype=np.float32)
    encoders: list[Encoder] = [
        MeanOfWords("GloVe vectors", space),
        MeanOfWords("random vectors", space, noise),
        load_encoder("light"),
    ]
    print(f"{'':38}", *(f"{epsilon:>5}" for epsilon in EPSILONS))
    for mechanism in MECHANISMS:
        folder = data / "reference" / "msmarco-dl19" / mechanism
        for encoder in encoders:
            risks = []
            for epsilon in EPSILONS:
                released = read_releases(folder / f"obfuscatedText_{mechanism}_{epsilon}.csv.gz")
                inference = infer(released, log, encoder, variants=50, add_originals=True)
                risks.append(inference.motivated.value)
            line = " ".join(f"{risk:5.3f}" for risk in risks)
            print(f"{mechanism:11} {encoder.name:26} {line}", flush=True)


if __name__ == "__main__":
    main()
