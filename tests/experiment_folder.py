"""A finished experiment's folder with made-up numbers: utility and risk that rise with epsilon.

Everything is drawn from one seed, so that the same call writes the same folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce.experiments.tables import FILES, NO_PRIVACY, PRIVATE, SAME_DEPTH, make_table

MECHANISMS = ("cmp", "vickrey-cmp", "santext", "wbb:k=2,n=15", "wbb:k=4,n=15", "aea")
EPSILONS = (1.0, 5.0, 10.0, 15.0)
NO_EPSILON = ("aea", "fea")
UTILITY = ("nDCG@10", "P@10", "pooled recall(rel=1)")
SIMILARITY = ("jaccard", "semantic")
ATTACKS = ("mode", "context")
ENCODERS = ("light",)
RELEASES = ("independent",)
KNOWS = "the mechanism; a made-up log of 1,000 queries"
REGIMES = ("only train", "only test", "both")


def write_folder(
    folder: Path,
    *,
    mechanisms: Sequence[str] = MECHANISMS,
    epsilons: Sequence[float] = EPSILONS,
    releases: Sequence[str] = RELEASES,
    n: Sequence[int] = (20,),
    seeds: Sequence[int] = (0, 1),
    queries: int = 12,
    collections: Sequence[str] = ("demo",),
    engines: Sequence[str] = ("bm25", "dense:light"),
    rerankers: Sequence[str] = ("light",),
    utility: Sequence[str] = UTILITY,
    similarity: Sequence[str] = SIMILARITY,
    encoders: Sequence[str] = ENCODERS,
    attacks: Sequence[str] = ATTACKS,
    words: int = 30,
    plotted: Sequence[str] = ("cancer",),
    tasks: Sequence[str] = ("sentiment",),
    items: int = 40,
    **manifest: Any,
) -> Path:
    """Write results, words and tasks (each may be empty), manifest and experiment.toml."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = Generator(PCG64(0))
    settings = [
        (mechanism, epsilon, release, each)
        for mechanism in mechanisms
        for release in releases
        for each in n
        for epsilon in ((None,) if mechanism.split(":")[0] in NO_EPSILON else epsilons)
    ]
    rows: list[tuple[Any, ...]] = []
    for collection in collections:
        ids = [f"q{number}" for number in range(queries)]
        for engine in engines:
            for reranker in rerankers:
                rows += _utility(rng, collection, engine, reranker, settings, seeds, ids, utility)
        rows += _privacy(rng, collection, settings, seeds, ids, similarity, encoders, attacks)
    write_table(folder, "queries", rows)
    write_table(folder, "words", list(_words(rng, mechanisms, epsilons, words, plotted)))
    write_table(folder, "tasks", list(_tasks(rng, tasks, mechanisms, epsilons, seeds, items)))
    said = {
        "name": "made-up",
        "description": "Numbers that somebody made up.",
        "notes": ["The paper has another engine & 50 variants."],
        "versions": {"sottovoce": "0.1.0", "numpy": np.__version__},
        "seeds": list(seeds),
        "seeded": True,
        "seconds": 12.5,
        "facts": {"attackers": [dict.fromkeys((*encoders, *attacks), KNOWS)]},
    }
    (folder / "manifest.json").write_text(json.dumps(said | manifest), encoding="utf-8")
    (folder / "experiment.toml").write_text('name = "made-up"\n', encoding="utf-8")
    return folder


def write_table(folder: Path, kind: str, rows: Sequence[Sequence[Any]]) -> None:
    """Write one of the tables as the run does."""
    import pyarrow.parquet as pq
    from pyarrow import csv

    table = make_table(kind, rows)
    pq.write_table(table, folder / f"{FILES[kind]}.parquet")
    csv.write_csv(table, folder / f"{FILES[kind]}.csv")


def _strength(mechanism: str, epsilon: float | None) -> float:
    """How much comes through, in [0, 1]: more with epsilon, a little other by mechanism."""
    slope = 0.35 + sum(map(ord, mechanism)) % 7 / 20
    return float(1 / (1 + np.exp(-slope * ((8.0 if epsilon is None else epsilon) - 9))))


def _noisy(rng: Generator, mean: float, spread: float = 0.1) -> float:
    return float(np.clip(mean + spread * rng.standard_normal(), 0, 1))


def _utility(
    rng: Generator,
    collection: str,
    engine: str,
    reranker: str,
    settings: Sequence[tuple[str, float | None, str, int]],
    seeds: Sequence[int],
    ids: Sequence[str],
    measures: Sequence[str],
) -> Iterator[tuple[Any, ...]]:
    where = (collection, engine, reranker)
    best = {(query, measure): _noisy(rng, 0.65) for query in ids for measure in measures}
    for (query, measure), value in best.items():
        yield (*where, "", None, "", 0, 0, NO_PRIVACY, query, measure, value)
    for query in ids:
        yield (*where, "", None, "", 0, 0, NO_PRIVACY, query, "pool", 100.0)
    for mechanism, epsilon, release, n in settings:
        strength = _strength(mechanism, epsilon)
        for seed in seeds:
            setting = (*where, mechanism, epsilon, release, n, seed)
            for query in ids:
                pool = float(rng.integers(100, 100 * n + 1))
                for system in (PRIVATE, SAME_DEPTH):
                    yield (*setting, system, query, "pool", pool)
                for measure in measures:
                    value = _noisy(rng, strength * best[query, measure], 0.05)
                    yield (*setting, PRIVATE, query, measure, value)
                    value = _noisy(rng, best[query, measure], 0.01)
                    yield (*setting, SAME_DEPTH, query, measure, value)


def _privacy(
    rng: Generator,
    collection: str,
    settings: Sequence[tuple[str, float | None, str, int]],
    seeds: Sequence[int],
    ids: Sequence[str],
    similarity: Sequence[str],
    encoders: Sequence[str],
    attacks: Sequence[str],
) -> Iterator[tuple[Any, ...]]:
    for mechanism, epsilon, release, n in settings:
        strength = _strength(mechanism, epsilon)
        for seed in seeds:
            setting = (collection, "", "", mechanism, epsilon, release, n, seed, PRIVATE)
            for query in ids:
                for measure in similarity:
                    yield (*setting, query, measure, _noisy(rng, 0.9 * strength))
                for encoder in encoders:
                    rank = 1 + int(rng.exponential(20 * (1 - strength)))
                    yield (*setting, query, f"lazy[{encoder}]", float(rank == 1))
                    yield (*setting, query, f"active[{encoder}]", float(rank <= 10))
                    yield (*setting, query, f"motivated[{encoder}]", 1 / rank)
                for number, attack in enumerate(attacks):
                    right = int(rng.binomial(4, strength * (1 - 0.1 * number)))
                    yield (*setting, query, f"words[{attack}]", right / 4)
                    yield (*setting, query, f"content[{attack}]", min(right, 2) / 2)
                    yield (*setting, query, f"query[{attack}]", float(right == 4))


def _words(
    rng: Generator,
    mechanisms: Sequence[str],
    epsilons: Sequence[float],
    words: int,
    plotted: Sequence[str],
) -> Iterator[tuple[Any, ...]]:
    names = [f"word{number}" for number in range(words)]
    for mechanism in mechanisms if words else ():
        for epsilon in (None,) if mechanism.split(":")[0] in NO_EPSILON else epsilons:
            strength = _strength(mechanism, epsilon)
            for word in names:
                back = _noisy(rng, strength)
                setting = ("made-up space", mechanism, epsilon, 0, word)
                yield (*setting, "N_w", back)
                yield (*setting, "S_w", float(1 + int(900 * (1 - back))))
                yield (*setting, "distinct", float(1 + int(700 * (1 - back))))
                yield (*setting, "moved", float(10 * (1 - back)))
    for rank, distance in ((1, 4.5), (10, 5.5), (100, 6.5), (1000, 7.5)):
        for word in names:
            value = distance + float(rng.standard_normal())
            yield "made-up space", "", None, 0, word, f"distance to neighbour {rank}", value
    for word in plotted:
        for kind, how_far in (("synonym", 4.0), ("hyponym", 5.0), ("neighbour", 6.0)):
            for number in range(8):
                setting = ("made-up space", f"{kind} of {word}", None, 0, f"{kind}{number}")
                yield (*setting, "distance", how_far + float(rng.random()))
                yield (*setting, "angle", 20 + 60 * float(rng.random()))


def _tasks(
    rng: Generator,
    tasks: Sequence[str],
    mechanisms: Sequence[str],
    epsilons: Sequence[float],
    seeds: Sequence[int],
    items: int,
) -> Iterator[tuple[Any, ...]]:
    def rights(share: float) -> list[float]:
        return [float(each) for each in rng.random(items) < share]

    for task in tasks:
        for seed in seeds:
            for model, share in (("majority", 0.4), ("tfidf", 0.9)):
                for item, value in enumerate(rights(share)):
                    yield task, model, "nothing", "", None, seed, item, "accuracy", value
        for mechanism in mechanisms:
            for epsilon in (None,) if mechanism.split(":")[0] in NO_EPSILON else epsilons:
                share = 0.4 + 0.5 * _strength(mechanism, epsilon)
                for seed in seeds:
                    for regime in REGIMES:
                        setting = (task, "tfidf", regime, mechanism, epsilon, seed)
                        for item, value in enumerate(rights(share)):
                            yield (*setting, item, "accuracy", value)
