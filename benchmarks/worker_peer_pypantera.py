"""Takes turns with pyPANTERA, in an environment that has it; runs it as it was published.

Its one entry point is a data frame of texts. It goes through them one after the other, n times,
so its speed does not depend on how many there are and a turn need not hold 1,000 words.
"""

from __future__ import annotations

import importlib
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

NOISE_MODULE, SAMPLING_MODULE = "EmbeddingPerturbationMechanism", "SamplingPerturbationMechanism"
LINE = 10
"""Words in a text: for 1,000 at once it would ask for 40 GB (words x vocabulary x dimension)."""
CLASSES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "cmp": (f"{NOISE_MODULE}.cmp", "CMP", {}),
    "mahalanobis": (f"{NOISE_MODULE}.mahalanobis", "Mahalanobis", {"lam": 1}),
    "vickrey-cmp": (f"{NOISE_MODULE}.vickrey", "VickreyCMP", {"t": 0.75}),
    "vickrey-mahalanobis": (f"{NOISE_MODULE}.vickrey", "VickreyMhl", {"t": 0.75, "lam": 1}),
    "santext": (f"{SAMPLING_MODULE}.santext", "SanText", {}),
    "custext": (f"{SAMPLING_MODULE}.custext", "CusText", {"k": 10, "distance": "euclidean"}),
    "tem": (f"{SAMPLING_MODULE}.tem", "TEM", {"beta": 0.001}),
}
"""Where each mechanism is, and the parameters that its constructor wants in its dict."""


def bring_in(task: Task) -> Any:
    """The mechanism's class; the package installs itself under the name ``src``."""
    if task.mechanism not in CLASSES:
        raise NotOfferedError
    module, name, _ = CLASSES[task.mechanism]
    return getattr(importlib.import_module(f"src.{module}"), name)


def load(task: Task, mechanism_class: Any) -> Loaded:
    """Read the text file (with as many processes as there are cores, whatever we ask)."""
    pandas = importlib.import_module("pandas")
    parameters = CLASSES[task.mechanism][2]
    path = str(Path(task.folder) / "glove.txt")
    epsilon: Any = task.epsilon
    if task.mechanism == "custext":
        # From a plain float numpy 2 makes float32 probabilities, whose sum it then refuses.
        epsilon = importlib.import_module("numpy").float64(epsilon)
    mechanism = mechanism_class({"embPath": path, "epsilon": epsilon, **parameters})
    supply = Supply(task.facts()["words"])

    def obfuscate(n: int) -> Piece:
        return text(supply.take(QUERY_WORDS), n)

    def text(words: list[str], n: int) -> Piece:
        lines = [" ".join(words[i : i + LINE]) for i in range(0, len(words), LINE)]
        texts = pandas.DataFrame({"id": [str(i) for i in range(len(lines))], "text": lines})
        mechanism.obfuscateText(texts, n)
        return Piece(len(words) * n)

    calls = {"interactive": lambda: obfuscate(VARIANTS)}
    if task.mechanism not in SAMPLING:
        calls["batch"] = lambda: obfuscate(1)
    elif task.mechanism == "tem":  # It keeps nothing, so part of a text shows its speed.
        calls["text"] = calls["again"] = lambda: text(supply.text(50), 1)
    else:
        same_words = supply.text()
        calls["text"] = lambda: text(supply.text(), VARIANTS)
        calls["again"] = lambda: text(same_words, VARIANTS)
    return Loaded(calls)


if __name__ == "__main__":
    serve(bring_in, load, "pypantera")
