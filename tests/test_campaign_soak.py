"""A few seconds of the soak campaign, with the real service; each planted defect is found."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
if sys.platform != "linux":
    pytest.skip("memory is read from /proc", allow_module_level=True)

from campaigns.frame import generator
from campaigns.soak import PLANTS, opened


@pytest.fixture(scope="module")
def soak(tmp_path_factory, default_space):
    with opened(tmp_path_factory.mktemp("soak"), None) as campaign:
        campaign.rate, campaign.seconds, campaign.trace = 120.0, 1.0, None
        yield campaign


def test_every_request_is_answered_rightly_beside_slow_clients(soak):
    outcome = soak.trial(0, generator(1, 0))
    assert outcome.findings == ()
    assert outcome.counts["requests"] == 120
    assert (
        sum(count for name, count in outcome.counts.items() if name.startswith("answered")) == 120
    )


def test_a_clock_that_is_set_and_a_disk_that_is_full_lose_nothing(soak):
    set_clock = soak.trial(3, generator(1, 3))
    full = soak.trial(4, generator(1, 4))
    after = soak.trial(5, generator(1, 5))
    for outcome in (set_clock, full, after):
        assert outcome.findings == ()
    assert set_clock.counts["clock set, trials"] == 1
    if soak.small_disk is None:
        pytest.skip("only root can have a small disk: a full one was not tried")
    assert full.counts["searches refused on a full disk"] > 0


@pytest.mark.parametrize("plant", PLANTS)
def test_each_planted_defect_is_found(soak, plant, monkeypatch):
    monkeypatch.setattr(soak, "patience", 3.0)
    sign = {"leak": "memory", "mixed": "another answer", "lost": "no answer"}[plant]
    soak.plant(plant)
    try:
        assert any(
            sign in what
            for number in range(3 + 2 * (plant == "leak"))
            for what in soak.trial(number % 3, generator(2, number)).findings
        )
    finally:
        soak.plant(None)
