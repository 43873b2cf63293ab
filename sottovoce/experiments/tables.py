"""The long tables of an experiment: one value a row, utility and privacy alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sottovoce.errors import need

if TYPE_CHECKING:
    import pyarrow as pa

PRIVATE, NO_PRIVACY, SAME_DEPTH = "private", "no privacy", "same depth"
"""Values of the column ``system``: the variants were sent; the query itself; the query itself, as
deep as the pool of the private search with the same setting is large."""

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
mechanism and release, n and seed 0, epsilon null. Measures: those of ir_measures by name, ``pooled
recall(rel=1)``, ``pool``; ``jaccard``, ``bleu``, ``meteor``, ``semantic``; ``lazy[light]``,
``active[light]``, ``motivated[light]`` (query inference, by encoder); ``words[mode]`` and
``query[mode]`` (the share of the words recovered, and whether all were, by attack)."""

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
``distance to neighbour 1``, 10, 100, 1000; and of a plotted word ``distance`` and ``angle`` of its
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

VARIANTS = {"query_id": "string", "number": "int64", "variant": "string"}
"""``variants/KEY.parquet``: the variants of each query in their order. The query is not there."""

SCHEMAS = {"queries": QUERIES, "words": WORDS, "tasks": TASKS, "variants": VARIANTS}
FILES = {"queries": "results", "words": "words", "tasks": "tasks"}
"""The name of each table's files, .parquet and .csv."""


def make_table(kind: str, rows: Iterable[Sequence[Any]]) -> pa.Table:
    """A table of rows in the order of the schema's columns."""
    arrow = need_arrow()
    schema = arrow.schema([(name, getattr(arrow, of)()) for name, of in SCHEMAS[kind].items()])
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [arrow.array(each, of.type) for each, of in zip(columns, schema, strict=True)]
    return arrow.Table.from_arrays(arrays, schema=schema)


def need_arrow() -> Any:
    """Pyarrow, or what to do about it."""
    return need("pyarrow", "experiments", "experiments need an extra")
