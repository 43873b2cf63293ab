"""Which differences of the main measure are more than chance."""

from __future__ import annotations

from collections.abc import Iterator

from sottovoce.experiments.report.naming import RowNames, counted, last_part, slug
from sottovoce.experiments.report.places import Place, main_measure, sized
from sottovoce.experiments.report.significance import Compare, Comparison, Comparisons
from sottovoce.experiments.report.table import Cell, Number, Table, by_epsilon, shown_p
from sottovoce.experiments.results import Grid, Results, Setting, curves
from sottovoce.statistics import ALPHA, EXACT_PAIRS, PERMUTATIONS, permutations_for

LONG = 30
"""More rows than these are folded."""
EFFECT = "d is the mean difference in standard deviations of the differences over queries."


def significance_tables(results: Results, place: Place, compared: Compare) -> Iterator[Table]:
    """Against no privacy; who beats whom at how many epsilons; and all pairs."""
    measure = main_measure(results, place)
    if measure is None:
        return
    grid = results.grid(measure, **place._asdict())
    tests = compared(measure, place)
    where = f"{last_part(place.collection)}, {place.engine}, re-ranked by {place.reranker}"
    if tests.against_none:
        yield _against_none(tests, grid, measure, where, place)
    if tests.between:
        yield _matrix(tests, grid, measure, where, place)
        yield _pairs(tests, grid, measure, where, place)


def _how(grid: Grid, tests: int, family: str) -> tuple[str, ...]:
    """How it was tested, what the family is, and what it cannot show."""
    queries = len(grid.queries)
    exact = queries <= EXACT_PAIRS
    falls = 2**queries if exact else permutations_for(tests)
    least = min(1.0, tests * (2 / falls if exact else 1 / (falls + 1)))
    how = f"all {falls:,} exchanges" if exact else f"{PERMUTATIONS:,} random exchanges (seed 0)"
    if not exact and falls > PERMUTATIONS:
        how += f", {falls:,} where hardly any came as far"
    said = (
        f"Paired over queries: Fisher's randomisation test, two-sided, {how}. "
        f"The family: {family}, {counted(tests, 'test')}; p after Holm's correction, significant "
        f"at {ALPHA:g}. {EFFECT}"
    )
    if least <= ALPHA:
        return (said,)
    return (
        said,
        f"With {counted(queries, 'query', 'queries')} and {counted(tests, 'test')} no difference, "
        f"however large, can be significant: the least possible p is {shown_p(least)}.",
    )


def _against_none(tests: Comparisons, grid: Grid, measure: str, where: str, place: Place) -> Table:
    names = RowNames(grid.settings)
    columns, rows = by_epsilon(
        names.columns,
        (
            (
                names.of(curve),
                {each.epsilon: _difference(tests.against_none[each]) for each in points},
            )
            for curve, points in curves(grid.settings).items()
        ),
    )
    return Table(
        name=slug("against-no-privacy", *place),
        title=f"{measure} against no privacy, {where}",
        caption=f"Mean difference to the original query, d and adjusted p. "
        f"{sized(grid)}{names.shared}.",
        columns=columns,
        rows=rows,
        notes=_how(grid, len(tests.against_none), "every setting of this table against no privacy"),
    )


def _difference(found: Comparison) -> Number:
    return Number(found.difference, by=f"d {_effect(found.effect)}, p {shown_p(found.adjusted)}")


def _effect(effect: float) -> str:
    return f"{effect:+.2f}".replace("-", "−").replace("inf", "∞")


def _matrix(tests: Comparisons, grid: Grid, measure: str, where: str, place: Place) -> Table:
    """At how many of their common epsilons the row is significantly better than the column."""
    wins: dict[tuple[Setting, Setting], int] = {}
    common: dict[tuple[Setting, Setting], int] = {}
    for (one, other), found in tests.between.items():
        better = (one, other) if found.difference > 0 else (other, one)
        for pair in ((one.curve, other.curve), (other.curve, one.curve)):
            common[pair] = common.get(pair, 0) + 1
        if found.significant:
            pair = better[0].curve, better[1].curve
            wins[pair] = wins.get(pair, 0) + 1
    names = RowNames(grid.settings)
    order = list(curves(grid.settings))
    rows: list[tuple[Cell, ...]] = [
        (
            *names.of(one),
            *(
                f"{wins.get((one, other), 0)}/{common[one, other]}"
                if (one, other) in common
                else None
                for other in order
            ),
        )
        for one in order
    ]
    return Table(
        name=slug("better", *place),
        title=f"Who is significantly better, {measure}, {where}",
        caption="At how many of their common epsilons the mechanism of the row is significantly "
        f"better than that of the column. {sized(grid)}{names.shared}.",
        columns=(*names.columns, *(", ".join(names.of(each)) for each in order)),
        rows=tuple(rows),
        notes=_how(grid, len(tests.between), PAIRS),
    )


PAIRS = "every two rows of mechanism, release and n at the same epsilon"


def _pairs(tests: Comparisons, grid: Grid, measure: str, where: str, place: Place) -> Table:
    names = RowNames(grid.settings)
    rows: list[tuple[Cell, ...]] = [
        (
            "–" if one.epsilon is None else f"{one.epsilon:g}",
            ", ".join(names.of(one)),
            ", ".join(names.of(other)),
            Number(found.difference),
            _effect(found.effect),
            shown_p(found.p),
            shown_p(found.adjusted),
        )
        for (one, other), found in sorted(
            tests.between.items(), key=lambda each: each[0][0].epsilon or 0.0
        )
    ]
    return Table(
        name=slug("pairs", *place),
        title=f"All pairs, {measure}, {where}",
        caption=f"Mean difference of the first less the second. {sized(grid)}{names.shared}.",
        columns=("ε", "first", "second", "difference", "d", "p", "adjusted p"),
        rows=tuple(rows),
        notes=_how(grid, len(tests.between), PAIRS),
        folded=len(rows) > LONG,
    )
