"""Kinds of plot for more than two axes: heat maps, radars, points by distance and angle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from sottovoce.privacy.figures import MUTED, label, look, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def heat_map(
    plot: Axes,
    values: ArrayLike,
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    low: float,
    high: float,
    title: str = "",
    x: str = "",
    y: str = "",
) -> None:
    """A shaded cell for each value, which stands in it; what is not a number stays empty.

    ``low`` and ``high`` are the ends of the shades, so that several maps can share them.
    """
    import numpy as np
    from matplotlib import colormaps
    from matplotlib.colors import Normalize

    shown = np.ma.masked_invalid(np.asarray(values, dtype=np.float64))
    shades = Normalize(low, max(high, low + 1e-9))
    plot.pcolormesh(shown, cmap="cividis", norm=shades, edgecolors="white", linewidth=1)
    for (row, column), value in np.ndenumerate(shown.filled(np.nan)):
        if np.isnan(value):
            continue
        light = np.dot(colormaps["cividis"](shades(value))[:3], (0.299, 0.587, 0.114)) > 0.5
        plot.text(
            column + 0.5,
            row + 0.5,
            f"{value:.2f}",
            ha="center",
            va="center",
            color="black" if light else "white",
            fontsize=8,
        )
    plot.set_xticks(np.arange(len(columns)) + 0.5, columns)
    plot.set_yticks(np.arange(len(rows)) + 0.5, rows)
    plot.invert_yaxis()
    plot.grid(visible=False)
    plot.tick_params(length=0)
    plot.spines[:].set_visible(False)
    label(plot, title=title, x=x, y=y)


def radar(
    plot: Any,
    axes: Sequence[str],
    shapes: Mapping[str, ArrayLike],
    *,
    looks: Mapping[str, Mapping[str, Any]] | None = None,
    title: str = "",
) -> None:
    """A closed shape for each name, with a value in [0, 1] on each axis; on a polar plot."""
    import numpy as np

    at = np.linspace(0, 2 * np.pi, len(axes), endpoint=False)
    for number, (name, values) in enumerate(shapes.items()):
        drawn = look(number) if looks is None else looks[name]
        values = np.asarray(values, dtype=np.float64)
        plot.plot(np.append(at, 0), np.append(values, values[:1]), **drawn, label=plain(name))
        plot.fill(at, values, color=drawn["color"], alpha=0.06, linewidth=0)
    plot.set_theta_zero_location("N")
    plot.set_xticks(at, [""] * len(axes))
    for angle, name in zip(at, axes, strict=True):
        side = "center" if abs(np.sin(angle)) < 0.1 else "right" if np.sin(angle) > 0 else "left"
        height = "bottom" if np.cos(angle) > 0.1 else "top"
        plot.text(angle, 1.08, plain(name), ha=side, va=height, fontsize=8)
    plot.set_rlim(0, 1)
    plot.set_yticks([0.25, 0.5, 0.75, 1], ["", ".5", "", "1"], fontsize=7, color=MUTED)
    plot.set_rlabel_position(60)
    plot.spines["polar"].set_color("#dddddd")
    plot.set_title(plain(title), fontsize=10, pad=18)


def polar_scatter(
    plot: Axes,
    groups: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    looks: Mapping[str, Mapping[str, Any]] | None = None,
    title: str = "",
    x: str = "",
) -> None:
    """Points by (distance, angle in degrees up to 180) from the origin, over arcs and rays."""
    import numpy as np

    where = {
        name: (np.asarray(far, dtype=np.float64), np.radians(np.asarray(angle, dtype=np.float64)))
        for name, (far, angle) in groups.items()
    }
    farthest = max((float(far.max()) for far, _ in where.values() if far.size), default=1.0)
    widest = max((float(angle.max()) for _, angle in where.values() if angle.size), default=0.0)
    sector = np.radians(np.clip(np.ceil(np.degrees(widest) / 30) * 30, 30, 180))
    _sector(plot, farthest, sector)
    for number, (name, (far, angle)) in enumerate(where.items()):
        drawn = dict(look(number) if looks is None else looks[name]) | {"linestyle": "none"}
        plot.plot(far * np.cos(angle), far * np.sin(angle), **drawn, label=plain(name))
    plot.set_aspect("equal")
    label(plot, title=title, x=x)


def _sector(plot: Axes, farthest: float, sector: float) -> None:
    """Arcs at round distances and rays every 30 degrees, in place of the usual axes."""
    import numpy as np
    from matplotlib.ticker import MaxNLocator

    arcs = np.asarray(MaxNLocator(5).tick_values(0, farthest))
    arcs = arcs[(arcs > 0) & (arcs <= farthest * 1.25)]
    turn = np.linspace(0, sector, 91)
    for far in arcs:
        plot.plot(far * np.cos(turn), far * np.sin(turn), color="#dddddd", linewidth=0.8, zorder=0)
    for ray in np.arange(0, np.degrees(sector) + 1, 30):
        across, up = np.cos(np.radians(ray)), np.sin(np.radians(ray))
        ends = [0, arcs[-1] * across], [0, arcs[-1] * up]
        plot.plot(*ends, color="#dddddd", linewidth=0.8, zorder=0)
        plot.annotate(
            f"{ray:g}°",
            (ends[0][1], ends[1][1]),
            (7 * across, 7 * up),
            textcoords="offset points",
            ha="center" if abs(across) < 0.5 else "left" if across > 0 else "right",
            va="center" if up < 0.5 else "bottom",
            fontsize=8,
            color=MUTED,
        )
    plot.set_xticks([0, *arcs], [f"{far:g}" for far in (0, *arcs)])
    plot.set_yticks([])
    plot.grid(visible=False)
    plot.spines[:].set_visible(False)
    plot.margins(0.02)
