"""Output vocabularies: which words may be released, chosen in public, without any private text."""

from __future__ import annotations

import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sottovoce.errors import SottovoceError, UsageError, need
from sottovoce.files import read_words
from sottovoce.spaces.output_vocabulary import OutputVocabulary
from sottovoce.spaces.space import WordSpace
from sottovoce.types import UNKNOWN, IntArray

CHOICES = ("all", "clean", "dictionary", "language:CODE", "file:PATH", "corpus:PATH", "demo")
ENGLISH = "en"
PLAIN = (string.ascii_lowercase + string.digits).encode()
WORDS_OF_ONE_LETTER = frozenset({"a", "i"})


@dataclass(frozen=True)
class WordList:
    """The words of a user's list that a space has, and how many it lacks."""

    ids: IntArray
    missing: int


def choose_output(space: WordSpace, choice: str) -> OutputVocabulary:
    """Choose the words of a space that may be released.

    ``all``; ``clean``: lower-case words of letters only; ``language:CODE``: clean words of that
    language's frequency dictionary, and ``dictionary`` the English ones; ``file:PATH``: a list of
    your own, one word a line.
    """
    return OutputVocabulary(choice, admitted(space, choice))


def admitted(space: WordSpace, choice: str) -> IntArray:
    """Find the ids of the words that a choice admits; there may be none."""
    kind, _, detail = choice.partition(":")
    match kind, detail:
        case "all", "":
            return np.arange(space.size, dtype=np.int64)
        case "clean", "":
            return _ids_where(space, is_clean)
        case "dictionary", "":
            return _of_language(space, ENGLISH)
        case "language", code if code:
            return _of_language(space, code)
        case "file", path if path:
            return read_word_list(space, path).ids
        case ("corpus", _) | ("demo", ""):
            raise UsageError("output_vocabularies.choose_output knows the words of collections")
    raise UsageError(f"unknown output vocabulary '{choice}': use {', '.join(CHOICES)}")


def of_texts(
    space: WordSpace, texts: Iterable[str], cut: Callable[[str], Sequence[str]]
) -> dict[int, int]:
    """Find the words of a space that stand in public texts: their ids, and in how many texts.

    ``cut`` takes a text apart into words, and the words of the space as well: a phrase, or a word
    that it takes apart, is in a text where its parts stand there side by side.
    """
    # Most words of a space are plain: they stand in texts as they are. Of the others ...
    special = space.ids_with_other_bytes(PLAIN)
    capitals: list[tuple[int, str]] = []
    # ... those that ``cut`` would take apart or change, by their parts.
    changed: dict[tuple[str, ...], list[int]] = {}
    for position, word in zip(special.tolist(), space.words(special), strict=True):
        if _is_plain(word):
            capitals.append((position, word.lower()))
        elif parts := tuple(cut(word)):
            changed.setdefault(parts, []).append(position)
    lengths: dict[str, set[int]] = {}
    for parts in changed:
        if len(parts) > 1:
            lengths.setdefault(parts[0], set()).add(len(parts))
    # In how many texts each word, and each phrase of the space, stands.
    words_in: Counter[str] = Counter()
    phrases_in: Counter[tuple[str, ...]] = Counter()
    for text in texts:
        words = cut(text)
        words_in.update(set(words))
        runs = {
            tuple(words[place : place + length])
            for place, word in enumerate(words)
            for length in lengths.get(word, ())
        }
        phrases_in.update(runs & changed.keys())
    counts: dict[int, int] = {}
    for word, count in words_in.items():
        if _is_plain(word) and (position := space.id(word)) != UNKNOWN:
            counts[position] = count
    counts |= {position: words_in[word] for position, word in capitals if word in words_in}
    for parts, places in changed.items():
        count = phrases_in[parts] if len(parts) > 1 else words_in[parts[0]]
        if count:
            counts.update(dict.fromkeys(places, count))
    return counts


def _is_plain(word: str) -> bool:
    return word.isascii() and word.isalnum()


def is_clean(word: str) -> bool:
    """Whether a word is all letters, lower-case, and not a stray letter."""
    if len(word) < 2:
        return word in WORDS_OF_ONE_LETTER
    return word == word.lower() and (word.isalpha() or _letters_and_marks(word))


def _letters_and_marks(word: str) -> bool:
    """Whether letters carry marks of their own, as in most scripts of India."""
    return not word.isascii() and all(unicodedata.category(sign)[0] in "LM" for sign in word)


def read_word_list(space: WordSpace, path: str) -> WordList:
    """Read a list of words to release, one a line, in UTF-8."""
    try:
        listed = read_words(Path(path).expanduser())
    except SottovoceError as error:
        raise UsageError(f"cannot read the word list {path}: {error}") from None
    ids = _ids_where(space, listed.__contains__)
    return WordList(ids, missing=len(listed) - len(ids))


def _of_language(space: WordSpace, code: str) -> IntArray:
    dictionary = _dictionary(code)
    return _ids_where(space, lambda word: word in dictionary and is_clean(word))


def _dictionary(code: str) -> Collection[str]:
    why = "this output vocabulary needs the dictionaries of an extra"
    SpellChecker = need("spellchecker", "languages", why, " (or choose 'clean')").SpellChecker
    languages = sorted(SpellChecker.languages())
    if code not in languages:
        raise UsageError(f"no dictionary for language '{code}': use one of {', '.join(languages)}")
    words: Collection[str] = SpellChecker(language=code).word_frequency.dictionary.keys()
    return words


def _ids_where(space: WordSpace, admits: Callable[[str], bool]) -> IntArray:
    words = space.words(np.arange(space.size, dtype=np.int64))
    return np.flatnonzero(np.array([admits(word) for word in words], dtype=np.bool_))
