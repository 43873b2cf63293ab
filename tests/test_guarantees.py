"""A guarantee is data that can be asked, and that says no more than it means."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.errors import UsageError
from sottovoce.guarantees import Guarantee

METRIC = Guarantee("metric", 10.0, "euclidean")


def test_the_loss_grows_with_distance_and_releases():
    assert METRIC.loss(5.0) == 50.0
    assert METRIC.loss(5.0, releases=20) == 1000.0
    assert METRIC.loss(0.0, releases=20) == 0.0
    assert METRIC.loss(5.0, releases=0) == 0.0


def test_no_guarantee_means_no_bound():
    nothing = Guarantee("none", None)
    assert nothing.loss(0.001) == math.inf
    assert "no formal guarantee" in nothing.sentence


@given(st.floats(1e-3, 1e3), st.floats(0, 100), st.integers(1, 50))
def test_releases_add_up(epsilon, distance, releases):
    promise = Guarantee("local", epsilon)
    assert promise.loss(distance, releases) == pytest.approx(
        sum(promise.loss(distance) for _ in range(releases))
    )


@pytest.mark.parametrize("notion", ["metric", "local", "group", "none"])
def test_every_notion_has_its_own_sentence(notion):
    promise = Guarantee(
        notion, None if notion == "none" else 2.0, "euclidean" if notion == "metric" else None
    )
    assert "epsilon-dp" not in promise.sentence.lower()
    if notion != "none":
        assert "epsilon 2" in promise.sentence
    if notion == "metric":
        assert "euclidean" in promise.sentence
        assert "differential privacy" not in promise.sentence


def test_caveats_add_up_without_repeating():
    promise = METRIC.with_caveats("one", "two").with_caveats("two", "three")
    assert promise.caveats == ("one", "two", "three")
    assert json.loads(json.dumps(promise.to_dict()))["caveats"] == ["one", "two", "three"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("none", 1.0),
        ("local", None),
        ("local", 0.0),
        ("local", -1.0),
        ("local", math.nan),
        ("local", math.inf),
        ("metric", 1.0),
        ("local", 1.0, "euclidean"),
        ("perfect", 1.0),
    ],
)
def test_contradictory_claims_cannot_be_made(arguments):
    with pytest.raises(UsageError):
        Guarantee(*arguments)


def test_impossible_questions_are_refused():
    with pytest.raises(UsageError):
        METRIC.loss(-1.0)
    with pytest.raises(UsageError):
        METRIC.loss(math.nan)
