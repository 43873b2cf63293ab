"""Mechanisms by name, and from spec strings such as ``vickrey-cmp:epsilon=12.5,t=0.75``."""

from __future__ import annotations

from dataclasses import Field
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from sottovoce.errors import UsageError, did_you_mean
from sottovoce.mechanisms.base import Mechanism, public_name

Kind = TypeVar("Kind", bound=type[Mechanism])

_registry: dict[str, type[Mechanism]] = {}


def register(kind: Kind) -> Kind:
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
    except (TypeError, ValueError):
        what = "a whole number" if kind is int else "a number"
        raise UsageError(f"{label} must be {what}") from None
    return number
