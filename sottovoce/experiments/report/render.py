"""How a report looks: tables as CSV and LaTeX, cells for a terminal, all of it as one HTML file."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from sottovoce.errors import need
from sottovoce.experiments.report.table import Cell, Number, Section, Table, shown

FIGURES = "Figures"

LATEX = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
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


def to_csv(table: Table) -> str:
    """All digits; intervals, marks and what a number comes from in columns of their own."""
    header: list[str] = []
    columns: list[list[str]] = []
    for number, name in enumerate(table.columns):
        cells = [row[number] for row in table.rows]
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
    caption = latex_escape(" ".join((f"{table.title}.", table.caption, *table.notes)).strip())
    return (
        "\\begin{table}\n\\centering\n"
        f"\\caption{{{caption}}}\n\\label{{tab:{table.name}}}\n"
        f"\\begin{{tabular}}{{{shape}}}\n\\toprule\n{head} \\\\\n\\midrule\n{rows}\\bottomrule\n"
        "\\end{tabular}\n\\end{table}\n"
    )


def latex_escape(text: str) -> str:
    """The text as LaTeX prints it."""
    return "".join(LATEX.get(character, character) for character in text)


def _latex(cell: Cell) -> str:
    if cell is None:
        return "--"
    if not isinstance(cell, Number):
        return latex_escape(to_text(cell))
    value = latex_escape(shown(cell.value))
    value = f"\\textbf{{{value}}}" if cell.best else value
    small = "".join(
        f" {{\\scriptsize {latex_escape(part)}}}" for part in (interval(cell), cell.by) if part
    )
    return value + latex_escape(cell.marks) + small


def to_text(cell: Cell) -> str:
    """A cell for a terminal."""
    if cell is None:
        return "–"
    if not isinstance(cell, Number):
        return f"{cell:,}" if isinstance(cell, int) else cell
    return " ".join(part for part in (shown(cell.value), interval(cell), cell.by) if part)


def interval(cell: Number) -> str:
    """The ends of the interval of a number, if it has one."""
    ends = cell.interval
    return "" if ends is None else f"[{shown(ends[0])}, {shown(ends[1])}]"


# The page, which asks nobody for anything


@dataclass(frozen=True)
class Drawing:
    """A figure as SVG text, ready for the page."""

    name: str
    title: str
    caption: str
    alt: str
    svg: str


def page(
    manifest: dict[str, Any], sections: Sequence[Section], drawings: Sequence[Drawing] = ()
) -> str:
    """All of it: the best trades, then figures, then the other tables."""
    jinja2 = need("jinja2", "experiments", "reports need Jinja2")
    from markupsafe import Markup

    folder = files("sottovoce.experiments.report")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {"anchor": anchor, "shown": shown, "interval": interval, "text": to_text}
    environment.filters["number_class"] = lambda numeric: " class=number" if numeric else ""
    environment.tests["has_value"] = lambda cell: isinstance(cell, Number)
    figures = {
        "title": FIGURES,
        "is_headline": False,
        "entries": [
            {
                **vars(drawing),
                "anchor": anchor("figure", drawing.name),
                "svg": Markup(drawing.svg),  # noqa: S704 - drawn here
            }
            for drawing in drawings
        ],
    }
    style = (folder / "page.css").read_text("utf-8").strip()
    content: str = environment.from_string((folder / "page.html").read_text("utf-8")).render(
        title=str(manifest.get("name") or "Experiment"),
        style=Markup(style),  # noqa: S704 - of the package
        manifest=manifest,
        parts=[
            *(_tables(section) for section in sections if section.is_headline),
            *([figures] if drawings else []),
            *(_tables(section) for section in sections if not section.is_headline),
        ],
    )
    return content


def _tables(section: Section) -> dict[str, Any]:
    return {
        "title": section.title,
        "is_headline": section.is_headline,
        "entries": [
            {"anchor": anchor("table", table.name), "title": table.title, "table": table}
            for table in section.tables
        ],
    }


def inlined(svg: str, name: str) -> str:
    """An SVG file for the inside of a page: no header, no metadata, ids that no other has."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    start = svg.index("<svg")
    tag, rest = svg[start:].split(">", 1)
    tag = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", tag)
    svg = f"{tag}>{rest}".replace("xlink:href=", "href=").strip()
    prefix = f"{anchor(name)}."
    svg = re.sub(r'(\sid=")', rf"\g<1>{prefix}", svg)
    svg = re.sub(r'(href="#)', rf"\g<1>{prefix}", svg)
    return re.sub(r"(url\(#)", rf"\g<1>{prefix}", svg)


def anchor(*parts: str) -> str:
    """The id of a part of the page."""
    return re.sub(r"[^A-Za-z0-9]+", "-", "-".join(parts)).strip("-").lower()
