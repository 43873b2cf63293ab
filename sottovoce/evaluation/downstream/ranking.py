"""Question-answer ranking without training: MAP and MRR, questions or answers obfuscated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce.encoders import load_encoder
from sottovoce.encoders.base import Encoder
from sottovoce.errors import UsageError
from sottovoce.evaluation.downstream.classification import SIDES
from sottovoce.evaluation.downstream.data import Questions
from sottovoce.evaluation.downstream.models import encoded, need_sklearn
from sottovoce.evaluation.downstream.release import Advance, release
from sottovoce.evaluation.downstream.scores import CHANCE, Outcome, Setting, Side, Sides
from sottovoce.mechanisms.base import Mechanism
from sottovoce.text import TextPipeline
from sottovoce.types import BoolArray, Float64Array, IntArray

RANKERS = ("tfidf", "embeddings")

Scorer = Callable[[Sequence[str], Sequence[str], Sequence[IntArray]], list[Float64Array]]
"""Questions, answers, and which answers are candidates of each: the scores of the candidates."""


def average_precision(relevant: BoolArray) -> float:
    """The mean, over the right answers, of the precision down to each; best answer first."""
    places = np.flatnonzero(relevant) + 1
    return float((np.arange(1, len(places) + 1) / places).mean()) if len(places) else 0.0


def reciprocal_rank(relevant: BoolArray) -> float:
    """1 over the place of the first right answer; best answer first."""
    return 1.0 / (int(np.argmax(relevant)) + 1) if relevant.any() else 0.0


MEASURES: dict[str, Callable[[BoolArray], float]] = {
    "MAP": average_precision,
    "MRR": reciprocal_rank,
}


def expected_average_precision(candidates: int, relevant: int) -> float:
    """The average precision that a random order has on average."""
    places = np.arange(1, candidates + 1)
    others = (places - 1) * (relevant - 1) / max(1, candidates - 1)
    return float(((1 + others) / places).mean())


def expected_reciprocal_rank(candidates: int, relevant: int) -> float:
    """The reciprocal rank that a random order has on average."""
    total, none_before = 0.0, 1.0
    for place in range(1, candidates - relevant + 2):
        left = candidates - place + 1
        total += none_before * relevant / left / place
        none_before *= 1 - relevant / left
    return total


EXPECTED: dict[str, Callable[[int, int], float]] = {
    "MAP": expected_average_precision,
    "MRR": expected_reciprocal_rank,
}


class Ranking:
    """Clean or obfuscated questions, asked of clean or obfuscated answers."""

    measures = tuple(MEASURES)

    def __init__(self, data: Questions, rankers: Sequence[str], encoder: str | Encoder) -> None:
        wrong = [name for name in rankers if name not in RANKERS]
        if wrong:
            raise UsageError(f"answers are ranked by {' or '.join(RANKERS)}, without training")
        self.data = data
        self.questions = [each.question for each in data.asked]
        self.rankers: dict[str, Scorer] = dict(_scorer(name, encoder) for name in rankers)

    @property
    def texts(self) -> tuple[str, ...]:
        """All that is obfuscated for each mechanism and seed."""
        return (*self.questions, *self.data.answers)

    def clean(self, seed: int) -> list[Outcome]:
        """What a random order gives on average, and each ranker on clean data."""
        sides = _sides("clean", "clean")
        out = [
            self._outcome(
                Setting(CHANCE, measure, None, None, sides),
                seed,
                [expected(len(each), int(each.sum())) for each in self.data.relevant],
            )
            for measure, expected in EXPECTED.items()
        ]
        return out + self._ranked(self.questions, self.data.answers, sides, None, seed, None)

    def obfuscated(
        self,
        mechanism: Mechanism,
        seed: int,
        progress: Advance | None = None,
        pipeline: TextPipeline | None = None,
    ) -> list[Outcome]:
        """The other three cells; questions and answers are obfuscated once each."""
        asked, _ = release(self.questions, mechanism, seed, progress, pipeline=pipeline)
        answers, unchanged = release(
            self.data.answers, mechanism, seed, progress, first=len(asked), pipeline=pipeline
        )
        stored = {"clean": self.data.answers, "obfuscated": answers}
        said = {"clean": self.questions, "obfuscated": asked}
        out = []
        for answer, question in list(product(SIDES, SIDES))[1:]:
            sides = _sides(answer, question)
            out += self._ranked(said[question], stored[answer], sides, mechanism, seed, unchanged)
        return out

    def _ranked(
        self,
        questions: Sequence[str],
        answers: Sequence[str],
        sides: Sides,
        mechanism: Mechanism | None,
        seed: int,
        unchanged: float | None,
    ) -> list[Outcome]:
        spec = None if mechanism is None else mechanism.spec
        epsilon = getattr(mechanism, "epsilon", None)
        out = []
        for name, scorer in self.rankers.items():
            rng = Generator(PCG64(seed))
            orders = [
                each[np.lexsort((rng.random(len(each)), -scores))]
                for each, scores in zip(
                    self.data.relevant, scorer(questions, answers, self.data.places), strict=True
                )
            ]
            for measure, of in MEASURES.items():
                setting = Setting(name, measure, spec, epsilon, sides)
                out.append(self._outcome(setting, seed, [*map(of, orders)], unchanged))
        return out

    def _outcome(
        self, setting: Setting, seed: int, values: list[float], unchanged: float | None = None
    ) -> Outcome:
        return Outcome(setting, seed, np.arange(len(values)), np.array(values), unchanged)


def _scorer(name: str, encoder: str | Encoder) -> tuple[str, Scorer]:
    if name == "tfidf":
        need_sklearn()
        return name, _by_words
    chosen = load_encoder(encoder) if isinstance(encoder, str) else encoder

    def by_meaning(
        questions: Sequence[str], answers: Sequence[str], places: Sequence[IntArray]
    ) -> list[Float64Array]:
        asked, known = encoded(chosen, questions), encoded(chosen, answers)
        return [
            (known[place] @ row).astype(np.float64)
            for row, place in zip(asked, places, strict=True)
        ]

    return f"{name} ({chosen.name})", by_meaning


def _by_words(
    questions: Sequence[str], answers: Sequence[str], places: Sequence[IntArray]
) -> list[Float64Array]:
    """Cosine of TF-IDF rows; the weights come from the answers, as they are stored."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(sublinear_tf=True)
    try:
        known = vectorizer.fit_transform(answers)
    except ValueError:  # Not a single word: all answers are alike.
        return [np.zeros(len(place)) for place in places]
    asked = vectorizer.transform(questions)
    return [
        np.asarray((known[place] @ asked[row].T).todense()).ravel()
        for row, place in enumerate(places)
    ]


def _sides(answers: Side, questions: Side) -> Sides:
    return (("answers", answers), ("questions", questions))
