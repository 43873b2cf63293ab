"""Risk-utility planes: figure 4 of the QuIPU paper, by attacker, and for the strongest attack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sottovoce.experiments.report.figures.cast import Cast
from sottovoce.experiments.report.figures.figured import Figured, sheet
from sottovoce.experiments.report.figures.points import (
    baseline,
    means,
    searched,
    utility_measures,
)
from sottovoce.experiments.report.naming import counted, last_part, slug
from sottovoce.experiments.report.places import Place
from sottovoce.experiments.report.strongest import Strongest, measures_like, strongest
from sottovoce.experiments.results import Results, Setting, curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ATTACKERS = {
    "lazy": "found at the first guess",
    "active": "found within ten guesses",
    "motivated": "mean reciprocal rank",
}

READING = (
    "Each path goes from the smallest epsilon to the largest, written at its ends; up and left is "
    "good. On the dotted diagonal the attacker gains as much as the person; the dashed line is the "
    "utility of the query itself."
)


def plane_figures(results: Results, cast: Cast) -> Iterator[Figured]:
    """For each engine and re-ranker of a collection: attackers by encoder; then the strongest."""
    for where in searched(results):
        for measure in utility_measures(results, where.collection)[:1]:
            risks = {
                (attacker, encoder): means(results, f"{attacker}[{encoder}]", collection=where[0])
                for encoder in _encoders(results, where.collection)
                for attacker in ATTACKERS
            }
            if risks:
                yield _attackers(results, cast, where, measure, risks)
            attacks = strongest(results, where.collection)
            if attacks:
                yield _strongest(results, cast, where, measure, attacks)


def _attackers(
    results: Results,
    cast: Cast,
    where: Place,
    measure: str,
    risks: Mapping[tuple[str, str], Mapping[Setting, float]],
) -> Figured:
    from sottovoce.plotting import legend_below

    figure, plots = sheet(len(risks), columns=3, width=3.4, height=3.5)
    words = []
    for plot, ((attacker, encoder), risk) in zip(plots, risks.items(), strict=True):
        title = f"{attacker}, {encoder} encoder"
        plot.set_xlabel(f"risk: {ATTACKERS[attacker]}")
        words.append(f"{title}: {_draw(plot, results, cast, where, measure, risk)}")
        plot.set_title(title, fontsize=10)
    legend_below(figure, plots)
    return Figured(
        name=slug("plane", *where),
        title=f"Risk and utility: {_said(where)}",
        caption=f"The risk that the query is found in a log, by attacker, against {measure}: means "
        f"over {_queries(results, measure, where)}. {READING}" + cast.left_out,
        figure=figure,
        alt=f"Paths of risk and {measure}. " + ". ".join(words) + ".",
    )


def _strongest(
    results: Results,
    cast: Cast,
    where: Place,
    measure: str,
    attacks: Mapping[Setting, Strongest],
) -> Figured:
    from sottovoce.plotting import legend_below

    figure, plots = sheet(1, width=5.4, height=5.0)
    plots[0].set_xlabel("risk: words that the strongest attack brings back")
    risk = {setting: attack.mean for setting, attack in attacks.items()}
    words = _draw(plots[0], results, cast, where, measure, risk)
    legend_below(figure, plots)
    return Figured(
        name=slug("plane-strongest", *where),
        title=f"Strongest attack and utility: {_said(where)}",
        caption="The share of the words that the strongest attack on each setting brings back "
        f"({', '.join(dict.fromkeys(each.attack for each in attacks.values()))}), against "
        f"{measure}: means over {_queries(results, measure, where)}{_attacked(attacks)}. {READING}"
        + cast.left_out,
        figure=figure,
        alt=f"Paths of words brought back and {measure}. {words}.",
    )


def _draw(
    plot: Axes,
    results: Results,
    cast: Cast,
    where: Place,
    measure: str,
    risk: Mapping[Setting, float],
) -> str:
    """Draw the paths of all settings that have both; say in words where each ends."""
    from sottovoce.plotting import MUTED, plane

    utility = means(results, measure, **where._asdict())
    paths, looks, ends = {}, {}, {}
    for curve, settings in curves(each for each in utility if each in risk).items():
        if curve.mechanism in cast.aside:
            continue
        name = cast.name(curve)
        paths[name] = ([risk[each] for each in settings], [utility[each] for each in settings])
        looks[name] = cast.look(curve)
        if settings[0].epsilon is not None:
            ends[name] = (f"{settings[0].epsilon:g}", f"{settings[-1].epsilon:g}")
    best = baseline(results, measure, where)
    if best is not None:
        plot.axhline(best, color=MUTED, linestyle="--", linewidth=1.2, label="no privacy")
    x = plot.get_xlabel()
    plane(plot, paths, looks=looks, ends=ends, x=x, y=measure, legend=False)
    return "; ".join(
        f"{name} ends at risk {risks[-1]:.2f}, {measure} {utilities[-1]:.2f}"
        for name, (risks, utilities) in paths.items()
    )


def _encoders(results: Results, collection: str) -> list[str]:
    """The encoders of query inference."""
    found = measures_like(results, collection, "motivated[")
    return [each.removeprefix("motivated[").removesuffix("]") for each in found]


def _said(where: Place) -> str:
    return f"{last_part(where.collection)}, {where.engine}, re-ranked by {where.reranker}"


def _queries(results: Results, measure: str, where: Place) -> str:
    return counted(len(results.grid(measure, **where._asdict()).queries), "query", "queries")


def _attacked(attacks: Mapping[Setting, Strongest]) -> str:
    """Of how many queries the risks are, as far as attacks differ in that."""
    counts = sorted({len(each.queries) for each in attacks.values()})
    if len(counts) == 1:
        return f", risks over {counts[0]}"
    return f", risks over {counts[0]} to {counts[-1]}, by attack"
