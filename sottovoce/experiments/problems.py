"""What is wrong with an experiment's file: everything at once, each with its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sottovoce.errors import SottovoceError, UsageError, did_you_mean


class ExperimentError(UsageError):
    """The file describes no experiment that can be run; ``problems`` lists all reasons."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        lines = "\n".join(f"  {number}. {each}" for number, each in enumerate(problems, start=1))
        super().__init__(f"the experiment's file has {count}, nothing was run:\n{lines}")


class Problems:
    """Gathers problems in order, each once."""

    def __init__(self) -> None:
        self._found: dict[str, None] = {}

    def add(self, where: str, what: object) -> None:
        """Note what is wrong at a place, and what to do about it."""
        self._found[f"{where}: {what}" if where else str(what)] = None

    def check(self) -> None:
        """Raise if there is any."""
        if self._found:
            raise ExperimentError(list(self._found))


class Section:
    """A table of the file, read by type.

    A value of another type is noted as a problem and the default taken, so that reading goes on.
    """

    def __init__(self, values: Mapping[str, Any], where: str, problems: Problems) -> None:
        self.values, self.where, self.problems = values, where, problems
        self._asked: set[str] = set()

    def place(self, key: str, item: int | None = None) -> str:
        """How messages name a key, or an item of its list, counted from 1."""
        joint = "." if self.where and not self.where[-1].isdigit() else ", " if self.where else ""
        return f"{self.where}{joint}{key}" + ("" if item is None else f", value {item}")

    def problem(self, key: str, what: object, item: int | None = None) -> None:
        """Note what is wrong with a key."""
        self.problems.add(self.place(key, item), what)

    def has(self, key: str) -> bool:
        """Whether the file has this key here."""
        self._asked.add(key)
        return key in self.values

    def text(self, key: str, default: str = "", required: bool = False) -> str:
        """A string."""
        if not self.has(key):
            if required:
                self.problem(key, 'it is missing: write a text in quotes, such as "demo"')
            return default
        value = self.values[key]
        if isinstance(value, str) and value.strip():
            return value.strip()
        self.problem(key, "it must be a text in quotes, and not blank")
        return default

    def optional(self, key: str, default: str | None = None) -> str | None:
        """A string, or the default where there is none."""
        return self.text(key) or None if self.has(key) else default

    def choice(self, key: str, default: str, options: Sequence[str]) -> str:
        """One of a few strings."""
        value = self.text(key, default)
        return value if self.known(key, value, options) else default

    def known(self, key: str, value: str, options: Sequence[str], item: int | None = None) -> bool:
        """Whether a value is among the options; else that is a problem."""
        if value in options:
            return True
        self.problem(key, f"there is no '{value}'{meant(value, options)}", item)
        return False

    def whole(self, key: str, default: int, least: int = 1) -> int:
        """A whole number."""
        if not self.has(key):
            return default
        value = self.values[key]
        if _is_whole(value) and value >= least:
            return int(value)
        self.problem(key, f"it must be a whole number, {least} or more")
        return default

    def number(self, key: str, required: bool = False, least: float | None = None) -> float:
        """A finite number, 0 where there is none."""
        if not self.has(key):
            if required:
                self.problem(key, "it is missing: write a number")
            return 0.0
        value = self.values[key]
        if _is_number(value) and (least is None or value >= least):
            return float(value)
        self.problem(key, "it must be a number" + ("" if least is None else f", {least:g} or more"))
        return 0.0

    def texts(self, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Different strings."""
        wanted = 'a list of texts, such as ["demo"]'
        return self._list(key, default, wanted, _is_text, str.strip, may_be_empty=True)

    def choices(
        self, key: str, default: tuple[str, ...], options: Sequence[str]
    ) -> tuple[str, ...]:
        """Different strings out of a few."""
        named = enumerate(self.texts(key, default), start=1)
        return tuple(each for at, each in named if self.known(key, each, options, at))

    def wholes(self, key: str, default: tuple[int, ...] = (), least: int = 1) -> tuple[int, ...]:
        """Different whole numbers."""
        wanted = f"a list of whole numbers, {least} or more, such as [{max(least, 1)}]"
        return self._list(key, default, wanted, lambda v: _is_whole(v) and v >= least, int)

    def epsilons(self, key: str = "epsilons") -> tuple[float, ...]:
        """Different numbers above 0, in the order of the file."""
        wanted = "a list of numbers above 0, such as [1, 5, 10]"
        return self._list(key, (), wanted, lambda v: _is_number(v) and v > 0, float)

    def section(self, key: str) -> Section:
        """A table; empty where it is missing."""
        value = self.values.get(key, {}) if self.has(key) else {}
        if not isinstance(value, dict):
            self.problem(key, f"it must be a table: write [{key}] above its keys")
            value = {}
        return Section(value, self.place(key), self.problems)

    def sections(self, key: str) -> list[Section]:
        """A list of tables."""
        value = self.values[key] if self.has(key) else []
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            self.problem(key, f"write [[{key}]], in two brackets, above the keys of each")
            return []
        return [
            Section(each, self.place(f"{key} {number}"), self.problems)
            for number, each in enumerate(value, start=1)
        ]

    def finish(self) -> None:
        """Note the keys that nothing asked for."""
        for key in self.values:
            if key not in self._asked:
                self.problem(key, f"there is no such key{meant(key, sorted(self._asked))}")

    def _list(
        self,
        key: str,
        default: tuple[Any, ...],
        wanted: str,
        fits: Callable[[Any], bool],
        made: Callable[[Any], Any],
        may_be_empty: bool = False,
    ) -> tuple[Any, ...]:
        if not self.has(key):
            return default
        values = self.values[key]
        if not isinstance(values, list) or not (values or may_be_empty):
            self.problem(key, f"it must be {wanted}")
            return default
        found: dict[Any, None] = {}
        for item, value in enumerate(values, start=1):
            if not fits(value):
                self.problem(key, f"it does not fit: the key takes {wanted}", item)
            elif made(value) in found:
                self.problem(key, f"'{value}' is there twice: leave one out", item)
            else:
                found[made(value)] = None
        return tuple(found)


def meant(word: str, options: Iterable[str]) -> str:
    """The end of a message about an unknown word: the likeliest one, or all there are."""
    known = list(options)
    return ": " + did_you_mean(word, known, f"there are {', '.join(known)}")


def said(error: Exception) -> str:
    """What an error of ours says; of another one, which may hold anything, its kind alone."""
    ours = isinstance(error, SottovoceError)
    return str(error) if ours else f"it cannot be used ({type(error).__name__})"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def _is_number(value: Any) -> bool:
    """Whether it is a number that is finite and fits into a float."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e308
