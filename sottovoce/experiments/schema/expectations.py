"""What a file expects of its experiment: figures of a paper, and their order.

``[[expected]]`` gives a figure (``value``), or one an epsilon (``values`` and ``epsilons``);
``[[expected_order]]`` gives an order. Whether the plan measures it at all is found out before
anything runs.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from sottovoce.errors import SottovoceError, UsageError, closest
from sottovoce.evaluation.downstream.ranking import MEASURES as RANKING
from sottovoce.experiments.measures import (
    ANGLE,
    DENIABILITY,
    DISTANCE,
    INFERENCE,
    POOL,
    RECOVERY,
    RELATIVES,
    STRONGEST,
    Measure,
    NeighbourDistance,
    RelativesOf,
)
from sottovoce.experiments.naming import (
    collection_name,
    encoder_name,
    task_name,
    without_path,
)
from sottovoce.experiments.schema.experiment import (
    ExpectationTables,
    Expected,
    ExpectedOrder,
    Experiment,
    FigureTable,
    System,
    Value,
)
from sottovoce.experiments.schema.problems import Document, Place
from sottovoce.experiments.schema.values import meant
from sottovoce.experiments.tables import COLUMNS, NO_PRIVACY, PRIVATE, SAME_DEPTH
from sottovoce.privacy.deniability import RANKS

Expectations: TypeAlias = tuple[tuple[Expected, ...], tuple[ExpectedOrder, ...]]
Rows: TypeAlias = dict[str, set[Value]]
"""Rows of a table that come out of a plan: the values that each column has. A column that is not
there may have any."""

SIGNS = (">", "<", "~")


# Reading


def expectations_of(file: Path | str) -> Expectations:
    """Those of a TOML file. Nothing else in it is looked at: its data need not be here."""
    try:
        content = tomllib.loads(Path(file).read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise UsageError("there is no such file of an experiment: check the path") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"the experiment's file cannot be read ({type(error).__name__})") from None
    keys = ("expected", "expected_order")
    document = Document({key: content[key] for key in keys if key in content})
    found = read_expectations(document, document.validated(ExpectationTables, None))
    document.check()
    return found


def read_expectations(document: Document, tables: ExpectationTables) -> Expectations:
    """Those of a file; what is wrong with them becomes a problem of the document."""
    figures = [
        figure
        for number, table in enumerate(tables.expected)
        for figure in _figures(document, ("expected", number), table)
    ]
    orders = [
        _order(document, ("expected_order", number), table)
        for number, table in enumerate(tables.expected_order)
    ]
    return tuple(figures), tuple(orders)


def _figures(document: Document, place: Place, table: FigureTable) -> Iterator[Expected]:
    said = {key for key in ("value", "values", "epsilons") if document.says(*place, key)}
    wrong = any(document.left_out(*place, key) for key in said)
    where = dict(_where(document, place, table))
    shared = {key: getattr(table, key) for key in ("table", "measure", "tolerance", "source")}
    if wrong:
        return
    if said == {"value"} and table.value is not None:
        yield Expected(name=table.name, where=where, value=table.value, **shared)
        return
    values, epsilons = table.values or (), table.epsilons or ()
    if not said:
        document.problem((*place, "value"), "it is missing: write a number")
    elif len(values) != len(epsilons) or "epsilon" not in COLUMNS[table.table]:
        document.problem(
            (*place, "values"), "give as many numbers as there are epsilons, both in brackets"
        )
        return
    for value, epsilon in zip(values, epsilons, strict=True):
        name = f"{table.name}, epsilon {epsilon:g}"
        yield Expected(name=name, where={**where, "epsilon": epsilon}, value=value, **shared)


def _order(document: Document, place: Place, table: ExpectedOrder) -> ExpectedOrder:
    columns = COLUMNS[table.table]
    values, signs = table.order[::2], table.order[1::2]
    if table.by not in columns:
        document.problem((*place, "by"), f"there is no '{table.by}'{meant(table.by, columns)}")
    elif (
        len(values) < 2
        or len(values) != len(signs) + 1
        or any(sign not in SIGNS for sign in signs)
        or not all(_fits(value, columns[table.by]) for value in values)
    ):
        document.problem(
            (*place, "order"),
            f"write values of the column {table.by} with >, < or ~ between them, such as "
            '["vickrey-cmp", ">", "cmp", "~", "mahalanobis"]',
        )
    else:
        return replace(table, where=dict(_where(document, place, table)))
    return replace(table, order=())


def _where(
    document: Document, place: Place, table: Expected | ExpectedOrder
) -> Iterator[tuple[str, Value]]:
    columns = COLUMNS[table.table]
    for column, value in table.where.items():
        if column not in columns:
            problem = f"there is no such column{meant(column, columns)}"
        elif not _fits(value, columns[column]):
            type_ = "a text in quotes" if columns[column] == "string" else "a number"
            problem = f"it must be {type_}"
        else:
            yield column, value
            continue
        document.problem((*place, "where", column), problem)


def _fits(value: Any, kind: str) -> bool:
    if kind == "string":
        return isinstance(value, str)
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**63


# Whether a plan measures what is expected


def unmeasured(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """Each expectation that selects nothing of the plan, by its name, and why."""
    for figure in experiment.expected:
        if problem := _problem(list(_rows(experiment, figure.table)), _selected(figure)):
            yield figure.name, problem
    for order in experiment.expected_orders:
        for value in order.order[::2]:
            where = _selected(order) | {order.by: value}
            if problem := _problem(list(_rows(experiment, order.table)), where):
                yield order.name, problem
                break


def _selected(expected: Expected | ExpectedOrder) -> dict[str, Value]:
    system = {"system": PRIVATE} if expected.table == "queries" else {}
    return {**system, **expected.where, "measure": expected.measure}


def _problem(rows: list[Rows], where: dict[str, Value]) -> str | None:
    if any(_holds(row, where) for row in rows):
        return None
    for column, value in where.items():
        planned = {option for row in rows for option in row.get(column, {value})}
        if value not in planned:
            spelling = {str(option).casefold(): option for option in planned}
            near = closest(str(value).casefold(), spelling)
            hint = f": did you mean '{spelling[near]}'?" if near else ""
            return f"the plan has no {column} '{value}'{hint}"
    return "no cell of the plan has all of this"


def _holds(row: Rows, where: dict[str, Value]) -> bool:
    return all(value in row.get(column, {value}) for column, value in where.items())


def _rows(experiment: Experiment, table: str) -> Iterator[Rows]:
    if table == "queries":
        yield from _of_queries(experiment)
    elif table == "quipu":
        risks = _labels(*_privacy_measures(experiment), STRONGEST)
        utility = _labels(*_utility_measures(experiment))
        for row in _of_settings(experiment):
            yield row | _searched(experiment) | {"utility": utility, "measure": risks}
    elif table == "words":
        yield from _of_words(experiment)
    elif experiment.downstream is not None:
        tasks: Rows = {
            "task": {task_name(task) for task in experiment.downstream.tasks},
            "measure": {"accuracy", *RANKING},
        }
        yield tasks | {"mechanism": {""}, "seed": {*experiment.seeds}}
        for system in experiment.systems:
            yield _of_system(system) | tasks | {"seed": {*experiment.seeds}}


def _of_queries(experiment: Experiment) -> Iterator[Rows]:
    searched = _searched(experiment) | {"measure": _labels(*_utility_measures(experiment))}
    leaked: Rows = {"engine": {""}, "reranker": {""}, "system": {PRIVATE}}
    leaked |= {"measure": _labels(*_privacy_measures(experiment))}
    for row in _of_settings(experiment):
        yield row | searched | {"system": {PRIVATE, SAME_DEPTH}}
        yield row | leaked
    baseline: Rows = {"mechanism": {""}, "epsilon": set(), "release": {""}, "n": {0}, "seed": {0}}
    baseline |= {"collection": _collections(experiment), "system": {NO_PRIVACY}}
    yield baseline | searched


def _of_settings(experiment: Experiment) -> Iterator[Rows]:
    """Our mechanisms and published releases on the collections."""
    shared: Rows = {"collection": _collections(experiment), "n": {*experiment.n}}
    for system in experiment.systems:
        drawn: Rows = {"release": {*system.releases}, "seed": {*experiment.seeds}}
        yield shared | _of_system(system) | drawn
    for published in experiment.published:
        yield shared | {
            "mechanism": {published.label},
            "epsilon": _numbers(published.epsilons),
            "release": {"independent"},
            "seed": {0},
        }


def _of_system(system: System) -> Rows:
    return {"mechanism": {system.label}, "epsilon": _numbers(system.epsilons)}


def _of_words(experiment: Experiment) -> Iterator[Rows]:
    if experiment.deniability is not None:
        for system in experiment.systems:
            if _may_be_by_word(system):
                seed: Rows = {"seed": {*experiment.seeds[:1]}}
                yield _of_system(system) | seed | {"measure": {*DENIABILITY}}
    if experiment.deniability is not None or experiment.plotted_words:
        yield {"mechanism": {""}, "measure": {NeighbourDistance(rank).label for rank in RANKS}}
    for word in experiment.plotted_words:
        relatives: set[Value] = {RelativesOf(kind, word).label for kind in RELATIVES}
        yield {"mechanism": relatives, "measure": {DISTANCE, ANGLE}}


def _may_be_by_word(system: System) -> bool:
    """Whether it replaces words one by one, as far as its spec can be read."""
    try:
        return system.kind.by_word
    except SottovoceError:
        return True


def _searched(experiment: Experiment) -> Rows:
    return {
        "engine": {without_path(engine) for engine in experiment.engines},
        "reranker": {without_path(reranker) for reranker in experiment.rerankers},
    }


def _collections(experiment: Experiment) -> set[Value]:
    return {collection_name(collection) for collection in experiment.collections}


def _utility_measures(experiment: Experiment) -> Iterator[Measure]:
    for name in experiment.utility.measures:
        yield Measure("answers", name)
    for grade in experiment.utility.thresholds:
        yield Measure("pooled recall", str(grade))
    yield POOL


def _privacy_measures(experiment: Experiment) -> Iterator[Measure]:
    privacy = experiment.privacy
    for name in privacy.similarity:
        yield Measure("similarity", name)
    for encoder in privacy.inference_encoders if privacy.log is not None else ():
        for risk in INFERENCE:
            yield Measure(risk, without_path(encoder_name(encoder)))
    for attack in privacy.attacks:
        for share in RECOVERY:
            yield Measure(share, attack)


def _labels(*measures: Measure) -> set[Value]:
    return {measure.label for measure in measures}


def _numbers(epsilons: tuple[float | None, ...]) -> set[Value]:
    return {epsilon for epsilon in epsilons if epsilon is not None}
