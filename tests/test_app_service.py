"""The service in this process: each address, on the demo collection and the real word space."""

from __future__ import annotations

import asyncio
import json
import stat
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from sottovoce import Obfuscator, defaults, load_space, mechanism
from sottovoce.paths import cache_folder

pytest.importorskip("fastapi")

from starlette.testclient import TestClient

from sottovoce.app import measured, queues
from sottovoce.app.loaded import LoadedParts
from sottovoce.app.queues import FullError, WorkQueue
from sottovoce.app.sanitizing import changes
from sottovoce.app.schemas import (
    DEFAULT_VOICE,
    VOICES,
    ObfuscateBody,
    ProtectionBody,
    SearchBody,
)
from sottovoce.app.service import Service, create_app
from sottovoce.app.settings import Settings
from sottovoce.cli.options import (
    EngineOptions,
    LayoutOptions,
    MechanismOptions,
    ResourceOptions,
    TextOptions,
)
from sottovoce.cli.search import SearchOptions, _obfuscator, _prepare
from sottovoce.collections import demo_log, load_collection
from sottovoce.engines import BM25
from sottovoce.engines.base import EngineError
from sottovoce.errors import UsageError
from sottovoce.experiments.summary import LAYOUT, among
from sottovoce.ledger import Ledger
from sottovoce.mechanisms import names, parse
from sottovoce.output_vocabularies import choose_output
from sottovoce.pools import Pool
from sottovoce.privacy.attacks.query_log import QueryLog
from sottovoce.sanitizing import Sanitizer
from sottovoce.text.comparing import folded_text

QUERY = "treatment for skin cancer"
SPACE = "glove-840b-34k"
"""Smaller than the default space, where risks are measured in a tenth of the time."""
SETTINGS = Settings(reranker="light", space=SPACE, token="0123456789abcdef-token")


def as_user(app: Any, settings: Settings = SETTINGS) -> TestClient:
    return TestClient(
        app,
        base_url=f"http://127.0.0.1:{settings.port}",
        headers={"X-Sottovoce-Token": settings.token},
    )


@pytest.fixture(scope="module")
def loaded(default_space: Any) -> Iterator[Any]:
    """One app for all tests: its ledger and history are wherever $SOTTOVOCE_HOME says then."""
    with as_user(create_app(SETTINGS)) as client:
        while client.get("/health").json()["status"] == "loading":
            time.sleep(0.05)
        yield client


@pytest.fixture
def client(loaded: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    home = tmp_path / "home"
    home.mkdir()
    for name in ("spaces", "embeddings", "strong", "wordnet"):
        if (cache_folder() / name).exists():
            (home / name).symlink_to(cache_folder() / name)
    monkeypatch.setenv("SOTTOVOCE_HOME", str(home))
    service = loaded.app.state.service  # type: ignore[attr-defined]
    monkeypatch.setattr(service.history, "file", home / "history.json")
    return loaded


@pytest.fixture
def in_order(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    """As if the service had been started with --in-order."""
    parts = client.app.state.service.parts  # type: ignore[attr-defined]
    monkeypatch.setattr(parts, "settings", replace(SETTINGS, shuffle=False))
    return client


def events(client: TestClient, path: str, body: Any) -> list[dict[str, Any]]:
    answer = client.post(path, json=body, headers={"Accept": "application/x-ndjson"})
    assert answer.status_code == 200
    return [json.loads(line) for line in answer.text.splitlines()]


def test_health_says_what_is_loaded(client):
    told = client.get("/health").json()
    assert (told["status"], told["problems"]) == ("ready", [])
    assert (told["collection"], told["engine"], told["reranker"]) == ("demo", "bm25", "light")
    assert told["remote"] is False
    assert told["log"] > 500


def test_obfuscate_answers_the_line_of_the_command(client):
    body = {"text": QUERY, "mechanism": "cmp", "epsilon": 8, "n": 4, "release": "once", "seed": 3}
    answer = client.post("/v1/obfuscate", json=body)
    cmp = mechanism("cmp", space=load_space(SPACE), epsilon=8)
    (own,) = Obfuscator(cmp, n=4, release="once", rng=3).obfuscate([QUERY])
    assert answer.status_code == 200
    assert answer.json() == own.to_dict()
    assert answer.json()["seeded"] is True


def test_obfuscate_without_a_seed_is_secure(client):
    body = {"text": QUERY, "n": 3}
    first, second = (client.post("/v1/obfuscate", json=body).json() for _ in range(2))
    assert first["seeded"] is False
    assert first["variants"] != second["variants"]
    assert len(first["variants"]) == 3


def test_parameters_of_a_mechanism_are_taken(client):
    body = {"text": QUERY, "mechanism": "vickrey-cmp", "epsilon": 12.5, "set": {"t": 0.5}}
    assert client.post("/v1/obfuscate", json=body).json()["mechanism"] == (
        "vickrey-cmp:epsilon=12.5,t=0.5"
    )


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("obfuscate", {"text": "secretword", "n": 0}),
        ("obfuscate", {"text": "secretword", "epsilon": -1}),
        ("obfuscate", {"text": "secretword", "mechanism": "secretword"}),
        ("obfuscate", {"text": "secretword", "set": {"secretword": "secretword"}}),
        ("obfuscate", {"text": "secretword", "set": {"t": [["secretword"]]}}),
        ("obfuscate", {"text": "secretword", "secretword": 1}),
        ("obfuscate", {"text": ["secretword"]}),
        ("obfuscate", {"text": "secretword", "release": "secretword"}),
        ("obfuscate", {"text": "secretword", "mechanism": "santext", "release": "once"}),
        ("obfuscate", {"text": "secretword" * 1000, "n": 100}),
        ("obfuscate", ["secretword"]),
        ("search", {"query": "  "}),
        ("search", {"query": "secretword", "voice": "secretword"}),
        ("search", {"query": "secretword", "voice": "whisper", "epsilon": 3}),
        ("risk", {"query": "secretword"}),
        ("sanitize", {"csv": "secretword,b\n1,2\n", "column": "nothere"}),
        ("sanitize", {"csv": 'text\n"secretword\n', "column": "text"}),
        ("sanitize", {"texts": ["secretword"], "csv": "secretword"}),
    ],
)
def test_wrong_requests_get_a_sentence_that_repeats_nothing(client, path, body):
    answer = client.post(f"/v1/{path}", json=body)
    assert answer.status_code == 422
    assert set(answer.json()) == {"error", "kind"}
    assert len(answer.json()["error"]) > 10
    assert "secretword" not in answer.text


def test_what_is_no_json_is_not_repeated(client):
    for data in (b'{"text": "secretword', b"\xff\xfe", b"[" * 100_000, b'{"text": NaN}'):
        answer = client.post("/v1/obfuscate", content=data)
        assert answer.status_code in (400, 422)
        assert "secretword" not in answer.text


def test_mechanisms_come_with_guarantee_paper_and_verdict(client):
    found = {each["name"]: each for each in client.get("/v1/mechanisms").json()["mechanisms"]}
    assert set(found) == set(names())
    for each in found.values():
        assert each["summary"]
        assert each["paper"]
        assert each["audit"]["verdict"] in (
            *("REFUTED", "CONSISTENT", "NOT REFUTED", "NO CLAIM", "NOT AUDITED"),
        )
        assert each["audit"]["by"].startswith("sottovoce audit")
    assert found["cmp"]["warning"] is None
    assert found["cmp"]["audit"]["verdict"] == "NOT REFUTED"
    assert found["aea"]["guarantee"]["notion"] == "none"
    assert "promises nothing" in found["aea"]["warning"]
    assert found["wbb"]["audit"]["verdict"] == "REFUTED"
    assert "counterexample" in found["wbb"]["warning"]


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


def test_a_search_without_any_settings_is_that_of_the_command_line(client):
    typed = SearchOptions(rerank=SETTINGS.reranker, ledger=False)
    obfuscator = _obfuscator(typed, MechanismOptions(), ResourceOptions(), TextOptions(), None)
    command = _prepare(typed, obfuscator, LayoutOptions(), drop_function_words=True)
    parts = client.app.state.service.parts
    protection = parts.protection(ProtectionBody())
    service = parts.private_search(protection, Ledger.open())
    assert parts.protection(ProtectionBody(voice=DEFAULT_VOICE)) == protection
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
    for how in ({"n": 4}, {"voice": DEFAULT_VOICE}):
        fresh = client.post("/v1/search", json={"query": QUERY, "fresh": True, **how}).json()
        assert fresh["sent"] != first["sent"]
        assert (fresh["recalled"], fresh["fresh"]) == (False, True)
        assert fresh["spent"] == first["spent"]


def test_a_spent_budget_refuses_and_says_what_is_left(client):
    client.put("/v1/ledger/budget", json={"per_text": 12, "total": None})
    assert client.post("/v1/preview", json={"query": QUERY}).status_code == 200
    assert client.post("/v1/search", json={"query": QUERY}).status_code == 200
    for path in ("search", "preview"):
        answer = client.post(f"/v1/{path}", json={"query": QUERY, "fresh": True})
        assert answer.status_code == 409
        assert answer.json()["kind"] == "budget"
        assert (answer.json()["cost"], answer.json()["left"]) == (7.5, 4.5)
        assert "skin" not in answer.text
    fresh = {"query": QUERY, "fresh": True}
    assert events(client, "/v1/search", fresh)[-1]["kind"] == "budget"


def test_an_engine_that_is_down_is_said_so_and_the_release_stays_counted(client, monkeypatch):
    engine = client.app.state.service.parts.engine()

    def down(queries: Any, depth: int) -> Any:
        raise EngineError("the server does not answer")

    monkeypatch.setattr(engine, "search", down)
    answer = client.post("/v1/search", json={"query": QUERY})
    assert (answer.status_code, answer.json()["kind"]) == (502, "engine")
    assert "is counted (7.5 nats); another try costs nothing" in answer.json()["error"]
    failed = events(client, "/v1/search", {"query": QUERY, "fresh": True})[-1]
    assert (failed["step"], failed["status"]) == ("failed", 502)
    assert Ledger.open().spent()[0].nats == 15


def test_an_unforeseen_error_gives_its_kind_and_nothing_else(client, monkeypatch, capsys, caplog):
    parts = client.app.state.service.parts

    def broken(*_: Any) -> Any:
        raise RuntimeError(f"while working on {QUERY}")

    monkeypatch.setattr(parts, "protection", broken)
    monkeypatch.setattr(parts, "mechanism", broken)
    for path, body in (
        ("search", {"query": QUERY}),
        ("preview", {"query": QUERY}),
        ("obfuscate", {"text": QUERY}),
        ("sanitize", {"texts": [QUERY]}),
    ):
        answer = client.post(f"/v1/{path}", json=body)
        assert answer.status_code == 500
        assert "RuntimeError" in answer.json()["error"]
        assert "skin" not in answer.text
    shown = capsys.readouterr()
    assert "skin" not in shown.out + shown.err + caplog.text


def test_the_risk_of_a_query_is_measured_on_its_own_variants(in_order):
    told = in_order.post(
        "/v1/risk",
        json={
            "query": QUERY,
            "variants": [QUERY] * 5,
            "mechanism": "cmp",
            "epsilon": 10,
            "release": "independent",
        },
    ).json()
    assert told["query"]["rank"] == 1
    assert told["query"]["log"] > 500
    assert (told["words"]["recovered"], told["words"]["of"]) == (4, 4)
    assert "at the first guess" in told["sentence"]
    assert "reads 4 of its 4 words" in told["sentence"]
    for risk in (told["query"], told["words"]):
        assert f"({risk['by']})" in risk["sentence"]
        assert risk["knows"] in risk["sentence"]
        assert (
            "log of" in risk["knows"] or "uniform" in risk["knows"] or "variants" in risk["knows"]
        )
        assert risk["sentence"] in told["sentence"]
    assert f"a log of {told['query']['log']:,} queries with the true one in it" in told["sentence"]


def test_the_risk_of_unrelated_variants_is_small(in_order):
    body = {"query": QUERY, "variants": ["football world cup final"] * 3, "mechanism": "cmp"}
    told = in_order.post("/v1/risk", json={**body, "release": "independent"}).json()
    assert told["query"]["rank"] > 10
    assert told["words"]["recovered"] == 0


def test_words_in_random_order_are_attacked_without_it(client):
    """Place by place, attacks would find little, and reassure wrongly."""
    orders = ["cancer skin for treatment", "skin treatment for cancer", "for cancer treatment skin"]
    body = {"query": QUERY, "variants": orders, "release": "independent"}
    told = client.post("/v1/risk", json=body).json()
    assert told["query"]["rank"] == 1
    assert (told["words"]["recovered"], told["words"]["of"]) == (4, 4)


def test_the_risk_of_a_preview_needs_no_variants(in_order):
    drawn = in_order.post("/v1/preview", json={"query": QUERY, "n": 2}).json()
    body = {"query": QUERY, "n": 2, "preview": drawn["preview"]}
    assert in_order.post("/v1/risk", json=body).json()["words"]["of"] == 3
    other = in_order.post("/v1/risk", json={**body, "query": "divorce lawyer"})
    assert other.status_code == 409


def test_a_mechanism_without_words_says_that_they_were_not_measured(client):
    body = {"query": QUERY, "n": 2, "mechanism": "comet-cmp"}
    drawn = client.post("/v1/preview", json=body).json()
    told = client.post("/v1/risk", json={**body, "preview": drawn["preview"]}).json()
    assert told["words"] is None
    assert "not measured" in told["sentence"]
    assert "its pool" in told["query"]["knows"] or "encoder" in told["query"]["knows"]
    other = client.post("/v1/risk", json={**body, "variants": ["football"]})
    assert other.status_code == 422
    assert "no string of this pool" in other.json()["error"]


def test_sanitized_texts_say_where_they_changed(client):
    texts = ["The treatment, for skin cancer!", "", "divorce lawyer"]
    told = client.post("/v1/sanitize", json={"texts": texts, "epsilon": 3, "seed": 1}).json()
    assert [row["original"] for row in told["rows"]] == texts
    assert told["csv"] is None
    assert told["report"]["rows"] == 3
    assert told["report"]["seeded"] is True
    assert told["report"]["words"]["changed"] == sum(len(row["changed"]) for row in told["rows"])
    first = told["rows"][0]
    assert first["sanitized"].endswith("!")
    for (start, end), (was_start, was_end) in zip(
        first["changed"], first["changed_from"], strict=True
    ):
        assert first["sanitized"][start:end] != first["original"][was_start:was_end]


def test_a_csv_file_keeps_everything_but_its_column(client):
    table = 'id,text,note\r\n1,"skin, cancer ""x""",keep me\r\n2,divorce lawyer,\r\n'
    body = {"csv": table, "column": "text", "epsilon": 1, "seed": 1, "originals": False}
    told = client.post("/v1/sanitize", json=body).json()
    lines = told["csv"].split("\r\n")
    assert lines[0] == "id,text,note"
    assert lines[1].startswith('1,"')
    assert lines[1].endswith(",keep me")
    assert lines[2].startswith("2,")
    assert told["csv"] != table
    assert all("original" not in row for row in told["rows"])
    assert len(told["rows"]) == 2


def test_sanitizing_streams_its_progress(client):
    told = events(client, "/v1/sanitize", {"texts": ["skin cancer"] * 600})
    assert told[0] == {"step": "sanitizing", "done": 256, "of": 600}
    assert len(told[-1]["result"]["rows"]) == 600


def test_a_seed_gives_what_the_library_gives_however_the_rows_are_cut(client):
    texts = [f"skin cancer {number}" for number in range(600)]
    told = client.post("/v1/sanitize", json={"texts": texts, "seed": 4}).json()
    cmp = mechanism("cmp", space=load_space(SPACE))
    whole, _ = Sanitizer(Obfuscator(cmp, rng=4), ("text",)).texts("text", texts, 0)
    assert [row["sanitized"] for row in told["rows"]] == whole


@pytest.mark.parametrize(
    ("old", "new", "marked"),
    [
        ("a b c", "a x c", [[2, 3]]),
        ("Skin cancer!", "skin tumour!", [[5, 11]]),
        ("(skin)", "(oily)", [[1, 5]]),
        ("a b", "whole other text", [[0, 5], [6, 11], [12, 16]]),
        ("!!", "??", [[0, 2]]),
        ("", "", []),
    ],
)
def test_changes_are_marked_word_by_word_without_punctuation(old, new, marked):
    assert changes(old, new)[1] == marked


def test_the_ledger_shows_records_to_the_token_only(client):
    client.post("/v1/search", json={"query": QUERY})
    told = client.get("/v1/ledger").json()
    assert told["spent"][0]["nats"] == 7.5
    assert "nats" in told["spent"][0]["sentence"]
    assert len(told["records"]) == 1
    stranger = client.get("/v1/ledger", headers={"X-Sottovoce-Token": ""}).json()
    assert stranger["records"] is None
    assert stranger["spent"] == told["spent"]
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


ALIGNED = {"by": "aligned", "knows": "the mechanism; a log of 524 queries with the true one in it"}
TEXTS_OF_A_SEARCH = {
    "order": "shuffled",
    "protect": "content",
    "unprotected": "drop",
    "output_vocabulary": "demo",
}
CONTEXT = {"by": "context", "knows": "the mechanism; what is said together: trigrams, a log"}


def summary(client: TestClient, **changed: Any) -> dict[str, Any]:
    setting = {
        "mechanism": "cmp",
        "spec": "cmp:prior=0.5,epsilon=7.5",
        "epsilon": 7.5,
        "release": "once",
        "n": 20,
        "nDCG@10": {"value": 0.32, "low": 0.25, "high": 0.4, "queries": 65},
        "lazy": {"value": 0.05, "low": 0.0, "high": 0.12, "queries": 64, **ALIGNED},
        "words": {"value": 0.0625, "low": 0.03, "high": 0.1, "queries": 8, **CONTEXT},
        "texts": TEXTS_OF_A_SEARCH,
    }
    parts = client.app.state.service.parts  # type: ignore[attr-defined]
    return {
        "layout": LAYOUT,
        "collection": "demo",
        "fingerprint": parts.engine().fingerprint,
        "log_sha256": parts.log_sha256(),
        "made": "2026-01-02T03:04:05+00:00",
        "queries": 65,
        "log": 524,
        "engine": "bm25",
        "reranker": "light",
        "depth": 10,
        "baseline": {"nDCG@10": 0.64},
        "settings": [setting],
        **changed,
    }


def keep(home: Path, found: dict[str, Any]) -> None:
    from sottovoce.experiments.summary import remember

    remember([found])


def test_a_voice_in_company_sends_public_queries_and_says_what_that_is_worth(client):
    body = {"query": QUERY, "voice": "in-company", "top": 3, "measure": True}
    first = client.post("/v1/search", json=body).json()
    again = client.post("/v1/search", json=body).json()
    log = set(map(folded_text, demo_log()))
    assert len(first["sent"]) == 20
    assert all(folded_text(sent) in log for sent in first["sent"])
    assert sorted(first["sent"]) == sorted(again["sent"])
    assert again["recalled"]
    assert first["company"]["sentence"]
    assert first["company"]["whether_sent"]
    assert "names the one that stands for yours" in first["risk"]["sentence"]
    assert first["risk"]["query"]["knows"]


def test_without_a_pool_to_hide_in_there_is_no_voice_in_company(client, monkeypatch):
    parts = client.app.state.service.parts
    monkeypatch.setattr(parts, "pool", lambda: Pool(["one", "two"], "light"))
    monkeypatch.setattr(parts, "_mechanisms", OrderedDict())
    told = client.get("/v1/voices").json()
    assert [each["id"] for each in told["voices"]][-1] == "normal-voice"
    refused = client.post("/v1/search", json={"query": QUERY, "voice": "in-company"})
    assert refused.status_code == 422
    assert QUERY not in refused.text


def test_voices_show_what_was_measured_of_exactly_their_setting(client, tmp_path, monkeypatch):
    monkeypatch.setattr(measured, "packaged", tuple)
    keep(tmp_path, summary(client))
    told = client.get("/v1/voices").json()
    assert told["default"] == "murmur"
    assert [each["id"] for each in told["voices"]] == [
        *("whisper", "murmur", "speak-low", "normal-voice", "in-company"),
    ]
    assert "2026-01-02" in told["measured"]["sentence"]
    whisper, murmur = told["voices"][:2]
    assert murmur["sentences"] == {
        "query": "The strongest of the attacks tried (aligned) names your query at the first guess "
        "in 5 of 100 cases (0–12; 64 queries tried). The attacker knows the mechanism; a log of "
        "524 queries with the true one in it.",
        "words": "The strongest of the attacks tried (context) recovers 6 of 100 words (3–10; 8 "
        "queries tried). The attacker knows the mechanism; what is said together: trigrams, a log.",
        "utility": "You find 50% of what you would find without privacy (nDCG@10, 65 queries "
        "tried).",
    }
    assert murmur["risk"]["words"]["value"] == 0.0625
    assert murmur["cost"] == 7.5
    assert whisper["sentences"] == {"query": None, "words": None, "utility": None}
    assert "experiment run" in whisper["not_measured"]
    points = client.get("/v1/plane").json()["points"]
    assert [each["spec"] for each in points] == ["cmp:prior=0.5,epsilon=7.5"]
    assert "6 of 100 words" in points[0]["tooltip"]
    assert murmur["not_measured"] is None
    assert (murmur["point"], whisper["point"]) == (points[0]["id"], None)
    for same in ({"epsilon": 7.5}, {"fresh": True}, {"mechanism": "cmp:epsilon=7.5"}):
        described = client.post("/v1/setting", json=same).json()
        assert (described["risk"], described["point"]) == (murmur["risk"], murmur["point"])
    for other in (
        {"epsilon": 8.0},
        {"epsilon": 7.5, "n": 19},
        {"epsilon": 7.5, "release": "independent"},
        {"epsilon": 7.5, "set": {"prior": 0.25}},
    ):
        assert client.post("/v1/setting", json=other).json()["utility"] is None


def test_the_package_has_figures_of_every_voice():
    from sottovoce.experiments.fingerprints import digest

    assert measured.PACKAGED.exists(), "see tools/measured_figures.py"
    engine, log = BM25(load_collection("demo").documents), QueryLog(demo_log())
    for reranker in ("light", "strong"):
        place = (engine.fingerprint, "bm25", reranker, defaults.DEMO_DEPTH)
        found = among(measured.packaged(), *place)
        assert found is not None, reranker
        assert found["log_sha256"] == digest(log.queries)
        assert found["baseline"][measured.MAIN] > 0
        for voice in VOICES:
            if voice.epsilon is None:
                spec, texts = parse(voice.spec, k=20), {"pool": "demo", "encoder": "strong"}
            else:
                spec, texts = parse("cmp:prior=0.5", epsilon=voice.epsilon), TEXTS_OF_A_SEARCH
            wanted = (spec, "once", defaults.VARIANTS)
            (own,) = (
                each
                for each in found["settings"]
                if each["spec"] and (parse(each["spec"]), each["release"], each["n"]) == wanted
            )
            assert texts.items() <= own["texts"].items()
            assert (own["words"] is None) == (voice.epsilon is None)
            for figure in ("lazy", measured.MAIN, *(() if own["words"] is None else ("words",))):
                assert own[figure]["queries"] > 0
                assert figure == measured.MAIN or (own[figure]["by"] and own[figure]["knows"])
                assert own[figure]["low"] <= own[figure]["value"] <= own[figure]["high"]


def test_figures_of_weaker_attacks_are_no_longer_shown(client, tmp_path, monkeypatch):
    """Earlier experiments did not record what attackers knew."""
    old = summary(client, layout=1)
    monkeypatch.setattr(measured, "packaged", lambda: (old,))
    keep(tmp_path, old)
    told = client.post("/v1/setting", json={"voice": "murmur"}).json()
    assert told["sentences"] == {"query": None, "words": None, "utility": None}
    assert "experiment run" in told["not_measured"]


def test_figures_of_another_query_log_are_not_shown(client, tmp_path, monkeypatch):
    monkeypatch.setattr(measured, "packaged", tuple)
    keep(tmp_path, summary(client, log_sha256="0" * 64))
    told = client.post("/v1/setting", json={"voice": "murmur"}).json()
    assert told["risk"]["query"] is None
    assert told["sentences"]["query"] is None
    assert "not measured with this query log" in told["not_measured"]
    assert "6 of 100 words" in told["sentences"]["words"]
    plane = client.get("/v1/plane").json()
    assert plane["points"][0]["risk"]["query"] is None
    assert plane["measured"]["log"] is None


def test_figures_of_another_depth_hide_none_that_fit(client, tmp_path, monkeypatch):
    deep, fitting = summary(client, depth=100, made="2026-02-02"), summary(client)
    monkeypatch.setattr(measured, "packaged", lambda: (deep, fitting))
    keep(tmp_path, deep)
    assert client.get("/v1/voices").json()["measured"]["made"] == fitting["made"]
    keep(tmp_path, summary(client, made="2026-03-03"))
    assert client.get("/v1/voices").json()["measured"]["made"] == "2026-03-03"


def test_a_setting_sits_only_where_texts_were_treated_alike(client, tmp_path, monkeypatch):
    """Two points of the same spec: one protects nouns alone, which no voice does."""
    monkeypatch.setattr(measured, "packaged", tuple)
    found = summary(client)
    (own,) = found["settings"]
    nouns = {**TEXTS_OF_A_SEARCH, "protect": "noun"}
    found["settings"] = [{**own, "texts": nouns}, own]
    keep(tmp_path, found)
    points = client.get("/v1/plane").json()["points"]
    assert points[0]["id"] != points[1]["id"]
    described = client.post("/v1/setting", json={"voice": "murmur"}).json()
    assert described["point"] == points[1]["id"]


@pytest.mark.parametrize(
    ("texts", "shown"),
    [
        ({"space": None, "unknown": "encode", "phrases": False}, True),
        ({"space": "default", "pad_to": 0}, True),
        ({"protect": None}, False),
        ({"protect": "all"}, False),
        ({"unprotected": "keep"}, False),
        ({"output_vocabulary": "all"}, False),
        ({"unknown": "uniform"}, False),
        ({"protect": "noun"}, False),
        ({"space": "other"}, False),
        ({"output_vocabulary": "clean"}, False),
        ({"unknown": "drop"}, False),
        ({"order": "kept"}, False),
        ({"pad_to": 8}, False),
    ],
)
def test_figures_of_texts_that_were_treated_otherwise_are_not_shown(
    client, tmp_path, monkeypatch, texts, shown
):
    monkeypatch.setattr(measured, "packaged", tuple)
    found = summary(client)
    found["settings"][0]["texts"] = {**TEXTS_OF_A_SEARCH, **texts}
    keep(tmp_path, found)
    told = client.post("/v1/setting", json={"voice": "murmur"}).json()
    assert (told["utility"] is not None) == shown


def test_figures_of_a_folder_are_those_of_the_words_of_its_documents(client, tmp_path):
    folder = tmp_path / "articles"
    folder.mkdir()
    document = {"doc_id": "1", "title": "Queries", "text": " ".join(demo_log()[:3000])}
    (folder / "corpus.jsonl").write_text(json.dumps(document))
    parts = LoadedParts(replace(SETTINGS, collection=str(folder), reranker="none"))
    protection = parts.protection(ProtectionBody())
    experiment = choose_output(parts.space(), f"corpus:{folder}")
    released = protection.obfuscator.mechanism.space.output
    assert (released.name, [*released.ids]) == (experiment.name, [*experiment.ids])
    found = summary(client)
    (own,) = found["settings"]
    for vocabulary, shown in ((experiment.name, True), ("demo", False), ("all", False)):
        own["texts"] = {**TEXTS_OF_A_SEARCH, "output_vocabulary": vocabulary}
        assert (measured.figures_of(parts, found, protection) is own) == shown


@pytest.mark.parametrize(
    "other",
    [{"fingerprint": "0" * 64}, {"engine": "tfidf"}, {"reranker": "strong"}, {"depth": 100}],
)
def test_figures_of_another_collection_engine_or_reranker_are_never_shown(
    client, tmp_path, monkeypatch, other
):
    monkeypatch.setattr(measured, "packaged", lambda: (summary(client, **other),))
    keep(tmp_path, summary(client, **other))
    told = client.get("/v1/voices").json()
    assert told["measured"] is None
    assert all(each["utility"] is None for each in told["voices"])
    assert client.get("/v1/plane").json()["points"] == []
    assert "experiment run" in told["not_measured"]


def test_a_setting_names_the_account_that_the_ledger_keeps_for_it(client):
    for name in ("cmp", "wbb", "comet-cmp"):
        client.post("/v1/preview", json={"query": QUERY, "mechanism": name, "n": 2})
    spent = client.get("/v1/ledger").json()["spent"]
    assert len(spent) == 3
    for name, each in zip(("cmp", "wbb", "comet-cmp"), spent, strict=True):
        told = client.post("/v1/setting", json={"mechanism": name}).json()
        assert told["account"] == {key: each[key] for key in told["account"]}
        assert (told["account"]["space_sha256"] is None) == (name == "wbb")


def test_a_mechanism_is_described_with_the_encoder_that_it_would_use(client):
    described = {each["name"]: each for each in client.get("/v1/mechanisms").json()["mechanisms"]}
    for name in ("comet-cmp", "cmp", "wbb"):
        epsilon = {"epsilon": 10.0} if name == "cmp" else {}  # A search has another default.
        own = client.post("/v1/setting", json={"mechanism": name, **epsilon}).json()["guarantee"]
        assert described[name]["guarantee"] == own


def test_a_query_that_has_nothing_to_replace_is_said_to_go_out_as_it_is(in_order):
    found = in_order.post("/v1/search", json={"query": "?!", "n": 2}).json()
    assert (found["query_sent"], found["protected"], found["spent"]) == (True, False, 0.0)
    assert in_order.post("/v1/search", json={"query": QUERY, "n": 2}).json()["protected"] is True


def test_of_a_query_without_words_nothing_is_sent_where_punctuation_is_left_out(client):
    found = client.post("/v1/search", json={"query": "?!", "n": 2}).json()
    assert (found["sent"], found["query_sent"], found["protected"]) == ([], False, False)
    assert client.post("/v1/search", json={"query": QUERY, "n": 2}).json()["protected"] is True


def test_a_setting_without_a_promise_says_so(client):
    told = client.post("/v1/setting", json={"mechanism": "wbb"}).json()
    assert "promises nothing" in told["warning"]
    assert "counterexample" in told["warning"]
    assert told["cost"] is None


def test_the_document_has_every_field_of_an_answer(client):
    """Answers may hold more than their schema says: here it says all."""
    client.post("/v1/search", json={"query": QUERY, "n": 2})
    document = client.get("/openapi.json").json()

    def fields(method, path):
        answer = document["paths"][path][method]["responses"]["200"]["content"]["application/json"]
        name = answer["schema"]["$ref"].rsplit("/", 1)[-1]
        return document["components"]["schemas"][name]["properties"]

    for path, body in (
        ("/v1/obfuscate", {"text": QUERY}),
        ("/v1/preview", {"query": QUERY, "n": 2}),
        ("/v1/search", {"query": QUERY, "n": 2}),
        ("/v1/setting", {}),
        ("/v1/risk", {"query": QUERY, "variants": ["football"]}),
        ("/v1/sanitize", {"texts": [QUERY]}),
    ):
        assert set(client.post(path, json=body).json()) == set(fields("post", path)), path
    for path in ("/health", "/v1/mechanisms", "/v1/voices", "/v1/plane", "/v1/ledger"):
        assert set(client.get(path).json()) == set(fields("get", path)), path
    told = client.get("/v1/ledger").json()
    schemas = document["components"]["schemas"]
    assert set(told["spent"][0]) == set(schemas["Spent"]["properties"])
    assert set(told["records"][0]) == set(schemas["Record"]["properties"])
    assert schemas["Ranked"]["properties"]["found_by"]["items"] == {"type": "integer"}


def test_the_documentation_is_one_page_without_scripts(client):
    page = client.get("/docs").text
    assert "<script" not in page
    assert "http" not in page.replace("openapi.json", "").split("<main>")[0]
    for path in client.get("/openapi.json").json()["paths"]:
        assert path in page
    assert client.get("/docs.css").headers["content-type"].startswith("text/css")


def test_the_page_is_served_and_nothing_beside_it(client):
    assert client.get("/").headers["content-type"].startswith("text/html")
    for name in ("..%2fservice.py", "service.py", "%2e%2e", "nothing.js", "."):
        answer = client.get(f"/static/{name}")
        assert answer.status_code == 404
        assert "create_app" not in answer.text


def test_a_missing_space_is_said_with_what_to_run_and_heals(tmp_path, monkeypatch, default_space):
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path))
    with as_user(create_app(SETTINGS)) as client:
        while (told := client.get("/health").json())["status"] == "loading":
            time.sleep(0.05)
        assert told["status"] == "incomplete"
        assert "sottovoce spaces add" in told["problems"][0]
        assert client.get("/").status_code == 200
        assert len(client.get("/v1/mechanisms").json()["mechanisms"]) == len(names())
        answer = client.post("/v1/search", json={"query": QUERY})
        assert (answer.status_code, answer.json()["kind"]) == (503, "setup")
        assert "sottovoce spaces add" in answer.json()["error"]
        monkeypatch.delenv("SOTTOVOCE_HOME")
        assert client.get("/health").json()["status"] == "ready"


def test_while_it_loads_it_says_so_and_everything_else_answers(default_space, monkeypatch):
    service = Service(SETTINGS)
    go = Event()
    load = service.parts.reranker._load
    monkeypatch.setattr(service.parts.reranker, "_load", lambda: go.wait(30) and load())
    with as_user(create_app(SETTINGS, service)) as client:
        for method, path in (
            *(("GET", "/v1/voices"), ("GET", "/v1/plane"), ("GET", "/v1/mechanisms")),
            ("POST", "/v1/setting"),
        ):
            answer = client.request(method, path, **({"json": {}} if method == "POST" else {}))
            assert (answer.status_code, answer.json()["kind"]) == (503, "loading")
            assert answer.headers["retry-after"] == "1"
        assert client.get("/health").json()["status"] == "loading"
        assert client.get("/v1/ledger").status_code == 200
        assert client.get("/v1/history").status_code == 200
        go.set()
        while client.get("/health").json()["status"] == "loading":
            time.sleep(0.05)
        assert client.get("/v1/voices").status_code == 200


def test_a_full_queue_refuses_at_once_and_goes_on_later():
    lane = WorkQueue("work", threads=1, waiting=1, timeout=5)
    started, go = Event(), Event()

    def wait() -> None:
        started.set()
        go.wait(5)

    lane.submit(wait)
    started.wait(5)
    queued = lane.submit(lambda: "second")
    with pytest.raises(FullError, match="nothing was done"):
        lane.submit(lambda: "third")
    go.set()
    assert queued.result(5) == "second"
    lane.close()


def gathered(service: Any, bodies: list[Any]) -> list[Any]:
    """What requests get that wait at the same time: the threads are held until all do."""

    async def ask() -> list[Any]:
        go = Event()
        holding = [service.obfuscating.submit(go.wait) for _ in service.obfuscating._threads]
        waiting = [asyncio.create_task(service.batches.obfuscate(each)) for each in bodies]
        await asyncio.sleep(0.05)
        assert service.batches._count == len(bodies)
        go.set()
        assert all(each.result(5) for each in holding)
        return await asyncio.gather(*waiting, return_exceptions=True)

    return asyncio.run(ask())


TEXTS = ["skin cancer", "a", "", "divorce lawyer fees", "unknownwordxyz cancer"]


@pytest.mark.parametrize("name", ["cmp", "mahalanobis", "santext", "comet-cmp"])
def test_requests_that_wait_together_get_what_each_would_have_got_alone(client, name):
    service = client.app.state.service
    bodies = [
        ObfuscateBody(text=text, mechanism=name, n=3, seed=seed) for seed, text in enumerate(TEXTS)
    ]
    built = service.parts.mechanism(name, {})
    for seed, (text, got) in enumerate(zip(TEXTS, gathered(service, bodies), strict=True)):
        (alone,) = Obfuscator(built, n=3, rng=seed).obfuscate([text])
        assert got == alone


def test_requests_that_differ_are_not_mixed(client):
    """One differs in mechanism, epsilon, parameter, number, release or seed; one cannot be done."""
    service = client.app.state.service
    plain = {"text": "skin cancer", "mechanism": "vickrey-cmp", "n": 3, "seed": 1}
    others = (
        *({}, {"mechanism": "cmp"}, {"epsilon": 5.0}, {"set": {"t": 0.5}}, {"n": 4}),
        *({"release": "once"}, {"seed": None}, {"seed": 2}, {"mechanism": "nothing"}),
    )
    got = gathered(service, [ObfuscateBody(**{**plain, **other}) for other in others])
    for other, result in zip(others[:-1], got, strict=False):
        body = ObfuscateBody(**{**plain, **other})
        settings = {**body.set} | ({} if body.epsilon is None else {"epsilon": body.epsilon})
        built = service.parts.mechanism(body.mechanism, settings)
        (alone,) = Obfuscator(built, n=body.n, release=body.release, rng=body.seed).obfuscate(
            [body.text]
        )
        assert (result.mechanism, len(result.variants)) == (alone.mechanism, body.n)
        assert result.seeded == (body.seed is not None)
        assert (result == alone) == (body.seed is not None)
    assert isinstance(got[-1], UsageError)


def test_long_texts_are_not_done_together(client, monkeypatch):
    """Whoever comes first is answered first: a batch is bounded in characters, too."""
    service, sizes = client.app.state.service, []
    together = service.batches._together

    def counted(bodies: Any) -> Any:
        sizes.append(len(bodies))
        return together(bodies)

    monkeypatch.setattr(service.batches, "_together", counted)
    monkeypatch.setattr(queues, "CHARACTERS_TOGETHER", 100)
    texts = ["skin " * 5] * 6 + ["skin " * 50, "skin"]
    bodies = [ObfuscateBody(text=text, n=2, seed=1) for text in texts]
    assert [each.text for each in gathered(service, bodies)] == texts
    assert sorted(sizes) == [1, 1, 2, 2, 2]
    assert (service.batches._count, service.batches._size) == (0, 0)


def test_more_characters_than_can_be_done_in_time_are_refused(client, monkeypatch):
    monkeypatch.setattr(queues, "CHARACTERS_WAITING", 50)
    assert client.post("/v1/obfuscate", json={"text": "skin " * 10}).status_code == 200
    answer = client.post("/v1/obfuscate", json={"text": "skin " * 10, "n": 2})
    assert (answer.status_code, answer.json()["kind"]) == (503, "full")
    assert client.post("/v1/obfuscate", json={"text": "skin"}).status_code == 200


def test_a_full_queue_refuses_all_that_wait_though_one_has_gone(client):
    """One of them was cancelled: the others are still told."""
    lane = WorkQueue("work", threads=0, waiting=1, timeout=5)
    batches = queues.Batches(client.app.state.service.parts, lane, 10)
    key = queues._key(ObfuscateBody(text="a"))
    futures = [batches._join(ObfuscateBody(text=text)) for text in "abc"]
    futures[0].cancel()
    with pytest.raises(FullError):
        lane.submit(print)
    batches._call_a_thread(key)
    assert futures[0].cancelled()
    assert all(isinstance(each.exception(1), FullError) for each in futures[1:])
    assert (batches._count, batches._size) == (0, 0)


def test_a_preview_does_not_wait_behind_batches(client):
    service, go = client.app.state.service, Event()
    holding = [service.obfuscating.submit(go.wait) for _ in service.obfuscating._threads]
    try:
        assert client.post("/v1/preview", json={"query": QUERY, "n": 2}).status_code == 200
    finally:
        go.set()
    assert all(each.result(5) for each in holding)
