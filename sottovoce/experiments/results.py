"""A finished experiment: its tables and manifest, and values by setting and query."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sottovoce.errors import SottovoceError, UsageError
from sottovoce.experiments.tables import FILES, PRIVATE, need_arrow
from sottovoce.types import Float64Array, IntArray

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


class Group(NamedTuple):
    """What all values of a grid share."""

    collection: str
    engine: str
    reranker: str
    system: str
    measure: str


class Grid(NamedTuple):
    """A measure's values by setting (rows) and query (columns), each the mean over its seeds.

    Not a number where a setting was not measured on a query.
    """

    settings: tuple[Setting, ...]
    queries: tuple[str, ...]
    values: Float64Array
    seeds: int
    """How many seeds there are in it."""


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
        grid = self.grid(
            measure, collection=collection, engine=engine, reranker=reranker, system=system
        )
        return {
            setting: {
                query: value
                for query, value in zip(grid.queries, row, strict=True)
                if not np.isnan(value)
            }
            for setting, row in zip(grid.settings, grid.values.tolist(), strict=True)
        }

    def grid(
        self,
        measure: str,
        *,
        collection: str,
        engine: str = "",
        reranker: str = "",
        system: str = PRIVATE,
    ) -> Grid:
        """The same as an array; settings and queries in order of appearance."""
        group = Group(collection, engine, reranker, system, measure)
        if group not in self._grids:
            self._grids[group] = self._pivot(group)
        return self._grids[group]

    @cached_property
    def groups(self) -> dict[Group, IntArray]:
        """The rows of ``queries`` that belong together, in order of appearance."""
        codes, groups = self._coded(Group._fields)
        order = np.argsort(codes, kind="stable")
        found, starts = np.unique(codes[order], return_index=True)
        rows = np.split(order, starts[1:]) if len(found) else []
        in_order = sorted(rows, key=lambda each: int(each[0]))
        return {Group(*groups[int(codes[each[0]])]): each for each in in_order}

    @cached_property
    def _grids(self) -> dict[Group, Grid]:
        return {}

    @cached_property
    def _settings(self) -> tuple[IntArray, list[Setting]]:
        codes, settings = self._coded(Setting._fields)
        return codes, [Setting(*each) for each in settings]

    @cached_property
    def _queries(self) -> tuple[IntArray, list[str]]:
        codes, queries = self._coded(("query_id",))
        return codes, [query for (query,) in queries]

    def _coded(self, columns: Iterable[str]) -> tuple[IntArray, list[tuple[Any, ...]]]:
        """A number for each row, and what each number says of these columns."""
        codes, found = np.zeros(self.queries.num_rows, dtype=np.int64), [()]
        for column in columns:
            encoded = self.queries[column].combine_chunks().dictionary_encode("encode")
            values = encoded.dictionary.to_pylist()
            both = codes * len(values) + encoded.indices.to_numpy(zero_copy_only=False)
            distinct, codes = np.unique(both, return_inverse=True)
            found = [
                (*found[each // len(values)], values[each % len(values)])
                for each in distinct.tolist()
            ]
        return codes, found

    def _pivot(self, group: Group) -> Grid:
        rows = self.groups.get(group)
        if rows is None:
            return Grid((), (), np.empty((0, 0)), 0)
        setting_codes, settings = self._settings
        query_codes, queries = self._queries
        by_setting, setting_of = _in_order(setting_codes[rows])
        by_query, query_of = _in_order(query_codes[rows])
        shape = len(by_setting), len(by_query)
        sums, counts = np.zeros(shape), np.zeros(shape)
        values = self._column("value")[rows]
        np.add.at(sums, (setting_of, query_of), values)
        np.add.at(counts, (setting_of, query_of), 1)
        means = np.full(shape, np.nan)
        np.divide(sums, counts, out=means, where=counts > 0)
        return Grid(
            tuple(settings[each] for each in by_setting),
            tuple(queries[each] for each in by_query),
            means,
            len(np.unique(self._column("seed")[rows])),
        )

    def _column(self, name: str) -> Any:
        return self.queries[name].to_numpy()

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


def grouped(
    table: pa.Table, keys: Sequence[str], values: Sequence[str] = ("value",)
) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """The rows that agree in the keys, in order of appearance: (keys, arrays of the values)."""
    together = table.group_by(list(keys), use_threads=False).aggregate(
        [(name, "list") for name in values]
    )
    names = zip(*(together[key].to_pylist() for key in keys), strict=True)
    lists = zip(*(together[f"{name}_list"] for name in values), strict=True)
    for key, arrays in zip(names, lists, strict=True):
        yield key, tuple(each.values.to_numpy(zero_copy_only=False) for each in arrays)


def _in_order(codes: IntArray) -> tuple[list[int], IntArray]:
    """Distinct codes in order of appearance, and the place of each row's code among them."""
    distinct, first, place = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return distinct[order].tolist(), rank[place]
