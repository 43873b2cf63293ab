"""Calibration: the epsilon that comes out keeps the targets, and a somewhat larger one does not."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sottovoce import mechanism
from sottovoce.errors import UsageError
from sottovoce.mechanisms import WordMechanism
from sottovoce.privacy.calibration import Calibration, calibrate
from sottovoce.privacy.costs import measure_cost, nats
from sottovoce.privacy.plausible_deniability import deniability
from sottovoce.privacy.targets import DrawsJudge, LawJudge, Targets
from sottovoce.privacy.word_draws import CommonNoise, sampler_for
from sottovoce.privacy.word_samples import sample_words
from sottovoce.spaces.space import WordSpace
from sottovoce.spaces.store import SpaceWriter


@pytest.fixture(scope="module")
def line():
    """Two words at distance 1: N_w = 1 / (1 + exp(-epsilon / 2)) for SanText."""
    return WordSpace.from_arrays(["left", "right"], [[0.0], [1.0]], name="line")


@pytest.fixture(scope="module")
def few(small_space):
    return sample_words(small_space, 25)


def at(found: Calibration, factor: float) -> WordMechanism:
    return replace(found.mechanism, epsilon=found.epsilon * factor)


def test_a_law_of_two_words_is_solved_by_hand(line):
    """N_w <= 0.75 means epsilon <= 2 ln 3."""
    found = calibrate(mechanism("santext", space=line), Targets(max_unchanged=0.75))
    assert found.limited
    assert found.epsilon <= 2 * np.log(3)
    assert found.epsilon == pytest.approx(2 * np.log(3), rel=0.015)
    assert found.measured.exact
    assert not found.seeded
    assert all(check.kept for check in found.smaller)


@pytest.mark.parametrize("name", ["santext", "tem"])
def test_an_exact_answer_keeps_both_targets_and_a_larger_one_does_not(small_space, few, name):
    targets = Targets(max_unchanged=0.2, min_support=500)
    found = calibrate(mechanism(name, space=small_space), targets, few)
    assert found.measured.unchanged.max() <= 0.2
    assert found.measured.support.min() >= 500
    assert len(targets.broken(deniability(at(found, 1.03), few)))


def test_a_sampled_answer_keeps_the_targets_on_fresh_draws(small_space, few):
    targets = Targets(max_unchanged=0.1, min_support=60)
    found = calibrate(mechanism("cmp", space=small_space), targets, few, draws=400, rng=1)
    assert found.seeded
    assert found.measured.seeded
    assert not len(targets.broken(found.measured))
    fresh = deniability(found.mechanism, few, draws=2000, rng=99)
    assert fresh.unchanged.max() <= 0.1
    assert fresh.support_bound.min() >= 60
    far = deniability(at(found, 3), few, draws=400, rng=99)
    assert len(targets.broken(far))
    assert [check.epsilon for check in found.smaller] == pytest.approx(
        [found.epsilon * share for share in (0.75, 0.5, 0.25)], rel=0.01
    )


def test_the_answer_hardly_depends_on_the_seed_nor_on_the_epsilon_given(small_space, few):
    targets = Targets(max_unchanged=0.1)
    first, again, other = (
        calibrate(
            mechanism("cmp", space=small_space, epsilon=given), targets, few, draws=300, rng=seed
        )
        for given, seed in ((1, 1), (50, 1), (1, 2))
    )
    assert first.to_dict() == again.to_dict()
    assert not np.array_equal(first.measured.unchanged, other.measured.unchanged)
    assert other.epsilon == pytest.approx(first.epsilon, rel=0.35)


def test_secure_runs_are_not_called_seeded(toy):
    found = calibrate(mechanism("cmp", space=toy), Targets(max_unchanged=0.9), draws=100)
    assert not found.seeded
    assert not found.measured.seeded


def test_what_is_not_monotone_is_said(toy):
    """With t = 1 the second nearest word wins: words come back at middling epsilons alone."""
    vickrey = mechanism("vickrey-cmp", space=toy, t=1)
    found = calibrate(vickrey, Targets(max_unchanged=0.1), draws=200, rng=1)
    assert not found.limited
    assert found.measured.unchanged.max() == 0
    assert any(not check.kept for check in found.smaller)


def test_targets_that_limit_nothing_are_answered_as_such(small_space, few):
    found = calibrate(mechanism("wbb", space=small_space), Targets(max_unchanged=0.05), few)
    assert not found.limited
    assert all(check.kept for check in found.smaller)


@settings(max_examples=15)
@given(st.floats(0.4, 0.95), st.integers(1, 4))
def test_exact_answers_keep_any_possible_target(toy, most, support):
    targets = Targets(max_unchanged=most, min_support=support, eta=0.05)
    found = calibrate(mechanism("santext", space=toy), targets)
    assert not len(targets.broken(found.measured))
    assert len(targets.broken(deniability(at(found, 1.03), np.arange(5), eta=0.05)))


@given(st.integers(0, 1000), st.floats(0.3, 3), st.booleans())
@settings(max_examples=20)
def test_stopping_early_changes_no_verdict(small_space, few, seed, epsilon, common):
    """The words that fail are those that all draws together fail."""
    targets = Targets(max_unchanged=0.1, min_support=150)
    cmp = mechanism("cmp", space=small_space, epsilon=epsilon)
    sampler = sampler_for(cmp, few, np.random.SeedSequence(seed), len(few))
    if common:
        sampler = CommonNoise("cmp", few, np.random.SeedSequence(seed), len(few), keeping=True)
    judge = DrawsJudge(cmp, few, targets, lambda _: None, 300, sampler)
    whole = deniability(cmp, few, draws=300, sampler=sampler)
    broken = set(targets.broken(whole).tolist())
    alone = {place for place in range(25) if len(judge.failing(epsilon, np.array([place])))}
    assert alone == broken
    found = judge.failing(epsilon, np.arange(25))
    assert bool(len(found)) == bool(broken)
    assert set(found.tolist()) <= broken


def test_judging_by_law_is_judging_by_what_is_measured(small_space, few):
    targets = Targets(max_unchanged=0.3, min_support=900)
    santext = mechanism("santext", space=small_space, epsilon=1.6)
    judge = LawJudge(santext, few, targets, lambda _: None)
    broken = set(targets.broken(deniability(santext, few)).tolist())
    assert 0 < len(broken) < 25
    alone = {place for place in range(25) if len(judge.failing(1.6, np.array([place])))}
    assert alone == broken


# What cannot be


@pytest.mark.parametrize(
    ("spec", "targets", "said"),
    [
        ("wbb:n=50", Targets(min_support=51), "no more than 50 different words.*--set n="),
        ("custext:k=20", Targets(min_support=21), "no more than 20 different words.*--set k="),
        ("custext:k=20", Targets(max_unchanged=0.05), "max-unchanged cannot be kept.*0.050"),
        ("custext:k=20", Targets(0.05, 5), "max-unchanged cannot be kept"),
        ("santext:sensitive=0.5,p=0.2", Targets(max_unchanged=0.5), "come back 0.80000"),
        ("cmp", Targets(min_support=2001), "no more than 2000"),
        ("cmp", Targets(min_support=1500), "draws a word cannot show that min-support"),
        ("cmp", Targets(max_unchanged=0.001), "draws a word cannot show that max-unchanged"),
        ("cmp", Targets(max_unchanged=0), "never comes back"),
    ],
)
def test_impossible_targets_are_named_with_the_reason(small_space, few, spec, targets, said):
    with pytest.raises(UsageError, match=said):
        calibrate(mechanism(spec, space=small_space), targets, few, draws=300, rng=1)


def test_bounds_leave_room_for_luck():
    """1000 draws show N_w <= 0.05 for 200 words at once if none came back more than 26 times."""
    assert Targets(0.05, 300).limits(1000, 200) == (26, 323)


def test_draws_advised_are_enough(small_space, few):
    targets = Targets(max_unchanged=0.02)
    with pytest.raises(UsageError, match=r"--draws (\d+)") as caught:
        targets.check_draws(100, 25)
    advised = int(str(caught.value).split("--draws ")[1].split()[0])
    targets.check_draws(advised, 25)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_unchanged": float("nan")},
        {"max_unchanged": 1.1},
        {"max_unchanged": -0.1},
        {"min_support": 0},
        {"min_support": 2.5},
        {"min_support": True},
        {"max_unchanged": 0.1, "eta": 0.0},
        {"max_unchanged": 0.1, "eta": float("nan")},
        {},
    ],
)
def test_targets_outside_their_ranges_are_refused(wrong):
    with pytest.raises(UsageError):
        Targets(**wrong)


# What it costs


def test_nats_are_those_of_the_guarantee(toy, small_space):
    words, others = np.array([0, 0]), np.array([1, 3])
    far = np.sqrt(((toy.vectors[others] - toy.vectors[words]) ** 2).sum(axis=1))
    cmp = mechanism("cmp", space=toy, epsilon=3)
    assert nats(cmp, words, others) == pytest.approx(3 * far)
    assert np.isinf(nats(mechanism("wbb:k=1,n=3", space=toy), words, others)).all()
    custext = mechanism("custext:k=2", space=toy, epsilon=1)
    (box, _), *_ = custext.laws(np.array([0]))
    partner = box[box != 0][0]
    assert nats(custext, np.array([0, 0]), np.array([partner, 3])).tolist() == [1, np.inf]


def test_costs_are_measured_on_the_demo(default_space, monkeypatch):
    monkeypatch.setattr("sottovoce.privacy.costs.SENT", 5)
    ids = sample_words(default_space, 10)
    loud, low = (
        measure_cost(
            deniability(mechanism("cmp", space=default_space, epsilon=e), ids, draws=20, rng=1), 1
        )
        for e in (15, 5)
    )
    assert loud.similarity > low.similarity
    assert low.moved > loud.moved
    assert low.moved > low.nearest > 3
    assert low.nats_random > low.nats_nearest == pytest.approx(5 * low.nearest, rel=0.1)
    assert loud.answers.private > low.answers.private
    assert loud.answers.plain == low.answers.plain == pytest.approx(0.639, abs=0.002)
    assert loud.answers.said_aloud > low.answers.said_aloud


def test_a_space_that_does_not_know_the_demo_says_so(small_space, few):
    wbb = deniability(mechanism("wbb", space=small_space), few)
    cost = measure_cost(wbb, 1)
    assert cost.similarity is None
    assert cost.answers is None
    assert "less than half" in cost.notes[0]
    said = json.loads(json.dumps(cost.to_dict(), allow_nan=False))
    assert said["nats_nearest"] is None


# The command


@pytest.fixture(scope="module")
def home(tmp_path_factory, small_space):
    folder = tmp_path_factory.mktemp("home")
    with SpaceWriter(folder / "spaces" / "glove-840b-34k", name="small", dimension=20) as writer:
        writer.append(small_space.words(range(300)), small_space.vectors[:300])
        writer.commit()
    return folder


@pytest.fixture
def run(home, monkeypatch, capsys):
    from sottovoce import cli

    def call(*arguments):
        monkeypatch.setenv("SOTTOVOCE_HOME", str(home))
        monkeypatch.setattr(sys, "argv", ["sottovoce", *arguments])
        try:
            cli.main()
            code = 0
        except SystemExit as done:
            code = done.code or 0
        return (code, *capsys.readouterr())

    return call


def test_the_command_answers_people_and_programs(run):
    arguments = ("calibrate", "santext", "--max-unchanged", "0.2", "--words", "20")
    code, out, _ = run(*arguments)
    assert code == 0
    assert "checked exactly" in out
    assert "Also kept at epsilon" in out
    assert "not measured" in out
    code, out, _ = run(*arguments, "--json", "--no-cost")
    said = json.loads(out)
    assert said["targets"]["max_unchanged"] == 0.2
    assert said["measured"]["unchanged"]["worst"] <= 0.2
    assert said["mechanism"] == f"santext:epsilon={said['epsilon']:g}"
    assert said["cost"] is None


@pytest.mark.parametrize(
    "arguments",
    [
        ("cmp",),
        ("cmp", "--max-unchanged", "nan"),
        ("cmp", "--max-unchanged", "1.5"),
        ("cmp", "--max-unchanged", "often"),
        ("cmp", "--min-support", "0"),
        ("cmp", "--max-unchanged", "0.1", "--eta", "1"),
        ("cmp:epsilon=-1", "--max-unchanged", "0.1"),
        ("cmp", "--max-unchanged", "0.1", "--draws", "0"),
        ("wbb", "--min-support", "300"),
        ("aea", "--min-support", "300"),
        ("nosuch", "--min-support", "300"),
    ],
)
def test_wrong_use_has_exit_code_2(run, arguments):
    code, out, err = run("calibrate", *arguments)
    assert (code, out) == (2, "")
    assert err
    assert "Traceback" not in err
