"""The service in this process: each address, what it answers, and what it refuses."""

from __future__ import annotations

import time
from dataclasses import replace
from threading import Event
from typing import Any

import pytest

pytest.importorskip("fastapi")

from service_client import QUERY, SETTINGS, as_user

from sottovoce import Obfuscator, mechanism
from sottovoce.app.service import create_app
from sottovoce.app.state import Service
from sottovoce.mechanisms import names


def test_health_says_what_is_loaded(client):
    told = client.get("/health").json()
    assert (told["status"], told["problems"]) == ("ready", [])
    assert (told["collection"], told["engine"], told["reranker"]) == ("demo", "bm25", "light")
    assert told["remote"] is False
    assert told["log"] > 500


def test_obfuscate_answers_the_line_of_the_command(client, everyday_words):
    body = {"text": QUERY, "mechanism": "cmp", "epsilon": 8, "n": 4, "release": "once", "seed": 3}
    answer = client.post("/v1/obfuscate", json=body)
    cmp = mechanism("cmp", space=everyday_words, epsilon=8)
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
        ("/v1/risk", {"query": QUERY, "variants": ["football"], "mechanism": "cmp"}),
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


def test_the_documentation_says_what_goes_with_one_in(client):
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    for name in ("ProtectionBody", "PreviewBody", "SearchBody", "RiskBody"):
        assert "with one_in, decoys alone" in schemas[name]["properties"]["set"]["description"]
    assert "one_in" not in schemas["ObfuscateBody"]["properties"]["set"]["description"]
    assert "with one_in, decoys alone" in client.get("/docs").text


def test_the_page_is_served_and_nothing_beside_it(client):
    assert client.get("/").headers["content-type"].startswith("text/html")
    for name in ("..%2fservice.py", "service.py", "%2e%2e", "nothing.js", "."):
        answer = client.get(f"/static/{name}")
        assert answer.status_code == 404
        assert "create_app" not in answer.text


def test_a_missing_space_is_said_with_what_to_run_and_heals(tmp_path, monkeypatch, default_space):
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path))
    with as_user(create_app(replace(SETTINGS, space=None))) as client:
        while (told := client.get("/health").json())["status"] == "loading":
            time.sleep(0.05)
        assert told["status"] == "incomplete"
        assert "sottovoce spaces add" in told["problems"][0]
        assert client.get("/").status_code == 200
        assert len(client.get("/v1/mechanisms").json()["mechanisms"]) == len(names())
        answer = client.post("/v1/search", json={"query": QUERY, "voice": "murmur"})
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
