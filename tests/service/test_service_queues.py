"""Requests that wait: together, in order, not too many, and none mixed up."""

from __future__ import annotations

import asyncio
from threading import Event
from typing import Any

import pytest

pytest.importorskip("fastapi")

from service_client import QUERY

from sottovoce import Obfuscator
from sottovoce.app import queues
from sottovoce.app.queues import FullError, WorkQueue
from sottovoce.app.schemas import (
    ObfuscateBody,
)
from sottovoce.errors import UsageError


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
