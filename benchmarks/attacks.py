"""What attacks that know the mechanism recover: attack x mechanism x number of variants.

    python benchmarks/attacks.py                           random frequent words, every mechanism
    python benchmarks/attacks.py --only once --words 100   the release 'once' of cmp alone
    python benchmarks/attacks.py --texts FILE              the texts of a file, one a line

Words are drawn from a seed, each a text of its own. The table gives shares of words (and of
texts, where they have several words); "ceiling" is what no attack on one noisy point exceeds.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from numpy.random import PCG64, Generator

from sottovoce import Obfuscator, load_space, mechanism
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.privacy import Recovery, Released, reconstruct
from sottovoce.text import TextPipeline

ONCE = [f"cmp:epsilon={epsilon}" for epsilon in (5, 10, 12.5, 15, 20)]
ONCE += ["vickrey-cmp:epsilon=12.5", "mahalanobis:epsilon=12.5"]
NOISE = ["cmp:epsilon=5", "cmp:epsilon=7.5", "cmp:epsilon=10", "cmp:epsilon=12.5"]
NOISE += ["vickrey-cmp:epsilon=10", "mahalanobis:epsilon=10"]
BOXES = ["wbb:epsilon=1", "wbb:epsilon=1,k=2,n=15", "custext:epsilon=1,compat=knn,k=10"]
BOXES += ["custext:epsilon=1"]
LAWS = ["santext:epsilon=1", "santext:epsilon=2", "santext:epsilon=3", "tem:epsilon=2"]
GROUPS = {"once": ONCE, "noise": NOISE, "boxes": BOXES, "laws": LAWS}


def released(mech: WordMechanism, texts: list[str], n: int, release: str) -> list[Released]:
    """Seeded variants of every text, all words protected."""
    pipeline = TextPipeline(protect="all")
    obfuscator = Obfuscator(mech, n=n, release=release, pipeline=pipeline, rng=1)  # type: ignore[arg-type]
    return [
        Released(str(place), result.text, result.variants)
        for place, result in enumerate(obfuscator.obfuscate(texts))
    ]


def line(spec: str, release: str, found: Recovery) -> str:
    """One row of the table."""
    low, high = found.word_interval or (0.0, 0.0)
    left = "" if found.survivors is None else f"{found.survivors:9.1f} survive"
    return (
        f"{spec:36s} {release:11s} {found.attack:12s} {found.n:3d}  {found.word_share:.3f} "
        f"({low:.3f}-{high:.3f})  texts {found.query_share:.3f}{left}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--words", type=int, default=200)
    parser.add_argument("--frequent", type=int, default=0, help="draw among so many first words")
    parser.add_argument("--texts", type=Path, help="a file of texts, one a line, instead of words")
    parser.add_argument("--only", choices=GROUPS, help="one group of mechanisms")
    parser.add_argument("--spec", action="append", help="these mechanisms of the group alone")
    parser.add_argument("--n", type=int, default=0, help="variants; 20 for once, 50 otherwise")
    chosen = parser.parse_args()
    space = load_space("default")
    if chosen.texts:
        texts = chosen.texts.read_text().splitlines()
    else:
        rng = Generator(PCG64(0))
        ids = rng.choice(chosen.frequent or space.size, chosen.words, replace=False)
        texts = space.words(ids)
    for group in [chosen.only] if chosen.only else GROUPS:
        release = "once" if group == "once" else "independent"
        n = chosen.n or (20 if release == "once" else 50)
        counts = [n] if release == "once" else [1, 5, 20, n]
        for spec in chosen.spec or GROUPS[group]:
            mech = mechanism(spec, space=space)
            assert isinstance(mech, WordMechanism)
            begun = time.perf_counter()
            found = reconstruct(
                released(mech, texts, n, release), mech, release=release, counts=counts, rng=2
            )
            for each in found:
                if each.applies:
                    print(line(spec, release, each), flush=True)
            print(f"  {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
