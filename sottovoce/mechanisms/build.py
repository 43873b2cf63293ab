"""Mechanisms by name, built with what they work on: the only place that knows kinds of resources.

A spec string such as ``vickrey-cmp:epsilon=12.5,t=0.75`` names a mechanism and its parameters. A
mechanism declares its resources as fields (``space``, ``wordnet``, ``engine``, ``pool``). For
each such name a :class:`ResourceKind` says which settings people give to choose one, how it is
loaded, what stands in for it where a mechanism is only described, and which facts identify it.
Whoever adds a mechanism with a new kind of resource registers the kind in the mechanism's file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import Field
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from sottovoce.errors import UsageError, did_you_mean
from sottovoce.mechanisms.base import Mechanism, public_name
from sottovoce.types import Progress

Settings: TypeAlias = Mapping[str, Any]
"""What people say to choose resources, by setting: ``{"space": "large"}``; None: nothing said."""
Facts: TypeAlias = dict[str, Any]
"""Name and hashes of a resource: two with the same hashes are the same."""

KindOfMechanism = TypeVar("KindOfMechanism", bound=type[Mechanism])
KindOfResource = TypeVar("KindOfResource", bound=type["ResourceKind"])

_registry: dict[str, type[Mechanism]] = {}


def register(kind: KindOfMechanism) -> KindOfMechanism:
    """Class decorator: make a mechanism available by its name."""
    taken = _registry.get(kind.name)
    if taken is not None and taken.__qualname__ != kind.__qualname__:
        raise UsageError(f"the name '{kind.name}' is taken by {taken.__qualname__}")
    _registry[kind.name] = kind
    return kind


def names() -> list[str]:
    """The registered names, in order of registration."""
    return list(_registry)


def kind(name: str) -> type[Mechanism]:
    """The class of a mechanism."""
    if name not in _registry:
        raise UsageError("unknown mechanism" + _suggestion(name, names()))
    return _registry[name]


def has_epsilon(kind: type[Mechanism]) -> bool:
    """Whether mechanisms of this kind have an epsilon to choose."""
    return "epsilon" in map(public_name, kind.parameters())


def parse(spec: str, **parameters: Any) -> tuple[type[Mechanism], dict[str, Any]]:
    """The class and the arguments that a spec string and keywords stand for."""
    name, _, rest = spec.strip().partition(":")
    mechanism = kind(name.strip())
    fields = {public_name(field): field for field in mechanism.parameters()}
    values: dict[str, Any] = {}
    for key, text in _pairs(rest):
        values[_checked_key(key, fields, name)] = text
    for key, value in parameters.items():
        values[_checked_key(key.rstrip("_"), fields, name)] = value
    hints = get_type_hints(mechanism)
    return mechanism, {
        fields[key].name: _typed(name, fields[key], hints[fields[key].name], value)
        for key, value in values.items()
    }


def _pairs(rest: str) -> list[tuple[str, str]]:
    pairs = []
    for part in filter(None, (p.strip() for p in rest.split(","))):
        key, sign, value = part.partition("=")
        if not sign or not key.strip() or not value.strip():
            raise UsageError(
                "a part of the spec is not key=value; it reads name:key=value,key=value"
            )
        pairs.append((key.strip(), value.strip()))
    return pairs


def _checked_key(key: str, fields: dict[str, Field[Any]], name: str) -> str:
    if key not in fields:
        raise UsageError(
            f"mechanism '{name}' has no such parameter" + _suggestion(key, list(fields))
        )
    return key


def _suggestion(word: str, options: list[str]) -> str:
    return ": " + did_you_mean(word, options, f"there are {', '.join(options)}")


def _typed(name: str, parameter: Field[Any], hint: Any, value: Any) -> Any:
    """A value (perhaps text) as the parameter's type; never by ``eval``."""
    label = f"{name}'s {public_name(parameter)}"
    if get_origin(hint) is UnionType:
        if value is None or str(value).lower() == "none":
            return None
        (hint,) = (part for part in get_args(hint) if part is not NoneType)
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise UsageError(f"{label} is one of {', '.join(map(str, get_args(hint)))}")
        return value
    if get_origin(hint) is tuple:
        parts = value.split("/") if isinstance(value, str) else value
        return tuple(_number(label, part, float) for part in parts)
    if hint is bool:
        answers = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        if str(value).lower() not in answers:
            raise UsageError(f"{label} is true or false")
        return answers[str(value).lower()]
    if hint in (int, float):
        return _number(label, value, hint)
    return str(value)


def _number(label: str, value: Any, kind: type[int] | type[float]) -> int | float:
    try:
        number = kind(value)
        if kind is int and float(value) != number:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        what = "a whole number" if kind is int else "a number"
        raise UsageError(f"{label} must be {what}") from None
    return number


# Kinds of resources.


class ResourceKind(ABC):
    """A kind of thing that mechanisms work on.

    name
        The name of the field that holds it, and of the keyword of :func:`mechanism`.
    settings
        The settings that choose one, with their defaults. On the command line ``output_vocabulary``
        is ``--output-vocabulary``.
    required
        Settings that have no default, each with what mechanisms do with it, for messages.
    cheap
        Whether loading takes no noticeable time, so that settings can be checked by doing it.
    """

    name: ClassVar[str]
    settings: ClassVar[Settings]
    required: ClassVar[Mapping[str, str]] = {}
    cheap: ClassVar[bool] = False

    @abstractmethod
    def load(self, settings: Settings, progress: Progress | None) -> Any:
        """The one that these settings (all of them, defaults filled in) choose.

        Says what to do where nothing was chosen and there is no default.
        """

    def open(self, settings: Settings) -> Any:
        """The same; what only its use needs may be left until then."""
        return self.load(settings, None)

    @abstractmethod
    def stand_in(self, settings: Settings) -> Any:
        """Something cheap by which a mechanism can be built and described, but not used."""

    @abstractmethod
    def facts(self, resource: Any) -> Facts:
        """What identifies one that is loaded."""

    def complete(self, given: Settings) -> dict[str, Any]:
        """The kind's own settings: those given, defaults for the rest."""
        return {
            name: default if given.get(name) is None else given[name]
            for name, default in self.settings.items()
        }


RESOURCE_KINDS: dict[str, ResourceKind] = {}
"""By name; :func:`register_resource` adds to it."""


def register_resource(kind: KindOfResource) -> KindOfResource:
    """Class decorator: make a kind of resource known."""
    taken = {name for other in RESOURCE_KINDS.values() for name in other.settings}
    if kind.name in RESOURCE_KINDS or taken & set(kind.settings):
        raise UsageError(f"a resource or a setting of '{kind.name}' is taken: choose other names")
    RESOURCE_KINDS[kind.name] = kind()
    return kind


def resource_settings() -> dict[str, Any]:
    """All settings that choose resources, with their defaults."""
    kinds = RESOURCE_KINDS.values()
    return {name: default for kind in kinds for name, default in kind.settings.items()}


# Building.


def mechanism(spec: str, **given: Any) -> Mechanism:
    """Build a mechanism from its name or spec string; keywords win over the spec.

    Keywords are parameters, such as ``epsilon``, and resources: ``space`` (by default the default
    word space) and ``wordnet``, which must have been added before; ``engine``, the local search
    engine that ``fea`` asks; ``pool``, the public strings that ``comet-cmp`` and
    ``comet-mahalanobis`` release.
    """
    resources = {name: given.pop(name) for name in RESOURCE_KINDS if name in given}
    provided = {
        name: (lambda resource=resource: resource)
        for name, resource in resources.items()
        if resource is not None
    }
    return build(spec, given, provided=provided)


def build(
    spec: str,
    parameters: Mapping[str, Any] | None = None,
    settings: Settings | None = None,
    *,
    provided: Mapping[str, Callable[[], Any]] | None = None,
    progress: Progress | None = None,
) -> Mechanism:
    """Build a mechanism: its parameters, and the resources that settings choose.

    provided
        Resources that the caller has already, by name; asked for only if the mechanism needs them.
    progress
        Told of what takes long, such as the vectors of a pool.
    """
    kind, arguments = parse(spec, **(parameters or {}))
    settings, provided = settings or {}, provided or {}
    refuse_unused(kind, settings)
    resources = {
        name: provided[name]() if name in provided else load_resource(name, settings, progress)
        for name in kind.resources()
    }
    return kind(**resources, **arguments)


def settings_of(kind: type[Mechanism]) -> set[str]:
    """The names of the settings that choose what this kind of mechanism works on."""
    return {name for resource in kind.resources() for name in resource_kind(resource).settings}


def refuse_unused(kind: type[Mechanism], settings: Settings) -> None:
    """Refuse settings that choose something this kind of mechanism does not work on."""
    used, defaults = settings_of(kind), resource_settings()
    for name, value in settings.items():
        if name not in defaults:
            raise UsageError(f"no mechanism has anything that '{name}' would choose")
        if name not in used and value not in (None, defaults[name]):
            raise UsageError(f"{option_name(name)} does nothing with {kind.name}: leave it out")


def load_resource(name: str, settings: Settings, progress: Progress | None = None) -> Any:
    """The resource of this kind that the settings choose."""
    kind = resource_kind(name)
    return kind.load(kind.complete(settings), progress)


def stand_ins(kind: type[Mechanism], settings: Settings | None = None) -> dict[str, Any]:
    """What a mechanism can be built with in order to be described; nothing is read."""
    return {
        name: resource_kind(name).stand_in(resource_kind(name).complete(settings or {}))
        for name in kind.resources()
    }


def option_name(setting: str) -> str:
    """A setting as the command line writes it."""
    return f"--{setting.replace('_', '-')}"


def resource_kind(name: str) -> ResourceKind:
    """The kind of the resource that mechanisms have in a field of this name."""
    if name not in RESOURCE_KINDS:
        raise UsageError(
            f"nobody says how to load a '{name}': register_resource in the mechanism's file"
        )
    return RESOURCE_KINDS[name]
