"""Errors that tell people what to do, and never repeat the text they were about."""

from __future__ import annotations


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
