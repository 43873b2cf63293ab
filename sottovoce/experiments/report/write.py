"""Write a report: the page, its tables and its figures, whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from sottovoce.errors import SottovoceError, need
from sottovoce.experiments.report.page import Drawing, inlined, page
from sottovoce.experiments.report.render import to_csv, to_latex
from sottovoce.experiments.report.table import Section
from sottovoce.experiments.report.tables import sections
from sottovoce.experiments.results import Results
from sottovoce.threads import single_threaded_blas
from sottovoce.types import Progress

REPORT, PAGE = "report", "report.html"
TABLES, FIGURES = "tables", "figures"


def write_report(
    folder: Path | str, progress: Progress | None = None, *, figures: bool = True
) -> Path:
    """Write ``report/report.html``, tables and figures of a finished experiment; give the page.

    What an earlier report left in ``tables`` and ``figures`` is replaced; ``progress`` counts
    figures' kinds.
    """
    results = Results(folder)
    if figures:
        need(
            "matplotlib",
            "experiments",
            "figures need matplotlib",
            ", or leave them out with --no-figures",
        )
    part = results.folder / f".{REPORT}.{os.getpid()}.part"
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        with single_threaded_blas():  # Many small products: its own threads would only wait.
            found = named(sections(results))
        _write_tables(part / TABLES, found)
        drawings = _draw(results, part / FIGURES, progress) if figures else []
        (part / PAGE).write_text(page(results.manifest, found, drawings), encoding="utf-8")
        return _put(part, results.folder / REPORT)
    except OSError as error:
        raise SottovoceError(
            f"the report cannot be written ({type(error).__name__}): is there room, and may you "
            "write in the experiment's folder?"
        ) from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def named(found: Iterable[Section]) -> list[Section]:
    """The sections, with no name of a table twice: two collections may be called alike."""
    taken: dict[str, int] = {}
    every = []
    for section in found:
        tables = []
        for table in section.tables:
            taken[table.name] = number = taken.get(table.name, 0) + 1
            name = table.name if number == 1 else f"{table.name}-{number}"
            tables.append(replace(table, name=name))
        every.append(replace(section, tables=tuple(tables)))
    return every


def _write_tables(folder: Path, found: Sequence[Section]) -> None:
    folder.mkdir()
    for section in found:
        for table in section.tables:
            (folder / f"{table.name}.csv").write_text(to_csv(table), encoding="utf-8")
            (folder / f"{table.name}.tex").write_text(to_latex(table), encoding="utf-8")


def _draw(results: Results, folder: Path, progress: Progress | None) -> list[Drawing]:
    from sottovoce.experiments.report.figures import figures
    from sottovoce.plotting import save_figure

    folder.mkdir()
    drawings = []
    for each in figures(results, progress):
        save_figure(each.figure, folder / f"{each.name}.png")
        svg = save_figure(each.figure, folder / f"{each.name}.svg").read_text("utf-8")
        drawings.append(
            Drawing(each.name, each.title, each.caption, each.alt, inlined(svg, each.name))
        )
    return drawings


def _put(part: Path, folder: Path) -> Path:
    """Move what was written to its place, the page last."""
    folder.mkdir(exist_ok=True)
    for name in (TABLES, FIGURES):
        shutil.rmtree(folder / name, ignore_errors=True)
        if (part / name).exists():
            (part / name).rename(folder / name)
    return (part / PAGE).replace(folder / PAGE)
