"""Takes turns with a mechanism of sottovoce: words in, words out."""

from __future__ import annotations

import importlib
import sys
from time import perf_counter
from typing import Any

from turns import BATCH, QUERY_WORDS, VARIANTS, Loaded, NotOfferedError, Piece, Supply, Task, serve


def bring_in(task: Task) -> Any:
    """Import the package and, because it is lazy, the parts that will be used."""
    for part in ("mechanisms", "randomness", "spaces.sources", "threads"):
        importlib.import_module(f"sottovoce.{part}")
    sottovoce: Any = sys.modules["sottovoce"]
    if task.mechanism not in sottovoce.mechanisms.names():
        raise NotOfferedError
    sottovoce.threads.set_threads(task.threads)
    return sottovoce


def load(task: Task, sottovoce: Any) -> Loaded:
    """Map the space and build the mechanism."""
    rng = sottovoce.randomness.secure_generator()
    space = sottovoce.load_space(task.space)
    mechanism = sottovoce.mechanism(task.mechanism, space=space, epsilon=task.epsilon)
    supply = Supply(task.facts()["words"])

    def obfuscate(count: int, n: int) -> Piece:
        words = supply.take(count)
        ids = space.ids(words)
        begin = perf_counter()
        drawn = mechanism.sample(ids, n, rng)
        core = perf_counter() - begin
        space.words(drawn)
        return Piece(count * n, core)

    return Loaded(
        {
            "interactive": lambda: obfuscate(QUERY_WORDS, VARIANTS),
            "batch": lambda: obfuscate(BATCH, 1),
        }
    )


if __name__ == "__main__":
    serve(bring_in, load, "sottovoce")
