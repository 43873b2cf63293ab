"""Pooled recall and what re-ranking makes of it, by epsilon: the shape of WBB Tables 2 and 3."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from sottovoce.experiments.report.naming import RowNames, last_part, slug
from sottovoce.experiments.report.places import (
    POOL,
    Place,
    counts_pool,
    measures,
    places,
    sized,
)
from sottovoce.experiments.report.significance import Compare, Comparisons
from sottovoce.experiments.report.spread import BOOTSTRAP_SAID, estimates
from sottovoce.experiments.report.table import (
    ABOVE,
    AS_BEST,
    BELOW,
    Cell,
    Number,
    Table,
    by_epsilon,
    with_best,
)
from sottovoce.experiments.results import Grid, Results, Setting, curves
from sottovoce.experiments.tables import NO_PRIVACY, SAME_DEPTH

Rows = list[tuple[tuple[str, ...], dict[float | None, Cell]]]

MARKS = (
    "Bold: the best at that epsilon with that engine. "
    f"{AS_BEST}: not distinguishable from it. {BELOW} {ABOVE}: below, above no privacy, "
    "significantly (paired randomisation tests at 5 %, Holm's correction; see Significance)."
)
DEEPER = (
    "“Same depth” is the original query, with as many documents taken as the private search had in "
    "its pool, or all that the engine finds for it: what is gained over “no privacy” by depth "
    "alone."
)


def utility_tables(results: Results, collection: str, compared: Compare) -> Iterator[Table]:
    """A table for each measure and re-ranker, with all engines; the pool's only once."""
    here = [each for each in places(results) if each.collection == collection]
    for reranker in dict.fromkeys(each.reranker for each in here):
        chosen = [each for each in here if each.reranker == reranker]
        found = dict.fromkeys(name for place in chosen for name in measures(results, place))
        for measure in sorted(found, key=lambda each: (each == POOL, not counts_pool(each))):
            if not counts_pool(measure) or reranker == here[0].reranker:
                yield _table(results, measure, chosen, compared)


def _table(results: Results, measure: str, chosen: Sequence[Place], compared: Compare) -> Table:
    """One measure, its rows engine by engine."""
    collection, _, reranker = chosen[0]
    grids = [results.grid(measure, **each._asdict()) for each in chosen]
    names = RowNames(setting for grid in grids for setting in grid.settings)
    tested = measure != POOL
    rows: Rows = []
    for place, grid in zip(chosen, grids, strict=True):
        tests = compared(measure, place) if tested else None
        rows += _engine(results, measure, place, grid, names, tests)
    columns, cells = by_epsilon(("engine", *names.columns), rows)
    kept = "" if counts_pool(measure) else f", re-ranked by {reranker}"
    said = "Documents in the pool" if measure == POOL else f"Mean {measure}"
    return Table(
        name=slug(measure, collection, "" if counts_pool(measure) else reranker),
        title=f"{measure.capitalize() if counts_pool(measure) else measure}, "
        f"{last_part(collection)}{kept}",
        caption=f"{said}{kept}. {sized(*grids)}{names.shared}; {BOOTSTRAP_SAID}.",
        columns=columns,
        rows=cells,
        notes=(*((MARKS,) if tested else ()), DEEPER),
    )


def _engine(
    results: Results,
    measure: str,
    place: Place,
    grid: Grid,
    names: RowNames,
    tests: Comparisons | None,
) -> Rows:
    """No privacy, each curve, and the original query as deep as each pool."""
    grid_of = partial(results.grid, measure, **place._asdict())
    rows: Rows = []
    for found in estimates(grid_of(system=NO_PRIVACY), measure).values():
        rows.append(((place.engine, *names.labelled(NO_PRIVACY)), {None: found}))
    marked = _marked(estimates(grid, measure), tests)
    for curve, points in curves(grid.settings).items():
        cells: dict[float | None, Cell] = {each.epsilon: marked.get(each) for each in points}
        rows.append(((place.engine, *names.of(curve)), cells))
    deeper = grid_of(system=SAME_DEPTH)
    values = estimates(deeper, measure)
    for curve, points in curves(deeper.settings).items():
        label = names.of(curve._replace(mechanism=f"{SAME_DEPTH} as {curve.mechanism}"))
        rows.append(((place.engine, *label), {each.epsilon: values[each] for each in points}))
    return rows


def _marked(found: dict[Setting, Number], tests: Comparisons | None) -> dict[Setting, Number]:
    """The best at each epsilon, what cannot be told from it, and what differs from no privacy."""
    if tests is None:
        return found
    marked: dict[Setting, Number] = {}
    for epsilon in dict.fromkeys(each.epsilon for each in found):
        column = with_best({each: found[each] for each in found if each.epsilon == epsilon})
        best = [setting for setting, cell in column.items() if cell.best]
        for setting, cell in column.items():
            marks = ""
            if not cell.best and not all(tests.distinguishable(setting, each) for each in best):
                marks += AS_BEST
            against = tests.against_none.get(setting)
            if against is not None and against.significant:
                marks += BELOW if against.difference < 0 else ABOVE
            marked[setting] = replace(cell, marks=marks)
    return marked
