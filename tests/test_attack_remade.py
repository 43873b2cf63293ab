"""Query inference by doing it again: a mechanism that computes its variants names the query."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce import Obfuscator, mechanism
from sottovoce.collections import demo_log, load_collection
from sottovoce.engines import BM25
from sottovoce.mechanisms.base import TextMechanism
from sottovoce.privacy import QueryLog, Released, attack
from sottovoce.privacy.attacks.reasons import COMPUTED, DRAWN, REWRITTEN
from sottovoce.privacy.attacks.remade import EXACTLY, Seen, infer_by_remaking
from sottovoce.text import TextPipeline

VARIANTS = 10
QUERIES = 6


@pytest.fixture(scope="module")
def demo():
    return load_collection("demo")


@pytest.fixture(scope="module")
def versatile(demo) -> TextMechanism:
    return mechanism("versatile", engine=BM25(demo.documents))


def released(rewriting: TextMechanism, texts: list[str], n: int = VARIANTS) -> list[Released]:
    results = Obfuscator(rewriting, n=n, rng=0).obfuscate(texts)
    return [
        Released(str(number), text, result.variants)
        for number, (text, result) in enumerate(zip(texts, results, strict=True))
    ]


def test_what_is_computed_is_computed_again(demo, versatile):
    """By words or by what is found a query is one of many; made again it is the only one."""
    releases = released(versatile, list(demo.queries.values())[:QUERIES])
    log = QueryLog([*list(demo_log())[:300], *demo.queries.values()])
    report = attack(releases, mechanism=versatile, log=log, counts=[VARIANTS], space=None)
    named = {inference.attack: inference.lazy.value for _, inference in report.inferences}
    assert named["remade"] == 1
    assert max(named[other] for other in named if other != "remade") < 1
    assert report.not_tried["aligned"] == COMPUTED


def test_only_the_likely_are_looked_at_and_all_others_tie(versatile):
    log = QueryLog(f"query number {number}" for number in range(9))
    release = Released("0", "query number 3", ("nothing like it",))
    inference = infer_by_remaking(
        [release], log, versatile, TextPipeline(), [[np.array([0, 1]), np.array([1, 2])]]
    )
    assert (inference.queries[0].rank, inference.queries[0].ties) == (6.5, 5)


def test_the_search_ends_with_the_very_same_variants(demo, versatile, monkeypatch):
    text = demo.queries[next(iter(demo.queries))]
    log = QueryLog([text, *list(demo_log())[:20]])
    asked: list[str] = []
    rewrite = type(versatile).rewrite

    def counted(self, text, *rest):
        asked.append(text)
        return rewrite(self, text, *rest)

    monkeypatch.setattr(type(versatile), "rewrite", counted)
    releases = released(versatile, [text])
    asked.clear()
    everything = [[np.arange(len(log))]]
    inference = infer_by_remaking(releases, log, versatile, TextPipeline(), everything)
    assert (len(asked), inference.lazy.value) == (1, 1)


def test_a_mechanism_that_draws_is_not_made_again(demo):
    """Equal texts do not give equal variants: then another attack must know how it draws."""
    syntf = mechanism("syntf:epsilon=10")
    releases = released(syntf, list(demo.queries.values())[:2], 3)
    report = attack(releases, mechanism=syntf, log=QueryLog(demo.queries.values()), counts=[3])
    assert report.not_tried["remade"] == DRAWN
    assert report.not_tried["aligned"] == REWRITTEN


@given(st.lists(st.text("ab ", min_size=1).filter(str.strip), min_size=1, max_size=4))
def test_only_the_same_variants_have_the_greatest_score(variants):
    seen = Seen(variants)
    assert seen.score(variants[::-1]) == EXACTLY
    assert seen.score([*variants, "c"]) < EXACTLY
    assert seen.score(["c d"]) == 0
    assert seen.score([]) == 0


def test_scores_by_hand():
    seen = Seen(["lion zebra", "gnu"])
    assert seen.score(["gnu", "okapi"]) == pytest.approx(1 / 2 + 1 / (3**0.5 * 2**0.5))
