"""A finished experiment against what its file expects of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from sottovoce.experiments.estimates import quipu_scores
from sottovoce.experiments.measures import MAIN_MEASURE
from sottovoce.experiments.results import Results
from sottovoce.experiments.schema.experiment import (
    Bound,
    Expected,
    ExpectedOrder,
    Summary,
    Value,
)
from sottovoce.experiments.tables import PRIVATE

Verdict: TypeAlias = Literal["OK", "OKish", "FAIL", "NOT MEASURED"]
VERDICTS: tuple[Verdict, ...] = ("OK", "OKish", "FAIL", "NOT MEASURED")
WIDER = 3
ROUNDING = 1e-9
ITEMS = {"queries": "query_id", "words": "word", "tasks": "item", "audits": "seed"}
"""What a table's values are about: each counts once, however many seeds there were."""


@dataclass(frozen=True)
class Checked:
    """One expectation. Of an order there is one for each of its groups and steps.

    ``difference`` is ours less the expected figure; in an order it is the lead of what should be
    ahead (negative: it is behind), or how far a group spreads.
    """

    name: str
    expected: str
    ours: str
    difference: float | None
    tolerance: float
    verdict: Verdict
    source: str
    figures: dict[str, float | None]
    """By the name of a figure (``expected``, ``ours``), or of what was ordered."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def check(
    results: Results, expected: Sequence[Expected], orders: Sequence[ExpectedOrder] = ()
) -> list[Checked]:
    """Compare all, in their order."""
    means = _Means(results)
    figures = [_figure(figure, means) for figure in expected]
    return figures + [checked for order in orders for checked in _steps(order, means)]


def within(miss: float, tolerance: float) -> Verdict:
    """OK within the tolerance, OKish within three times that."""
    if miss <= tolerance + ROUNDING:
        return "OK"
    return "OKish" if miss <= WIDER * tolerance + ROUNDING else "FAIL"


def ahead(lead: float, tolerance: float) -> Verdict:
    """OK with any lead, OKish behind by no more than the tolerance."""
    if lead > 0:
        return "OK"
    return "OKish" if lead >= -tolerance - ROUNDING else "FAIL"


class _Means:
    """Means of selected rows, and QuIPU scores by curve."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.quipu = cache(partial(quipu_scores, results))

    def get(
        self, table: str, measure: str, where: dict[str, Value], of: Summary = "mean"
    ) -> float | None:
        """Nothing where no row is selected."""
        if table == "quipu":
            return self._score(measure, where)
        import pyarrow.compute as pc

        if table == "queries" and "system" not in where:
            where = where | {"system": PRIVATE}
        rows = getattr(self.results, table)
        for column, value in (where | {"measure": measure}).items():
            rows = rows.filter(pc.equal(rows[column], value))
        if not len(rows):
            return None
        by_item = rows.group_by(ITEMS[table]).aggregate([("value", "mean")])
        gather = {"mean": pc.mean, "least": pc.min, "greatest": pc.max}[of]
        return float(gather(by_item["value_mean"]).as_py())

    def _score(self, risk: str, where: dict[str, Value]) -> float | None:
        """The mean score of the curves selected."""
        selected = {key: where[key] for key in ("mechanism", "release", "n") if key in where}
        utility = str(where.get("utility", MAIN_MEASURE.label))
        scores = [
            score.value
            for place in self.results.places
            if all(where.get(key, value) == value for key, value in place._asdict().items())
            for curve, score in self.quipu(place, risk, utility).items()
            if all(getattr(curve, key) == value for key, value in selected.items())
        ]
        return sum(scores) / len(scores) if scores else None


def _figure(expected: Expected, means: _Means) -> Checked:
    ours = means.get(expected.table, expected.measure, expected.where, expected.of)
    difference = None if ours is None else ours - expected.value
    of = "" if expected.of == "mean" else f"the {expected.of} "
    return Checked(
        name=expected.name,
        expected=f"{of}{expected.bound} {expected.value:.3f}"
        if expected.bound
        else f"{of}{expected.value:.3f}",
        ours="-" if ours is None else f"{ours:.3f}",
        difference=difference,
        tolerance=expected.tolerance,
        verdict="NOT MEASURED"
        if difference is None
        else within(_miss(difference, expected.bound), expected.tolerance),
        source=expected.source,
        figures={"expected": expected.value, "ours": ours},
    )


def _miss(difference: float, bound: Bound | None) -> float:
    """By how much a figure is missed; one that keeps its bound is not."""
    if bound is None:
        return abs(difference)
    return max(0.0, -difference if bound == "at least" else difference)


def _steps(expected: ExpectedOrder, means: _Means) -> Iterator[Checked]:
    """One check for each group of several, and one for each step from a group to the next."""
    ordered = expected.order[::2]
    names = [value if isinstance(value, str) else f"{value:g}" for value in ordered]
    values = {
        name: means.get(expected.table, expected.measure, expected.where | {expected.by: value})
        for name, value in zip(names, ordered, strict=True)
    }
    groups, signs, alike = [[names[0]]], [], [False]
    for sign, name in zip(expected.order[1::2], names[1:], strict=True):
        if sign in ("~", ","):
            groups[-1].append(name)
            alike[-1] |= sign == "~"
        else:
            signs.append(str(sign))
            groups.append([name])
            alike.append(False)
    for group, is_claimed in zip(groups, alike, strict=True):
        if is_claimed:
            yield _alike(expected, group, values)
    for (first, second), sign in zip(pairwise(groups), signs, strict=True):
        yield _step(expected, first, sign, second, values)


def _alike(expected: ExpectedOrder, group: list[str], values: dict[str, float | None]) -> Checked:
    figures = {name: values[name] for name in group}
    measured = [value for value in figures.values() if value is not None]
    spread = max(measured) - min(measured) if len(measured) == len(group) else None
    return Checked(
        name=f"{expected.name}: {' ~ '.join(group)}",
        expected=f"within {expected.tolerance:g}",
        ours=_numbers(figures),
        difference=spread,
        tolerance=expected.tolerance,
        verdict="NOT MEASURED" if spread is None else within(spread, expected.tolerance),
        source=expected.source,
        figures=figures,
    )


def _step(
    expected: ExpectedOrder,
    first: list[str],
    sign: str,
    second: list[str],
    values: dict[str, float | None],
) -> Checked:
    sides = [{name: values[name] for name in group} for group in (first, second)]
    figures = sides[0] | sides[1]
    greater, smaller = sides if sign == ">" else reversed(sides)
    high = [value for value in greater.values() if value is not None]
    low = [value for value in smaller.values() if value is not None]
    lead = min(high) - max(low) if None not in figures.values() else None
    shown_sign = sign if lead is not None and lead > 0 else "|"
    return Checked(
        name=f"{expected.name}: {', '.join(first)} {sign} {', '.join(second)}",
        expected=f"all {sign} all" if len(figures) > 2 else sign,
        ours=f" {shown_sign} ".join(map(_numbers, sides)),
        difference=lead,
        tolerance=expected.tolerance,
        verdict="NOT MEASURED" if lead is None else ahead(lead, expected.tolerance),
        source=expected.source,
        figures=figures,
    )


def _numbers(figures: dict[str, float | None]) -> str:
    return " ".join("-" if value is None else f"{value:.3f}" for value in figures.values())
