"""The mechanisms of a report: one name, colour and marker each, in all of its figures."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sottovoce.experiments.report.figures.boxes_grid import box_of
from sottovoce.experiments.results import Results, Setting

MOST_BOXES = 3
"""More settings of k and n than these are told apart by heat maps, not by lines."""

MOST_SIZES = 8
"""From this mechanism on all lines are equally thin."""

RELATIVE = re.compile("(synonym|hyponym|neighbour) of (.+)")
"""What the table of words calls the relatives of a plotted word."""


@dataclass(frozen=True)
class Cast:
    """Who appears. ``ways`` are (release, n), ``aside`` mechanisms that heat maps alone show."""

    mechanisms: tuple[str, ...]
    ways: tuple[tuple[str, int], ...]
    aside: frozenset[str] = frozenset()

    @classmethod
    def of(cls, results: Results) -> Cast:
        """All that the tables name, in order of appearance; those that stand aside come last."""
        tables = (results.queries, results.words, results.tasks)
        names = [name for table in tables for name in table["mechanism"].unique().to_pylist()]
        mechanisms = [n for n in dict.fromkeys(names) if n and not RELATIVE.fullmatch(n)]
        aside = _aside(results, mechanisms)
        ways = results.queries.group_by(["release", "n"], use_threads=False).aggregate([])
        pairs = zip(ways["release"].to_pylist(), ways["n"].to_pylist(), strict=True)
        return cls(
            mechanisms=tuple(sorted(mechanisms, key=lambda name: name in aside)),
            ways=tuple((release, n) for release, n in pairs if release),
            aside=aside,
        )

    def name(self, curve: Setting) -> str:
        """The mechanism, with its release and n where these differ in the report."""
        parts = [curve.mechanism]
        if curve.release and len({release for release, _ in self.ways}) > 1:
            parts.append(curve.release)
        if curve.n and len({n for _, n in self.ways}) > 1:
            parts.append(f"n={curve.n}")
        return ", ".join(parts)

    def look(self, curve: Setting) -> dict[str, Any]:
        """Colour and marker of the mechanism, dashes of its release and n.

        All ways but the first have hollow markers; a curve without a way is drawn as the first.
        """
        from sottovoce.plotting import DASHES

        look = self.plain_look(curve.mechanism)
        way = self.ways.index((curve.release, curve.n)) if curve.release else 0
        return look | ({"linestyle": DASHES[way % 3], "markerfacecolor": "white"} if way else {})

    def plain_look(self, mechanism: str) -> dict[str, Any]:
        """Colour and marker of the mechanism where releases play no part.

        Later ones, which are drawn over earlier ones, are smaller, so that all can be seen.
        """
        from sottovoce.plotting import look

        number = self.mechanisms.index(mechanism)
        over = min(1.0, number / MOST_SIZES)
        return look(number) | {"markersize": 6 - 2.5 * over, "linewidth": 2 - over}

    @property
    def left_out(self) -> str:
        """A sentence for captions on the mechanisms that stand aside."""
        count = len(self.aside)
        return (
            f" {count} more settings of k and n are left to heat maps and tables." if count else ""
        )


def _aside(results: Results, mechanisms: Iterable[str]) -> frozenset[str]:
    """All but the first of many that differ in their boxes alone."""
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name in mechanisms:
        if (box := box_of(results, name)) is not None:
            alike.setdefault(box.rest, []).append(name)
    many = (names for names in alike.values() if len(names) > MOST_BOXES)
    return frozenset(name for names in many for name in names[1:])
