"""What attackers get back, by epsilon: the strongest attack first, then each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sottovoce.experiments.report.naming import RowNames, last_part, slug
from sottovoce.experiments.report.places import sized
from sottovoce.experiments.report.spread import (
    BOOTSTRAP_SAID,
    SHARES_SAID,
    estimates,
    interval_said,
)
from sottovoce.experiments.report.strongest import measures_like, strongest
from sottovoce.experiments.report.table import Cell, Number, Table, by_epsilon
from sottovoce.experiments.results import Results, Setting, curves

ATTACKERS = {
    "lazy": "lazy: first guess",
    "active": "active: first ten",
    "motivated": "motivated: 1 / rank",
}
NO_PROOF = "These are the attacks that were run: a better one may get more."


def risk_tables(results: Results, collection: str) -> Iterator[Table]:
    """The strongest attack; query inference by encoder; words and queries recovered by attack."""
    yield from _strongest(results, collection)
    inference = measures_like(results, collection, *(f"{each}[" for each in ATTACKERS))
    for encoder in dict.fromkeys(inside(each) for each in inference):
        chosen = {f"{each}[{encoder}]": said for each, said in ATTACKERS.items()}
        yield _listed(
            results,
            collection,
            [each for each in inference if each in chosen],
            chosen,
            name=slug("query-inference", encoder, collection),
            title=f"Query inference with the encoder {encoder}, {last_part(collection)}",
            caption="The attacker ranks a query log, which holds the original too, by its likeness "
            "to the variants: how often the original is first or among the first ten, and the mean "
            "of one over its rank",
            heads=("attacker",),
            intervals=f"{SHARES_SAID} (motivated: {BOOTSTRAP_SAID})",
        )
    for kind, what in (("words", "words"), ("query", "whole queries")):
        recovered = measures_like(results, collection, f"{kind}[")
        if recovered:
            yield _listed(
                results,
                collection,
                recovered,
                {each: inside(each) for each in recovered},
                name=slug("recovered", kind, collection),
                title=f"{what.capitalize()} recovered, {last_part(collection)}",
                caption=f"Share of the {what} that attacks on the mechanism get back",
                heads=("attack",),
                intervals=interval_said(recovered[0]),
            )


def inside(measure: str) -> str:
    """What the brackets of a measure hold: an encoder or an attack."""
    found = re.search(r"\[(.*)\]$", measure)
    return found.group(1) if found else ""


def strongest_numbers(results: Results, collection: str) -> dict[Setting, Number]:
    """The strongest attack on each setting, with the interval of its measure, and its name."""
    chosen = strongest(results, collection)
    all_of = {
        attack: estimates(results.grid(attack, collection=collection), attack)
        for attack in dict.fromkeys(each.attack for each in chosen.values())
    }
    return {
        setting: replace(all_of[found.attack][setting], by=found.attack)
        for setting, found in chosen.items()
    }


def _strongest(results: Results, collection: str) -> Iterator[Table]:
    found = strongest_numbers(results, collection)
    if not found:
        return
    names = RowNames(found)
    columns, rows = by_epsilon(
        names.columns,
        (
            (names.of(curve), {each.epsilon: found[each] for each in points})
            for curve, points in curves(found).items()
        ),
    )
    grids = [
        results.grid(attack, collection=collection)
        for attack in dict.fromkeys(each.by for each in found.values())
    ]
    yield Table(
        name=slug("strongest-attack", collection),
        title=f"The strongest attack, {last_part(collection)}",
        caption="Share of the words that the strongest attack gets back, and which it is: a query "
        "that query inference names at the first guess counts as all its words. "
        f"{sized(*grids)}{names.shared}; words: {BOOTSTRAP_SAID}, lazy: {SHARES_SAID}.",
        columns=columns,
        rows=rows,
        notes=(
            NO_PROOF,
            "The strongest is chosen by the same means that are shown, which errs on the side of "
            "the attacker.",
        ),
    )


def _listed(
    results: Results,
    collection: str,
    measures: Sequence[str],
    labels: dict[str, str],
    *,
    name: str,
    title: str,
    caption: str,
    heads: tuple[str, ...],
    intervals: str,
) -> Table:
    """Rows of several measures together, mechanism by mechanism."""
    grids = {each: results.grid(each, collection=collection) for each in measures}
    found = {each: estimates(grid, each) for each, grid in grids.items()}
    settings = list(dict.fromkeys(setting for grid in grids.values() for setting in grid.settings))
    names = RowNames(settings)

    def rows() -> Iterator[tuple[tuple[str, ...], dict[float | None, Cell]]]:
        for curve, points in curves(settings).items():
            for measure in measures:
                cells: dict[float | None, Cell] = {
                    each.epsilon: found[measure][each] for each in points if each in found[measure]
                }
                if cells:
                    yield (*names.of(curve), labels[measure]), cells

    columns, cells = by_epsilon((*names.columns, *heads), rows())
    return Table(
        name=name,
        title=title,
        caption=f"{caption}. {sized(*grids.values())}{names.shared}; {intervals}.",
        columns=columns,
        rows=cells,
        notes=(NO_PROOF,),
    )
