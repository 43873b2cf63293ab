"""The two kinds of task: text classification, and ranking answers to questions without training.

Each is run on clean data, and on data that went through a mechanism.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce.encoders import Encoder, load_encoder
from sottovoce.errors import UsageError
from sottovoce.evaluation.downstream.classification import (
    REGIMES,
    SOMETHING_OBFUSCATED,
    Advance,
    Classification,
    Compare,
    release,
)
from sottovoce.evaluation.downstream.data import LabelledTexts, Questions, Task
from sottovoce.evaluation.downstream.models import encoded, load_model, need_sklearn
from sottovoce.evaluation.downstream.scores import (
    CHANCE,
    Outcome,
    Score,
    Setting,
    Sides,
    summarize,
)
from sottovoce.mechanisms.base import Mechanism
from sottovoce.spaces.space import WordSpace
from sottovoce.text import TextPipeline
from sottovoce.types import BoolArray, Float64Array, IntArray, Progress, count_up

SEEDS = (0, 1, 2)
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
    right_before = (places - 1) * (relevant - 1) / max(1, candidates - 1)
    return float(((1 + right_before) / places).mean())


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
        if not set(rankers) <= set(RANKERS):
            raise UsageError(f"answers are ranked by {' or '.join(RANKERS)}, without training")
        self.data = data
        self.questions = [candidates.question for candidates in data.asked]
        self.rankers: dict[str, Scorer] = dict(_scorer(name, encoder) for name in rankers)

    @property
    def texts(self) -> tuple[str, ...]:
        """All that is obfuscated for each mechanism and seed."""
        return (*self.questions, *self.data.answers)

    def clean(self, seed: int) -> list[Outcome]:
        """What a random order gives on average, and each ranker on clean data."""
        sides: Sides = (("answers", "clean"), ("questions", "clean"))
        chance = []
        for measure, expected in EXPECTED.items():
            values = [expected(len(right), int(right.sum())) for right in self.data.relevant]
            setting = Setting(CHANCE, measure, None, None, sides)
            chance.append(_ranking_outcome(setting, seed, values))
        return chance + self._ranked(self.questions, self.data.answers, sides, None, seed, None)

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
        sent = {"clean": self.questions, "obfuscated": asked}
        outcomes = []
        for answer, question in SOMETHING_OBFUSCATED:
            sides: Sides = (("answers", answer), ("questions", question))
            texts = sent[question], stored[answer]
            outcomes += self._ranked(*texts, sides, mechanism, seed, unchanged)
        return outcomes

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
        outcomes = []
        for name, scorer in self.rankers.items():
            rng = Generator(PCG64(seed))
            by_question = scorer(questions, answers, self.data.places)
            # Best first; ties in random order.
            orders = [
                right[np.lexsort((rng.random(len(right)), -scores))]
                for right, scores in zip(self.data.relevant, by_question, strict=True)
            ]
            for measure, quality in MEASURES.items():
                setting = Setting(name, measure, spec, epsilon, sides)
                values = [quality(order) for order in orders]
                outcomes.append(_ranking_outcome(setting, seed, values, unchanged))
        return outcomes


def _ranking_outcome(
    setting: Setting, seed: int, values: list[float], unchanged: float | None = None
) -> Outcome:
    return Outcome(setting, seed, np.arange(len(values)), np.array(values), unchanged)


def _scorer(name: str, encoder: str | Encoder) -> tuple[str, Scorer]:
    if name == "tfidf":
        need_sklearn()
        return name, _by_words
    loaded = load_encoder(encoder) if isinstance(encoder, str) else encoder

    def by_meaning(
        questions: Sequence[str], answers: Sequence[str], places: Sequence[IntArray]
    ) -> list[Float64Array]:
        asked, stored = encoded(loaded, questions), encoded(loaded, answers)
        return [
            (stored[place] @ row).astype(np.float64)
            for row, place in zip(asked, places, strict=True)
        ]

    return f"{name} ({loaded.name})", by_meaning


def _by_words(
    questions: Sequence[str], answers: Sequence[str], places: Sequence[IntArray]
) -> list[Float64Array]:
    """Cosine of TF-IDF rows; the weights come from the answers, as they are stored."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(sublinear_tf=True)
    try:
        stored = vectorizer.fit_transform(answers)
    except ValueError:  # Not a single word: all answers are alike.
        return [np.zeros(len(place)) for place in places]
    asked = vectorizer.transform(questions)
    return [
        np.asarray((stored[place] @ asked[row].T).todense()).ravel()
        for row, place in enumerate(places)
    ]


# The whole experiment: every mechanism, seed and model, and both regimes


def experiment(
    task: Task,
    models: Sequence[str] = ("tfidf",),
    *,
    test: Task | None = None,
    encoder: str | Encoder = "auto",
    space: WordSpace | None = None,
    regimes: Sequence[str] = REGIMES,
    compare: Compare | None = None,
) -> Classification | Ranking:
    """The experiment that fits the task, to be run seed by seed and mechanism by mechanism.

    ``regimes`` and ``compare`` are for classification.
    """
    names = list(dict.fromkeys(models))
    if not names:
        raise UsageError("name at least one model")
    if isinstance(task, Questions):
        if test is not None:
            raise UsageError("ranking learns nothing: leave the test file out")
        return Ranking(task, names, encoder)
    if test is not None and not isinstance(test, LabelledTexts):
        raise UsageError("the test file needs text and label, as the other one")
    classifiers = [load_model(name, encoder, space) for name in names]
    return Classification(task, classifiers, test, regimes, compare)


def evaluate(
    task: Task,
    mechanisms: Sequence[Mechanism],
    models: Sequence[str] = ("tfidf",),
    *,
    test: Task | None = None,
    seeds: Sequence[int] = SEEDS,
    encoder: str | Encoder = "auto",
    space: WordSpace | None = None,
    progress: Progress | None = None,
) -> list[Score]:
    """What each model scores with train and test (or answers and questions) clean or obfuscated.

    A seed decides the split, the training and the obfuscation, which is drawn once for each
    mechanism and seed and shared by all models and regimes. Seeds are for experiments: what is
    drawn here protects nobody.
    """
    if not seeds or len(set(seeds)) < len(seeds):
        raise UsageError("give at least one seed, each of them once")
    regimes = experiment(task, models, test=test, encoder=encoder, space=space)
    distinct = list(dict.fromkeys(mechanisms))
    count = count_up(progress, len(seeds) * len(distinct) * len(regimes.texts))
    outcomes: list[Outcome] = []
    for seed in seeds:
        outcomes += regimes.clean(seed)
        for mechanism in distinct:
            outcomes += regimes.obfuscated(mechanism, seed, count)
    return summarize(outcomes)
