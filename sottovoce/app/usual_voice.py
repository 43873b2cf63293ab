"""Which voice speaks where none is chosen, and why: the one rule for page and REST."""

from __future__ import annotations

from typing import NamedTuple

from sottovoce import defaults
from sottovoce.app.schemas import SEARCH_VOICE
from sottovoce.app.settings import Settings
from sottovoce.choices import IN_COMPANY, VoiceId

LEAST_COMPANY = 10
"""Queries that a company has at least where nobody chose it. Of nine or fewer, whoever knows no
more than how the others are drawn names the one that is meant at least once in ten guesses (.9 / k,
:attr:`sottovoce.mechanisms.CoverChoice.best_guess`), and who knows more does better."""


class UsualVoice(NamedTuple):
    """A voice, and in a sentence why it is the usual one."""

    id: VoiceId
    why: str


def usual_voice(
    settings: Settings,
    *,
    own_documents: bool,
    can_hide: bool,
    queries: int,
) -> UsualVoice:
    """In company where its public queries fit what is searched, else as ``search`` does it.

    They fit if somebody named them, or if the demo's are asked of the demo collection.
    ``own_documents``: the engine has some, and does not search the collection. ``can_hide``: there
    are enough public queries for a set, and the engine takes one. ``queries``: as many leave.
    """
    has_pool = settings.pool is not None
    if not can_hide:
        small = "pool is too small" if has_pool else "query log is no pool"
        named = "another pool" if has_pool else "a longer public log with --log, or a pool"
        return UsualVoice(
            SEARCH_VOICE,
            f"A murmur is chosen, since this {small} to hide in, has strings that no engine is "
            "sent, or the engine takes no more than one query: for a voice in company name "
            f"{named} with --pool.",
        )
    if queries < LEAST_COMPANY:
        return UsualVoice(
            SEARCH_VOICE,
            f"A murmur is chosen: a company would be {size_in_words(queries)}. Of fewer than "
            f"{LEAST_COMPANY} you can choose it; if the server is yours, raise its most_queries.",
        )
    if settings.names_public_queries:
        source = "pool" if has_pool else "query log"
        return UsualVoice(
            IN_COMPANY, f"In company is chosen, since you named a public {source} to draw it from."
        )
    if settings.collection == defaults.COLLECTION and not own_documents:
        return UsualVoice(
            IN_COMPANY,
            "In company is chosen: the public queries of the demo are on what this collection is "
            "about.",
        )
    named = "a pool" if has_pool else "a log with --log or a pool"
    return UsualVoice(
        SEARCH_VOICE,
        "A murmur is chosen: in company finds only what some public query asks for, and those of "
        f"the demo are on other things. Name public queries like yours, {named} with --pool.",
    )


def size_in_words(queries: int) -> str | None:
    """How small a company is, and why, where the engine takes fewer queries than usual."""
    if queries >= defaults.VARIANTS:
        return None
    return f"of {queries} only, because this engine takes at most {queries} queries a search"
