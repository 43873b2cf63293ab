"""What variants give away: similarity, query inference, recovery of words and queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from sottovoce.encoders import load_encoder
from sottovoce.experiments.cells.draw import Variants
from sottovoce.experiments.grid import Leak, Source
from sottovoce.experiments.measures import Measure
from sottovoce.experiments.naming import without_path
from sottovoce.experiments.resource_cache import ResourceCache
from sottovoce.experiments.store import CellResult
from sottovoce.experiments.tables import PRIVATE, make_table
from sottovoce.mechanisms import WordMechanism, parse
from sottovoce.privacy import Recovery, reconstruct
from sottovoce.privacy.attacks.inference import infer
from sottovoce.privacy.attacks.releases import Released
from sottovoce.privacy.plausible_deniability import word_mechanism
from sottovoce.privacy.text_similarity import SimilarityMeter

Leaked: TypeAlias = tuple[str, Measure, float]
"""Query, measure, value."""

WHOLE_TEXTS = "it replaces whole texts: there are no words to line up"
NOTHING_RELEASED = "not one query has a variant: there is nothing to attack"


def leak(job: Leak, cache: ResourceCache, variants: Variants) -> CellResult:
    """All measures of privacy, for each query that has variants."""
    source = job.source
    queries = cache.queries(source.collection)
    releases = [
        Released(query, queries[query], its_variants)
        for query, its_variants in variants.items()
        if its_variants
    ]
    leaked: list[Leaked] = []
    reasons = {} if releases else {"all": NOTHING_RELEASED}
    if releases:
        leaked += _similar(job, releases)
        leaked += _inferred(job, cache, releases)
        recoveries = _recovered(job, cache, releases)
        leaked += [row for recovery in recoveries for row in _shares(recovery)]
        reasons = {recovery.attack: recovery.why for recovery in recoveries if not recovery.applies}
    name = cache.collection(source.collection).name
    setting = (source.mechanism, source.epsilon, source.release, source.n, source.seed, PRIVATE)
    rows = [
        (name, "", "", *setting, query, measure.label, value) for query, measure, value in leaked
    ]
    facts = _facts(source, reasons, len(variants) - len(releases))
    return CellResult("queries", make_table("queries", rows), facts=facts)


def _similar(job: Leak, releases: Sequence[Released]) -> Iterator[Leaked]:
    measures = job.privacy.similarity
    if not measures:
        return
    encoder = job.privacy.similarity_encoder if "semantic" in measures else None
    similarities = SimilarityMeter(measures, encoder).measure(releases)
    for name, values in similarities.values.items():
        for query, value in zip(similarities.ids, values, strict=True):
            yield query, Measure("similarity", name), float(value)


def _inferred(job: Leak, cache: ResourceCache, releases: Sequence[Released]) -> Iterator[Leaked]:
    """Ranks of the originals as risks: of one guess, of ten, of going down the list."""
    if job.privacy.log is None:
        return
    log = cache.log(job.privacy.log)
    for name in job.privacy.inference_encoders:
        encoder = load_encoder(name)
        inference = infer(releases, log, encoder, add_originals=True)
        by = without_path(encoder.name)
        for guess in inference.queries:
            yield guess.id, Measure("lazy", by), float(guess.rank <= 1)
            yield guess.id, Measure("active", by), float(guess.rank <= inference.depth)
            yield guess.id, Measure("motivated", by), 1 / guess.rank


def _recovered(job: Leak, cache: ResourceCache, releases: Sequence[Released]) -> list[Recovery]:
    """Attacks that know the mechanism; of releases by an unknown one, what needs none.

    This is the only place where an experiment calls them.
    """
    source, attacks = job.source, job.privacy.attacks
    if not attacks:
        return []
    mechanism: WordMechanism | None = None
    if source.spec is not None:
        if not parse(source.spec)[0].by_word:
            return [Recovery(name, source.n, applies=False, why=WHOLE_TEXTS) for name in attacks]
        mechanism = word_mechanism(cache.mechanism(source.spec, source.epsilon, source.texts))
    count = min(job.privacy.attacked or len(releases), len(releases))
    return reconstruct(
        [releases[number * len(releases) // count] for number in range(count)],
        mechanism,
        release=source.release,
        counts=[source.n],
        attacks=attacks,
        bounds=False,
        rng=source.seed,
    )


def _shares(recovery: Recovery) -> Iterator[Leaked]:
    """What an attack got of each text, if it applies."""
    for text in recovery.by_text if recovery.applies else ():
        if text.words:
            yield text.id, Measure("words", recovery.attack), text.right / text.words
            yield text.id, Measure("query", recovery.attack), float(text.whole)


def _facts(source: Source, reasons: dict[str, str], unreleased: int) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if reasons:
        facts["attacks that do not apply"] = {"mechanism": source.mechanism, **reasons}
    if unreleased:
        facts["queries without a variant"] = {
            "mechanism": source.mechanism,
            "epsilon": source.epsilon,
            "queries": unreleased,
        }
    return facts
