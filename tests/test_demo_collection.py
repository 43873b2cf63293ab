"""The collection that comes with sottovoce: enough of it, balanced, and readable."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

import sottovoce
from sottovoce.collections import demo_log, load_collection
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.text.words import content_words, stems

FOLDER = Path(sottovoce.__file__).parent / "demo"


@pytest.fixture(scope="module")
def demo():
    return load_collection("demo")


def test_there_is_enough_of_it(demo):
    assert len(demo.documents) >= 600
    assert len(demo.queries) >= 60
    assert len(demo_log()) >= 5000
    lines = (FOLDER / "queries.jsonl").read_text("utf-8").splitlines()
    domains = Counter(json.loads(line)["domain"] for line in lines)
    wanted = "health money law work politics faith sexuality family addiction immigration security"
    assert {*wanted.split(), "mental health"} <= set(domains)
    assert max(domains.values()) <= len(demo.queries) / 5


def test_each_query_has_good_partial_and_confusable_answers(demo):
    assert set(demo.judgments) == set(demo.queries)
    ids = {document.doc_id for document in demo.documents}
    for grades in demo.judgments.values():
        assert Counter(grades.values()) == {3: 3, 2: 2, 1: 2, 0: 2}
        assert set(grades) <= ids
    judged = Counter(doc for grades in demo.judgments.values() for doc in grades)
    assert max(judged.values()) == 1
    assert len(ids) - len(judged) >= 100  # everyday subjects


def test_confusable_passages_share_words_with_their_query(demo):
    texts = {document.doc_id: f"{document.title} {document.text}" for document in demo.documents}
    sharing = []
    for query_id, grades in demo.judgments.items():
        wanted = set(stems(content_words(demo.queries[query_id])))
        for doc_id, grade in grades.items():
            if grade == 0:
                sharing.append(bool(wanted & set(stems(content_words(texts[doc_id])))))
    assert sum(sharing) / len(sharing) > 0.95


def test_passages_are_short_and_different(demo):
    lengths = [len(document.text.split()) for document in demo.documents]
    assert min(lengths) >= 45
    assert max(lengths) <= 95
    sentences = Counter(
        sentence.strip() for document in demo.documents for sentence in document.text.split(". ")
    )
    assert max(sentences.values()) == 1
    assert len({document.title for document in demo.documents}) == len(demo.documents)
    # Ids tell nothing: neither relevant nor everyday passages come first.
    grades = {doc: g for per_query in demo.judgments.values() for doc, g in per_query.items()}
    first = [document.doc_id in grades for document in demo.documents[:200]]
    assert 0.6 < sum(first) / 200 < 0.95


def test_the_log_is_varied_and_holds_the_queries(demo):
    log = demo_log()
    assert len(set(log)) == len(log)
    assert set(demo.queries.values()) <= set(log)
    lengths = Counter(len(query.split()) for query in log)
    assert set(range(1, 9)) <= set(lengths)
    assert max(lengths.values()) < 0.4 * len(log)
    assert all(query == query.lower() for query in log)


def test_a_folder_is_a_collection(tmp_path):
    (tmp_path / "corpus.jsonl").write_text('{"doc_id": "a", "text": "one"}\n')
    bare = load_collection(tmp_path)
    assert [document.text for document in bare.documents] == ["one"]
    assert not bare.queries
    assert not bare.judgments
    (tmp_path / "queries.jsonl").write_text('{"query_id": "1", "text": "what"}\n')
    (tmp_path / "qrels.txt").write_text("1 0 a 2\n1 0 b 0\n")
    whole = load_collection(tmp_path)
    assert whole.queries == {"1": "what"}
    assert whole.judgments == {"1": {"a": 2, "b": 0}}
    (tmp_path / "qrels.txt").write_text("1 0 a high\n")
    with pytest.raises(SottovoceError, match=r"line 1 of .*qrels.txt is not 'query 0 document"):
        load_collection(tmp_path)


def test_what_is_not_there_is_said(monkeypatch):
    with pytest.raises(UsageError, match="use demo, a folder"):
        load_collection("no-such-folder")
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(SottovoceError, match="pip install ir-datasets"):
        load_collection("ir_datasets:vaswani")


def test_shared_collections_can_be_read(shared_data):
    cranfield = load_collection(shared_data / "ir" / "cranfield")
    assert len(cranfield.documents) == 1400
    assert len(cranfield.queries) == 225
    assert cranfield.judgments
