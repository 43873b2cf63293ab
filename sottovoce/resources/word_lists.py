"""Public lists of words and phrases that word spaces are made of.

A source is a file, ``wordfreq:LANGUAGE:COUNT``, ``wordnet:phrases``, ``wordnet:words`` or
``space:NAME``. What is not clean is left out, by one rule for all of them (:func:`clean_entry`).
"""

from __future__ import annotations

import gzip
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import regex

from sottovoce.errors import SottovoceError, UsageError, need
from sottovoce.files import read_text
from sottovoce.resources.catalogue import WORDFREQ_EN, WORDNET
from sottovoce.resources.local import load_space
from sottovoce.spaces.vocabularies import WORDS_OF_ONE_LETTER

SOURCES = "a FILE, wordfreq:LANGUAGE:COUNT, wordnet:phrases, wordnet:words or space:NAME"
KINDS = ("file", "space", "wordfreq", "wordnet")
FILE = KINDS[0]
COMMENT = "#"
POSSESSIVE = "'s"
MOST_WORDS = 5
"""Of a phrase."""
WORDNET_INDEXES = ("index.noun", "index.verb", "index.adj", "index.adv")

_STRAIGHT = str.maketrans("’‘ʼ", "'''")
_LETTERS = r"\p{L}[\p{L}\p{M}]*+"
_WORD = regex.compile(rf"{_LETTERS}(?:['\-‐‑]{_LETTERS})*+")
_SHORT_NUMBER = regex.compile(r"[0-9]{1,4}")
_SIGN_THAT_IS_A_WORD = regex.compile(r"[\p{Lo}--\p{Latin}]", regex.V1)


@dataclass(frozen=True)
class Contribution:
    """What one source gave to a list."""

    source: str
    words: int
    """Entries that no source before it had."""
    left_out: int
    """Entries that are not clean."""

    @property
    def sentence(self) -> str:
        """What it gave, for people."""
        return f"{self.source}: {self.words:,} words, {self.left_out:,} left out (not clean)"


@dataclass(frozen=True)
class WordList:
    """Words and phrases, all different, and where they come from; frequent words first."""

    words: tuple[str, ...]
    contributions: tuple[Contribution, ...]


def read_lists(sources: Sequence[str]) -> WordList:
    """Join sources in their order, without repetitions."""
    if not sources:
        raise UsageError(f"a word space needs words: give --words with {SOURCES}")
    words: dict[str, None] = {}
    contributions = []
    for source in sources:
        before = len(words)
        kind, detail = _kind_and_detail(source)
        entries, left_out = _clean_entries(kind, detail)
        words.update(dict.fromkeys(entries))
        name = Path(detail).name if kind == FILE else source
        contributions.append(Contribution(name, len(words) - before, left_out))
    if not words:
        raise UsageError("no clean word or phrase is in these lists: give other ones with --words")
    return WordList(tuple(words), tuple(contributions))


def given_words(words: Iterable[str]) -> WordList:
    """Make a list of words and phrases that are at hand; what is not clean is left out."""
    clean, left_out = _cleaned(words)
    distinct = tuple(dict.fromkeys(clean))
    return WordList(distinct, (Contribution("given", len(distinct), left_out),))


def clean_entry(entry: str) -> str | None:
    """A word or a phrase in its normal form (NFC, straight apostrophes); None if it is not clean.

    Clean are words of letters, which may have marks, and hyphens and apostrophes inside; whole
    numbers of up to four digits; and phrases of two to five of them with at least one word, one
    blank between each. A single letter is a word if it is ``a`` or ``i``, or if its script has no
    upper and lower case.
    """
    if len(entry) > 1 and entry.isascii() and entry.isalpha():
        return entry  # Most words, at once.
    normal = unicodedata.normalize("NFC", entry).translate(_STRAIGHT)
    units = normal.split(" ")
    are_words = [_WORD.fullmatch(unit) is not None for unit in units]
    if len(units) == 1 and len(normal) == 1 and are_words[0]:
        is_word = normal.lower() in WORDS_OF_ONE_LETTER or _SIGN_THAT_IS_A_WORD.fullmatch(normal)
        return normal if is_word else None
    clean = all(
        is_word or _SHORT_NUMBER.fullmatch(unit)
        for unit, is_word in zip(units, are_words, strict=True)
    )
    enough = len(units) == 1 or any(are_words)
    return normal if clean and enough and len(units) <= MOST_WORDS else None


def _kind_and_detail(source: str) -> tuple[str, str]:
    """Take a source apart; what does not begin with the name of a kind is a file."""
    kind, colon, detail = source.partition(":")
    return (kind, detail) if colon and kind in KINDS else (FILE, source)


def _clean_entries(kind: str, detail: str) -> tuple[list[str], int]:
    """The clean entries of a source, and how many others it has."""
    if kind == "wordfreq":
        return _most_frequent(detail)
    return _cleaned(_entries(kind, detail))


def _cleaned(entries: Iterable[str]) -> tuple[list[str], int]:
    cleaned = list(map(clean_entry, entries))
    clean = [entry for entry in cleaned if entry is not None]
    return clean, len(cleaned) - len(clean)


def _entries(kind: str, detail: str) -> Iterable[str]:
    if kind == FILE:
        return _lines(detail)
    if kind == "space":
        space = load_space(detail)
        return space.words(np.arange(space.size))
    if detail not in ("phrases", "words"):
        raise UsageError("of WordNet there are wordnet:phrases and wordnet:words")
    return (lemma for lemma in _wordnet_lemmas() if (" " in lemma) == (detail == "phrases"))


def _lines(path: str) -> Iterator[str]:
    """The lines of a file, blanks around them and lines of comment left out."""
    try:
        lines = read_text(Path(path).expanduser()).splitlines()
    except SottovoceError as error:
        raise UsageError(f"cannot read the word list {path}: {error}. Give {SOURCES}") from None
    stripped = (" ".join(line.split()) for line in lines)
    return (line for line in stripped if line and not line.startswith(COMMENT))


# wordfreq: how often words are used, in some forty languages, most frequent first.


def _most_frequent(language_and_count: str) -> tuple[list[str], int]:
    """The first clean words of a language, and how many others were passed on the way.

    Two kinds of entries are passed as well: the list writes most numbers as zeros, and has
    possessives, which texts are read without.
    """
    language, _, count = language_and_count.partition(":")
    if not (count.isdecimal() and int(count)):
        raise UsageError("say how many words you want of which language, as in wordfreq:en:100000")
    passed = 0
    words: list[str] = []
    for entry in _frequency_list(_frequency_file(language)):
        word = clean_entry(entry)
        if word is None or word.isdecimal() or word.endswith(POSSESSIVE):
            passed += 1
            continue
        words.append(word)
        if len(words) == int(count):
            break
    return words, passed


def _frequency_file(language: str) -> Path:
    """The file of a language: for English the one that was added, else those of the package."""
    (pinned,) = WORDFREQ_EN.files
    if language == "en" and (added := WORDFREQ_EN.folder / pinned.name).is_file():
        return added
    wordfreq = need("wordfreq", "words", "the words of a language by frequency need wordfreq")
    files: dict[str, str] = wordfreq.available_languages("best")
    if language not in files:
        raise UsageError(
            f"wordfreq has no list for '{language}': it has {', '.join(sorted(files))}"
        )
    return Path(files[language])


def _frequency_list(file: Path) -> Iterator[str]:
    """The words of wordfreq's own format: a header, then the words of each frequency."""
    import msgpack

    try:
        header, *by_frequency = msgpack.loads(gzip.decompress(file.read_bytes()))
        if header["format"] != "cB" or header["version"] != 1:
            raise ValueError
    except (OSError, EOFError, zlib.error, ValueError, TypeError, KeyError):
        raise SottovoceError(
            f"the frequency list {file} is damaged or of another format: install wordfreq 3.1 again"
        ) from None
    return chain.from_iterable(by_frequency)


# WordNet


def _wordnet_lemmas() -> Iterator[str]:
    """The words and phrases of WordNet's indexes, in lower case, each part of speech in turn."""
    for name in WORDNET_INDEXES:
        try:
            index = (WORDNET.folder / name).read_text(encoding="ascii")
        except FileNotFoundError:
            raise SottovoceError(
                "WordNet is not on this machine yet: get it once with 'sottovoce spaces add "
                "wordnet'"
            ) from None
        # The licence stands at the top, in lines that begin with two blanks.
        lines = (line for line in index.splitlines() if not line.startswith("  "))
        yield from (line.partition(" ")[0].replace("_", " ") for line in lines)
