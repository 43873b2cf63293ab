"""What variants give away: similarity, query inference, recovery of words and queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from sottovoce.encoders import load_encoder
from sottovoce.experiments.jobs import Leak, Source
from sottovoce.experiments.naming import without_path
from sottovoce.experiments.product import Product
from sottovoce.experiments.shelf import Shelf
from sottovoce.experiments.steps.drawing import Variants
from sottovoce.experiments.tables import PRIVATE, make_table
from sottovoce.mechanisms import WordMechanism, parse
from sottovoce.privacy import Recovery, Released, SimilarityMeter, infer, reconstruct
from sottovoce.privacy.plausible_deniability import word_mechanism

Value: TypeAlias = tuple[str, str, float]
"""Query, measure, value."""

WHOLE_TEXTS = "it replaces whole texts: there are no words to line up"
NOTHING_RELEASED = "not one query has a variant: there is nothing to attack"


def leak(job: Leak, shelf: Shelf, variants: Variants) -> Product:
    """All measures of privacy, for each query that has variants."""
    source = job.source
    queries = shelf.queries(source.collection)
    releases = [Released(query, queries[query], found) for query, found in variants.items()]
    released = [each for each in releases if each.variants]
    values: list[Value] = []
    reasons: dict[str, str] = {}
    if released:
        values += _similar(job, released)
        values += _inferred(job, shelf, released)
        found = _recovered(job, shelf, released)
        values += [value for each in found if each.applies for value in _shares(each)]
        reasons = {each.attack: each.why for each in found if not each.applies}
    else:
        reasons = {"all": NOTHING_RELEASED}
    name = shelf.collection(source.collection).name
    setting = (source.mechanism, source.epsilon, source.release, source.n, source.seed, PRIVATE)
    table = make_table("queries", [(name, "", "", *setting, *value) for value in values])
    return Product("queries", table, facts=_facts(source, reasons, len(releases) - len(released)))


def _similar(job: Leak, releases: Sequence[Released]) -> Iterator[Value]:
    measures = job.privacy.similarity
    if not measures:
        return
    encoder = job.privacy.similarity_encoder if "semantic" in measures else None
    found = SimilarityMeter(measures, encoder).measure(releases)
    for measure, values in found.values.items():
        yield from (
            (query, measure, float(each)) for query, each in zip(found.ids, values, strict=True)
        )


def _inferred(job: Leak, shelf: Shelf, releases: Sequence[Released]) -> Iterator[Value]:
    """Ranks of the originals as risks: of one guess, of ten, of going down the list."""
    if job.privacy.log is None:
        return
    log = shelf.log(job.privacy.log)
    for name in job.privacy.inference_encoders:
        encoder = load_encoder(name)
        found = infer(releases, log, encoder, add_originals=True)
        by = without_path(encoder.name)
        for each in found.queries:
            yield each.id, f"lazy[{by}]", float(each.rank <= 1)
            yield each.id, f"active[{by}]", float(each.rank <= found.depth)
            yield each.id, f"motivated[{by}]", 1 / each.rank


def _recovered(job: Leak, shelf: Shelf, releases: Sequence[Released]) -> list[Recovery]:
    """Attacks that know the mechanism; of releases by an unknown one, what needs none."""
    source, attacks = job.source, job.privacy.attacks
    if not attacks:
        return []
    known: WordMechanism | None = None
    if source.spec is not None:
        if not issubclass(parse(source.spec)[0], WordMechanism):
            return [Recovery(name, source.n, applies=False, why=WHOLE_TEXTS) for name in attacks]
        known = word_mechanism(shelf.mechanism(source.spec, source.epsilon, source.texts))
    count = min(job.privacy.attacked or len(releases), len(releases))
    return reconstruct(
        [releases[place * len(releases) // count] for place in range(count)],
        known,
        release=source.release,  # type: ignore[arg-type]  # it is checked there
        counts=[source.n],
        attacks=attacks,
        bounds=False,
        rng=source.seed,
    )


def _shares(found: Recovery) -> Iterator[Value]:
    """A bound has no rows: it is no attack."""
    for each in found.by_text:
        if each.words:
            yield each.id, f"words[{found.attack}]", each.right / each.words
            yield each.id, f"query[{found.attack}]", float(each.whole)


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
