"""All tables of a report, in sections; only those whose data are there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

from sottovoce.experiments.report.headline import headline
from sottovoce.experiments.report.manifest_tables import manifest_tables
from sottovoce.experiments.report.places import collections, places
from sottovoce.experiments.report.quipu_table import quipu_tables
from sottovoce.experiments.report.risk_tables import risk_tables
from sottovoce.experiments.report.significance import comparing
from sottovoce.experiments.report.significance_tables import significance_tables
from sottovoce.experiments.report.similarity_tables import similarity_tables
from sottovoce.experiments.report.table import Section, Table
from sottovoce.experiments.report.task_tables import task_tables
from sottovoce.experiments.report.utility_tables import utility_tables
from sottovoce.experiments.report.word_tables import word_tables
from sottovoce.experiments.results import Results

Where = TypeVar("Where")

TRADES, MANIFEST = "The best trades", "Manifest"


def sections(results: Results) -> Iterator[Section]:
    """The best trades first, the manifest last."""
    everywhere, all_of, compared = places(results), collections(results), comparing(results)
    fronts = (headline(results, each) for each in everywhere)
    yield from _section(TRADES, (each for each in fronts if each is not None))
    yield from _section("What attackers get", _each(risk_tables, results, all_of))
    yield from _section(
        "What is still found", _each(partial(utility_tables, compared=compared), results, all_of)
    )
    yield from _section("QuIPU scores", _each(quipu_tables, results, everywhere))
    yield from _section(
        "Significance", _each(partial(significance_tables, compared=compared), results, everywhere)
    )
    yield from _section("How alike the texts are", _each(similarity_tables, results, all_of))
    yield from _section("Deniability", word_tables(results))
    yield from _section("Downstream tasks", task_tables(results))
    yield from _section(MANIFEST, manifest_tables(results.manifest))


def _each(
    make: Callable[[Results, Where], Iterator[Table]], results: Results, where: Iterable[Where]
) -> Iterator[Table]:
    return (table for each in where for table in make(results, each))


def _section(title: str, tables: Iterable[Table]) -> Iterator[Section]:
    found = tuple(tables)
    if found:
        yield Section(title, found)
