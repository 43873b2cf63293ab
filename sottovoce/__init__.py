"""sottovoce: search, and release text, without saying what you really mean out loud."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from sottovoce.errors import PrivacyWarning, SottovoceError, UsageError
    from sottovoce.guarantees import Guarantee
    from sottovoce.ledger import Ledger
    from sottovoce.mechanisms import Mechanism, WordMechanism, mechanism
    from sottovoce.obfuscation import Obfuscation, Obfuscator
    from sottovoce.resources import load_space
    from sottovoce.search import PrivateSearch, SearchResult
    from sottovoce.spaces import OutputVocabulary, WordSpace
    from sottovoce.text import TextPipeline

# Public names and where they live; each is imported when it is first asked for.
_homes = {
    "Guarantee": "sottovoce.guarantees",
    "Ledger": "sottovoce.ledger",
    "Mechanism": "sottovoce.mechanisms",
    "Obfuscation": "sottovoce.obfuscation",
    "Obfuscator": "sottovoce.obfuscation",
    "OutputVocabulary": "sottovoce.spaces",
    "PrivacyWarning": "sottovoce.errors",
    "PrivateSearch": "sottovoce.search",
    "SearchResult": "sottovoce.search",
    "SottovoceError": "sottovoce.errors",
    "TextPipeline": "sottovoce.text",
    "UsageError": "sottovoce.errors",
    "WordMechanism": "sottovoce.mechanisms",
    "WordSpace": "sottovoce.spaces",
    "load_space": "sottovoce.resources",
    "mechanism": "sottovoce.mechanisms",
}

__all__ = [
    "Guarantee",
    "Ledger",
    "Mechanism",
    "Obfuscation",
    "Obfuscator",
    "OutputVocabulary",
    "PrivacyWarning",
    "PrivateSearch",
    "SearchResult",
    "SottovoceError",
    "TextPipeline",
    "UsageError",
    "WordMechanism",
    "WordSpace",
    "__version__",
    "load_space",
    "mechanism",
]


def __getattr__(name: str) -> Any:
    if name not in _homes:
        raise AttributeError(f"module 'sottovoce' has no attribute '{name}'")
    value = getattr(import_module(_homes[name]), name)
    globals()[name] = value
    return value
