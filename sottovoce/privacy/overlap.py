"""The words that two texts share: Jaccard, and BLEU and METEOR by nltk.

Texts come as words, cut and folded alike on both sides. Two texts without a word are equal, a text
without a word and one with words have nothing in common.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from sottovoce.language.wordnet import WordNet

Tokens: TypeAlias = tuple[str, ...]
Comparison: TypeAlias = Callable[[Tokens, Tokens], float]
"""Takes the words of a text and those of a variant."""

LONGEST_PHRASE = 4
REMEMBERED_WORDS = 1 << 16


def jaccard(text: Tokens, variant: Tokens) -> float:
    """|A ∩ B| / |A ∪ B| of the sets of words."""
    a, b = set(text), set(variant)
    return len(a & b) / len(a | b) if a or b else 1.0


def bleu() -> Comparison:
    """BLEU over phrases of up to four words, or up to the variant's length where it is shorter.

    The first phrase length without a match counts as half a match, the next as a quarter (the
    smoothing of NIST's script): short texts rarely share four words in a row.
    """
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    smoothing = SmoothingFunction().method3

    def compare(text: Tokens, variant: Tokens) -> float:
        if not (text and variant):
            return float(text == variant)
        longest = min(LONGEST_PHRASE, len(variant))
        weights = (1 / longest,) * longest
        return float(sentence_bleu([text], variant, weights, smoothing_function=smoothing))

    return compare


def meteor(wordnet: WordNet | None) -> Comparison:
    """METEOR over equal words, Porter's stems and, with WordNet, synonyms."""
    from nltk.stem.porter import PorterStemmer
    from nltk.translate.meteor_score import single_meteor_score

    stems = _Stems(PorterStemmer().stem)
    synonyms = _Synonyms(wordnet, stems)

    def compare(text: Tokens, variant: Tokens) -> float:
        if not (text and variant):
            return float(text == variant)
        return float(
            single_meteor_score(text, variant, preprocess=str, stemmer=stems, wordnet=synonyms)
        )

    return compare


def nltk_is_here() -> bool:
    """Whether BLEU and METEOR can be computed."""
    return find_spec("nltk") is not None


def installed_wordnet() -> WordNet | None:
    """Our own WordNet, if it was added to this machine."""
    from sottovoce.language.wordnet import load_wordnet, wordnet_folder

    return load_wordnet() if wordnet_folder().is_dir() else None


class _Stem(str):
    """A stem that knows its word.

    nltk looks for synonyms among the stems that are left, and few stems are words: of car and
    automobile it would make car and automobil, and find nothing.
    """

    word: str

    def __new__(cls, stem: str, word: str) -> _Stem:
        made = super().__new__(cls, stem)
        made.word = word
        return made


class _Stems:
    """What nltk asks of a stemmer; words come again and again, so it remembers."""

    def __init__(self, stem: Callable[[str], str]) -> None:
        self.stem = lru_cache(REMEMBERED_WORDS)(lambda word: _Stem(stem(word), word))


class _Synset:
    """What nltk asks of a set of synonyms, and of each of them: here, its stem."""

    def __init__(self, names: list[str]) -> None:
        self._lemmas = [_Lemma(name) for name in names]

    def lemmas(self) -> list[_Lemma]:
        return self._lemmas


class _Lemma:
    def __init__(self, name: str) -> None:
        self._name = name

    def name(self) -> str:
        return self._name


class _Synonyms:
    """What nltk asks of its own WordNet reader, answered from ours; without one, by nothing."""

    def __init__(self, wordnet: WordNet | None, stems: _Stems) -> None:
        self._wordnet = wordnet
        self._stem = stems.stem
        self._known = lru_cache(REMEMBERED_WORDS)(self._look_up)

    def synsets(self, stem: _Stem) -> list[_Synset]:
        return self._known(stem.word)

    def _look_up(self, word: str) -> list[_Synset]:
        senses = self._wordnet.senses(word) if self._wordnet else ()
        return [
            _Synset([self._stem(each.casefold().replace(" ", "_")) for each in sense.lemmas])
            for sense in senses
        ]
