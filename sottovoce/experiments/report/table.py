"""A table as data: what is in it, before anybody decides how it looks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from sottovoce.experiments.estimates import estimates
from sottovoce.experiments.measures import CHANCE, SENT, Measure
from sottovoce.experiments.naming import counted, last_part
from sottovoce.experiments.results import (
    EPSILON,
    Grid,
    Parameter,
    Place,
    Point,
    Results,
    Setting,
    curves,
    parameter_names,
)
from sottovoce.experiments.tables import SAME_DEPTH

Key = TypeVar("Key")

BELOW, ABOVE, AS_BEST = "▼", "▲", "≈"
"""Marks: significantly below and above no privacy; not distinguishable from the best."""
SHARE_INTERVALS = "95 % Clopper–Pearson intervals"
MEAN_INTERVALS = "95 % bootstrap intervals over queries"
NOTHING = "–"
MOST_ROWS = 30
"""Tables with more rows are folded."""
OWN_NUMBER = " (a set has its own number)"
UNRECORDED = (
    "how many queries left was not recorded: run the experiment again, what is done is kept"
)
SYMBOLS = {EPSILON: "ε"}
"""How headings write parameters that do not write themselves."""


@dataclass(frozen=True)
class Number:
    """A measured value, its interval, and what is marked at it."""

    value: float
    interval: tuple[float, float] | None = None
    best: bool = False
    marks: str = ""
    by: str = ""
    """What it comes from, in a word: the attack that was the strongest."""


Cell: TypeAlias = str | int | Number | None
Row: TypeAlias = tuple[tuple[str, ...], Mapping[Point, Cell]]
"""Labels of a row, and its cells by epsilon, k, …"""


@dataclass(frozen=True)
class Table:
    """``name`` is the stem of its files; rows are as long as ``columns``.

    ``folded`` tables are long, and shown only to those who open them.
    """

    name: str
    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    folded: bool = False

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError("every row of a table has a cell for each of its columns")

    @classmethod
    def over_points(
        cls,
        heads: Sequence[str],
        rows: Iterable[Row],
        *,
        name: str,
        title: str,
        caption: str,
        notes: tuple[str, ...] = (),
    ) -> Table:
        """A table with a column an epsilon, a k, … behind its ``heads``."""
        rows = list(rows)
        headings = _headings(point for _, cells in rows for point in cells)
        return cls(
            name=name,
            title=title,
            caption=caption,
            columns=(*heads, *headings.values()),
            rows=tuple((*labels, *map(cells.get, headings)) for labels, cells in rows),
            notes=notes,
        )

    @property
    def numeric(self) -> list[bool]:
        return [
            any(isinstance(row[number], Number | int) for row in self.rows)
            for number in range(len(self.columns))
        ]

    @property
    def leading(self) -> int:
        """How many columns at the left say what a row is about; the first at least."""
        first_number = next((at for at, number in enumerate(self.numeric) if number), 1)
        return max(first_number, 1)


@dataclass(frozen=True)
class Section:
    """Tables that belong together; those of the headline come before everything else."""

    title: str
    tables: tuple[Table, ...]
    is_headline: bool = False


# Numbers in words


def shown(value: float) -> str:
    """A number to three digits, at most three of them behind the point; large ones in full."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    digits = 3 if size < 1 else 2 if size < 10 else 1 if size < 100 else 0
    written = f"{value:,.{digits}f}"
    return "0" if value == 0 else written.replace("-", "−")


def shown_p(p: float) -> str:
    """A p value; not below what the tests can resolve anyway."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def symbols(points: Iterable[Point]) -> dict[Parameter, str]:
    """The parameters of points in headings; epsilon where there is none."""
    varied = [point.parameter for point in points if point.value is not None] or [Parameter()]
    return {each: SYMBOLS.get(name, name) for each, name in parameter_names(varied).items()}


def setting_names(settings: Iterable[Setting]) -> dict[Setting, str]:
    """Mechanisms with the point of their curve, in a few words."""
    settings = list(settings)
    names = symbols(setting.point for setting in settings)
    return {
        setting: setting.mechanism
        if setting.epsilon is None
        else f"{setting.mechanism} at {names[setting.axis.parameter]} = {setting.epsilon:g}"
        for setting in settings
    }


def point_column(points: Sequence[Point]) -> tuple[str, list[str]]:
    """A column of values, with its heading: the parameter, if all are of one."""
    names = symbols(points)
    several = len(names) > 1
    values = [
        NOTHING
        if point.value is None
        else f"{names[point.parameter]} = {point.value:g}"
        if several
        else f"{point.value:g}"
        for point in points
    ]
    return "setting" if several else next(iter(names.values())), values


def shown_count(mean: float) -> str:
    """A mean number of queries, in a few words: to one digit behind the point."""
    return f"{mean:,.1f}".removesuffix(".0")


def interval_kind(measure: Measure) -> str:
    """Which intervals :func:`numbers` gives."""
    return SHARE_INTERVALS if measure.is_share else MEAN_INTERVALS


def sized(*grids: Grid) -> str:
    """How many queries and seeds, as every table says; some attacks are run on fewer queries."""
    counts = [count for grid in grids for count in grid.counts]
    return sizes(counts, max((grid.seeds for grid in grids), default=0))


def sizes(queries: Iterable[int], seeds: int) -> str:
    """The same of numbers of queries that may differ from row to row."""
    counts = sorted(set(queries)) or [0]
    fewest = f"{counts[0]:,} to " if len(counts) > 1 else ""
    return f"{fewest}{counted(counts[-1], 'query', 'queries')}, {counted(seeds, 'seed')}"


def place_name(place: Place) -> str:
    """Where searches were run, in a title."""
    return f"{last_part(place.collection)}, {place.engine}, re-ranked by {place.reranker}"


# Cells and rows


def numbers(grid: Grid, measure: Measure) -> dict[Setting, Number]:
    """The mean of each setting over its queries, with an interval; chance is no estimate."""
    means = estimates(grid, measure).items()
    if measure == CHANCE:
        return {setting: Number(mean.value) for setting, mean in means}
    return {setting: Number(*mean) for setting, mean in means}


def with_best(cells: Mapping[Key, Number]) -> dict[Key, Number]:
    """The same with the greatest value marked, and those that equal it."""
    most = max((cell.value for cell in cells.values()), default=math.nan)
    return {key: replace(cell, best=cell.value >= most - 1e-12) for key, cell in cells.items()}


class RowNames:
    """What tells the settings of a table apart, epsilon aside; what they share is said once."""

    def __init__(self, results: Results, collection: str, settings: Iterable[Setting]) -> None:
        wanted = list(dict.fromkeys(setting.curve for setting in settings))
        self._sent = results.means(SENT, Place(collection))
        self._queries = self._ranges(wanted)
        asked = [curve for curve in wanted if not curve.axis.is_set]
        counts, releases = {curve.n for curve in asked}, {curve.release for curve in asked}
        queries = set(self._queries.values())
        self._tells_release, self._tells_n = len(releases) > 1, len(counts) > 1
        self.tells_queries = len(queries) > 1
        parts = [f"release {releases.pop()}"] if len(releases) == 1 else []
        if len(counts) == 1:
            own = "" if len(asked) == len(wanted) else OWN_NUMBER
            parts.append(f"{counted(counts.pop(), 'variant')} of each query{own}")
        if queries == {"1"}:
            parts.append("1 query a search")
        elif len(queries - {NOTHING}) == 1:
            parts.append(f"{(queries - {NOTHING}).pop()} queries a search")
        if NOTHING in queries:
            parts.append(UNRECORDED)
        self.shared = "; " + ", ".join(parts) if parts else ""
        """To be put behind a caption's numbers."""

    def _ranges(self, wanted: Sequence[Setting]) -> dict[Setting, str]:
        """How many queries each curve sends, from the fewest to the most; nothing if unrecorded."""
        if not self._sent and all(not curve.axis.is_set for curve in wanted):
            return {}
        recorded = curves(self._sent)
        ranges = {}
        for curve in wanted:
            means = [self._sent[point] for point in recorded.get(curve, ())]
            ends = dict.fromkeys(map(shown_count, (min(means), max(means)) if means else ()))
            ranges[curve] = "–".join(ends) or NOTHING
        return ranges

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.heads, *(("queries",) if self.tells_queries else ()))

    @property
    def heads(self) -> tuple[str, ...]:
        """The columns that say what was asked for."""
        return self._cells("mechanism", "release", "n")

    def of(self, setting: Setting) -> tuple[str, ...]:
        """The cells of a curve."""
        return self._with_queries(self.asked(setting), self._queries.get(setting.curve, NOTHING))

    def asked(self, setting: Setting) -> tuple[str, ...]:
        """The same below :attr:`heads` alone."""
        if setting.axis.is_set:
            return self._cells(setting.mechanism)
        return self._cells(setting.mechanism, setting.release, str(setting.n))

    def queries(self, setting: Setting) -> Cell:
        """How many queries one setting sends, the mean over queries."""
        if (mean := self._sent.get(setting)) is None:
            return None
        return int(mean) if mean.is_integer() else Number(mean)

    def labelled(self, mechanism: str) -> tuple[str, ...]:
        """The cells of the query itself: one is sent."""
        return self._with_queries(self._cells(mechanism), "1")

    def same_depth(self, setting: Setting) -> tuple[str, ...]:
        """The cells of the query itself, as deep as the pools of a curve."""
        mechanism, *others = self.asked(setting)
        return self._with_queries((f"{SAME_DEPTH} as {mechanism}", *others), "1")

    def blind(self, setting: Setting) -> tuple[str, ...]:
        """The cells of a blind guess at the sets of a curve."""
        mechanism, *others = self.of(setting)
        return (f"{mechanism}, a blind guess", *others)

    def rows(self, cells: Mapping[Setting, Cell]) -> Iterator[Row]:
        for curve, points in curves(cells).items():
            yield self.of(curve), {setting.point: cells[setting] for setting in points}

    def _cells(self, mechanism: str, release: str = "", n: str = "") -> tuple[str, ...]:
        release_cell = (release,) if self._tells_release else ()
        return (mechanism, *release_cell, *((n,) if self._tells_n else ()))

    def _with_queries(self, labels: tuple[str, ...], queries: str) -> tuple[str, ...]:
        return (*labels, queries) if self.tells_queries else labels


def _headings(points: Iterable[Point]) -> dict[Point, str]:
    """Headings by point, each parameter's smallest first; what has none comes last."""
    distinct = dict.fromkeys(points)
    parameters = list(dict.fromkeys(point.parameter for point in distinct))
    varied = [point for point in distinct if point.value is not None]
    varied.sort(key=lambda point: (parameters.index(point.parameter), point.value))
    names = symbols(varied)
    headings = {point: f"{names[point.parameter]} = {point.value:g}" for point in varied}
    nothing = f"no {SYMBOLS[EPSILON]}" if [*names] == [Parameter()] else "no parameter"
    return headings | ({Point(): nothing} if Point() in distinct else {})
