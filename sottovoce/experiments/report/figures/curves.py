"""What figures share: how each mechanism is called and drawn, curves over epsilon, sheets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from sottovoce.errors import SottovoceError
from sottovoce.experiments.estimates import estimates
from sottovoce.experiments.measures import MAIN_MEASURE, POOL, Measure
from sottovoce.experiments.results import (
    Parameter,
    Place,
    Results,
    Setting,
    curves,
    parameter_names,
)
from sottovoce.experiments.tables import NO_PRIVACY, PRIVATE
from sottovoce.plotting import DASHES, MUTED, lines, look, new_figure
from sottovoce.types import Float64Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Value = TypeVar("Value")

MOST_BOXES = 3
"""More settings of k and n than these are told apart by heat maps, not by lines."""
MOST_SIZES = 8
"""From this mechanism on all lines are equally thin."""
TICK_GAP = 0.075
"""Labels of the axis keep this share of its length between them."""
WIDE = 60
"""Epsilons that differ by a larger factor are drawn on a log scale."""


@dataclass(frozen=True)
class ReportFigure:
    """A figure. ``name`` is the stem of its files, ``alt`` says it to those who cannot see it."""

    name: str
    title: str
    caption: str
    figure: Figure
    alt: str


# Names and looks of mechanisms


class Box(NamedTuple):
    """A safe box of ``k`` words, a candidate box of ``n``, and the rest of WBB's settings."""

    k: int
    n: int
    measure: str
    rest: tuple[tuple[str, str], ...]


def box_of(results: Results, mechanism: str) -> Box | None:
    """The boxes of a mechanism, by the spec that its name stands for; None if it has none."""
    from sottovoce.mechanisms import parse

    systems = results.manifest.get("experiment", {}).get("systems", ())
    specs = {system["label"]: system["spec"] for system in systems}
    try:
        kind, given = parse(specs.get(mechanism, mechanism))
    except SottovoceError:
        return None
    if kind.name != "wbb" or results.axis(mechanism).parameter != Parameter():
        return None
    values: dict[str, Any] = {field.name: field.default for field in kind.parameters()} | given
    values.pop("epsilon", None)
    k, n, measure = (values.pop(name) for name in ("k", "n", "measure"))
    return Box(k, n, measure, tuple((name, str(value)) for name, value in values.items()))


@dataclass(frozen=True)
class Legend:
    """The mechanisms of a report: one name, colour and marker each, in all of its figures.

    ``ways`` are pairs of release and n, which sets have not; ``aside`` are mechanisms that only
    heat maps show; ``parameters`` are what curves run over.
    """

    mechanisms: tuple[str, ...]
    ways: tuple[tuple[str, int], ...]
    aside: frozenset[str] = frozenset()
    parameters: tuple[Parameter, ...] = ()

    @classmethod
    def of(cls, results: Results) -> Legend:
        """All that the tables name, in order of appearance; those that stand aside come last."""
        aside = _aside(results)
        columns = ("mechanism", "release", "n")
        ways = results.queries.group_by(list(columns), use_threads=False).aggregate([])
        rows = zip(*(ways[column].to_pylist() for column in columns), strict=True)
        drawn = [
            (release, n)
            for mechanism, release, n in rows
            if release and not results.axis(mechanism).is_set
        ]
        mechanisms = tuple(sorted(results.mechanisms, key=lambda name: name in aside))
        parameters = tuple(results.axis(mechanism).parameter for mechanism in mechanisms)
        return cls(mechanisms, tuple(dict.fromkeys(drawn)), aside, parameters)

    def parameter(self, parameter: Parameter) -> str:
        """How it is called in all figures."""
        return parameter_names([*self.parameters, parameter])[parameter]

    def joined(self, parameters: Iterable[Parameter]) -> str:
        """Parameters in a title, each once."""
        *others, last = map(self.parameter, dict.fromkeys(parameters))
        return f"{', '.join(others)} and {last}" if others else last

    def name(self, curve: Setting) -> str:
        """The mechanism, with its release and n where these differ in the report."""
        parts = [curve.mechanism]
        if (curve.release, curve.n) in self.ways:
            if len({release for release, _ in self.ways}) > 1:
                parts.append(curve.release)
            if len({n for _, n in self.ways}) > 1:
                parts.append(f"n={curve.n}")
        return ", ".join(parts)

    def look(self, curve: Setting) -> dict[str, Any]:
        """Colour and marker of the mechanism, dashes of its release and n.

        All ways but the first have hollow markers; a curve without a way is drawn as the first.
        """
        way = (curve.release, curve.n)
        number = self.ways.index(way) if way in self.ways else 0
        of_way = {"linestyle": DASHES[number % 3], "markerfacecolor": "white"} if number else {}
        return self.plain_look(curve.mechanism) | of_way

    def plain_look(self, mechanism: str) -> dict[str, Any]:
        """Colour and marker of the mechanism where releases play no part.

        Later ones, which are drawn over earlier ones, are smaller, so that all can be seen.
        """
        number = self.mechanisms.index(mechanism)
        over = min(1.0, number / MOST_SIZES)
        return look(number) | {"markersize": 6 - 2.5 * over, "linewidth": 2 - over}

    @property
    def left_out(self) -> str:
        """A sentence for captions on the mechanisms that stand aside."""
        count = len(self.aside)
        return (
            f" {count} more settings of k and n are left to heat maps and tables." if count else ""
        )


def _aside(results: Results) -> frozenset[str]:
    """All but the first of many mechanisms that differ in their boxes alone."""
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name in results.mechanisms:
        if (box := box_of(results, name)) is not None:
            alike.setdefault(box.rest, []).append(name)
    many = (names for names in alike.values() if len(names) > MOST_BOXES)
    return frozenset(name for names in many for name in names[1:])


# What there is to draw: means by curve and epsilon


@dataclass(frozen=True)
class Line:
    """A curve's means over queries, the most private first. ``epsilons`` is None without any."""

    curve: Setting
    epsilons: Float64Array | None
    means: Float64Array
    low: Float64Array
    high: Float64Array

    @classmethod
    def of(
        cls, curve: Setting, points: Sequence[tuple[float | None, float, tuple[float, float]]]
    ) -> Line:
        """A line through points: epsilon, mean, interval."""
        epsilons = [epsilon for epsilon, _, _ in points]
        return cls(
            curve,
            None if None in epsilons else np.array(epsilons, dtype=np.float64),
            np.array([mean for _, mean, _ in points]),
            np.array([low for _, _, (low, _) in points]),
            np.array([high for _, _, (_, high) in points]),
        )


def searched(results: Results) -> list[Place]:
    """Everything that was searched with variants."""
    return [place for place in results.places if results.measures(place)]


def utility_measures(results: Results, collection: str) -> list[Measure]:
    """The measures of answers in a collection, the one that planes show first."""
    measures = dict.fromkeys(
        group.measure
        for group in results.groups
        if group.place.collection == collection and group.place.engine and group.system == PRIVATE
    )
    measures.pop(POOL, None)
    return sorted(measures, key=lambda measure: measure != MAIN_MEASURE)


def baseline(results: Results, measure: Measure, place: Place) -> float | None:
    """The mean of the original queries, where they were searched."""
    return next(iter(results.means(measure, place, NO_PRIVACY).values()), None)


def lines_of(results: Results, legend: Legend, measure: Measure, place: Place) -> list[Line]:
    """The curves of a measure that lines show, with 95 % intervals over queries."""
    by_setting = estimates(results.grid(measure, place), measure)
    return [
        Line.of(curve, [(setting.epsilon, *by_setting[setting]) for setting in settings])
        for curve, settings in curves(by_setting).items()
        if curve.mechanism not in legend.aside
    ]


def by_parameter(lines: Sequence[Line]) -> dict[Parameter, list[Line]]:
    """Lines by what they run over: each has an axis of its own. Level ones are in all of them."""
    run_over = [line.curve.axis.parameter for line in lines if line.epsilons is not None]
    return {
        parameter: [
            line
            for line in lines
            if line.epsilons is None or line.curve.axis.parameter == parameter
        ]
        for parameter in dict.fromkeys(run_over)
    }


def directions(settings: Iterable[Setting], legend: Legend) -> str:
    """From where to where curves go, for each parameter: the most private end comes first."""
    axes = dict.fromkeys(
        (setting.axis.parameter, setting.axis.larger_hides)
        for setting in settings
        if setting.epsilon is not None
    )
    return "; ".join(
        f"from the largest {legend.parameter(parameter)} to the smallest"
        if larger_hides
        else f"from the smallest {legend.parameter(parameter)} to the largest"
        for parameter, larger_hides in axes
    )


def in_words(lines: Iterable[Line], legend: Legend) -> str:
    """The lines in words, for those who cannot see them."""
    return "; ".join(
        f"{legend.name(line.curve)} {line.means[0]:.2f}"
        if line.epsilons is None or len(line.means) == 1
        else f"{legend.name(line.curve)} from {line.means[0]:.2f} at "
        f"{legend.parameter(line.curve.axis.parameter)} {line.epsilons[0]:g} "
        f"to {line.means[-1]:.2f} at {line.epsilons[-1]:g}"
        for line in lines
    )


def spread(values: Sequence[Value], most: int) -> list[Value]:
    """At most so many of the values: the first, the last, and some evenly between."""
    if len(values) <= most:
        return list(values)
    return [values[round(at * (len(values) - 1) / (most - 1))] for at in range(most)]


# Drawing


def sheet(
    count: int, *, columns: int = 3, width: float = 4.0, height: float = 3.2, polar: bool = False
) -> tuple[Figure, list[Axes]]:
    """A figure of so many plots, and no empty ones."""
    columns = min(columns, count)
    rows = -(-count // columns)
    figure, plots = new_figure(rows, columns, width=width, height=height, polar=polar)
    for plot in plots[count:]:
        plot.remove()
    return figure, plots[:count]


def draw_lines(
    plot: Axes,
    all_lines: Sequence[Line],
    legend: Legend,
    *,
    title: str,
    y: str,
    levels: Mapping[str, float | None] | None = None,
    top: float | None = 1.0,
) -> None:
    """A line with its band for each curve; level ones without an epsilon, and for ``levels``.

    All lines that are not level run over the same parameter.
    """
    x = legend.joined(by_parameter(all_lines) or [Parameter()])
    points, bands, looks = {}, {}, {}
    for line in all_lines:
        if line.epsilons is not None:
            name = legend.name(line.curve)
            points[name] = line.epsilons, line.means
            bands[name], looks[name] = (line.low, line.high), legend.look(line.curve)
    lines(plot, points, bands=bands, looks=looks, title=title, x=x, y=y, legend=False)
    epsilon_axis(plot, (epsilon for at, _ in points.values() for epsilon in at.tolist()))
    for line in all_lines:
        if line.epsilons is None:
            dashed = legend.look(line.curve) | {"linestyle": "-.", "markevery": [0, 1]}
            plot.axhline(line.means[0], **dashed, label=f"{legend.name(line.curve)} (no epsilon)")
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
    labelled = [0, len(at) - 1] if len(at) > 1 else [0]
    for number in range(1, len(at) - 1):
        if all(abs(place[number] - place[other]) > TICK_GAP * length for other in labelled):
            labelled.append(number)
    plot.set_xticks([at[number] for number in labelled], [f"{at[number]:g}" for number in labelled])
    plot.set_xticks(at, [""] * len(at), minor=True)


def log_axis(plot: Axes, side: Literal["x", "y"], values: ArrayLike) -> None:
    """A log scale with a label for each power of ten, or more of them over a short range."""
    low, high = np.min(values), np.max(values)
    steps = (1, 2, 5) if high / low < 50 else (1,)
    powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    getattr(plot, f"set_{side}scale")("log")
    plot.minorticks_off()
    first, last = getattr(plot, f"get_{side}lim")()
    ticks = [step * power for power in powers for step in steps if first <= step * power <= last]
    names = [f"{tick:g}" if tick < 1000 else f"{tick / 1000:g}k" for tick in ticks]
    getattr(plot, f"set_{side}ticks")(ticks, names)
