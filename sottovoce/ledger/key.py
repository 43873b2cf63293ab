"""Keyed hashes: what the ledger writes instead of a text, and what shows that it was changed."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

from sottovoce.errors import UsageError
from sottovoce.text.resolve import comparable
from sottovoce.text.tokens import normalise

KEY_BYTES = 32


class Key:
    """A secret under which texts and records are hashed."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def seal(self, kind: str, *values: Any) -> str:
        """The keyed hash of some values; ``kind`` keeps uses apart."""
        message = json.dumps([kind, *values], default=repr).encode("ascii")
        return hmac.new(self._secret, message, hashlib.sha256).hexdigest()

    def of_text(self, text: str) -> str:
        """What stands for a text in the ledger."""
        return self.seal("text", same_text(text))

    def of_request(self, text: str, request: str) -> str:
        """What stands for a text and all that decides how it is obfuscated."""
        return self.seal("request", same_text(text), request)


def same_text(text: str) -> str:
    """The form in which two texts are the same: Unicode NFC, no case, single blanks.

    Characters that nobody sees are left out, as the text pipeline leaves them out.
    """
    if not isinstance(text, str):
        raise UsageError(f"a text must be a str, not {type(text).__name__}")
    return " ".join(filter(None, map(comparable, normalise(text).split())))
