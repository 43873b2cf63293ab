"""A finished experiment: its tables and manifest, and values by setting and query.

Labels in the tables are parsed here, once; everything else works with measures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, cached_property
from inspect import get_annotations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sottovoce.errors import SottovoceError, UsageError
from sottovoce.experiments.measures import (
    DENIABILITY,
    MAIN_MEASURE,
    Measure,
    MeasureKind,
    RelativeKind,
    read_neighbour,
    read_relatives,
)
from sottovoce.experiments.store import MANIFEST
from sottovoce.experiments.tables import (
    ALWAYS,
    FILES,
    ON_SETS,
    PRIVATE,
    UNTRIED_ON_SETS,
    make_table,
    need_arrow,
)
from sottovoce.files import parse_json
from sottovoce.mechanisms import parse
from sottovoce.mechanisms.base import Mechanism, SetMechanism, public_name
from sottovoce.types import Float64Array

if TYPE_CHECKING:
    import pyarrow as pa

EPSILON = "epsilon"
UNKNOWN = "what is not recorded"
OF = frozenset(("collection", "mechanism"))
"""What facts on attacks are about; their other entries are attacks."""


class Parameter(NamedTuple):
    """What a curve runs over.

    Others of the same name, of mechanisms that have nothing to do with each other, mean something
    else: ``owner`` is the mechanism that it comes from. Epsilon has none.
    """

    name: str = EPSILON
    owner: str = ""

    @classmethod
    def of(cls, kind: type[Mechanism], name: str) -> Parameter:
        """The parameter of this public name; what is built on a mechanism shares its own."""
        if name == EPSILON:
            return cls()
        fields = {field.name for field in kind.parameters() if public_name(field) == name}
        having = [base for base in kind.__mro__ if not fields.isdisjoint(get_annotations(base))]
        first = having[-1] if having else kind
        return cls(name, getattr(first, "name", first.__name__))


def parameter_names(parameters: Iterable[Parameter]) -> dict[Parameter, str]:
    """How each is called among the others: with its owner, if not all of its name have the same."""
    distinct = dict.fromkeys(parameters)
    called = Counter(parameter.name for parameter in distinct)
    return {
        parameter: parameter.name
        if called[parameter.name] == 1
        else f"{parameter.name} of {parameter.owner}"
        for parameter in distinct
    }


class Axis(NamedTuple):
    """What the curves of a mechanism run over.

    ``larger_hides``: the larger the parameter, the more private. ``is_set``: what leaves is a set,
    and the mechanism decides itself how many queries that are.
    """

    parameter: Parameter = Parameter()
    larger_hides: bool = False
    is_set: bool = False


class Point(NamedTuple):
    """A place on a curve: ``value`` is None where there is nothing to vary."""

    parameter: Parameter = Parameter()
    value: float | None = None

    @classmethod
    def of(cls, axis: Axis, value: float | None) -> Point:
        """Those of all mechanisms that have nothing to vary are one."""
        return cls() if value is None else cls(axis.parameter, value)


class Setting(NamedTuple):
    """One private setting, over all seeds. ``mechanism`` is its name in tables, without epsilon.

    ``epsilon`` is the value of the parameter that ``axis`` names.
    """

    mechanism: str
    epsilon: float | None
    release: str
    n: int
    axis: Axis = Axis()

    @property
    def curve(self) -> Setting:
        """The same with any epsilon: what a line of a figure shows. Of sets also with any n."""
        return self._replace(epsilon=None, n=0 if self.axis.is_set else self.n)

    @property
    def point(self) -> Point:
        return Point.of(self.axis, self.epsilon)

    def __str__(self) -> str:
        return f"{self.mechanism}, {self.release}, n={self.n}" + (
            "" if self.epsilon is None else f", {self.axis.parameter.name}={self.epsilon:g}"
        )


SETTING = ("mechanism", "epsilon", "release", "n")
"""The columns that tell settings apart."""


class Place(NamedTuple):
    """Where something was measured; privacy has neither engine nor re-ranker."""

    collection: str
    engine: str = ""
    reranker: str = ""


class Group(NamedTuple):
    """What all values of a grid share."""

    place: Place
    system: str
    measure: Measure


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
        self._grid = cache(self._pivoted)
        try:
            self.manifest: dict[str, Any] = parse_json((self.folder / MANIFEST).read_text("utf-8"))
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
        return self._read("queries")

    @cached_property
    def words(self) -> pa.Table:
        return self._read("words")

    @cached_property
    def tasks(self) -> pa.Table:
        return self._read("tasks")

    @cached_property
    def audits(self) -> pa.Table:
        return self._read("audits")

    @cached_property
    def samples(self) -> pa.Table:
        return self._read("samples")

    def _read(self, kind: str) -> pa.Table:
        need_arrow()
        import pyarrow.parquet as pq

        file = self.folder / f"{FILES[kind]}.parquet"
        if kind not in ALWAYS and not file.exists():
            return make_table(kind, [])
        try:
            return pq.read_table(file)
        except (OSError, ValueError) as error:
            raise SottovoceError(
                f"the table of {kind} cannot be read ({type(error).__name__}): run the experiment "
                "again, what is done is not done twice"
            ) from None

    # What was measured, and where

    @cached_property
    def groups(self) -> list[Group]:
        """What was measured, in order of appearance."""
        columns = (*Place._fields, "system", "measure")
        distinct = self.queries.group_by(list(columns), use_threads=False).aggregate([])
        return [
            Group(Place(*place), system, Measure.read(label))
            for *place, system, label in _rows(distinct, columns)
        ]

    @property
    def collections(self) -> list[str]:
        """Those that searches or attacks were run on."""
        return list(dict.fromkeys(group.place.collection for group in self.groups))

    @property
    def places(self) -> list[Place]:
        """Where searches were run, in order of appearance."""
        return list(dict.fromkeys(group.place for group in self.groups if group.place.engine))

    def measures(self, place: Place, *kinds: MeasureKind) -> list[Measure]:
        """What was measured of private searches at a place, or the privacy of a collection."""
        return [
            group.measure
            for group in self.groups
            if (group.place, group.system) == (place, PRIVATE)
            and (not kinds or group.measure.kind in kinds)
        ]

    def main_measure(self, place: Place) -> Measure | None:
        """nDCG@10, or what stands first where that was not measured."""
        of_answers = self.measures(place, "answers")
        return MAIN_MEASURE if MAIN_MEASURE in of_answers else next(iter(of_answers), None)

    # Values by setting and query

    def values(
        self, measure: Measure | str, place: Place, system: str = PRIVATE
    ) -> dict[Setting, dict[str, float]]:
        """A measure's values by setting and query, each the mean over the seeds."""
        grid = self.grid(measure, place, system)
        by_setting = {}
        for setting, row in zip(grid.settings, grid.values.tolist(), strict=True):
            values = zip(grid.queries, row, strict=True)
            by_setting[setting] = {query: value for query, value in values if not np.isnan(value)}
        return by_setting

    def knowledge(self, attack: str, collection: str, mechanism: str = "") -> str:
        """What the attacker behind a measure knew, in words.

        That of each mechanism, where it differs and ``mechanism`` names none.
        """
        of_mechanisms: dict[str, dict[str, None]] = {}
        for facts in (*self._facts("attackers"), *self._facts(ON_SETS)):
            of = facts.get("mechanism", "")
            is_here = facts.get("collection", collection) == collection
            is_asked = not mechanism or not of or mechanism == of
            if attack in facts and is_here and is_asked:
                of_mechanisms.setdefault(str(facts[attack]), {})[of] = None
        if len(of_mechanisms) < 2:
            return next(iter(of_mechanisms), UNKNOWN)
        named = ((", ".join(filter(None, of)), knows) for knows, of in of_mechanisms.items())
        return "; or ".join(f"of {of}: {knows}" if of else knows for of, knows in named)

    def untried_on_sets(self, collection: str) -> dict[tuple[tuple[str, ...], str], list[str]]:
        """Attacks on sets that were not tried, by mechanisms and reason."""
        mechanisms: dict[tuple[str, str], dict[str, None]] = {}
        for facts in self._facts(UNTRIED_ON_SETS):
            if facts["collection"] == collection:
                for attack in facts.keys() - OF:
                    mechanisms.setdefault((attack, facts[attack]), {})[facts["mechanism"]] = None
        untried: dict[tuple[tuple[str, ...], str], list[str]] = {}
        for (attack, why), of in sorted(mechanisms.items()):
            untried.setdefault((tuple(of), why), []).append(attack)
        return untried

    def _facts(self, kind: str) -> Sequence[dict[str, Any]]:
        facts: Sequence[dict[str, Any]] = self.manifest["facts"].get(kind, ())
        return facts

    def axis(self, mechanism: str) -> Axis:
        """What the curves of a mechanism run over; ``mechanism`` is its name in tables."""
        return self._axes.get(mechanism, Axis())

    @cached_property
    def _axes(self) -> dict[str, Axis]:
        axes = {}
        for system in self.manifest.get("experiment", {}).get("systems", ()):
            with suppress(UsageError):  # A mechanism that is not here any more.
                kind, _ = parse(system["spec"])
                name = system.get("parameter", EPSILON)
                larger_hides = kind.hides_more_the_larger(name)
                is_set = issubclass(kind, SetMechanism)
                axes[system["label"]] = Axis(Parameter.of(kind, name), larger_hides, is_set)
        return axes

    def means(self, measure: Measure, place: Place, system: str = PRIVATE) -> dict[Setting, float]:
        """A measure's mean over queries for each setting."""
        grid = self.grid(measure, place, system)
        return dict(zip(grid.settings, np.nanmean(grid.values, axis=1).tolist(), strict=True))

    def is_on_sets(self, attack: str) -> bool:
        """Whether an attack names which of the queries that left stands for the one asked."""
        return attack in self._on_sets

    @cached_property
    def _on_sets(self) -> frozenset[str]:
        """As recorded; where it was not, all that met sets alone and are no encoder."""
        if recorded := self._facts(ON_SETS):
            return frozenset(name for facts in recorded for name in facts) - OF
        met: dict[str, set[bool]] = {}
        for group in self.groups:
            if group.measure.kind == "lazy":
                rows = self.grid(group.measure, group.place).settings
                met.setdefault(group.measure.detail, set()).update(row.axis.is_set for row in rows)
        encoders = {name for facts in self._facts("encoders") for name in facts}
        return frozenset(name for name, are_sets in met.items() if are_sets == {True}) - encoders

    def grid(self, measure: Measure | str, place: Place, system: str = PRIVATE) -> Grid:
        """The same as an array; settings and queries in order of appearance."""
        return self._grid(Group(place, system, Measure.read(measure)))

    def _pivoted(self, group: Group) -> Grid:
        need_arrow()
        import pyarrow.compute as pc

        rows = self.queries
        where = {"measure": group.measure.label, "system": group.system, **group.place._asdict()}
        for column, value in where.items():
            rows = rows.filter(pc.equal(rows[column], value))
        # The mean over the seeds of each setting and query, then a row a setting.
        columns = (*SETTING, "query_id")
        means = rows.group_by(list(columns), use_threads=False).aggregate([("value", "mean")])
        pairs = [
            (Setting(mechanism, epsilon, release, n, self.axis(mechanism)), query)
            for mechanism, epsilon, release, n, query in _rows(means, columns)
        ]
        settings = {setting: None for setting, _ in pairs}
        queries = {query: None for _, query in pairs}
        numbers = [{item: at for at, item in enumerate(axis)} for axis in (settings, queries)]
        values = np.full((len(settings), len(queries)), np.nan)
        for (setting, query), value in zip(pairs, means["value_mean"].to_pylist(), strict=True):
            values[numbers[0][setting], numbers[1][query]] = value
        return Grid(tuple(settings), tuple(queries), values, len(pc.unique(rows["seed"])))

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
            if (rank := read_neighbour(measure)) is not None:
                spaces.setdefault(space, {})[rank] = values
        return spaces

    def relatives(self) -> dict[tuple[str, str], dict[RelativeKind, dict[str, dict[str, float]]]]:
        """By space and plotted word, the measures of its relatives of each kind, by relative."""
        plots: dict[tuple[str, str], dict[RelativeKind, dict[str, dict[str, float]]]] = {}
        keys = ("space", "mechanism", "measure")
        by_relative = grouped(self.words, keys, ("word", "value"))
        for (space, label, measure), (words, values) in by_relative:
            if (relatives := read_relatives(label)) is not None:
                kind, plotted = relatives
                by_word = plots.setdefault((space, plotted), {}).setdefault(kind, {})
                for word, value in zip(words.tolist(), values.tolist(), strict=True):
                    by_word.setdefault(word, {})[measure] = value
        return plots

    @property
    def mechanisms(self) -> list[str]:
        """All that the tables name, in order of appearance."""
        tables = (self.queries, self.words, self.tasks, self.audits)
        names = [name for table in tables for name in table["mechanism"].unique().to_pylist()]
        return [name for name in dict.fromkeys(names) if name and read_relatives(name) is None]


def curves(settings: Iterable[Setting]) -> dict[Setting, list[Setting]]:
    """Settings that differ in epsilon alone, the most private first, by what they share.

    That is the smallest first, or the largest of a parameter that hides more the larger it is.
    """
    by_curve: dict[Setting, list[Setting]] = {}
    for setting in settings:
        by_curve.setdefault(setting.curve, []).append(setting)
    return {
        curve: sorted(
            points, key=lambda setting: setting.epsilon or 0.0, reverse=curve.axis.larger_hides
        )
        for curve, points in by_curve.items()
    }


def grouped(
    table: pa.Table, keys: Sequence[str], values: Sequence[str] = ("value",)
) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """The rows that agree in the keys, in order of appearance: (keys, arrays of the values)."""
    together = table.group_by(list(keys), use_threads=False).aggregate(
        [(name, "list") for name in values]
    )
    lists = zip(*(together[f"{name}_list"] for name in values), strict=True)
    for key, arrays in zip(_rows(together, keys), lists, strict=True):
        yield key, tuple(array.values.to_numpy(zero_copy_only=False) for array in arrays)


def _rows(table: pa.Table, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    return zip(*(table[column].to_pylist() for column in columns), strict=True)
