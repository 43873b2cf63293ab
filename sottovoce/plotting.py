"""Figures of measurements: the kinds of plot there are, in one style, without pyplot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from sottovoce.errors import SottovoceError, UsageError, need
from sottovoce.files import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENDINGS = (".png", ".svg")

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Okabe and Ito's colours, which people with any colour vision can tell apart."""

MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES = ("-", "--", ":")
MUTED = "#666666"
"""What is compared with: baselines, the diagonal, unrelated words."""

LETTER_WIDTH, LINE_HEIGHT = 0.024, 0.06
"""Of what is written beside points of a plane, as shares of its sides."""

SHORTEST_ARROW = 0.06
"""Shorter segments of a path show no direction."""

MOST_IN_A_PLOT = 6
"""Names in a legend inside a plot; more of them would cover the curves."""

_STYLE: dict[str, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "font.size": 9,
    "legend.frameon": False,
    "svg.hashsalt": "sottovoce",
    # Text stays text: smaller files that can be searched, and any sans-serif font will do.
    "svg.fonttype": "none",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
}
_OVER_LINES = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.5}
_LEGEND: dict[str, Any] = {"frameon": False, "fontsize": 8}


def check_figure_path(path: Path | str) -> Path:
    """The path, if a figure can be written there: ask before the long work, not after it."""
    path = Path(path)
    if path.suffix.lower() not in ENDINGS:
        raise UsageError("a figure is a .png or an .svg file: end its name in one of these")
    if not path.parent.is_dir():
        raise UsageError("the folder for the figure does not exist: make it first")
    if path.is_dir():
        raise UsageError("the figure's path is a folder: give the name of a file")
    _matplotlib()
    return path


def new_figure(
    rows: int = 1, columns: int = 1, *, width: float = 6.0, height: float = 4.0, polar: bool = False
) -> tuple[Figure, list[Axes]]:
    """A figure of rows × columns plots, each of this size in inches; the plots row by row.

    It lives apart from pyplot: no window, no global state.
    """
    matplotlib = _matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
        FigureCanvasAgg(figure)
        kind = {"projection": "polar"} if polar else None
        plots = figure.subplots(rows, columns, squeeze=False, subplot_kw=kind)
    return figure, list(plots.flat)


def save_figure(figure: Figure, path: Path | str) -> Path:
    """Write a .png or .svg file: beside its place first, so that no half of it is ever there."""
    path = check_figure_path(path)
    kind = path.suffix.lower()[1:]
    # No date and no version: the same numbers give the same file.
    metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    try:
        with whole_file(path) as part, _matplotlib().rc_context(_STYLE):
            if (layout := figure.get_layout_engine()) is not None:
                # Find every part its place, once for all files that the figure is saved in.
                layout.execute(figure)
                figure.set_layout_engine("none")
            figure.savefig(part, format=kind, dpi=150, metadata=metadata)
    except OSError as error:
        raise SottovoceError(f"the figure cannot be written ({type(error).__name__})") from None
    return path


def label(plot: Axes, *, title: str = "", x: str = "", y: str = "", legend: bool = False) -> None:
    """Title, names of the axes, and a legend if wanted."""
    plot.set_title(literal(title), fontsize=10)
    plot.set_xlabel(x)
    plot.set_ylabel(y)
    if legend:
        plot.legend(**_LEGEND)


def legend_below(figure: Figure, plots: Sequence[Axes]) -> None:
    """One legend under all plots, for what any of them shows; the figure grows to hold it."""
    named: dict[str, Any] = {}
    for plot in plots:
        for handle, name in zip(*plot.get_legend_handles_labels(), strict=True):
            named.setdefault(name, handle)
    if not named:
        return
    # About 14 letters of this size fit an inch, and the line before a name takes 6 of them.
    fitting = int(figure.get_figwidth() * 14 // (max(map(len, named)) + 6))
    columns = max(1, min(fitting, len(named)))
    figure.set_figheight(figure.get_figheight() + 0.17 * -(-len(named) // columns))
    style = {"ncols": columns, **_LEGEND}
    figure.legend(named.values(), named.keys(), loc="outside lower center", **style)


def histogram(
    plot: Axes,
    samples: Mapping[str, ArrayLike],
    *,
    bins: int | Sequence[float] = 30,
    title: str = "",
    x: str = "",
    y: str = "share",
) -> None:
    """Outlines of one or more samples over the same bins, each as shares that sum to 1."""
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in samples.items()}
    arrays = {name: values[np.isfinite(values)] for name, values in arrays.items()}
    everything = np.concatenate([np.empty(0), *(values.ravel() for values in arrays.values())])
    edges = np.histogram_bin_edges(everything, bins=bins)
    for number, (name, values) in enumerate(arrays.items()):
        counts, _ = np.histogram(values, bins=edges)
        colour = COLOURS[number % len(COLOURS)]
        shares = counts / max(values.size, 1)
        plot.stairs(shares, edges, color=colour, label=literal(name), linewidth=1.4)
        plot.stairs(shares, edges, color=colour, fill=True, alpha=0.15)
    label(plot, title=title, x=x, y=y, legend=len(arrays) > 1)


def lines(
    plot: Axes,
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    bands: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    looks: Mapping[str, Mapping[str, Any]] | None = None,
    title: str = "",
    x: str = "",
    y: str = "",
    log_x: bool = False,
    legend: bool = True,
) -> None:
    """One line with markers for each name: (x, y); ``bands`` are (lower, upper) around it.

    ``looks`` are how the names are drawn, by default as :func:`look` draws their numbers.
    """
    alpha = 0.15 if len(curves) <= MOST_IN_A_PLOT else 0.08
    for number, (name, (at, values)) in enumerate(curves.items()):
        at, values = np.asarray(at, dtype=np.float64), np.asarray(values, dtype=np.float64)
        drawn = look(number) if looks is None else looks[name]
        plot.plot(at, values, **drawn, label=literal(name))
        if bands and name in bands:
            lower, upper = (np.asarray(end, dtype=np.float64) for end in bands[name])
            plot.fill_between(at, lower, upper, color=drawn["color"], alpha=alpha, linewidth=0)
    if log_x:
        plot.set_xscale("log")
    label(plot, title=title, x=x, y=y, legend=legend and len(curves) > 1)


def plane(
    plot: Axes,
    paths: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    looks: Mapping[str, Mapping[str, Any]] | None = None,
    ends: Mapping[str, tuple[str, str]] | None = None,
    x: str = "risk",
    y: str = "utility",
    legend: bool = True,
) -> None:
    """Paths of (risk, utility) in the unit square, an arrow on each segment; good is up and left.

    On the dotted diagonal the attacker gains as much as the person does. ``ends`` are written
    beside the first and the last point of a path, where there is room.
    """
    plot.plot([0, 1], [0, 1], color=MUTED, linestyle=":", linewidth=1)
    taken: list[tuple[Any, str]] = []
    for number, (name, (risk, utility)) in enumerate(paths.items()):
        drawn = look(number) if looks is None else looks[name]
        points = np.column_stack([np.asarray(risk, dtype=float), np.asarray(utility, dtype=float)])
        plot.plot(points[:, 0], points[:, 1], **drawn, label=literal(name))
        arrow = {"arrowstyle": "->", "color": drawn["color"]}
        for start, end in pairwise(points):
            if np.hypot(*(end - start)) > SHORTEST_ARROW:
                middle = (start + end) / 2
                tip = middle + (end - start) * 1e-3
                plot.annotate("", xy=tuple(tip), xytext=tuple(middle), arrowprops=arrow)
        for point, text in zip(points[[0, -1]], (ends or {}).get(name, ()), strict=False):
            if all(_apart(point, text, *other) for other in taken):
                beside(plot, text, point, color=drawn["color"], bbox=_OVER_LINES)
                taken.append((point, text))
    plot.set_xlim(-0.02, 1.02)
    plot.set_ylim(-0.02, 1.02)
    plot.set_aspect("equal")
    label(plot, x=x, y=y, legend=legend and bool(paths))


def _apart(one: Any, text: str, other: Any, other_text: str) -> bool:
    """Whether texts to the right of two points do not touch."""
    across, up = other - one
    left_text = text if across > 0 else other_text
    return bool(abs(across) > LETTER_WIDTH * (len(left_text) + 1) or abs(up) > LINE_HEIGHT)


def beside(plot: Axes, text: str, point: Any, **style: Any) -> None:
    """A few letters to the right of a point, over all lines."""
    style |= {"xytext": (4, 3), "textcoords": "offset points", "fontsize": 7, "zorder": 5}
    plot.annotate(literal(text), xy=tuple(point), **style)


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
    from matplotlib import colormaps
    from matplotlib.colors import Normalize

    shown = np.ma.masked_invalid(np.asarray(values, dtype=np.float64))
    shades = Normalize(low, max(high, low + 1e-9))
    plot.pcolormesh(shown, cmap="cividis", norm=shades, edgecolors="white", linewidth=1)
    in_the_middle: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8}
    for (row, column), value in np.ndenumerate(shown.filled(np.nan)):
        if np.isnan(value):
            continue
        light = np.dot(colormaps["cividis"](shades(value))[:3], (0.299, 0.587, 0.114)) > 0.5
        colour = "black" if light else "white"
        plot.text(column + 0.5, row + 0.5, f"{value:.2f}", color=colour, **in_the_middle)
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
    at = np.linspace(0, 2 * np.pi, len(axes), endpoint=False)
    for number, (name, values) in enumerate(shapes.items()):
        drawn = look(number) if looks is None else looks[name]
        values = np.asarray(values, dtype=np.float64)
        plot.plot(np.append(at, 0), np.append(values, values[:1]), **drawn, label=literal(name))
        plot.fill(at, values, color=drawn["color"], alpha=0.06, linewidth=0)
    plot.set_theta_zero_location("N")
    plot.set_xticks(at, [""] * len(axes))
    for angle, name in zip(at, axes, strict=True):
        side = "center" if abs(np.sin(angle)) < 0.1 else "right" if np.sin(angle) > 0 else "left"
        height = "bottom" if np.cos(angle) > 0.1 else "top"
        plot.text(angle, 1.08, literal(name), ha=side, va=height, fontsize=8)
    plot.set_rlim(0, 1)
    plot.set_yticks([0.25, 0.5, 0.75, 1], ["", ".5", "", "1"], fontsize=7, color=MUTED)
    plot.set_rlabel_position(60)
    plot.spines["polar"].set_color("#dddddd")
    # At a height of its own: one that matplotlib moves is cut off at the top.
    plot.set_title(literal(title), fontsize=10, y=1.16)


def polar_scatter(
    plot: Axes,
    groups: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    looks: Mapping[str, Mapping[str, Any]] | None = None,
    x: str = "",
) -> None:
    """Points by (distance, angle in degrees up to 180) from the origin, over arcs and rays."""
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
        plot.plot(far * np.cos(angle), far * np.sin(angle), **drawn, label=literal(name))
    plot.set_aspect("equal")
    label(plot, x=x)


def _sector(plot: Axes, farthest: float, sector: float) -> None:
    """Arcs at round distances and rays every 30 degrees, in place of the usual axes."""
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


def look(number: int) -> dict[str, Any]:
    """How the curve of this number is drawn; no two of the first forty are drawn alike."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": DASHES[number // len(COLOURS) % len(DASHES)],
        "markersize": 4,
        "linewidth": 1.2,
    }


def literal(name: str) -> str:
    """The name as it is: matplotlib takes $ for a formula, and hides what starts with _."""
    name = name.replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name


def _matplotlib() -> Any:
    return need("matplotlib", "lab", "figures need matplotlib")
