"""Files of measured risks and utilities: a curve for each system, in order of its parameter."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sottovoce.errors import UsageError
from sottovoce.files import CsvTable, read_text
from sottovoce.types import Float64Array

COLUMNS = ("system", "parameter", "risk", "utility")
HOW = (
    "give a CSV file with the columns system,parameter,risk,utility, and query as well for "
    "intervals"
)


@dataclass(frozen=True)
class Curve:
    """Risk and utility of one system, (parameters,) or (parameters, queries).

    From the most private parameter to the least.
    """

    system: str
    parameters: tuple[str, ...]
    risks: Float64Array
    utilities: Float64Array

    def means(self) -> tuple[Float64Array, Float64Array]:
        """Risk and utility of each parameter, over the queries."""
        shape = (len(self.parameters), -1)
        return self.risks.reshape(shape).mean(axis=1), self.utilities.reshape(shape).mean(axis=1)


@dataclass(frozen=True)
class _Row:
    parameter: str
    query: str
    risk: float
    utility: float


def read_curves(file: Path | str, descending: Collection[str] = ()) -> list[Curve]:
    """The curves of a CSV file, in the order in which their systems first appear.

    Parameters that are numbers go from the smallest to the largest; the other way round for the
    systems in ``descending``, which are the more private the larger theirs is. Parameters that
    are names keep the order of the file. Rows that repeat a parameter (and query) are repeated
    measurements, and are averaged.
    """
    return parse_curves(read_text(file), descending)


def parse_curves(content: str, descending: Collection[str] = ()) -> list[Curve]:
    """The curves in the content of a file; see :func:`read_curves`."""
    if not content.strip():
        raise UsageError(f"the file of measurements is empty: {HOW}")
    table = CsvTable(content, how=HOW)
    table.require(*COLUMNS)
    systems: dict[str, list[_Row]] = {}
    for line, row in table:
        systems.setdefault(row["system"], []).append(_row(row, line))
    if not systems:
        raise UsageError(f"the CSV file has a header and no measurement: {HOW}")
    if any(name not in systems for name in descending):
        raise UsageError("a system that was said to be descending is not in the file")
    by_query = "query" in table.header
    return [_curve(name, rows, by_query, name in descending) for name, rows in systems.items()]


def _row(row: dict[str, str], line: int) -> _Row:
    return _Row(
        parameter=row["parameter"].strip(),
        query=row.get("query", ""),
        risk=_number(row["risk"], "risk", line),
        utility=_number(row["utility"], "utility", line),
    )


def _number(written: str, column: str, line: int) -> float:
    try:
        value = float(written)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(
            f"the {column} in line {line} of the CSV file is missing or not a number: measure it, "
            "or leave the row out"
        )
    return value


def _curve(system: str, rows: Sequence[_Row], by_query: bool, descending: bool) -> Curve:
    places, labels = _order([row.parameter for row in rows], descending)
    queries = {name: column for column, name in enumerate(dict.fromkeys(row.query for row in rows))}
    columns = [queries[row.query] for row in rows]
    count = np.zeros((len(labels), len(queries)))
    np.add.at(count, (places, columns), 1)
    if lacking := int((count == 0).sum()):
        raise UsageError(
            f"{lacking} pairs of a parameter and a query are missing for a system: every query "
            "needs a row at every parameter"
        )
    risks, utilities = np.zeros_like(count), np.zeros_like(count)
    np.add.at(risks, (places, columns), [row.risk for row in rows])
    np.add.at(utilities, (places, columns), [row.utility for row in rows])
    risks, utilities = risks / count, utilities / count
    if not by_query:
        risks, utilities = risks[:, 0], utilities[:, 0]
    return Curve(system, labels, risks, utilities)


def _order(parameters: Sequence[str], descending: bool) -> tuple[list[int], tuple[str, ...]]:
    """The place of each row's parameter in the curve, and the parameters in that order."""
    try:
        keys: list[float] | list[str] = [float(each) for each in parameters]
        numbers = True
    except ValueError:
        keys, numbers = list(parameters), False
    if any(key != key for key in keys):
        raise UsageError("a parameter is not a number: give each a value or a name")
    labels = dict(zip(reversed(keys), reversed(parameters), strict=True))
    distinct = list(dict.fromkeys(keys))
    if numbers:
        distinct.sort()
    if descending:
        distinct.reverse()
    place = {key: number for number, key in enumerate(distinct)}
    return [place[key] for key in keys], tuple(labels[key] for key in distinct)
