"""Errors that tell people what to do, and never repeat the text they were about."""

from __future__ import annotations

import difflib
import importlib
import warnings
from collections.abc import Iterable
from typing import Any, Self


class SottovoceError(Exception):
    """Something failed; nothing was released. The message holds no original text."""

    def with_message(self, message: str) -> Self:
        """The same error with another message: where it happened, or what to do next, added."""
        self.args = (message,)
        return self


class UsageError(SottovoceError, ValueError):
    """The call was wrong; the message says what to type instead (exit code 2)."""


class SpaceError(SottovoceError):
    """A word space is missing, damaged, or could not be read."""


class UnknownWordError(SottovoceError):
    """A text holds words that the space does not know, and the policy is ``error``."""


class PrivacyWarning(UserWarning):
    """Something is about to be weaker than people may think. Always shown."""


# Python shows a warning once a place; this one each time, unless somebody has said otherwise.
warnings.simplefilter("always", PrivacyWarning, append=True)


def did_you_mean(word: str, options: Iterable[str], otherwise: str = "") -> str:
    """The question to ask somebody who typed ``word``; ``otherwise`` if no option is near."""
    near = closest(word, options)
    return otherwise if near is None else f"did you mean '{near}'?"


def closest(word: str, options: Iterable[str]) -> str | None:
    """The option that somebody who typed ``word`` most likely meant, if any is near."""
    return next(iter(difflib.get_close_matches(word, list(options), n=1, cutoff=0.5)), None)


def need(package: str, extra: str | None, why: str = "", instead: str = "") -> Any:
    """Import a package that not everybody has, or say how to install it.

    extra
        The extra of sottovoce that brings it; None: it is installed by its own name.
    why
        Who needs it, as in ``figures need matplotlib``.
    instead
        What else can be done, to be put behind the command.
    """
    try:
        return importlib.import_module(package)
    except ImportError:
        top = package.partition(".")[0]
        install = top.replace("_", "-") if extra is None else f"'sottovoce[{extra}]'"
        why = why or f"this needs {top}"
        raise SottovoceError(f"{why}: pip install {install}{instead}") from None
