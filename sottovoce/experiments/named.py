"""What an experiment's file names: where it is, and whether this machine has it.

Nothing large is read here: a corpus is looked for, a space mapped, and only queries and judgments
are counted.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from sottovoce.collections import DEMO, FROM_PACKAGE, load_judged_queries
from sottovoce.errors import SottovoceError, UsageError, did_you_mean
from sottovoce.experiments.problems import Section, said

DATA = "{data}"
LOCAL_ENGINES = ("bm25", "tfidf", "dense", "dense:ENCODER")
REMOTE_ENGINES = ("http", "https", "opensearch", "postgres")
DATA_VARIABLE = "SOTTOVOCE_DATA"


class Named:
    """Resolves names of one file: relative paths start at its folder, ``{data}`` at ``data``."""

    def __init__(self, base: Path, data: Path | str | None = None) -> None:
        self.base = base
        self.data = data or os.environ.get(DATA_VARIABLE)

    def file(self, section: Section, key: str, name: str, item: int | None = None) -> str:
        """The absolute path of a file that must be there."""
        path = self._absolute(section, key, name, item)
        if path and not os.path.isfile(path):
            section.problem(key, f"there is no file '{name}': check the path", item)
        return path

    def task(self, section: Section, key: str, name: str, item: int | None = None) -> str:
        """The absolute path of a task, which is read: a task is small."""
        path = self.file(section, key, name, item)
        if path and os.path.isfile(path):
            from sottovoce.evaluation import read_task

            try:
                read_task(path)
            except SottovoceError as error:
                section.problem(key, str(error), item)
        return path

    def strings(self, section: Section, key: str, name: str) -> str:
        """A source of public strings: demo, a file, the queries of a folder or of ir_datasets."""
        if name == DEMO or name.startswith(FROM_PACKAGE):
            return name
        path = self._absolute(section, key, name)
        if path and not os.path.exists(path):
            section.problem(key, f"there is no '{name}': use demo, or check the path")
        return path

    def collection(self, section: Section, key: str, name: str, item: int) -> str:
        """A collection with judged queries."""
        if name != DEMO and not name.startswith(FROM_PACKAGE):
            path = self._absolute(section, key, name, item)
            if not path:
                return name
            if not os.path.isdir(path):
                hint = did_you_mean(name, [DEMO])
                section.problem(
                    key,
                    f"there is no collection '{name}': {hint and f'{hint} '}Use demo, a folder "
                    "with corpus.jsonl, queries.jsonl and qrels.txt, or ir_datasets:ID",
                    item,
                )
                return path
            name = path
        try:
            if not queries_of(name):
                raise UsageError(
                    "the collection has no judged queries, so nothing can be measured: it needs "
                    "queries.jsonl and qrels.txt beside corpus.jsonl"
                )
        except (SottovoceError, OSError, ValueError) as error:
            section.problem(key, said(error), item)
        return name

    def encoder(self, section: Section, key: str, name: str, item: int | None = None) -> str:
        """An encoder by name, or the folder of a model."""
        found = self._folder(section, key, name, item)
        if (problem := _encoder_problem(found)) is not None:
            section.problem(key, problem, item)
        return found

    def reranker(self, section: Section, key: str, name: str, item: int) -> str:
        """A re-ranker: bm25, none, or an encoder."""
        if name in ("bm25", "none"):
            return name
        found = self._folder(section, key, name, item)
        if (problem := _encoder_problem(found)) is not None:
            section.problem(key, f"{problem}; a re-ranker may also be bm25 or none", item)
        return found

    def engine(self, section: Section, key: str, name: str, item: int) -> str:
        """An engine of this machine."""
        kind, colon, detail = name.partition(":")
        if kind == "dense" and detail:
            return f"dense:{self.encoder(section, key, detail, item)}"
        if kind in REMOTE_ENGINES:
            section.problem(
                key,
                f"{kind} is an engine with documents of its own, and an experiment needs the "
                f"collection's: use {', '.join(LOCAL_ENGINES)}",
                item,
            )
        elif colon or name not in LOCAL_ENGINES:
            hint = did_you_mean(kind, LOCAL_ENGINES[:3], f"use {', '.join(LOCAL_ENGINES)}")
            section.problem(key, f"there is no engine '{name}': {hint}", item)
        return name

    def space(self, section: Section, key: str, name: str) -> str:
        """A word space by name or folder; whether it is there shows when a mechanism needs it."""
        return self._folder(section, key, name)

    def vocabulary(self, section: Section, key: str, choice: str) -> str:
        """An output vocabulary; only its file, if it names one, is looked for here."""
        kind, _, path = choice.partition(":")
        return f"file:{self.file(section, key, path)}" if kind == "file" and path else choice

    def _folder(self, section: Section, key: str, name: str, item: int | None = None) -> str:
        """A folder's absolute path, or what is no folder as it is: the name of something."""
        path = self._absolute(section, key, name, item)
        return path if path and (DATA in name or os.path.isdir(path)) else name

    def _absolute(self, section: Section, key: str, name: str, item: int | None = None) -> str:
        """The path, or nothing where it cannot be told."""
        if DATA in name:
            if self.data is None or not os.path.isdir(self.data):
                section.problem(
                    key,
                    "{data} stands for a folder of data that is not there: give it with --data "
                    f"DIR, or set {DATA_VARIABLE}",
                    item,
                )
                return ""
            name = name.replace(DATA, os.path.abspath(self.data))
        return os.path.abspath(os.path.join(self.base, os.path.expanduser(name)))


def queries_of(collection: str) -> int:
    """How many judged queries a collection has; its documents are not read."""
    return len(load_judged_queries(collection))


def collection_name(collection: str) -> str:
    """How tables name a collection."""
    name = collection.removeprefix(FROM_PACKAGE)
    return name if name != collection or name == DEMO else os.path.basename(name)


def encoder_name(encoder: str) -> str:
    """How tables name an encoder: ``auto`` as the one that it stands for."""
    from sottovoce.encoders.strong import StrongEncoder

    if encoder == "auto":
        return "strong" if StrongEncoder.installed() else "light"
    return encoder


def _encoder_problem(name: str) -> str | None:
    """Why an encoder cannot be loaded, if it cannot; ours are looked for, others loaded."""
    from sottovoce.encoders import load_encoder
    from sottovoce.encoders.strong import StrongEncoder

    if name in ("auto", "light") or (name == "strong" and StrongEncoder.installed()):
        return None
    try:
        load_encoder(name)
    except (SottovoceError, OSError, ValueError) as error:
        return f"'{name}': {said(error)}"
    return None


def missing_extra(module: str, extra: str, what: str) -> str | None:
    """What to install for a part of an experiment, where its package is missing."""
    if importlib.util.find_spec(module) is not None:
        return None
    return f"{what} needs an extra: pip install 'sottovoce[{extra}]'"


Resolve: TypeAlias = Callable[[Section, str, str, int], str]


def each_of(
    section: Section, key: str, names: tuple[str, ...], resolve: Resolve
) -> tuple[str, ...]:
    """The names of a list, resolved one by one."""
    return tuple(resolve(section, key, name, at) for at, name in enumerate(names, start=1))
