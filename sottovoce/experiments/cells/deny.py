"""Plausible deniability of a mechanism, word by word."""

from __future__ import annotations

from sottovoce.experiments.grid import Deny
from sottovoce.experiments.measures import DISTINCT, MOVED, SUPPORT, UNCHANGED
from sottovoce.experiments.resource_cache import ResourceCache
from sottovoce.experiments.store import CellResult
from sottovoce.experiments.tables import make_table
from sottovoce.privacy.plausible_deniability import deniability, word_mechanism


def deny(job: Deny, cache: ResourceCache) -> CellResult:
    """N_w, S_w, different words in so many draws, and how far words move."""
    mechanism = word_mechanism(cache.mechanism(job.spec, job.epsilon, job.texts))
    ids = cache.sample(job.texts.only("space"), job.deniability.words)
    measured = deniability(mechanism, ids, draws=job.deniability.draws, rng=job.seed)
    words = mechanism.space.words(ids)
    measures = {
        UNCHANGED: measured.unchanged,
        SUPPORT: measured.support,
        DISTINCT: measured.distinct,
        MOVED: measured.moved,
    }
    setting = (mechanism.space.name, job.mechanism, job.epsilon, job.seed)
    rows = [
        (*setting, word, measure, float(value))
        for measure, values in measures.items()
        for word, value in zip(words, values, strict=True)
    ]
    how = "exact" if measured.exact else f"counted, {measured.draws} draws a word"
    facts = {"deniability": {"mechanism": job.mechanism, "how": how, "eta": measured.eta}}
    return CellResult("words", make_table("words", rows), facts=facts)
