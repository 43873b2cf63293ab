"""The protocol: obfuscate, count, send, pool, re-rank; and when nothing may leave."""

from __future__ import annotations

import numpy as np
import pytest

from sottovoce import Obfuscator, defaults, load_space, mechanism
from sottovoce.collections import load_collection
from sottovoce.engines import BM25
from sottovoce.engines.base import Hit
from sottovoce.errors import PrivacyWarning, SottovoceError, UsageError
from sottovoce.ledger import BudgetError, Ledger
from sottovoce.mechanisms.cmp import CMP
from sottovoce.output_vocabularies import of_search
from sottovoce.search import fitted_to, laid_out_for
from sottovoce.search.private_search import PrivateSearch
from sottovoce.search.reranking import load_reranker
from sottovoce.text import TextPipeline

QUERY = "treatment for skin cancer"


class Stranger:
    """A remote engine that keeps what it hears."""

    name, remote, pause, most_queries = "a stranger", True, 0.0, None

    def __init__(self):
        self.heard = []

    def search(self, queries, depth):
        self.heard += queries
        return [
            [Hit("x", 2.0, "A title", "a snippet on cancer"), Hit(query, 1.0, query)][:depth]
            for query in queries
        ]


@pytest.fixture(scope="module")
def demo_engine():
    return BM25(load_collection("demo").documents)


@pytest.fixture(scope="module")
def light():
    return load_reranker("light")


@pytest.fixture
def cmp(default_space):
    return mechanism("cmp", space=default_space, epsilon=15)


def test_the_answer_is_found_without_sending_the_question(cmp, demo_engine, light):
    found = []
    for seed in range(5):
        search = PrivateSearch(Obfuscator(cmp, n=20, release="once", rng=seed), demo_engine, light)
        result = search.search(QUERY)
        assert len(result.hits) == 10
        assert [hit.rank for hit in result.hits] == list(range(1, 11))
        scores = [hit.score for hit in result.hits]
        assert scores == sorted(scores, reverse=True)
        assert result.spent == 15
        assert 0 < len(result.sent) <= 20
        assert result.pool > 100
        assert all(hit.snippet and hit.title for hit in result.hits)
        assert all(0 <= number < len(result.sent) for hit in result.hits for number in hit.found_by)
        assert result.words == 4
        assert result.seeded
        found.append("melanoma" in " ".join(hit.title.lower() for hit in result.hits))
    assert sum(found) >= 3


def test_hits_say_which_queries_found_them(cmp, light):
    engine = Stranger()
    result = PrivateSearch(Obfuscator(cmp, n=5), engine, light).search(QUERY)
    assert sorted(engine.heard) == sorted(result.sent)
    both = {hit.doc_id: hit.found_by for hit in result.hits}
    assert both["x"] == tuple(range(len(result.sent)))
    for number, query in enumerate(result.sent):
        if query in both:
            assert both[query] == (number,)


def test_words_said_aloud_are_counted(default_space, demo_engine, light):
    loud = Obfuscator(mechanism("cmp", space=default_space, epsilon=1000), n=1, rng=1)
    assert PrivateSearch(loud, demo_engine, light).search(QUERY).said_aloud == 4
    quiet = Obfuscator(mechanism("cmp", space=default_space, epsilon=1), n=1, rng=1)
    assert PrivateSearch(quiet, demo_engine, light).search(QUERY).said_aloud == 0


def test_a_seed_gives_the_same_search(cmp, demo_engine, light):
    def run():
        return PrivateSearch(Obfuscator(cmp, n=10, rng=3), demo_engine, light).search(QUERY)

    assert run().to_dict() == run().to_dict()


def test_a_seeded_search_of_a_stranger_is_warned_about(cmp, light):
    with pytest.warns(PrivacyWarning, match="protects nobody"):
        PrivateSearch(Obfuscator(cmp, rng=1), Stranger(), light)


# When nothing may leave


class Breaks(CMP):
    def draw(self, ids, draws):
        raise ValueError(f"{self.space.words(ids)} cannot be drawn")


def test_nothing_leaves_if_the_mechanism_fails(default_space, light):
    engine = Stranger()
    search = PrivateSearch(Obfuscator(Breaks(default_space, 10.0), n=5), engine, light)
    with pytest.raises(SottovoceError, match="nothing of them was released") as caught:
        search.search(QUERY)
    assert "cancer" not in repr(caught.value)
    assert not engine.heard


def test_nothing_leaves_if_a_word_must_be_known(cmp, light):
    from sottovoce import TextPipeline

    engine = Stranger()
    search = PrivateSearch(
        Obfuscator(cmp, n=5, pipeline=TextPipeline(unknown="error")), engine, light
    )
    with pytest.raises(SottovoceError):
        search.search("xqzzy cancer")
    assert not engine.heard


def test_what_the_mechanism_drew_is_sent_even_if_it_is_the_query_itself(default_space, light):
    """To refuse it would tell that the query is none of what is sent."""
    engine = Stranger()
    loud = Obfuscator(mechanism("cmp", space=default_space, epsilon=1000), n=3)
    assert PrivateSearch(loud, engine, light).search("Skin  Cancer").query_sent
    assert engine.heard == ["skin cancer"]
    with pytest.raises(TypeError, match="original"):
        PrivateSearch(loud, engine, light, original="refuse")


def test_nothing_leaves_if_the_engine_takes_fewer_queries(cmp, light, tmp_path):
    engine = Stranger()
    engine.most_queries = 3
    ledger = Ledger.open(tmp_path)
    search = PrivateSearch(Obfuscator(cmp, n=20), engine, light, ledger=ledger)
    with pytest.raises(UsageError, match="takes 3 queries"):
        search.search(QUERY)
    assert not engine.heard
    assert not ledger.entries()  # and nothing was charged


def test_the_ledger_counts_before_and_refuses_when_the_budget_is_spent(cmp, light, tmp_path):
    engine, ledger = Stranger(), Ledger.open(tmp_path)
    ledger.set_budget(per_text=30, total=None)
    obfuscator = Obfuscator(cmp, n=4, release="once")
    search = PrivateSearch(obfuscator, engine, light, ledger=ledger, fresh=True)
    for _ in range(2):
        search.search(QUERY)
    sent = len(engine.heard)
    with pytest.raises(BudgetError) as caught:
        search.search("Treatment FOR  skin cancer")
    assert "cancer" not in str(caught.value)
    assert len(engine.heard) == sent
    search.search("another question")
    (spent,) = ledger.spent(QUERY)
    assert spent.nats == 30


@pytest.mark.parametrize(
    "in_clear",
    [
        {"keep": frozenset({"cancer"})},
        {"unknown": "keep"},
        {"protect": "content"},
    ],
)
@pytest.mark.filterwarnings("ignore::sottovoce.errors.PrivacyWarning")
def test_nothing_leaves_in_clear_while_there_is_a_budget(cmp, light, tmp_path, in_clear):
    from sottovoce import TextPipeline

    engine, ledger = Stranger(), Ledger.open(tmp_path)
    ledger.set_budget(per_text=None, total=1e9)
    text = "treatment for xqzzy cancer"
    open_search, closed_search = (
        PrivateSearch(Obfuscator(cmp, n=4, pipeline=pipeline), engine, light, ledger=ledger)
        for pipeline in (TextPipeline(**in_clear), TextPipeline())
    )
    with pytest.raises(BudgetError, match="in clear") as caught:
        open_search.search(text)
    assert "xqzzy" not in str(caught.value)
    assert not engine.heard
    assert not ledger.entries()
    closed_search.search(text)
    ledger.set_budget(None, None)
    open_search.search(text)
    assert [record.in_clear > 0 for record in ledger.entries()] == [True, False]


def test_a_search_that_fails_underway_stays_counted(cmp, light, tmp_path):
    engine, ledger = Stranger(), Ledger.open(tmp_path)
    engine.search = lambda queries, depth: 1 / 0
    search = PrivateSearch(Obfuscator(cmp, n=4), engine, light, ledger=ledger)
    with pytest.raises(SottovoceError, match="ZeroDivisionError"):
        search.search(QUERY)
    (spent,) = ledger.spent()
    assert spent.nats == 60


def test_nothing_leaves_if_the_ledger_fails(cmp, light, tmp_path):
    engine, ledger = Stranger(), Ledger.open(tmp_path)
    for file in tmp_path.iterdir():
        file.write_bytes(b"not a database at all" * 100)
    with pytest.raises(SottovoceError):
        PrivateSearch(Obfuscator(cmp, n=4), engine, light, ledger=ledger).search(QUERY)
    assert not engine.heard


def without_marks(queries):
    return tuple(query.rstrip("?") for query in queries)


def test_words_sent_before_are_sent_as_before_and_cost_nothing(cmp, light, tmp_path):
    engine, ledger = Stranger(), Ledger.open(tmp_path)
    search = PrivateSearch(Obfuscator(cmp, n=6, release="once"), engine, light, ledger=ledger)
    first = search.search(QUERY)
    again = search.search(f"  {QUERY.upper()}? ")
    assert without_marks(again.sent) == first.sent
    assert (first.spent, again.spent) == (15, 0)
    assert again.recalled
    assert (first.recalled, first.fresh) == (False, False)
    assert any("counted before" in caveat for caveat in again.guarantee.caveats)
    other = search.search("divorce lawyer")
    assert other.sent != first.sent
    (spent,) = ledger.spent(QUERY)
    assert spent.nats == 15
    # Another text of the same words, and one with a new word.
    assert search.search("cancer for treatment").spent == 0
    assert search.search("divorce treatment cost").spent == 15


def test_fresh_draws_are_others_and_charged(cmp, light, tmp_path):
    engine, ledger = Stranger(), Ledger.open(tmp_path)
    fresh = PrivateSearch(Obfuscator(cmp, n=6), engine, light, ledger=ledger, fresh=True)
    results = [fresh.search(QUERY) for _ in range(2)]
    assert results[0].sent != results[1].sent
    assert [(result.spent, result.recalled, result.fresh) for result in results] == [
        (90, False, True)
    ] * 2
    (spent,) = ledger.spent(QUERY)
    assert spent.nats == 180


@pytest.mark.parametrize("seeded", [True, False])
def test_without_a_ledger_and_with_a_seed_nothing_is_remembered(
    cmp, light, tmp_path, demo_engine, seeded
):
    ledger = Ledger.open(tmp_path) if seeded else None
    obfuscator = Obfuscator(cmp, n=3, rng=1 if seeded else None)
    search = PrivateSearch(obfuscator, demo_engine, light, ledger=ledger)
    assert not search.remembers
    results = [search.search(QUERY) for _ in range(2)]
    assert [result.spent for result in results] == [45, 45]
    assert all(result.fresh for result in results)
    assert (results[0].sent == results[1].sent) == seeded


def test_it_is_said_when_chance_sends_the_query_itself(default_space, light, demo_engine):
    for epsilon, sent in ((1000, True), (1, False)):
        chosen = Obfuscator(mechanism("cmp", space=default_space, epsilon=epsilon), n=2, rng=1)
        result = PrivateSearch(chosen, demo_engine, light).search("Skin cancer")
        assert result.query_sent is sent


def test_a_failure_underway_says_that_it_was_counted(cmp, light, tmp_path):
    engine = Stranger()
    engine.search = lambda queries, depth: 1 / 0
    search = PrivateSearch(
        Obfuscator(cmp, n=2, release="once"), engine, light, ledger=Ledger.open(tmp_path)
    )
    with pytest.raises(SottovoceError, match=r"is counted \(15 nats\); another try costs nothing"):
        search.search(QUERY)


def test_what_was_answered_before_a_failure_is_shown_with_the_reason(cmp, light):
    engine = Stranger()
    engine.pause = 0.001
    answer = engine.search

    def fail_later(queries, depth):
        if len(engine.heard) >= 2:
            raise RuntimeError(queries)
        return answer(queries, depth)

    engine.search = fail_later
    result = PrivateSearch(Obfuscator(cmp, n=6), engine, light).search(QUERY)
    assert len(result.sent) == 3  # the one that failed may have been seen
    assert {number for hit in result.hits for number in hit.found_by} < {0, 1, 2}
    assert "only 2 of" in result.problem
    assert result.to_dict()["problem"] == result.problem


def test_a_wrong_number_of_hits_costs_nothing(cmp, light, tmp_path):
    engine, ledger = Stranger(), Ledger.open(tmp_path)
    for top in (0, -1):
        with pytest.raises(UsageError, match="at least one hit"):
            PrivateSearch(Obfuscator(cmp), engine, light, ledger=ledger).search(QUERY, top=top)
    assert not engine.heard
    assert not ledger.entries()


# Odd queries


@pytest.mark.parametrize("query", ["", "   ", "???", "xqzzy", "🙂 42", "лечение рака", "a" * 300])
def test_odd_queries_have_a_defined_result(cmp, demo_engine, light, query):
    result = PrivateSearch(Obfuscator(cmp, n=3, release="once"), demo_engine, light).search(query)
    assert all("xqzzy" not in sent and "лечение" not in sent for sent in result.sent)
    assert result.spent in (0, 15)


def test_an_engine_that_finds_nothing_is_no_error(cmp, light):
    engine = Stranger()
    engine.search = lambda queries, depth: [[] for _ in queries]
    result = PrivateSearch(Obfuscator(cmp, n=3), engine, light).search(QUERY)
    assert result.hits == ()
    assert result.pool == 0


def test_depth_and_top_bound_what_is_looked_at(cmp, demo_engine, light):
    search = PrivateSearch(Obfuscator(cmp, n=2, rng=1), demo_engine, light, depth=3)
    result = search.search(QUERY, top=2)
    assert result.pool <= 6
    assert len(result.hits) == 2
    with pytest.raises(UsageError, match="depth"):
        PrivateSearch(Obfuscator(cmp), demo_engine, light, depth=0)


def test_pooling_methods_change_the_pool_but_not_the_judge(cmp, demo_engine, light):
    ranked = [
        [
            h.doc_id
            for h in PrivateSearch(Obfuscator(cmp, n=8, rng=2), demo_engine, light, pooling=method)
            .search(QUERY)
            .hits
        ]
        for method in ("union", "rrf", "combsum")
    ]
    assert ranked[0] == ranked[1] == ranked[2]
    unranked = PrivateSearch(
        Obfuscator(cmp, n=8, rng=2), demo_engine, load_reranker("none"), pooling="rrf"
    )
    assert len(unranked.search(QUERY).hits) == 10
    assert np.all(np.diff([hit.score for hit in unranked.search(QUERY).hits]) <= 0)


def test_a_word_that_the_vectors_were_never_told_of_finds_its_documents():
    """*melanoma* at the default of a search: documents about it come first in 8 of 10 draws."""
    space = load_space(None)
    if space.encoder is None:
        pytest.skip("the default space was added without the strong encoder")
    documents = load_collection("demo").documents
    engine, reranker = BM25(documents), load_reranker("light")
    fitted = fitted_to(
        engine,
        mechanism("cmp", space=space, epsilon=defaults.SEARCH_EPSILON),
        lambda: space.with_output(of_search(space, documents, "demo")),
    )
    pipeline = laid_out_for(engine, TextPipeline(), fitted, drop_function_words=True)
    successes = 0
    for seed in range(10):
        obfuscator = Obfuscator(fitted, n=20, release="once", pipeline=pipeline, rng=seed)
        search = PrivateSearch(
            obfuscator, engine=engine, reranker=reranker, depth=defaults.DEMO_DEPTH
        )
        hits = search.search("melanoma survival rate stage 3").hits[:3]
        successes += any("melanoma" in f"{hit.title} {hit.snippet}".casefold() for hit in hits)
    assert successes >= 8
