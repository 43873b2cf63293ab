"""Tables as CSV and LaTeX; cells for a terminal. HTML is made in ``page``."""

from __future__ import annotations

import csv
import io

from sottovoce.experiments.report.table import Cell, Number, Table, shown

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
