"""Words that a space does not list, given vectors by the encoder that made it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sottovoce.spaces.space import WordSpace
from sottovoce.text import PreparedText
from sottovoce.types import Float32Array


class OpenWords:
    """The words of some texts that are encoded, each once.

    ``texts`` are the texts with a uniform stand-in for every word that the encoder cannot read,
    such as one in a script that its tokenizer does not know.
    """

    def __init__(self, space: WordSpace, texts: Sequence[PreparedText]) -> None:
        surfaces = [text.surfaces(text.encoded) if text.counts.encoded else [] for text in texts]
        words = list(dict.fromkeys(word for row in surfaces for word in row))
        self.texts = list(texts)
        self._rows: dict[str, int] = {}
        self._vectors = np.empty((0, space.dimension), dtype=np.float32)
        if not words:
            return
        from sottovoce.encoders.word_spaces import word_vectors

        self._vectors, readable = word_vectors(space, words)
        self._rows = dict(zip(words, range(len(words)), strict=True))
        unread = {words[row] for row in np.flatnonzero(~readable)}
        if unread:
            self.texts = [text.unencoded(unread) for text in texts]

    def between(self, number: int, start: int = 0, end: int | None = None) -> list[str]:
        """The encoded words at slots ``start`` to ``end`` of a text."""
        text = self.texts[number]
        end = len(text) if end is None else end
        places = text.encoded.copy()
        places[:start] = places[end:] = False
        return text.surfaces(places)

    def vectors(self, words: Sequence[str]) -> Float32Array:
        """The vectors of some of the words."""
        return self._vectors[[self._rows[word] for word in words]]
