"""Searches and previews of the service: what is sent, counted and remembered."""

from __future__ import annotations

import json
import stat
import time
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("fastapi")

from service_client import QUERY, SETTINGS, events

from sottovoce import defaults
from sottovoce.app.loaded import LoadedParts
from sottovoce.app.schemas import SEARCH_VOICE, ProtectionBody, SearchBody
from sottovoce.app.settings import Settings
from sottovoce.cli.cover_options import CoverOptions
from sottovoce.cli.options import (
    EngineOptions,
    LayoutOptions,
    MechanismOptions,
    ResourceOptions,
    TextOptions,
)
from sottovoce.cli.search import SearchOptions, _obfuscator, _prepare
from sottovoce.engines.base import EngineError
from sottovoce.ledger import Ledger


def test_search_answers_what_the_command_does_and_what_is_left(client):
    client.put("/v1/ledger/budget", json={"per_text": 25, "total": None})
    found = client.post("/v1/search", json={"query": QUERY, "voice": "murmur", "top": 3}).json()
    assert found["query"] == QUERY
    assert (found["mechanism"], found["release"]) == ("cmp:epsilon=7.5,prior=0.5", "once")
    assert len(found["sent"]) == 20
    assert [hit["rank"] for hit in found["hits"]] == [1, 2, 3]
    assert (found["spent"], found["left"]) == (7.5, 17.5)
    assert found["words"] == 4
    assert all(len(line.split()) == 3 for line in found["sent"])
    assert Ledger.open().spent()[0].nats == 7.5


def test_a_murmur_is_a_search_of_the_command_line_without_any_settings(client):
    typed = SearchOptions(rerank=SETTINGS.reranker, ledger=False)
    obfuscator = _obfuscator(
        typed, CoverOptions(), MechanismOptions(), ResourceOptions(), TextOptions(), None
    )
    command = _prepare(typed, obfuscator, LayoutOptions(), drop_function_words=True)
    parts = LoadedParts(replace(SETTINGS, space=None))
    protection = parts.protection(ProtectionBody(voice=SEARCH_VOICE))
    service = parts.private_search(protection, Ledger.open())
    assert protection.obfuscator == command.obfuscator
    for what in ("depth", "pooling", "fresh"):
        assert getattr(service, what) == getattr(command, what)
    assert command.depth == defaults.DEMO_DEPTH
    assert (service.engine.name, service.reranker.name) == ("bm25", command.reranker.name)
    assert SearchBody(query="x").top == typed.top
    assert Settings().engine == EngineOptions().engine
    assert (Settings().collection, Settings().reranker) == (
        typed.collection,
        EngineOptions().rerank,
    )


@pytest.mark.parametrize(
    ("collection", "remote", "depth"), [("demo", False, 10), ("demo", True, 100), ("a", False, 100)]
)
def test_few_documents_are_taken_of_the_small_demo_collection_alone(collection, remote, depth):
    assert defaults.usual_depth(collection, remote=remote) == depth


def test_a_stream_tells_each_step_and_ends_with_the_result(in_order):
    told = events(in_order, "/v1/search", {"query": QUERY, "measure": True, "n": 3})
    steps = [each["step"] for each in told]
    assert list(dict.fromkeys(steps)) == [
        *("obfuscating", "sending", "reranking", "measuring", "done"),
    ]
    assert {"step": "sending", "done": 3, "of": 3} in told
    assert len(told[-1]["result"]["sent"]) == 3
    assert told[-1]["result"]["risk"]["words"]["of"] == 3


def test_a_preview_is_counted_at_once_and_sent_as_it_is_without_further_cost(client):
    drawn = client.post("/v1/preview", json={"query": QUERY, "voice": "whisper"}).json()
    assert (drawn["spent"], len(drawn["variants"])) == (5.0, 20)
    assert Ledger.open().spent()[0].nats == 5
    body = {"query": QUERY, "voice": "whisper", "preview": drawn["preview"]}
    found = client.post("/v1/search", json=body).json()
    assert found["sent"] == list(dict.fromkeys(drawn["variants"]))
    assert found["spent"] == 5.0
    assert Ledger.open().spent()[0].nats == 5
    asked = {"query": QUERY, "voice": "whisper"}
    again = client.post("/v1/preview", json=asked).json()
    assert again["variants"] == drawn["variants"]
    assert Ledger.open().spent()[0].nats == 5
    fresh = client.post("/v1/preview", json={**asked, "fresh": True}).json()
    assert fresh["variants"] != drawn["variants"]
    assert Ledger.open().spent()[0].nats == 10


def test_a_preview_is_good_for_its_own_query_and_settings_only(client):
    drawn = client.post("/v1/preview", json={"query": QUERY, "voice": "whisper"}).json()
    for other in (
        {"query": "divorce lawyer", "voice": "whisper"},
        {"query": QUERY, "voice": "murmur"},
        {"query": QUERY, "epsilon": 5.0, "n": 19},
    ):
        answer = client.post("/v1/search", json={**other, "preview": drawn["preview"]})
        assert (answer.status_code, answer.json()["kind"]) == (409, "preview")
    answer = client.post("/v1/search", json={"query": QUERY, "preview": "unknown"})
    assert (answer.status_code, answer.json()["kind"]) == (404, "preview")
    assert Ledger.open().spent()[0].nats == 5


@pytest.mark.parametrize("query", ["cafe\u0301 near me", "\uf900 skin", "  skin  cancer "])
def test_a_preview_is_found_again_by_its_query_however_that_is_written(client, query):
    drawn = client.post("/v1/preview", json={"query": query, "n": 2}).json()
    body = {"query": query, "n": 2, "top": 1, "preview": drawn["preview"]}
    assert client.post("/v1/search", json=body).status_code == 200


def test_previews_expire_and_are_bounded(client, monkeypatch):
    previews = client.app.state.service.previews
    monkeypatch.setattr(previews, "most", 2)
    ids = [
        client.post("/v1/preview", json={"query": QUERY, "n": 2}).json()["preview"]
        for _ in range(3)
    ]
    assert len(previews) == 2
    body = {"query": QUERY, "n": 2, "top": 1}
    statuses = [client.post("/v1/search", json={**body, "preview": each}) for each in ids]
    assert [each.status_code for each in statuses] == [404, 200, 200]
    later = time.monotonic() + previews.lifetime + 1
    monkeypatch.setattr(previews, "_clock", lambda: later)
    assert client.post("/v1/search", json={**body, "preview": ids[2]}).status_code == 404


def test_words_are_remembered_and_sent_again_for_nothing(client):
    body = {"query": QUERY, "n": 4}
    first, second = (client.post("/v1/search", json=body).json() for _ in range(2))
    assert first["sent"] == second["sent"]
    assert (first["recalled"], second["recalled"]) == (False, True)
    drawn = client.post("/v1/preview", json={**body, "query": f"{QUERY}?"}).json()
    assert (drawn["recalled"], drawn["spent"]) == (True, 0.0)
    assert Ledger.open().spent()[0].nats == first["spent"]
    # A voice says nothing about it.
    for how in ({"n": 4}, {"voice": SEARCH_VOICE}):
        fresh = client.post("/v1/search", json={"query": QUERY, "fresh": True, **how}).json()
        assert fresh["sent"] != first["sent"]
        assert (fresh["recalled"], fresh["fresh"]) == (False, True)
        assert fresh["spent"] == first["spent"]


def test_a_spent_budget_refuses_and_says_what_is_left(client):
    client.put("/v1/ledger/budget", json={"per_text": 12, "total": None})
    body = {"query": QUERY, "voice": SEARCH_VOICE}
    assert client.post("/v1/preview", json=body).status_code == 200
    assert client.post("/v1/search", json=body).status_code == 200
    fresh = {**body, "fresh": True}
    for path in ("search", "preview"):
        answer = client.post(f"/v1/{path}", json=fresh)
        assert answer.status_code == 409
        assert answer.json()["kind"] == "budget"
        assert (answer.json()["cost"], answer.json()["left"]) == (7.5, 4.5)
        assert "skin" not in answer.text
    assert events(client, "/v1/search", fresh)[-1]["kind"] == "budget"


def test_an_engine_that_is_down_is_said_so_and_the_release_stays_counted(client, monkeypatch):
    engine = client.app.state.service.parts.engine()

    def down(queries: Any, depth: int) -> Any:
        raise EngineError("the server does not answer")

    monkeypatch.setattr(engine, "search", down)
    body = {"query": QUERY, "voice": SEARCH_VOICE}
    answer = client.post("/v1/search", json=body)
    assert (answer.status_code, answer.json()["kind"]) == (502, "engine")
    assert "is counted (7.5 nats); another try costs nothing" in answer.json()["error"]
    failed = events(client, "/v1/search", {**body, "fresh": True})[-1]
    assert (failed["step"], failed["status"]) == ("failed", 502)
    assert Ledger.open().spent()[0].nats == 15


def test_a_query_that_has_nothing_to_replace_is_said_to_go_out_as_it_is(in_order):
    found = in_order.post("/v1/search", json={"query": "?!", "n": 2}).json()
    assert (found["query_sent"], found["protected"], found["spent"]) == (True, False, 0.0)
    assert in_order.post("/v1/search", json={"query": QUERY, "n": 2}).json()["protected"] is True


def test_of_a_query_without_words_nothing_is_sent_where_punctuation_is_left_out(client):
    found = client.post("/v1/search", json={"query": "?!", "n": 2}).json()
    assert (found["sent"], found["query_sent"], found["protected"]) == ([], False, False)
    assert client.post("/v1/search", json={"query": QUERY, "n": 2}).json()["protected"] is True


def test_the_ledger_is_shown_to_the_token_only(client):
    client.post("/v1/search", json={"query": QUERY, "voice": SEARCH_VOICE})
    told = client.get("/v1/ledger").json()
    assert told["spent"][0]["nats"] == 7.5
    assert "nats" in told["spent"][0]["sentence"]
    assert len(told["records"]) == 1
    stranger = client.get("/v1/ledger", headers={"X-Sottovoce-Token": ""})
    assert stranger.status_code == 401
    assert "spent" not in stranger.text
    assert "skin" not in json.dumps(told)


def test_an_empty_ledger_is_not_made_by_looking(client, tmp_path):
    assert client.get("/v1/ledger").json()["spent"] == []
    assert not (tmp_path / "home" / "ledger").exists()


def test_history_is_off_private_and_wiped(client, tmp_path):
    file = tmp_path / "home" / "history.json"
    client.post("/v1/search", json={"query": QUERY, "n": 2})
    assert client.get("/v1/history").json() == {"on": False, "searches": []}
    assert not file.exists()
    client.put("/v1/history", json={"on": True})
    client.post("/v1/search", json={"query": QUERY, "n": 2})
    client.post("/v1/search", json={"query": "divorce lawyer", "n": 2})
    shown = client.get("/v1/history").json()
    assert [each["query"] for each in shown["searches"]] == ["divorce lawyer", QUERY]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert client.request("DELETE", "/v1/history").json() == {"on": True, "searches": []}
    assert "divorce" not in file.read_text()
    client.post("/v1/search", json={"query": QUERY, "n": 2})
    assert client.put("/v1/history", json={"on": False}).json()["searches"] == []
    assert not file.exists()
