"""The strongest attack on each setting: what an attacker gets who tries them all.

Attacks on words (``words[mode]``) give the share of a query's words that came back. Query inference
(``lazy[light]``) that names the right query at the first guess has all its words, otherwise none is
counted. So both are shares of words, and for mechanisms that leave no words to line up there is
still a number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sottovoce.experiments.results import Results, Setting
from sottovoce.experiments.tables import PRIVATE
from sottovoce.types import Float64Array

KINDS = ("words[", "lazy[")
STRONGEST = "strongest"


@dataclass(frozen=True)
class Strongest:
    """The attack with the greatest mean over queries, and its values."""

    attack: str
    """A name of a measure, as ``words[mode]``."""
    queries: tuple[str, ...]
    values: Float64Array

    @property
    def mean(self) -> float:
        """The share of words that came back, over the queries."""
        return float(self.values.mean())

    @property
    def by_query(self) -> dict[str, float]:
        """The share of each query's words that came back."""
        return dict(zip(self.queries, self.values.tolist(), strict=True))


def measures_like(results: Results, collection: str, *starts: str) -> list[str]:
    """The privacy measures of a collection whose names start so, in order of appearance."""
    return [
        group.measure
        for group in results.groups
        if group.collection == collection
        and group.system == PRIVATE
        and not group.engine
        and group.measure.startswith(starts)
    ]


def strongest(results: Results, collection: str) -> dict[Setting, Strongest]:
    """The strongest attack on each setting; settings that nothing attacked are left out.

    The attack is chosen by the mean that is then reported: where two are alike, this errs on the
    side of the attacker.
    """
    found: dict[Setting, Strongest] = {}
    for measure in measures_like(results, collection, *KINDS):
        grid = results.grid(measure, collection=collection)
        for setting, row in zip(grid.settings, grid.values, strict=True):
            here = np.flatnonzero(~np.isnan(row))
            if not len(here):
                continue
            this = Strongest(measure, tuple(grid.queries[each] for each in here), row[here])
            if setting not in found or this.mean > found[setting].mean:
                found[setting] = this
    return found
