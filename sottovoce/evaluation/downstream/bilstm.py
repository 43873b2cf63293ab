"""The classifier of paper 002: a bidirectional LSTM on word vectors that stay as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce.errors import need
from sottovoce.evaluation.downstream.models import Features, Labels, Predict
from sottovoce.text import TextPipeline
from sottovoce.types import UNKNOWN, IntArray

if TYPE_CHECKING:
    from sottovoce.spaces.space import WordSpace

WORDS = 200
"""Words of a text that are read; the rest is left out."""
HIDDEN = 64
"""Units in each direction; the paper does not say how many it has."""
EPOCHS = 8
BATCH = 32
RATE = 2e-3
NO_WORD = -1


class BiLSTM:
    """Reads word vectors both ways; the largest value of each unit over the words decides.

    Words that the space lacks are left out.
    """

    name = "bilstm"

    def __init__(self, space: WordSpace) -> None:
        self._torch = _torch()
        self.space = space
        self._pipeline = TextPipeline()

    def features(self, texts: Sequence[str]) -> Features:
        """The ids of the first words of each text, (texts, WORDS), then ``NO_WORD``."""
        out = np.full((len(texts), WORDS), NO_WORD, dtype=np.int64)
        for row, text in zip(out, texts, strict=True):
            slots = self._pipeline.prepare(text, self.space).slots
            known = slots[slots != UNKNOWN][:WORDS]
            row[: len(known)] = known
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
            out = np.empty(len(others), dtype=np.int64)
            with torch.no_grad():
                for rows in _batches(others, None):
                    found = self._logits(lstm, head, others[rows]).argmax(dim=1)
                    out[rows] = found.numpy()
            return out

        return predict

    def _logits(self, lstm: Any, head: Any, ids: IntArray) -> Any:
        torch = self._torch
        there = ids != NO_WORD
        longest = max(1, int(there.sum(axis=1).max()))
        ids, there = ids[:, :longest], there[:, :longest]
        lengths = np.maximum(1, there.sum(axis=1))
        vectors = np.where(there[..., None], self.space.vectors[np.where(there, ids, 0)], 0.0)
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
    """Rows of like length together, which saves padding; in random order if there is a ``rng``."""
    lengths = (features != NO_WORD).sum(axis=1)
    mixed = np.zeros(len(lengths)) if rng is None else rng.random(len(lengths))
    order = np.lexsort((mixed, lengths))
    batches = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
    numbers = np.arange(len(batches)) if rng is None else rng.permutation(len(batches))
    return (batches[number] for number in numbers)


def _torch() -> Any:
    enough = " (a build for the processor alone is enough)"
    return need("torch", "gpu", "the model bilstm needs torch", enough)
