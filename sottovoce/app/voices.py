"""Privacy in words: four voices, from a whisper to a normal voice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Voice = Literal["whisper", "murmur", "speak-low", "normal-voice"]
DEFAULT: Voice = "murmur"
VARIANTS = 20
"""Queries that a voice sends."""


@dataclass(frozen=True)
class Spoken:
    """A voice in words; it stands for ``cmp`` at this epsilon, released once."""

    id: Voice
    name: str
    epsilon: float
    line: str


VOICES = (
    Spoken("whisper", "whisper", 5.0, "Hides the subject, and finds the least."),
    Spoken("murmur", "murmur", 10.0, "Hides most words; what is found suffers."),
    Spoken("speak-low", "speak low", 12.5, "Lets more words through, and finds more."),
    Spoken("normal-voice", "normal voice", 15.0, "Says most words aloud, among others."),
)
