"""How well the places of unknown words can be told from those of known ones, by two simple signs.

    python benchmarks/unknown_words.py

400 words of the demo log against 400 that the default space lacks, cmp, ``once``, 20 variants. The
figure is the chance that a known and an unknown place are told apart rightly (AUC): .5 is guessing.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

import numpy as np
from scipy.stats import mannwhitneyu

from sottovoce import Obfuscator, TextPipeline, WordSpace, load_space, mechanism
from sottovoce.types import Float64Array

PLACES, VARIANTS = 400, 20
EPSILONS = (5.0, 10.0, 15.0)


def signs(space: WordSpace, shown: Sequence[str]) -> tuple[float, float]:
    """How far apart the words shown at a place lie, and how rare they are on average."""
    ids = space.ids(list(shown))
    vectors = space.vectors[ids].astype(np.float64)
    spread = np.linalg.norm(vectors - vectors.mean(axis=0), axis=1).mean()
    return float(spread), float(np.log1p(ids).mean())


def told_apart(one: Float64Array, other: Float64Array) -> float:
    """The AUC of a sign, whichever way it points."""
    area = float(mannwhitneyu(one, other).statistic / (len(one) * len(other)))
    return max(area, 1 - area)


def main() -> None:
    """Print the table of docs/texts.md."""
    space, rng = load_space("glove-840b-34k"), np.random.default_rng(0)
    log = (files("sottovoce") / "demo" / "log.txt").read_text("utf-8").splitlines()
    ids = np.concatenate([TextPipeline().prepare(query, space).ids for query in log])
    known = space.words(rng.choice(ids, PLACES, replace=False))
    unknown = [f"zz{number}qx" for number in range(PLACES)]
    fresh = np.array(
        [signs(space, space.words(rng.integers(space.size, size=VARIANTS))) for _ in known]
    )
    print("| epsilon | spread, as it was | spread | rarity |")
    for epsilon in EPSILONS:
        chosen = mechanism("cmp", space=space, epsilon=epsilon)
        obfuscator = Obfuscator(chosen, n=VARIANTS, release="once", rng=1)
        of_known, of_unknown = (
            np.array([signs(space, result.variants) for result in obfuscator.obfuscate(words)])
            for words in (known, unknown)
        )
        figures = (
            told_apart(of_known[:, 0], fresh[:, 0]),
            told_apart(of_known[:, 0], of_unknown[:, 0]),
            told_apart(of_known[:, 1], of_unknown[:, 1]),
        )
        print(f"| {epsilon:g} | {' | '.join(f'{figure:.2f}' for figure in figures)} |")


if __name__ == "__main__":
    main()
