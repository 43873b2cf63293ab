"""The QuIPU score: the published values, its rules, and the command."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.random import PCG64, Generator

from sottovoce.cli import main
from sottovoce.errors import UsageError
from sottovoce.privacy.quipu_score import parse_curves, quipu

TEM = ((0, 1), (0.008, 0.674))
SANTEXT = ((0, 0.930, 0.907), (0, 0.596, 0.595))
CMP_DL20 = (
    (0, 0, 0.019, 0.428, 0.820, 0.912, 0.948, 0.956, 0.957, 0.955),
    (0.002, 0.024, 0.581, 0.665, 0.668, 0.666, 0.666, 0.667, 0.669, 0.665),
)

shares = st.floats(0, 1, width=32)
curves = st.integers(2, 8).flatmap(
    lambda m: st.tuples(
        hnp.arrays(np.float64, m, elements=shares), hnp.arrays(np.float64, m, elements=shares)
    )
)


@pytest.mark.parametrize(
    ("points", "published"), [(TEM, -0.2643), (SANTEXT, -0.247), (CMP_DL20, 0.3537)]
)
def test_published_scores_come_out(points, published):
    assert quipu(*points).value == pytest.approx(published, abs=0.003)


@pytest.mark.parametrize(
    ("points", "published"),
    [
        (((), ()), -0.273),  # no protection at all
        (((0,), (0.674,)), 0.401),  # the best constant system
        (((0.616,), (0.575,)), -0.113),  # AEA
        (((0.081,), (0.19,)), -0.136),  # FEA
        (TEM, -0.265),
    ],
)
def test_published_anchored_scores_come_out(points, published):
    assert quipu(*points, best=0.674).anchored == pytest.approx(published, abs=0.003)


def test_points_keep_the_order_of_the_parameter_and_the_other_order_is_reported():
    score = quipu(*SANTEXT)
    assert score.value == pytest.approx(-0.247, abs=0.001)
    assert score.nu_sorted == pytest.approx(-0.242, abs=0.001)
    assert score.flags == ()  # they differ, but by less than .01


@given(curves)
def test_reversal_flips_the_sign(points):
    risk, utility = points
    there, back = quipu(risk, utility), quipu(risk[::-1], utility[::-1])
    assert back.value == pytest.approx(-there.value, abs=1e-12)


@given(curves, st.data())
def test_a_point_on_a_segment_changes_nothing(points, data):
    risk, utility = points
    at = data.draw(st.integers(1, len(risk) - 1))
    part = data.draw(shares)

    def split(values):
        return np.insert(values, at, values[at - 1] + part * (values[at] - values[at - 1]))

    expected = quipu(risk, utility)
    assert quipu(split(risk), split(utility)).value == pytest.approx(expected.value, abs=1e-9)


@given(curves)
def test_the_closed_form_is_the_same(points):
    r, u = points
    ends = ((u[-1] ** 2 - r[-1] ** 2) - (u[0] ** 2 - r[0] ** 2)) / 2
    turns = (u[:-1] * r[1:] - r[:-1] * u[1:]).sum()
    assert quipu(r, u).value == pytest.approx(ends + turns, abs=1e-9)


def test_no_point_is_not_a_number_and_one_point_is_zero():
    nothing, one = quipu([], []), quipu([0.3], [0.9])
    assert math.isnan(nothing.value)
    assert nothing.to_dict()["quipu"] is None
    assert one.value == 0
    assert nothing.flags == one.flags == ("degenerate",)


def test_a_curve_that_hardly_moves_is_stable_wherever_it_lies():
    for risk, utility in ((0.01, 0.98), (0.8, 0.1)):
        assert quipu([risk, risk + 0.01], [utility, utility + 0.01]).flags == ("stable",)
    assert quipu([0.1, 0.2], [0.1, 0.2]).flags == ()


def test_a_path_that_goes_and_returns_is_not_stable():
    assert "stable" not in quipu([0, 0.1, 0], [0, 0.1, 0]).flags


def test_a_curve_that_turns_back_is_flagged():
    score = quipu([0, 0.9, 0.1], [0, 0.2, 0.6])
    assert score.flags == ("backtracks",)
    assert score.nu_sorted == pytest.approx(quipu([0, 0.1, 0.9], [0, 0.6, 0.2]).value)


def test_a_score_outside_the_range_is_flagged_and_not_clamped():
    around = ([0, 0, 1, 1] * 3, [0, 1, 1, 0] * 3)
    score = quipu(*around)
    assert abs(score.value) > 1
    assert {"outside", "backtracks"} <= set(score.flags)


def test_means_outside_the_range_are_clipped_and_said_to_be():
    score = quipu([-0.5, 2], [0.008, 0.674])
    assert score.value == quipu([0, 1], [0.008, 0.674]).value
    assert score.flags == ("clipped",)


@pytest.mark.parametrize("bad", [math.nan, math.inf, None])
def test_what_is_missing_is_refused(bad):
    with pytest.raises(UsageError, match="missing or infinite"):
        quipu([0, bad], [0, 0.5])
    with pytest.raises(UsageError, match="missing or infinite"):
        quipu([0, 0.5], [bad, 0])


def test_shapes_that_do_not_fit_are_refused():
    for risk, utility in (([0, 1], [0]), (0.5, 0.5), ([[[0]]], [[[0]]]), (["a"], [0])):
        with pytest.raises(UsageError):
            quipu(risk, utility)
    with pytest.raises(UsageError, match="no queries"):
        quipu(np.zeros((2, 0)), np.zeros((2, 0)))


@pytest.mark.parametrize("wrong", [{"best": 1.5}, {"best": math.nan}, {"level": 1}, {"samples": 0}])
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(UsageError):
        quipu([[0, 0], [1, 1]], [[0, 0], [1, 1]], **wrong)


def per_query(queries=60, seed=3):
    rng = np.random.default_rng(seed)
    risk = rng.random((4, queries)) < np.array([0, 0.1, 0.5, 0.9])[:, None]
    utility = np.clip(rng.normal(np.array([0, 0.3, 0.6, 0.7])[:, None], 0.2, (4, queries)), 0, 1)
    return risk.astype(float), utility


def test_queries_give_the_score_of_their_means_and_an_interval_around_it():
    risk, utility = per_query()
    score = quipu(risk, utility, best=0.7)
    means = quipu(risk.mean(axis=1), utility.mean(axis=1), best=0.7)
    assert (score.value, score.anchored) == pytest.approx((means.value, means.anchored))
    assert means.interval is means.anchored_interval is None
    assert score.queries == 60
    assert score.interval[0] < score.value < score.interval[1]
    assert score.anchored_interval[0] < score.anchored < score.anchored_interval[1]


def test_the_interval_resamples_queries_that_stay_the_same_over_all_parameters():
    # By hand: means of whole columns drawn with replacement.
    risk, utility = per_query()
    rng = np.random.default_rng(5)
    drawn = [rng.integers(60, size=60) for _ in range(3000)]
    values = [
        quipu(risk[:, rows].mean(axis=1), utility[:, rows].mean(axis=1)).value for rows in drawn
    ]
    expected = np.quantile(values, [0.025, 0.975])
    assert quipu(risk, utility, samples=4000).interval == pytest.approx(expected, abs=0.01)


def test_more_queries_narrow_the_interval():
    few, many = (quipu(*per_query(count)).interval for count in (30, 3000))
    assert many[1] - many[0] < (few[1] - few[0]) / 4


def test_the_block_of_resamplings_does_not_change_the_interval(monkeypatch):
    whole = quipu(*per_query()).interval
    monkeypatch.setattr("sottovoce.privacy.quipu_score.NUMBERS_AT_A_TIME", 100)
    assert quipu(*per_query()).interval == pytest.approx(whole, abs=1e-12)


def test_one_query_has_no_interval():
    assert quipu([[0], [1]], [[0.1], [0.5]]).interval is None


def test_curves_are_ordered_by_number_and_repeated_measurements_averaged():
    (curve,) = parse_curves(
        "system,parameter,risk,utility\ncmp,10,.4,.6\ncmp,5,0,.1\ncmp,10.0,.2,.8\ncmp,5,.2,.3\n"
    )
    assert curve.parameters == ("5", "10")
    np.testing.assert_allclose(curve.risks, [0.1, 0.3])
    np.testing.assert_allclose(curve.utilities, [0.2, 0.7])


def test_seeds_are_averaged_within_each_query():
    (curve,) = parse_curves(
        "system,parameter,query,risk,utility\n"
        "cmp,1,a,0,0\ncmp,1,a,1,0\ncmp,1,b,0,.2\ncmp,2,b,1,1\ncmp,2,a,1,.5\n"
    )
    np.testing.assert_allclose(curve.risks, [[0.5, 0], [1, 1]])
    np.testing.assert_allclose(curve.utilities, [[0, 0.2], [0.5, 1]])


def test_names_keep_their_order_and_descending_systems_turn_round():
    rows = "system,parameter,risk,utility\naea,3,.9,.9\naea,5,.1,.2\nx,low,.1,.1\nx,high,.8,.8\n"
    aea, named = parse_curves(rows, descending=("aea",))
    assert aea.parameters == ("5", "3")
    assert named.parameters == ("low", "high")
    assert parse_curves(rows)[0].parameters == ("3", "5")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "empty"),
        ("system,parameter,risk,utility\n", "no measurement"),
        ("system,parameter,risk\na,1,0\n", "no column utility"),
        ("system,parameter,risk,utility\na,1,0\n", "line 2"),
        ("system,parameter,risk,utility\na,1,0,1\na,2,nan,1\n", "risk in line 3"),
        ("system,parameter,risk,utility\na,1,0,\n", "utility in line 2"),
        ("system,parameter,risk,utility\na,nan,0,1\n", "parameter is not a number"),
        ("system,parameter,query,risk,utility\na,1,p,0,1\na,2,q,0,1\n", "2 pairs"),
    ],
)
def test_bad_files_are_refused_with_what_to_do(content, said):
    with pytest.raises(UsageError, match=said):
        parse_curves(content)


@pytest.fixture
def run(monkeypatch, capsys):
    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["sottovoce", *map(str, arguments)])
        with warnings.catch_warnings(), pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        return ended.value.code or 0, shown.out, shown.err

    return call


@pytest.fixture
def measured(tmp_path):
    file = tmp_path / "measured.csv"
    rows = [f"santext,{e},{r},{u}" for e, r, u in zip((1, 5, 50), *SANTEXT, strict=True)]
    rows += ["aea,3,.616,.575", "[tem],1,0,.008", "[tem],50,1,.674"]
    file.write_text("\n".join(["system,parameter,risk,utility", *rows]))
    return file


def test_the_command_prints_scores_and_flags(run, measured):
    code, out, _ = run("quipu", measured, "--best", 0.674)
    assert code == 0
    assert "-.247" in out
    assert "-.113" in out
    assert "[tem]" in out
    assert "degenerate: fewer than two points" in out


def test_the_command_speaks_to_programs(run, measured):
    code, out, _ = run("quipu", measured, "--json")
    santext, aea, _ = json.loads(out)["systems"]
    assert code == 0
    assert santext["quipu"] == pytest.approx(-0.247, abs=0.003)
    assert santext["parameters"] == ["1", "5", "50"]
    assert santext["anchored"] is santext["interval"] is None
    assert aea["flags"] == ["degenerate"]


def test_the_command_draws_the_plane(run, measured, tmp_path):
    code, _, _ = run("quipu", measured, "--best", 0.674, "--figure", tmp_path / "plane.svg")
    drawn = (tmp_path / "plane.svg").read_text()
    assert code == 0
    assert drawn.rstrip().endswith("</svg>")


def test_wrong_use_ends_with_2_and_writes_nothing(run, measured, tmp_path):
    out = tmp_path / "plane.png"
    for wrong in (
        ("quipu", tmp_path / "none.csv"),
        ("quipu", measured, "--best", 2),
        ("quipu", measured, "--descending", "secretsystem"),
    ):
        code, shown, complaint = run(*wrong, "--figure", out)
        assert (code, shown) == (2, "")
        assert "secretsystem" not in complaint
    assert not out.exists()
    assert run("quipu", measured, "--figure", tmp_path / "plane.pdf")[0] == 2


def test_the_end_of_the_anchored_score_is_resampled_with_the_queries():
    rng = Generator(PCG64(3))
    risk, utility = np.sort(rng.random((4, 40)), axis=0), rng.random((4, 40))
    best = (np.arange(40) % 2).astype(float)
    by_query, fixed = (quipu(risk, utility, best=each) for each in (best, best.mean()))
    assert by_query.anchored == pytest.approx(fixed.anchored)
    assert by_query.interval == fixed.interval
    assert by_query.anchored_interval != fixed.anchored_interval
    with pytest.raises(UsageError, match="once for each query"):
        quipu(risk, utility, best=best[:3])
