"""Pictures of measurements: a few kinds of plot in one style, written whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from sottovoce.errors import SottovoceError, UsageError
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
    rows: int = 1,
    columns: int = 1,
    *,
    width: float = 6.0,
    height: float = 4.0,
    polar: bool = False,
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
            _settle(figure)
            figure.savefig(part, format=kind, dpi=150, metadata=metadata)
    except OSError as error:
        raise SottovoceError(f"the figure cannot be written ({type(error).__name__})") from None
    return path


def _settle(figure: Figure) -> None:
    """Find every part its place, once for all files that the figure is saved in."""
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.execute(figure)
        figure.set_layout_engine("none")


def label(plot: Axes, *, title: str = "", x: str = "", y: str = "", legend: bool = False) -> None:
    """Title, names of the axes, and a legend if wanted."""
    plot.set_title(plain(title), fontsize=10)
    plot.set_xlabel(x)
    plot.set_ylabel(y)
    if legend:
        plot.legend(frameon=False, fontsize=8)


def legend_below(figure: Figure, plots: Sequence[Axes]) -> None:
    """One legend under all plots, for what any of them shows; the figure grows to hold it."""
    named: dict[str, Any] = {}
    for plot in plots:
        handles, names = plot.get_legend_handles_labels()
        named = dict(zip(names, handles, strict=True)) | named
    if not named:
        return
    # About 14 letters of this size fit an inch, and the line before a name takes 6 of them.
    fitting = int(figure.get_figwidth() * 14 // (max(map(len, named)) + 6))
    columns = max(1, min(fitting, len(named)))
    figure.set_figheight(figure.get_figheight() + 0.17 * -(-len(named) // columns))
    figure.legend(
        named.values(),
        named.keys(),
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize=8,
    )


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
    import numpy as np

    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in samples.items()}
    arrays = {name: values[np.isfinite(values)] for name, values in arrays.items()}
    everything = np.concatenate([np.empty(0), *(values.ravel() for values in arrays.values())])
    edges = np.histogram_bin_edges(everything, bins=bins)
    for number, (name, values) in enumerate(arrays.items()):
        counts, _ = np.histogram(values, bins=edges)
        colour = COLOURS[number % len(COLOURS)]
        shares = counts / max(values.size, 1)
        plot.stairs(shares, edges, color=colour, label=plain(name), linewidth=1.4)
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
    log_y: bool = False,
    legend: bool = True,
) -> None:
    """One line with markers for each name: (x, y); ``bands`` are (lower, upper) around it.

    ``looks`` are how the names are drawn, by default as :func:`look` draws their numbers.
    """
    import numpy as np

    alpha = 0.15 if len(curves) <= MOST_IN_A_PLOT else 0.08
    for number, (name, (at, values)) in enumerate(curves.items()):
        at, values = np.asarray(at, dtype=np.float64), np.asarray(values, dtype=np.float64)
        drawn = look(number) if looks is None else looks[name]
        plot.plot(at, values, **drawn, label=plain(name))
        if bands and name in bands:
            lower, upper = (np.asarray(end, dtype=np.float64) for end in bands[name])
            plot.fill_between(at, lower, upper, color=drawn["color"], alpha=alpha, linewidth=0)
    if log_x:
        plot.set_xscale("log")
    if log_y:
        plot.set_yscale("log")
    label(plot, title=title, x=x, y=y, legend=legend and len(curves) > 1)


def plane(
    plot: Axes,
    paths: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    looks: Mapping[str, Mapping[str, Any]] | None = None,
    ends: Mapping[str, tuple[str, str]] | None = None,
    title: str = "",
    x: str = "risk",
    y: str = "utility",
    legend: bool = True,
) -> None:
    """Paths of (risk, utility) in the unit square, an arrow on each segment; good is up and left.

    On the dotted diagonal the attacker gains as much as the person does. ``ends`` are written
    beside the first and the last point of a path, where there is room.
    """
    import numpy as np

    plot.plot([0, 1], [0, 1], color=MUTED, linestyle=":", linewidth=1)
    taken: list[Any] = []
    for number, (name, (risk, utility)) in enumerate(paths.items()):
        drawn = look(number) if looks is None else looks[name]
        points = np.column_stack([np.asarray(risk, dtype=float), np.asarray(utility, dtype=float)])
        plot.plot(points[:, 0], points[:, 1], **drawn, label=plain(name))
        for start, end in pairwise(points):
            middle = (start + end) / 2
            if np.hypot(*(end - start)) > SHORTEST_ARROW:
                plot.annotate(
                    "",
                    xy=tuple(middle + (end - start) * 1e-3),
                    xytext=tuple(middle),
                    arrowprops={"arrowstyle": "->", "color": drawn["color"]},
                )
        for point, text in zip(points[[0, -1]], (ends or {}).get(name, ()), strict=False):
            if all((np.abs(point - other) > (0.09, 0.06)).any() for other in taken):
                beside(plot, text, point, color=drawn["color"])
                taken.append(point)
    plot.set_xlim(-0.02, 1.02)
    plot.set_ylim(-0.02, 1.02)
    plot.set_aspect("equal")
    label(plot, title=title, x=x, y=y, legend=legend and bool(paths))


def beside(plot: Axes, text: str, point: Any, **style: Any) -> None:
    """A few letters to the right of a point, over all lines."""
    plot.annotate(
        plain(text),
        xy=tuple(point),
        xytext=(4, 3),
        textcoords="offset points",
        fontsize=7,
        zorder=5,
        **style,
    )


def look(number: int) -> dict[str, Any]:
    """How the curve of this number is drawn; no two of the first forty are drawn alike."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": DASHES[number // len(COLOURS) % len(DASHES)],
        "markersize": 4,
        "linewidth": 1.2,
    }


def plain(name: str) -> str:
    """The name as it is: matplotlib takes $ for a formula, and hides what starts with _."""
    name = name.replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise SottovoceError("figures need matplotlib: pip install 'sottovoce[lab]'") from None
    return matplotlib
