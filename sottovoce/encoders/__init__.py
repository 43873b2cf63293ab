"""Sentence encoders: texts in, vectors out; everything stays on this machine."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from sottovoce.encoders.base import Encoder, corpus_vectors, encode_words, shared_encoder
from sottovoce.errors import SottovoceError

__all__ = ["Encoder", "corpus_vectors", "encode_words", "encoder_name", "load_encoder"]


def load_encoder(name: str = "auto") -> Encoder:
    """Load ``light``, ``strong``, ``strong-int8``, or a model of your own by its folder or name.

    ``FILE.toml`` describes one whose vectors have any length, or which has two towers.

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
    if name == "strong-int8":
        from sottovoce.encoders.strong import StrongInt8Encoder

        return shared_encoder(StrongInt8Encoder)
    if name.endswith(".toml"):
        return _described(name)
    return _own_model(name)


@cache
def _described(file: str) -> Encoder:
    from sottovoce.encoders.described import DescribedEncoder

    return DescribedEncoder(file, load_encoder)


def _own_model(name: str) -> Encoder:
    """A BERT model in a folder by onnxruntime; what that cannot read, by sentence-transformers."""
    from sottovoce.encoders.bert_folder import BertFolder, NotReadAsBert
    from sottovoce.encoders.sentence_transformer import SentenceTransformerEncoder

    if not Path(name).expanduser().is_dir():
        return shared_encoder(SentenceTransformerEncoder, name)
    try:
        return shared_encoder(BertFolder, name)
    except NotReadAsBert as reason:
        try:
            return shared_encoder(SentenceTransformerEncoder, name)
        except SottovoceError as error:
            message = f"this folder is not read as a BERT model, since {reason}; {error}"
            raise error.with_message(message) from None


def encoder_name(name: str) -> str:
    """The name of the encoder that ``auto`` stands for on this machine; others as they are."""
    if name != "auto":
        return name
    from sottovoce.encoders.strong import StrongEncoder

    return "strong" if StrongEncoder.installed() else "light"
