"""What variants give away: similarity, query inference, recovery of words and queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from sottovoce.encoders import load_encoder
from sottovoce.experiments.cells.draw import Variants
from sottovoce.experiments.grid import Leak, Source
from sottovoce.experiments.measures import CHANCE, Measure
from sottovoce.experiments.naming import collection_name, without_path
from sottovoce.experiments.resource_cache import ResourceCache, pipeline
from sottovoce.experiments.store import CellResult
from sottovoce.experiments.tables import ON_SETS, PRIVATE, UNTRIED_ON_SETS, make_table
from sottovoce.privacy import Inference, RiskReport, WordRecovery, attack
from sottovoce.privacy.attacks.company.report import CompanyReport
from sottovoce.privacy.attacks.releases import Released
from sottovoce.privacy.text_similarity import SimilarityMeter
from sottovoce.spaces.space import WordSpace

Leaked: TypeAlias = tuple[str, Measure, float]
"""Query, measure, value."""

ATTACKER_SEED = 0
"""What an attacker simulates is the same for all seeds of the releases."""
COMPANY_GUESSES = 10
"""As many guesses as others have who name queries."""
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
    facts = _unreleased(source, len(variants) - len(releases))
    if releases:
        leaked += _similar(job, releases)
        attacked = _chosen(releases, job.privacy.attacked)
        report = _attacked(job, cache, attacked)
        leaked += [row for _, inference in report.inferences for row in _ranks(inference)]
        leaked += [row for _, recovery in report.recoveries for row in _shares(recovery)]
        if report.company is not None:
            leaked += _named(report.company, attacked)
            leaked += [(released.id, CHANCE, report.company.chance) for released in attacked]
        facts |= _attackers(source, report)
    else:
        facts["attacks that were not tried"] = {source.mechanism: NOTHING_RELEASED}
    name = cache.collection(source.collection).name
    setting = (source.mechanism, source.epsilon, source.release, source.n, source.seed, PRIVATE)
    rows = [
        (name, "", "", *setting, query, measure.label, value) for query, measure, value in leaked
    ]
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


def _chosen(releases: Sequence[Released], most: int | None) -> list[Released]:
    """As many releases as are to be attacked, evenly chosen."""
    count = min(most or len(releases), len(releases))
    return [releases[number * len(releases) // count] for number in range(count)]


def _attacked(job: Leak, cache: ResourceCache, releases: Sequence[Released]) -> RiskReport:
    """Every attack of the job; by one who knows the mechanism, if the experiment knows it.

    This is the only place where an experiment attacks.
    """
    source, privacy = job.source, job.privacy
    mechanism = None
    if source.spec is not None:
        mechanism = cache.mechanism(source.spec, source.epsilon, source.texts, source.collection)
    return attack(
        releases,
        mechanism=mechanism,
        release=source.release,
        pipeline=pipeline(source.texts, mechanism) if mechanism else None,
        log=None if privacy.log is None else cache.log(privacy.log),
        encoders=[load_encoder(name) for name in privacy.inference_encoders],
        space=_space(source, cache),
        add_originals=True,
        counts=[source.n],
        attacks=privacy.attacks,
        rng=ATTACKER_SEED,
    )


def _space(source: Source, cache: ResourceCache) -> WordSpace | None:
    """The word space that the experiment names, if it does."""
    named = source.texts.settings("space")["space"]
    return None if named is None else cache.space(source.texts.only("space"))


def _ranks(inference: Inference) -> Iterator[Leaked]:
    """Ranks of the originals as risks: of one guess, of ten, of going down the list."""
    by = without_path(inference.attack)
    for guess in inference.queries:
        yield guess.id, Measure("lazy", by), float(guess.rank <= 1)
        yield guess.id, Measure("active", by), float(guess.rank <= inference.depth)
        yield guess.id, Measure("motivated", by), 1 / guess.rank


def _named(company: CompanyReport, releases: Sequence[Released]) -> Iterator[Leaked]:
    """How soon what stands for each query is named among what left with it.

    To name the query itself is no more likely.
    """
    for naming in company.namings:
        for released, hit, rank in zip(releases, naming.hits, naming.ranks, strict=True):
            yield released.id, Measure("lazy", naming.attack), float(hit)
            yield released.id, Measure("active", naming.attack), float(rank <= COMPANY_GUESSES)
            yield released.id, Measure("motivated", naming.attack), 1 / rank


def _shares(recovery: WordRecovery) -> Iterator[Leaked]:
    """What an attack got of each text."""
    for text in recovery.by_text:
        if text.words:
            yield text.id, Measure("words", recovery.attack), text.right / text.words
            yield text.id, Measure("query", recovery.attack), float(text.whole)
        if text.content:
            yield text.id, Measure("content", recovery.attack), text.content_right / text.content


def _attackers(source: Source, report: RiskReport) -> dict[str, Any]:
    """What each attacker knew, and what was not tried."""
    facts: dict[str, Any] = {}
    of = {"mechanism": source.mechanism}
    not_tried = report.not_tried
    attacks: list[WordRecovery | Inference] = [made for _, made in report.recoveries]
    attacks += [made for _, made in report.inferences]
    if attacks:
        facts["attackers"] = {without_path(made.attack): made.knows for made in attacks}
    if report.company:
        of_set = {**of, "collection": collection_name(source.collection)}
        on_sets = report.company.not_tried
        not_tried = {name: why for name, why in not_tried.items() if name not in on_sets}
        knows = {naming.attack: naming.knows for naming in report.company.namings}
        facts |= {ON_SETS: of_set | knows, UNTRIED_ON_SETS: of_set | on_sets}
    if not_tried:
        facts["attacks that were not tried"] = of | not_tried
    return facts


def _unreleased(source: Source, count: int) -> dict[str, Any]:
    if not count:
        return {}
    setting = {"mechanism": source.mechanism, "epsilon": source.epsilon, "queries": count}
    return {"queries without a variant": setting}
