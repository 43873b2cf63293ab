"""Re-ranking: real encoders, an engine as the oracle of BM25, and what is kept in memory."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.collections import Document
from sottovoce.encoders import load_encoder
from sottovoce.engines import BM25
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.search.pooling import Pooled
from sottovoce.search.reranking import BM25Reranker, EncoderReranker, load_reranker, rerank

TEXTS = [
    "The council will repair the old bridge next spring.",
    "Melanoma is a tumour of the skin; doctors remove it early.",
    "A recipe for tomato soup with basil and cream.",
    "Surgery and medicines for cancer of the skin.",
]


def pooled(count: int) -> list[Pooled]:
    return [Pooled(f"d{i}", f"title {i}", f"snippet {i}", 1.0, (i,)) for i in range(count)]


class Counting:
    """The light encoder, noting what it is asked to encode."""

    def __init__(self) -> None:
        self.encoder = load_encoder("light")
        self.name, self.dimension = "light", self.encoder.dimension
        self.fingerprint = self.encoder.fingerprint
        self.asked: list[str] = []

    def encode(self, texts):
        self.asked += texts
        return self.encoder.encode(texts)


class Fixed:
    """A re-ranker with scores given in advance."""

    name = "fixed"

    def __init__(self, scores) -> None:
        self.given = np.array(scores, dtype=np.float64)

    def scores(self, query, texts):
        return self.given


@pytest.mark.parametrize("name", ["auto", "light", "bm25"])
def test_texts_about_the_query_come_first(name):
    ranked = rerank("treatment for skin cancer", pooled(4), load_reranker(name), TEXTS)
    assert {document.doc_id for document in ranked[:2]} == {"d1", "d3"}
    assert [document.rank for document in ranked] == [1, 2, 3, 4]
    assert ranked[0].score > ranked[1].score > ranked[2].score


def test_a_document_keeps_what_the_pool_says_of_it():
    best = rerank("soup", pooled(4), load_reranker("light"), TEXTS)[0]
    assert (best.doc_id, best.title, best.snippet) == ("d2", "title 2", "snippet 2")
    assert best.found_by == (2,)


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, -1.0]), min_size=1, max_size=12))
def test_best_first_and_ties_in_the_order_of_the_pool(scores):
    ranked = rerank("x", pooled(len(scores)), Fixed(scores), [""] * len(scores))
    keys = [(-document.score, int(document.doc_id[1:])) for document in ranked]
    assert keys == sorted(keys)
    assert [document.score for document in ranked] == sorted(scores, reverse=True)


def test_scores_that_are_no_numbers_come_last():
    ranked = rerank("x", pooled(3), Fixed([math.nan, -5.0, 2.0]), [""] * 3)
    assert [document.doc_id for document in ranked] == ["d2", "d1", "d0"]


@pytest.mark.parametrize("name", ["light", "bm25", "none"])
def test_an_empty_pool_stays_empty(name):
    assert rerank("skin cancer", [], load_reranker(name), []) == []
    assert load_reranker(name).scores("skin cancer", []).shape == (0,)


def test_none_keeps_the_order_of_the_pool():
    ranked = rerank("soup", pooled(4), load_reranker("none"), TEXTS)
    assert [document.doc_id for document in ranked] == ["d0", "d1", "d2", "d3"]
    assert [document.score for document in ranked] == [1, 1 / 2, 1 / 3, 1 / 4]


def test_encoder_scores_are_cosines():
    encoder = load_encoder("light")
    (query,), rows = encoder.encode(["skin"]), encoder.encode(TEXTS)
    scores = EncoderReranker(encoder).scores("skin", TEXTS)
    assert scores == pytest.approx(rows @ query, abs=1e-6)
    assert np.all(np.abs(scores) <= 1 + 1e-6)


def test_bm25_scores_take_their_statistics_from_the_pool():
    engine = BM25([Document(str(i), "", text) for i, text in enumerate(TEXTS)])
    hits = {hit.doc_id: hit.score for hit in engine.search(["the skin"], 4)[0]}
    scores = BM25Reranker().scores("the skin", TEXTS)
    assert scores.tolist() == [hits.get(str(i), 0.0) for i in range(4)]
    assert scores[0] == scores[2] == 0


def test_a_blank_query_keeps_the_order_of_the_pool():
    for name in ("light", "bm25"):
        ranked = rerank("  ", pooled(4), load_reranker(name), TEXTS)
        assert [document.doc_id for document in ranked] == ["d0", "d1", "d2", "d3"]


def test_documents_are_encoded_once_and_queries_are_not_kept():
    encoder = Counting()
    reranker = EncoderReranker(encoder)
    first = reranker.scores("skin", [*TEXTS, TEXTS[0]])
    assert encoder.asked == ["skin", *TEXTS]
    encoder.asked.clear()
    assert np.array_equal(reranker.scores("skin", [*TEXTS, TEXTS[0]]), first)
    assert encoder.asked == ["skin"]
    encoder.asked.clear()
    reranker.scores("skin", ["skin"])
    assert encoder.asked == ["skin", "skin"]


def test_memory_is_bounded_and_the_latest_stay():
    encoder = Counting()
    reranker = EncoderReranker(encoder, keep=2)
    whole = reranker.scores("skin", TEXTS)
    assert whole == pytest.approx(EncoderReranker(encoder).scores("skin", TEXTS))
    encoder.asked.clear()
    reranker.scores("skin", TEXTS[2:])
    assert encoder.asked == ["skin"]
    reranker.scores("skin", TEXTS[:1])
    encoder.asked.clear()
    reranker.scores("skin", TEXTS[2:3])
    assert encoder.asked == ["skin", TEXTS[2]]
    fresh = EncoderReranker(encoder, keep=2)
    for place in (1, 2, 1, 3):
        fresh.scores("skin", [TEXTS[place]])
    encoder.asked.clear()
    fresh.scores("skin", [TEXTS[1]])
    assert encoder.asked == ["skin"]
    assert EncoderReranker(encoder, keep=0).scores("skin", TEXTS) == pytest.approx(whole)


def test_a_prepared_collection_is_encoded_once_for_all(tmp_path, monkeypatch):
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path))
    expected = EncoderReranker(load_encoder("light")).scores("skin", TEXTS)
    EncoderReranker(load_encoder("light")).prepare(TEXTS[:3])
    encoder = Counting()
    reranker = EncoderReranker(encoder, keep=1)
    reranker.prepare(TEXTS[:3])
    for _ in range(2):
        assert np.array_equal(reranker.scores("skin", TEXTS[::-1]), expected[::-1])
    assert encoder.asked == ["skin", TEXTS[3], "skin"]


def test_wrong_use_is_refused_with_advice():
    with pytest.raises(UsageError, match="one text a document"):
        rerank("x", pooled(2), load_reranker("none"), ["a"])
    with pytest.raises(UsageError, match=r"did you mean 'light'.*bm25 or none"):
        load_reranker("lihgt")
    with pytest.raises(UsageError, match="negative"):
        EncoderReranker(load_encoder("light"), keep=-1)
    with pytest.raises(SottovoceError, match="one score a text"):
        rerank("x", pooled(2), Fixed([1.0]), ["a", "b"])


def test_no_representation_holds_text():
    reranker = EncoderReranker(load_encoder("light"))
    reranker.scores("secret", ["secret"])
    secret = [Pooled("secret", "secret", "secret", 1.0, (0,))]
    (ranked,) = rerank("secret", secret, reranker, ["secret"])
    assert "secret" not in repr(ranked) + repr(reranker)
