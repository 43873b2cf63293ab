"""A small part of the fuzz campaign; each planted defect is found."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from campaigns.frame import generator
from campaigns.fuzz import BATCH, PLANTS, opened
from campaigns.mutation import NASTY, mutated

pytest.importorskip("pyarrow")
pytest.importorskip("fastapi")

PLANTED_IN = {"index-error": "run", "repeats-content": "queries", "keeps-words": "texts"}


@pytest.fixture(scope="module")
def fuzz(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("fuzz"), None) as campaign:
        yield campaign


def test_no_reader_lets_anything_but_a_declared_error_out(fuzz):
    """Every target, a few inputs of each; another few each hundred commits would be no more."""
    counts: Counter[str] = Counter()
    names = [target.name for target in fuzz.targets]
    turns = fuzz.turns
    for number, name in enumerate(names):
        fuzz.only(name)
        outcome = fuzz.trial(number, generator(7, number), batch=20)
        assert outcome.findings == ()
        counts.update(outcome.counts)
    fuzz.turns = turns
    assert len(names) == len(set(names)) > 40
    assert counts["accepted"] + counts["refused"] == counts["inputs"]
    assert min(counts["accepted"], counts["refused"]) > 100


def test_no_text_keeps_a_word_that_was_not_released(fuzz):
    fuzz.only("texts")
    outcome = fuzz.trial(0, generator(7, 0), batch=200)
    assert outcome.findings == ()
    assert outcome.counts["accepted"] == 200


def test_a_trial_is_the_same_each_time(fuzz):
    fuzz.only("csv")
    first, second = (fuzz.trial(3, generator(1, 3), batch=60) for _ in range(2))
    assert first == second
    assert {fuzz.trial(n, generator(1, n), batch=60).counts["refused"] for n in range(5)} != {
        first.counts["refused"]
    }


@pytest.mark.parametrize("plant", PLANTS)
def test_each_planted_defect_is_found(plant, tmp_path):
    with opened(tmp_path, plant) as campaign:
        campaign.only(PLANTED_IN[plant])
        outcome = campaign.trial(0, generator(1, 0), batch=100)
    assert outcome.findings
    assert outcome.counts["inputs"] == 100 < BATCH


def test_mutations_change_what_is_valid_and_depend_on_the_generator_alone():
    seeds = [b"id,text\n1,skin\n" * 3, b'{"a": 1}']
    made = [mutated(Random(number), seeds) for number in range(300)]
    assert made == [mutated(Random(number), seeds) for number in range(300)]
    assert 250 < len(set(made)) <= 300
    assert sum(data in seeds for data in made) < 30
    assert any(token in data for data in made for token in NASTY if len(token) > 3)
