"""Query inference by answers: what variants find gives the query away, whatever their words."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from sottovoce.cli import app
from sottovoce.collections import Document
from sottovoce.engines import BM25
from sottovoce.errors import UsageError
from sottovoce.mechanisms import Mechanism
from sottovoce.privacy import QueryLog, Released, attack
from sottovoce.privacy.attacks.by_answers import AnswersAttacker

TEXTS = [
    "melanoma skin tumour dermatologist excision",
    "divorce lawyer custody alimony court",
    "mortgage arrears repossession bank debt",
    "football world cup final stadium",
    "bread flour yeast oven crust",
]
DOCUMENTS = [Document(str(number), "", text) for number, text in enumerate(TEXTS)]
QUERIES = "melanoma skin,divorce lawyer,mortgage arrears,football cup,bread oven"
LOG = QueryLog(QUERIES.split(","))


@pytest.fixture
def engine():
    return BM25(DOCUMENTS)


def test_a_query_is_named_by_variants_that_share_none_of_its_words(engine):
    """As fea makes them."""
    release = Released("1", "melanoma skin", ("dermatologist excision", "tumour"))
    other = Released("2", "bread oven", ("yeast crust", "flour"))
    inference = AnswersAttacker(engine, LOG).infer([release, other])
    assert [query.rank for query in inference.queries] == [1.0, 1.0]
    assert inference.lazy.value == 1
    assert inference.attack == "answers (bm25)"
    assert "what the engine bm25 finds" in inference.knows


def test_what_finds_nothing_or_something_else_names_nothing(engine):
    nothing = Released("1", "melanoma skin", ("zzz", "qqq"))
    elsewhere = Released("2", "melanoma skin", ("stadium", "final"))
    none_seen = Released("3", "melanoma skin", ())
    inference = AnswersAttacker(engine, LOG).infer([nothing, elsewhere, none_seen])
    assert inference.queries[0].ties == len(LOG.queries) - 1
    assert inference.queries[1].rank > 1
    assert inference.unreleased == 1


def test_scores_are_the_cosines_of_what_is_found(engine):
    """By hand: one document a text, so the only query that finds the variant's has cosine 1."""
    release = Released("1", "mortgage arrears", ("bank debt",))
    attacker = AnswersAttacker(engine, LOG)
    assert attacker._rows[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert (attacker._rows[:, 1:] == -1).all()
    assert attacker._idf == pytest.approx(np.full(5, np.log(5)))
    assert attacker.infer([release]).queries[0].rank == 1


def test_documents_that_no_query_of_the_log_finds_tell_nothing():
    apart = [Document("x", "", "zebra"), Document("y", "", "giraffe"), Document("z", "", "okapi")]
    release = Released("1", "melanoma skin", ("zebra", "giraffe", "okapi", "tumour"))
    inference = AnswersAttacker(BM25([*DOCUMENTS, *apart]), LOG).infer([release])
    assert inference.queries[0].rank == 1


def test_a_query_that_finds_everything_is_not_preferred(engine):
    """Its vector is longer; only its direction counts."""
    everything = " ".join(text.split()[0] for text in TEXTS)
    log = QueryLog([everything, *LOG.queries])
    release = Released("1", "melanoma skin", ("tumour", "excision"))
    (query,) = AnswersAttacker(engine, log).infer([release]).queries
    assert (query.rank, query.ties) == (1.0, 0)


def test_an_original_that_the_log_lacks_is_put_beside_it(engine):
    release = Released("1", "melanoma tumour", ("dermatologist excision",))
    attacker = AnswersAttacker(engine, LOG, ["melanoma tumour"])
    inference = attacker.infer([release])
    assert (inference.added, inference.log) == (1, len(LOG) + 1)
    # Both queries on melanoma find the same document.
    assert (inference.queries[0].rank, inference.queries[0].ties) == (1.5, 1)
    with pytest.raises(UsageError, match="log"):
        attacker.infer([Released("2", "another one", ("excision",))])


def test_variants_are_seen_one_after_the_other(engine):
    release = Released("1", "melanoma skin", ("stadium final", "tumour", "excision dermatologist"))
    attacker = AnswersAttacker(engine, LOG)
    assert attacker.infer([release], 1).queries[0].rank > 1
    assert attacker.infer([release], 3).queries[0].rank == 1


def test_the_attack_has_it_with_an_engine_and_for_mechanisms_that_ask_one(engine, monkeypatch):
    releases = [Released("1", "melanoma skin", ("tumour", "dermatologist"))]
    report = attack(releases, log=LOG, engine=engine, attacks=["answers"])
    assert [inference.attack for _, inference in report.inferences] == ["answers (bm25)"] * 2
    assert attack(releases, log=LOG, attacks=["means"], space=None).inferences
    monkeypatch.setattr(Mechanism, "engine", engine, raising=False)
    from sottovoce import mechanism
    from sottovoce.spaces.space import WordSpace

    space = WordSpace.from_arrays(["skin", "tumour"], [[0.0], [1.0]])
    report = attack(releases, log=LOG, mechanism=mechanism("cmp", space=space), attacks=["answers"])
    assert {inference.attack for _, inference in report.inferences} == {"answers (bm25)"}


def test_a_remote_engine_is_never_asked(engine, monkeypatch):
    monkeypatch.setattr(engine, "remote", True, raising=False)
    with pytest.raises(UsageError, match="whole log"):
        attack([Released("1", "melanoma skin", ("a",))], log=LOG, engine=engine)


def test_the_command(tmp_path):
    corpus, log = tmp_path / "corpus.jsonl", tmp_path / "log.txt"
    corpus.write_text(
        "\n".join(json.dumps({"doc_id": d.doc_id, "text": d.text}) for d in DOCUMENTS)
    )
    log.write_text("\n".join(LOG.queries))
    theirs = tmp_path / "theirs.csv"
    theirs.write_text("id,text,obfuscatedText\n1,melanoma skin,tumour\n1,melanoma skin,excision\n")
    options = ["--log", str(log), "--corpus", str(corpus), "--encoder", "light", "--json"]
    done = CliRunner().invoke(app, ["attack", str(theirs), *options])
    assert done.exit_code == 0, done.exception
    named = {
        inference["by"]: inference["risks"]["lazy"]["value"]
        for inference in json.loads(done.stdout)["inferences"]
    }
    assert named["answers (bm25)"] == 1
    refused = CliRunner().invoke(app, ["attack", str(theirs), "--corpus", str(corpus)])
    assert "give a --log" in str(refused.exception)
