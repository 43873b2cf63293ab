"""sottovoce: search, and release text, without saying what you really mean out loud."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sottovoce.lazy import lazy_names

__version__ = "0.1.0"

if TYPE_CHECKING:
    from sottovoce.errors import PrivacyWarning, SottovoceError, UsageError
    from sottovoce.guarantees import Guarantee
    from sottovoce.ledger import Ledger
    from sottovoce.mechanisms import Mechanism, WordMechanism, mechanism
    from sottovoce.obfuscation import Obfuscation, Obfuscator, obfuscate
    from sottovoce.resources import load_space
    from sottovoce.search import PrivateSearch, SearchResult
    from sottovoce.spaces import OutputVocabulary, WordSpace
    from sottovoce.text import TextPipeline

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
    "obfuscate",
]

__getattr__ = lazy_names(
    __name__,
    {
        ".errors": "PrivacyWarning, SottovoceError, UsageError",
        ".guarantees": "Guarantee",
        ".ledger": "Ledger",
        ".mechanisms": "Mechanism, WordMechanism, mechanism",
        ".obfuscation": "Obfuscation, Obfuscator, obfuscate",
        ".search": "PrivateSearch, SearchResult",
        ".resources": "load_space",
        ".spaces": "OutputVocabulary, WordSpace",
        ".text": "TextPipeline",
    },
)
