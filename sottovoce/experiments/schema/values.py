"""What the values of an experiment's file may be: types that pydantic checks.

Names of collections, engines, encoders and files are resolved (:class:`Folder`): relative paths
start at the file's folder. Nothing large is read to find out whether this machine has them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

from annotated_types import Ge, Gt, Lt, MinLen
from pydantic import (
    AfterValidator,
    AllowInfNan,
    BeforeValidator,
    Strict,
    StringConstraints,
    ValidationInfo,
)

from sottovoce.collections import DEMO, FROM_PACKAGE, load_judged_queries
from sottovoce.errors import SottovoceError, UsageError, did_you_mean
from sottovoce.experiments.naming import without_path
from sottovoce.output_vocabularies import CORPUS

DATA = "{data}"
DATA_VARIABLE = "SOTTOVOCE_DATA"
FROM_FILE = "file:"
LOCAL_ENGINES = ("bm25", "tfidf", "dense", "dense:ENCODER")
REMOTE_ENGINES = ("http", "https", "opensearch", "postgres")
WITHOUT_ENCODER = ("bm25", "none")
"""Re-rankers that are no encoders."""

Item = TypeVar("Item")


# Plain values


class WrongItem(UsageError):
    """What is wrong with one item of a list; ``number`` counts from 0."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


def different(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """Refuse a list that holds something twice."""
    for number, item in enumerate(items):
        if item in items[:number]:
            name = without_path(str(item))
            raise WrongItem(number, f"'{name}' is there twice: leave one out")
    return items


def one_of(options: Collection[str]) -> BeforeValidator:
    """Refuse a text that is not among the options."""

    def check(word: Any) -> Any:
        if not isinstance(word, str):
            raise UsageError(f"it must be one of {', '.join(options)}, in quotes")
        if word.strip() not in options:
            raise UsageError(f"there is no '{word}'{meant(word, options)}")
        return word.strip()

    return BeforeValidator(check)


def meant(word: str, options: Iterable[str]) -> str:
    """The end of a message about an unknown word: the likeliest one, or all there are."""
    choices = list(options)
    return ": " + did_you_mean(word, choices, f"there are {', '.join(choices)}")


Different: TypeAlias = Annotated[tuple[Item, ...], AfterValidator(different)]
"""A list without doubles."""
AtLeastOne: TypeAlias = Annotated[tuple[Item, ...], MinLen(1), AfterValidator(different)]
"""The same, not empty."""
Text: TypeAlias = Annotated[
    str, StringConstraints(strict=True, strip_whitespace=True, min_length=1)
]
Count: TypeAlias = Annotated[int, Strict(), Ge(1), Lt(2**63)]
Seed: TypeAlias = Annotated[int, Strict(), Ge(0), Lt(2**63)]
Number: TypeAlias = Annotated[float, Strict(), AllowInfNan(False)]
Epsilon: TypeAlias = Annotated[Number, Gt(0)]


# Names of what is on this machine


@dataclass(frozen=True)
class Folder:
    """Where relative paths start, and the folder that ``{data}`` in a path stands for."""

    base: Path
    data: Path | str | None

    def absolute(self, name: str) -> str:
        """The path that a name stands for, if it is one."""
        if DATA in name:
            if self.data is None or not os.path.isdir(self.data):
                raise UsageError(
                    "{data} stands for a folder of data that is not there: give it with --data "
                    f"DIR, or set {DATA_VARIABLE}"
                )
            name = name.replace(DATA, os.path.abspath(self.data))
        return os.path.abspath(os.path.join(self.base, os.path.expanduser(name)))

    def file(self, name: str) -> str:
        """The path of a file that must be there."""
        path = self.absolute(name)
        if not os.path.isfile(path):
            raise UsageError(f"there is no file '{name}': check the path")
        return path

    def resource(self, value: Any) -> Any:
        """A setting that chooses what a mechanism works on: a path that is there, or a name."""
        if not isinstance(value, str) or value == DEMO or value.startswith(FROM_PACKAGE):
            return value
        if value.startswith(FROM_FILE) and value != FROM_FILE:
            return FROM_FILE + self.file(value.removeprefix(FROM_FILE))
        if value.startswith(CORPUS) and value != CORPUS:
            path = self.absolute(value.removeprefix(CORPUS))
            if not os.path.exists(path):
                raise UsageError(f"there is no '{value}': check the path")
            return CORPUS + path
        path = self.absolute(value)
        if os.path.exists(path):
            return path
        if DATA in value:
            raise UsageError(f"there is no '{value}': use demo, or check the path")
        return value

    def task(self, name: str) -> str:
        """The path of a task, which is read: a task is small. A folder is a judged collection."""
        from sottovoce.evaluation import read_task

        if os.path.isdir(self.absolute(name)):
            return self.collection(name)
        path = self.file(name)
        read_task(path)
        return path

    def log(self, name: str) -> str:
        """A query log: ``demo``, or a file."""
        return name if name == DEMO else self.file(name)

    def collection(self, name: str) -> str:
        """A collection with judged queries."""
        if name != DEMO and not name.startswith(FROM_PACKAGE):
            path = self.absolute(name)
            if not os.path.isdir(path):
                hint = did_you_mean(name, [DEMO])
                raise UsageError(
                    f"there is no collection '{name}': {hint and f'{hint} '}Use demo, a folder "
                    "with corpus.jsonl, queries.jsonl and qrels.txt, or ir_datasets:ID"
                )
            name = path
        if not judged_queries(name):
            raise UsageError(
                "the collection has no judged queries, so nothing can be measured: it needs "
                "queries.jsonl and qrels.txt beside corpus.jsonl"
            )
        return name

    def encoder(self, name: str) -> str:
        """An encoder by name, or the folder of a model; ours are looked for, others loaded."""
        from sottovoce.encoders import load_encoder
        from sottovoce.encoders.strong import StrongEncoder

        path = self.absolute(name)
        is_path = DATA in name or os.path.isdir(path) or name.endswith(".toml")
        encoder = path if is_path else name
        if encoder in ("auto", "light") or (encoder == "strong" and StrongEncoder.installed()):
            return encoder
        try:
            load_encoder(encoder)
        except (SottovoceError, OSError, ValueError) as error:
            raise UsageError(f"'{encoder}': {explained(error)}") from None
        return encoder

    def reranker(self, name: str) -> str:
        """A re-ranker: bm25, none, or an encoder."""
        if name in WITHOUT_ENCODER:
            return name
        try:
            return self.encoder(name)
        except UsageError as error:
            raise UsageError(f"{error}; a re-ranker may also be bm25 or none") from None

    def engine(self, name: str) -> str:
        """An engine of this machine."""
        kind, colon, detail = name.partition(":")
        if kind == "dense" and detail:
            return f"dense:{self.encoder(detail)}"
        if kind in REMOTE_ENGINES:
            raise UsageError(
                f"{kind} is an engine with documents of its own, and an experiment needs the "
                f"collection's: use {', '.join(LOCAL_ENGINES)}"
            )
        if colon or name not in LOCAL_ENGINES:
            hint = did_you_mean(kind, LOCAL_ENGINES[:3], f"use {', '.join(LOCAL_ENGINES)}")
            raise UsageError(f"there is no engine '{name}': {hint}")
        return name


def judged_queries(collection: str) -> int:
    """How many judged queries a collection has; its documents are not read."""
    return len(load_judged_queries(collection))


def resolved_by(resolve: Callable[[Folder, Any], Any]) -> AfterValidator:
    """Replace a name by what it stands for in the folder of the file."""

    def resolved(name: Any, info: ValidationInfo) -> Any:
        try:
            return resolve(info.context, name)  # type: ignore[arg-type]  # ours is a Folder
        except (SottovoceError, OSError, ValueError) as error:
            raise UsageError(explained(error)) from None

    return AfterValidator(resolved)


def explained(error: Exception) -> str:
    """What an error of ours says; of another one, which may hold anything, its kind alone."""
    ours = isinstance(error, SottovoceError)
    return str(error) if ours else f"it cannot be used ({type(error).__name__})"
