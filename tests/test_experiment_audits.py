"""Membership audits and sampled words in experiments: cells, tables, what is expected of them."""

from __future__ import annotations

import pytest
from experiment_folder import write_folder, write_table

from sottovoce import mechanism
from sottovoce.errors import UsageError
from sottovoce.experiments.cells.runner import CellRunner
from sottovoce.experiments.check import check
from sottovoce.experiments.grid import Audit, Samples, plan
from sottovoce.experiments.report.figures import figures
from sottovoce.experiments.report.further_tables import audit_tables, sample_tables
from sottovoce.experiments.results import Results
from sottovoce.experiments.run import run_experiment
from sottovoce.experiments.schema.experiment import Expected, Membership, SampledWords, Texts
from sottovoce.experiments.schema.problems import ExperimentError
from sottovoce.experiments.schema.reading import read_experiment
from sottovoce.privacy import deniability, membership, sample_words
from sottovoce.privacy.attacks.query_log import read_log
from sottovoce.privacy.membership_audit import deal_out

ASKED = Membership(
    *("demo", 40, 8), members=10, shadows=1, repeats=1, min_queries=8, collection="demo"
)
SPACE = Texts.of(space="glove-840b-34k")
TOML = """
name = "audits"
[grid]
mechanisms = ["cmp", "versatile"]
epsilons = [5, 30]
[membership]
log = "demo"
made_up_users = 40
queries_each = 8
members = 10
shadows = 1
repeats = 1
min_queries = 8
"""


@pytest.fixture
def runner(tmp_path):
    return CellRunner(tmp_path)


def test_an_audit_cell_has_the_figures_of_the_audit(runner, default_space):
    result = runner.run(Audit("CMP", "cmp", 9.0, 3, SPACE, ASKED))
    log = deal_out(read_log("demo"), 40, 8, 3)
    cmp = mechanism("cmp:epsilon=9", space=default_space)
    expected = membership(
        log, [cmp], members=10, shadows=1, repeats=1, min_queries=8, rng=3
    ).outcomes[1:]
    rows = result.table.to_pylist()
    names = ("knows the mechanism", "learnt from clean text")
    for outcome, auditor in zip(expected, names, strict=True):
        found = {row["measure"]: row for row in rows if row["auditor"] == auditor}
        for measure in ("precision", "recall", "accuracy"):
            row = found[measure]
            assert row["value"] == getattr(outcome, measure)
            assert (row["low"], row["high"]) == getattr(outcome, f"{measure}_interval")
        assert found["AUC"]["value"] == outcome.auc
        assert found["max(AUC, 1 - AUC)"]["value"] == outcome.risk
        assert found["found at 1 % false alarms"]["value"] == outcome.tpr
    assert {(row["log"], row["mechanism"], row["epsilon"]) for row in rows} == {("demo", "CMP", 9)}


def test_clean_text_has_a_cell_of_its_own_and_mechanisms_that_ask_an_engine_need_documents(
    tmp_path, default_space
):
    file = tmp_path / "audits.toml"
    file.write_text(TOML)
    audits = [job for stage in plan(read_experiment(file)) for job in stage]
    assert [(job.mechanism, job.epsilon) for job in audits] == [("", None), ("cmp", 5), ("cmp", 30)]
    file.write_text(TOML + 'collection = "demo"\n')
    audits = [job for stage in plan(read_experiment(file)) for job in stage]
    assert audits[-1].mechanism == "versatile"


@pytest.mark.slow
def test_a_whole_experiment_is_run_reported_and_checked(tmp_path, default_space):
    file = tmp_path / "audits.toml"
    expected = """
[[expected]]
name = "clean"
table = "audits"
measure = "AUC"
where = { mechanism = "", auditor = "learnt from clean text" }
value = 1
tolerance = 0.05
"""
    file.write_text(TOML.replace('"cmp", "versatile"', '"cmp"') + expected)
    experiment = read_experiment(file)
    run_experiment(experiment, tmp_path / "out", file=file)
    results = Results(tmp_path / "out")
    assert (tmp_path / "out" / "audits.csv").exists()
    assert not (tmp_path / "out" / "samples.csv").exists()
    (table,) = audit_tables(results)
    assert [row[:3] for row in table.rows] == [
        ("clean text", "–", "learnt from clean text"),
        ("cmp", "5", "knows the mechanism"),
        ("cmp", "5", "learnt from clean text"),
        ("cmp", "30", "knows the mechanism"),
        ("cmp", "30", "learnt from clean text"),
    ]
    (checked,) = check(results, experiment.expected)
    assert checked.verdict == "OK"


def test_what_cannot_be_measured_of_an_audit_is_told_before(tmp_path, default_space):
    file = tmp_path / "audits.toml"
    wrong = '[[expected]]\nname = "x"\ntable = "audits"\nmeasure = "AUC"\n'
    wrong += 'where = { auditor = "nobody" }\nvalue = 1\ntolerance = 0\n'
    file.write_text(TOML + wrong)
    with pytest.raises(ExperimentError, match="no auditor 'nobody'"):
        read_experiment(file)


def test_too_few_queries_for_so_many_users_are_refused():
    with pytest.raises(UsageError, match="need 20 queries, and the log has 3"):
        deal_out(["a", "b", "c"], 4, 5, 0)
    dealt = deal_out([str(number) for number in range(20)], 4, 5, 0).queries
    assert sorted(query for queries in dealt for query in queries) == sorted(map(str, range(20)))
    assert deal_out([str(number) for number in range(20)], 4, 5, 0).queries == dealt


def test_sampled_words_are_released_where_words_come_back_as_often_as_asked(runner, default_space):
    asked = SampledWords(("hockey", "notaword99"), (0.2, 0.6), count=3, over=20, draws=50)
    result = runner.run(Samples("ours", "cmp", 1, SPACE, asked))
    rows = result.table.to_pylist()
    assert result.facts["sampled words that the space lacks"] == ["notaword99"]
    assert {row["level"] for row in rows} == {0.2, 0.6}
    for level in (0.2, 0.6):
        shown = [row for row in rows if row["level"] == level]
        assert [row["number"] for row in shown] == [1, 2, 3]
        assert len({row["released"] for row in shown} | {"hockey"}) == 4
        assert all(row["released"] in default_space for row in shown)
        (epsilon,) = {row["epsilon"] for row in shown}
        again = deniability(
            mechanism("cmp", space=default_space, epsilon=epsilon),
            sample_words(default_space, 20),
            draws=200,
            rng=9,
        )
        assert again.unchanged.mean() == pytest.approx(level, abs=0.05)


def test_tables_of_samples_and_audits(tmp_path):
    folder = write_folder(tmp_path)
    assert [*sample_tables(Results(folder)), *audit_tables(Results(folder))] == []
    setting = ("space", "CMP", 0.1, 7.25, 0)
    words = [("hockey", 1, "ice"), ("hockey", 2, "puck"), ("art", 1, "craft")]
    write_table(folder, "samples", [(*setting, *word) for word in words])
    rows = [
        ("log", mechanism, epsilon, 0, "knows the mechanism", measure, value, value / 2, 1.0)
        for mechanism, epsilon in (("", None), ("cmp", 6.0))
        for measure, value in (("AUC", 0.8), ("precision", 0.6))
    ]
    write_table(folder, "audits", rows)
    (samples,), (audits,) = sample_tables(Results(folder)), audit_tables(Results(folder))
    assert samples.rows == (
        ("art", "CMP", "0.1", "7.25", "craft"),
        ("hockey", "CMP", "0.1", "7.25", "ice, puck"),
    )
    clean, noisy = audits.rows
    assert clean[:3] == ("clean text", "–", "knows the mechanism")
    assert noisy[audits.columns.index("AUC")].interval == (0.4, 1.0)
    assert noisy[audits.columns.index("recall")] is None


@pytest.mark.parametrize(
    ("of", "bound", "value", "verdict"),
    [
        ("least", "at least", 0.0, "OK"),
        ("least", "at least", 2.0, "FAIL"),
        ("greatest", "at most", 2.0, "OK"),
        ("greatest", "at most", -1.0, "FAIL"),
        ("greatest", None, 2.0, "FAIL"),
        ("mean", "at most", 2.0, "OK"),
    ],
)
def test_an_expected_figure_may_be_a_bound_on_the_worst_word(tmp_path, of, bound, value, verdict):
    results = Results(write_folder(tmp_path, mechanisms=("cmp",)))
    expected = Expected(
        name="N_w", table="words", measure="N_w", value=value, of=of, bound=bound, tolerance=0.01
    )
    (checked,) = check(results, [expected])
    assert checked.verdict == verdict
    if of != "mean":
        by_word: dict[str, list[float]] = {}
        for row in results.words.to_pylist():
            if row["measure"] == "N_w":
                by_word.setdefault(row["word"], []).append(row["value"])
        means = [sum(values) / len(values) for values in by_word.values()]
        assert checked.figures["ours"] == pytest.approx((min if of == "least" else max)(means))


def test_figures_of_audits_and_of_several_spaces(tmp_path):
    folder = write_folder(tmp_path, mechanisms=("cmp",), epsilons=(5.0, 10.0), plotted=())
    before = {figure.name for figure in figures(Results(folder))}
    assert "deniability-all-spaces" not in before
    assert not any(name.startswith("audit") for name in before)
    rows = [
        ("log", mechanism, epsilon, 0, "knows the mechanism", "AUC", value, value - 0.1, value)
        for mechanism, epsilon, value in (("", None, 0.9), ("cmp", 5.0, 0.6), ("cmp", 10.0, 0.8))
    ]
    write_table(folder, "audits", rows)
    words = [tuple(row.values()) for row in Results(folder).words.to_pylist()]
    other = [("other space", row[1] and "CMP there", *row[2:]) for row in words]
    write_table(folder, "words", [*words, *other])
    drawn = {figure.name: figure for figure in figures(Results(folder))}
    (plot,) = drawn["audit-log"].figure.axes
    curves = [list(line.get_ydata()) for line in plot.lines]
    assert [0.6, 0.8] in curves
    assert {0.9} in map(set, curves)
    assert {0.5} in map(set, curves)
    together = drawn["deniability-all-spaces"].figure.axes[0]
    assert {"cmp", "CMP there"} <= {line.get_label() for line in together.lines}
