"""A log of queries, such as many people send: what an attacker compares releases with.

The log is public, or the attacker's own: its vectors are kept on disk. A person's own queries do
not belong here (:func:`sottovoce.privacy.infer` can put them beside the log in memory).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path

import numpy as np

from sottovoce.collections import DEMO, demo_log
from sottovoce.encoders import Encoder, corpus_vectors
from sottovoce.errors import UsageError
from sottovoce.files import CsvTable, json_lines, numbered_lines, read_text
from sottovoce.privacy.attacks.cut_log import CutLog
from sottovoce.privacy.attacks.word_bags import Bags, TextVectors, WordVectors
from sottovoce.spaces.space import WordSpace
from sottovoce.text import TextPipeline
from sottovoce.text.comparing import folded_text
from sottovoce.types import Float32Array, Float64Array, IntArray, Progress

COLUMNS = ("query", "text")
HOW = (
    "give one query a line, a CSV file with a column query (or text), a TSV file with such a "
    "column or the query in the last one, or JSON lines with query (or text)"
)
NOT_THERE = -1


class QueryLog:
    """The distinct queries of a log: neither case nor spacing tell two of them apart."""

    def __init__(self, queries: Iterable[str]) -> None:
        if isinstance(queries, str):
            raise UsageError("give a list of queries, not a single string")
        self.queries = [text for text in dict.fromkeys(map(folded_text, queries)) if text]
        if not self.queries:
            raise UsageError(f"the log holds no query: {HOW}")
        self._cut: dict[tuple[str, TextPipeline], CutLog] = {}
        self._extended: dict[tuple[str, TextPipeline], WordSpace] = {}
        self._mean_word: dict[str, tuple[Float64Array, float]] = {}
        self._by_words: dict[str, tuple[str, TextVectors]] = {}

    def __len__(self) -> int:
        return len(self.queries)

    def __repr__(self) -> str:
        return f"QueryLog({len(self)} queries)"

    def places(self, texts: Iterable[str]) -> IntArray:
        """Where folded texts stand in the log; ``NOT_THERE`` for those that do not."""
        listed = list(texts)
        places = dict.fromkeys(listed, NOT_THERE)
        places.update((query, at) for at, query in enumerate(self.queries) if query in places)
        return np.array([places[text] for text in listed], dtype=np.int64)

    def holds(self, texts: Iterable[str]) -> bool:
        """Whether all folded texts stand in the log."""
        return bool((self.places(texts) != NOT_THERE).all())

    def cut(
        self, space: WordSpace, pipeline: TextPipeline, progress: Progress | None = None
    ) -> CutLog:
        """The queries as words of a space; kept for the next time."""
        key = (space.sha256, pipeline)
        if key not in self._cut:
            self._cut = {key: CutLog.of(self.queries, space, pipeline, progress)}
        return self._cut[key]

    def extended(
        self, space: WordSpace, pipeline: TextPipeline, extend: Callable[[], WordSpace]
    ) -> WordSpace:
        """The space with the words of the log that it does not list; kept for the next time."""
        key = (space.sha256, pipeline)
        if key not in self._extended:
            self._extended = {key: extend()}
        return self._extended[key]

    def vectors(self, encoder: Encoder, progress: Progress | None = None) -> Float32Array:
        """The vectors of all queries, mapped from disk; computed the first time."""
        return corpus_vectors(encoder, self.queries, progress)

    @cached_property
    def bags(self) -> Bags:
        """The words of all queries."""
        return Bags.of(self.queries)

    def mean_word(self, space: WordSpace) -> tuple[Float64Array, float]:
        """The mean vector of the log's words, and how far they are from it; kept as above."""
        if space.sha256 not in self._mean_word:
            made = TextVectors(self.bags, WordVectors("", space)).mean_word()
            self._mean_word = {space.sha256: made}
        return self._mean_word[space.sha256]

    def text_vectors(self, vectors: WordVectors) -> TextVectors:
        """The vectors of all queries by those of their words; one space's are kept."""
        where = "" if vectors.space is None else vectors.space.sha256
        if vectors.name not in self._by_words or self._by_words[vectors.name][0] != where:
            self._by_words[vectors.name] = where, TextVectors(self.bags, vectors)
        return self._by_words[vectors.name][1]


def require_in_log(missing: int, of: int, add_originals: bool) -> None:
    """Refuse originals that the log lacks, unless they are to be put beside it."""
    if missing and not add_originals:
        raise UsageError(
            f"{missing} of the {of} originals are not in the log: no attacker could find them "
            "there, so a risk of 0 would be a lie. Add them to what is searched (add_originals, "
            "--add-originals), as the paper does, or give a log that holds them"
        )


def read_log(file: Path | str) -> list[str]:
    """The queries of a file as they stand there, perhaps repeated; ``demo`` is the demo log.

    One query a line; or a table by a column ``query`` or ``text``: CSV (``.csv``), or lines with
    tabs, whose last column it is where no header names it; or JSON lines. Each perhaps gzipped.
    """
    if str(file) == DEMO:
        return demo_log()
    content = read_text(file)
    if Path(file).name.casefold().removesuffix(".gz").endswith(".csv"):
        read = _from_csv(content)
    elif content.lstrip()[:1] == "{":
        read = _from_json(content)
    else:
        read = _from_lines(content)
    queries = [query for query in read if query.strip()]
    if not queries:
        raise UsageError(f"the log holds no query: {HOW}")
    return queries


def _from_lines(content: str) -> Iterator[str]:
    lines = iter(content.split("\n"))
    first = next(lines)
    column = _column(first.split("\t")) if "\t" in first else None
    if column is None:
        yield first.rsplit("\t", 1)[-1]
        yield from (line.rsplit("\t", 1)[-1] for line in lines)
        return
    for number, line in enumerate(lines, start=2):
        fields = line.split("\t")
        if line.strip():
            if len(fields) <= column:
                raise UsageError(f"line {number} of the log has fewer fields than the header")
            yield fields[column]


def _from_csv(content: str) -> Iterator[str]:
    quoting = "put queries with commas in quotes"
    table = CsvTable(content, "the log", how=HOW, quoting=quoting, fold_header=True)
    column = next((name for name in COLUMNS if name in table.header), None)
    if column is None:
        raise UsageError(f"the CSV file has no column query or text: {HOW}")
    for _, row in table:
        yield row[column]


def _from_json(content: str) -> Iterator[str]:
    for number, row in json_lines(numbered_lines(content), "the log", how=HOW):
        fields = row if isinstance(row, dict) else {}
        query = next((fields[name] for name in COLUMNS if name in fields), None)
        if not isinstance(query, str):
            raise UsageError(f"line {number} of the log has no query (or text) that is a string")
        yield query


def _column(header: list[str]) -> int | None:
    """The place of the column that holds the queries, if one says so."""
    names = [name.strip().casefold() for name in header]
    return next((names.index(name) for name in COLUMNS if name in names), None)
