"""Encoders by name, each loaded once a process and never from a network."""

from __future__ import annotations

from functools import cache

from sottovoce.encoders.base import Encoder


def load_encoder(name: str = "auto") -> Encoder:
    """Load ``light``, ``strong``, or a SentenceTransformer model of your own by folder or name.

    ``auto`` is the strong one where it is installed, else the light one; the encoder's name
    says which.
    """
    from sottovoce.encoders.strong import StrongEncoder

    if name == "auto":
        return _loaded("strong" if StrongEncoder.installed() else "light")
    return _loaded(name)


@cache
def _loaded(name: str) -> Encoder:
    if name == "light":
        from sottovoce.encoders.light import LightEncoder

        return LightEncoder()
    if name == "strong":
        from sottovoce.encoders.strong import StrongEncoder

        return StrongEncoder()
    from sottovoce.encoders.sentence_transformer import SentenceTransformerEncoder

    return SentenceTransformerEncoder(name)
