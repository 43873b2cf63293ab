"""A chorus as it must not be, for attacks that have to break it."""

from __future__ import annotations

from dataclasses import replace

from sottovoce.obfuscation import Chorus, Obfuscation


class RemembersByWord(Chorus):
    """Words of private texts are replaced alike in all searches; those of decoys are not."""

    def _remembered(self, text: str, secret: bytes) -> Obfuscation:
        joined = super()._remembered(text, secret)
        (private,) = self._alone(memory_key=secret).obfuscate([text])
        variants, start = list(joined.variants), joined.choir.own * self.n
        variants[start : start + self.n] = private.variants
        return replace(joined, variants=tuple(variants))
