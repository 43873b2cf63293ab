"""Words as a lexical search engine counts them, by language; function words, and snippets."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import regex

from sottovoce.text import german

SNIPPET_LENGTH = 200

_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+(?:'[\p{L}\p{M}\p{N}]+)*")
_ASCII_WORD = re.compile(r"[a-z0-9]+(?:'[a-z0-9]+)*")  # The same, in half the time.
_STRAIGHT = str.maketrans("’‘ʼ", "'''")
_SENTENCE = regex.compile(r".+?(?:[.!?](?=\s|$)|$)\s*", regex.DOTALL)

_FUNCTION_WORDS = """
a an the this that these those such same other another each every either neither both all any
some no none few fewer many more most much less least several own

i me my mine myself you your yours yourself yourselves he him his himself she her hers herself
it its itself we us our ours ourselves they them their theirs themselves one
who whom whose which what whatever whoever whichever
someone somebody something anyone anybody anything everyone everybody everything nobody nothing

am is are was were be been being do does did doing done have has had having
can could may might must shall should will would ought

about above across after against along among around as at before behind below beneath beside
besides between beyond by despite down during except for from in inside into like near of off
on onto out outside over past per since than through throughout till to toward towards under
until up upon via with within without

and but or nor so yet if unless although though because while whereas whether

how when where why here there then thus hence however therefore also too very just only even
still again once not never ever always already almost quite rather

i'm you're he's she's it's we're they're i've you've we've they've i'll you'll he'll she'll
it'll we'll they'll i'd you'd he'd she'd we'd they'd that's there's what's who's let's
isn't aren't wasn't weren't don't doesn't didn't haven't hasn't hadn't can't cannot couldn't
mustn't needn't shan't shouldn't won't wouldn't
"""

FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""English function words: what ``protect="content"`` leaves in clear."""


class Language(NamedTuple):
    """What lexical search knows about a language."""

    stemmer: str
    function_words: frozenset[str]


ENGLISH = "en"
LANGUAGES: Mapping[str, Language] = MappingProxyType(
    {
        ENGLISH: Language("english", FUNCTION_WORDS),
        "de": Language("german", german.FUNCTION_WORDS),
    }
)
"""By ISO code, as in ``bm25:de`` and ``protect="content:de"``."""


def words(text: str) -> list[str]:
    """Runs of letters, marks and digits in lower case, in order; an apostrophe may stand inside."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    return _WORD.findall(unicodedata.normalize("NFC", text).translate(_STRAIGHT).lower())


def content_words(text: str, language: str = ENGLISH) -> list[str]:
    """The words of a text without function words, case-folded: Straße and STRASSE are one word."""
    function_words = LANGUAGES[language].function_words
    folded = words(text)
    if not text.isascii():
        folded = [word.casefold() for word in folded]
    return [word for word in folded if word not in function_words]


def stems(words: Sequence[str], language: str = ENGLISH) -> list[str]:
    """The stem of each word by Snowball; for English, Porter 2, possessives lose their ending."""
    from Stemmer import Stemmer

    # A stemmer is quick to make and must not be shared between threads.
    stemmed: list[str] = Stemmer(LANGUAGES[language].stemmer).stemWords(words)
    return stemmed


def snippet(text: str, title: str, query: str) -> str:
    """The sentence that shares most words with the query, and what follows; the first if none."""
    parts = sentences(text.removeprefix(title)) or [""]
    query_stems = set(stems(content_words(query)))
    shared = [len(query_stems & set(stems(content_words(sentence)))) for sentence in parts]
    best = shared.index(max(shared))
    return shortened("".join(parts[best:]))


def sentences(text: str) -> list[str]:
    """The sentences of a text, with the blank behind each; blanks are single ones."""
    return _SENTENCE.findall(" ".join(text.split()))


def shortened(text: str, length: int = SNIPPET_LENGTH) -> str:
    """The beginning of a text, cut between words."""
    if len(text) <= length:
        return text.strip()
    cut = text.rfind(" ", 0, length)
    return text[: cut if cut > 0 else length].rstrip(" ,;:") + " …"
