"""Mechanisms, one file each. They read no files and open no sockets."""

from sottovoce.mechanisms import (
    aea,
    cmp,
    comet,
    cover,
    cover_subjects,
    custext,
    fea,
    incognito,
    mahalanobis,
    resources,
    santext,
    syntf,
    tem,
    versatile,
    vickrey,
    wbb,
)
from sottovoce.mechanisms.base import Mechanism, WordMechanism
from sottovoce.mechanisms.build import kind, mechanism, names, parse, register
from sottovoce.mechanisms.cover_choice import cover_for, usual_decoys
from sottovoce.mechanisms.dp_prompt import DPPrompt

__all__ = [
    "DPPrompt",
    "Mechanism",
    "WordMechanism",
    "aea",
    "cmp",
    "comet",
    "cover",
    "cover_for",
    "custext",
    "fea",
    "kind",
]
__all__ += [
    "cover_subjects",
    "mahalanobis",
    "mechanism",
    "names",
    "parse",
    "register",
    "resources",
    "santext",
    "syntf",
    "tem",
]
__all__ += ["incognito", "usual_decoys", "versatile", "vickrey", "wbb"]
