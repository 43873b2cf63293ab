"""Which voice speaks where none is named: one rule, and everything that says so."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

import pytest

pytest.importorskip("fastapi")

from service_client import QUERY, SETTINGS

from sottovoce import defaults
from sottovoce.app.settings import Settings
from sottovoce.app.usual_voice import LEAST_COMPANY, usual_voice
from sottovoce.collections import demo_log
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.guarantees import Guarantee
from sottovoce.ledger import Entry, Ledger
from sottovoce.pools import Pool
from sottovoce.text import folded_text


@pytest.mark.parametrize(
    ("settings", "own_documents", "can_hide", "voice", "reason"),
    [
        (Settings(), False, True, "in-company", "on what this collection is about"),
        (Settings(log="queries.tsv"), False, True, "in-company", "you named a public query log"),
        (Settings(log="queries.tsv"), True, True, "in-company", "you named a public query log"),
        (Settings(collection="articles", log="q.tsv"), False, True, "in-company", "you named"),
        (Settings(collection="articles"), False, True, "murmur", "on other things"),
        (Settings(), True, True, "murmur", "on other things"),
        (Settings(log="queries.tsv"), False, False, "murmur", "no pool to hide in"),
        (Settings(), False, False, "murmur", "no pool to hide in"),
        (Settings(pool="medical"), True, True, "in-company", "you named a public pool"),
        (Settings(log="q.tsv", pool="demo"), True, True, "murmur", "on other things"),
        (Settings(pool="short"), True, False, "murmur", "pool is too small to hide in"),
    ],
)
def test_in_company_is_usual_where_its_public_queries_fit(
    settings, own_documents, can_hide, voice, reason
):
    usual = usual_voice(
        settings, own_documents=own_documents, can_hide=can_hide, queries=defaults.VARIANTS
    )
    assert usual.id == voice
    assert reason in usual.why
    murmurs = voice == "murmur"
    assert ("--pool" in usual.why) == murmurs
    assert ("--log" in usual.why) == (murmurs and settings.pool is None)


def test_nothing_is_said_to_have_been_measured_that_may_not_have_been():
    """With another encoder the figures of the package are not of this company."""
    usual = usual_voice(Settings(), own_documents=False, can_hide=True, queries=defaults.VARIANTS)
    assert not any(word in usual.why for word in ("found", "measured", "less", "more"))


def test_page_and_requests_have_the_same_usual_voice(client):
    told = client.get("/v1/voices").json()
    assert told["default"] == "in-company"
    why = usual_voice(SETTINGS, own_documents=False, can_hide=True, queries=defaults.VARIANTS).why
    assert told["why_default"] == why
    (usual,) = (voice for voice in told["voices"] if voice["id"] == told["default"])
    assert client.post("/v1/setting", json={}).json()["spec"] == usual["spec"]
    answered = client.post("/v1/search", json={"query": QUERY}).json()
    log = set(map(folded_text, demo_log()))
    assert answered["mechanism"] == usual["spec"]
    assert all(folded_text(sent) in log for sent in answered["sent"])


def test_elsewhere_requests_without_a_voice_murmur(client, monkeypatch):
    parts = client.app.state.service.parts
    murmur = client.post("/v1/setting", json={"voice": "murmur"}).json()["spec"]
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(parts, "settings", replace(SETTINGS, collection="articles"))
        assert parts.usual_voice().id == "murmur"
        assert client.post("/v1/setting", json={}).json()["spec"] == murmur
    monkeypatch.setattr(parts, "pool", lambda: Pool(["one", "two"], "light"))
    monkeypatch.setattr(parts, "_mechanisms", OrderedDict())
    assert client.get("/v1/voices").json()["default"] == "murmur"
    assert client.post("/v1/setting", json={}).json()["spec"] == murmur


def test_in_company_has_the_decoys_that_search_would_have(client, monkeypatch):
    parts = client.app.state.service.parts
    lines = [f"public query number {number}" for number in range(200)]
    monkeypatch.setattr(parts, "_mechanisms", OrderedDict())
    for weights, decoys in ((range(1, 201), "popular"), ([1] * 200, "sensitive")):
        pool = Pool(lines, "light", weights=weights)
        parts._mechanisms.clear()
        monkeypatch.setattr(parts, "pool", lambda pool=pool: pool)
        for body in ({"voice": "in-company"}, {"one_in": 20}):
            spec = client.post("/v1/setting", json=body).json()["spec"]
            assert spec == f"cover:k=20,p=0.9,decoys={decoys}"


@pytest.mark.parametrize("queries", [2, 5, LEAST_COMPANY - 1])
def test_a_small_company_is_not_usual_and_says_why_it_is_small(queries):
    for settings in (Settings(), Settings(log="queries.tsv")):
        usual = usual_voice(settings, own_documents=False, can_hide=True, queries=queries)
        assert usual.id == "murmur"
        assert f"of {queries} only, because this engine takes at most {queries}" in usual.why
    enough = usual_voice(Settings(), own_documents=False, can_hide=True, queries=LEAST_COMPANY)
    assert enough.id == "in-company"


def test_an_engine_that_takes_few_queries_makes_a_small_company(client, monkeypatch):
    parts = client.app.state.service.parts
    for most, usual in ((5, "murmur"), (12, "in-company")):
        monkeypatch.setattr(parts.engine(), "most_queries", most)
        told = client.get("/v1/voices").json()
        assert told["default"] == usual
        (company,) = (voice for voice in told["voices"] if voice["id"] == "in-company")
        size = f"of {most} only, because this engine takes at most {most} queries a search"
        assert size in company["line"]
        assert company["spec"].startswith(f"cover:k={most},")
        (murmur,) = (voice for voice in told["voices"] if voice["id"] == "murmur")
        assert "only" not in murmur["line"]
        unnamed = client.post("/v1/setting", json={}).json()["spec"]
        assert unnamed == (murmur if usual == "murmur" else company)["spec"]


def test_who_may_know_the_ledger_is_told_that_a_pool_is_their_own(client, monkeypatch):
    parts = client.app.state.service.parts
    own = [f"my own query {number}" for number in range(6)]
    for text in own:
        promise = Guarantee("metric", 1.0, "euclidean")
        entry = Entry(text, ("a",), "cmp:epsilon=1", "once", promise, 1, "bm25")
        Ledger.open().charge(entry)
    assert client.get("/v1/voices").json()["own_queries"] is None
    monkeypatch.setattr(parts, "public_queries", lambda: Pool(own, "light"))
    told = client.get("/v1/voices")
    assert "6 of the 6 strings of this pool are texts" in told.json()["own_queries"]
    assert own[0] not in told.text
    stranger = client.get("/v1/voices", headers={"X-Sottovoce-Token": "another-token"})
    assert stranger.json()["own_queries"] is None
    assert stranger.json()["default"] == told.json()["default"]
    monkeypatch.setattr(parts, "offers_company", lambda: False)
    murmuring = client.get("/v1/voices").json()
    assert murmuring["own_queries"] is None, "none of them leaves"


def test_a_query_alone_is_no_company(client, monkeypatch):
    parts = client.app.state.service.parts
    monkeypatch.setattr(type(parts), "usual_variants", 1)
    assert not parts.offers_company()
    with pytest.raises(UsageError, match="one query a search, and alone none is hidden; name"):
        parts.require_company("name another")


def test_what_cannot_be_loaded_is_no_reason_to_speak_in_another_voice(client, monkeypatch):
    """A pool whose vectors are another encoder's, say."""
    parts = client.app.state.service.parts

    def fails():
        raise SottovoceError("the encoder of the pool changed")

    monkeypatch.setattr(parts, "pool", fails)
    monkeypatch.setattr(parts, "_mechanisms", OrderedDict())
    refused = client.post("/v1/search", json={"query": QUERY})
    assert refused.status_code >= 400
    assert "the encoder of the pool changed" in refused.json()["error"]
    assert Ledger.open().entries() == []
    assert "the encoder of the pool changed" in parts.problems()
    murmur = client.post("/v1/search", json={"query": QUERY, "voice": "murmur"})
    assert murmur.status_code == 200


def test_a_pool_with_strings_that_no_engine_is_sent_is_no_company(client, monkeypatch):
    parts = client.app.state.service.parts
    assert parts.offers_company()
    pool = Pool([*map(str, range(50)), "long " * 401], "light")
    monkeypatch.setattr(parts, "pool", lambda: pool)
    monkeypatch.setattr(parts, "_mechanisms", OrderedDict())
    assert not parts.offers_company()


def test_a_request_may_say_one_in_how_many_instead(client):
    body = {"query": QUERY, "one_in": 5, "most_queries": 12}
    said = client.post("/v1/setting", json={"one_in": 5, "set": {"decoys": "uniform"}}).json()
    assert said["spec"] == "cover:k=5,p=0.9"
    answered = client.post("/v1/search", json=body).json()
    assert answered["mechanism"] == "cover:k=5,p=0.9,m=2,decoys=sensitive"
    assert 5 <= len(answered["sent"]) <= 10
    for wrong in (
        {"one_in": 20, "most_queries": 5},
        {"most_queries": 5},
        {"one_in": 20, "n": 5},
        {"one_in": 20, "voice": "murmur"},
    ):
        refused = client.post("/v1/search", json={"query": QUERY, **wrong})
        assert refused.status_code == 422
        assert "skin" not in refused.text


@pytest.mark.parametrize("path", ["setting", "preview", "search", "risk"])
@pytest.mark.parametrize("name", ["k", "m", "p", "k_", "p_", "subjects", "anything"])
def test_what_one_in_promises_cannot_be_set_otherwise(client, path, name):
    body = {} if path == "setting" else {"query": QUERY}
    more = {"variants": ["football"]} if path == "risk" else {}
    said = {"one_in": 20, "set": {name: 1, "decoys": "uniform"}}
    refused = client.post(f"/v1/{path}", json={**body, **more, **said})
    assert refused.status_code == 422
    assert "name the mechanism by its spec" in refused.json()["error"]
    assert not Ledger.open().entries()


def test_by_its_spec_a_mechanism_is_taken_as_it_is(client):
    named = client.post("/v1/setting", json={"mechanism": "cover:k=20,p=1"}).json()
    assert named["guarantee"]["notion"] == "none"
