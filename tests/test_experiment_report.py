"""The report: its numbers are those of the tables, its page is whole and asks nobody."""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from experiment_folder import write_folder, write_table
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from sottovoce.cli import app
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.evaluation.downstream.scores import estimate
from sottovoce.experiments.report.headline import front
from sottovoce.experiments.report.page import inlined
from sottovoce.experiments.report.quipu_table import quipu_scores
from sottovoce.experiments.report.render import latex_escape, to_csv, to_html, to_latex
from sottovoce.experiments.report.spread import bootstrap, shares
from sottovoce.experiments.report.strongest import strongest
from sottovoce.experiments.report.table import Number, Table, shown
from sottovoce.experiments.report.tables import sections
from sottovoce.experiments.report.write import write_report
from sottovoce.experiments.results import Results, Setting, curves
from sottovoce.privacy.quipu import quipu

PLACE = {"collection": "demo", "engine": "bm25", "reranker": "light"}
CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("experiment"))


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    return Results(folder)


@pytest.fixture(scope="module")
def tables(results: Results) -> dict[str, Table]:
    return {table.name: table for section in sections(results) for table in section.tables}


@pytest.fixture(scope="module")
def written(folder: Path) -> str:
    return write_report(folder, figures=False).read_text("utf-8")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with figures, of an experiment that has few."""
    small = write_folder(
        tmp_path_factory.mktemp("drawn"),
        mechanisms=("cmp", "santext"),
        epsilons=(1.0, 10.0),
        engines=("bm25",),
        utility=("nDCG@10",),
        words=0,
        plotted=(),
        tasks=(),
    )
    return write_report(small)


def row_of(table: Table, *labels: str) -> dict[str, Number]:
    """The cells of the row that starts with these labels, by column."""
    (row,) = [row for row in table.rows if row[: len(labels)] == labels]
    return dict(zip(table.columns, row, strict=True))


def test_values_are_means_over_seeds_of_the_long_table(results: Results) -> None:
    by_hand: dict[tuple, list[float]] = {}
    for row in results.queries.to_pylist():
        where = (row["collection"], row["engine"], row["reranker"], row["system"], row["measure"])
        if where == ("demo", "bm25", "light", "private", "P@10"):
            setting = Setting(row["mechanism"], row["epsilon"], row["release"], row["n"])
            by_hand.setdefault((setting, row["query_id"]), []).append(row["value"])
    found = results.values("P@10", **PLACE)
    assert {(s, q) for s, values in found.items() for q in values} == set(by_hand)
    for (setting, query), seeds in by_hand.items():
        assert len(seeds) == 2
        assert found[setting][query] == pytest.approx(np.mean(seeds))
    assert list(dict.fromkeys(each for each, _ in by_hand)) == list(found)
    assert results.values("P@10", collection="elsewhere") == {}


def test_tables_hold_the_means_of_their_measure(results: Results, tables: dict[str, Table]) -> None:
    jaccard = results.values("jaccard", collection="demo")
    cell = row_of(tables["similarity-jaccard-demo"], "cmp")["ε = 10"]
    assert cell.value == pytest.approx(
        np.mean(list(jaccard[Setting("cmp", 10.0, "independent", 20)].values()))
    )
    ndcg = results.values("nDCG@10", **PLACE)
    cell = row_of(tables["ndcg-10-demo-light"], "bm25", "aea")["no ε"]
    assert cell.value == pytest.approx(
        np.mean(list(ndcg[Setting("aea", None, "independent", 20)].values()))
    )
    deeper = results.values("pooled recall(rel=1)", **PLACE, system="same depth")
    cell = row_of(tables["pooled-recall-rel-1-demo"], "bm25", "same depth as cmp")["ε = 5"]
    assert cell.value == pytest.approx(
        np.mean(list(deeper[Setting("cmp", 5.0, "independent", 20)].values()))
    )
    assert row_of(tables["pool-demo"], "bm25", "no privacy")["no ε"].value == 100


def test_every_table_of_numbers_says_how_many_queries_and_seeds(tables: dict[str, Table]) -> None:
    measured = [each for name, each in tables.items() if not name.startswith("manifest")]
    assert len(measured) > 20
    for table in measured:
        if not table.name.startswith(("neighbour", "deniability", "task")):
            assert "12 queries, 2 seeds" in table.caption, table.name
            assert "20 variants" in table.caption
        assert "quer" in table.caption


def test_the_best_of_each_column_is_marked_by_engine(tables: dict[str, Table]) -> None:
    table = tables["ndcg-10-demo-light"]
    place = table.columns.index("ε = 10")
    for engine in ("bm25", "dense:light"):
        cells = [row[place] for row in table.rows if row[0] == engine and row[place] is not None]
        best = [each for each in cells if each.best]
        assert [each.value for each in best] == [max(each.value for each in cells)]
    low = row_of(table, "bm25", "cmp")["ε = 1"]
    assert "▼" in low.marks
    assert "▼" not in row_of(table, "bm25", "cmp")["ε = 15"].marks


def test_shares_of_queries_have_clopper_pearson_intervals(tables: dict[str, Table]) -> None:
    low, high = shares(np.array([[0.0] * 12, [1.0] * 6 + [0.0] * 6]))
    assert low[0] == 0
    assert high[0] == pytest.approx(1 - 0.025 ** (1 / 12))
    cell = row_of(tables["query-inference-light-demo"], "cmp", "lazy: first guess")["ε = 10"]
    assert (cell.value, cell.interval) == (0.0, (0.0, pytest.approx(1 - 0.025 ** (1 / 12))))


def test_bootstrap_covers_the_mean_and_leaves_no_width_of_zero() -> None:
    rng = np.random.default_rng(0)
    samples = rng.random((400, 60)) ** 2
    low, high = bootstrap(samples)
    covered = ((low <= 1 / 3) & (high >= 1 / 3)).mean()
    assert 0.9 < covered < 0.99
    low, high = bootstrap(np.zeros((1, 30)))
    assert (low[0], high[0]) == (0, pytest.approx(0.1))
    gaps = samples.copy()
    gaps[:, :30] = np.nan
    narrow = bootstrap(samples)
    wide = bootstrap(gaps)
    assert (wide[1] - wide[0]).mean() > 1.2 * (narrow[1] - narrow[0]).mean()


def test_the_strongest_attack_is_the_one_with_the_greatest_mean(results: Results) -> None:
    found = strongest(results, "demo")
    measures = ("words[mode]", "words[centroid]", "lazy[light]")
    means = {
        measure: {
            setting: np.mean(list(values.values()))
            for setting, values in results.values(measure, collection="demo").items()
        }
        for measure in measures
    }
    assert len({each.attack for each in found.values()}) > 1
    for setting, attack in found.items():
        most = max(means, key=lambda measure: means[measure][setting])
        assert attack.mean == pytest.approx(means[most][setting])
        assert means[attack.attack][setting] == pytest.approx(attack.mean)


def test_quipu_scores_are_those_of_the_points_in_order(results: Results) -> None:
    scores = quipu_scores(results, **PLACE, risk="motivated[light]")
    utility = results.values("nDCG@10", **PLACE)
    risk = results.values("motivated[light]", collection="demo")
    (itself,) = results.values("nDCG@10", **PLACE, system="no privacy").values()
    assert "aea" not in {each.mechanism for each in scores}
    assert len(scores) == 5
    for curve, points in curves(utility).items():
        if curve not in scores:
            continue
        assert [each.epsilon for each in points] == [1, 5, 10, 15]
        expected = quipu(
            [list(risk[each].values()) for each in points],
            [list(utility[each].values()) for each in points],
            best=np.mean(list(itself.values())),
        )
        assert scores[curve] == expected


def test_quipu_scores_use_queries_that_have_both(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, mechanisms=("cmp",), tasks=(), words=0)
    rows = [
        tuple(row.values())
        for row in Results(folder).queries.to_pylist()
        if not (row["query_id"] == "q3" and row["measure"] == "nDCG@10" and row["epsilon"] == 5)
    ]
    write_table(folder, "queries", rows)
    (score,) = quipu_scores(Results(folder), **PLACE, risk="strongest").values()
    assert score.queries == 11


def test_words_and_tasks_are_summed_up(results: Results, tables: dict[str, Table]) -> None:
    words = results.words.to_pylist()
    backs = [
        row["value"]
        for row in words
        if (row["mechanism"], row["epsilon"], row["measure"]) == ("cmp", 10.0, "N_w")
    ]
    row = row_of(tables["deniability-made-up-space"], "cmp", "10")
    assert row["N_w mean"].value == pytest.approx(np.mean(backs))
    assert row["N_w worst"].value == max(backs)
    assert row["N_w 95 %"].value == pytest.approx(np.percentile(backs, 95))
    assert row["S_w worst"].value <= row["S_w 5 %"].value
    assert [row[0] for row in tables["neighbour-distances-made-up-space"].rows] == [
        1,
        10,
        100,
        1000,
    ]
    rights = {
        seed: np.array(
            [
                row["value"]
                for row in results.tasks.to_pylist()
                if (row["mechanism"], row["epsilon"], row["obfuscated"], row["seed"])
                == ("cmp", 10.0, "both", seed)
            ]
        )
        for seed in (0, 1)
    }
    value, interval = estimate([np.arange(40)] * 2, list(rights.values()), (0, 1))
    cell = row_of(tables["task-sentiment-accuracy"], "tfidf", "cmp", "both")["ε = 10"]
    assert (cell.value, cell.interval) == (pytest.approx(value), pytest.approx(interval))
    assert row_of(tables["task-sentiment-accuracy"], "majority")["no ε"].value < 0.6


points = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12)


@given(points)
def test_the_front_holds_what_no_other_beats(found: list[tuple[int, int]]) -> None:
    settings = [Setting(str(number), None, "", 1) for number in range(len(found))]
    risk = {each: float(r) for each, (r, _) in zip(settings, found, strict=True)}
    utility = {each: float(u) for each, (_, u) in zip(settings, found, strict=True)}

    def beaten(one: Setting, by: Setting) -> bool:
        as_good = risk[by] <= risk[one] and utility[by] >= utility[one]
        return as_good and (risk[by], utility[by]) != (risk[one], utility[one])

    unbeaten = {each for each in settings if not any(beaten(each, other) for other in settings)}
    assert set(front(risk, utility)) == unbeaten
    assert [risk[each] for each in front(risk, utility)] == sorted(risk[each] for each in unbeaten)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.0, "0"),
        (0.12345, "0.123"),
        (-0.0612, "−0.061"),
        (1.0, "1.00"),
        (12.345, "12.3"),
        (1893.4, "1,893"),
        (float("nan"), "–"),
    ],
)
def test_numbers_have_three_digits(value: float, written: str) -> None:
    assert shown(value) == written


HOSTILE = Table(
    name="odd",
    title="<b>50 % & more</b>",
    caption="a_b^c ~ {d} \\ #1 $x$",
    columns=("<i>", "ε = 1"),
    rows=(
        ("</table><script>", Number(0.5, (0.25, 0.75), best=True, marks="≈▼", by="words[mode]")),
        ("plain", None),
    ),
    notes=("“quoted” <note>",),
)


def test_html_is_escaped_and_latex_too() -> None:
    html = to_html(HOSTILE, "odd")
    assert "<script" not in html
    assert "<b>50" not in html
    assert "<b>0.500</b><sup>≈▼</sup><small>[0.250, 0.750]</small>" in html
    tex = to_latex(HOSTILE)
    assert r"50 \% \& more" in tex
    assert latex_escape("a_b^c ~ {d} \\ #1 $x$") == (
        r"a\_b\textasciicircum{}c \textasciitilde{} \{d\} \textbackslash{} \#1 \$x\$"
    )
    bare = tex.replace(r"\{", "").replace(r"\}", "")
    assert bare.count("{") == bare.count("}")
    assert r"\textbf{0.500}$^{\approx}$$^{\downarrow}$ {\scriptsize [0.250, 0.750]}" in tex
    body = tex.split(r"\midrule")[1].split(r"\bottomrule")[0]
    assert all(line.count(" & ") == 1 for line in body.strip().splitlines())


def test_csv_keeps_all_digits_and_intervals() -> None:
    third = Number(1 / 3, (0.1, 0.7), best=True)
    table = Table("t", "t", "", ("who", "x", "n"), (("a, b", third, 3), ("c", None, 4)))
    rows = list(csv.DictReader(io.StringIO(to_csv(table))))
    assert float(rows[0]["x"]) == 1 / 3
    assert (rows[0]["x low"], rows[0]["x high"], rows[0]["x marks"]) == ("0.1", "0.7", "best ")
    assert rows[0]["who"] == "a, b"
    assert rows[1]["x"] == ""
    assert [row["n"] for row in rows] == ["3", "4"]


class Reader(HTMLParser):
    """Ids, links, and whether tags close in order."""

    VOID = ("meta", "br", "hr", "img", "link", "input")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check_page(page: str) -> Reader:
    """It is well-formed, its links lead somewhere in it, and it refers to nothing else."""
    read = Reader(page)
    assert not read.open
    assert len(read.ids) == len(set(read.ids))
    assert all(link.startswith("#") for link in read.links)
    assert {link[1:] for link in read.links} <= set(read.ids)
    assert not re.search(r"https?://|//\w|@import|<script|<link|\bsrc=", page)
    assert all(found.startswith("#") for found in re.findall(r"url\(([^)]*)", page))
    return read


def test_the_page_is_well_formed_and_asks_nobody(written: str, tables: dict[str, Table]) -> None:
    read = check_page(written)
    assert read.tags.count("table") == len(tables)
    assert read.tags.count("caption") == len(tables)
    assert "prefers-color-scheme: dark" in written
    assert "Numbers that somebody made up." in written
    assert "another engine &amp; 50 variants" in written


def test_figures_are_inside_the_page(drawn: Path) -> None:
    page = drawn.read_text("utf-8")
    read = check_page(page)
    files = sorted(each.stem for each in (drawn.parent / "figures").glob("*.svg"))
    assert files == sorted(each.stem for each in (drawn.parent / "figures").glob("*.png"))
    assert len(files) >= 4
    assert read.tags.count("svg") == len(files)
    assert page.count("role=img aria-label=") == len(files)
    assert 'aria-label=""' not in page


def test_ids_of_two_drawings_do_not_meet() -> None:
    svg = (
        '<?xml version="1.0"?><!DOCTYPE svg PUBLIC "x" "http://www.w3.org/svg.dtd">\n'
        '<svg xmlns:xlink="http://www.w3.org/1999/xlink" width="1pt" '
        'xmlns="http://www.w3.org/2000/svg"><metadata><a b="http://purl.org"/></metadata>'
        '<defs><path id="m1"/></defs><use xlink:href="#m1" clip-path="url(#m1)"/></svg>'
    )
    one, other = inlined(svg, "a.b"), inlined(svg, "c")
    assert one == (
        '<svg width="1pt"><defs><path id="a-b.m1"/></defs>'
        '<use href="#a-b.m1" clip-path="url(#a-b.m1)"/></svg>'
    )
    assert 'id="c.m1"' in other


def test_a_browser_without_network_shows_it_all(drawn: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api")
    if not CHROMIUM.exists():
        pytest.skip("there is no Chromium here")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        context = browser.new_context(
            offline=True, viewport={"width": 390, "height": 800}, java_script_enabled=True
        )
        page = context.new_page()
        asked: list[str] = []
        said: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        page.goto(drawn.as_uri())
        assert asked == [drawn.as_uri()]
        assert said == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.locator("h1").inner_text() == "made-up"
        heights = page.evaluate(
            "[...document.querySelectorAll('svg')].map(e => e.getBoundingClientRect().height)"
        )
        assert heights
        assert min(heights) > 100
        browser.close()


@pytest.mark.parametrize(
    ("left", "kept", "gone"),
    [
        ({"engines": ()}, "strongest-attack-demo", "ndcg-10-demo-light"),
        ({"encoders": (), "attacks": ()}, "ndcg-10-demo-light", "strongest-attack-demo"),
        ({"similarity": ()}, "quipu-demo-bm25-light", "similarity-jaccard-demo"),
        ({"mechanisms": ("aea",)}, "trades-demo-bm25-light", "quipu-demo-bm25-light"),
        ({"mechanisms": (), "engines": ()}, "neighbour-distances-made-up-space", "pool-demo"),
        ({"words": 0, "plotted": ()}, "pool-demo", "neighbour-distances-made-up-space"),
        ({"tasks": ()}, "pool-demo", "task-sentiment-accuracy"),
        ({"utility": ()}, "strongest-attack-demo", "trades-demo-bm25-light"),
        ({"utility": ("P@10",)}, "trades-demo-bm25-light", "ndcg-10-demo-light"),
    ],
)
def test_what_was_not_measured_has_no_table(
    tmp_path: Path, left: dict, kept: str, gone: str
) -> None:
    page = write_report(write_folder(tmp_path, **left), figures=False)
    names = {each.stem for each in (page.parent / "tables").iterdir()}
    assert kept in names
    assert gone not in names
    check_page(page.read_text("utf-8"))


def test_releases_and_n_stand_in_columns_where_they_differ(tmp_path: Path) -> None:
    folder = write_folder(
        tmp_path, mechanisms=("cmp",), releases=("once", "independent"), n=(5, 20), tasks=()
    )
    found = {each.name: each for part in sections(Results(folder)) for each in part.tables}
    table = found["similarity-jaccard-demo"]
    assert table.columns[:3] == ("mechanism", "release", "n")
    assert [row[1:3] for row in table.rows] == [
        ("once", "5"),
        ("once", "20"),
        ("independent", "5"),
        ("independent", "20"),
    ]
    assert "12 queries, 2 seeds; 95 % bootstrap" in table.caption


def test_collections_of_the_same_name_keep_their_tables_and_no_folder_is_told(
    tmp_path: Path,
) -> None:
    folder = write_folder(
        tmp_path,
        collections=("/home/ada/one/pool", "/home/ada/two/pool"),
        mechanisms=("cmp",),
        tasks=(),
        words=0,
    )
    page = write_report(folder, figures=False)
    names = {each.name for each in (page.parent / "tables").iterdir()}
    assert {"similarity-jaccard-pool.csv", "similarity-jaccard-pool-2.csv"} <= names
    text = page.read_text("utf-8")
    check_page(text)
    assert "ada" not in text


def test_a_report_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_folder(tmp_path, mechanisms=("cmp",), tasks=(), words=0)
    page = write_report(folder, figures=False)
    (page.parent / "mine.txt").write_text("kept")
    (page.parent / "tables" / "stale.csv").write_text("old")
    before = page.read_bytes()

    def full(self: Path, *_: object, **__: object) -> None:
        raise OSError(28, "no room")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        with pytest.raises(SottovoceError, match="cannot be written"):
            write_report(folder, figures=False)
    assert page.read_bytes() == before
    assert not list(folder.glob(".report*"))
    assert write_report(folder, figures=False).read_bytes() == before
    assert not (page.parent / "tables" / "stale.csv").exists()
    assert (page.parent / "mine.txt").read_text() == "kept"


def test_few_queries_are_said_to_show_nothing(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, mechanisms=("cmp", "santext"), queries=3, tasks=(), words=0)
    found = {each.name: each for part in sections(Results(folder)) for each in part.tables}
    table = found["against-no-privacy-demo-bm25-light"]
    assert "no difference, however large, can be significant" in table.notes[-1]


def test_the_command_reports_and_says_where(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, mechanisms=("cmp",), tasks=(), words=0)
    run = CliRunner().invoke(app, ["experiment", "report", str(folder), "--no-figures"])
    assert run.exit_code == 0, run.output
    assert "The best trades, demo, bm25" in run.output
    run = CliRunner().invoke(app, ["experiment", "report", str(folder), "--no-figures", "--json"])
    said = json.loads(run.output)
    assert Path(said["report"]).is_file()
    assert "strongest-attack-demo" in said["tables"]
    assert said["figures"] == []


def test_a_folder_without_an_experiment_is_refused(tmp_path: Path) -> None:
    run = CliRunner().invoke(app, ["experiment", "report", str(tmp_path / "nowhere")])
    assert isinstance(run.exception, UsageError)
    assert "experiment run" in str(run.exception)
    folder = write_folder(tmp_path / "damaged", mechanisms=("cmp",), tasks=(), words=0)
    (folder / "words.parquet").write_bytes(b"PAR1")
    with pytest.raises(SottovoceError, match="table of words cannot be read"):
        write_report(folder, figures=False)
    assert not (folder / "report").exists()
