"""Takes turns with a mechanism of sottovoce: words in, words out.

With the variable ``WITHOUT_FAST`` it is the base install: as if numba were not there.
"""

from __future__ import annotations

import importlib
import os
import sys
from time import perf_counter
from typing import Any

from turns import (
    BATCH,
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


def bring_in(task: Task) -> Any:
    """Import the package and, because it is lazy, the parts that will be used."""
    if os.environ.get("WITHOUT_FAST"):
        sys.modules["numba"] = None  # type: ignore[assignment]
    for part in ("mechanisms", "randomness", "resources", "threads"):
        importlib.import_module(f"sottovoce.{part}")
    sottovoce: Any = sys.modules["sottovoce"]
    if task.mechanism not in sottovoce.mechanisms.names():
        raise NotOfferedError
    sottovoce.threads.set_threads(task.threads)
    return sottovoce


def load(task: Task, sottovoce: Any) -> Loaded:
    """Map the space and build the mechanism; what it keeps for a space is made now."""
    rng = sottovoce.randomness.secure_generator()
    space = sottovoce.load_space(task.space)
    mechanism = sottovoce.mechanism(task.mechanism, space=space, epsilon=task.epsilon)
    supply = Supply(task.facts()["words"])

    def obfuscate(words: list[str], n: int) -> Piece:
        ids = space.ids(words)
        begin = perf_counter()
        drawn = mechanism.sample(ids, n, rng)
        core = perf_counter() - begin
        space.words(drawn)
        return Piece(len(words) * n, core)

    def off_one_point(words: list[str]) -> Piece:
        """Counted are the words obfuscated: each costs one search, however many come out."""
        ids = space.ids(words)
        begin = perf_counter()
        drawn = mechanism.draw_once(ids, VARIANTS, sottovoce.randomness.Draws([(rng, len(ids))]))
        core = perf_counter() - begin
        space.words(drawn.reshape(-1))
        return Piece(len(words), core)

    def new_text() -> Piece:
        sottovoce.mechanisms.sampling.forget(space)
        return obfuscate(supply.text(), VARIANTS)

    same_words = supply.text()
    mechanism.sample(space.ids(same_words), 1, rng)
    calls = {"interactive": lambda: obfuscate(supply.take(QUERY_WORDS), VARIANTS)}
    if task.mechanism in SAMPLING:
        calls |= {"text": new_text, "again": lambda: obfuscate(same_words[::-1], VARIANTS)}
    else:
        calls["batch"] = lambda: obfuscate(supply.take(BATCH), 1)
        calls["once"] = lambda: off_one_point(supply.take(BATCH))
    return Loaded(calls, warm_up=lambda: space.nearest_output.warm_up())


if __name__ == "__main__":
    serve(bring_in, load, "sottovoce")
