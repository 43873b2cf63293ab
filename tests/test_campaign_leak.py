"""The leak campaign for a moment: it finds nothing, and each planted defect."""

from __future__ import annotations

import base64
import hashlib

import numpy as np
import pytest
from campaigns import leak
from campaigns.frame import Progress, generator, run
from campaigns.leak_plants import PLANTS
from hostile_queries import SECRETS, Traces, queries

KINDS = ("words", "sets", "ledger", "vectors", "chorus", "interrupts")


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    with leak.opened(tmp_path_factory.mktemp("leak")) as opened:
        opened.scale = 0.05
        yield opened


def test_a_moment_of_it_finds_nothing(campaign):
    campaign.schedule = KINDS
    progress = run(campaign, Progress("leak", 11, "searches"), count=400, minutes=1)
    assert progress.findings == []
    assert progress.counts["answered"] > 150
    assert progress.counts["refused or failed"] > 20
    for kind in KINDS:
        assert progress.counts[f"kind: {kind}"]


@pytest.mark.parametrize("kind", ["proxy", "rest", "agents", "command"])
def test_nothing_leaks_through_services(campaign, kind):
    for package in ("fastapi", "uvicorn", *(["mcp.server.mcpserver"] if kind == "agents" else [])):
        pytest.importorskip(package, reason="pip install 'sottovoce[app,mcp]'")
    campaign.schedule = (kind,)
    progress = run(campaign, Progress("leak", 12, "searches"), count=6, minutes=1)
    assert progress.findings == []
    assert progress.units >= 6


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_defect_is_found(name, tmp_path):
    if PLANTS[name].kind == "proxy":
        pytest.importorskip("uvicorn", reason="pip install 'sottovoce[app]'")
    with leak.opened(tmp_path, name) as campaign:
        campaign.scale, campaign.failure = 0.05, PLANTS[name].failure
        campaign.schedule = (PLANTS[name].kind,)
        outcomes = (campaign.trial(number, generator(3, number)) for number in range(6))
        assert any(outcome.findings for outcome in outcomes)


# What is looked for


@pytest.mark.parametrize("secret", [s for s in SECRETS if s.isascii()])
def test_a_word_is_recognized_in_any_form(secret):
    traces, data = Traces([secret]), f"before {secret.upper()} behind".encode()
    percent = "".join(f"%{byte:02X}" for byte in secret.encode()).encode()
    forms = {
        "plain": data,
        "percent": b"GET /?q=" + percent,
        "percent twice": b"GET /?q=" + percent.replace(b"%", b"%25"),
        "utf-16": f"x {secret}".encode("utf-16"),
        "json": "".join(f"\\u{ord(sign):04X}" for sign in secret).encode(),
        "hash": hashlib.sha256(secret.encode()).hexdigest().upper().encode(),
        "digest": b"\0" + hashlib.md5(secret.encode()).digest(),
        "hex": secret.encode().hex().encode(),
    }
    if len(secret) > 7:
        forms |= {f"base64 {at}": base64.b64encode(b"x" * at + secret.encode()) for at in range(4)}
    assert [name for name, form in forms.items() if not traces.in_bytes(form)] == []
    assert traces.in_bytes(b"nothing of that kind: " + bytes(range(256))) == []


def test_queries_hold_secrets_in_shapes_that_break_things():
    asked = queries(SECRETS, 300, np.random.default_rng(1))
    assert all(any(secret in query for secret in SECRETS) for query in asked)
    assert sum("\r\n" in query for query in asked) > 5
    assert sum("\ud800" in query for query in asked) > 5
