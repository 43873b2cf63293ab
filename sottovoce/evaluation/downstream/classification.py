"""Text classification on clean and on obfuscated data.

A data set is obfuscated once for each mechanism and seed: all models and regimes read the same
release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce.errors import UsageError
from sottovoce.evaluation.downstream.data import LabelledTexts
from sottovoce.evaluation.downstream.models import Classifier, Features, Labels, Predict, majority
from sottovoce.evaluation.downstream.scores import MAJORITY, Outcome, Setting, Side, Sides
from sottovoce.mechanisms.base import Mechanism, require
from sottovoce.obfuscation import Obfuscator
from sottovoce.text import TextPipeline
from sottovoce.types import Float64Array, IntArray

TEST_SHARE = 0.25
SIDES: tuple[Side, Side] = ("clean", "obfuscated")
SOMETHING_OBFUSCATED = list(product(SIDES, SIDES))[1:]
"""The cells of the 2 x 2 of clean and obfuscated data, but for all clean."""
REGIMES = ("only test", "only train", "both")
"""Their names."""
SIMILARITY = "similarity"
"""What stands in a model's place where texts and their releases are compared."""

Advance = Callable[[int], None]
"""Called with the number of texts that were obfuscated since the last call."""
Compare = Callable[[Sequence[str], Sequence[str]], Mapping[str, Float64Array]]
"""Texts and what was released for them: by measure, a value for each text."""


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
    kept for testing. ``regimes`` are the cells to be measured. Where texts to train on have a file
    of their own and stay clean in all of them, only the others are obfuscated. ``compare`` measures
    how much all texts that are obfuscated resemble their releases.
    """

    measures = ("accuracy",)

    def __init__(
        self,
        data: LabelledTexts,
        models: Sequence[Classifier],
        test: LabelledTexts | None = None,
        regimes: Sequence[str] = REGIMES,
        compare: Compare | None = None,
    ) -> None:
        self.models, self.regimes, self.compare = tuple(models), tuple(regimes), compare
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
        """The cells of the 2 x 2 that one release of the data set gives, for each model."""
        first = self.trained if self.separate and self.regimes == REGIMES[:1] else 0
        texts, unchanged = release(
            self.texts[first:], mechanism, seed, progress, first=first, pipeline=pipeline
        )
        train, test = self.split(seed)
        epsilon = getattr(mechanism, "epsilon", None)
        outcomes = []
        if self.compare is not None:
            side: Side = "clean" if first else "obfuscated"
            sides: Sides = (("train", side), ("test", "obfuscated"))
            for measure, values in self.compare(self.texts[first:], texts).items():
                setting = Setting(SIMILARITY, measure, mechanism.spec, epsilon, sides)
                rows = np.arange(first, len(self.texts))
                outcomes.append(Outcome(setting, seed, rows, values, unchanged))
        for model in self.models:
            released = model.features(texts)
            asked_of = {
                "clean": self._clean_features(model)[test],
                "obfuscated": released[test - first],
            }
            fitted = {"clean": self._clean_fit(model, seed)}
            if self.regimes != REGIMES[:1]:
                fitted["obfuscated"] = model.fit(released[train], self.labels[train], seed)
            for learnt, asked in SOMETHING_OBFUSCATED:
                sides = (("train", learnt), ("test", asked))
                setting = Setting(model.name, "accuracy", mechanism.spec, epsilon, sides)
                if setting.hidden in self.regimes:
                    labels = fitted[learnt](asked_of[asked])
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
