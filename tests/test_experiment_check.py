"""An experiment against its expectations: means, verdicts at their boundaries, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiment_folder import write_folder, write_table
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from sottovoce.cli import app
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.experiments.check import Checked, ahead, check, within
from sottovoce.experiments.estimates import quipu_scores
from sottovoce.experiments.results import Place, Results
from sottovoce.experiments.schema.expectations import expectations_of
from sottovoce.experiments.schema.experiment import Expected, ExpectedOrder
from sottovoce.experiments.tables import NO_PRIVACY, PRIVATE, SAME_DEPTH

SETTING = ("pool", "bm25", "light", "cmp", 10.0, "independent", 20)


def figure(value: float, tolerance: float = 0.1, **where: Any) -> Expected:
    measure, table = where.pop("measure", "nDCG@10"), where.pop("table", "queries")
    return Expected(
        name="a figure",
        table=table,
        measure=measure,
        where=where,
        value=value,
        tolerance=tolerance,
    )


def order(*values: Any, by: str = "mechanism", tolerance: float = 0.1, **where: Any) -> Any:
    measure, table = where.pop("measure", "nDCG@10"), where.pop("table", "queries")
    return ExpectedOrder(
        name="an order",
        table=table,
        measure=measure,
        where=where,
        by=by,
        order=values,
        tolerance=tolerance,
    )


def finished(folder: Path, means: dict[str, float], toml: str = "") -> Path:
    """A folder with one query and a value for each mechanism, at epsilon 10."""
    write_folder(folder, mechanisms=(), words=0, tasks=(), plotted=())
    rows = [
        ("pool", "bm25", "light", name, 10.0, "independent", 20, 0, PRIVATE, "q", "nDCG@10", value)
        for name, value in means.items()
    ]
    write_table(folder, "queries", rows)
    (folder / "experiment.toml").write_text(toml or 'name = "made-up"\n', encoding="utf-8")
    return folder


def only(found: list[Checked]) -> Checked:
    assert len(found) == 1
    return found[0]


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Results:
    return Results(write_folder(tmp_path_factory.mktemp("made-up")))


def test_within_the_tolerance_is_ok_within_three_times_okish():
    assert within(0.02, 0.02) == "OK"
    assert within(abs(0.32 - 0.30), 0.02) == "OK"
    assert within(0.0201, 0.02) == "OKish"
    assert within(0.06, 0.02) == "OKish"
    assert within(0.0601, 0.02) == "FAIL"
    assert within(0.0, 0.0) == "OK"
    assert within(0.001, 0.0) == "FAIL"


def test_any_lead_is_ok_a_small_lag_okish():
    assert ahead(0.001, 0.02) == "OK"
    assert ahead(0.0, 0.02) == "OKish"
    assert ahead(-0.02, 0.02) == "OKish"
    assert ahead(-0.0201, 0.02) == "FAIL"
    assert ahead(0.0, 0.0) == "OKish"


@given(
    st.floats(0, 1), st.floats(0, 1), st.floats(0, 0.5), st.sampled_from(("FAIL", "OKish", "OK"))
)
def test_a_larger_tolerance_never_makes_a_verdict_worse(miss, wider, tolerance, verdict):
    if within(miss, tolerance) == verdict:
        rank = ("FAIL", "OKish", "OK").index
        assert rank(within(miss, tolerance + wider)) >= rank(verdict)
        assert rank(ahead(-miss, tolerance + wider)) >= rank(ahead(-miss, tolerance))


def test_a_query_counts_once_however_many_seeds_it_has(tmp_path):
    folder = finished(tmp_path, {})
    rows = [
        (*SETTING, 0, PRIVATE, "one", "nDCG@10", 0.1),
        (*SETTING, 1, PRIVATE, "one", "nDCG@10", 0.3),
        (*SETTING, 0, PRIVATE, "two", "nDCG@10", 0.8),
    ]
    write_table(folder, "queries", rows)
    assert only(check(Results(folder), [figure(0.5, 0.0)])).verdict == "OK"


def test_private_rows_are_meant_unless_another_system_is_named(tmp_path):
    folder = finished(tmp_path, {})
    rows = [
        (*SETTING, 0, PRIVATE, "q", "nDCG@10", 0.2),
        (*SETTING, 0, SAME_DEPTH, "q", "nDCG@10", 0.6),
        ("pool", "bm25", "light", "", None, "", 0, 0, NO_PRIVACY, "q", "nDCG@10", 0.7),
    ]
    write_table(folder, "queries", rows)
    expected = [
        figure(0.2, 0.0),
        figure(0.6, 0.0, system=SAME_DEPTH, epsilon=10),
        figure(0.7, 0.0, system=NO_PRIVACY),
    ]
    assert [each.verdict for each in check(Results(folder), expected)] == ["OK"] * 3


@pytest.mark.parametrize(
    ("table", "measure", "where"),
    [
        ("queries", "jaccard", {"mechanism": "cmp", "epsilon": 5}),
        ("queries", "nDCG@10", {"mechanism": "cmp", "epsilon": 5, "engine": "bm25"}),
        ("words", "N_w", {"mechanism": "cmp", "epsilon": 5}),
        ("tasks", "accuracy", {"mechanism": "cmp", "epsilon": 5, "obfuscated": "both"}),
    ],
)
def test_the_mean_is_that_of_the_rows_selected(results, table, measure, where):
    rows = getattr(results, table).to_pylist()
    values = [
        row["value"]
        for row in rows
        if row["measure"] == measure
        and row.get("system", PRIVATE) == PRIVATE
        and all(row[column] == value for column, value in where.items())
    ]
    assert values
    found = only(check(results, [figure(0.0, 1.0, table=table, measure=measure, **where)]))
    assert found.figures["ours"] == pytest.approx(np.mean(values))
    assert found.difference == pytest.approx(np.mean(values))


def test_a_quipu_score_is_that_of_the_report(results):
    scores = quipu_scores(results, Place("demo", "bm25", "light"), "motivated[light]")
    score = next(each for curve, each in scores.items() if curve.mechanism == "cmp")
    where = {"table": "quipu", "measure": "motivated[light]", "mechanism": "cmp"}
    found = only(check(results, [figure(score.value, 0.0, engine="bm25", **where)]))
    assert found.verdict == "OK"
    assert found.figures["ours"] == pytest.approx(score.value)
    both = only(check(results, [figure(0.0, 1.0, **where)]))
    assert both.figures["ours"] != pytest.approx(score.value), "the mean over two engines"


def test_what_was_not_measured_is_said_and_fails_nothing(results):
    expected = [
        figure(0.5, measure="nDCG@20"),
        figure(0.5, epsilon=11),
        figure(0.5, mechanism="tem"),
        figure(0.5, table="quipu", measure="motivated[light]", mechanism="tem"),
        figure(0.5, table="quipu", measure="motivated[strong]"),
    ]
    assert {each.verdict for each in check(results, expected)} == {"NOT MEASURED"}
    assert only(check(results, [], [order("cmp", ">", "tem")])).verdict == "NOT MEASURED"


def test_an_order_is_checked_step_by_step_and_group_by_group(tmp_path):
    means = {"a": 0.9, "b": 0.85, "c": 0.5, "d": 0.55}
    results = Results(finished(tmp_path, means))
    alike, others, step = check(results, [], [order("a", "~", "b", ">", "d", "~", "c")])
    assert (alike.verdict, others.verdict, step.verdict) == ("OK", "OK", "OK")
    assert alike.difference == pytest.approx(0.05)
    assert step.difference == pytest.approx(0.85 - 0.55), "the least of the first, the best of c, d"
    assert step.figures == pytest.approx({"a": 0.9, "b": 0.85, "d": 0.55, "c": 0.5})
    assert only(check(results, [], [order("c", "<", "d")])).verdict == "OK"
    assert only(check(results, [], [order("c", ">", "d")])).verdict == "OKish"
    assert only(check(results, [], [order("c", ">", "d", tolerance=0.04)])).verdict == "FAIL"
    assert only(check(results, [], [order("a", "~", "c")])).verdict == "FAIL"
    assert only(check(results, [], [order("a", "~", "d", tolerance=0.2)])).verdict == "OKish"


def test_nothing_is_said_among_values_joined_by_a_comma(tmp_path):
    results = Results(finished(tmp_path, {"a": 0.9, "b": 0.3, "c": 0.2, "d": 0.4}))
    assert only(check(results, [], [order("a", ",", "b", ">", "c")])).verdict == "OK"
    assert only(check(results, [], [order("a", ",", "b", ">", "c", ",", "d")])).verdict == "OKish"


def test_a_step_fails_if_any_of_its_members_is_out_of_place(tmp_path):
    results = Results(finished(tmp_path, {"a": 0.9, "b": 0.3, "c": 0.5}))
    _, step = check(results, [], [order("a", "~", "b", ">", "c")])
    assert step.verdict == "FAIL"
    assert step.difference == pytest.approx(-0.2)


def test_an_order_can_be_one_of_epsilons(results):
    found = check(results, [], [order(1, "<", 5, "<", 10, "<", 15, by="epsilon", mechanism="cmp")])
    assert [each.verdict for each in found] == ["OK"] * 3
    assert found[0].name == "an order: 1 < 5"


TOML = """
name = "made-up"

[[expected]]
name = "nDCG@10 of a"
measure = "nDCG@10"
where = { mechanism = "a" }
epsilons = [10]
values = [VALUE]
tolerance = 0.05
source = "a paper"

[[expected_order]]
name = "nDCG@10"
measure = "nDCG@10"
order = ["a", ">", "b"]
tolerance = 0.05
source = "another paper"
"""


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["experiment", "check", *arguments])


def test_the_command_shows_every_verdict_and_ends_well(tmp_path):
    folder = finished(tmp_path, {"a": 0.5, "b": 0.4}, TOML.replace("VALUE", "0.46"))
    done = run(str(folder))
    assert done.exit_code == 0, done.output
    assert "a paper" in done.output
    assert "another paper" in done.output
    assert "nDCG@10 of a, epsilon 10" in " ".join(done.output.split())
    assert "2 OK" in done.output


def test_a_wrong_figure_fails_the_command(tmp_path):
    folder = finished(tmp_path, {"a": 0.5, "b": 0.4}, TOML.replace("VALUE", "0.3"))
    done = run(str(folder))
    assert done.exit_code == 1
    assert "1 OK, 1 FAIL" in done.output


def test_json_has_the_numbers(tmp_path):
    folder = finished(tmp_path, {"a": 0.5, "b": 0.6}, TOML.replace("VALUE", "0.4"))
    done = run(str(folder), "--json")
    said = json.loads(done.stdout)
    assert done.exit_code == 1
    assert said["verdicts"] == {"OK": 0, "OKish": 1, "FAIL": 1, "NOT MEASURED": 0}
    first, second = said["checks"]
    assert first["figures"] == {"expected": 0.4, "ours": 0.5}
    assert first["difference"] == pytest.approx(0.1)
    assert second["verdict"] == "FAIL"
    assert second["figures"] == {"a": 0.5, "b": 0.6}


def test_expectations_of_another_file_can_be_checked(tmp_path):
    folder = finished(tmp_path / "done", {"a": 0.5, "b": 0.4})
    assert isinstance(run(str(folder)).exception, UsageError), "its own file expects nothing"
    other = tmp_path / "other.toml"
    other.write_text(TOML.replace("VALUE", "0.5"), encoding="utf-8")
    assert run(str(folder), "--against", str(other)).exit_code == 0


def test_nothing_measured_is_no_success(tmp_path):
    done = run(str(finished(tmp_path, {"c": 0.5}, TOML.replace("VALUE", "0.5"))))
    assert isinstance(done.exception, SottovoceError)
    assert "nothing of what is expected was measured" in str(done.exception)
    assert "2 NOT MEASURED" in done.output


def test_a_folder_without_an_experiment_says_what_to_do(tmp_path):
    done = run(str(tmp_path))
    assert isinstance(done.exception, UsageError)
    assert "experiment run" in str(done.exception)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ('[[expected]]\nname = "x"\nvalue = 1\ntolerance = 0\n', "measure"),
        ('[[expected]]\nname = "x"\nmeasure = "P@10"\nvalue = 1\n', "tolerance"),
        ('[[expected]]\nname = "x"\nmeasure = "P@10"\ntolerance = 0\nvalue = "1"\n', "value"),
        ('[[expected]]\nname = "x"\nmeasure = "P@10"\ntolerance = nan\nvalue = 1\n', "tolerance"),
        (
            '[[expected]]\nname = "x"\nmeasure = "P@10"\ntolerance = 0\nvalues = [1, 2]\n'
            "epsilons = [1]\n",
            "values",
        ),
        (
            '[[expected]]\nname = "x"\nmeasure = "P@10"\ntolerance = 0\nvalue = 1\n'
            'where = { mechansim = "cmp" }\n',
            "'mechanism'",
        ),
        (
            '[[expected]]\nname = "x"\nmeasure = "P@10"\ntolerance = 0\nvalue = 1\n'
            'where = { epsilon = "10" }\n',
            "number",
        ),
        ('[[expected_order]]\nname = "x"\nmeasure = "P@10"\ntolerance = 0\n', "order"),
        (
            '[[expected_order]]\nname = "x"\nmeasure = "P@10"\ntolerance = 0\n'
            'order = ["cmp", ">", "wbb", "="]\n',
            "order",
        ),
        (
            '[[expected_order]]\nname = "x"\nmeasure = "P@10"\ntolerance = 0\n'
            'by = "epsilon"\norder = ["cmp", ">", "wbb"]\n',
            "order",
        ),
        ('[[expected]]\nname = "x"\ntable = "quippu"\n', "'quipu'"),
        ("expected = 3\n", "expected"),
        ("name = \n", "cannot be read"),
    ],
)
def test_a_problem_of_the_expectations_is_named(tmp_path, broken, said):
    file = tmp_path / "broken.toml"
    file.write_text(broken, encoding="utf-8")
    with pytest.raises(UsageError, match=said):
        expectations_of(file)
