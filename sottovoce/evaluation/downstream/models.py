"""Classifiers: linear models on TF-IDF and on sentence vectors, and the BiLSTM of paper 002."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from sottovoce.encoders import Encoder, load_encoder
from sottovoce.errors import UsageError, did_you_mean, need
from sottovoce.text import TextPipeline
from sottovoce.threads import single_threaded_blas
from sottovoce.types import UNKNOWN, Float32Array, IntArray

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

WORDS = 200
"""Words of a text that the BiLSTM reads; the rest is left out."""
HIDDEN = 64
"""Its units in each direction; the paper does not say how many it has."""
EPOCHS = 8
BATCH = 32
RATE = 2e-3
NO_WORD = -1


class Classifier(Protocol):
    """Reads texts once, learns from some rows, and labels others."""

    name: str

    def features(self, texts: Sequence[str]) -> Features:
        """What it needs to know of each text; nothing learnt from the others."""

    def fit(self, features: Features, labels: Labels, seed: int) -> Predict:
        """Learn; the answer labels rows of features."""


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
        from sottovoce.resources import load_space

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
        return np.array(texts, dtype=object)

    def fit(self, features: Features, labels: Labels, seed: int) -> Predict:
        """Learn vocabulary and weights from these texts alone."""
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.svm import LinearSVC

        vectorizer = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
        try:
            rows = vectorizer.fit_transform(features)
        except ValueError:  # No word occurs twice: nothing can be learnt from words.
            most = majority(labels)
            return lambda others: np.full(len(others), most)
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


def majority(labels: Labels) -> int:
    """The most frequent label."""
    return int(np.bincount(labels).argmax())


def _logistic(seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=STRENGTH, max_iter=PATIENCE, random_state=seed)


def need_sklearn() -> None:
    """Say what to install where it is missing."""
    need("sklearn", "lab", "downstream tasks need scikit-learn")


class BiLSTM:
    """Reads word vectors both ways; the largest value of each unit over the words decides.

    Words that the space lacks are left out.
    """

    name = "bilstm"

    def __init__(self, space: WordSpace) -> None:
        enough = " (a build for the processor alone is enough)"
        self._torch = need("torch", "gpu", "the model bilstm needs torch", enough)
        self.space = space
        self._pipeline = TextPipeline()

    def features(self, texts: Sequence[str]) -> Features:
        """The ids of the first words of each text, (texts, WORDS), then ``NO_WORD``."""
        out = np.full((len(texts), WORDS), NO_WORD, dtype=np.int64)
        for row, text in zip(out, texts, strict=True):
            slots = self._pipeline.prepare(text, self.space).slots
            ids = slots[slots != UNKNOWN][:WORDS]
            row[: len(ids)] = ids
        return out

    def fit(self, features: Features, labels: Labels, seed: int) -> Predict:
        """Train with Adam on batches of texts of like length."""
        torch = self._torch
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            lstm = torch.nn.LSTM(self.space.dimension, HIDDEN, batch_first=True, bidirectional=True)
            head = torch.nn.Linear(2 * HIDDEN, int(labels.max()) + 1)
            optimizer = torch.optim.Adam([*lstm.parameters(), *head.parameters()], lr=RATE)
            rng = Generator(PCG64(seed))
            for _ in range(EPOCHS):
                for rows in _batches(features, rng):
                    logits = self._logits(lstm, head, features[rows])
                    loss = torch.nn.functional.cross_entropy(logits, torch.tensor(labels[rows]))
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()

        def predict(others: Features) -> Labels:
            predicted = np.empty(len(others), dtype=np.int64)
            with torch.no_grad():
                for rows in _batches(others, None):
                    logits = self._logits(lstm, head, others[rows])
                    predicted[rows] = logits.argmax(dim=1).numpy()
            return predicted

        return predict

    def _logits(self, lstm: Any, head: Any, ids: IntArray) -> Any:
        torch = self._torch
        is_word = ids != NO_WORD
        longest = max(1, int(is_word.sum(axis=1).max()))
        ids, is_word = ids[:, :longest], is_word[:, :longest]
        lengths = np.maximum(1, is_word.sum(axis=1))
        vectors = np.where(is_word[..., None], self.space.vectors[np.where(is_word, ids, 0)], 0.0)
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            torch.tensor(vectors.astype(np.float32)),
            torch.tensor(lengths),
            batch_first=True,
            enforce_sorted=False,
        )
        states, _ = torch.nn.utils.rnn.pad_packed_sequence(
            lstm(packed)[0], batch_first=True, padding_value=-torch.inf
        )
        return head(states.max(dim=1).values)


def _batches(features: Features, rng: Generator | None) -> Iterator[IntArray]:
    """Rows of like length together, which saves padding; in random order with a ``rng``."""
    lengths = (features != NO_WORD).sum(axis=1)
    mixed = np.zeros(len(lengths)) if rng is None else rng.random(len(lengths))
    order = np.lexsort((mixed, lengths))
    batches = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
    numbers = np.arange(len(batches)) if rng is None else rng.permutation(len(batches))
    return (batches[number] for number in numbers)
