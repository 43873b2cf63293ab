"""What is still found, which differences are more than chance, and how alike the texts are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from sottovoce.experiments.measures import POOL, Measure
from sottovoce.experiments.naming import counted, last_part, slug
from sottovoce.experiments.report.significance import Compare, Comparison, Comparisons
from sottovoce.experiments.report.table import (
    ABOVE,
    AS_BEST,
    BELOW,
    MEAN_INTERVALS,
    MOST_ROWS,
    Cell,
    Number,
    Row,
    RowNames,
    Table,
    numbers,
    place_name,
    point_column,
    setting_names,
    shown_p,
    sized,
    with_best,
)
from sottovoce.experiments.results import Grid, Place, Point, Results, Setting, curves
from sottovoce.experiments.tables import NO_PRIVACY, SAME_DEPTH
from sottovoce.statistics import ALPHA, EXACT_PAIRS, PERMUTATIONS, permutations_for

MARKS = (
    "Bold: the best of its column with that engine. "
    f"{AS_BEST}: not distinguishable from it. {BELOW} {ABOVE}: below, above no privacy, "
    "significantly (paired randomisation tests at 5 %, Holm's correction; see Significance)."
)
DEEPER = (
    "“Same depth” is the original query, with as many documents taken as the private search had in "
    "its pool, or all that the engine finds for it: what is gained over “no privacy” by depth "
    "alone."
)
EFFECT = "d is the mean difference in standard deviations of the differences over queries."
PAIRS = "every two rows of mechanism, release and n at the same epsilon, or k, …"
SIMILARITIES = {
    "jaccard": "Words in common over all words, as sets (Jaccard)",
    "semantic": "Cosine of the sentence vectors of variant and original",
    "bleu": "BLEU of variant and original",
    "meteor": "METEOR of variant and original",
}


# Pooled recall and what re-ranking makes of it, by epsilon: the shape of WBB Tables 2 and 3


def utility_tables(results: Results, collection: str, compared: Compare) -> Iterator[Table]:
    """A table for each measure and re-ranker, with all engines; the pool's only once."""
    of_collection = [place for place in results.places if place.collection == collection]
    for reranker in dict.fromkeys(place.reranker for place in of_collection):
        places = [place for place in of_collection if place.reranker == reranker]
        measures = dict.fromkeys(name for place in places for name in results.measures(place))
        # Pooled recall first, the size of the pool last.
        for measure in sorted(measures, key=lambda name: (name == POOL, not name.counts_pool)):
            if not measure.counts_pool or reranker == of_collection[0].reranker:
                yield _measure_table(results, measure, places, compared)


def _measure_table(
    results: Results, measure: Measure, places: Sequence[Place], compared: Compare
) -> Table:
    """One measure, its rows engine by engine."""
    collection, _, reranker = places[0]
    grids = [results.grid(measure, place) for place in places]
    settings = (setting for grid in grids for setting in grid.settings)
    names = RowNames(results, collection, settings)
    tested = measure != POOL
    rows: list[Row] = []
    for place in places:
        tests = compared(measure, place) if tested else None
        rows += _engine_rows(results, measure, place, names, tests)
    pool, label = measure.counts_pool, measure.label
    by = "" if pool else f", re-ranked by {reranker}"
    what = "Documents in the pool" if measure == POOL else f"Mean {label}"
    return Table.over_points(
        ("engine", *names.columns),
        rows,
        name=slug(label, collection, "" if pool else reranker),
        title=f"{label.capitalize() if pool else label}, {last_part(collection)}{by}",
        caption=f"{what}{by}. {sized(*grids)}{names.shared}; {MEAN_INTERVALS}.",
        notes=(*((MARKS,) if tested else ()), DEEPER),
    )


def _engine_rows(
    results: Results, measure: Measure, place: Place, names: RowNames, tests: Comparisons | None
) -> Iterator[Row]:
    """No privacy, each curve, and the original query as deep as each pool."""
    grid_of = partial(results.grid, measure, place)
    for baseline in numbers(grid_of(system=NO_PRIVACY), measure).values():
        yield (place.engine, *names.labelled(NO_PRIVACY)), {Point(): baseline}
    marked = _marked(numbers(grid_of(), measure), tests)
    for curve, points in curves(grid_of().settings).items():
        cells = {setting.point: marked.get(setting) for setting in points}
        yield (place.engine, *names.of(curve)), cells
    deeper = numbers(grid_of(system=SAME_DEPTH), measure)
    for curve, points in curves(deeper).items():
        by_point = {setting.point: deeper[setting] for setting in points}
        yield (place.engine, *names.same_depth(curve)), by_point


def _marked(means: dict[Setting, Number], tests: Comparisons | None) -> dict[Setting, Number]:
    """The best at each epsilon, what cannot be told from it, and what differs from no privacy."""
    if tests is None:
        return means
    marked: dict[Setting, Number] = {}
    for point in dict.fromkeys(setting.point for setting in means):
        column = with_best(
            {setting: mean for setting, mean in means.items() if setting.point == point}
        )
        best = [setting for setting, cell in column.items() if cell.best]
        for setting, cell in column.items():
            marks = ""
            if not cell.best and not all(tests.distinguishable(setting, other) for other in best):
                marks += AS_BEST
            against = tests.against_none.get(setting)
            if against is not None and against.significant:
                marks += BELOW if against.difference < 0 else ABOVE
            marked[setting] = replace(cell, marks=marks)
    return marked


# Which differences of the main measure are more than chance


def significance_tables(results: Results, place: Place, compared: Compare) -> Iterator[Table]:
    """Against no privacy; who beats whom at how many epsilons; all pairs; pairs of equal cost."""
    measure = results.main_measure(place)
    if measure is None:
        return
    grid = results.grid(measure, place)
    tests = compared(measure, place)
    names = RowNames(results, place.collection, grid.settings)
    if tests.against_none:
        yield _against_none(tests, grid, names, measure, place)
    if tests.between:
        yield _wins(tests, grid, names, measure, place)
        yield _pairs(tests, grid, names, measure, place)
    if tests.at_equal_queries:
        yield _equal_queries(tests, grid, names, measure, place)


def _test_notes(grid: Grid, tests: int, family: str) -> tuple[str, ...]:
    """How it was tested, what the family is, and what it cannot show."""
    queries = len(grid.queries)
    exact = queries <= EXACT_PAIRS
    exchanges = 2**queries if exact else permutations_for(tests)
    least = min(1.0, tests * (2 / exchanges if exact else 1 / (exchanges + 1)))
    how = f"all {exchanges:,} exchanges" if exact else f"{PERMUTATIONS:,} random exchanges (seed 0)"
    if not exact and exchanges > PERMUTATIONS:
        how += f", {exchanges:,} where hardly any came as far"
    note = (
        f"Paired over queries: Fisher's randomisation test, two-sided, {how}. "
        f"The family: {family}, {counted(tests, 'test')}; p after Holm's correction, significant "
        f"at {ALPHA:g}. {EFFECT}"
    )
    if least <= ALPHA:
        return (note,)
    return (
        note,
        f"With {counted(queries, 'query', 'queries')} and {counted(tests, 'test')} no difference, "
        f"however large, can be significant: the least possible p is {shown_p(least)}.",
    )


def _against_none(
    tests: Comparisons, grid: Grid, names: RowNames, measure: Measure, place: Place
) -> Table:
    differences = {setting: _difference(tests.against_none[setting]) for setting in grid.settings}
    return Table.over_points(
        names.columns,
        names.rows(differences),
        name=slug("against-no-privacy", *place),
        title=f"{measure.label} against no privacy, {place_name(place)}",
        caption=f"Mean difference to the original query, d and adjusted p. "
        f"{sized(grid)}{names.shared}.",
        notes=_test_notes(
            grid, len(tests.against_none), "every setting of this table against no privacy"
        ),
    )


def _difference(test: Comparison) -> Number:
    return Number(test.difference, by=f"d {_effect(test.effect)}, p {shown_p(test.adjusted)}")


def _effect(effect: float) -> str:
    return f"{effect:+.2f}".replace("-", "−").replace("inf", "∞")


def _wins(tests: Comparisons, grid: Grid, names: RowNames, measure: Measure, place: Place) -> Table:
    """At how many of their common settings the row is significantly better than the column."""
    wins: Counter[tuple[Setting, Setting]] = Counter()
    common: Counter[tuple[Setting, Setting]] = Counter()
    for (one, other), test in tests.between.items():
        pair, reverse = (one.curve, other.curve), (other.curve, one.curve)
        common.update((pair, reverse))
        if test.significant:
            wins[pair if test.difference > 0 else reverse] += 1
    order = list(curves(grid.settings))
    rows: list[tuple[Cell, ...]] = []
    for one in order:
        pairs = [(one, other) for other in order]
        won = (f"{wins[pair]}/{common[pair]}" if common[pair] else None for pair in pairs)
        rows.append((*names.of(one), *won))
    return Table(
        name=slug("better", *place),
        title=f"Who is significantly better, {measure.label}, {place_name(place)}",
        caption="At how many of their common settings the mechanism of the row is significantly "
        f"better than that of the column. {sized(grid)}{names.shared}.",
        columns=(*names.columns, *(_told(names, curve) for curve in order)),
        rows=tuple(rows),
        notes=_test_notes(grid, len(tests.between), PAIRS),
    )


def _told(names: RowNames, curve: Setting) -> str:
    """A curve in one cell."""
    return ", ".join(filter(None, names.asked(curve)))


def _pairs(
    tests: Comparisons, grid: Grid, names: RowNames, measure: Measure, place: Place
) -> Table:
    by_increasing_epsilon = sorted(
        tests.between.items(), key=lambda pair_and_test: pair_and_test[0][0].epsilon or 0.0
    )
    head, values = point_column([one.point for (one, _), _ in by_increasing_epsilon])
    rows: list[tuple[Cell, ...]] = [
        (
            value,
            _told(names, one),
            _told(names, other),
            Number(test.difference),
            _effect(test.effect),
            shown_p(test.p),
            shown_p(test.adjusted),
        )
        for ((one, other), test), value in zip(by_increasing_epsilon, values, strict=True)
    ]
    return Table(
        name=slug("pairs", *place),
        title=f"All pairs, {measure.label}, {place_name(place)}",
        caption=f"Mean difference of the first less the second. {sized(grid)}{names.shared}.",
        columns=(head, "first", "second", "difference", "d", "p", "adjusted p"),
        rows=tuple(rows),
        notes=_test_notes(grid, len(tests.between), PAIRS),
        folded=len(rows) > MOST_ROWS,
    )


def _equal_queries(
    tests: Comparisons, grid: Grid, names: RowNames, measure: Measure, place: Place
) -> Table:
    told = {
        setting: ", ".join(filter(None, (name, *names.asked(setting)[1:])))
        for setting, name in setting_names(grid.settings).items()
    }
    rows: list[tuple[Cell, ...]] = [
        (
            told[one],
            names.queries(one),
            told[other],
            names.queries(other),
            Number(test.difference),
            _effect(test.effect),
            shown_p(test.p),
            shown_p(test.adjusted),
        )
        for (one, other), test in tests.at_equal_queries.items()
    ]
    return Table(
        name=slug("equal-queries", *place),
        title=f"At equal numbers of queries, {measure.label}, {place_name(place)}",
        caption="Sets against mechanisms of words that send as many queries, to the nearest whole "
        f"one: mean difference of the set less the other. {sized(grid)}{names.shared}.",
        columns=("set", "queries", "other", "its queries", "difference", "d", "p", "adjusted p"),
        rows=tuple(rows),
        notes=(
            "What costs as much need not hide as much: the risks stand in the best trades.",
            *_test_notes(grid, len(tests.at_equal_queries), "every row of this table"),
        ),
        folded=len(rows) > MOST_ROWS,
    )


# How alike variants and originals are: the shape of WBB Table 1, DP-COMET Table 2


def similarity_tables(results: Results, collection: str) -> Iterator[Table]:
    """A table for each measure of similarity."""
    for measure in results.measures(Place(collection), "similarity"):
        grid = results.grid(measure, Place(collection))
        names = RowNames(results, collection, grid.settings)
        means = numbers(grid, measure)
        cells = {setting: means.get(setting) for setting in grid.settings}
        yield Table.over_points(
            names.columns,
            names.rows(cells),
            name=slug("similarity", measure.label, collection),
            title=f"Similarity: {measure.label}, {last_part(collection)}",
            caption=f"{SIMILARITIES[measure.detail]}; mean over variants, then queries. "
            f"{sized(grid)}{names.shared}; {MEAN_INTERVALS}.",
            notes=("High means that the text is still there; low alone does not mean safe.",),
        )
