"""TF-IDF against an oracle written from the formula, and against real judgements."""

from __future__ import annotations

import math
import pickle
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.collections import Document, load_collection
from sottovoce.engines import TfIdf, ranks_of
from sottovoce.errors import UsageError
from sottovoce.evaluation import effectiveness
from sottovoce.text.words import content_words, stems


def oracle(documents: list[Document], query: str) -> dict[str, float]:
    """The cosine of every document that shares a stem with the query, by the textbook's sums."""
    bags = [Counter(stems(content_words(f"{d.title} {d.text}"))) for d in documents]
    df = Counter(stem for bag in bags for stem in bag)
    asked = Counter(stem for stem in stems(content_words(query)) if df[stem])
    wanted = {stem: tf * math.log(1 + len(bags) / df[stem]) for stem, tf in asked.items()}
    found = {}
    for document, bag in zip(documents, bags, strict=True):
        weights = {stem: 1 + math.log(tf) for stem, tf in bag.items()}
        if shared := wanted.keys() & weights.keys():
            lengths = math.hypot(*wanted.values()) * math.hypot(*weights.values())
            found[document.doc_id] = sum(wanted[s] * weights[s] for s in shared) / lengths
    return found


vocabulary = st.sampled_from(["fish", "fishing", "water", "tank", "the", "of", "blue", "salmon"])
texts = st.lists(vocabulary, max_size=12).map(" ".join)
corpora = st.lists(texts, min_size=1, max_size=15).map(
    lambda lines: [Document(f"d{i}", "", line) for i, line in enumerate(lines)]
)


@given(corpora, texts)
def test_scores_are_cosines_by_the_formula(documents, query):
    expected = oracle(documents, query)
    (hits,) = TfIdf(documents).search([query], len(documents))
    assert {hit.doc_id for hit in hits} == expected.keys()
    for hit in hits:
        assert hit.score == pytest.approx(expected[hit.doc_id], abs=1e-6)
        assert 0 < hit.score <= 1 + 1e-6


@given(corpora, texts, st.integers(0, 20))
def test_best_first_ties_by_document_order_and_no_more_than_asked_for(documents, query, depth):
    engine = TfIdf(documents)
    (every,) = engine.search([query], len(documents))
    keys = [(-hit.score, int(hit.doc_id[1:])) for hit in every]
    assert keys == sorted(keys)
    assert engine.search([query], depth)[0] == every[:depth]


@given(corpora, st.lists(texts, max_size=6), st.integers(1, 20))
def test_ranks_are_the_places_in_the_answers(documents, queries, depth):
    engine = TfIdf(documents)
    ids = [document.doc_id for document in documents]
    quick = ranks_of(engine, queries, ids, depth)
    for row, hits in zip(quick, engine.search(queries, depth), strict=True):
        places = {hit.doc_id: place for place, hit in enumerate(hits, start=1)}
        assert row.tolist() == [places.get(doc_id, 0) for doc_id in ids]


def test_a_document_equal_to_the_query_scores_one_when_all_idf_are_equal():
    engine = TfIdf([Document("a", "salmon", "river"), Document("b", "", "tank food")])
    assert engine.search(["river salmon"], 1)[0][0].score == pytest.approx(1)


def test_hits_carry_title_and_a_snippet_of_bounded_length():
    long = "a salmon swims " * 50
    engine = TfIdf([Document("a", "Salmon", "a fish"), Document("b", "", long)])
    by_id = {hit.doc_id: hit for hit in engine.search(["salmon"], 2)[0]}
    assert (by_id["a"].title, by_id["a"].snippet) == ("Salmon", "a fish")
    assert len(by_id["b"].snippet) <= 300
    assert long.startswith(by_id["b"].snippet.removesuffix("…"))
    assert engine.text("a") == "Salmon\na fish"


@pytest.mark.parametrize("documents", [[], [Document("a", "", "")]])
def test_an_engine_without_words_finds_nothing(documents):
    assert TfIdf(documents).search(["salmon", ""], 10) == [[], []]


def test_errors_and_representations_name_no_document():
    engine = TfIdf([Document("a", "secret", "secret")])
    with pytest.raises(UsageError) as caught:
        engine.text("secret")
    assert "secret" not in str(caught.value) + repr(engine) + repr(engine.search(["secret"], 1))


def test_effectiveness_and_pickling_on_real_passages(shared_data):
    passages = load_collection(shared_data / "ir" / "msmarco-dl19-pool")
    engine = TfIdf(passages.documents)
    queries = list(passages.queries.values())
    answers = engine.search(queries, 10)
    run = {q: [h.doc_id for h in hits] for q, hits in zip(passages.queries, answers, strict=True)}
    measured = effectiveness(run, passages.judgments, ["nDCG@10"])["nDCG@10"]
    assert measured.mean == pytest.approx(0.373, abs=0.001)
    assert pickle.loads(pickle.dumps(engine)).search(queries[:3], 10) == answers[:3]
