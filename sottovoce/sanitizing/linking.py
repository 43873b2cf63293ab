"""Linkable substitutes: the same word gets the same one everywhere, decided by a secret.

Each word has a generator of its own, keyed by the secret and the word, so that neither the order
of the rows nor their batches matter. Whoever has the secret can compute every substitute.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import replace
from functools import lru_cache

import numpy as np

from sottovoce.errors import UsageError
from sottovoce.guarantees import Guarantee
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.obfuscation.memory import KeyedWords
from sottovoce.obfuscation.open_words import OpenWords
from sottovoce.types import IntArray

SECRET_BYTES = 32
SHORTEST_SECRET = 16
NOT_YET = -1

LINKABLE = (
    "linkable: equal words have equal substitutes, so which places hold equal words, and how "
    "often, is released as it is; frequent words can be guessed by counting, whatever the epsilon"
)
SCOPE = "distinct in-vocabulary word, with which places hold equal words given away"
WHO_HAS_THE_KEY = "whoever has the key of the linkable substitutes can undo most of them"


def new_secret() -> bytes:
    """A secret from the operating system."""
    return secrets.token_bytes(SECRET_BYTES)


def seeded_secret(seed: int) -> bytes:
    """The secret of an experiment: anybody can compute it."""
    return hashlib.sha256(f"sottovoce linkable, seed {seed}".encode()).digest()


def check_secret(secret: bytes) -> None:
    """Refuse a secret that could be guessed by trying."""
    if not isinstance(secret, bytes) or len(secret) < SHORTEST_SECRET:
        raise UsageError(
            f"the key of linkable substitutes needs at least {SHORTEST_SECRET} random bytes; make "
            f"one with: head -c {SECRET_BYTES} /dev/urandom > FILE"
        )


def linkable_guarantee(guarantee: Guarantee) -> Guarantee:
    """What is left of a promise if equal words stay equal."""
    return replace(guarantee, scope=SCOPE).with_caveats(LINKABLE, WHO_HAS_THE_KEY)


@lru_cache(maxsize=4)
def linked(secret: bytes, mechanism: WordMechanism) -> Linked:
    """The substitutes under this secret; one object for all batches of a process."""
    return Linked(secret, mechanism)


class Linked:
    """Draws the substitute of each word of the space once and keeps it."""

    def __init__(self, secret: bytes, mechanism: WordMechanism) -> None:
        label = f"{mechanism.spec}\n{mechanism.space.sha256}".encode()
        self._words = KeyedWords(hmac.digest(secret, label, "sha256"), mechanism)
        self._drawn = np.full(mechanism.space.size, NOT_YET)

    def substitutes(self, opened: OpenWords) -> list[IntArray]:
        """The ids of the substitutes, one array (1, slots) for each text."""
        ids = np.unique(np.concatenate([text.ids for text in opened.texts]))
        new = ids[self._drawn[ids] == NOT_YET]
        self._drawn[new] = self._words.known(new)[:, 0]
        return [self._filled(opened, number) for number in range(len(opened.texts))]

    def _filled(self, opened: OpenWords, number: int) -> IntArray:
        text, encoded = opened.texts[number], opened.between(number)
        slots = np.empty((1, len(text)), dtype=np.int64)
        slots[0, text.listed] = self._drawn[text.ids]
        slots[0, text.encoded] = self._words.encoded(encoded, opened.vectors(encoded))[:, 0]
        slots[0, text.uniform] = self._words.unknown(text.surfaces(text.uniform))[:, 0]
        return slots
