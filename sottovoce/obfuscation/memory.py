"""Draws that a secret decides: a word said before is never drawn anew.

Each word has a generator of its own, keyed by the secret and the word (HMAC-SHA256). Nothing has to
be kept to repeat a draw, and neither the text around a word nor its batch matter. Whoever has the
secret can compute every substitute.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.random import Generator

from sottovoce.choices import Release
from sottovoce.mechanisms.base import ROWS_AT_A_TIME, Mechanism, WordMechanism
from sottovoce.obfuscation.open_words import OpenWords
from sottovoce.obfuscation.words import drawn_at, drawn_listed
from sottovoce.randomness import Draws, Streams, keyed_generator
from sottovoce.text import PreparedText
from sottovoce.types import ENCODED, UNKNOWN, Float32Array, IntArray

DRAWING = 1
"""Raise it with any change that makes a mechanism draw otherwise from the same generator."""

Name: TypeAlias = tuple[str, str]
"""What a draw belongs to: a known word as the space writes it, an unknown one, or a whole text."""


def keyed_hash(key: bytes, *values: Any) -> bytes:
    """The keyed hash of some values."""
    return hmac.digest(key, json.dumps(values).encode("ascii"), "sha256")


def key_fingerprint(secret: bytes) -> str:
    """What tells one secret from another, and gives none away."""
    return keyed_hash(secret, "fingerprint").hex()


def drawn_by() -> dict[str, Any]:
    """What makes numbers of bits.

    numpy promises the same draws from the same bits for releases that differ in the third number
    alone. Another version may draw otherwise: then what it draws counts as never drawn.
    """
    version = np.lib.NumpyVersion(np.__version__)
    return {"drawing": DRAWING, "numpy": [version.major, version.minor]}


def setting_of(mechanism: Mechanism, n: int, release: Release) -> dict[str, Any]:
    """All that decides what a generator draws."""
    return {
        **drawn_by(),
        "mechanism": mechanism.spec,
        "made_with": mechanism.made_with,
        "release": release,
        "n": n,
    }


class KeyedWords:
    """The substitutes of words: ``n`` of each, always the same under the same key.

    All ``n`` are read off one noisy point if ``once``, else each is drawn by itself.
    """

    def __init__(
        self, key: bytes, mechanism: WordMechanism, n: int = 1, once: bool = False
    ) -> None:
        self._key, self._mechanism, self._n, self._once = key, mechanism, n, once

    def known(self, ids: IntArray) -> IntArray:
        """The substitutes of words of the space, (len(ids), n)."""
        words = self._mechanism.space.words(ids)
        drawn = np.empty((len(ids), self._n), dtype=np.int64)
        for rows in self._blocks(len(ids)):
            generators = [self._generator("known", word) for word in words[rows]]
            drawn[rows] = self._draw(ids[rows], generators)
        return drawn

    def unknown(self, words: Sequence[str]) -> IntArray:
        """The same for words that the space lacks: a uniform word stands in for each."""
        released = self._mechanism.space.output.ids
        drawn = np.empty((len(words), self._n), dtype=np.int64)
        for rows in self._blocks(len(words)):
            generators = [self._generator("unknown", word) for word in words[rows]]
            numbers = Draws([(generator, 1) for generator in generators]).below(len(released))
            drawn[rows] = self._draw(released[numbers], generators)
        return drawn

    def encoded(self, words: Sequence[str], vectors: Float32Array) -> IntArray:
        """The same for words that the space does not list, by their vectors."""
        drawn = np.empty((len(words), self._n), dtype=np.int64)
        for rows in self._blocks(len(words)):
            generators = [self._generator("encoded", word) for word in words[rows]]
            draws, times = self._draws(generators)
            at = np.repeat(vectors[rows], times, axis=0)
            drawn[rows] = drawn_at(self._mechanism, at, self._n, self._once, draws).reshape(
                -1, self._n
            )
        return drawn

    def _blocks(self, count: int) -> list[slice]:
        step = max(1, ROWS_AT_A_TIME // self._n)
        return [slice(start, start + step) for start in range(0, count, step)]

    def _draw(self, ids: IntArray, generators: list[Generator]) -> IntArray:
        draws, times = self._draws(generators)
        drawn = drawn_listed(self._mechanism, np.repeat(ids, times), self._n, self._once, draws)
        return drawn.reshape(-1, self._n)

    def _draws(self, generators: list[Generator]) -> tuple[Draws, int]:
        """Draws for words, and how many each word needs: one if all variants are read off it."""
        times = 1 if self._once else self._n
        return Draws([(generator, times) for generator in generators]), times

    def _generator(self, kind: str, word: str) -> Generator:
        return keyed_generator(keyed_hash(self._key, kind, word))


class KeyedStreams(Streams):
    """The generators of one text, keyed by its words: the same words, the same numbers."""

    def __init__(self, key: bytes, names: Sequence[Name]) -> None:
        super().__init__(None, "")
        self.shared = False
        self._key = keyed_hash(key, "text", *names)

    def generator(self, text: int, variant: int, purpose: int, unit: int) -> Generator:
        """That of a variant, for a purpose; the number of the text does not matter."""
        return keyed_generator(keyed_hash(self._key, variant, purpose, unit))


class Memory:
    """Draws by word under a secret, for one mechanism, number of variants and release.

    Each setting has draws of its own, since one noisy point must not move two words, nor one word
    by two laws.
    """

    def __init__(self, secret: bytes, mechanism: Mechanism, n: int, release: Release) -> None:
        self._key = keyed_hash(secret, "setting", setting_of(mechanism, n, release))
        self.fingerprint = key_fingerprint(secret)
        self._n, self._once = n, release == "once"

    def names(self, text: PreparedText, mechanism: WordMechanism) -> list[Name]:
        """What the draws of a text belong to, one for each slot but those that are padding.

        A known word is the one that the space has for it: *Skin*, *skin* and *skin's* are one.
        Others are compared as words are.
        """
        size = len(text) - text.counts.padding
        slots = text.slots[:size].tolist()
        words = mechanism.space.words(np.maximum(text.slots[:size], 0))
        surfaces = text.surfaces(np.arange(len(text)) < size)
        kinds = {UNKNOWN: "unknown", ENCODED: "encoded"}
        return [
            (kinds[slot], surface) if slot in kinds else ("known", word)
            for slot, word, surface in zip(slots, words, surfaces, strict=True)
        ]

    def streams(self, names: Sequence[Name]) -> KeyedStreams:
        """All other random numbers of a text: how its substitutes are dealt, say."""
        return KeyedStreams(self._key, names)

    def substitutes(
        self, opened: OpenWords, names: Sequence[Name], mechanism: WordMechanism, streams: Streams
    ) -> IntArray:
        """The ids of one text's substitutes, (n, slots); each word's are dealt in random order."""
        (text,) = opened.texts
        drawn = np.empty((len(text), self._n), dtype=np.int64)
        words = KeyedWords(keyed_hash(self._key, "words"), mechanism, self._n, self._once)
        drawn[text.listed] = words.known(text.ids)
        encoded = opened.between(0)
        drawn[text.encoded] = words.encoded(encoded, opened.vectors(encoded))
        unknown = words.unknown([word for kind, word in names if kind == "unknown"])
        # Padding belongs to the text: were it the same everywhere, it could be told by that.
        padding_key = keyed_hash(self._key, "padding", *names)
        padding = KeyedWords(padding_key, mechanism, self._n, self._once)
        places = [str(place) for place in range(text.counts.padding)]
        drawn[text.uniform] = np.concatenate([unknown, padding.unknown(places)])
        orders = streams.draws(0, 0, Streams.DEALING, len(text)).orders(self._n)
        return np.take_along_axis(drawn, orders, axis=1).T

    def hashes(self, names: Sequence[Name]) -> tuple[str, ...]:
        """What stands for words in the ledger, each once, in no order; no draw follows from it."""
        return tuple(sorted({keyed_hash(self._key, "released", *name).hex() for name in names}))
