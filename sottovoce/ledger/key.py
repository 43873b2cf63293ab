"""Keyed hashes: what the ledger writes instead of a text, and what shows that it was changed."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

from sottovoce.text.comparing import folded_text

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
        return self.seal("text", folded_text(text))

    def of_request(self, text: str, request: str) -> str:
        """What stands for a text and all that decides how it is obfuscated."""
        return self.seal("request", folded_text(text), request)
