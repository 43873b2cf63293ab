"""Choices that people make by name, in Python, on the command line and in files.

Nothing is imported here, so that the command line can show its help at once.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

Release: TypeAlias = Literal["independent", "once"]
"""How several variants of a text are drawn: each afresh, or all from one noisy point a word."""
RELEASES: tuple[Release, ...] = get_args(Release)

UnknownPolicy: TypeAlias = Literal["encode", "uniform", "drop", "error", "keep"]
"""What becomes of a word that the space lacks."""

Unprotected: TypeAlias = Literal["keep", "drop"]
"""What becomes of a word that is not protected: released in clear, or left out."""

Order: TypeAlias = Literal["kept", "shuffled"]
"""The words of a variant as they stand in the text, or in a random order of its own."""

Format: TypeAlias = Literal["csv", "jsonl", "parquet"]
"""Files of data that can be sanitized."""

Pooling: TypeAlias = Literal["union", "rrf", "combsum"]
"""How the answers to several queries become one list."""
POOLINGS: tuple[Pooling, ...] = get_args(Pooling)

Decoys: TypeAlias = Literal["uniform", "popular", "sensitive"]
"""How public queries that leave beside one are drawn: all alike, by the popularity that their pool
states, or rather on subjects that people hide."""

VoiceId: TypeAlias = Literal["whisper", "murmur", "speak-low", "normal-voice", "in-company"]
"""A privacy setting in words; ``app/schemas.py`` says what each is."""
IN_COMPANY: VoiceId = "in-company"
"""The voice that rewrites nothing."""
