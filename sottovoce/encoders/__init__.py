"""Sentence encoders: texts in, unit vectors out; everything stays on this machine."""

from __future__ import annotations

from sottovoce.encoders.base import Encoder, corpus_vectors, shared_encoder

__all__ = ["Encoder", "corpus_vectors", "encoder_name", "load_encoder"]


def load_encoder(name: str = "auto") -> Encoder:
    """Load ``light``, ``strong``, or a SentenceTransformer model of your own by folder or name.

    ``auto`` is the strong one where it is installed, else the light one; the encoder's name
    says which. Each is loaded once a process, and never from a network.
    """
    name = encoder_name(name)
    if name == "light":
        from sottovoce.encoders.light import LightEncoder

        return shared_encoder(LightEncoder)
    if name == "strong":
        from sottovoce.encoders.strong import StrongEncoder

        return shared_encoder(StrongEncoder)
    from sottovoce.encoders.sentence_transformer import SentenceTransformerEncoder

    return shared_encoder(SentenceTransformerEncoder, name)


def encoder_name(name: str) -> str:
    """The name of the encoder that ``auto`` stands for on this machine; others as they are."""
    if name != "auto":
        return name
    from sottovoce.encoders.strong import StrongEncoder

    return "strong" if StrongEncoder.installed() else "light"
