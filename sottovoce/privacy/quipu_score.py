"""The QuIPU score: one number for the trade of risk against utility over a mechanism's parameter.

Files of measured risks and utilities are read by :func:`read_curves`, a curve for each system.

Points (risk, utility), from the most private parameter to the least, are rotated onto the diagonal
on which the attacker gains as much as the person: h = u - r is the gain over it, nu = u + r the
place along it. The score is the area under h over nu, equation 1 of the QuIPU paper:

    sum of (h_i + h_{i+1}) / 2 * (nu_{i+1} - nu_i)

It depends on how far the parameter was varied. The anchored score gives all curves the same ends:
(0, 0), nothing said and nothing found, and (1, u*), the query itself sent to the engine.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from sottovoce.errors import UsageError
from sottovoce.files import CsvTable, read_text
from sottovoce.statistics import LEVEL, SAMPLES, percentiles, resamples
from sottovoce.types import Float64Array

Flag: TypeAlias = Literal["degenerate", "stable", "backtracks", "outside", "clipped"]
Interval: TypeAlias = tuple[float, float]
Row: TypeAlias = tuple[str, str, float, float]
"""A line of a file: parameter, query, risk, utility."""

SHORTEST_PATH = 0.05
LARGEST_DIFFERENCE = 0.01
NUMBERS_AT_A_TIME = 1 << 20
COLUMNS = ("system", "parameter", "risk", "utility")
HOW = (
    "give a CSV file with the columns system,parameter,risk,utility, and query as well for "
    "intervals"
)

MEANING: dict[Flag, str] = {
    "degenerate": "fewer than two points make no curve: the score says nothing",
    "stable": "the parameter hardly moves risk and utility: the score is about 0 by construction, "
    "good or bad; see the anchored score",
    "backtracks": "the curve turns back on itself: in order of nu the score is another one",
    "outside": "a curve that turns back can leave [-1, 1], and this one does",
    "clipped": "some means lay outside [0, 1] and were moved to its end: check their scale",
}


@dataclass(frozen=True)
class QuipuScore:
    """A score and what it is worth.

    value
        The score over the points in their order; not a number without points.
    nu_sorted
        The same with the points in order of nu; another value where the curve turns back.
    anchored
        The same from (0, 0) through the points to (1, u*), where u* was given.
    interval, anchored_interval
        Bootstrap intervals over queries, where values for each query were given.
    """

    value: float
    nu_sorted: float
    anchored: float | None
    points: int
    queries: int | None
    flags: tuple[Flag, ...]
    interval: Interval | None
    anchored_interval: Interval | None

    def to_dict(self) -> dict[str, Any]:
        """The score for programs; what is not a number becomes null."""
        return {
            "quipu": _or_none(self.value),
            "interval": self.interval,
            "nu_sorted": _or_none(self.nu_sorted),
            "anchored": self.anchored,
            "anchored_interval": self.anchored_interval,
            "points": self.points,
            "queries": self.queries,
            "flags": list(self.flags),
        }


def quipu(
    risks: ArrayLike,
    utilities: ArrayLike,
    *,
    best: ArrayLike | None = None,
    level: float = LEVEL,
    samples: int = SAMPLES,
    seed: int = 0,
) -> QuipuScore:
    """Score points that come in order of the parameter, the most private first.

    risks, utilities
        (parameters,), or (parameters, queries) for intervals; the queries are the same throughout.
    best
        The utility of the original query, u*: a number, or one for each query, which intervals
        then resample, too.
    seed
        Of the bootstrap, which resamples queries: no privacy depends on it.
    """
    risk, utility = _checked(risks, utilities)
    itself = None if best is None else _best(best, risk.shape[1])
    if not 0 < level < 1:
        raise UsageError("the level of an interval lies between 0 and 1")
    if samples < 1:
        raise UsageError("a bootstrap needs at least 1 sample")
    r, u = risk.mean(axis=1), utility.mean(axis=1)
    clipped = bool(((r < 0) | (r > 1) | (u < 0) | (u > 1)).any())
    r, u = np.clip(r, 0, 1), np.clip(u, 0, 1)
    value, in_order = float(_area(r, u)), np.argsort(u + r, kind="stable")
    nu_sorted = float(_area(r[in_order], u[in_order]))
    queries = risk.shape[1] if np.ndim(risks) == 2 else None
    interval = anchored_interval = None
    if queries is not None and queries > 1 and len(r) > 0:
        interval, anchored_interval = _intervals(risk, utility, itself, level, samples, seed)
    return QuipuScore(
        value=value if len(r) else float("nan"),
        nu_sorted=nu_sorted if len(r) else float("nan"),
        anchored=None if itself is None else float(_area(*_anchored(r, u, itself.mean()))),
        points=len(r),
        queries=queries,
        flags=tuple(_flags(r, u, value, nu_sorted, clipped)),
        interval=interval,
        anchored_interval=anchored_interval,
    )


def _checked(risks: ArrayLike, utilities: ArrayLike) -> tuple[Float64Array, Float64Array]:
    """Both as (parameters, queries), with one column where there are no queries."""
    try:
        risk, utility = np.asarray(risks, np.float64), np.asarray(utilities, np.float64)
    except (TypeError, ValueError):
        raise UsageError("risks and utilities are arrays of numbers, of the same shape") from None
    if risk.shape != utility.shape or risk.ndim not in (1, 2):
        raise UsageError("risks and utilities have the same shape: parameters, or by queries too")
    if not (np.isfinite(risk).all() and np.isfinite(utility).all()):
        raise UsageError(
            "some risks or utilities are missing or infinite: measure them, or leave their "
            "parameter out"
        )
    if risk.ndim == 2 and risk.shape[0] and not risk.shape[1]:
        raise UsageError("there are parameters but no queries: give at least one")
    return (risk, utility) if risk.ndim == 2 else (risk[:, None], utility[:, None])


def _best(best: ArrayLike, queries: int) -> Float64Array:
    """The utility of the original query, one value for each query."""
    values = np.asarray(best, dtype=np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise UsageError("the utility of the original query lies between 0 and 1")
    if values.ndim and values.shape != (queries,):
        raise UsageError("give the utility of the original query once, or once for each query")
    return np.broadcast_to(values, (queries,))


def _area(r: Float64Array, u: Float64Array) -> Float64Array:
    """Equation 1 along the first axis; 0 for fewer than two points."""
    h, nu = u - r, u + r
    return np.asarray(((h[1:] + h[:-1]) / 2 * np.diff(nu, axis=0)).sum(axis=0))


def _anchored(
    r: Float64Array, u: Float64Array, best: float | Float64Array
) -> tuple[Float64Array, Float64Array]:
    """The points between nothing said and the query itself."""
    zero, one = np.zeros_like(r, shape=(1, *r.shape[1:])), np.ones((1, *r.shape[1:]))
    return np.concatenate([zero, r, one]), np.concatenate([zero, u, best * one])


def _flags(
    r: Float64Array, u: Float64Array, value: float, nu_sorted: float, clipped: bool
) -> Iterator[Flag]:
    if len(r) < 2:
        yield "degenerate"
    elif np.abs(np.diff(u + r)).sum() < SHORTEST_PATH:
        yield "stable"
    if abs(value - nu_sorted) > LARGEST_DIFFERENCE:
        yield "backtracks"
    if abs(value) > 1:
        yield "outside"
    if clipped:
        yield "clipped"


def _intervals(
    risk: Float64Array,
    utility: Float64Array,
    best: Float64Array | None,
    level: float,
    samples: int,
    seed: int,
) -> tuple[Interval, Interval | None]:
    """Score resampled queries, the same ones at every parameter."""
    queries = risk.shape[1]
    scores, anchored = [], []
    for counts in resamples(queries, samples, seed, max(1, NUMBERS_AT_A_TIME // queries)):
        weights = (counts / queries).T
        r, u = np.clip(risk @ weights, 0, 1), np.clip(utility @ weights, 0, 1)
        scores.append(_area(r, u))
        if best is not None:
            anchored.append(_area(*_anchored(r, u, best @ weights)))
    interval = percentiles(np.concatenate(scores), level)
    return interval, percentiles(np.concatenate(anchored), level) if anchored else None


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value


# Files of curves.


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
    systems: dict[str, list[Row]] = {}
    for line, row in table:
        risk, utility = (_number(row[column], column, line) for column in ("risk", "utility"))
        measured = row["parameter"].strip(), row.get("query", ""), risk, utility
        systems.setdefault(row["system"], []).append(measured)
    if not systems:
        raise UsageError(f"the CSV file has a header and no measurement: {HOW}")
    if any(name not in systems for name in descending):
        raise UsageError("a system that was said to be descending is not in the file")
    by_query = "query" in table.header
    return [_curve(name, rows, by_query, name in descending) for name, rows in systems.items()]


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


def _curve(system: str, rows: Sequence[Row], by_query: bool, descending: bool) -> Curve:
    parameters, queries, risks, utilities = zip(*rows, strict=True)
    places, labels = _order(parameters, descending)
    columns = {query: column for column, query in enumerate(dict.fromkeys(queries))}
    cells = places, [columns[query] for query in queries]
    # How often each parameter and query was measured, and the sums of what was measured.
    count, risk, utility = np.zeros((3, len(labels), len(columns)))
    for total, values in ((count, 1.0), (risk, risks), (utility, utilities)):
        np.add.at(total, cells, values)
    if lacking := int((count == 0).sum()):
        raise UsageError(
            f"{lacking} pairs of a parameter and a query are missing for a system: every query "
            "needs a row at every parameter"
        )
    risk, utility = risk / count, utility / count
    if not by_query:
        risk, utility = risk[:, 0], utility[:, 0]
    return Curve(system, labels, risk, utility)


def _order(parameters: Sequence[str], descending: bool) -> tuple[list[int], tuple[str, ...]]:
    """The place of each row's parameter in the curve, and the parameters in that order."""
    try:
        keys: list[Any] = [float(parameter) for parameter in parameters]
        distinct = sorted(set(keys))
    except ValueError:
        keys, distinct = list(parameters), list(dict.fromkeys(parameters))
    if any(key != key for key in keys):
        raise UsageError("a parameter is not a number: give each a value or a name")
    if descending:
        distinct.reverse()
    # Of several ways to write a number, the first counts.
    labels = dict(zip(reversed(keys), reversed(parameters), strict=True))
    place = {key: number for number, key in enumerate(distinct)}
    return [place[key] for key in keys], tuple(labels[key] for key in distinct)
