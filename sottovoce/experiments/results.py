"""A finished experiment: its tables and manifest, and values by setting and query.

Labels in the tables are parsed here, once; everything else works with measures.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sottovoce.errors import SottovoceError, UsageError
from sottovoce.experiments.measures import (
    DENIABILITY,
    MAIN_MEASURE,
    Measure,
    MeasureKind,
    NeighbourDistance,
    RelativeKind,
    RelativesOf,
)
from sottovoce.experiments.store import MANIFEST
from sottovoce.experiments.tables import FILES, PRIVATE, need_arrow
from sottovoce.types import Float64Array, IntArray

if TYPE_CHECKING:
    import pyarrow as pa


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


class Place(NamedTuple):
    """Where searches were run."""

    collection: str
    engine: str
    reranker: str


class Group(NamedTuple):
    """What all values of a grid share."""

    collection: str
    engine: str
    reranker: str
    system: str
    measure: Measure

    @property
    def place(self) -> Place:
        """Where it was measured; privacy has neither engine nor re-ranker."""
        return Place(self.collection, self.engine, self.reranker)


class Grid(NamedTuple):
    """A measure's values by setting (rows) and query (columns), each the mean over its seeds.

    Not a number where a setting was not measured on a query.
    """

    settings: tuple[Setting, ...]
    queries: tuple[str, ...]
    values: Float64Array
    seeds: int
    """How many seeds there are in it."""

    @property
    def counts(self) -> list[int]:
        """On how many queries each setting was measured."""
        return [int(count) for count in (~np.isnan(self.values)).sum(axis=1)]


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

    # The tables

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

    # What was measured, and where

    @cached_property
    def groups(self) -> dict[Group, IntArray]:
        """The rows of ``queries`` that belong together, in order of appearance."""
        codes, labels = self._coded(Group._fields)
        order = np.argsort(codes, kind="stable")
        distinct, starts = np.unique(codes[order], return_index=True)
        rows = np.split(order, starts[1:]) if len(distinct) else []
        groups = {}
        for of_group in sorted(rows, key=lambda numbers: int(numbers[0])):
            where = labels[int(codes[of_group[0]])]
            groups[Group(*where[:-1], measure=Measure.read(where[-1]))] = of_group
        return groups

    @property
    def collections(self) -> list[str]:
        """Those that searches or attacks were run on."""
        return list(dict.fromkeys(group.collection for group in self.groups))

    @property
    def places(self) -> list[Place]:
        """Where searches were run, in order of appearance."""
        return list(dict.fromkeys(group.place for group in self.groups if group.engine))

    def measures(self, place: Place) -> list[Measure]:
        """What was measured of private searches at a place."""
        return [
            group.measure
            for group in self.groups
            if group.place == place and group.system == PRIVATE
        ]

    def main_measure(self, place: Place) -> Measure | None:
        """nDCG@10, or what stands first where that was not measured."""
        of_answers = [each for each in self.measures(place) if not each.counts_pool]
        return MAIN_MEASURE if MAIN_MEASURE in of_answers else next(iter(of_answers), None)

    def privacy_measures(self, collection: str, *kinds: MeasureKind) -> list[Measure]:
        """Privacy measures of a collection, of these kinds, in order of appearance."""
        measures = self.measures(Place(collection, "", ""))
        return [measure for measure in measures if measure.kind in kinds]

    # Values by setting and query

    def values(
        self,
        measure: Measure | str,
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
        measure: Measure | str,
        *,
        collection: str,
        engine: str = "",
        reranker: str = "",
        system: str = PRIVATE,
    ) -> Grid:
        """The same as an array; settings and queries in order of appearance."""
        group = Group(collection, engine, reranker, system, Measure.read(measure))
        if group not in self._grids:
            self._grids[group] = self._pivot(group)
        return self._grids[group]

    @cached_property
    def _grids(self) -> dict[Group, Grid]:
        return {}

    @cached_property
    def _settings(self) -> tuple[IntArray, list[Setting]]:
        codes, settings = self._coded(Setting._fields)
        return codes, [Setting(*fields) for fields in settings]

    @cached_property
    def _queries(self) -> tuple[IntArray, list[str]]:
        codes, queries = self._coded(("query_id",))
        return codes, [query for (query,) in queries]

    def _coded(self, columns: Iterable[str]) -> tuple[IntArray, list[tuple[Any, ...]]]:
        """A number for each row, and what each number says of these columns."""
        codes, meanings = np.zeros(self.queries.num_rows, dtype=np.int64), [()]
        for column in columns:
            # Number the pairs of what the columns before and this one say, then without gaps.
            encoded = self.queries[column].combine_chunks().dictionary_encode("encode")
            values = encoded.dictionary.to_pylist()
            pairs = codes * len(values) + encoded.indices.to_numpy(zero_copy_only=False)
            distinct, codes = np.unique(pairs, return_inverse=True)
            meanings = [
                (*meanings[pair // len(values)], values[pair % len(values)])
                for pair in distinct.tolist()
            ]
        return codes, meanings

    def _pivot(self, group: Group) -> Grid:
        rows = self.groups.get(group)
        if rows is None:
            return Grid((), (), np.empty((0, 0)), 0)
        setting_codes, settings = self._settings
        query_codes, queries = self._queries
        by_setting, setting_of = _in_order(setting_codes[rows])
        by_query, query_of = _in_order(query_codes[rows])
        shape = len(by_setting), len(by_query)
        # The mean over seeds of each setting and query.
        sums, counts = np.zeros(shape), np.zeros(shape)
        np.add.at(sums, (setting_of, query_of), self._column("value")[rows])
        np.add.at(counts, (setting_of, query_of), 1)
        means = np.full(shape, np.nan)
        np.divide(sums, counts, out=means, where=counts > 0)
        return Grid(
            tuple(settings[code] for code in by_setting),
            tuple(queries[code] for code in by_query),
            means,
            len(np.unique(self._column("seed")[rows])),
        )

    def _column(self, name: str) -> Any:
        return self.queries[name].to_numpy()

    # Values by word

    def deniability(self) -> dict[str, dict[tuple[str, float | None], dict[str, Float64Array]]]:
        """N_w, S_w and so on of all words, by space, then by mechanism and epsilon."""
        spaces: dict[str, dict[tuple[str, float | None], dict[str, Float64Array]]] = {}
        keys = ("space", "mechanism", "epsilon", "measure")
        for (space, mechanism, epsilon, measure), (values,) in grouped(self.words, keys):
            if measure in DENIABILITY:
                settings = spaces.setdefault(space, {})
                settings.setdefault((mechanism, epsilon), {})[measure] = values
        return spaces

    def neighbour_distances(self) -> dict[str, dict[int, Float64Array]]:
        """Distances of words to their neighbours, by space, then by the neighbour's rank."""
        spaces: dict[str, dict[int, Float64Array]] = {}
        for (space, measure), (values,) in grouped(self.words, ("space", "measure")):
            if (distance := NeighbourDistance.read(measure)) is not None:
                spaces.setdefault(space, {})[distance.rank] = values
        return spaces

    def relatives(
        self,
    ) -> dict[tuple[str, str], dict[RelativeKind, dict[str, dict[str, float]]]]:
        """By space and plotted word, the measures of its relatives of each kind, by relative."""
        plots: dict[tuple[str, str], dict[RelativeKind, dict[str, dict[str, float]]]] = {}
        keys = ("space", "mechanism", "measure")
        for (space, label, measure), (words, values) in grouped(
            self.words, keys, ("word", "value")
        ):
            if (relatives := RelativesOf.read(label)) is not None:
                kinds = plots.setdefault((space, relatives.word), {})
                by_word = kinds.setdefault(relatives.kind, {})
                for word, value in zip(words.tolist(), values.tolist(), strict=True):
                    by_word.setdefault(word, {})[measure] = value
        return plots

    @property
    def mechanisms(self) -> list[str]:
        """All that the tables name, in order of appearance."""
        tables = (self.queries, self.words, self.tasks)
        names = [name for table in tables for name in table["mechanism"].unique().to_pylist()]
        return [name for name in dict.fromkeys(names) if name and RelativesOf.read(name) is None]


def curves(settings: Iterable[Setting]) -> dict[Setting, list[Setting]]:
    """Settings that differ in epsilon alone, the most private first, by what they share."""
    by_curve: dict[Setting, list[Setting]] = {}
    for setting in settings:
        by_curve.setdefault(setting.curve, []).append(setting)
    return {
        curve: sorted(points, key=lambda setting: setting.epsilon or 0.0)
        for curve, points in by_curve.items()
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
        yield key, tuple(array.values.to_numpy(zero_copy_only=False) for array in arrays)


def _in_order(codes: IntArray) -> tuple[list[int], IntArray]:
    """Distinct codes in order of appearance, and the place of each row's code among them."""
    distinct, first, place = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return distinct[order].tolist(), rank[place]
