"""Plausible deniability of a mechanism, word by word."""

from __future__ import annotations

from sottovoce.experiments.jobs import Deny
from sottovoce.experiments.product import Product
from sottovoce.experiments.shelf import Shelf
from sottovoce.experiments.tables import make_table
from sottovoce.privacy import deniability
from sottovoce.privacy.plausible_deniability import word_mechanism


def deny(job: Deny, shelf: Shelf) -> Product:
    """N_w, S_w, different words in so many draws, and how far words move."""
    mechanism = word_mechanism(shelf.mechanism(job.spec, job.epsilon, job.texts))
    ids = shelf.sample(job.texts.space, job.texts.output_vocabulary, job.deniability.words)
    found = deniability(mechanism, ids, draws=job.deniability.draws, rng=job.seed)
    words = mechanism.space.words(ids)
    measures = {
        "N_w": found.unchanged,
        "S_w": found.support,
        "distinct": found.distinct,
        "moved": found.moved,
    }
    setting = (mechanism.space.name, job.mechanism, job.epsilon, job.seed)
    rows = [
        (*setting, word, measure, float(value))
        for measure, values in measures.items()
        for word, value in zip(words, values, strict=True)
    ]
    how = "exact" if found.exact else f"counted, {found.draws} draws a word"
    facts = {"deniability": {"mechanism": job.mechanism, "how": how, "eta": found.eta}}
    return Product("words", make_table("words", rows), facts=facts)
