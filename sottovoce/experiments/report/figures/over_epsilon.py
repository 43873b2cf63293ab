"""Lines over epsilon: what all figures of that kind share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from sottovoce.experiments.report.figures.cast import Cast
from sottovoce.experiments.report.figures.points import Line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TICKS = 0.075
"""Labels of the axis keep this share of its length between them."""

WIDE = 60
"""Epsilons that differ by a larger factor are drawn on a log scale."""


def draw_lines(
    plot: Axes,
    found: Sequence[Line],
    cast: Cast,
    *,
    title: str,
    y: str,
    levels: Mapping[str, float | None] | None = None,
    top: float | None = 1.0,
) -> None:
    """A line with its band for each curve; level ones without an epsilon, and for ``levels``."""
    from sottovoce.plotting import MUTED, lines

    curves, bands, looks = {}, {}, {}
    for line in found:
        if line.epsilons is not None:
            name = cast.name(line.curve)
            curves[name] = line.epsilons, line.means
            bands[name], looks[name] = (line.low, line.high), cast.look(line.curve)
    lines(
        plot,
        curves,
        bands=bands,
        looks=looks,
        title=title,
        x="epsilon",
        y=y,
        legend=False,
    )
    epsilon_axis(plot, (each for at, _ in curves.values() for each in at.tolist()))
    for line in found:
        if line.epsilons is None:
            look = cast.look(line.curve) | {"linestyle": "-.", "markevery": [0, 1]}
            plot.axhline(line.means[0], **look, label=f"{cast.name(line.curve)} (no epsilon)")
    for (name, value), dashes in zip((levels or {}).items(), ("--", ":"), strict=False):
        if value is not None:
            plot.axhline(value, color=MUTED, linestyle=dashes, linewidth=1.2, label=name, zorder=1)
    if top is not None:
        plot.set_ylim(-0.02 * top, 1.02 * top)


def epsilon_axis(plot: Axes, epsilons: Iterable[float]) -> None:
    """The epsilons that were run, as many as have room; a log scale where they are wide."""
    at = sorted(set(epsilons))
    if not at:
        return
    wide = at[0] > 0 and at[-1] / at[0] > WIDE
    place = np.log(at) if wide else np.array(at)
    length = max(place[-1] - place[0], 1e-9)
    if wide:
        plot.set_xscale("log")
    plot.minorticks_off()
    # The ends first, then what fits between them.
    chosen = [0, len(at) - 1] if len(at) > 1 else [0]
    for number in range(1, len(at) - 1):
        if all(abs(place[number] - place[other]) > TICKS * length for other in chosen):
            chosen.append(number)
    plot.set_xticks([at[number] for number in chosen], [f"{at[number]:g}" for number in chosen])
    plot.set_xticks(at, [""] * len(at), minor=True)


def log_axis(plot: Axes, side: Literal["x", "y"], values: ArrayLike) -> None:
    """A log scale with a label for each power of ten, or more of them over a short range."""
    low, high = np.min(values), np.max(values)
    steps = (1, 2, 5) if high / low < 50 else (1,)
    powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    at = [step * power for power in powers for step in steps]
    getattr(plot, f"set_{side}scale")("log")
    plot.minorticks_off()
    ends = getattr(plot, f"get_{side}lim")()
    shown = [each for each in at if ends[0] <= each <= ends[1]]
    names = [f"{each:g}" if each < 1000 else f"{each / 1000:g}k" for each in shown]
    getattr(plot, f"set_{side}ticks")(shown, names)
