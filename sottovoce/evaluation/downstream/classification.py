"""Text classification: train clean or obfuscated, test clean or obfuscated."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce.errors import UsageError
from sottovoce.evaluation.downstream.data import LabelledTexts
from sottovoce.evaluation.downstream.models import Classifier, Features, Labels, Predict, majority
from sottovoce.evaluation.downstream.release import Advance, release
from sottovoce.evaluation.downstream.scores import MAJORITY, Outcome, Setting, Side, Sides
from sottovoce.mechanisms.base import Mechanism
from sottovoce.text import TextPipeline
from sottovoce.types import Float64Array, IntArray

TEST_SHARE = 0.25
SIDES: tuple[Side, Side] = ("clean", "obfuscated")


class Classification:
    """The 2 x 2 of paper 002's regimes, for several models at once.

    Without ``test`` a quarter of the data, drawn anew with each seed and alike in its labels, is
    kept for testing.
    """

    measures = ("accuracy",)

    def __init__(
        self,
        data: LabelledTexts,
        models: Sequence[Classifier],
        test: LabelledTexts | None = None,
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
        chosen = np.zeros(len(self.labels), dtype=bool)
        for label in range(int(self.labels.max()) + 1):
            rows = rng.permutation(np.flatnonzero(self.labels == label))
            chosen[rows[: max(1, round(TEST_SHARE * len(rows)))]] = True
        return np.flatnonzero(~chosen), np.flatnonzero(chosen)

    def clean(self, seed: int) -> list[Outcome]:
        """The majority line, and each model on clean data alone."""
        train, test = self.split(seed)
        sides = _sides("clean", "clean")
        most = np.full(len(test), majority(self.labels[train]))
        nothing = Setting(MAJORITY, "accuracy", None, None, sides)
        out = [Outcome(nothing, seed, test, self._right(most, test))]
        for model in self.models:
            found = self._clean_fit(model, seed)(self._clean_features(model)[test])
            setting = Setting(model.name, "accuracy", None, None, sides)
            out.append(Outcome(setting, seed, test, self._right(found, test)))
        return out

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
        out = []
        for model in self.models:
            features = {"clean": self._clean_features(model), "obfuscated": model.features(texts)}
            fitted = {
                "clean": self._clean_fit(model, seed),
                "obfuscated": model.fit(features["obfuscated"][train], self.labels[train], seed),
            }
            for learnt, asked in list(product(SIDES, SIDES))[1:]:
                found = fitted[learnt](features[asked][test])
                sides = _sides(learnt, asked)
                setting = Setting(model.name, "accuracy", mechanism.spec, epsilon, sides)
                right = self._right(found, test)
                out.append(Outcome(setting, seed, test, right, unchanged))
        return out

    def _right(self, found: Labels, test: IntArray) -> Float64Array:
        return np.equal(found, self.labels[test]).astype(np.float64)

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


def _sides(train: Side, test: Side) -> Sides:
    return (("train", train), ("test", test))
