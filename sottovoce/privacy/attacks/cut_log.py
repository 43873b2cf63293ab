"""A log of queries, cut into words the way the released texts were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sottovoce.errors import UsageError
from sottovoce.privacy.attacks.places import Shape, shape_of
from sottovoce.spaces.space import WordSpace
from sottovoce.text import PreparedText, TextPipeline, folded_text
from sottovoce.text.protection import protected_tags
from sottovoce.types import UNKNOWN, BoolArray, IntArray, Progress

QUERIES_AT_A_TIME = 8192


@dataclass(frozen=True, repr=False)
class CutLog:
    """The distinct queries of a log as word ids, laid end to end.

    Query ``i`` has the words ``words[starts[i]:starts[i + 1]]``; the number after the last word of
    the space, ``size``, stands for a word that the space lacks. ``counts`` says how often a query
    is in the log, ``shapes`` which of ``shape_numbers`` it has.
    """

    queries: Sequence[str]
    counts: IntArray
    words: NDArray[np.int32]
    starts: IntArray
    shapes: NDArray[np.int32]
    shape_numbers: dict[Shape, int]
    size: int
    without_attacked: bool = False

    @classmethod
    def of(
        cls,
        queries: Iterable[str],
        space: WordSpace,
        pipeline: TextPipeline | None = None,
        progress: Progress | None = None,
        *,
        as_typed: bool = False,
    ) -> CutLog:
        """Cut queries by the pipeline of the release; neither case nor spacing tell them apart.

        as_typed
            Cut them with their capitals, which may decide: "US" is no function word, "us" is one.
        """
        typed: dict[str, str] = {}
        times: Counter[str] = Counter()
        for query in queries:
            if text := folded_text(query):
                times[text] += 1
                typed.setdefault(text, " ".join(query.split()))
        if not times:
            raise UsageError("the log holds no query: give a file with one query a line")
        cutter = pipeline or TextPipeline()
        if cutter.unknown == "error":  # It refuses texts; a log may hold any word.
            cutter = replace(cutter, unknown="uniform")
        queries = list(times)
        surfaces = list(typed.values()) if as_typed else queries
        shape_numbers: dict[Shape, int] = {}
        words, lengths, shapes = [], [], []
        for start in range(0, len(queries), QUERIES_AT_A_TIME):
            for prepared in _cut(surfaces[start : start + QUERIES_AT_A_TIME], cutter, space):
                words.append(prepared.slots)
                for literals in _lines(prepared.literals):
                    lengths.append(len(literals) - 1)
                    shape = shape_of(literals)
                    shapes.append(shape_numbers.setdefault(shape, len(shape_numbers)))
            if progress is not None:
                progress(len(lengths), len(queries))
        slots = np.concatenate(words)
        return cls(
            queries=queries,
            counts=np.fromiter(times.values(), dtype=np.int64, count=len(times)),
            words=np.where(slots < 0, space.size, slots).astype(np.int32),
            starts=np.cumsum([0, *lengths], dtype=np.int64),
            shapes=np.array(shapes, dtype=np.int32),
            shape_numbers=shape_numbers,
            size=space.size,
        )

    def __len__(self) -> int:
        return len(self.queries)

    def __repr__(self) -> str:
        return f"CutLog({self.name})"

    @property
    def name(self) -> str:
        """For reports."""
        return f"log of {len(self):,} queries" + (
            " without those attacked" if self.without_attacked else ""
        )

    @property
    def lengths(self) -> IntArray:
        """How many words each query has."""
        return np.diff(self.starts)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each query, by its folded text."""
        return {query: number for number, query in enumerate(self.queries)}

    def with_texts(self, texts: Iterable[str], space: WordSpace, pipeline: TextPipeline) -> CutLog:
        """The log with these texts, cut as they were typed; its own lines of them give way."""
        texts = [text for text in texts if folded_text(text)]
        if all(text in self.numbers for text in texts):
            return self
        cut = CutLog.of(texts, space, pipeline, as_typed=True)
        own = [self.numbers.get(query, UNKNOWN) for query in cut.queries]
        counts = [self.counts[number] if number != UNKNOWN else 1 for number in own]
        others = self._of(self._all_but(own))
        shape_numbers = dict(self.shape_numbers)
        renumbered = [shape_numbers.setdefault(s, len(shape_numbers)) for s in cut.shape_numbers]
        shapes = np.array(renumbered, dtype=np.int32)[cut.shapes]
        return CutLog(
            queries=[*others.queries, *cut.queries],
            counts=np.concatenate([others.counts, np.array(counts, dtype=np.int64)]),
            words=np.concatenate([others.words, cut.words]),
            starts=np.concatenate([others.starts, others.starts[-1] + cut.starts[1:]]),
            shapes=np.concatenate([others.shapes, shapes]),
            shape_numbers=shape_numbers,
            size=self.size,
        )

    def without(self, texts: Iterable[str]) -> CutLog:
        """The log without these texts: what an attacker may learn from about others."""
        kept = self._all_but(self.numbers.get(folded_text(text), UNKNOWN) for text in texts)
        if not kept.any():
            raise UsageError("the log holds no query besides those attacked: give a larger one")
        return self._of(kept, without_attacked=True)

    def _all_but(self, numbers: Iterable[int]) -> BoolArray:
        kept = np.ones(len(self), dtype=np.bool_)
        kept[[number for number in numbers if number != UNKNOWN]] = False
        return kept

    def _of(self, kept: BoolArray, *, without_attacked: bool = False) -> CutLog:
        """Some of the queries."""
        return CutLog(
            queries=[self.queries[number] for number in np.flatnonzero(kept).tolist()],
            counts=self.counts[kept],
            words=self.words[np.repeat(kept, self.lengths)],
            starts=np.cumsum([0, *self.lengths[kept]], dtype=np.int64),
            shapes=self.shapes[kept],
            shape_numbers=self.shape_numbers,
            size=self.size,
            without_attacked=without_attacked,
        )


def _cut(
    queries: Sequence[str], pipeline: TextPipeline, space: WordSpace
) -> Iterator[PreparedText]:
    """All queries as one text with a line for each: much faster than one by one.

    Parts of speech depend on the whole text, so there each query is a text of its own.
    """
    if protected_tags(pipeline.protect):
        yield from (pipeline.prepare(query, space) for query in queries)
    else:
        yield pipeline.prepare("\n".join(queries), space)


def _lines(literals: Sequence[str]) -> Iterator[list[str]]:
    """The literals of each line of a text; a pipeline leaves every line break."""
    line: list[str] = []
    for literal in literals:
        first, *further = literal.split("\n")
        line.append(first)
        for piece in further:
            yield line
            line = [piece]
    yield line
