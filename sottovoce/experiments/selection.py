"""Whether what a file expects can be measured by its plan at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from sottovoce.errors import closest
from sottovoce.evaluation.downstream.tasks import MEASURES as RANKING
from sottovoce.experiments.description import Expected, ExpectedOrder, Experiment, System
from sottovoce.experiments.expectations import Value
from sottovoce.experiments.named import collection_name, encoder_name
from sottovoce.experiments.naming import without_path
from sottovoce.experiments.plan import word_by_word
from sottovoce.experiments.report.strongest import STRONGEST
from sottovoce.experiments.steps.learning import task_name
from sottovoce.experiments.tables import NO_PRIVACY, PRIVATE, SAME_DEPTH

Rows: TypeAlias = dict[str, set[Value]]
"""Rows of a table that come out of a plan: the values that each column has. A column that is not
there may have any."""

RISKS = ("lazy", "active", "motivated")
RECOVERED = ("words", "query")
OF_WORDS: set[Value] = {"N_w", "S_w", "distinct", "moved"}


def unmeasured(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """Each expectation that selects nothing of the plan, by its name, and why."""
    for expected in experiment.expected:
        if problem := _problem(list(_rows(experiment, expected.table)), _where(expected)):
            yield expected.name, problem
    for order in experiment.expected_orders:
        for value in order.order[::2]:
            where = _where(order) | {order.by: value}
            if problem := _problem(list(_rows(experiment, order.table)), where):
                yield order.name, problem
                break


def _where(expected: Expected | ExpectedOrder) -> dict[str, Value]:
    system = {"system": PRIVATE} if expected.table == "queries" else {}
    return {**system, **expected.where, "measure": expected.measure}


def _problem(rows: list[Rows], where: dict[str, Value]) -> str | None:
    if any(_holds(each, where) for each in rows):
        return None
    for column, value in where.items():
        known = {each for row in rows for each in row.get(column, {value})}
        if value not in known:
            spelt = {str(each).casefold(): each for each in known}
            near = closest(str(value).casefold(), spelt)
            hint = f": did you mean '{spelt[near]}'?" if near else ""
            return f"the plan has no {column} '{value}'{hint}"
    return "no cell of the plan has all of this"


def _holds(row: Rows, where: dict[str, Value]) -> bool:
    return all(value in row.get(column, {value}) for column, value in where.items())


def _rows(experiment: Experiment, table: str) -> Iterator[Rows]:
    if table == "queries":
        yield from _of_queries(experiment)
    elif table == "quipu":
        for each in _of_settings(experiment):
            risks = _measures_of_privacy(experiment) | {STRONGEST}
            yield each | _searched(experiment) | {"utility": _utility(experiment), "measure": risks}
    elif table == "words":
        yield from _of_words(experiment)
    elif experiment.downstream is not None:
        tasks: Rows = {
            "task": {task_name(each) for each in experiment.downstream.tasks},
            "measure": {"accuracy", *RANKING},
        }
        yield tasks | {"mechanism": {""}, "seed": {*experiment.seeds}}
        for each in _of_systems(experiment.systems, {*experiment.seeds}):
            yield each | tasks


def _of_queries(experiment: Experiment) -> Iterator[Rows]:
    searched, utility = _searched(experiment), {"measure": _utility(experiment)}
    for each in _of_settings(experiment):
        yield each | searched | utility | {"system": {PRIVATE, SAME_DEPTH}}
        leaked: Rows = {"engine": {""}, "reranker": {""}, "system": {PRIVATE}}
        yield each | leaked | {"measure": _measures_of_privacy(experiment)}
    baseline: Rows = {"mechanism": {""}, "epsilon": set(), "release": {""}, "n": {0}, "seed": {0}}
    baseline |= {"collection": _collections(experiment), "system": {NO_PRIVACY}}
    yield baseline | searched | utility


def _of_settings(experiment: Experiment) -> Iterator[Rows]:
    """Our mechanisms and published releases on the collections."""
    shared: Rows = {"collection": _collections(experiment), "n": {*experiment.n}}
    for system in experiment.systems:
        yield shared | {
            "mechanism": {system.label},
            "epsilon": _numbers(system.epsilons),
            "release": {*system.releases},
            "seed": {*experiment.seeds},
        }
    for published in experiment.published:
        yield shared | {
            "mechanism": {published.label},
            "epsilon": _numbers(published.epsilons),
            "release": {"independent"},
            "seed": {0},
        }


def _of_systems(systems: Iterable[System], seeds: set[Value]) -> Iterator[Rows]:
    for system in systems:
        epsilons = _numbers(system.epsilons)
        yield {"mechanism": {system.label}, "epsilon": epsilons, "seed": seeds}


def _of_words(experiment: Experiment) -> Iterator[Rows]:
    if experiment.deniability is not None:
        systems = filter(word_by_word, experiment.systems)
        for each in _of_systems(systems, {*experiment.seeds[:1]}):
            yield each | {"measure": OF_WORDS}
    if experiment.deniability is not None or experiment.plotted_words:
        ranks: set[Value] = {f"distance to neighbour {rank}" for rank in (1, 10, 100, 1000)}
        yield {"mechanism": {""}, "measure": ranks}
    for word in experiment.plotted_words:
        near: set[Value] = {f"{kin} of {word}" for kin in ("synonym", "hyponym", "neighbour")}
        yield {"mechanism": near, "measure": {"distance", "angle"}}


def _searched(experiment: Experiment) -> Rows:
    return {
        "engine": {without_path(each) for each in experiment.engines},
        "reranker": {without_path(each) for each in experiment.rerankers},
    }


def _collections(experiment: Experiment) -> set[Value]:
    return {collection_name(each) for each in experiment.collections}


def _utility(experiment: Experiment) -> set[Value]:
    recalls = (f"pooled recall(rel={each})" for each in experiment.utility.thresholds)
    return {*experiment.utility.measures, *recalls, "pool"}


def _measures_of_privacy(experiment: Experiment) -> set[Value]:
    privacy = experiment.privacy
    encoders = map(encoder_name, privacy.inference_encoders if privacy.log is not None else ())
    return {
        *privacy.similarity,
        *(f"{risk}[{without_path(encoder)}]" for encoder in encoders for risk in RISKS),
        *(f"{share}[{attack}]" for attack in privacy.attacks for share in RECOVERED),
    }


def _numbers(epsilons: tuple[float | None, ...]) -> set[Value]:
    return {each for each in epsilons if each is not None}
