"""Write a report: the page, its tables and its figures, whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from sottovoce.errors import SottovoceError, need
from sottovoce.experiments.report.further_tables import (
    audit_tables,
    manifest_tables,
    sample_tables,
    task_tables,
    word_tables,
)
from sottovoce.experiments.report.render import Drawing, inlined, page, to_csv, to_latex
from sottovoce.experiments.report.risk_tables import (
    best_trades,
    by_queries,
    quipu_tables,
    risk_tables,
)
from sottovoce.experiments.report.significance import comparing
from sottovoce.experiments.report.table import Section, Table
from sottovoce.experiments.report.utility_tables import (
    significance_tables,
    similarity_tables,
    utility_tables,
)
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
        without = ", or leave them out with --no-figures"
        need("matplotlib", "experiments", "figures need matplotlib", without)
    part = results.folder / f".{REPORT}.{os.getpid()}.part"
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        with single_threaded_blas():  # Many small products: its own threads would only wait.
            all_sections = _with_names(sections(results))
        _write_tables(part / TABLES, all_sections)
        drawings = _draw(results, part / FIGURES, progress) if figures else []
        (part / PAGE).write_text(page(results.manifest, all_sections, drawings), encoding="utf-8")
        return _put(part, results.folder / REPORT)
    except OSError as error:
        raise SottovoceError(
            f"the report cannot be written ({type(error).__name__}): is there room, and may you "
            "write in the experiment's folder?"
        ) from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def sections(results: Results) -> Iterator[Section]:
    """All tables whose data are there; the best trades first, the manifest last."""
    places, collections, compared = results.places, results.collections, comparing(results)

    def tables_of(
        make: Callable[..., Iterator[Table]], items: Iterable[Any], *more: Any
    ) -> Iterator[Table]:
        for item in items:
            yield from make(results, item, *more)

    tables: dict[str, Iterable[Table | None]] = {
        "The best trades": (
            table
            for place in places
            for table in (best_trades(results, place), by_queries(results, place))
        ),
        "What attackers get": tables_of(risk_tables, collections),
        "What is still found": tables_of(utility_tables, collections, compared),
        "QuIPU scores": tables_of(quipu_tables, places),
        "Significance": tables_of(significance_tables, places, compared),
        "How alike the texts are": tables_of(similarity_tables, collections),
        "Deniability": chain(word_tables(results), sample_tables(results)),
        "Downstream tasks": task_tables(results),
        "Membership": audit_tables(results),
        "Manifest": manifest_tables(results.manifest),
    }
    for number, (title, of_section) in enumerate(tables.items()):
        if not_empty := tuple(table for table in of_section if table is not None):
            yield Section(title, not_empty, is_headline=number == 0)


def _with_names(all_sections: Iterable[Section]) -> list[Section]:
    """The sections, with no name of a table twice: two collections may be called alike."""
    taken: dict[str, int] = {}
    renamed = []
    for section in all_sections:
        tables = []
        for table in section.tables:
            taken[table.name] = number = taken.get(table.name, 0) + 1
            name = table.name if number == 1 else f"{table.name}-{number}"
            tables.append(replace(table, name=name))
        renamed.append(replace(section, tables=tuple(tables)))
    return renamed


def _write_tables(folder: Path, all_sections: Sequence[Section]) -> None:
    folder.mkdir()
    for table in (table for section in all_sections for table in section.tables):
        (folder / f"{table.name}.csv").write_text(to_csv(table), encoding="utf-8")
        (folder / f"{table.name}.tex").write_text(to_latex(table), encoding="utf-8")


def _draw(results: Results, folder: Path, progress: Progress | None) -> list[Drawing]:
    from sottovoce.experiments.report.figures import figures
    from sottovoce.plotting import save_figure

    folder.mkdir()
    drawings = []
    for figure in figures(results, progress):
        save_figure(figure.figure, folder / f"{figure.name}.png")
        svg = save_figure(figure.figure, folder / f"{figure.name}.svg").read_text("utf-8")
        svg = inlined(svg, figure.name)
        drawings.append(Drawing(figure.name, figure.title, figure.caption, figure.alt, svg))
    return drawings


def _put(part: Path, folder: Path) -> Path:
    """Move what was written to its place, the page last."""
    folder.mkdir(exist_ok=True)
    for name in (TABLES, FIGURES):
        shutil.rmtree(folder / name, ignore_errors=True)
        if (part / name).exists():
            (part / name).rename(folder / name)
    return (part / PAGE).replace(folder / PAGE)
