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

from sottovoce.errors import UsageError, closest
from sottovoce.evaluation.downstream.tasks import MEASURES as RANKING
from sottovoce.experiments.grid import (
    Audit,
    Baseline,
    Deny,
    Draw,
    Leak,
    Learn,
    Neighbours,
    Samples,
    Search,
    Source,
    plan,
)
from sottovoce.experiments.measures import (
    ANGLE,
    AUDITED,
    AUDITORS,
    CHANCE,
    DENIABILITY,
    DISTANCE,
    INFERENCE,
    POOL,
    RECOVERY,
    RELATIVES,
    SENT,
    STRONGEST,
    Measure,
    neighbour_label,
    relatives_label,
)
from sottovoce.experiments.naming import (
    collection_name,
    encoder_name,
    log_name,
    task_name,
    without_path,
)
from sottovoce.experiments.schema.experiment import (
    ExpectationTables,
    Expected,
    ExpectedOrder,
    Experiment,
    FigureTable,
    Privacy,
    Utility,
    Value,
)
from sottovoce.experiments.schema.problems import Document, Place
from sottovoce.experiments.schema.values import meant
from sottovoce.experiments.tables import COLUMNS, NO_PRIVACY, PRIVATE, SAME_DEPTH
from sottovoce.privacy.attacks.run_state import BY_TEXTS
from sottovoce.privacy.attacks.word_means import COMPARED

Expectations: TypeAlias = tuple[tuple[Expected, ...], tuple[ExpectedOrder, ...]]
Rows: TypeAlias = dict[str, set[Value]]
"""Rows of a table that come out of a plan: the values that each column has. A column that is not
there may have any."""

SIGNS = (">", "<", "~", ",")
FIGURE_KEYS = ("table", "measure", "of", "bound", "tolerance", "source")
"""What all figures of a table of expectations share."""


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
    expectations = read_expectations(document, document.validated(ExpectationTables, None))
    document.check()
    return expectations


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
    keys = [key for key in ("value", "values", "epsilons") if document.says(*place, key)]
    where = dict(_where(document, place, table))
    shared = {key: getattr(table, key) for key in FIGURE_KEYS}
    values, epsilons = table.values or (), table.epsilons or ()
    if any(document.left_out(*place, key) for key in keys):
        return
    if not keys:
        document.problem((*place, "value"), "it is missing: write a number")
    elif table.value is not None and keys == ["value"]:
        yield Expected(name=table.name, where=where, value=table.value, **shared)
    elif len(values) != len(epsilons) or "epsilon" not in COLUMNS[table.table]:
        document.problem(
            (*place, "values"), "give as many numbers as there are epsilons, both in brackets"
        )
    else:
        for value, epsilon in zip(values, epsilons, strict=True):
            name, at_epsilon = f"{table.name}, epsilon {epsilon:g}", {**where, "epsilon": epsilon}
            yield Expected(name=name, where=at_epsilon, value=value, **shared)


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
            f"write values of the column {table.by} with >, <, ~ or , between them, such as "
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


def unmeasured(experiment: Experiment, partial: bool = False) -> Iterator[tuple[str, str]]:
    """Each expectation that selects nothing of the plan, by its name, and why.

    partial
        A collection was left out, as it was wrong: that a table has no cell is then no fault of
        what is expected of it.
    """
    planned: dict[str, list[Rows]] = {table: [] for table in COLUMNS}
    for table, rows in _planned(experiment, _named_attacks(experiment)):
        planned[table].append(rows)
    if partial:
        planned = {table: rows or [{}] for table, rows in planned.items()}
    for figure in experiment.expected:
        if problem := _problem(planned[figure.table], _selected(figure)):
            yield figure.name, problem
    for order in experiment.expected_orders:
        for value in order.order[::2]:
            where = _selected(order) | {order.by: value}
            if problem := _problem(planned[order.table], where):
                yield order.name, problem
                break


def _selected(expected: Expected | ExpectedOrder) -> dict[str, Value]:
    system = {"system": PRIVATE} if expected.table == "queries" else {}
    return {**system, **expected.where, "measure": expected.measure}


def _problem(planned: list[Rows], where: dict[str, Value]) -> str | None:
    if any(
        all(value in rows.get(column, {value}) for column, value in where.items())
        for rows in planned
    ):
        return None
    for column, value in where.items():
        options = {option for rows in planned for option in rows.get(column, {value})}
        if value not in options:
            spelling = {str(option).casefold(): option for option in options}
            near = closest(str(value).casefold(), spelling)
            hint = f": did you mean '{spelling[near]}'?" if near else ""
            return f"the plan has no {column} '{value}'{hint}"
    return "no cell of the plan has all of this"


def _named_attacks(experiment: Experiment) -> set[str]:
    """What is expected of attacks that guess, whichever they are."""
    labels = {figure.measure for figure in experiment.expected}
    labels |= {order.measure for order in experiment.expected_orders}
    return {label for label in labels if Measure.read(label).kind in INFERENCE}


def _planned(experiment: Experiment, on_sets: set[str]) -> Iterator[tuple[str, Rows]]:
    """The rows of each cell of the plan, and their table.

    on_sets
        What attacks on sets measure: their names show when they run.
    """
    utility = {measure.label for measure in _utility_measures(experiment.utility)}
    risks = {measure.label for measure in _privacy_measures(experiment.privacy)}
    for job in (job for stage in plan(experiment) for job in stage):
        match job:
            case Draw(source):
                rows = _of_source(source) | {"engine": {""}, "reranker": {""}}
                yield "queries", rows | {"system": {PRIVATE}, "measure": {SENT.label}}
            case Search(source):
                rows = _of_source(source) | _of_engine(job)
                yield "queries", rows | {"system": {PRIVATE, SAME_DEPTH}, "measure": {*utility}}
                rows |= {"utility": {*utility}, "measure": {*risks, STRONGEST.label}}
                if source.are_sets:  # Along their curve n may differ.
                    rows |= {"n": set(), "measure": {*on_sets, STRONGEST.label}}
                yield "quipu", rows
            case Baseline():
                rows = {"mechanism": {""}, "epsilon": set(), "release": {""}, "n": {0}, "seed": {0}}
                rows |= {"collection": {collection_name(job.collection)}, "system": {NO_PRIVACY}}
                yield "queries", rows | _of_engine(job) | {"measure": {*utility}}
            case Leak(source):
                leaked = {measure.label for measure in _privacy_measures(job.privacy)}
                if source.are_sets and job.privacy.attacks:
                    leaked = {*on_sets, CHANCE.label}
                rows = {"engine": {""}, "reranker": {""}, "system": {PRIVATE}, "measure": {*leaked}}
                yield "queries", _of_source(source) | rows
            case Deny():
                yield "words", _of_mechanism(job) | {"measure": {*DENIABILITY}}
            case Neighbours():
                ranks = {neighbour_label(rank) for rank in job.ranks}
                yield "words", {"mechanism": {""}, "measure": {*ranks}}
                for word in job.plotted:
                    relatives = {relatives_label(kind, word) for kind in RELATIVES}
                    yield "words", {"mechanism": {*relatives}, "measure": {DISTANCE, ANGLE}}
            case Audit():
                rows = {"log": {log_name(job.membership.log)}, "measure": {*AUDITED}}
                yield "audits", _of_mechanism(job) | rows | {"auditor": {*AUDITORS.values()}}
            case Samples():
                pass  # Words, in which nobody expects a figure.
            case Learn():
                measures = {"accuracy", *RANKING, *job.downstream.similarity}
                rows = {"task": {task_name(job.task)}, "measure": {*measures}}
                yield "tasks", _of_mechanism(job) | rows


def _of_source(source: Source) -> Rows:
    return _of_mechanism(source) | {
        "collection": {collection_name(source.collection)},
        "release": {source.release},
        "n": {source.n},
    }


def _of_mechanism(job: Source | Deny | Learn | Audit) -> Rows:
    epsilons: set[Value] = set() if job.epsilon is None else {job.epsilon}
    return {"mechanism": {job.mechanism}, "epsilon": epsilons, "seed": {job.seed}}


def _of_engine(job: Search | Baseline) -> Rows:
    return {"engine": {without_path(job.engine)}, "reranker": {without_path(job.reranker)}}


def _utility_measures(utility: Utility) -> Iterator[Measure]:
    yield from (Measure("answers", name) for name in utility.measures)
    yield from (Measure("pooled recall", str(grade)) for grade in utility.thresholds)
    yield POOL


def _privacy_measures(privacy: Privacy) -> Iterator[Measure]:
    yield from (Measure("similarity", name) for name in privacy.similarity)
    if privacy.log is not None:
        encoders = [without_path(encoder_name(name)) for name in privacy.inference_encoders]
        encoders += [name for name in ("aligned", "remade") if name in privacy.attacks]
        encoders += COMPARED if "means" in privacy.attacks else []
        yield from (Measure(risk, encoder) for encoder in encoders for risk in INFERENCE)
    words = [attack for attack in privacy.attacks if attack not in ("aligned", *BY_TEXTS)]
    yield from (Measure(share, attack) for attack in words for share in RECOVERY)
