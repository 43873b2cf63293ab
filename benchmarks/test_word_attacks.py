"""Tests of ``word_attacks.py``: it names what ``sottovoce.privacy.attack`` names."""

# ruff: noqa: D103 - the names say it

from __future__ import annotations

import numpy as np
import pytest
from word_attacks import CutLogs, WordAttack

from sottovoce import Obfuscator, mechanism
from sottovoce.choices import Order, Release
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.privacy import QueryLog, Released, attack
from sottovoce.spaces.space import WordSpace
from sottovoce.text import TextPipeline

COUNTS = (2, 6)
RNG = np.random.default_rng(7)
LOG = [" ".join(f"word{i}" for i in RNG.choice(400, RNG.integers(2, 5))) for _ in range(300)]
UNLISTED = [f"{query} unlisted" for query in LOG[:50]]
TEXTS = [*LOG[::20], *UNLISTED[::10]]


@pytest.fixture(scope="module")
def space() -> WordSpace:
    vectors = np.random.default_rng(42).standard_normal((400, 20)) * np.linspace(0.3, 2, 20)
    return WordSpace.from_arrays([f"word{i}" for i in range(400)], vectors, name="small")


@pytest.mark.parametrize(
    ("spec", "release", "order"),
    [
        ("santext:epsilon=2", "independent", "shuffled"),
        ("santext:epsilon=2", "independent", "kept"),
        ("tem:epsilon=4", "independent", "shuffled"),
        ("custext:epsilon=1", "independent", "shuffled"),
        ("custext:epsilon=1", "independent", "kept"),
        ("mahalanobis:epsilon=5", "independent", "shuffled"),
        ("cmp:epsilon=6", "once", "shuffled"),
        ("cmp:epsilon=6", "once", "kept"),
    ],
)
def test_it_names_what_the_attack_names(
    space: WordSpace,
    spec: str,
    release: Release,
    order: Order,
) -> None:
    made = mechanism(spec, space=space)
    assert isinstance(made, WordMechanism)
    pipeline = TextPipeline(unknown="uniform", order=order, punctuation="drop")
    queries = LOG + UNLISTED
    logs = {"all": queries, "half": queries[::2]}
    texts = [text for text in TEXTS if text in queries]
    cut = CutLogs.of(made, pipeline, logs, texts)
    attacker = WordAttack(made, release, pipeline, cut, seed=1)
    for n in COUNTS if release == "once" else (max(COUNTS),):
        obfuscator = Obfuscator(made, n=n, release=release, pipeline=pipeline, rng=1)
        released = [
            Released(str(row), result.text, result.variants)
            for row, result in enumerate(obfuscator.obfuscate(texts))
        ]
        counts = (n,) if release == "once" else COUNTS
        named = attacker.named(released, counts)
        for name, queries in logs.items():
            report = attack(
                released,
                mechanism=made,
                release=release,
                pipeline=pipeline,
                log=QueryLog(queries),
                add_originals=True,
                attacks=["aligned"],
                counts=counts,
                rng=1,
            )
            attempts = {
                (count, inference.attack): {
                    query.id: float(query.rank == 1) for query in inference.queries
                }
                for count, inference in report.inferences
            }
            by_variant = release == "independent" and order == "shuffled"
            for count in counts:
                expected = attempts[count, "any order" if by_variant else "aligned"]
                assert named[count][name] == expected
                assert sum(expected.values()) > 0
