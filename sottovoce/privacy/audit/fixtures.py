"""Small spaces on which a wrong noise shows: a line where the bound is tight, and a plane.

A mechanism is rebuilt on them as it is, epsilon included; the words are closer by as much as
epsilon is larger, so that the claim always allows one nat between neighbours of the line.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TypeVar

import numpy as np

from sottovoce.mechanisms.base import WordMechanism
from sottovoce.spaces.space import WordSpace

Kind = TypeVar("Kind", bound=WordMechanism)

LINE = 33
STRETCH = np.diag([10.0, 0.1])
"""In place of the plane's covariance."""
PLANE_WORDS = "abcLRT"
PLANE = ((0.0, 0.0), (1.0, 0.0), (0.0, 0.2), (-0.1, 0.2), (0.1, 0.2), (0.0, 0.3))


def on_line(mechanism: Kind, nats: float = 1.0) -> Kind:
    """The mechanism on words of one dimension, neighbours ``nats`` / epsilon apart."""
    places = np.arange(LINE)[:, None] * (nats / mechanism.epsilon)
    names = [f"word {number}" for number in range(LINE)]
    return replace(mechanism, space=WordSpace.from_arrays(names, places, name="line"))


def on_plane(mechanism: Kind) -> Kind:
    """The mechanism on six words of the plane; noise that follows a shape follows the stretch."""
    space = WordSpace.from_arrays(
        list(PLANE_WORDS), np.array(PLANE) / mechanism.epsilon, name="plane"
    )
    space.covariance = STRETCH
    shaped = {"lambda_": 1.0} if "lambda_" in {field.name for field in fields(mechanism)} else {}
    return replace(mechanism, space=space, **shaped)
