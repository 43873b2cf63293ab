"""Campaigns go on where they stopped, repeat a trial exactly, and count what was found."""

from __future__ import annotations

import pytest
from campaigns.frame import Outcome, Progress, generator, run


class Dice:
    """Each trial throws ten dice; it complains when all ten show at most three."""

    unit = "dice"

    def trial(self, number, rng):
        throws = rng.integers(1, 7, 10)
        low = ("ten low dice",) if throws.max() <= 3 else ()
        return Outcome({"dice": 10, "sixes": int((throws == 6).sum())}, low)


def test_stopped_and_started_again_it_sees_the_same(tmp_path):
    at_once = run(Dice(), Progress("dice", 5, "dice"), count=40_000, minutes=1)
    file = tmp_path / "dice.json"
    run(Dice(), Progress("dice", 5, "dice"), count=15_000, minutes=1, file=file)
    resumed = run(Dice(), Progress.load(file), count=40_000, minutes=1, file=file)
    for progress in (resumed, Progress.load(file)):
        assert progress.counts == at_once.counts
        assert progress.findings == at_once.findings
        assert progress.found == at_once.found > 0
    assert at_once.trials == 4000


def test_a_trial_alone_is_the_trial_of_the_row():
    progress = run(Dice(), Progress("dice", 5, "dice"), count=40_000, minutes=1)
    number = int(progress.findings[0].removeprefix("trial ").split(":")[0])
    assert Dice().trial(number, generator(5, number)).findings == ("ten low dice",)


def test_the_time_is_a_limit_and_what_was_done_is_saved(tmp_path):
    class Failing(Dice):
        def trial(self, number, rng):
            if number == 7:
                raise RuntimeError
            return super().trial(number, rng)

    progress = run(Dice(), Progress("dice", 5, "dice"), count=10**9, minutes=0.002)
    assert 0 < progress.trials < 10**8
    with pytest.raises(RuntimeError):
        run(Failing(), Progress("dice", 5, "dice"), count=1000, minutes=1, file=tmp_path / "x.json")
    assert Progress.load(tmp_path / "x.json").trials == 7
