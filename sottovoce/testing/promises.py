"""What all checks need: a promise, a made-up word and space, and an open ear."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce.mechanisms.base import (
    Mechanism,
)
from sottovoce.spaces.space import WordSpace

SMALL_PICKLE = 4096

DRAWS = 4000

SECRET = "xqzzysecret"  # noqa: S105 - a made-up word that no space knows


def toy_space() -> WordSpace:
    """Five words in the plane, whose exact laws are known."""
    return WordSpace.from_arrays(
        ["a", "b", "c", "e", "f"],
        [[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [-1.0, 0.5], [2.0, 0.5]],
        name="toy",
    )


def promise(kept: bool | np.bool_, message: str) -> None:
    """Raise an ``AssertionError`` that names the broken promise."""
    if not kept:
        raise AssertionError(message)


def check_guarantee(mechanism: Mechanism) -> None:
    """The guarantee is stated, and a metric one never poses as more."""
    stated = mechanism.guarantee
    promise(bool(stated.caveats), "every guarantee says what it does not cover")
    if stated.notion == "metric":
        wording = " ".join((stated.sentence, *stated.caveats, mechanism.summary)).lower()
        promise("epsilon-dp" not in wording, "a metric guarantee is not called epsilon-DP")
        promise("ε-dp" not in wording, "a metric guarantee is not called ε-DP")
    if stated.notion == "none":
        promise(stated.loss(1.0) == np.inf, "without a guarantee the loss is unbounded")


@contextmanager
def listening() -> Iterator[io.StringIO]:
    """Collects what is logged or printed in the block."""
    heard = io.StringIO()
    handler = logging.StreamHandler(heard)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with redirect_stdout(heard), redirect_stderr(heard):
            yield heard
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def generator(seed: int) -> Generator:
    """A generator that a seed decides."""
    return Generator(PCG64(seed))
