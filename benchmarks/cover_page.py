"""The page of ``cover.py``: rows that were measured, kept where cells of an earlier run are gone.

A row has a number of queries, a mechanism and, for each engine, seeds, risks and what is found.
``merge`` puts new rows into those that a page has, engine by engine; the figure, and the table of
all collections beside each other, are made of what the page says then.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sottovoce import plotting
from sottovoce.files import write_whole

ENGINES = ("bm25", "dense")
ENGINE_TITLES = {"bm25": "BM25", "dense": "dense"}
GOAL_RISK, GOAL_SHARE = 0.1, 0.9
"""What was aimed at: so small a risk at that share of what is found without privacy."""
HEAD = (
    "| queries | | seeds | BM25: log | kind | short list | nDCG@10 "
    "| dense: log | kind | short list | nDCG@10 |\n"
    "|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
)
PLAIN = re.compile(r"The queries themselves find (\S+), \S+ by BM25 and (\S+), \S+ by dense search")


@dataclass(frozen=True)
class Measured:
    """What a row says of one engine, as it is printed: risks, then nDCG@10 at each depth."""

    seeds: str
    log: str
    kind: str
    short_list: str
    ndcg: str

    @property
    def first_depth(self) -> str:
        return self.ndcg.partition(",")[0]

    def filled_by(self, other: Measured) -> Measured:
        """With what the other says where this says nothing."""
        empty = [name for name, value in vars(self).items() if not value]
        return replace(self, **{name: getattr(other, name) for name in empty})


@dataclass(frozen=True)
class Row:
    """A mechanism at one number of queries."""

    queries: int
    label: str
    by_engine: dict[str, Measured]

    @property
    def is_cover(self) -> bool:
        return self.label.startswith("cover ")

    @property
    def parts(self) -> tuple[str, str]:
        """A mechanism, or cover with its pool, and ε or the shape of the sets."""
        name, _, rest = self.label.partition(", ")
        if not self.is_cover:
            return name, rest
        shape = name.removeprefix("cover ").replace(" ", "")
        return ", ".join(filter(None, ("cover", rest))), shape

    @classmethod
    def read(cls, line: str) -> Row:
        """As ``line`` wrote it."""
        queries, label, seeds, *values = (cell.strip() for cell in line.strip("|").split("|"))
        parts = zip(ENGINES, (values[:4], values[4:]), strict=True)
        filled = {engine: part for engine, part in parts if part[-1]}
        counts = seeds.split("; ") if "; " in seeds else [seeds] * len(filled)
        return cls(
            int(queries),
            label,
            {
                engine: Measured(count, *part)
                for (engine, part), count in zip(filled.items(), counts, strict=True)
            },
        )

    @property
    def line(self) -> str:
        """For the table of a collection."""
        counts = [measured.seeds for measured in self.by_engine.values()]
        seeds = counts[0] if len(set(counts)) == 1 else "; ".join(counts)
        cells = " | ".join(
            " | ".join((measured.log, measured.kind, measured.short_list, measured.ndcg))
            if measured
            else " | | | "
            for measured in map(self.by_engine.get, ENGINES)
        )
        return f"| {self.queries} | {self.label} | {seeds} | {cells} |"


@dataclass(frozen=True)
class Section:
    """A collection: what the queries themselves find, and all rows."""

    title: str
    plain: str
    rows: tuple[Row, ...]

    @property
    def text(self) -> str:
        """As it stands on the page."""
        return "\n".join([f"## {self.title}\n", f"{self.plain}\n", HEAD, *self._lines(), ""])

    def _lines(self) -> Iterator[str]:
        order = sorted(self.rows, key=_place)
        return (row.line for row in order)

    def merged(self, new: Iterable[Row], *, only_fill: bool = False) -> Section:
        """With new rows, which replace what the old ones say of the same engine.

        ``only_fill``: they say only what the old ones leave empty.
        """
        rows = {(row.queries, row.label): row for row in self.rows}
        for row in new:
            old = rows.get((row.queries, row.label), row)
            both = old.by_engine | row.by_engine
            if only_fill:
                both |= {
                    engine: measured.filled_by(both[engine])
                    for engine, measured in old.by_engine.items()
                }
            in_order = {engine: both[engine] for engine in ENGINES if engine in both}
            rows[row.queries, row.label] = replace(row, by_engine=in_order)
        return replace(self, rows=tuple(rows.values()))

    def found_without_privacy(self, engine: str) -> float:
        """nDCG@10 of the queries themselves, at the first depth."""
        matched = PLAIN.search(self.plain)
        assert matched is not None, f"{self.title}: no line on what the queries themselves find"
        return float(matched[1 + ENGINES.index(engine)])


def _place(row: Row) -> tuple[int, bool, str]:
    """Where a row stands: by number of queries, cover first, then by name."""
    return row.queries, not row.is_cover, row.label.lower()


def read_sections(text: str) -> list[Section]:
    """The collections of a page."""
    return [
        Section(
            title=title,
            plain=body.strip().partition("\n")[0],
            rows=tuple(Row.read(line) for line in re.findall(r"^\| \d.*\|$", body, re.MULTILINE)),
        )
        for title, body in re.findall(r"^## (.+)\n((?:(?!^## )[^\n]*\n)*)", text, re.MULTILINE)
    ]


def merge(page: Path, new: Sequence[Section], *, only_fill: bool = False) -> None:
    """Put what was measured into a page; what stands before its tables stays, and old rows do."""
    text = page.read_text("utf-8")
    by_title = {section.title: section for section in read_sections(text)}
    for section in new:
        old = by_title.get(section.title, replace(section, rows=()))
        old = replace(old, plain=section.plain)
        by_title[section.title] = old.merged(section.rows, only_fill=only_fill)
    tables = "\n".join(section.text for section in by_title.values())
    write_whole(page, f"{text.partition(chr(10) + '## ')[0]}\n{tables}".encode())


def print_together(sections: Sequence[Section], queries: int = 50) -> None:
    """All collections beside each other at one number of queries: both risks, and what is found."""
    print("| | " + " | ".join(section.title for section in sections) + " |")
    print("|---|" + "--:|" * len(sections))
    for engine in ENGINES:
        plain = [_short(section.found_without_privacy(engine)) for section in sections]
        print(f"| **{ENGINE_TITLES[engine]}**: the query itself | {' | '.join(plain)} |")
        tables = [
            {
                row.label: row.by_engine[engine]
                for row in section.rows
                if row.queries == queries and engine in row.by_engine
            }
            for section in sections
        ]
        for label in dict.fromkeys(label for table in tables for label in table):
            cells = [_joined(table.get(label)) for table in tables]
            print(f"| {label} | {' | '.join(cells)} |")


def _joined(measured: Measured | None) -> str:
    if measured is None:
        return ""
    if not measured.log:
        return measured.first_depth
    risks = (measured.log, measured.kind or "–", measured.short_list)
    return " · ".join([*risks, measured.first_depth])


def _short(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def draw(sections: Sequence[Section], file: Path, queries: int = 50, engine: str = "bm25") -> None:
    """Risk against what is found: a column for each collection, a row for each attacker."""
    attackers = {
        "who has a log": "log",
        "who has a log, and knows the kind": "kind",
        "who has a short list": "short_list",
    }
    figure, plots = plotting.new_figure(len(attackers), len(sections), width=3.4, height=2.6)
    looks: dict[str, dict[str, Any]] = {}
    for row, (attacker, attack) in enumerate(attackers.items()):
        for column, section in enumerate(sections):
            plot = plots[row * len(sections) + column]
            plain = section.found_without_privacy(engine)
            goal = [(0, GOAL_SHARE * plain), (GOAL_RISK, GOAL_SHARE * plain), (GOAL_RISK, plain)]
            plot.fill(*zip(*goal, (0, plain), strict=True), color=plotting.MUTED, alpha=0.2)
            for setting in section.rows:
                measured = setting.by_engine.get(engine)
                if setting.queries != queries or measured is None:
                    continue
                if not (risk_measured := getattr(measured, attack)):
                    continue
                risk, quality = float(risk_measured), float(measured.first_depth)
                name, strength = setting.parts
                if name not in looks:
                    looks[name] = plotting.look(len(looks)) | {"linestyle": "none"}
                style = looks[name] | {"markersize": 8 if setting.is_cover else 5}
                plot.plot([risk], [quality], label=plotting.literal(name), **style)
                plotting.beside(plot, strength.replace("ε ", ""), (risk, quality))
            plot.set_xlim(-0.03, 1.08)
            plotting.label(
                plot,
                title=section.title if row == 0 else "",
                x=f"named by {attacker}",
                y="nDCG@10" if column == 0 else "",
            )
    plotting.legend_below(figure, plots)
    plotting.save_figure(figure, file)
