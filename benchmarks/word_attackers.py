"""What query inference gets where no law of the mechanism is used.

By encoders and by words; on the demo also by what is found and by making the variants again.

    python benchmarks/word_attackers.py                  # releases of the demo queries, one seed
    python benchmarks/word_attackers.py --data DATA      # those that the authors of 001 published

Printed is the share of queries named at the first guess: 65 demo queries in the demo log, 20
variants; or the 43 queries of TREC DL 2019 in a log of 120,644, 50 variants. DATA is as in
replication/README.md, and takes the space: sottovoce spaces add large. On the demo fea takes half
an hour, as it is made again for likely queries; syntf and wbb half a minute each.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from sottovoce.app.loaded import LoadedParts
from sottovoce.app.settings import Settings
from sottovoce.collections import load_collection
from sottovoce.mechanisms.base import Mechanism, TextMechanism
from sottovoce.obfuscation import Obfuscator
from sottovoce.privacy import QueryLog, Released, attack, attacker_encoders, read_log, read_releases
from sottovoce.resources.local import load_space
from sottovoce.spaces import WordSpace
from sottovoce.text import TextPipeline

DEMO = ("aea", "fea", "versatile", "incognito", "syntf", "wbb")
PUBLISHED = {
    "AEA": ("3", "5"),
    "FEA": ("12", "16"),
    "WBB": ("1", "50"),
    "CMP": ("5", "10"),
    "Mahalanobis": ("10",),
    "VickreyMhl": ("10",),
    "CusText": ("1",),
    "SanText": ("1",),
    "TEM": ("1",),
}
VARIANTS, SEED = 20, 1
MOST = 50
"""Variants of each published release that are looked at."""


def on_the_demo(names: list[str]) -> Iterator[tuple[str, list[Released], Mechanism | None]]:
    """Releases of the demo queries by mechanisms with their usual parameters."""
    parts = LoadedParts(Settings())
    queries = list(load_collection("demo").queries.values())
    for name in names:
        mechanism = parts.mechanism(name, {})
        cut = TextPipeline(protect=mechanism.protects)
        results = Obfuscator(mechanism, n=VARIANTS, rng=SEED, pipeline=cut).obfuscate(queries)
        made = enumerate(results)
        releases = [Released(str(at), result.text, result.variants) for at, result in made]
        # What is said of the others is what they give away to those who do not use their law.
        yield name, releases, mechanism if isinstance(mechanism, TextMechanism) else None


def published(data: Path) -> Iterator[tuple[str, list[Released], None]]:
    """Releases that came with the paper."""
    for name, parameters in PUBLISHED.items():
        folder = data / "reference" / "msmarco-dl19" / name
        for parameter in parameters:
            file = folder / f"obfuscatedText_{name}_{parameter}.csv.gz"
            releases = read_releases(file)
            yield (
                f"{name} {parameter}",
                [replace(released, variants=released.variants[:MOST]) for released in releases],
                None,
            )


def named_first(
    releases: list[Released], log: QueryLog, space: WordSpace, mechanism: Mechanism | None
) -> dict[str, float]:
    """The share of the queries that each attack names first."""
    most = max(len(released.variants) for released in releases)
    report = attack(
        releases,
        mechanism=mechanism,
        log=log,
        encoders=attacker_encoders(),
        space=space,
        add_originals=True,
        counts=[most],
        attacks=["means", "answers", "remade"],
    )
    return {inference.attack: inference.lazy.value for _, inference in report.inferences}


def main() -> None:
    """A line a release."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", type=Path)
    options.add_argument("--mechanism", action="append", choices=DEMO)
    asked = options.parse_args()
    if asked.data is None:
        log, space = QueryLog(read_log("demo")), load_space()
        releases = on_the_demo(asked.mechanism or list(DEMO))
    else:
        log = QueryLog(read_log(asked.data / "querylog" / "pool_distinct.tsv.gz"))
        space, releases = load_space("glove-6b-100d"), published(asked.data)
    for name, listed, mechanism in releases:
        shares = named_first(listed, log, space, mechanism)
        print(
            f"{name:16}", "  ".join(f"{by} {share:.2f}" for by, share in shares.items()), flush=True
        )


if __name__ == "__main__":
    main()
