"""How much of a text can still be seen in its variants: words, phrases, meaning.

A high value says that the release still resembles the text. A low one does not say that the text is
safe: an attacker who knows the mechanism may find it all the same.

The words that two texts share are measured by Jaccard, and by BLEU and METEOR of nltk. Texts come
as words, cut and folded alike on both sides. Two texts without a word are equal, a text without a
word and one with words have nothing in common.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from sottovoce.encoders.base import VECTORS_KEPT, at_unit_length
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.privacy.attacks.releases import Released
from sottovoce.statistics import LEVEL, t_interval
from sottovoce.types import Float32Array, Float64Array, IntArray, Progress

if TYPE_CHECKING:
    from sottovoce.encoders import Encoder
    from sottovoce.language.wordnet import WordNet

Tokens: TypeAlias = tuple[str, ...]
Comparison: TypeAlias = Callable[[Tokens, Tokens], float]
"""Takes the words of a text and those of a variant."""
Measure: TypeAlias = Literal["jaccard", "bleu", "meteor", "semantic"]

MEASURES: tuple[Measure, ...] = ("jaccard", "bleu", "meteor", "semantic")
LOWEST: dict[Measure, float] = {"jaccard": 0.0, "bleu": 0.0, "meteor": 0.0, "semantic": -1.0}
"""The least value of each; the greatest is 1."""
PAIRS_AT_A_TIME = 512
LONGEST_PHRASE = 4
REMEMBERED_WORDS = 1 << 16


@dataclass(frozen=True, repr=False)
class Similarity:
    """The similarity of the texts of one file and their variants.

    values
        One value a query: the mean over its variants.
    counts
        How many variants each query has.
    encoder
        The encoder that compared the meaning; None if that was not measured.
    meteor
        What METEOR took for the same word.
    both_empty
        Variants without a word of texts without a word; they count as equal.
    left_out
        Texts without a variant.
    """

    ids: tuple[str, ...]
    values: dict[Measure, Float64Array]
    counts: IntArray
    mechanism: str | None
    epsilon: float | None
    encoder: str | None
    meteor: str | None
    both_empty: int
    left_out: int

    def mean(self, measure: Measure) -> float:
        return float(self.values[measure].mean())

    def mean_of_variants(self, measure: Measure) -> float:
        """The mean over all variants, as some papers print it: queries with many weigh more."""
        return float(np.average(self.values[measure], weights=self.counts))

    def interval(self, measure: Measure, level: float = LEVEL) -> tuple[float, float] | None:
        """Student's interval of that mean: what other queries of this kind might have given.

        There is none for a single query.
        """
        return t_interval(self.values[measure], (LOWEST[measure], 1.0), level)

    def to_dict(self, per_query: bool = False) -> dict[str, Any]:
        """Everything but the texts, for programs."""
        summary: dict[str, Any] = {
            "mechanism": self.mechanism,
            "epsilon": self.epsilon,
            "queries": len(self.ids),
            "variants": int(self.counts.sum()),
            "measures": {
                name: {
                    "mean": self.mean(name),
                    "interval": self.interval(name),
                    "mean_of_variants": self.mean_of_variants(name),
                }
                for name in self.values
            },
            "encoder": self.encoder,
            "meteor": self.meteor,
            "both_empty": self.both_empty,
            "left_out": self.left_out,
        }
        if per_query:
            summary["per_query"] = [
                {"id": query, **{name: float(values[row]) for name, values in self.values.items()}}
                for row, query in enumerate(self.ids)
            ]
        return summary

    def __repr__(self) -> str:
        means = ", ".join(f"{name}={self.mean(name):.3f}" for name in self.values)
        return f"Similarity({len(self.ids)} queries, {means})"


class SimilarityMeter:
    """Measures files of releases; what it needs is loaded once for all of them.

    measures
        All that this machine can compute, if not given.
    encoder
        A name for :func:`sottovoce.encoders.load_encoder`, or an encoder; None for no semantic one.
    fold_case
        Whether words that differ in case alone are the same to Jaccard, BLEU and METEOR.
    """

    def __init__(
        self,
        measures: Sequence[str] | None = None,
        encoder: Encoder | str | None = "auto",
        fold_case: bool = True,
    ) -> None:
        self.measures = _checked_measures(measures, encoder)
        self.meteor: str | None = None
        self._fold_case = fold_case
        self._vectors = _Vectors(encoder) if "semantic" in self.measures else None
        self.encoder = self._vectors.encoder.name if self._vectors else None
        self._words: dict[Measure, Comparison] = {}
        if "jaccard" in self.measures:
            self._words["jaccard"] = jaccard
        if "bleu" in self.measures:
            self._words["bleu"] = bleu()
        if "meteor" in self.measures:
            wordnet = installed_wordnet()
            self.meteor = "words, stems, synonyms" if wordnet else "words, stems"
            self._words["meteor"] = meteor(wordnet)

    def measure(self, releases: Sequence[Released], progress: Progress | None = None) -> Similarity:
        compared = [released for released in releases if released.variants]
        if not compared:
            raise UsageError("nothing was released: there is nothing to compare")
        counts = np.array([len(released.variants) for released in compared])
        pairs, owners, repeats = _pairs(compared)
        sums = {name: np.zeros(len(compared)) for name in self.measures}
        both_empty = 0
        for start in range(0, len(pairs), PAIRS_AT_A_TIME):
            stop = min(start + PAIRS_AT_A_TIME, len(pairs))
            values, empty = self._block(pairs[start:stop])
            for name, by_pair in values.items():
                np.add.at(sums[name], owners[start:stop], by_pair * repeats[start:stop])
            both_empty += int(repeats[start:stop][empty].sum())
            if progress is not None:
                progress(stop, len(pairs))
        return Similarity(
            ids=tuple(released.id for released in compared),
            values={name: total / counts for name, total in sums.items()},
            counts=counts,
            mechanism=_only({released.mechanism for released in compared}),
            epsilon=_only({released.epsilon for released in compared}),
            encoder=self.encoder,
            meteor=self.meteor,
            both_empty=both_empty,
            left_out=len(releases) - len(compared),
        )

    def _block(
        self, pairs: Sequence[tuple[str, str]]
    ) -> tuple[dict[Measure, Float64Array], list[int]]:
        """The values of some pairs, and which of them are empty on both sides."""
        cut = [(self._tokens(text), self._tokens(variant)) for text, variant in pairs]
        values = {
            name: np.array([compare(*both) for both in cut], dtype=np.float64)
            for name, compare in self._words.items()
        }
        if self._vectors is not None:
            values["semantic"] = self._vectors.cosines(pairs)
        return values, [row for row, (text, variant) in enumerate(cut) if not (text or variant)]

    def _tokens(self, text: str) -> Tokens:
        return tuple((text.casefold() if self._fold_case else text).split())


def similarity(
    releases: Sequence[Released],
    *,
    measures: Sequence[str] | None = None,
    encoder: Encoder | str | None = "auto",
    fold_case: bool = True,
    progress: Progress | None = None,
) -> Similarity:
    """Compare the texts of one file with their variants; see :class:`SimilarityMeter`."""
    return SimilarityMeter(measures, encoder, fold_case).measure(releases, progress)


def _pairs(releases: Sequence[Released]) -> tuple[list[tuple[str, str]], IntArray, IntArray]:
    """Each text with each of its distinct variants; the text's number; how often it came."""
    counted = [Counter(released.variants) for released in releases]
    pairs = [
        (released.text, variant)
        for released, variants in zip(releases, counted, strict=True)
        for variant in variants
    ]
    owners = np.repeat(np.arange(len(releases)), [len(variants) for variants in counted])
    repeats = np.fromiter(chain.from_iterable(c.values() for c in counted), np.int64)
    return pairs, owners, repeats


def _only(values: set[Any]) -> Any:
    """What all releases share, if they do."""
    return values.pop() if len(values) == 1 else None


def count_pairs(releases: Sequence[Released]) -> int:
    """How many pairs of a text and a distinct variant there are to compare."""
    return sum(len(set(released.variants)) for released in releases)


def _checked_measures(
    measures: Sequence[str] | None, encoder: Encoder | str | None
) -> tuple[Measure, ...]:
    if measures is None:
        words: tuple[Measure, ...] = ("bleu", "meteor") if nltk_is_here() else ()
        return ("jaccard", *words, *(("semantic",) if encoder is not None else ()))
    if unknown := [name for name in measures if name not in MEASURES]:
        raise UsageError(
            f"{len(unknown)} of the measures are not known: there are {', '.join(MEASURES)}"
        )
    if not measures:
        raise UsageError(f"no measure was asked for: there are {', '.join(MEASURES)}")
    if {"bleu", "meteor"} & set(measures) and not nltk_is_here():
        raise SottovoceError("BLEU and METEOR need nltk: pip install 'sottovoce[lab]'")
    return tuple(name for name in MEASURES if name in measures)


class _Vectors:
    """The vectors of the last few thousand distinct texts, each encoded once."""

    def __init__(self, encoder: Encoder | str | None) -> None:
        from sottovoce.encoders import load_encoder

        if encoder is None:
            raise UsageError("the semantic measure needs an encoder: name one, or leave it out")
        loaded = load_encoder(encoder) if isinstance(encoder, str) else encoder
        self.encoder = at_unit_length(loaded)
        self._kept: dict[str, Float32Array] = {}

    def cosines(self, pairs: Sequence[tuple[str, str]]) -> Float64Array:
        """The inner products of unit vectors; 0 where one of them is zero."""
        texts = dict.fromkeys(chain.from_iterable(pairs))
        if len(self._kept) > VECTORS_KEPT:
            self._kept = {}
        new = [text for text in texts if text not in self._kept]
        if new:
            self._kept.update(zip(new, self.encoder.encode(new), strict=True))
        left = np.stack([self._kept[text] for text, _ in pairs]).astype(np.float64)
        right = np.stack([self._kept[variant] for _, variant in pairs])
        return np.asarray(np.clip((left * right).sum(axis=1), -1.0, 1.0))


# The words that two texts share.


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

    stems = _Stems(PorterStemmer().stem, wordnet)

    def compare(text: Tokens, variant: Tokens) -> float:
        if not (text and variant):
            return float(text == variant)
        return float(
            single_meteor_score(text, variant, preprocess=str, stemmer=stems, wordnet=stems)
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
    """A stem that knows its word, and that is what nltk asks of a synonym.

    nltk looks for synonyms among the stems that are left, and few stems are words: of car and
    automobile it would make car and automobil, and find nothing.
    """

    word: str

    def __new__(cls, stem: str, word: str) -> _Stem:
        made = super().__new__(cls, stem)
        made.word = word
        return made

    def name(self) -> str:
        return self


class _Synset(list[_Stem]):
    """What nltk asks of a set of synonyms."""

    def lemmas(self) -> list[_Stem]:
        return self


class _Stems:
    """What nltk asks of a stemmer, and of its own WordNet reader, answered from our WordNet.

    Words come again and again, so both answers are remembered.
    """

    def __init__(self, stem: Callable[[str], str], wordnet: WordNet | None) -> None:
        self.stem = lru_cache(REMEMBERED_WORDS)(lambda word: _Stem(stem(word), word))
        self._wordnet = wordnet
        self._synonyms = lru_cache(REMEMBERED_WORDS)(self._look_up)

    def synsets(self, stem: _Stem) -> list[_Synset]:
        return self._synonyms(stem.word)

    def _look_up(self, word: str) -> list[_Synset]:
        senses = self._wordnet.senses(word) if self._wordnet else ()
        return [
            _Synset(self.stem(lemma.casefold().replace(" ", "_")) for lemma in sense.lemmas)
            for sense in senses
        ]
