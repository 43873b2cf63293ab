"""The trades that no other setting beats: least risk for the utility, most utility for the risk."""

from __future__ import annotations

from collections.abc import Mapping

from sottovoce.experiments.report.naming import RowNames, last_part, slug
from sottovoce.experiments.report.places import Place, main_measure, sized
from sottovoce.experiments.report.risk_tables import strongest_numbers
from sottovoce.experiments.report.spread import BOOTSTRAP_SAID, SHARES_SAID, estimates
from sottovoce.experiments.report.table import Cell, Number, Table
from sottovoce.experiments.results import Results, Setting
from sottovoce.experiments.tables import NO_PRIVACY


def front(risk: Mapping[Setting, float], utility: Mapping[Setting, float]) -> list[Setting]:
    """The Pareto front, the least risk first: no other setting is at least as good in both.

    Of settings that are equal in both, all are on it or none.
    """
    order = sorted(
        (each for each in utility if each in risk), key=lambda each: (risk[each], -utility[each])
    )
    found: list[Setting] = []
    for each in order:
        last = found[-1] if found else None
        same = last is not None and (risk[each], utility[each]) == (risk[last], utility[last])
        if last is None or same or utility[each] > utility[last]:
            found.append(each)
    return found


def headline(results: Results, place: Place) -> Table | None:
    """The front of a place; None where there is no risk or no utility."""
    measure = main_measure(results, place)
    if measure is None:
        return None
    risk = strongest_numbers(results, place.collection)
    grid = results.grid(measure, **place._asdict())
    utility = estimates(grid, measure)
    chosen = front(
        {each: found.value for each, found in risk.items()},
        {each: found.value for each, found in utility.items()},
    )
    if not chosen:
        return None
    attacks = dict.fromkeys(risk[each].by for each in chosen)
    grids = [grid, *(results.grid(each, collection=place.collection) for each in attacks)]
    none = results.grid(measure, **place._asdict(), system=NO_PRIVACY)
    names = RowNames(utility)
    rows: list[tuple[Cell, ...]] = [
        (
            *names.of(each),
            "–" if each.epsilon is None else f"{each.epsilon:g}",
            risk[each],
            utility[each],
        )
        for each in chosen
    ]
    for itself in estimates(none, measure).values():
        rows.append((*names.labelled(NO_PRIVACY), "–", Number(1.0, by="the query is sent"), itself))
    return Table(
        name=slug("trades", *place),
        title=f"The best trades, {last_part(place.collection)}, {place.engine}, re-ranked by "
        f"{place.reranker}",
        caption=f"{len(chosen)} of {len(utility)} settings: no other one has both no more risk and "
        f"no less {measure}. Risk: the share of words that the strongest attack gets back. "
        f"{sized(*grids)}{names.shared}; {BOOTSTRAP_SAID}, lazy: {SHARES_SAID}.",
        columns=(*names.columns, "ε", "risk", measure),
        rows=tuple(rows),
        notes=(
            "Means decide who is here: with overlapping intervals another sample of queries may "
            "choose others.",
        ),
    )
