"""The long tables of an experiment: one value a row, utility and privacy alike."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sottovoce.errors import need

if TYPE_CHECKING:
    import pyarrow as pa

PRIVATE, NO_PRIVACY, SAME_DEPTH = "private", "no privacy", "same depth"
"""Values of the column ``system``: the variants were sent; the query itself; the query itself, as
deep as the pool of the private search with the same setting is large."""

ON_SETS = "attackers of sets"
"""The fact of the manifest that says what attackers knew who name a query among those that left."""
UNTRIED_ON_SETS = "attacks on sets that were not tried"
"""The fact that says which of them were not tried, and why."""

QUERIES = {
    "collection": "string",
    "engine": "string",
    "reranker": "string",
    "mechanism": "string",
    "epsilon": "float64",
    "release": "string",
    "n": "int64",
    "seed": "int64",
    "system": "string",
    "query_id": "string",
    "measure": "string",
    "value": "float64",
}
"""``results``. Privacy has no engine and no re-ranker (empty strings). ``no privacy`` has an empty
mechanism and release, n and seed 0, epsilon null. Measures are labels of
:class:`sottovoce.experiments.measures.Measure`."""

WORDS = {
    "space": "string",
    "mechanism": "string",
    "epsilon": "float64",
    "seed": "int64",
    "word": "string",
    "measure": "string",
    "value": "float64",
}
"""``words``. Measures: ``N_w``, ``S_w``, ``distinct``, ``moved``; with an empty mechanism
``distance to neighbour 1``, 5, 10, … 1000; and of a plotted word ``distance`` and ``angle`` of its
relatives: ``mechanism`` is ``synonym of WORD``, ``hyponym of WORD``, ``neighbour of WORD``."""

TASKS = {
    "task": "string",
    "model": "string",
    "obfuscated": "string",
    "mechanism": "string",
    "epsilon": "float64",
    "seed": "int64",
    "item": "int64",
    "measure": "string",
    "value": "float64",
}
"""``tasks``. ``obfuscated`` is ``nothing``, ``only train``, ``only test``, ``both`` (or sides of
a ranking); a value for each test item."""

AUDITS = {
    "log": "string",
    "mechanism": "string",
    "epsilon": "float64",
    "seed": "int64",
    "auditor": "string",
    "measure": "string",
    "value": "float64",
    "low": "float64",
    "high": "float64",
}
"""``audits``: what an auditor finds out about who was in a model's training data. ``auditor`` is
``knows the mechanism`` or ``learnt from clean text``; of clean text itself the mechanism is empty.
``low`` and ``high`` are the ends of the 95 % interval."""

SAMPLES = {
    "space": "string",
    "mechanism": "string",
    "level": "float64",
    "epsilon": "float64",
    "seed": "int64",
    "word": "string",
    "number": "int64",
    "released": "string",
}
"""``samples``: words released for a word, at the epsilon where the mean N_w is ``level``."""

VARIANTS = {"query_id": "string", "number": "int64", "variant": "string"}
"""``variants/KEY.parquet``: the variants of each query in their order. The query is not there."""

SCHEMAS = {
    "queries": QUERIES,
    "words": WORDS,
    "tasks": TASKS,
    "audits": AUDITS,
    "samples": SAMPLES,
    "variants": VARIANTS,
}
ALWAYS = {"queries": "results", "words": "words", "tasks": "tasks"}
FILES = {**ALWAYS, "audits": "audits", "samples": "samples"}
"""The name of each table's files, .parquet and .csv; those that not all experiments have are only
written where they have rows."""

_SHARED = ("collection", "engine", "reranker", "mechanism", "release", "n")
CURVES = {**{name: QUERIES[name] for name in _SHARED}, "utility": "string"}
"""``quipu``: no file, a row a curve over epsilon."""
COLUMNS = {"queries": QUERIES, "words": WORDS, "tasks": TASKS, "audits": AUDITS, "quipu": CURVES}
"""What the rows of a table can be selected by."""

ROWS_AT_A_TIME = 1 << 17
"""Rows of a row group, at least; they are all that is in memory."""


def make_table(kind: str, rows: Iterable[Sequence[Any]]) -> pa.Table:
    """A table of rows in the order of the schema's columns."""
    arrow = need_arrow()
    schema = arrow.schema([(name, getattr(arrow, of)()) for name, of in SCHEMAS[kind].items()])
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [arrow.array(values, of.type) for values, of in zip(columns, schema, strict=True)]
    return arrow.Table.from_arrays(arrays, schema=schema)


def need_arrow() -> Any:
    """Pyarrow, or what to do about it."""
    return need("pyarrow", "experiments", "experiments need an extra")


def write_parquet(file: Path, kind: str, parts: Iterable[pa.Table]) -> None:
    """Write one table out of its parts, a group of rows at a time."""
    import pyarrow.parquet as pq

    groups = _groups(kind, parts)
    first = next(groups)
    with pq.ParquetWriter(file, first.schema) as out:
        for group in chain([first], groups):
            out.write_table(group)


def write_csv(file: Path, kind: str, parts: Iterable[pa.Table]) -> None:
    """The same; numbers as Python prints them: read again, they are the same."""
    with file.open("w", encoding="utf-8", newline="") as lines:
        out = csv.writer(lines, lineterminator="\n")
        out.writerow(SCHEMAS[kind])
        for group in _groups(kind, parts):
            out.writerows(zip(*(column.to_pylist() for column in group.columns), strict=True))


def _groups(kind: str, parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Tables put together to groups of many rows; one without rows where there is none."""
    arrow = need_arrow()
    waiting = [make_table(kind, [])]
    for part in parts:
        waiting.append(part)
        if sum(table.num_rows for table in waiting) >= ROWS_AT_A_TIME:
            yield arrow.concat_tables(waiting).combine_chunks()
            waiting = waiting[:1]
    yield arrow.concat_tables(waiting).combine_chunks()
