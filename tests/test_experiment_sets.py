"""Experiments with mechanisms that send sets: their own number of queries, k and p, attacks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="pip install 'sottovoce[experiments]'")
pytest.importorskip("ir_measures", reason="pip install 'sottovoce[experiments]'")
pytest.importorskip("matplotlib", reason="pip install 'sottovoce[experiments]'")

from experiment_folder import write_folder

import sottovoce
from sottovoce.experiments.cells.draw import sent
from sottovoce.experiments.estimates import LAW_ALONE, MOST_ON_SETS, shown_on_sets
from sottovoce.experiments.fingerprints import Fingerprints
from sottovoce.experiments.grid import Draw, Leak, plan, size_of
from sottovoce.experiments.measures import CHANCE, SENT, Measure
from sottovoce.experiments.report.figures import ReportFigure, figures
from sottovoce.experiments.report.render import to_csv, to_text
from sottovoce.experiments.report.significance import compare
from sottovoce.experiments.report.table import UNRECORDED, Table, point_column, shown_count
from sottovoce.experiments.report.write import sections, write_report
from sottovoce.experiments.resource_cache import ResourceCache
from sottovoce.experiments.results import Place, Results, curves
from sottovoce.experiments.run import run_experiment
from sottovoce.experiments.schema.problems import ExperimentError
from sottovoce.experiments.schema.reading import read_experiment
from sottovoce.experiments.summary import summarize
from sottovoce.experiments.tables import ON_SETS, UNTRIED_ON_SETS, make_table
from sottovoce.mechanisms import mechanism, parse
from sottovoce.pools import Pool
from sottovoce.privacy import attack
from sottovoce.privacy.attacks.releases import Released
from sottovoce.spaces.space import WordSpace

DEMO = Path(sottovoce.__file__).parent / "demo"
QUERIES = 24
"""Fewer subjects than that no attacker learns."""
FILE = """
name = "sets"
[grid]
collections = ["few"]
engines = ["bm25"]
n = [6]
epsilons = [5, 20]
releases = ["once"]
mechanisms = ["cmp"]

[[mechanism]]
spec = "cover:p=0.9"
label = "by k"
parameter = "k"
values = [6, 12]
pool = "pool.txt"

[[mechanism]]
spec = "cover:k=4"
label = "by p"
parameter = "p"
values = [0.5, 0.9]
pool = "pool.txt"

[[mechanism]]
spec = "cover:k=4,p=0.9,m=3"
label = "groups"
pool = "pool.txt"

[texts]
encoder = "light"

[privacy]
similarity = ["jaccard"]
log = "demo"
attacks = ["mode"]
"""
HERE, DEMO_AT = Place("few", "bm25", "light"), Place("demo", "bm25", "light")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    (folder / "few").mkdir()
    for name, lines in (("corpus.jsonl", 718), ("queries.jsonl", QUERIES), ("qrels.txt", 600)):
        kept = (DEMO / name).read_text("utf-8").splitlines(keepends=True)[:lines]
        (folder / "few" / name).write_text("".join(kept), "utf-8")
    strings = [f"{what} in {where}" for what in THINGS for where in PLACES]
    (folder / "pool.txt").write_text("\n".join(strings), "utf-8")
    (folder / "sets.toml").write_text(FILE)
    return folder / "sets.toml"


THINGS = ("cancer", "divorce", "debt", "weather", "football", "bread", "taxes", "cars", "music")
PLACES = ("rome", "paris", "london", "oslo", "lima", "cairo", "delhi", "texas", "kenya", "wales")


@pytest.fixture(scope="module")
def folder(file: Path, tmp_path_factory: pytest.TempPathFactory, default_space: WordSpace) -> Path:
    folder = tmp_path_factory.mktemp("out") / "sets"
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("home")))
        run_experiment(read_experiment(file), folder, file=file)
    return folder


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    return Results(folder)


@pytest.fixture(scope="module")
def tables(results: Results) -> dict[str, Table]:
    return {table.name: table for section in sections(results) for table in section.tables}


@pytest.fixture(scope="module")
def drawn(results: Results) -> dict[str, ReportFigure]:
    return {each.name: each for each in figures(results)}


def changed(file: Path, *pairs: tuple[str, str]) -> Path:
    content = FILE
    for old, new in pairs:
        assert old in content
        content = content.replace(old, new)
    other = file.with_name("other.toml")
    other.write_text(content)
    return other


def problems(file: Path) -> str:
    with pytest.raises(ExperimentError) as caught:
        read_experiment(file)
    return "\n".join(caught.value.problems)


def edited(
    folder: Path, copy: Path, change: Callable[[dict[str, Any]], object], *without: Measure
) -> Path:
    """A copy of an experiment's folder with another manifest, and without some measures."""
    import pyarrow.parquet as pq

    shutil.copytree(folder, copy)
    rows = pq.read_table(copy / "results.parquet")
    labels = {measure.label for measure in without}
    kept = [measure not in labels for measure in rows["measure"].to_pylist()]
    pq.write_table(rows.filter(kept), copy / "results.parquet")
    manifest = json.loads((copy / "manifest.json").read_text("utf-8"))
    change(manifest)
    (copy / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    return copy


def tables_of(folder: Path) -> dict[str, Table]:
    return {table.name: table for part in sections(Results(folder)) for table in part.tables}


def column(table: Table, name: str) -> list[str]:
    at = table.columns.index(name)
    return [to_text(row[at]) for row in table.rows]


# What is drawn and sent


def test_a_set_has_its_own_number_and_one_cell_a_point(file: Path) -> None:
    two = changed(file, ("n = [6]", "n = [6, 20]"), ('releases = ["once"]', ""))
    sources = [job.source for job in plan(read_experiment(two))[0] if isinstance(job, Draw)]
    sets = [(s.mechanism, s.epsilon, s.n, s.release) for s in sources if s.mechanism != "cmp"]
    assert sets == [
        ("by k", 6.0, 6, "once"),
        ("by k", 12.0, 12, "once"),
        ("by p", 0.5, 4, "once"),
        ("by p", 0.9, 4, "once"),
        ("groups", None, 12, "once"),
    ]
    assert {source.n for source in sources if source.mechanism == "cmp"} == {6, 20}


def test_the_plan_counts_what_sets_send(file: Path) -> None:
    size = size_of(read_experiment(file))
    sent = {mechanism: counts["queries"] for (_, mechanism), counts in size.lines.items()}
    assert sent["by k"] == QUERIES * (6 + 12)
    assert sent["by p"] == QUERIES * (4 + 4)
    assert sent["groups"] == QUERIES * 4 * 3
    assert sent["cmp"] == QUERIES * 2 * 6


def test_a_pool_too_small_for_its_sets_is_told_before_anything_runs(file: Path) -> None:
    told = problems(changed(file, ("values = [6, 12]", "values = [6, 400]")))
    assert told.startswith("mechanism 1, values: a set of k = 400")
    assert f"the pool has {len(THINGS) * len(PLACES)}" in told
    told = problems(changed(file, ("cover:k=4,p=0.9,m=3", "cover:k=4,m=3,decoys=popular")))
    assert told.startswith("mechanism 3, spec: the pool states no popularity")


def test_popular_decoys_are_checked_by_the_popularity_of_the_pool(file: Path) -> None:
    pool = file.with_name("popular.txt")
    pool.write_text("\n".join(f"query {n}" for n in range(9) for _ in range(n + 1)))
    popular = ("cover:k=4,p=0.9,m=3", "cover:k=4,p=0.9,decoys=popular")
    last = ('label = "groups"\npool = "pool.txt"', 'label = "groups"\npool = "popular.txt"')
    assert read_experiment(changed(file, popular, last)).systems[-1].set_sizes == (4,)


def test_curves_over_different_parameters_have_different_labels(file: Path) -> None:
    told = problems(changed(file, ('label = "by p"', 'label = "by k"'), ('k=4"', 'k=20"')))
    assert "mechanism 2, label: 'by k' runs over k above" in told


def test_the_queries_that_left_are_counted_each_once(results: Results) -> None:
    sent = {str(setting): mean for setting, mean in results.means(SENT, Place("few")).items()}
    assert sent["by k, once, n=6, k=6"] == 6
    assert sent["by k, once, n=12, k=12"] == 12
    assert 4 <= sent["groups, once, n=12"] <= 12, "groups may have strings in common"
    assert 1 <= sent["cmp, once, n=6, epsilon=20"] <= 6
    assert len(list((results.folder / "variants").iterdir())) == 7


def test_equal_queries_count_once(file: Path) -> None:
    source = next(job.source for job in plan(read_experiment(file))[0] if isinstance(job, Draw))
    variants = {"1": ["rome", "oslo", "rome", " rome "], "2": ["lima", "", "lima"], "3": [""]}
    rows = [(query, at, text) for query, of in variants.items() for at, text in enumerate(of, 1)]
    counts = sent(source, make_table("variants", rows)).to_pylist()
    assert [(row["query_id"], row["value"]) for row in counts] == [("1", 2), ("2", 1), ("3", 0)]


# What is attacked


def test_a_file_with_a_wrong_spec_is_told_what_is_wrong(file: Path) -> None:
    wrong = changed(file, ("cover:k=4,p=0.9,m=3", "cover:k=4.5"))
    with wrong.open("a") as more:
        more.write('[[published]]\nlabel = "theirs"\nspec = "no such"\nfiles = ["pool.txt"]\n')
    told = problems(wrong)
    assert "mechanism 3, spec: cover's k must be a whole number" in told
    assert "published 1, spec: unknown mechanism" in told


@pytest.mark.parametrize(
    "asked", ['attacks = ["means"]', "attacks = []", 'attacks = ["mode"]\nattacked = 15']
)
def test_sets_are_attacked_as_sets_whatever_is_asked_of_words(file: Path, asked: str) -> None:
    experiment = read_experiment(changed(file, ('attacks = ["mode"]', asked)))
    leaks = [job for stage in plan(experiment) for job in stage if isinstance(job, Leak)]
    on_sets = [job for job in leaks if job.source.are_sets and job.privacy.attacks]
    assert [job.source.mechanism for job in on_sets] == [*["by k"] * 2, *["by p"] * 2, "groups"]
    assert all(job.privacy.log is not None for job in on_sets)
    assert all(job.privacy.attacked is None for job in on_sets), "few subjects teach nothing"
    nothing = read_experiment(changed(file, ('log = "demo"\nattacks = ["mode"]', "attacks = []")))
    leaks = [job for stage in plan(nothing) for job in stage if isinstance(job, Leak)]
    assert not any(job.privacy.attacks for job in leaks)


def test_attacks_that_compare_texts_come_with_those_on_sets() -> None:
    pool = Pool([f"{what} in {where}" for what in THINGS for where in PLACES], "light")
    cover = mechanism("cover:k=4,p=0.9", pool=pool)
    releases = [Released("1", "cancer in rome", pool.strings[:4])]
    report = attack(releases, mechanism=cover, attacks=["means"], rng=0)
    assert report.company is not None
    assert report.company.namings
    assert attack(releases, mechanism=cover, attacks=[], rng=0).company is None


def test_reports_say_which_attacks_on_sets_were_not_tried(
    folder: Path, tables: dict[str, Table], tmp_path: Path
) -> None:
    everywhere = "Not tried on by k, by p, groups: "
    sessions = f"{everywhere}clustering, linkage, repetition (it needs several sets of a person)."
    names = ("trades-few-bm25-light", "by-queries-few-bm25-light", "strongest-attack-few")
    for name in names:
        assert sessions in tables[name].notes, name

    def fewer(manifest: dict[str, Any]) -> None:
        manifest["facts"][UNTRIED_ON_SETS] = [
            {"mechanism": "by k", "collection": "few", "subjects": "there are too few"},
            {"mechanism": "by k", "collection": "other", "law alone": "of others"},
        ]

    notes = tables_of(edited(folder, tmp_path / "fewer", fewer))["strongest-attack-few"].notes
    assert "Not tried on by k: subjects (there are too few)." in notes
    assert not any("of others" in note or sessions == note for note in notes)


def test_a_risk_below_chance_is_said_to_be_no_protection(
    folder: Path, tables: dict[str, Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    def below(of: dict[str, Table]) -> list[str]:
        return [note for note in of["strongest-attack-few"].notes if "less than a blind" in note]

    assert not below(tables)
    means = Results.means

    def easy(results: Results, measure: Measure, *place: Any) -> Any:
        found = means(results, measure, *place)
        return {s: 1.0 for s in found if s.epsilon == 6} if measure == CHANCE else found

    monkeypatch.setattr(Results, "means", easy)
    (note,) = below(tables_of(folder))
    assert note.startswith("The strongest attack on by k at k = 6 got less than a blind guess")


def test_sets_attacked_by_lists_of_queries_alone_have_no_risk(
    folder: Path, results: Results, tmp_path: Path
) -> None:
    on_sets = [each for each in results.measures(Place("few"), "lazy") if each.detail != "light"]
    weak = edited(folder, tmp_path / "weak", lambda manifest: None, CHANCE, *on_sets)
    table = tables_of(weak)["strongest-attack-few"]
    assert set(column(table, "mechanism")) == {"cmp"}
    told = "No attack on sets was run on by k, by p, groups: the risk of its sets was not measured."
    assert told in table.notes
    assert told in tables_of(weak)["query-inference-light-few"].notes
    (summary,) = summarize(Results(weak))
    known = {each["mechanism"]: each["lazy"] is not None for each in summary["settings"]}
    assert known == {"cmp": True, "by k": False, "by p": False, "groups": False}


def test_what_attackers_know_is_said_of_each_mechanism_where_it_differs(
    folder: Path, tmp_path: Path
) -> None:
    def two_pools(manifest: dict[str, Any]) -> None:
        manifest["facts"][ON_SETS] = [
            {"mechanism": "by k", "collection": "few", "classifier": "37 texts"},
            {"mechanism": "by p", "collection": "few", "classifier": "119 texts"},
            {"mechanism": "groups", "collection": "few", "classifier": "37 texts"},
            {"mechanism": "by k", "collection": "many", "classifier": "5 texts"},
        ]

    results = Results(edited(folder, tmp_path / "two", two_pools))
    knows = results.knowledge("classifier", "few")
    assert knows == "of by k, groups: 37 texts; or of by p: 119 texts"
    assert results.knowledge("classifier", "few", "by p") == "119 texts"
    assert results.knowledge("classifier", "many") == "5 texts"
    assert results.knowledge("unheard of", "few") == "what is not recorded"


# Parameters of one name that mean different things


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment with three curves over k, two of them of sets."""
    specs = {
        "custext k": "custext:epsilon=5",
        "cover k": "cover:p=0.9",
        "subjects k": "cover-subjects:subjects=20",
    }
    systems = [
        {"label": label, "spec": spec, "parameter": "k", "texts": {}}
        for label, spec in specs.items()
    ]
    return write_folder(
        tmp_path_factory.mktemp("alike") / "folder",
        mechanisms=[*specs],
        epsilons=(6.0, 12.0),
        tasks=(),
        words=0,
        experiment={"systems": systems},
    )


def test_parameters_of_one_name_are_told_apart(alike: Path) -> None:
    settings = Results(alike).grid("nDCG@10", DEMO_AT).settings
    of = {setting.mechanism: setting.point for setting in settings}
    assert of["cover k"] == of["subjects k"], "the k of cover is that of what is built on it"
    assert of["cover k"] != of["custext k"]
    table = tables_of(alike)["ndcg-10-demo-light"]
    heads = ("k of custext = 6", "k of custext = 12", "k of cover = 6", "k of cover = 12")
    assert table.columns[-5:] == (*heads, "no parameter")
    head, values = point_column([of["custext k"], of["cover k"]])
    assert (head, values) == ("setting", ["k of custext = 12", "k of cover = 12"])
    assert point_column([of["cover k"], of["subjects k"]]) == ("k", ["12", "12"])
    drawn = {figure.name: figure for figure in figures(Results(alike))}
    plots = drawn["utility-ndcg-10-demo-light"].figure.axes
    assert [plot.get_xlabel() for plot in plots[:2]] == ["k of custext", "k of cover"]
    caption = drawn["plane-demo-bm25-light"].caption
    assert "from the smallest k of custext to the largest" in caption
    assert "from the largest k of cover to the smallest" in caption


def test_nothing_is_compared_at_a_k_that_means_something_else(alike: Path) -> None:
    pairs = compare(Results(alike), "nDCG@10", DEMO_AT).between
    assert {(one.mechanism, other.mechanism) for one, other in pairs} == {("cover k", "subjects k")}


def test_sets_are_tested_against_words_that_send_as_many_queries(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    means = Results.means

    def as_many(results: Results, measure: Measure, *place: Any) -> Any:
        found = means(results, measure, *place)
        many = {("by k", 6): 6.2, ("cmp", 5): 5.8, ("cmp", 20): 4.4}
        return {s: many.get((s.mechanism, s.epsilon), 50.0) for s in found}

    found = compare(Results(folder), "nDCG@10", HERE).at_equal_queries
    assert all(one.axis.is_set and not other.axis.is_set for one, other in found)
    monkeypatch.setattr(Results, "means", as_many)
    results = Results(folder)
    ((one, other),) = (tests := compare(results, "nDCG@10", HERE).at_equal_queries)
    assert (one.mechanism, one.epsilon, other.mechanism, other.epsilon) == ("by k", 6, "cmp", 5)
    of_one, of_other = (results.values("nDCG@10", HERE)[setting] for setting in (one, other))
    differences = [of_one[query] - of_other[query] for query in of_one]
    assert tests[one, other].difference == pytest.approx(np.mean(differences))
    table = tables_of(folder)["equal-queries-few-bm25-light"]
    assert column(table, "set") == ["by k at k = 6"]
    assert column(table, "other") == ["cmp at ε = 5"]


# What a file may expect


def expecting(file: Path, measure: str, more: str = "") -> Path:
    other = changed(file)
    table = f'[[expected]]\nname = "it"\nmeasure = "{measure}"\nvalue = 0\ntolerance = 1\n{more}'
    other.write_text(f"{FILE}\n{table}")
    return other


def test_figures_of_sets_can_be_expected(file: Path) -> None:
    by_k = 'where = { mechanism = "by k" }'
    for measure in ("chance", "lazy[law alone]", "active[sensitive subjects]", "queries sent"):
        assert read_experiment(expecting(file, measure, by_k)).expected, measure
    of_words = expecting(file, "chance", 'where = { mechanism = "cmp" }')
    assert "no cell of the plan has all of this" in problems(of_words)
    quipu = 'table = "quipu"\nwhere = { mechanism = "by k", n = 6 }'
    with_n = expecting(file, "lazy[law alone]", quipu)
    assert "no cell of the plan has all of this" in problems(with_n), "n differs along the curve"
    assert read_experiment(expecting(file, "lazy[law alone]", quipu.replace(", n = 6", "")))


def test_files_and_messages_name_the_parameter(results: Results) -> None:
    runs = [name for name in results.manifest["runs"] if "by-k" in name]
    assert len(runs) == 2
    assert all(".k=" in name and "epsilon" not in name for name in runs)


def test_a_curve_over_k_is_one_curve_the_largest_first(results: Results) -> None:
    settings = results.grid("nDCG@10", HERE).settings
    by_name = {curve.mechanism: points for curve, points in curves(settings).items()}
    assert [(each.epsilon, each.n) for each in by_name["by k"]] == [(12, 12), (6, 6)]
    assert [each.epsilon for each in by_name["by p"]] == [0.5, 0.9]
    assert [each.epsilon for each in by_name["cmp"]] == [5, 20]


def test_the_app_is_told_the_whole_spec(results: Results) -> None:
    (summary,) = summarize(results)
    specs = [parse(each["spec"])[1] for each in summary["settings"] if each["mechanism"] == "by k"]
    assert [spec["k"] for spec in specs] == [6, 12]
    assert [each["n"] for each in summary["settings"] if each["mechanism"] == "by k"] == [6, 12]


# The tables of the report


def test_columns_are_called_by_their_parameter(tables: dict[str, Table]) -> None:
    headings = tables["ndcg-10-few-light"].columns[-7:]
    assert headings == ("ε = 5", "ε = 20", "k = 6", "k = 12", "p = 0.5", "p = 0.9", "no parameter")


def test_tables_say_how_many_queries_a_search_takes(tables: dict[str, Table]) -> None:
    for name in ("ndcg-10-few-light", "strongest-attack-few", "sets-lazy-few"):
        table = tables[name]
        queries = dict(zip(column(table, "mechanism"), column(table, "queries"), strict=True))
        assert queries["by k"] == "6–12", name
        assert queries["by p"] == "4", name
    assert "a set has its own number" in tables["ndcg-10-few-light"].caption
    itself = [row for row in tables["ndcg-10-few-light"].rows if "no privacy" in row]
    assert itself[0][2] == "1"


def test_settings_can_be_compared_at_an_equal_number_of_queries(tables: dict[str, Table]) -> None:
    table = tables["by-queries-few-bm25-light"]
    *queries, itself = map(float, column(table, "queries"))
    assert queries == sorted(queries)
    assert itself == 1
    rows = dict(zip(column(table, "setting"), table.rows, strict=True))
    assert {"ε = 5", "ε = 20", "k = 6", "k = 12", "p = 0.5", "p = 0.9", "–"} == set(rows)
    assert rows["k = 6"][table.columns.index("queries")] == 6


def test_numbers_of_queries_are_written_as_people_read_them() -> None:
    shown = [shown_count(mean) for mean in (1, 5.98, 19.3, 19.97, 20, 1000, 1234.06, 20000)]
    assert shown == ["1", "6", "19.3", "20", "20", "1,000", "1,234.1", "20,000"]


def test_a_range_of_queries_has_ends_that_differ(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    means = Results.means

    def nearly_equal(results: Results, measure: Measure, *place: Any) -> Any:
        found = means(results, measure, *place)
        return {s: 19.97 + (s.epsilon == 6) / 70 for s in found} if measure == SENT else found

    monkeypatch.setattr(Results, "means", nearly_equal)
    tables = tables_of(folder)
    assert "20 queries a search" in tables["ndcg-10-few-light"].caption
    exact = to_csv(tables["by-queries-few-bm25-light"])
    assert "19.97," in exact, "files have all digits"


def test_chance_stands_beside_the_risk_of_sets(
    results: Results, tables: dict[str, Table], drawn: dict[str, ReportFigure]
) -> None:
    chance = {str(s): value for s, value in results.means(CHANCE, Place("few")).items()}
    # It is right in one of k cases, where what stands for the query is in the set at all.
    assert 0.5 / 6 < chance["by k, once, n=6, k=6"] <= 1 / 6
    assert not any(name.startswith("cmp") for name in chance)
    table = tables["by-queries-few-bm25-light"]
    at = dict(zip(column(table, "setting"), column(table, "chance"), strict=True))
    assert float(at["k = 6"]) == pytest.approx(chance["by k, once, n=6, k=6"], abs=6e-4)
    assert (at["ε = 5"], "chance" in tables["trades-few-bm25-light"].columns) == ("–", True)
    plot = drawn["plane-sets-few-bm25-light"].figure.axes[0]
    (strokes,) = [line for line in plot.lines if line.get_label() == "a blind guess"]
    assert sorted(np.asarray(strokes.get_xdata())) == pytest.approx(sorted(chance.values()))
    assert "blind guess" in drawn["plane-sets-few-bm25-light"].caption
    for name in ("strongest-attack-few", "sets-lazy-few"):
        text = [" ".join(map(to_text, row)) for row in tables[name].rows]
        assert any("a blind guess" in row and "by k" in row for row in text), name


def test_attacks_on_sets_are_said_to_be_that(results: Results, tables: dict[str, Table]) -> None:
    table = tables["sets-lazy-few"]
    assert {LAW_ALONE, "sensitive subjects", "a blind guess"} <= set(column(table, "attack"))
    assert "log" not in table.caption
    assert "which of them stands for it" in table.caption
    assert any(note.startswith("law alone: the attacker knows the pool") for note in table.notes)
    on_logs = [name for name in tables if name.startswith("query-inference")]
    assert on_logs == ["query-inference-light-few"]
    assert results.is_on_sets(LAW_ALONE)
    assert not results.is_on_sets("light")


# The figures


def test_each_parameter_has_an_axis_of_its_own(drawn: dict[str, ReportFigure]) -> None:
    plots = drawn["utility-ndcg-10-few-light"].figure.axes
    assert [plot.get_xlabel() for plot in plots] == ["epsilon", "k", "p"]
    for plot, name, at in zip(
        plots, ("cmp", "by k", "by p"), ([5, 20], [12, 6], [0.5, 0.9]), strict=True
    ):
        (line,) = [each for each in plot.lines if each.get_label() == name]
        assert np.asarray(line.get_xdata()).tolist() == at
    assert drawn["utility-ndcg-10-few-light"].title.startswith("nDCG@10 against epsilon, k and p")
    assert "at k 12 to" in drawn["utility-ndcg-10-few-light"].alt


def test_paths_are_said_to_go_as_they_do(drawn: dict[str, ReportFigure]) -> None:
    figure = drawn["plane-strongest-few-bm25-light"]
    for way in (
        "from the smallest epsilon to the largest",
        "from the largest k to the smallest",
        "from the smallest p to the largest",
    ):
        assert way in figure.caption
    assert "epsilon" not in drawn["plane-sets-few-bm25-light"].caption
    ends = {text.get_text() for plot in figure.figure.axes for text in plot.texts}
    assert ends & {"k=6", "k=12", "p=0.5", "p=0.9"}
    assert "written at its ends where there is room" in figure.caption


def test_radars_tell_parameters_apart(alike: Path) -> None:
    drawn = {figure.name: figure for figure in figures(Results(alike))}
    looks: dict[str, tuple[object, ...]] = {}
    for plot in drawn["radar-demo-bm25-light"].figure.axes:
        for line in plot.lines:
            looks[str(line.get_label())] = line.get_marker(), line.get_linestyle()
    del looks["no privacy"]
    ks = {f"k of {owner} {value}" for owner in ("custext", "cover") for value in (6, 12)}
    assert set(looks) == ks
    assert len(set(looks.values())) == len(looks)


def test_releases_are_said_of_those_who_choose(file: Path, tmp_path: Path, alike: Path) -> None:
    import pyarrow.parquet as pq

    folder = shutil.copytree(alike, tmp_path / "two")
    rows = pq.read_table(folder / "results.parquet").to_pylist()
    again = [row | {"release": "once"} for row in rows if row["mechanism"] == "custext k"]
    rows = [tuple(row.values()) for row in [*rows, *again]]
    pq.write_table(make_table("queries", rows), folder / "results.parquet")
    table = tables_of(folder)["ndcg-10-demo-light"]
    told = set(zip(column(table, "mechanism"), column(table, "release"), strict=True))
    assert {("custext k", "once"), ("custext k", "independent"), ("cover k", "")} <= told
    drawn = {figure.name: figure for figure in figures(Results(folder))}
    plots = drawn["utility-ndcg-10-demo-light"].figure.axes
    labels = {str(line.get_label()) for plot in plots for line in plot.lines}
    assert {"custext k, once", "custext k, independent", "cover k"} <= labels


def test_scores_say_which_attacks_on_sets_they_have(tables: dict[str, Table]) -> None:
    for name in ("quipu-few-bm25-light", "quipu-anchored-few-bm25-light"):
        assert "Of attacks on sets here are the strongest" in tables[name].caption


def test_planes_of_sets_show_the_strongest_few_attacks(
    results: Results, drawn: dict[str, ReportFigure]
) -> None:
    shown = shown_on_sets(results, "few")
    figure = drawn["plane-sets-few-bm25-light"]
    titles = [plot.get_title() for plot in figure.figure.axes]
    assert titles == [measure.detail for measure in shown]
    assert len(titles) <= MOST_ON_SETS
    assert LAW_ALONE in titles
    assert "in a log" not in figure.caption
    assert "the pool, the parameters and the law of the sets" in figure.caption
    gets = [max(results.means(measure, Place("few")).values()) for measure in shown]
    named = [m for m in results.measures(Place("few"), "lazy") if results.is_on_sets(m.detail)]
    assert max(gets) == max(max(results.means(m, Place("few")).values()) for m in named)
    on_logs = [plot.get_title() for plot in drawn["plane-few-bm25-light"].figure.axes]
    assert on_logs == ["lazy, light", "active, light", "motivated, light"]


def test_the_law_alone_is_shown_even_where_others_get_more(results: Results) -> None:
    class Many:
        """As many stronger attacks as figures have room for, and the one that is proven."""

        def measures(self, *_: object) -> list[Measure]:
            return [Measure("lazy", LAW_ALONE), *(Measure("lazy", f"a{n}") for n in range(9))]

        def means(self, measure: Measure, _: Place) -> dict[str, float]:
            return {
                "any": 0.1 if measure.detail == LAW_ALONE else 0.5 + int(measure.detail[1]) / 20
            }

        def is_on_sets(self, _: str) -> bool:
            return True

    shown = [measure.detail for measure in shown_on_sets(Many(), "few")]  # type: ignore[arg-type]
    assert shown == ["a8", "a7", "a6", "a5", "a4", LAW_ALONE]


# Results of before


def test_results_without_these_numbers_open_and_say_to_run_again(
    folder: Path, results: Results, tmp_path: Path
) -> None:
    def of_before(manifest: dict[str, Any]) -> None:
        of = {"mechanism", "collection"}
        known = [
            {name: knows for name, knows in facts.items() if name not in of}
            for facts in manifest["facts"].pop(ON_SETS)
        ]
        manifest["facts"]["attackers"] += known
        del manifest["facts"][UNTRIED_ON_SETS]
        for system in manifest["experiment"]["systems"]:
            del system["set_sizes"]

    old = edited(folder, tmp_path / "old", of_before, SENT, CHANCE)
    page = write_report(old).read_text("utf-8")
    assert "how many queries left was not recorded: run the experiment again" in page
    assert "by queries sent" not in page.lower()
    tables = tables_of(old)
    assert [name for name in tables if name.startswith("query-inf")] == [
        "query-inference-light-few"
    ]
    assert "law alone" in column(tables["sets-lazy-few"], "attack")
    no_chance = "How often a blind guess at a set is right was not recorded"
    assert any(note.startswith(no_chance) for note in tables["strongest-attack-few"].notes)
    plots = {figure.name: figure for figure in figures(Results(old))}
    titles = [plot.get_title() for plot in plots["plane-few-bm25-light"].figure.axes]
    assert titles == ["lazy, light", "active, light", "motivated, light"]


def test_results_without_sets_and_numbers_say_to_run_again(tmp_path: Path) -> None:
    table = tables_of(write_folder(tmp_path / "old"))["trades-demo-bm25-light"]
    assert set(column(table, "queries")) == {"–", "1"}
    assert any(note.startswith(UNRECORDED.capitalize()) for note in table.notes)


def test_draws_are_the_same_whatever_their_curve_runs_over(file: Path) -> None:
    job = next(job for job in plan(read_experiment(file))[0] if isinstance(job, Draw))
    key = Fingerprints(ResourceCache()).key
    other = Draw(replace(job.source, parameter="k", mechanism="another name"))
    assert key(other) == key(job)
    assert key(Draw(replace(job.source, seed=1))) != key(job)


def test_what_was_drawn_before_is_not_drawn_again(
    folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    before = Results(folder).queries
    outcome = run_experiment(read_experiment(file), folder, file=file)
    assert outcome.done_before == outcome.cells
    assert Results(folder).queries.equals(before)
