"""Tables as HTML, CSV and LaTeX; cells for a terminal."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from html import escape

from sottovoce.experiments.report.table import Cell, Number, Table, shown

LATEX = {
    "\\": r"\textbackslash{}",
    **{each: f"\\{each}" for each in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "ε": r"$\varepsilon$",
    "▼": r"$^{\downarrow}$",
    "▲": r"$^{\uparrow}$",
    "≈": r"$^{\approx}$",
    "−": "$-$",
    "∞": r"$\infty$",
    "–": "--",
    "…": r"\ldots{}",
    "“": "``",
    "”": "''",
    "×": r"$\times$",
}
"""Characters that LaTeX takes for something else, or that its fonts may lack."""


def to_html(table: Table, anchor: str) -> str:
    """A block: caption, a table that scrolls, notes; folded where it is long."""
    numeric = table.numeric
    leading = next((place for place, number in enumerate(numeric) if number), 1)
    head = "".join(
        f'<th scope="col"{_aligned(number)}>{escape(name)}</th>'
        for name, number in zip(table.columns, numeric, strict=True)
    )
    body = "".join(
        "<tr>" + "".join(_cells_html(row, numeric, max(leading, 1))) + "</tr>\n"
        for row in table.rows
    )
    title = escape(table.title)
    notes = "".join(f"<p class=note>{escape(note)}</p>" for note in table.notes)
    inner = (
        f"<figcaption><strong>{title}</strong> {escape(table.caption)}</figcaption>\n"
        f'<div class=scroll role=region tabindex=0 aria-label="{title}">'
        f"<table><caption class=unseen>{title}</caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>{body}</tbody></table></div>{notes}"
    )
    if table.folded:
        said = f"{title} ({len(table.rows):,} rows)"
        inner = f"<details><summary>{said}</summary>{inner}</details>"
    return f"<figure id={anchor}>{inner}</figure>\n"


def _cells_html(row: tuple[Cell, ...], numeric: list[bool], leading: int) -> Iterator[str]:
    for place, (cell, number) in enumerate(zip(row, numeric, strict=True)):
        if place < leading:
            yield f'<th scope="row">{_html(cell)}</th>'
        else:
            yield f"<td{_aligned(number)}>{_html(cell)}</td>"


def _aligned(number: bool) -> str:
    return " class=number" if number else ""


def _html(cell: Cell) -> str:
    if cell is None:
        return "–"
    if not isinstance(cell, Number):
        return escape(_plain(cell))
    value = f"<b>{shown(cell.value)}</b>" if cell.best else shown(cell.value)
    small = "".join(f"<small>{escape(each)}</small>" for each in (_ends(cell), cell.by) if each)
    return value + (f"<sup>{escape(cell.marks)}</sup>" if cell.marks else "") + small


def to_csv(table: Table) -> str:
    """All digits; intervals, marks and what a number comes from in columns of their own."""
    numbers = [[row[place] for row in table.rows] for place in range(len(table.columns))]
    header: list[str] = []
    columns: list[list[str]] = []
    for name, cells in zip(table.columns, numbers, strict=True):
        header.append(name)
        columns.append([_exact(cell) for cell in cells])
        for part in ("low", "high", "marks", "by"):
            written = [_part(cell, part) for cell in cells]
            if any(written):
                header.append(f"{name} {part}")
                columns.append(written)
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(zip(*columns, strict=True))
    return out.getvalue()


def _exact(cell: Cell) -> str:
    if cell is None:
        return ""
    return repr(cell.value) if isinstance(cell, Number) else str(cell)


def _part(cell: Cell, part: str) -> str:
    if not isinstance(cell, Number):
        return ""
    if part == "by":
        return cell.by
    if part == "marks":
        return ("best " if cell.best else "") + cell.marks
    return "" if cell.interval is None else repr(cell.interval[part == "high"])


def to_latex(table: Table) -> str:
    """A table for a paper that uses booktabs."""
    shape = "".join("r" if number else "l" for number in table.numeric)
    head = " & ".join(latex_escape(name) for name in table.columns)
    rows = "".join(" & ".join(_latex(cell) for cell in row) + r" \\" + "\n" for row in table.rows)
    said = latex_escape(" ".join((f"{table.title}.", table.caption, *table.notes)).strip())
    return (
        "\\begin{table}\n\\centering\n"
        f"\\caption{{{said}}}\n\\label{{tab:{table.name}}}\n"
        f"\\begin{{tabular}}{{{shape}}}\n\\toprule\n{head} \\\\\n\\midrule\n{rows}\\bottomrule\n"
        "\\end{tabular}\n\\end{table}\n"
    )


def latex_escape(text: str) -> str:
    """The text as LaTeX prints it."""
    return "".join(LATEX.get(each, each) for each in text)


def _latex(cell: Cell) -> str:
    if cell is None:
        return "--"
    if not isinstance(cell, Number):
        return latex_escape(_plain(cell))
    value = latex_escape(shown(cell.value))
    value = f"\\textbf{{{value}}}" if cell.best else value
    small = "".join(
        f" {{\\scriptsize {latex_escape(each)}}}" for each in (_ends(cell), cell.by) if each
    )
    return value + latex_escape(cell.marks) + small


def to_text(cell: Cell) -> str:
    """A cell for a terminal."""
    if cell is None:
        return "–"
    if not isinstance(cell, Number):
        return _plain(cell)
    return " ".join(each for each in (shown(cell.value), _ends(cell), cell.by) if each)


def _ends(cell: Number) -> str:
    return (
        "" if cell.interval is None else f"[{shown(cell.interval[0])}, {shown(cell.interval[1])}]"
    )


def _plain(cell: str | int) -> str:
    return f"{cell:,}" if isinstance(cell, int) else cell
