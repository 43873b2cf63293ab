"""A thousand requests at once from a second process: none lost, none wrong, memory flat."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from types import ModuleType
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from starlette.testclient import TestClient

from sottovoce.app.queues import WorkQueue
from sottovoce.app.service import create_app
from sottovoce.app.settings import Settings
from sottovoce.spaces.space import WordSpace
from sottovoce.spaces.store import SpaceWriter

REQUESTS = 1000
GROWTH = 16 << 20
"""Bytes by which the server may grow from one thousand requests to the next."""
SPACE = "glove-840b-34k"
SETTINGS = Settings(token="0123456789abcdef-token", waiting=2, reranker="light", space=SPACE)


@pytest.fixture(scope="module")
def load() -> ModuleType:
    """The benchmark, whose client and comparison are used here."""
    place = Path(__file__).parents[1] / "benchmarks" / "service.py"
    spec = importlib.util.spec_from_file_location("service_load", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["service_load"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def frequent_words(default_space: WordSpace, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with frequent words of the space: what is counted here are requests."""
    folder, ids = tmp_path_factory.mktemp("spaces") / "frequent", np.arange(3000)
    dimension = default_space.dimension
    with SpaceWriter(folder, name="frequent", dimension=dimension, source={}) as writer:
        writer.append(default_space.words(ids), default_space.vectors[ids])
        writer.commit()
    return str(folder)


@pytest.mark.slow
def test_a_thousand_requests_at_once_are_all_answered_rightly(load, tmp_path, frequent_words):
    with load.serving(tmp_path, "--space", frequent_words, "--rerank", "light") as server:
        warm = load.bodies_of(200, 5000, {"n": 2})
        asyncio.run(load.storm(server, "/v1/obfuscate", warm))
        server.wait_until_idle()  # What it loads after the start is no growth by requests.
        bodies = load.bodies_of(REQUESTS, 0, {"n": 2})
        first = asyncio.run(load.storm(server, "/v1/obfuscate", bodies))
        before = server.memory
        second = asyncio.run(load.storm(server, "/v1/obfuscate", bodies))
        after = server.memory
    assert [each.status for each in first + second] == [200] * (2 * REQUESTS)
    assert load.wrong(bodies, first, frequent_words) == 0
    assert [each.body for each in second] == [each.body for each in first]
    assert after - before < GROWTH


def test_the_comparison_notices_a_wrong_answer(load, default_space):
    """An answer to another text, or with another seed, counts as wrong."""
    bodies = load.bodies_of(3, 0, {"n": 2})
    from sottovoce import Obfuscator, load_space, mechanism

    cmp = mechanism("cmp", space=load_space(SPACE))

    def answer(body: dict[str, Any], **other: Any) -> Any:
        asked = {**body, **other}
        (own,) = Obfuscator(cmp, n=2, rng=asked["seed"]).obfuscate([asked["text"]])
        return load.Answer(200, own.to_dict(), 0.0)

    assert load.wrong(bodies, [answer(each) for each in bodies], SPACE) == 0
    mixed = [answer(bodies[0]), answer(bodies[1], seed=7), answer(bodies[0])]
    assert load.wrong(bodies, mixed, SPACE) == 2


def holding(threads: WorkQueue) -> tuple[Event, list[Any]]:
    """Keep all threads of a queue busy until the event is set."""
    go = Event()
    held = [threads.submit(go.wait) for _ in threads._threads]
    until(threads._waiting.empty)
    return go, held


def until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.01)


def test_a_full_queue_refuses_with_503_and_the_others_are_answered(default_space):
    with as_user() as client, ThreadPoolExecutor(5) as many:
        service = client.app.state.service  # type: ignore[attr-defined]
        go, held = holding(service.obfuscating)
        asked = [
            many.submit(client.post, "/v1/obfuscate", json={"text": "skin cancer", "seed": 1})
            for _ in range(5)
        ]
        until(lambda: sum(each.done() for each in asked) == 3)
        go.set()
        answers = [each.result(60) for each in asked]
        assert all(each.result(60) for each in held)
    refused = [each for each in answers if each.status_code == 503]
    right = [each for each in answers if each.status_code == 200]
    assert (len(refused), len(right)) == (3, 2)
    assert refused[0].headers["retry-after"] == "2"
    assert refused[0].json()["kind"] == "full"
    assert "skin" not in refused[0].text
    assert right[0].json()["variants"] == right[1].json()["variants"]


def test_a_full_search_queue_refuses_before_a_stream_begins_and_leaves_the_rest_be(
    default_space,
):
    with as_user() as client:
        service = client.app.state.service  # type: ignore[attr-defined]
        service.long_work = WorkQueue("search", threads=1, waiting=1, timeout=60)
        started, go = Event(), Event()

        def hold() -> None:
            started.set()
            go.wait(60)

        service.long_work.submit(hold)
        started.wait(60)
        service.long_work.submit(hold)
        for accept in ("application/json", "application/x-ndjson"):
            answer = client.post(
                "/v1/search", json={"query": "skin cancer"}, headers={"Accept": accept}
            )
            assert answer.status_code == 503
            assert answer.json()["kind"] == "full"
        assert client.get("/health").status_code == 200
        assert client.post("/v1/obfuscate", json={"text": "skin cancer"}).status_code == 200
        go.set()


def test_work_that_takes_too_long_is_given_up_without_the_text(default_space, monkeypatch):
    with as_user() as client:
        service = client.app.state.service  # type: ignore[attr-defined]
        go, held = holding(service.obfuscating)
        monkeypatch.setattr(service.obfuscating, "timeout", 0.05)
        answer = client.post("/v1/obfuscate", json={"text": "skin cancer"})
        assert (answer.status_code, answer.json()["kind"]) == (504, "timeout")
        assert "skin" not in answer.text
        go.set()
        assert all(each.result(60) for each in held)


def as_user() -> TestClient:
    return TestClient(
        create_app(SETTINGS),
        base_url=f"http://127.0.0.1:{SETTINGS.port}",
        headers={"X-Sottovoce-Token": SETTINGS.token},
    )
