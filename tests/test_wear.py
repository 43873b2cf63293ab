"""A subject on which many different queries left in company is worn out, and that is said."""

from __future__ import annotations

import json

import pytest
from command_line import as_text, run_command

from sottovoce import Obfuscator, mechanism
from sottovoce.collections import load_collection
from sottovoce.engines import BM25
from sottovoce.ledger import Ledger
from sottovoce.pools import load_pool
from sottovoce.search import PrivateSearch, load_reranker, worn_out

ON_ONE_SUBJECT = [
    "treatment for skin cancer",
    "melanoma survival rate",
    "is a changing mole cancer",
    "immunotherapy for melanoma how many infusions",
]
ON_OTHERS = ["debt advice", "potato soup recipe", "how to fix a bicycle"]


@pytest.fixture(scope="module")
def pool():
    return load_pool("demo", "light")


@pytest.fixture(scope="module")
def engine():
    return BM25(load_collection("demo").documents)


@pytest.fixture
def ask(pool, engine, tmp_path):
    """Search, and what is said then; each time with a ledger opened anew, as after a restart."""

    def ask(query, spec="cover:k=5", **how):
        search = PrivateSearch(
            Obfuscator(mechanism(spec, pool=pool), **how),
            engine,
            load_reranker("none"),
            Ledger.open(tmp_path / "ledger"),
        )
        return worn_out(search, search.search(query).company)

    return ask


def test_a_subject_wears_out_with_different_queries_on_it_and_the_ledger_remembers(ask, pool):
    places = mechanism("cover:k=5", pool=pool).representatives(ON_ONE_SUBJECT)
    assert len(set(places.tolist())) == 4
    sentences = [ask(query) for query in ON_ONE_SUBJECT]
    assert sentences[:2] == [None, None]
    assert "worn out" in sentences[2]
    assert "3 different companies" in sentences[2]
    assert "4 different companies" in sentences[3]
    assert "4 different companies" in ask(ON_ONE_SUBJECT[0].upper())
    assert [ask(query) for query in ON_OTHERS] == [None] * 3


def test_repeating_a_query_and_asking_of_other_things_wears_nothing_out(ask):
    assert [ask(query) for query in ON_ONE_SUBJECT[:1] * 5 + ON_OTHERS] == [None] * 8


def test_searches_that_share_a_company_wear_it_out_once(ask, pool):
    """With company by subject, queries on one subject of the pool have one company."""
    spec = "cover-subjects:k=5,subjects=20"
    cover = mechanism(spec, pool=pool)
    places = cover.representatives(ON_ONE_SUBJECT).tolist()
    companies = len({cover.decided_by(place) for place in places})
    assert companies < len(ON_ONE_SUBJECT)
    *_, last = [ask(query, spec) for query in ON_ONE_SUBJECT]
    assert (last is not None) == (companies >= 3)


def test_what_has_no_company_or_is_not_remembered_says_nothing(ask, toy, engine, tmp_path):
    assert [ask(query, rng=1) for query in ON_ONE_SUBJECT] == [None] * 4
    words = Obfuscator(mechanism("cmp", space=toy, epsilon=5), n=2)
    ledger = Ledger.open(tmp_path / "ledger")
    search = PrivateSearch(words, engine, load_reranker("none"), ledger)
    assert worn_out(search, search.search(ON_ONE_SUBJECT[0]).company) is None


def test_the_command_says_it(home, tmp_path):
    cover = ("--cover", "5", "--pool", "demo", "--encoder", "light", "--rerank", "none")

    def run(query, *options, code=0):
        done = as_text(run_command("search", query, *cover, *options, home=home, columns=100))
        assert done.returncode == code, done.stderr
        return done

    first, second, third, fourth = ON_ONE_SUBJECT
    assert json.loads(run(first, "--json").stdout)["worn_out"] is None
    assert "worn out" not in run(second).stderr
    sentence = "This subject is worn out: by the ledger, queries on it have had 3 different"
    assert sentence in run(third).stderr
    assert "3 different companies" in json.loads(run(first, "--json").stdout)["worn_out"]
    # Before anything is sent: an engine that is not there got nothing.
    nobody = tmp_path / "nobody.toml"
    keys = 'name = "n"', 'results = "r"', 'id = "i"', 'title = "t"'
    nobody.write_text("\n".join([*keys, 'url = "http://127.0.0.1:9/search?q={query}"']))
    assert "worn out" in run(fourth, "--engine", f"http:{nobody}", code=1).stderr
