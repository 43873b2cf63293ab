"""A figure with what is said of it, and the sheets that figures are drawn on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Value = TypeVar("Value")


@dataclass(frozen=True)
class Figured:
    """A figure. ``name`` is the stem of its files, ``alt`` says it to those who cannot see it."""

    name: str
    title: str
    caption: str
    figure: Figure
    alt: str


def sheet(
    count: int,
    *,
    columns: int = 3,
    width: float = 4.0,
    height: float = 3.2,
    polar: bool = False,
) -> tuple[Figure, list[Axes]]:
    """A figure of so many plots, and no empty ones."""
    from sottovoce.plotting import new_figure

    columns = min(columns, count)
    rows = -(-count // columns)
    figure, plots = new_figure(rows, columns, width=width, height=height, polar=polar)
    for plot in plots[count:]:
        plot.remove()
    return figure, plots[:count]


def spread(values: Sequence[Value], most: int) -> list[Value]:
    """At most so many of the values: the first, the last, and some evenly between."""
    if len(values) <= most:
        return list(values)
    return [values[round(at * (len(values) - 1) / (most - 1))] for at in range(most)]
