"""A table as data: what is in it, before anybody decides how it looks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

Key = TypeVar("Key")

BELOW, ABOVE, AS_BEST = "▼", "▲", "≈"
"""Marks: significantly below and above no privacy; not distinguishable from the best."""


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

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers."""
        return [
            any(isinstance(row[number], Number | int) for row in self.rows)
            for number in range(len(self.columns))
        ]


@dataclass(frozen=True)
class Section:
    """Tables that belong together."""

    title: str
    tables: tuple[Table, ...]


def shown(value: float) -> str:
    """A number to three digits, at most three of them behind the point; large ones in full."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    places = 3 if size < 1 else 2 if size < 10 else 1 if size < 100 else 0
    written = f"{value:,.{places}f}"
    return "0" if value == 0 else written.replace("-", "−")


def shown_p(p: float) -> str:
    """A p value; not below what the tests can resolve anyway."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def epsilon_columns(epsilons: Iterable[float | None]) -> dict[float | None, str]:
    """Headings by epsilon, the most private first; what has none comes last."""
    found = set(epsilons)
    numbers = sorted(each for each in found if each is not None)
    names: dict[float | None, str] = {each: f"ε = {each:g}" for each in numbers}
    return names | ({None: "no ε"} if None in found else {})


def by_epsilon(
    heads: Sequence[str],
    rows: Iterable[tuple[tuple[str, ...], Mapping[float | None, Cell]]],
) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:
    """Columns and rows of a table that has a column an epsilon behind its ``heads``."""
    found = list(rows)
    names = epsilon_columns(each for _, cells in found for each in cells)
    columns = (*heads, *names.values())
    return columns, tuple(
        (*labels, *(cells.get(epsilon) for epsilon in names)) for labels, cells in found
    )


def with_best(cells: Mapping[Key, Number]) -> dict[Key, Number]:
    """The same with the greatest value marked, and those that equal it."""
    most = max((each.value for each in cells.values()), default=math.nan)
    return {key: replace(each, best=each.value >= most - 1e-12) for key, each in cells.items()}
