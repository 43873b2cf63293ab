"""Experiments with mechanisms that send sets: their own number of queries, k and p, attacks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="pip install 'sottovoce[experiments]'")
pytest.importorskip("ir_measures", reason="pip install 'sottovoce[experiments]'")
pytest.importorskip("matplotlib", reason="pip install 'sottovoce[experiments]'")

import sottovoce
from sottovoce.experiments.estimates import LAW_ALONE, MOST_ON_SETS, shown_on_sets
from sottovoce.experiments.grid import Draw, plan, size_of
from sottovoce.experiments.measures import CHANCE, SENT, Measure
from sottovoce.experiments.report.figures import ReportFigure, figures
from sottovoce.experiments.report.render import to_text
from sottovoce.experiments.report.table import Table
from sottovoce.experiments.report.write import sections, write_report
from sottovoce.experiments.results import Place, Results, curves
from sottovoce.experiments.run import run_experiment
from sottovoce.experiments.schema.problems import ExperimentError
from sottovoce.experiments.schema.reading import read_experiment
from sottovoce.experiments.summary import summarize
from sottovoce.experiments.tables import ON_SETS
from sottovoce.mechanisms import parse
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
HERE = Place("few", "bm25", "light")


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
    variants = results.folder / "variants"
    assert 4 <= sent["groups, once, n=12"] <= 12, "groups may have strings in common"
    assert 1 <= sent["cmp, once, n=6, epsilon=20"] <= 6
    assert len(list(variants.iterdir())) == 7


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
    assert headings == ("ε = 5", "ε = 20", "k = 6", "k = 12", "p = 0.5", "p = 0.9", "no ε")


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
    assert rows["k = 6"][table.columns.index("queries")] == "6"


def test_chance_stands_beside_the_risk_of_sets(results: Results, tables: dict[str, Table]) -> None:
    chance = {str(s): value for s, value in results.means(CHANCE, Place("few")).items()}
    # It is right in one of k cases, where what stands for the query is in the set at all.
    assert 0.5 / 6 < chance["by k, once, n=6, k=6"] <= 1 / 6
    assert not any(name.startswith("cmp") for name in chance)
    table = tables["by-queries-few-bm25-light"]
    at = dict(zip(column(table, "setting"), column(table, "chance"), strict=True))
    assert float(at["k = 6"]) == pytest.approx(chance["by k, once, n=6, k=6"], abs=6e-4)
    assert (at["ε = 5"], "chance" in tables["trades-few-bm25-light"].columns) == ("–", True)
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
    import pyarrow.parquet as pq

    old = tmp_path / "old"
    shutil.copytree(folder, old)
    measures = results.queries["measure"].to_pylist()
    rows = results.queries.filter([each not in (SENT.label, CHANCE.label) for each in measures])
    pq.write_table(rows, old / "results.parquet")
    manifest = json.loads((old / "manifest.json").read_text("utf-8"))
    manifest["facts"]["attackers"] += manifest["facts"].pop(ON_SETS)
    for system in manifest["experiment"]["systems"]:
        del system["set_sizes"]
    (old / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    page = write_report(old).read_text("utf-8")
    assert "how many queries left was not recorded: run the experiment again" in page
    assert "by queries sent" not in page.lower()


def test_what_was_drawn_before_is_not_drawn_again(
    folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    before = Results(folder).queries
    outcome = run_experiment(read_experiment(file), folder, file=file)
    assert outcome.done_before == outcome.cells
    assert Results(folder).queries.equals(before)
