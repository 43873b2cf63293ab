"""Sentence encoders: texts in, unit vectors out; everything stays on this machine."""

from sottovoce.encoders.base import Encoder
from sottovoce.encoders.loading import load_encoder
from sottovoce.encoders.store import corpus_vectors

__all__ = ["Encoder", "corpus_vectors", "load_encoder"]
