"""Building mechanisms with what they work on: the only place that knows kinds of resources.

A mechanism declares its resources as fields (``space``, ``wordnet``, ``engine``, ``pool``). For
each such name a :class:`ResourceKind` says which settings people give to choose one, how it is
loaded, what stands in for it where a mechanism is only described, and which facts identify it.
Whoever adds a mechanism with a new kind of resource registers the kind in the mechanism's file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias, TypeVar

from sottovoce.errors import UsageError
from sottovoce.mechanisms.base import Mechanism
from sottovoce.mechanisms.registry import parse
from sottovoce.types import Progress

Settings: TypeAlias = Mapping[str, Any]
"""What people say to choose resources, by setting: ``{"space": "large"}``; None: nothing said."""
Facts: TypeAlias = dict[str, Any]
"""Name and hashes of a resource: two with the same hashes are the same."""

Kind = TypeVar("Kind", bound=type["ResourceKind"])


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


def register_resource(kind: Kind) -> Kind:
    """Class decorator: make a kind of resource known."""
    taken = {name for other in RESOURCE_KINDS.values() for name in other.settings}
    if kind.name in RESOURCE_KINDS or taken & set(kind.settings):
        raise UsageError(f"a resource or a setting of '{kind.name}' is taken: choose other names")
    RESOURCE_KINDS[kind.name] = kind()
    return kind


def resource_settings() -> dict[str, Any]:
    """All settings that choose resources, with their defaults."""
    return {
        name: default for kind in RESOURCE_KINDS.values() for name, default in kind.settings.items()
    }


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
