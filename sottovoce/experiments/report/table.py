"""A table as data: what is in it, before anybody decides how it looks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from sottovoce.experiments.estimates import estimates
from sottovoce.experiments.measures import Measure
from sottovoce.experiments.naming import counted, last_part
from sottovoce.experiments.results import Grid, Place, Setting, curves

Key = TypeVar("Key")

BELOW, ABOVE, AS_BEST = "▼", "▲", "≈"
"""Marks: significantly below and above no privacy; not distinguishable from the best."""
SHARE_INTERVALS = "95 % Clopper–Pearson intervals"
MEAN_INTERVALS = "95 % bootstrap intervals over queries"
NO_EPSILON = "–"


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
Row: TypeAlias = tuple[tuple[str, ...], Mapping[float | None, Cell]]
"""Labels of a row, and its cells by epsilon."""


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
    def over_epsilon(
        cls,
        heads: Sequence[str],
        rows: Iterable[Row],
        *,
        name: str,
        title: str,
        caption: str,
        notes: tuple[str, ...] = (),
    ) -> Table:
        """A table with a column an epsilon behind its ``heads``."""
        rows = list(rows)
        headings = _epsilon_headings(epsilon for _, cells in rows for epsilon in cells)
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


def shown_epsilon(epsilon: float | None) -> str:
    """An epsilon in a column of them."""
    return NO_EPSILON if epsilon is None else f"{epsilon:g}"


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
    """The mean of each setting over its queries, with an interval."""
    return {setting: Number(*mean) for setting, mean in estimates(grid, measure).items()}


def with_best(cells: Mapping[Key, Number]) -> dict[Key, Number]:
    """The same with the greatest value marked, and those that equal it."""
    most = max((cell.value for cell in cells.values()), default=math.nan)
    return {key: replace(cell, best=cell.value >= most - 1e-12) for key, cell in cells.items()}


class RowNames:
    """What tells the settings of a table apart, epsilon aside; what they share is said once."""

    def __init__(self, settings: Iterable[Setting]) -> None:
        both = [(setting.release, setting.n) for setting in settings]
        releases, counts = {release for release, _ in both}, {n for _, n in both}
        self._tells_release, self._tells_n = len(releases) > 1, len(counts) > 1
        parts = [f"release {releases.pop()}"] if len(releases) == 1 else []
        parts += [f"{counted(counts.pop(), 'variant')} of each query"] if len(counts) == 1 else []
        self.shared = "; " + ", ".join(parts) if parts else ""
        """To be put behind a caption's numbers."""

    @property
    def columns(self) -> tuple[str, ...]:
        return self.labelled("mechanism", "release", "n")

    def of(self, setting: Setting) -> tuple[str, ...]:
        return self.labelled(setting.mechanism, setting.release, str(setting.n))

    def labelled(self, mechanism: str, release: str = "", n: str = "") -> tuple[str, ...]:
        """The cells of a row that is no setting."""
        release_cell = (release,) if self._tells_release else ()
        return (mechanism, *release_cell, *((n,) if self._tells_n else ()))

    def rows(self, cells: Mapping[Setting, Cell]) -> Iterable[Row]:
        for curve, points in curves(cells).items():
            yield self.of(curve), {setting.epsilon: cells[setting] for setting in points}


def _epsilon_headings(epsilons: Iterable[float | None]) -> dict[float | None, str]:
    """Headings by epsilon, the most private first; what has none comes last."""
    distinct = set(epsilons)
    increasing = sorted(epsilon for epsilon in distinct if epsilon is not None)
    headings: dict[float | None, str] = {epsilon: f"ε = {epsilon:g}" for epsilon in increasing}
    return headings | ({None: "no ε"} if None in distinct else {})
