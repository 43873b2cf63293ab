"""A finished experiment: its tables and manifest, and values by setting and query."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sottovoce.errors import SottovoceError, UsageError
from sottovoce.experiments.tables import FILES, PRIVATE, need_arrow

if TYPE_CHECKING:
    import pyarrow as pa

MANIFEST = "manifest.json"


class Setting(NamedTuple):
    """One private setting, over all seeds. ``mechanism`` is its name in tables, without epsilon."""

    mechanism: str
    epsilon: float | None
    release: str
    n: int

    @property
    def curve(self) -> Setting:
        """The same with any epsilon: what a line of a figure shows."""
        return self._replace(epsilon=None)

    def __str__(self) -> str:
        return f"{self.mechanism}, {self.release}, n={self.n}" + (
            "" if self.epsilon is None else f", epsilon={self.epsilon:g}"
        )


class Results:
    """The tables in the folder of an experiment."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        try:
            self.manifest: dict[str, Any] = json.loads((self.folder / MANIFEST).read_text("utf-8"))
        except FileNotFoundError:
            raise UsageError(
                "the folder holds no finished experiment: run 'sottovoce experiment run FILE.toml "
                "--out DIR' first"
            ) from None
        except (OSError, ValueError) as error:
            raise SottovoceError(
                f"the experiment's manifest cannot be read ({type(error).__name__})"
            ) from None

    @cached_property
    def queries(self) -> pa.Table:
        """The long table of values by query."""
        return self._read("queries")

    @cached_property
    def words(self) -> pa.Table:
        """The long table of values by word."""
        return self._read("words")

    @cached_property
    def tasks(self) -> pa.Table:
        """The long table of values by test item."""
        return self._read("tasks")

    def distinct(self, column: str, **where: Any) -> list[Any]:
        """The values of a column of ``queries`` in order of appearance."""
        return list(dict.fromkeys(self.select(**where).column(column).to_pylist()))

    def select(self, **where: Any) -> pa.Table:
        """The rows of ``queries`` with these values."""
        need_arrow()
        import pyarrow.compute as pc

        table = self.queries
        for column, value in where.items():
            mask = pc.is_null(table[column]) if value is None else pc.equal(table[column], value)
            table = table.filter(mask)
        return table

    def values(
        self,
        measure: str,
        *,
        collection: str,
        engine: str = "",
        reranker: str = "",
        system: str = PRIVATE,
    ) -> dict[Setting, dict[str, float]]:
        """A measure's values by setting and query, each the mean over the seeds."""
        rows = self.select(
            collection=collection, engine=engine, reranker=reranker, system=system, measure=measure
        )
        columns = [
            rows.column(name).to_pylist()
            for name in ("mechanism", "epsilon", "release", "n", "query_id", "value")
        ]
        found: dict[Setting, dict[str, list[float]]] = {}
        for mechanism, epsilon, release, n, query, value in zip(*columns, strict=True):
            setting = Setting(mechanism, epsilon, release, n)
            found.setdefault(setting, {}).setdefault(query, []).append(value)
        return {
            setting: {query: float(np.mean(seeds)) for query, seeds in by_query.items()}
            for setting, by_query in found.items()
        }

    def _read(self, kind: str) -> pa.Table:
        need_arrow()
        import pyarrow.parquet as pq

        try:
            return pq.read_table(self.folder / f"{FILES[kind]}.parquet")
        except (OSError, ValueError) as error:
            raise SottovoceError(
                f"the table of {kind} cannot be read ({type(error).__name__}): run the experiment "
                "again, what is done is not done twice"
            ) from None


def curves(settings: Iterable[Setting]) -> dict[Setting, list[Setting]]:
    """Settings that differ in epsilon alone, the most private first, by what they share."""
    found: dict[Setting, list[Setting]] = {}
    for setting in settings:
        found.setdefault(setting.curve, []).append(setting)
    return {
        curve: sorted(points, key=lambda each: each.epsilon or 0.0)
        for curve, points in found.items()
    }
