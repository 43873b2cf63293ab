"""Variants of the judged queries: drawn by a mechanism, or read from what somebody published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from sottovoce.errors import SottovoceError, UsageError
from sottovoce.experiments.jobs import Source
from sottovoce.experiments.product import Product
from sottovoce.experiments.shelf import Shelf, pipeline
from sottovoce.experiments.tables import make_table, need_arrow
from sottovoce.obfuscation import Obfuscator
from sottovoce.privacy import Released, read_releases
from sottovoce.text.comparing import folded_text

if TYPE_CHECKING:
    import pyarrow as pa

Variants: TypeAlias = dict[str, tuple[str, ...]]
"""The variants of each judged query by its id; some mechanisms find fewer than asked for."""


def draw(source: Source, shelf: Shelf) -> Product:
    """The variants of all judged queries, in one batch."""
    queries = shelf.queries(source.collection)
    variants = _drawn(source, queries, shelf) if source.file is None else _read(source, queries)
    few = sum(len(found) < source.n for found in variants.values())
    return Product("variants", to_table(variants), facts=_fewer(source, few))


def _drawn(source: Source, queries: Mapping[str, str], shelf: Shelf) -> Variants:
    if source.spec is None:
        raise UsageError("a source of variants has a mechanism or a file")
    mechanism = shelf.mechanism(source.spec, source.epsilon, source.texts, source.collection)
    obfuscator = Obfuscator(
        mechanism,
        n=source.n,
        release=source.release,  # type: ignore[arg-type]  # it is checked there
        pipeline=pipeline(source.texts, mechanism),
        rng=source.seed,
        batch_size=len(queries),
    )
    results = obfuscator.obfuscate(queries.values())
    return {query: found.variants for query, found in zip(queries, results, strict=True)}


def _read(source: Source, queries: Mapping[str, str]) -> Variants:
    """The first variants of each query in the file, which must hold all of them."""
    assert source.file is not None  # noqa: S101 - asked before
    by_id: dict[str, list[Released]] = {}
    for each in read_releases(source.file):
        if source.epsilon is None or each.epsilon in (None, source.epsilon):
            by_id.setdefault(each.id, []).append(each)
    if missing := sum(query not in by_id for query in queries):
        raise UsageError(
            f"the published file lacks {missing} of the {len(queries)} judged queries at this "
            "epsilon: check that it belongs to this collection, and that the epsilon is the file's"
        )
    if double := sum(len(by_id[query]) > 1 for query in queries):
        raise UsageError(
            f"the published file holds {double} queries more than once, with other texts or "
            "settings: give a file for each setting"
        )
    found = {query: by_id[query][0] for query in queries}
    if other := sum(
        folded_text(found[query].text) != folded_text(queries[query]) for query in found
    ):
        raise UsageError(
            f"{other} queries of the published file have another text than the collection's of "
            "the same id: it belongs to another collection"
        )
    return {query: each.variants[: source.n] for query, each in found.items()}


def _fewer(source: Source, queries: int) -> dict[str, Any]:
    if not queries:
        return {}
    return {"fewer variants": {"mechanism": source.mechanism, "n": source.n, "queries": queries}}


def to_table(variants: Mapping[str, Iterable[str]]) -> pa.Table:
    """The table of variants, numbered from 1."""
    rows = [
        (query, number, variant)
        for query, found in variants.items()
        for number, variant in enumerate(found, start=1)
    ]
    return make_table("variants", rows)


def read_variants(file: Path, queries: Iterable[str]) -> Variants:
    """What :func:`draw` gave, from its file."""
    need_arrow()
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(file)
    except (OSError, ValueError) as error:
        raise SottovoceError(
            f"the variants of a cell are missing or damaged ({type(error).__name__}): run the "
            "experiment again"
        ) from None
    found: dict[str, list[str]] = {query: [] for query in queries}
    columns = (table.column(name).to_pylist() for name in ("query_id", "variant"))
    for query, variant in zip(*columns, strict=True):
        found[query].append(variant)
    return {query: tuple(each) for query, each in found.items()}
