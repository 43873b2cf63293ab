"""Variants of the judged queries: drawn by a mechanism, or read from what somebody published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from sottovoce.errors import UsageError
from sottovoce.experiments.grid import Source
from sottovoce.experiments.measures import SENT
from sottovoce.experiments.naming import collection_name
from sottovoce.experiments.resource_cache import ResourceCache, pipeline
from sottovoce.experiments.store import CellResult
from sottovoce.experiments.tables import PRIVATE, make_table
from sottovoce.obfuscation import Obfuscator
from sottovoce.privacy.attacks.releases import Released, read_releases
from sottovoce.text.comparing import folded_text, single_spaced

if TYPE_CHECKING:
    import pyarrow as pa

Variants: TypeAlias = dict[str, tuple[str, ...]]
"""The variants of each judged query by its id; some mechanisms find fewer than asked for."""


def draw(source: Source, cache: ResourceCache) -> CellResult:
    """The variants of all judged queries, in one batch, numbered from 1."""
    queries = cache.queries(source.collection)
    variants = _drawn(source, queries, cache) if source.file is None else _read(source, queries)
    rows = [
        (query, number, variant)
        for query, its_variants in variants.items()
        for number, variant in enumerate(its_variants, start=1)
    ]
    facts = {}
    if too_few := sum(len(its_variants) < source.n for its_variants in variants.values()):
        shortage = {"mechanism": source.mechanism, "n": source.n, "queries": too_few}
        facts = {"fewer variants": shortage}
    return CellResult("variants", make_table("variants", rows), facts=facts)


def from_table(table: pa.Table, queries: Iterable[str]) -> Variants:
    """What :func:`draw` drew, out of its table."""
    variants: dict[str, list[str]] = {query: [] for query in queries}
    columns = (table.column(name).to_pylist() for name in ("query_id", "variant"))
    for query, variant in zip(*columns, strict=True):
        variants[query].append(variant)
    return {query: tuple(its_variants) for query, its_variants in variants.items()}


def sent(source: Source, table: pa.Table) -> pa.Table:
    """How many queries leave for each query, as the boundary sends them: equal ones once."""
    different: dict[str, set[str]] = {}
    columns = (table.column(name).to_pylist() for name in ("query_id", "variant"))
    for query, variant in zip(*columns, strict=True):
        different.setdefault(query, set()).add(single_spaced(variant))
    name = collection_name(source.collection)
    setting = (source.mechanism, source.epsilon, source.release, source.n, source.seed, PRIVATE)
    rows = [
        (name, "", "", *setting, query, SENT.label, float(len(variants - {""})))
        for query, variants in different.items()
    ]
    return make_table("queries", rows)


def _drawn(source: Source, queries: Mapping[str, str], cache: ResourceCache) -> Variants:
    if source.spec is None:
        raise UsageError("a source of variants has a mechanism or a file")
    mechanism = cache.mechanism(source.spec, source.epsilon, source.texts, source.collection)
    obfuscator = Obfuscator(
        mechanism,
        n=source.n,
        release=source.release,
        pipeline=pipeline(source.texts, mechanism),
        rng=source.seed,
        batch_size=len(queries),
    )
    results = obfuscator.obfuscate(queries.values())
    return {query: result.variants for query, result in zip(queries, results, strict=True)}


def _read(source: Source, queries: Mapping[str, str]) -> Variants:
    """The first variants of each query in the file, which must hold all of them."""
    assert source.file is not None  # noqa: S101 - asked before
    by_id: dict[str, list[Released]] = {}
    for release in read_releases(source.file):
        if source.epsilon is None or release.epsilon in (None, source.epsilon):
            by_id.setdefault(release.id, []).append(release)
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
    releases = {query: by_id[query][0] for query in queries}
    if other := sum(
        folded_text(releases[query].text) != folded_text(text) for query, text in queries.items()
    ):
        raise UsageError(
            f"{other} queries of the published file have another text than the collection's of "
            "the same id: it belongs to another collection"
        )
    return {query: release.variants[: source.n] for query, release in releases.items()}
