"""Errors that tell people what to do, and never repeat the text they were about."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SottovoceError(Exception):
    """Something failed; nothing was released. The message holds no original text."""


class UsageError(SottovoceError, ValueError):
    """The call was wrong; the message says what to type instead (exit code 2)."""


class SpaceError(SottovoceError):
    """A word space is missing, damaged, or could not be read."""


class UnknownWordError(SottovoceError):
    """A text holds words that the space does not know, and the policy is ``error``."""


class PrivacyWarning(UserWarning):
    """Something is about to be weaker than people may think. Always shown."""


def closest(word: str, options: Iterable[str]) -> str | None:
    """The option that somebody who typed ``word`` most likely meant, if any is near."""
    return next(iter(difflib.get_close_matches(word, list(options), n=1, cutoff=0.5)), None)
