"""The mechanisms and published releases of a file, put together and tried.

A mechanism takes what its table does not say from ``[grid]`` and ``[texts]``. It is built, as far
as this costs nothing, so that its own checks speak.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from sottovoce.choices import Release
from sottovoce.errors import SottovoceError
from sottovoce.experiments.schema.experiment import (
    FROM_COLLECTION,
    FileTables,
    MechanismTable,
    Published,
    System,
    Texts,
    TextsTable,
    chosen_settings,
)
from sottovoce.experiments.schema.problems import Document, Place
from sottovoce.experiments.schema.values import Folder, explained, meant
from sottovoce.mechanisms import Mechanism, parse
from sottovoce.mechanisms.base import SetMechanism, public_name
from sottovoce.mechanisms.build import RESOURCE_KINDS, has_epsilon, resource_kind
from sottovoce.pools import Pool
from sottovoce.text.protection import protected_tags
from sottovoce.types import Float64Array, IntArray

EPSILON = "{epsilon}"
UNUSABLE = (SottovoceError, OSError, ValueError)
"""What loading something that a file names may raise."""


class _Block:
    """A mechanism of the file: a ``[[mechanism]]``, or a spec in ``[grid] mechanisms``."""

    def __init__(self, document: Document, table: MechanismTable, place: Place) -> None:
        self.table = table
        self._document, self._place = document, place
        self._is_spec = place[0] == "grid"

    def name(self, key: str) -> str:
        """How messages name a key."""
        if self._is_spec:
            return f"{self._document.name(self._place)}, {key}"
        return self._document.name((*self._place, key))

    def says(self, key: str) -> bool:
        return not self._is_spec and self._document.says(*self._place, key)

    def problem(self, key: str, what: object) -> None:
        self._document.problem(self.name(key), what)


class SystemReader:
    """Reads the mechanisms of a file; what is wrong becomes a problem of the document."""

    def __init__(self, document: Document, folder: Folder, tables: FileTables) -> None:
        self.document, self.folder, self.tables = document, folder, tables
        self.texts = _texts(tables.texts, Texts())
        self._trial, self._strings = cache(_trial), cache(PoolWithoutVectors.of)
        self._tried(_kinds_said(tables.texts), self.texts, lambda setting: f"texts.{setting}")

    def systems(self) -> tuple[System, ...]:
        """The mechanisms of [grid], and each [[mechanism]]."""
        blocks = [
            _Block(self.document, MechanismTable(spec=spec), ("grid", "mechanisms", number))
            for number, spec in enumerate(self.tables.grid.mechanisms)
        ]
        for number, table in enumerate(self.tables.mechanism):
            blocks.append(_Block(self.document, table, ("mechanism", number)))
        systems: list[System] = []
        for block in blocks:
            if (parsed := _parsed(block, block.table.spec)) is not None:
                system = self._system(block, *parsed)
                for earlier in systems:
                    _refuse_double(block, system, earlier)
                systems.append(system)
        return tuple(systems)

    def _system(self, block: _Block, kind: type[Mechanism], arguments: dict[str, Any]) -> System:
        table = block.table
        system = System(
            spec=table.spec,
            label=table.label or table.spec,
            epsilons=self._epsilons(block, kind, arguments),
            releases=self._releases(block, kind),
            texts=_texts(table, self.texts),
            parameter=table.parameter or "epsilon",
        )
        built = self._check_built(block, kind, arguments, system)
        sizes = tuple(made.set_size for made in built if isinstance(made, SetMechanism))
        return replace(system, set_sizes=sizes)

    def _epsilons(
        self, block: _Block, kind: type[Mechanism], arguments: dict[str, Any]
    ) -> tuple[float | None, ...]:
        """Values of the parameter that the mechanism's curve runs over, the smallest first."""
        if block.says("parameter") or block.says("values"):
            return _values(block, kind, arguments)
        if not has_epsilon(kind):
            if block.says("epsilons"):
                block.problem("epsilons", f"{kind.name} has no epsilon: leave the key out")
            return (None,)
        if not block.says("epsilons") and not self.document.says("grid", "epsilons"):
            block.problem("epsilons", "there are none: list them here or in [grid]")
        return tuple(sorted(block.table.epsilons or self.tables.grid.epsilons or ()))

    def _releases(self, block: _Block, kind: type[Mechanism]) -> tuple[Release, ...]:
        """Those of the block must be possible; of the grid's those are left out that are not."""
        of_block, of_grid = block.table.releases, self.tables.grid.releases
        if issubclass(kind, SetMechanism):
            return ("once",)  # A set is one release, whatever was asked for.
        if kind.supports_once:
            return of_block or of_grid
        cannot = f"{kind.name} cannot release 'once', as it draws no noise"
        if of_block:
            if "once" in of_block:
                block.problem("releases", f"{cannot}: use 'independent'")
            return of_block
        possible = tuple(release for release in of_grid if release != "once")
        if not possible:
            nothing_else = f'{cannot}, and [grid] has nothing else: give it ["independent"]'
            block.problem("releases", nothing_else)
        return possible

    def _check_built(
        self, block: _Block, kind: type[Mechanism], arguments: dict[str, Any], system: System
    ) -> list[Mechanism]:
        """Build each point of its curve, as far as this costs nothing: its own checks speak."""

        def place(setting: str | None) -> str:
            if setting is None or block.says(setting):
                return block.name(setting or "spec")
            return f"texts.{setting}"

        resources = self._tried(
            dict.fromkeys([*kind.resources(), *_kinds_said(block.table)]), system.texts, place
        )
        for name in kind.resources():
            for setting, why in resource_kind(name).required.items():
                if name not in FROM_COLLECTION and system.texts.settings(name)[setting] is None:
                    block.problem(setting, f"{why}: give {setting} here or in [texts]")
                    resources.pop(name, None)
        if issubclass(kind, SetMechanism) and "pool" in resources:
            resources |= self._pool_as_read(system.texts, place)
        if not system.epsilons or not resources.keys() >= {*kind.resources()}:
            return []
        all_built: list[Mechanism] = []
        for epsilon in system.epsilons:
            given = dict(arguments)
            try:
                if system.parameter != "epsilon":
                    given = parse(system.spec_at(epsilon))[1]
                elif epsilon is not None:
                    given["epsilon"] = epsilon
                built = kind(**{name: resources[name] for name in kind.resources()}, **given)
            except SottovoceError as error:
                block.problem("spec" if system.parameter == "epsilon" else "values", error)
                return []
            all_built.append(built)
        self._check_use(block, built, system)
        return all_built

    def _pool_as_read(self, texts: Texts, place: Callable[[str | None], str]) -> dict[str, Any]:
        """The pool by which sets are checked: how large they can be depends on its strings."""
        settings = tuple(texts.settings("pool").items())
        try:
            return {"pool": self._strings(settings)}
        except UNUSABLE as error:
            self.document.problem(place("pool"), explained(error))
            return {}

    def _check_use(self, block: _Block, built: Mechanism, system: System) -> None:
        """Whether its releases are possible, and the tagger that it needs is there."""
        if built.cuts_texts and protected_tags(system.texts.protect or built.protects):
            from sottovoce.language.tagging import load_tagger

            try:
                load_tagger()
            except SottovoceError as error:
                block.problem("protect", error)
        real = all(resource_kind(name).cheap for name in built.resources())
        if "once" in system.releases and built.supports_once and real:
            try:
                built.check_once(max(self.tables.grid.n))
            except SottovoceError as error:
                block.problem("releases", f"{error}, with grid.n")

    def _tried(
        self, names: Iterable[str], texts: Texts, place: Callable[[str | None], str]
    ) -> dict[str, Any]:
        """What mechanisms can be built with; what cannot be loaded becomes a problem.

        Settings are added one by one, so that the one to blame is known. What takes time to load is
        stood in for: no parameter's range depends on it.
        """
        resources = {}
        for name in names:
            kind = resource_kind(name)
            settings: dict[str, Any] = dict(kind.settings)
            added: list[str | None] = [*settings]
            for setting in added or [None]:
                if setting is not None:
                    settings[setting] = texts.settings(name)[setting]
                try:
                    resources[name] = self._trial(name, tuple(settings.items()))
                except UNUSABLE as error:
                    self.document.problem(place(setting), explained(error))
                    resources.pop(name, None)
                    break
        return resources

    def published(self, systems: tuple[System, ...]) -> tuple[Published, ...]:
        """Each [[published]], with files that are there; its label is none of a system."""
        taken = {system.label for system in systems}
        published = []
        for number, table in enumerate(self.tables.published):
            block = _Block(
                self.document, MechanismTable(spec=table.spec or ""), ("published", number)
            )
            if table.label in taken:
                block.problem("label", f"'{table.label}' names something above: choose another")
            taken.add(table.label)
            files, epsilons = self._files(block, table)
            if table.spec and (parsed := _parsed(block, table.spec)) is not None:
                if has_epsilon(parsed[0]) and None in epsilons:
                    problem = f"{parsed[0].name} has one: say which was used, or leave spec out"
                    block.problem("epsilons", problem)
                else:
                    assumed = System(table.spec, table.label, epsilons, (), self.texts)
                    self._check_built(block, *parsed, assumed)
            published.append(Published(table.label, files, epsilons, table.spec))
        return tuple(published)

    def _files(
        self, block: _Block, table: Published
    ) -> tuple[tuple[str, ...], tuple[float | None, ...]]:
        """Files with their epsilons, the smallest first: a list, or ``{epsilon}`` in a pattern."""
        names = table.files
        epsilons = tuple(epsilon for epsilon in table.epsilons if epsilon is not None)
        if len(epsilons) < len(table.epsilons):
            block.problem("epsilons", "each must be a number")
        if len(names) == 1 and EPSILON in names[0]:
            if not block.says("epsilons"):
                block.problem("epsilons", f"list them, each for a file: files has {EPSILON} in it")
            names = tuple(names[0].replace(EPSILON, f"{epsilon:g}") for epsilon in epsilons)
        paths = []
        for number, name in enumerate(names, start=1):
            try:
                paths.append(self.folder.file(name))
            except SottovoceError as error:
                paths.append(name)
                block.problem("files" if len(names) < 2 else f"files, value {number}", error)
        if not epsilons and len(names) < 2:
            return tuple(paths), (None,) * len(paths)
        if len(epsilons) != len(names):
            block.problem("epsilons", f"there are {len(names)} files: give as many epsilons")
        pairs = sorted(zip(epsilons, paths, strict=False))
        return tuple(path for _, path in pairs), tuple(epsilon for epsilon, _ in pairs)


class PoolWithoutVectors(Pool):
    """The strings of a pool and their popularity: enough to build a mechanism by, and not to draw.

    What vectors would decide is made up; no parameter's range depends on it.
    """

    @classmethod
    def of(cls, settings: tuple[tuple[str, Any], ...]) -> PoolWithoutVectors:
        pool = cls.__new__(cls)
        vars(pool).update(vars(resource_kind("pool").open(dict(settings))))
        return pool

    @property
    def sensitivity(self) -> Float64Array:
        """All strings alike."""
        return np.zeros(len(self))

    def subjects(self, count: int) -> tuple[IntArray, IntArray]:
        """Subjects of equal size."""
        places = np.arange(len(self))
        return places * count // len(self), places


def _trial(name: str, settings: tuple[tuple[str, Any], ...]) -> Any:
    kind = resource_kind(name)
    if kind.cheap and name not in FROM_COLLECTION:
        return kind.load(dict(settings), None)
    return kind.stand_in(dict(settings))


def _texts(table: TextsTable, default: Texts) -> Texts:
    """What a table says of texts; the default where it says nothing."""
    return Texts.of(
        unknown=table.unknown or default.unknown,
        protect=table.protect or default.protect,
        order=table.order or default.order,
        pad_to=default.pad_to if table.pad_to is None else table.pad_to,
        unprotected=table.unprotected or default.unprotected,
        phrases=default.phrases if table.phrases is None else table.phrases,
        **dict(default.resources) | _settings_said(table),
    )


def _settings_said(table: TextsTable) -> dict[str, Any]:
    settings = {name: getattr(table, name, None) for name in chosen_settings()}
    return {name: value for name, value in settings.items() if value is not None}


def _kinds_said(table: TextsTable) -> list[str]:
    """The kinds of resources of which a table has some setting."""
    settings = _settings_said(table)
    return [
        name
        for name, kind in RESOURCE_KINDS.items()
        if name not in FROM_COLLECTION and not settings.keys().isdisjoint(kind.settings)
    ]


def _parsed(block: _Block, spec: str) -> tuple[type[Mechanism], dict[str, Any]] | None:
    """The class and arguments of a spec, which leaves epsilon to the grid if that varies it."""
    try:
        kind, arguments = parse(spec)
    except SottovoceError as error:
        block.problem("spec", error)
        return None
    varies_another = block.says("parameter") or block.says("values")
    if not varies_another and arguments.pop("epsilon", None) is not None:
        block.problem("spec", "leave epsilon out of it, and list it in epsilons")
    return kind, arguments


def _values(
    block: _Block, kind: type[Mechanism], arguments: dict[str, Any]
) -> tuple[float | None, ...]:
    """The values of another parameter than epsilon, which then is part of the spec."""
    table = block.table
    known = [name for name in map(public_name, kind.parameters()) if name != "epsilon"]
    if block.says("epsilons"):
        block.problem("epsilons", "a curve has one parameter: leave epsilons out, or parameter")
    elif not block.says("values") or not block.says("parameter"):
        block.problem("values", "parameter and values belong together: give both, or neither")
    elif table.parameter not in known:
        hint = meant(table.parameter or "", known)
        block.problem("parameter", f"{kind.name} has no such parameter{hint}")
    elif has_epsilon(kind) and "epsilon" not in arguments:
        block.problem("spec", "say the epsilon in it, as values are those of the parameter")
    else:
        return tuple(sorted(table.values or ()))
    return ()


def _refuse_double(block: _Block, system: System, earlier: System) -> None:
    """Two systems share no label, unless they are one mechanism with other settings."""
    same = _identity(system) == _identity(earlier)
    if system.label == earlier.label and not same:
        block.problem("label", f"'{system.label}' names another mechanism above: choose another")
    elif system.label == earlier.label and system.parameter != earlier.parameter:
        runs_over = f"'{system.label}' runs over {earlier.parameter} above"
        block.problem("label", f"{runs_over}: choose another for the curve over {system.parameter}")
    if same and not _settings(system).isdisjoint(_settings(earlier)):
        block.problem("spec", f"'{system.spec}' is there twice with one epsilon: leave one out")


def _identity(system: System) -> tuple[object, ...]:
    """What tells mechanisms apart: a spec may say a default or not."""
    kind, arguments = parse(system.spec)
    values = [arguments.get(field.name, field.default) for field in kind.parameters()]
    return kind, *values, system.texts


def _settings(system: System) -> set[tuple[str, float | None, str]]:
    points = product(system.epsilons, system.releases)
    return {(system.parameter, epsilon, release) for epsilon, release in points}
