"""Which voice speaks where none is chosen, and why: the one rule for page and REST."""

from __future__ import annotations

from typing import NamedTuple

from sottovoce import defaults
from sottovoce.app.schemas import SEARCH_VOICE
from sottovoce.app.settings import Settings
from sottovoce.choices import VoiceId
from sottovoce.collections import DEMO

IN_COMPANY: VoiceId = "in-company"


class UsualVoice(NamedTuple):
    """A voice, and in a sentence why it is the usual one."""

    id: VoiceId
    why: str


def usual_voice(settings: Settings, *, own_documents: bool, can_hide: bool) -> UsualVoice:
    """In company where its public queries fit what is searched, else as ``search`` does it.

    They fit if somebody named the log they come from, or if the demo's are asked of the demo
    collection. ``own_documents``: the engine has some, and does not search the collection.
    ``can_hide``: the log makes a pool with enough lines for a set, and the engine takes one.
    """
    named = settings.log != DEMO
    if not can_hide:
        return UsualVoice(
            SEARCH_VOICE,
            "A murmur is chosen, since this query log is no pool to hide in, or the engine takes "
            "no more than one query: for a voice in company name a longer public log with --log.",
        )
    if named:
        return UsualVoice(
            IN_COMPANY, "In company is chosen, since you named a public query log to draw it from."
        )
    if settings.collection == defaults.COLLECTION and not own_documents:
        return UsualVoice(
            IN_COMPANY,
            "In company is chosen: on this collection it was found to give away less than a "
            "murmur, and to find more.",
        )
    return UsualVoice(
        SEARCH_VOICE,
        "A murmur is chosen: in company finds only what some line of the query log asks for, and "
        "the demo's log is on other things. Name a public log of queries like yours with --log.",
    )
