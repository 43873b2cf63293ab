"""What the tests of integrations share: a small space, documents, a mechanism that betrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sottovoce import Obfuscator, WordSpace, mechanism
from sottovoce.collections import Collection, Document
from sottovoce.engines import BM25
from sottovoce.guarantees import Guarantee
from sottovoce.mechanisms.base import TextMechanism

WORDS = [f"word{chr(97 + i)}{chr(97 + j)}" for i in range(8) for j in range(8)]
SECRET = "melanoma"
"""A word that the space lacks: no variant can hold it."""


@dataclass(frozen=True, repr=False, eq=False)
class Hostile(TextMechanism):
    """Puts the text into its error."""

    name: ClassVar[str] = "hostile"
    summary: ClassVar[str] = ""
    paper: ClassVar[str] = ""

    @property
    def guarantee(self):
        return Guarantee("none", None, scope="text")

    def rewrite(self, text, n, pipeline, rng):
        raise ValueError(text)


def small_space() -> WordSpace:
    vectors = np.random.default_rng(1).standard_normal((len(WORDS), 6))
    return WordSpace.from_arrays(WORDS, vectors, name="integrations")


def cmp(epsilon: float = 2.0):
    return mechanism("cmp", space=small_space(), epsilon=epsilon)


def obfuscator(n: int = 1, **options) -> Obfuscator:
    return Obfuscator(cmp(), n=n, **options)


def collection() -> Collection:
    """Thirty documents of eight words, and five queries of three words and a secret one."""
    draw = np.random.default_rng(2)
    documents = [
        Document(f"d{number}", f"title {number}", " ".join(draw.choice(WORDS, 8)))
        for number in range(30)
    ]
    queries = {f"q{number}": f"{' '.join(draw.choice(WORDS, 3))} {SECRET}" for number in range(5)}
    judgments = {
        query: {f"d{document}": int(draw.integers(3)) for document in range(30)}
        for query in queries
    }
    return Collection("small", tuple(documents), queries, judgments)


def engine() -> BM25:
    return BM25(collection().documents)
