"""Which voice speaks where none is named: one rule, and everything that says so."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

import pytest

pytest.importorskip("fastapi")

from service_client import QUERY, SETTINGS

from sottovoce.app.settings import Settings
from sottovoce.app.usual_voice import usual_voice
from sottovoce.collections import demo_log
from sottovoce.pools import Pool
from sottovoce.text import folded_text


@pytest.mark.parametrize(
    ("settings", "own_documents", "can_hide", "voice", "reason"),
    [
        (Settings(), False, True, "in-company", "on this collection"),
        (Settings(log="queries.tsv"), False, True, "in-company", "you named a public query log"),
        (Settings(log="queries.tsv"), True, True, "in-company", "you named a public query log"),
        (Settings(collection="articles", log="q.tsv"), False, True, "in-company", "you named"),
        (Settings(collection="articles"), False, True, "murmur", "on other things"),
        (Settings(), True, True, "murmur", "on other things"),
        (Settings(log="queries.tsv"), False, False, "murmur", "no pool to hide in"),
        (Settings(), False, False, "murmur", "no pool to hide in"),
    ],
)
def test_in_company_is_usual_where_its_public_queries_fit(
    settings, own_documents, can_hide, voice, reason
):
    usual = usual_voice(settings, own_documents=own_documents, can_hide=can_hide)
    assert usual.id == voice
    assert reason in usual.why
    assert ("--log" in usual.why) == (voice == "murmur")


def test_page_and_requests_have_the_same_usual_voice(client):
    told = client.get("/v1/voices").json()
    assert told["default"] == "in-company"
    assert told["why_default"] == usual_voice(SETTINGS, own_documents=False, can_hide=True).why
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


def test_a_query_alone_is_no_company(client, monkeypatch):
    parts = client.app.state.service.parts
    monkeypatch.setattr(type(parts), "usual_variants", 1)
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
