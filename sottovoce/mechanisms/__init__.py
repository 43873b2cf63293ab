"""Mechanisms, one file each. They read no files and open no sockets."""

from sottovoce.mechanisms import cmp, mahalanobis, vickrey
from sottovoce.mechanisms.base import Mechanism, WordMechanism
from sottovoce.mechanisms.registry import kind, mechanism, names, parse, register

__all__ = [
    "Mechanism",
    "WordMechanism",
    "cmp",
    "kind",
    "mahalanobis",
    "mechanism",
    "names",
    "parse",
    "register",
    "vickrey",
]
