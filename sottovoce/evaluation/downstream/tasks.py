"""The two kinds of task: text classification, and ranking answers to questions without training.

Each is run on clean data, and on data that went through a mechanism. A data set is obfuscated once
for each mechanism and seed: all models and regimes read the same release.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce.encoders import Encoder, load_encoder
from sottovoce.errors import UsageError
from sottovoce.evaluation.downstream.data import LabelledTexts, Questions, Task
from sottovoce.evaluation.downstream.models import (
    Classifier,
    Features,
    Labels,
    Predict,
    encoded,
    load_model,
    majority,
    need_sklearn,
)
from sottovoce.evaluation.downstream.scores import (
    CHANCE,
    MAJORITY,
    Outcome,
    Score,
    Setting,
    Side,
    Sides,
    summarize,
)
from sottovoce.mechanisms.base import Mechanism, require
from sottovoce.obfuscation import Obfuscator
from sottovoce.spaces.space import WordSpace
from sottovoce.text import TextPipeline
from sottovoce.types import BoolArray, Float64Array, IntArray, Progress, count_up

SEEDS = (0, 1, 2)
TEST_SHARE = 0.25
SIDES: tuple[Side, Side] = ("clean", "obfuscated")
SOMETHING_OBFUSCATED = list(product(SIDES, SIDES))[1:]
"""The cells of the 2 x 2 of clean and obfuscated data, but for all clean."""
RANKERS = ("tfidf", "embeddings")

Advance = Callable[[int], None]
"""Called with the number of texts that were obfuscated since the last call."""
Scorer = Callable[[Sequence[str], Sequence[str], Sequence[IntArray]], list[Float64Array]]
"""Questions, answers, and which answers are candidates of each: the scores of the candidates."""


def release(
    texts: Sequence[str],
    mechanism: Mechanism,
    seed: int,
    advance: Advance | None = None,
    *,
    first: int = 0,
    pipeline: TextPipeline | None = None,
) -> tuple[list[str], float | None]:
    """One variant of each text, and the mean share of what came back unchanged.

    A text for which the mechanism finds nothing comes out empty.
    """
    variants: list[str] = []
    shares: list[float] = []
    pipeline = pipeline or TextPipeline(protect=mechanism.protects)
    obfuscator = Obfuscator(mechanism, rng=seed, pipeline=pipeline)
    require(obfuscator.n == 1, f"{mechanism.name} releases sets, and a task needs one variant")
    for result in obfuscator.obfuscate(texts, first=first):
        variants.append(result.variants[0] if result.variants else "")
        if result.unchanged is not None:
            shares.append(result.unchanged)
        if advance is not None:
            advance(1)
    return variants, float(np.mean(shares)) if shares else None


class Classification:
    """The 2 x 2 of paper 002's regimes, for several models at once.

    Without ``test`` a quarter of the data, drawn anew with each seed and alike in its labels, is
    kept for testing.
    """

    measures = ("accuracy",)

    def __init__(
        self, data: LabelledTexts, models: Sequence[Classifier], test: LabelledTexts | None = None
    ) -> None:
        self.models = tuple(models)
        self.texts = data.texts if test is None else (*data.texts, *test.texts)
        labels = data.labels if test is None else (*data.labels, *test.labels)
        self.trained = len(data)
        self.separate = test is not None
        names, codes = np.unique(np.array(labels, dtype=object), return_inverse=True)
        self.labels: Labels = codes.astype(np.int64)
        if len(names) < 2:
            raise UsageError("all texts have the same label: there is nothing to learn")
        if self.separate and not len(np.setdiff1d(self.labels[: self.trained], self.labels[:1])):
            raise UsageError("all training texts have the same label: there is nothing to learn")
        if not self.separate and np.bincount(self.labels).min() < 2:
            raise UsageError(
                "a label occurs only once, and is needed for training and for testing: leave such "
                "rows out, or give the test texts in a file of their own (--test)"
            )
        self._clean: dict[str, Features] = {}
        self._fitted: dict[tuple[str, int], Predict] = {}

    def split(self, seed: int) -> tuple[IntArray, IntArray]:
        """Rows to train on, rows to test on."""
        if self.separate:
            return np.arange(self.trained), np.arange(self.trained, len(self.texts))
        rng = Generator(PCG64(seed))
        tested = np.zeros(len(self.labels), dtype=bool)
        for label in range(int(self.labels.max()) + 1):
            rows = rng.permutation(np.flatnonzero(self.labels == label))
            tested[rows[: max(1, round(TEST_SHARE * len(rows)))]] = True
        return np.flatnonzero(~tested), np.flatnonzero(tested)

    def clean(self, seed: int) -> list[Outcome]:
        """The majority line, and each model on clean data alone."""
        train, test = self.split(seed)
        predicted = {MAJORITY: np.full(len(test), majority(self.labels[train]))}
        for model in self.models:
            predicted[model.name] = self._clean_fit(model, seed)(self._clean_features(model)[test])
        sides: Sides = (("train", "clean"), ("test", "clean"))
        return [
            self._outcome(Setting(name, "accuracy", None, None, sides), seed, test, labels, None)
            for name, labels in predicted.items()
        ]

    def obfuscated(
        self,
        mechanism: Mechanism,
        seed: int,
        progress: Advance | None = None,
        pipeline: TextPipeline | None = None,
    ) -> list[Outcome]:
        """The three cells of the 2 x 2 that one release of the data set gives, for each model."""
        texts, unchanged = release(self.texts, mechanism, seed, progress, pipeline=pipeline)
        train, test = self.split(seed)
        epsilon = getattr(mechanism, "epsilon", None)
        outcomes = []
        for model in self.models:
            features = {"clean": self._clean_features(model), "obfuscated": model.features(texts)}
            fitted = {
                "clean": self._clean_fit(model, seed),
                "obfuscated": model.fit(features["obfuscated"][train], self.labels[train], seed),
            }
            for learnt, asked in SOMETHING_OBFUSCATED:
                labels = fitted[learnt](features[asked][test])
                sides: Sides = (("train", learnt), ("test", asked))
                setting = Setting(model.name, "accuracy", mechanism.spec, epsilon, sides)
                outcomes.append(self._outcome(setting, seed, test, labels, unchanged))
        return outcomes

    def _outcome(
        self, setting: Setting, seed: int, test: IntArray, labels: Labels, unchanged: float | None
    ) -> Outcome:
        right = np.equal(labels, self.labels[test]).astype(np.float64)
        return Outcome(setting, seed, test, right, unchanged)

    def _clean_features(self, model: Classifier) -> Features:
        if model.name not in self._clean:
            self._clean[model.name] = model.features(self.texts)
        return self._clean[model.name]

    def _clean_fit(self, model: Classifier, seed: int) -> Predict:
        """Learnt once a seed, for all mechanisms."""
        key = (model.name, seed)
        if key not in self._fitted:
            train, _ = self.split(seed)
            features = self._clean_features(model)[train]
            self._fitted[key] = model.fit(features, self.labels[train], seed)
        return self._fitted[key]


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
) -> Classification | Ranking:
    """The experiment that fits the task, to be run seed by seed and mechanism by mechanism."""
    names = list(dict.fromkeys(models))
    if not names:
        raise UsageError("name at least one model")
    if isinstance(task, Questions):
        if test is not None:
            raise UsageError("ranking learns nothing: leave the test file out")
        return Ranking(task, names, encoder)
    if test is not None and not isinstance(test, LabelledTexts):
        raise UsageError("the test file needs text and label, as the other one")
    return Classification(task, [load_model(name, encoder, space) for name in names], test)


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
