"""The report as files: a page that is whole and asks nobody, tables for other programs."""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browser import browser
from experiment_folder import write_folder
from typer.testing import CliRunner

from sottovoce.cli import app
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.experiments.report.render import inlined, latex_escape, page, to_csv, to_latex
from sottovoce.experiments.report.table import Number, Section, Table, shown
from sottovoce.experiments.report.write import write_report


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("experiment"))


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
    html = page({"name": "<b>50"}, [Section("<script>", (HOSTILE,))])
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


def test_the_page_is_well_formed_and_asks_nobody(written: str, folder: Path) -> None:
    read = check_page(written)
    tables = len(list((folder / "report" / "tables").glob("*.csv")))
    assert tables > 20
    assert read.tags.count("table") == tables
    assert read.tags.count("caption") == tables
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
    with browser() as chromium:
        context = chromium.new_context(
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
        context.close()


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
    small = {"epsilons": (1.0, 10.0), "seeds": (0,), "queries": 3, "items": 4}
    page = write_report(write_folder(tmp_path, **small | left), figures=False)
    names = {each.stem for each in (page.parent / "tables").iterdir()}
    assert kept in names
    assert gone not in names
    check_page(page.read_text("utf-8"))


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
