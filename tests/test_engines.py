"""BM25 against an oracle written from the formula, and against real judgements."""

from __future__ import annotations

import json
import math
import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_engine import Plain

from sottovoce.collections import Document, read_corpus
from sottovoce.engines import BM25, Hit, ranks_of
from sottovoce.engines.base import NOTHING
from sottovoce.engines.dense import Dense
from sottovoce.engines.lexical import TfIdf
from sottovoce.errors import UsageError
from sottovoce.text.words import content_words, stems, words

K1, B = 0.9, 0.4


def oracle(documents: list[Document], query: str) -> list[tuple[str, float]]:
    """Every document that shares a stem with the query, best first, by the textbook's sums."""
    bags = [Counter(stems(content_words(f"{d.title} {d.text}"))) for d in documents]
    mean = sum(sum(bag.values()) for bag in bags) / len(bags)
    found = []
    for document, bag in zip(documents, bags, strict=True):
        score = 0.0
        for stem in stems(content_words(query)):
            if stem in bag:
                df = sum(stem in other for other in bags)
                idf = math.log(1 + (len(bags) - df + 0.5) / (df + 0.5))
                length = 1 - B + B * sum(bag.values()) / mean
                score += idf * bag[stem] / (bag[stem] + K1 * length)
        if score > 0:
            found.append((document.doc_id, score))
    return sorted(found, key=lambda pair: -pair[1])


vocabulary = st.sampled_from(
    ["fish", "fishing", "water", "tank", "food", "the", "of", "growth", "blue", "salmon", "river"]
)
texts = st.lists(vocabulary, max_size=12).map(" ".join)
corpora = st.lists(texts, min_size=1, max_size=15).map(
    lambda lines: [Document(f"d{i}", "", line) for i, line in enumerate(lines)]
)


@given(corpora, texts)
def test_scores_are_those_of_the_formula(documents, query):
    expected = dict(oracle(documents, query))
    (hits,) = BM25(documents).search([query], len(documents))
    assert {hit.doc_id for hit in hits} == expected.keys()
    for hit in hits:
        assert hit.score == pytest.approx(expected[hit.doc_id], abs=1e-6)


@given(corpora, texts, st.integers(0, 20))
def test_best_first_ties_by_document_order_and_no_more_than_asked_for(documents, query, depth):
    engine = BM25(documents)
    (every,) = engine.search([query], len(documents))
    keys = [(-hit.score, int(hit.doc_id[1:])) for hit in every]
    assert keys == sorted(keys)
    assert engine.search([query], depth)[0] == every[:depth]


@given(corpora, st.lists(texts, max_size=8), st.integers(1, 20))
def test_ranks_are_the_places_in_the_answers(documents, queries, depth):
    engine = BM25(documents)
    ids = [document.doc_id for document in documents][::-1]
    quick = engine.ranks(queries, ids, depth)
    assert quick.shape == (len(queries), len(ids))
    for row, hits in zip(quick, engine.search(queries, depth), strict=True):
        places = {hit.doc_id: place for place, hit in enumerate(hits, start=1)}
        assert row.tolist() == [places.get(doc_id, 0) for doc_id in ids]
    assert np.array_equal(quick, ranks_of(Plain(engine), queries, ids, depth))


def test_any_number_of_queries_can_be_ranked():
    engine = BM25([Document("a", "", "salmon river"), Document("b", "", "river")])
    queries = ["salmon"] + ["tank"] * 1500 + ["river"]
    quick = engine.ranks(queries, ["a", "b"], 10)
    assert (quick[0].tolist(), quick[-1].tolist(), quick[1:-1].any()) == ([1, 0], [2, 1], False)
    assert np.array_equal(quick, ranks_of(Plain(engine), queries, ["a", "b"], 10))


def test_equal_documents_tie_whatever_the_order_of_the_words():
    texts = ["salmon river tank", "tank salmon river", "river tank salmon"]
    engine = BM25([Document(str(i), "", text) for i, text in enumerate(texts)])
    for query in ("salmon river tank", "tank river salmon"):
        (hits,) = engine.search([query], 3)
        assert [hit.doc_id for hit in hits] == ["0", "1", "2"]
        assert len({hit.score for hit in hits}) == 1


def test_words_are_compared_by_stem_without_case_possessive_or_function_words():
    engine = BM25([Document("a", "Medicare’s RULES", "were ruling"), Document("b", "", "of the")])
    assert [h.doc_id for h in engine.search(["the rule of medicare"], 5)[0]] == ["a"]
    assert engine.search(["of the"], 5) == [[]]


def test_words_of_other_scripts_and_numbers_are_found():
    lines = ["日本語 テスト", "नमस्ते दुनिया", "model 42 Straße", "🍕 🍕"]
    engine = BM25([Document(str(i), "", line) for i, line in enumerate(lines)])
    found = engine.search(["テスト", "दुनिया", "42", "straße", "🍕"], 5)
    assert [[hit.doc_id for hit in hits] for hits in found] == [["0"], ["1"], ["2"], ["2"], []]


def test_a_word_twice_in_the_query_counts_twice():
    engine = BM25([Document("a", "", "salmon"), Document("b", "", "river water tank")])
    once, twice = (hits[0].score for hits in engine.search(["salmon", "salmon salmon"], 1))
    assert twice == 2 * once


@pytest.mark.parametrize("documents", [[], [Document("a", "", "")]])
def test_an_engine_without_words_finds_nothing(documents):
    engine = BM25(documents)
    assert engine.search(["salmon", ""], 10) == [[], []]
    assert engine.ranks(["salmon"], engine.search([""], 1)[0], 10).shape == (1, 0)


def test_hits_carry_titles_and_text_begins_with_the_title():
    engine = BM25([Document("a", "Salmon", "a fish"), Document("b", "", "a river")])
    assert engine.search(["salmon"], 1)[0][0].title == "Salmon"
    assert (engine.text("a"), engine.text("b")) == ("Salmon\na fish", "a river")


def test_errors_name_no_document():
    engine = BM25([Document("a", "", "salmon")])
    for call in (
        lambda: engine.text("secret"),
        lambda: engine.ranks(["salmon"], ["secret"], 10),
        lambda: BM25([Document("secret", "", ""), Document("secret", "", "")]),
    ):
        with pytest.raises(UsageError) as caught:
            call()
        assert "secret" not in str(caught.value)
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("settings", [{"k1": -1}, {"b": 1.5}, {"k1": math.nan}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(UsageError, match="k1 must not be negative"):
        BM25([], **settings)


@pytest.mark.parametrize("kind", [BM25, TfIdf, lambda documents: Dense(documents, "light")])
def test_what_is_listed_are_the_documents_of_the_answers(kind):
    texts = ["red apple pie", "green apple", "apple apple red", "stone", "red wine and pie"]
    documents = [Document(f"d{place}", "", text) for place, text in enumerate(texts)]
    engine, queries = kind(documents), ["red apple", "pie", "", "wine stone", "red apple"]
    for depth in (0, 2, 7):
        listed = engine.listed(queries, depth)
        assert listed.shape == (len(queries), depth)
        answers = engine.search(queries, depth)
        for row, hits in zip(listed.tolist(), answers, strict=True):
            places = [int(hit.doc_id[1:]) for hit in hits]
            assert row == places + [NOTHING] * (depth - len(places))


def test_negative_depth_is_refused():
    with pytest.raises(UsageError, match="depth"):
        BM25([]).search(["salmon"], -1)


def test_no_representation_holds_text():
    document = Document("secret", "secret", "secret")
    engine = BM25([document])
    for thing in (document, engine, engine.search(["secret"], 1)[0][0], Hit("secret", 1.0)):
        assert "secret" not in repr(thing)


def test_queries_too_long_for_ranks_are_refused_rather_than_ranked_wrongly():
    engine = BM25([Document("a", "", "salmon")])
    engine._weights = engine._weights + (1 << 50)
    with pytest.raises(UsageError, match="use search"):
        engine.ranks(["salmon " * 10_000], ["a"], 10)


def test_words_keep_letters_marks_digits_and_inner_apostrophes():
    assert words("Wi-Fi's 2.4 o’clock Café_x") == ["wi", "fi's", "2", "4", "o'clock", "café", "x"]


@pytest.fixture(scope="module")
def pool(shared_data):
    return BM25(read_corpus(shared_data / "ir" / "msmarco-dl19-pool"))


def test_real_passages_score_as_the_formula_says(pool, shared_data):
    documents = list(read_corpus(shared_data / "ir" / "msmarco-dl19-pool"))[:1500]
    engine = BM25(documents)
    for query in ("what is durable medical equipment consist of", "causes of pain", "gray"):
        expected = oracle(documents, query)
        (hits,) = engine.search([query], len(documents))
        scores = [score for _, score in expected]
        assert [hit.score for hit in hits] == pytest.approx(scores, abs=1e-6)


def test_effectiveness_on_judged_queries(pool, shared_data):
    folder = shared_data / "ir" / "msmarco-dl19-pool"
    grades: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels.txt").read_text().splitlines():
        query_id, _, doc_id, grade = line.split()
        grades.setdefault(query_id, {})[doc_id] = int(grade)
    queries = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    discounts = 1 / np.log2(np.arange(2, 12))
    measured = []
    for query, hits in zip(queries, pool.search([q["text"] for q in queries], 10), strict=True):
        judged = grades[query["query_id"]]
        gains = [judged.get(hit.doc_id, 0) for hit in hits]
        ideal = sorted(judged.values(), reverse=True)[:10]
        measured.append(
            np.dot(gains, discounts[: len(gains)]) / np.dot(ideal, discounts[: len(ideal)])
        )
    assert np.mean(measured) == pytest.approx(0.474, abs=0.001)


def test_a_pickle_answers_alike_in_any_batch(pool):
    copy = pickle.loads(pickle.dumps(pool))
    queries = ["right pelvic pain", "goldfish", "of the", "who is robert gray"] * 3
    together = copy.search(queries, 20)
    assert together == pool.search(queries, 20)
    assert together == [pool.search([query], 20)[0] for query in queries]


def test_ranks_on_real_passages_are_the_places_in_the_answers(pool):
    targets = [hit.doc_id for hit in pool.search(["goldfish grow tank"], 10)[0]]
    terms = sorted(set(content_words(" ".join(map(pool.text, targets)))))[:40]
    queries = [f"{a} {b} {c}" for a, b, c in zip(terms, terms[3:], terms[7:], strict=False)]
    queries += [f"{terms[0]} {other}" for other in terms] + terms
    quick = pool.ranks(queries, targets, 100)
    assert quick.any()
    assert np.array_equal(quick, ranks_of(Plain(pool), queries, targets, 100))
