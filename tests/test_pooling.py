"""Pooling against values worked out by hand, and what must hold for any answers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.choices import POOLINGS
from sottovoce.engines import Hit
from sottovoce.errors import UsageError
from sottovoce.search.pooling import Pooled, pool


def answer(number: int, documents: str) -> list[Hit]:
    """Documents that are letters, with scores 10, 9, 8 ..."""
    return [Hit(d, 10.0 - i, f"title {d}", f"{d} in {number}") for i, d in enumerate(documents)]


def answers(*lists: str) -> list[list[Hit]]:
    return [answer(number, documents) for number, documents in enumerate(lists)]


def order(pooled: list[Pooled]) -> str:
    return "".join(document.doc_id for document in pooled)


def ids(hits: list[Hit]) -> set[str]:
    return {hit.doc_id for hit in hits}


some_hits = st.lists(
    st.builds(Hit, st.sampled_from("abcdefgh"), st.floats(-1e6, 1e6)), max_size=8
).map(lambda hits: sorted(hits, key=lambda hit: -hit.score))
some_answers = st.lists(some_hits, max_size=5)


def test_union_goes_by_best_rank_then_by_the_first_answer():
    pooled = pool(answers("abc", "cad", "be"), "union")
    assert order(pooled) == "acbed"
    assert [document.score for document in pooled] == [1, 1, 1, 1 / 2, 1 / 3]
    assert [document.found_by for document in pooled] == [(0, 1), (0, 1), (0, 2), (2,), (1,)]


def test_rrf_adds_up_reciprocal_ranks_with_sixty():
    scores = {document.doc_id: document.score for document in pool(answers("abc", "cb"), "rrf")}
    assert scores["a"] == pytest.approx(1 / 61)
    assert scores["b"] == pytest.approx(1 / 62 + 1 / 62)
    assert scores["c"] == pytest.approx(1 / 63 + 1 / 61)
    assert order(pool(answers("abc", "cb"), "rrf")) == "cba"


def test_combsum_adds_up_scores_stretched_within_each_answer():
    first = [Hit("a", 30.0), Hit("b", 15.0), Hit("c", 10.0)]
    second = [Hit("c", 0.9), Hit("b", 0.8), Hit("d", 0.5)]
    pooled = pool([first, second], "combsum")
    expected = {"a": 1.0, "b": 0.25 + 0.75, "c": 0.0 + 1.0, "d": 0.0}
    assert {p.doc_id: p.score for p in pooled} == pytest.approx(expected)
    assert order(pooled)[-1] == "d"


@pytest.mark.parametrize("hits", [[Hit("a", 3.0)], [Hit("a", 3.0), Hit("b", 3.0)]])
def test_combsum_takes_equal_scores_for_the_best(hits):
    assert [document.score for document in pool([hits], "combsum")] == [1.0] * len(hits)


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_combsum_refuses_scores_that_cannot_be_added(score):
    with pytest.raises(UsageError, match="rrf"):
        pool([[Hit("a", 1.0), Hit("b", score)]], "combsum")
    assert order(pool([[Hit("a", 1.0), Hit("b", score)]], "rrf")) == "ab"


@pytest.mark.parametrize("method", POOLINGS)
def test_a_document_twice_in_an_answer_counts_once_where_it_is_first(method):
    twice = [Hit("a", 3.0), Hit("a", 2.5), Hit("b", 2.0), Hit("a", 1.0), Hit("c", 1.0)]
    once = [Hit("a", 3.0), Hit("b", 2.0), Hit("c", 1.0)]
    assert pool([twice], method) == pool([once], method)


@pytest.mark.parametrize("method", POOLINGS)
def test_ties_go_by_best_rank_then_by_answer(method):
    assert order(pool(answers("ab", "ba", "cd", "dc"), method)) == "abcd"
    assert order(pool(answers("dc", "cd", "ba", "ab"), method)) == "dcba"


@pytest.mark.parametrize("method", POOLINGS)
def test_title_and_snippet_come_from_the_best_rank(method):
    by_id = {document.doc_id: document for document in pool(answers("ab", "bc"), method)}
    assert (by_id["b"].title, by_id["b"].snippet) == ("title b", "b in 1")
    assert by_id["c"].snippet == "c in 1"


@pytest.mark.parametrize("method", POOLINGS)
@pytest.mark.parametrize("nothing", [[], [[]], [[], []]])
def test_nothing_found_is_an_empty_pool(method, nothing):
    assert pool(nothing, method) == []


@given(some_answers, st.sampled_from(POOLINGS))
def test_the_pool_is_exactly_what_was_found_best_first(given_answers, method):
    pooled = pool(given_answers, method)
    assert len({p.doc_id for p in pooled}) == len(pooled)
    assert {p.doc_id for p in pooled} == {hit.doc_id for hits in given_answers for hit in hits}
    assert [p.score for p in pooled] == sorted((p.score for p in pooled), reverse=True)
    for document in pooled:
        holders = [i for i, hits in enumerate(given_answers) if document.doc_id in ids(hits)]
        assert document.found_by == tuple(holders)


@given(some_answers, st.sampled_from(["rrf", "combsum"]), st.randoms())
def test_the_order_of_the_answers_changes_no_fused_score(given_answers, method, random):
    shuffled = random.sample(given_answers, len(given_answers))
    before = {p.doc_id: p.score for p in pool(given_answers, method)}
    assert {p.doc_id: p.score for p in pool(shuffled, method)} == before


def test_an_unknown_method_is_refused_with_the_one_meant():
    with pytest.raises(UsageError, match="did you mean 'union'"):
        pool([], "unoin")


def test_no_representation_holds_text():
    (document,) = pool([[Hit("secret", 1.0, "secret", "secret")]])
    assert "secret" not in repr(document)
