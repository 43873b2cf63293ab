"""Classifiers: linear models on TF-IDF and on sentence vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sottovoce.encoders import load_encoder
from sottovoce.encoders.base import Encoder
from sottovoce.errors import UsageError, did_you_mean, need
from sottovoce.threads import single_threaded_blas
from sottovoce.types import Float32Array

if TYPE_CHECKING:
    from sottovoce.spaces.space import WordSpace

MODELS = ("tfidf", "svm", "embeddings", "bilstm")

Features = NDArray[Any]
"""A row for each text: whatever the classifier reads."""
Labels = NDArray[np.int64]
Predict = Callable[[Features], Labels]

TEXTS_AT_A_TIME = 256
STRENGTH = 3.0
"""C of scikit-learn: how little the weights are held back. Rows have length 1 everywhere here."""
PATIENCE = 2000


class Classifier(Protocol):
    """Reads texts once, learns from some rows, and labels others."""

    name: str

    def features(self, texts: Sequence[str]) -> Features:
        """What it needs to know of each text; nothing learnt from the others."""
        ...

    def fit(self, features: Features, labels: Labels, seed: int) -> Predict:
        """Learn; the answer labels rows of features."""
        ...


def load_model(
    name: str, encoder: str | Encoder = "auto", space: WordSpace | None = None
) -> Classifier:
    """A classifier by name: ``tfidf``, ``svm``, ``embeddings`` or ``bilstm``.

    ``encoder`` is for ``embeddings``, ``space`` for ``bilstm`` (default: the default one).
    """
    if name in ("tfidf", "svm"):
        return TfIdf(name)
    if name == "embeddings":
        return Embeddings(load_encoder(encoder) if isinstance(encoder, str) else encoder)
    if name == "bilstm":
        from sottovoce.evaluation.downstream.bilstm import BiLSTM
        from sottovoce.resources.local import load_space

        return BiLSTM(load_space(None) if space is None else space)
    hint = did_you_mean(name, MODELS, f"there are {', '.join(MODELS)}")
    raise UsageError(f"no such model: {hint}")


class TfIdf:
    """Words and pairs of words, weighted; logistic regression (``tfidf``) or linear SVM (``svm``).

    Words that only one training text has are left out.
    """

    def __init__(self, name: str) -> None:
        need_sklearn()
        self.name = name

    def features(self, texts: Sequence[str]) -> Features:
        """The texts themselves."""
        return np.array(texts, dtype=object)

    def fit(self, features: Features, labels: Labels, seed: int) -> Predict:
        """Learn vocabulary and weights from these texts alone."""
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.svm import LinearSVC

        vectorizer = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
        try:
            rows = vectorizer.fit_transform(features)
        except ValueError:  # No word occurs twice: nothing can be learnt from words.
            return _constant(labels)
        model = LinearSVC(random_state=seed) if self.name == "svm" else _logistic(seed)
        with single_threaded_blas():  # The products are small: threads would only wait.
            model.fit(rows, labels)
        return lambda others: np.asarray(model.predict(vectorizer.transform(others)))


class Embeddings:
    """Logistic regression on sentence vectors."""

    def __init__(self, encoder: Encoder) -> None:
        need_sklearn()
        self.encoder = encoder
        self.name = f"embeddings ({encoder.name})"

    def features(self, texts: Sequence[str]) -> Float32Array:
        """The vector of each text, in memory only: texts are private, and kept nowhere."""
        return encoded(self.encoder, texts)

    def fit(self, features: Features, labels: Labels, seed: int) -> Predict:
        """Learn weights."""
        model = _logistic(seed)
        with single_threaded_blas():
            model.fit(features, labels)
        return lambda others: np.asarray(model.predict(others))


def encoded(encoder: Encoder, texts: Sequence[str]) -> Float32Array:
    """The vectors of texts, a block at a time."""
    out = np.empty((len(texts), encoder.dimension), dtype=np.float32)
    for start in range(0, len(texts), TEXTS_AT_A_TIME):
        block = texts[start : start + TEXTS_AT_A_TIME]
        out[start : start + len(block)] = encoder.encode(block)
    return out


def _constant(labels: Labels) -> Predict:
    """Always the most frequent label."""
    most = majority(labels)
    return lambda others: np.full(len(others), most)


def majority(labels: Labels) -> int:
    """The most frequent label."""
    return int(np.bincount(labels).argmax())


def _logistic(seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=STRENGTH, max_iter=PATIENCE, random_state=seed)


def need_sklearn() -> None:
    """Say what to install where it is missing."""
    need("sklearn", "lab", "downstream tasks need scikit-learn")
