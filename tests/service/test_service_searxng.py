"""Searches as SearXNG answers them, asked by the clients that programs use."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

import uvicorn
from service_client import QUERY, SETTINGS, as_user
from starlette.testclient import TestClient

from sottovoce.app.security import Guard
from sottovoce.app.server import bind
from sottovoce.app.service import create_app
from sottovoce.app.state import Service
from sottovoce.engines.base import EngineError
from sottovoce.ledger import Ledger

FIELDS = {
    *("query", "number_of_results", "results", "answers", "corrections", "infoboxes"),
    *("suggestions", "unresponsive_engines"),
}
JSON = {"q": QUERY, "format": "json"}
TOKEN = SETTINGS.token


def switched_on(loaded: TestClient, port: int) -> Any:
    """The app with SearXNG's answers, on the parts that other tests have loaded."""
    settings = replace(SETTINGS, searxng_json=True, port=port)
    service = Service(settings)
    service.parts = loaded.app.state.service.parts  # type: ignore[attr-defined]
    return create_app(service=service)


@pytest.fixture
def address(client: TestClient) -> Iterator[str]:
    """The service over a real socket."""
    listening = bind("127.0.0.1", 0)
    port = listening.getsockname()[1]
    config = uvicorn.Config(
        switched_on(client, port), log_level="critical", access_log=False, lifespan="off", ws="none"
    )
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, args=([listening],))
    thread.start()
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()


def counted_once() -> bool:
    """Whether the ledger knows one release, of the voice that speaks unasked: in company."""
    (total,) = Ledger.open().spent()
    return total.notion == "local" and total.releases == 1 and total.nats > 0


@pytest.fixture
def asking(client: TestClient) -> TestClient:
    return as_user(switched_on(client, SETTINGS.port))


def test_it_is_off_unless_switched_on(client):
    assert client.get("/search", params=JSON).status_code == 404
    assert client.get(f"/with/{TOKEN}/search", params=JSON).status_code == 404


@pytest.mark.parametrize("method", ["get", "post", "path"])
def test_the_answer_has_the_fields_of_searxng_and_is_counted(asking, method):
    if method == "post":
        answer = asking.post("/search", data=JSON)
    elif method == "get":
        answer = asking.get("/search", params=JSON)
    else:
        bare = {"X-Sottovoce-Token": ""}
        del asking.headers["X-Sottovoce-Token"]
        assert asking.get("/search", params=JSON, headers=bare).status_code == 401
        answer = asking.get(f"/with/{TOKEN}/search", params=JSON)
    assert answer.status_code == 200
    told = answer.json()
    assert set(told) == FIELDS
    assert told["query"] == QUERY
    assert len(told["results"]) == 10
    scores = [result["score"] for result in told["results"]]
    assert scores == sorted(scores, reverse=True)
    assert told["results"][0]["url"].startswith("urn:sottovoce:")
    assert counted_once()


def test_pages_go_on_where_the_last_ended_and_cost_nothing_more(asking):
    first, second = (
        asking.get("/search", params={**JSON, "pageno": page}).json()["results"] for page in (1, 2)
    )
    assert first[0]["positions"] == [1]
    assert second[0]["positions"] == [11]
    assert asking.get("/search", params={**JSON, "pageno": "99"}).json()["results"] == []
    assert asking.get("/search", params={**JSON, "pageno": "-1"}).status_code == 422
    assert counted_once()


def test_strangers_other_sites_and_other_formats_are_refused(asking):
    del asking.headers["X-Sottovoce-Token"]
    for path in ("/search", "/with/wrong-token/search"):
        for method in (asking.get, asking.post):
            assert method(path, params=JSON).status_code == 401
    here = f"/with/{TOKEN}/search"
    elsewhere = {"Origin": "http://evil.example"}
    assert asking.post(here, data=JSON, headers=elsewhere).status_code == 403
    assert asking.get(here, params=JSON, headers={"Host": "evil.example"}).status_code == 421
    from_site = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert asking.get(here, params=JSON, headers=from_site).status_code == 403
    assert asking.get(here, params={"q": QUERY}).status_code == 403
    assert asking.get(here, params={"format": "json"}).status_code == 422
    assert asking.get(f"/with/{TOKEN}/v1/history").status_code == 404
    assert Ledger.open().spent() == []


def test_a_failure_tells_nothing_of_the_query_and_sends_nothing(asking, client, monkeypatch):
    parts = client.app.state.service.parts
    sent: list[str] = []

    def down(queries: Any, depth: int) -> Any:
        sent.extend(queries)
        raise EngineError("the server does not answer")

    monkeypatch.setattr(parts.engine(), "search", down)
    answer = asking.get("/search", params=JSON)
    assert answer.status_code == 502
    assert QUERY not in sent
    Ledger.open().set_budget(None, 7.5)
    sent.clear()
    answers = [asking.get("/search", params={**JSON, "q": "divorce lawyer"}), answer]
    assert answers[0].status_code == 409
    assert sent == []
    for refused in answers:
        assert "lawyer" not in refused.text
        assert "skin" not in refused.text


def test_langchain_searches_with_the_token_as_a_header(address):
    utilities = pytest.importorskip(
        "langchain_community.utilities.searx_search", reason="pip install langchain-community"
    )
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    wrapper = utilities.SearxSearchWrapper(searx_host=f"{address}/search", headers=bearer, k=3)
    hits = wrapper.results(QUERY, num_results=3)
    assert len(hits) == 3
    assert all(hit["title"] and hit["snippet"] and hit["link"] for hit in hits)
    assert hits[0]["category"] == "general"
    assert hits[0]["engines"] == ["bm25"]
    assert len(wrapper.run(QUERY).split("\n\n")) == 3
    assert counted_once()
    stranger = utilities.SearxSearchWrapper(searx_host=f"{address}/search")
    with pytest.raises(ValueError, match="Searx API returned an error"):
        stranger.run(QUERY)


def test_a_program_that_knows_an_address_alone_searches_with_the_token_in_it(address):
    requests = pytest.importorskip("requests")
    # What Open WebUI sends where the address ends in /search?q=<query>.
    sent = {**JSON, "pageno": 1, "safesearch": "1", "language": "all", "time_range": ""}
    headers = {"User-Agent": "Open WebUI", "Accept": "text/html"}
    answer = requests.get(f"{address}/with/{TOKEN}/search", params=sent, headers=headers, timeout=9)
    assert answer.status_code == 200
    best = max(answer.json()["results"], key=lambda result: result["score"])
    assert best == answer.json()["results"][0]


def test_the_example_searches_by_a_form(address, tmp_path):
    example = Path(__file__).parents[2] / "examples" / "searxng_json.py"
    service = {"port": int(address.rpartition(":")[2]), "token": TOKEN}
    (tmp_path / "home" / "serve.json").write_text(json.dumps(service))
    done = subprocess.run(
        [sys.executable, str(example), QUERY], capture_output=True, text=True, check=True
    )
    assert len(done.stdout.splitlines()) == 10


def test_the_guard_reads_the_token_of_no_other_address():
    guard = Guard(lambda *_: None, replace(SETTINGS, searxng_json=True))  # type: ignore[arg-type]
    host = (b"host", f"127.0.0.1:{SETTINGS.port}".encode())
    for path in (f"/with/{TOKEN}/", f"/with/{TOKEN}/search/", f"/with/{TOKEN}/v1/ledger"):
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [host],
        }
        guard._check(scope)
        assert scope["state"]["trusted"] is False
        assert scope["path"] == path
