"""What is wrong with a file: everything at once, each with its place and what to do about it."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import reduce
from typing import Any, TypeAlias, TypeVar, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from sottovoce.errors import UsageError
from sottovoce.experiments.schema.values import WrongItem, explained, meant

Place: TypeAlias = tuple[str | int, ...]
"""Keys, and numbers of items counted from 0, from the top of a file to a value."""
Tables = TypeVar("Tables")

PLACEHOLDER = "unnamed"
"""Stands for a required key at the top of a file that is missing, so that the rest is checked."""


class ExperimentError(UsageError):
    """The file describes no experiment that can be run; ``problems`` lists all reasons."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        lines = "\n".join(f"  {number}. {text}" for number, text in enumerate(problems, start=1))
        super().__init__(f"the experiment's file has {count}, nothing was run:\n{lines}")


class Document:
    """The content of a file, and its problems.

    What is wrong is left out of the content, so that the rest can still be checked.
    """

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.content = copy.deepcopy(dict(content))
        self._problems: dict[str, None] = {}
        self._left_out: set[str] = set()
        self._numbers: dict[int, list[int]] = {}
        """For lists, by their ``id``, that lost items: the numbers that those left had at first."""

    def problem(self, where: str | Place, what: object) -> None:
        """Note what is wrong at a place, or with all of it (``""``)."""
        name = where if isinstance(where, str) else self.name(where)
        self._problems[f"{name}: {what}" if name else str(what)] = None

    def check(self) -> None:
        if self._problems:
            raise ExperimentError(list(self._problems))

    def name(self, place: Place) -> str:
        """A place as messages name it, such as ``mechanism 2, spec`` or ``grid.n, value 1``."""
        name = ""
        holder: Any = self.content
        for depth, part in enumerate(place):
            if isinstance(part, int):
                number = 1 + self._numbers.get(id(holder), range(part + 1))[part]
                name += f" {number}" if depth == 1 else f", value {number}"
            else:
                name += ("" if not name else ", " if name[-1].isdigit() else ".") + part
            holder = _inside(holder, part)
        return name

    def says(self, *place: str | int) -> bool:
        """Whether the file has something at a place, be it right or wrong."""
        return self.left_out(*place) or reduce(_inside, place, self.content) is not None

    def left_out(self, *place: str | int) -> bool:
        """Whether what the file has at a place was wrong."""
        return self.name(place) in self._left_out

    def is_partial(self, *keys: str) -> bool:
        """Whether something was left out of these tables."""
        return any(name.startswith(keys) for name in self._left_out)

    def validated(self, tables: type[Tables], context: Any) -> Tables:
        """The content as these tables; what does not fit becomes a problem, and is left out."""
        adapter = TypeAdapter(tables)
        while True:
            try:
                return adapter.validate_python(self.content, context=context)
            except ValidationError as error:
                self._leave_out_all(tables, error.errors(include_url=False))

    def _leave_out_all(self, tables: type, errors: Sequence[ErrorDetails]) -> None:
        wrong: set[Place] = set()
        holders = {error["loc"][:-1] for error in errors}
        for error in errors:
            place = error["loc"]
            if error["type"] == "too_short" and place in holders:
                continue  # Its items are wrong, which is said of them.
            if isinstance(item := error.get("ctx", {}).get("error"), WrongItem):
                place = (*place, item.number)
            if error["type"] == "missing":
                if not self.says(*place):
                    self.problem(place, _message(tables, error))
                place = place[:-1]  # A table is worth nothing without it.
            else:
                self.problem(place, _message(tables, error))
            wrong.add(place)
        if () in wrong:
            self.content.setdefault("name", PLACEHOLDER)
        # From the end, so that numbers of items stay right; what lies inside another goes with it.
        for place in sorted(wrong - {()}, reverse=True):
            if not any(place[:length] in wrong for length in range(1, len(place))):
                self._leave_out(place)

    def _leave_out(self, place: Place) -> None:
        self._left_out.add(self.name(place))
        *path, last = place
        holder: Any = reduce(_inside, path, self.content)
        if isinstance(holder, list) and isinstance(last, int):
            numbers = self._numbers.setdefault(id(holder), list(range(len(holder))))
            del holder[last], numbers[last]
            if holder:
                return
        elif isinstance(holder, dict):
            del holder[last]
            return
        self._leave_out(tuple(path))  # Nothing is left of the list, or it was no list.


def _inside(holder: Any, part: str | int) -> Any:
    """What a table or list holds under a key or number; None where there is nothing."""
    if isinstance(holder, dict):
        return holder.get(part)
    if isinstance(holder, list) and isinstance(part, int):
        return holder[part]
    return None


# From errors of pydantic to what a person should do

MESSAGES = {
    "missing": "it is missing: write it",
    "string_type": "it must be a text in quotes",
    "string_too_short": "it must be a text in quotes, and not blank",
    "int_type": "it must be a whole number",
    "tuple_type": "it must be a list, in brackets",
    "too_short": "it must be a list, in brackets, and not empty",
    "dict_type": "it must be a table, with its keys below the name in brackets",
    "dataclass_type": "it must be a table, with its keys below the name in brackets",
}
"""What pydantic would say in other words than people who write TOML."""


def _message(tables: type, error: ErrorDetails) -> str:
    if error["type"] == "value_error":
        return explained(error["ctx"]["error"])
    if error["type"] == "unexpected_keyword_argument":
        *path, key = (part for part in error["loc"] if isinstance(part, str))
        return f"there is no such key{meant(key, _keys(tables, path))}"
    in_general = error["msg"].replace("Input should be", "it must be", 1)
    return MESSAGES.get(error["type"], in_general)


def _keys(tables: Any, path: Sequence[str]) -> list[str]:
    """The keys of the table that is reached by a path of keys."""
    hints = get_type_hints(tables, include_extras=True)
    hints.pop("__pydantic_config__", None)
    if not path:
        return sorted(hints)
    return next((_keys(table, path[1:]) for table in _tables(hints[path[0]])), [])


def _tables(hint: Any) -> Iterator[Any]:
    """The dataclasses in a type, such as that of a list of them."""
    if is_dataclass(hint):
        yield hint
    for part in get_args(hint):
        yield from _tables(part)
