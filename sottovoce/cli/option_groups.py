"""Groups of options for typer: taken apart for the command line, and put together again."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, fields, is_dataclass
from typing import Annotated, Any, get_type_hints


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command for typer: each parameter that is a group becomes the options of the group.

    Options appear in ``--help`` in the order of the parameters, and of the fields of a group.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type[Any]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        kind = hints[parameter.name]
        if not (isinstance(kind, type) and is_dataclass(kind)):
            parameters.append(_keyword(parameter.name, parameter.default, kind))
            continue
        groups[parameter.name] = kind
        parameters += _options_of(kind)

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        command(**given)

    by_name = {parameter.name: parameter for parameter in parameters}
    if len(by_name) < len(parameters):
        raise TypeError(f"{command.__name__} has an option twice")
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {name: parameter.annotation for name, parameter in by_name.items()}
    return run


def _options_of(group: type[Any]) -> list[inspect.Parameter]:
    """The fields of a group as parameters, each shown under the group's panel."""
    hints = get_type_hints(group, include_extras=True)
    parameters = []
    for field in fields(group):
        (option,) = map(copy, hints[field.name].__metadata__)  # Other groups may use it, too.
        option.rich_help_panel = getattr(group, "panel", None)
        kind: Any = Annotated[hints[field.name].__origin__, option]
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        parameters.append(_keyword(field.name, default, kind))
    return parameters


def _keyword(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    # Keyword-only, so that parameters with and without a default may come in any order.
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )
