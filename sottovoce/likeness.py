"""Likeness: how much likelier a string of a pool stands for texts of one kind than any other does.

The ratio of two densities: of the strings that stand for public texts of that kind, the reference,
and of all strings of the pool. A logistic regression learns it, over what shows (words, question
words, language, casing, punctuation, rarity of words) and over the vector. An attacker reads off it
which member of a set looks like a person's query; decoys drawn by it look as much like one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
import regex
from scipy.optimize import isotonic_regression, minimize

from sottovoce.arrays import row_blocks
from sottovoce.encoders.base import Encoder
from sottovoce.errors import UsageError
from sottovoce.randomness import as_generator
from sottovoce.text.comparing import folded_text
from sottovoce.text.words import LANGUAGES, words
from sottovoce.threads import single_threaded_blas
from sottovoce.types import BoolArray, Float32Array, Float64Array, IntArray

MOST_TEXTS = 10_000
"""So many of the reference, and of the pool, are learned from: a fixed sample of larger ones."""
PENALTIES = (10.0, 1.0, 1e-1, 1e-2, 1e-3, 1e-4)
"""Of the squared weights; the one with the largest likelihood on texts held out is taken."""
LOOKS_PENALTY = 0.01
"""Of that, for the few weights of what shows: they need less than the many of a vector."""
FOLDS = 3
FEWEST_STEPS, MOST_STEPS, TEXTS_A_STEP = 4, 20, 50
"""How many steps turn scores into ratios: more for a larger reference."""
SMALL = 1e-3
"""By so much at most equal ratios keep the order of their scores: one who guesses goes by it."""
LEAST_REFERENCE = 2 * FOLDS
TOO_FEW = f"a kind of text is learned from at least {LEAST_REFERENCE} texts of it"
LENGTHS = (1, 2, 3, 4, 5, 6, 8, 11)
"""Numbers of words from which on a text counts as longer."""
_QUESTION_WORDS = """
what who whom whose which when where why how can could is are was were do does did should would
will has have may
"""
QUESTION_WORDS = frozenset(_QUESTION_WORDS.split())
LOOKS = len(LENGTHS) + len(LANGUAGES) + 13
"""How many numbers say what shows of a text."""
ROWS_KEPT = 20_000
"""Rows of texts kept in memory, so that they are not made again; about 20 MB."""
_MARKS = regex.compile(r"[^\p{L}\p{M}\p{N}\s]")
_OTHER_SCRIPT = regex.compile(r"[\p{L}--\p{Latin}]", regex.V1)


class PublicStrings(Protocol):
    """What is needed of a ``Pool``."""

    strings: tuple[str, ...]
    encoder: Encoder

    @property
    def vectors(self) -> Float32Array:
        """The vector of each string."""

    def place(self, text: str) -> int | None:
        """Where the same text stands; None if it does not."""

    def best(self, points: Float32Array, k: int) -> IntArray:
        """The places of the nearest strings, best first."""

    def __hash__(self) -> int:
        """The same for equal pools."""


class Looks:
    """What shows of a text beside its subject, as numbers; rarity of words is that in the pool.

    A string of the pool is left out of the counts when it is looked at itself: else words that no
    other string has would tell members of the pool from all other texts.
    """

    def __init__(self, pool: PublicStrings) -> None:
        self._pool = pool
        self._rows: dict[str, list[float]] = {}
        self._counts: Counter[str] = Counter()
        for string in pool.strings:
            self._counts.update(set(words(string)))

    def of(self, texts: Sequence[str]) -> Float64Array:
        """A row for each text."""
        return np.array([self._kept_row(text) for text in texts], dtype=np.float64)

    def _kept_row(self, text: str) -> list[float]:
        """Attackers look at the same strings again and again."""
        row = self._rows.get(text)
        if row is None:
            row = self._row(text)
            if len(self._rows) < ROWS_KEPT:
                self._rows[text] = row
        return row

    def _row(self, text: str) -> list[float]:
        all_words = words(text)
        length = max(len(all_words), 1)
        counts_itself = 0 if self._pool.place(text) is None else 1
        # The same text may be written with other words (capitals, accents) than the pool's string.
        counts = [max(self._counts[word] - counts_itself, 0) for word in all_words]
        rarities = [-np.log1p(count) for count in counts] or [0.0]
        letters = [mark for mark in text if mark.isalpha()] or ["a"]
        capitals = sum(map(str.isupper, letters)) / len(letters)
        folded = all_words if text.isascii() else [word.casefold() for word in all_words]
        return [
            *(float(len(all_words) >= at_least) for at_least in LENGTHS),
            np.log1p(len(text)),
            float(bool(all_words) and all_words[0] in QUESTION_WORDS),
            float(not QUESTION_WORDS.isdisjoint(all_words)),
            *(
                sum(word in language.function_words for word in folded) / length
                for language in LANGUAGES.values()
            ),
            sum(not letter.isascii() for letter in letters) / len(letters),
            len(_OTHER_SCRIPT.findall(text)) / len(letters),
            float(letters[0].isupper()),
            capitals,
            float("?" in text),
            float(text.endswith(".")),
            len(_MARKS.findall(text)) / length,
            sum(any(map(str.isdigit, word)) for word in all_words) / length,
            float(np.mean(rarities)),
            float(max(rarities)),
        ]


@dataclass(frozen=True, repr=False, eq=False)
class Likeness:
    """A learned log-ratio of densities: what stands for the reference, against all of the pool."""

    looks: Looks
    middle: Float64Array
    spread: Float64Array
    weights: Float64Array
    """The last is the intercept."""
    steps: tuple[Float64Array, Float64Array]
    """Scores, ascending, and the log-ratios found at them on texts that were held out."""
    reference: int
    """How many texts it was learned from."""

    def log_ratio(self, texts: Sequence[str], vectors: Float32Array) -> Float64Array:
        """The logarithm of the ratio of densities, reference over pool, at each text.

        vectors
            Of the texts, by the pool's encoder; a pool's own come from ``pool.vectors``.
        """
        if len(texts) != len(vectors):
            raise UsageError(f"{len(texts)} texts have {len(vectors)} vectors: give one for each")
        ratios, start = [np.empty(0)], 0
        with single_threaded_blas():  # Several threads would round differently.
            for block in row_blocks(vectors):
                rows = _features(self.looks, texts[start : start + len(block)], block)
                start += len(block)
                standard = (rows - self.middle) / self.spread
                scores = standard @ self.weights[:-1] + self.weights[-1]
                order = SMALL * scores / (1 + abs(scores))
                ratios.append(np.interp(scores, *self.steps) + order)
        return np.concatenate(ratios)

    def __repr__(self) -> str:
        return f"Likeness({self.reference} texts)"


def fit_likeness(reference: Sequence[str], pool: PublicStrings) -> Likeness:
    """Learn which strings of a pool look as if they stood for texts like the reference.

    Only strings of the pool are compared, as only they are ever released: how the reference is
    written (capitals, full stops) counts as far as strings of the pool are written so.

    reference
        Public texts of the kind that a person asks: another log, or the person's own history for
        an attacker who has it. What is to be hidden or attacked must not be among them.
    """
    if isinstance(reference, str):
        raise UsageError(TOO_FEW)
    sampled = [reference[at] for at in _sample(len(reference)).tolist()]
    return fit_to_strings(_standing_for(sampled, pool), pool)


def fit_to_strings(standing: IntArray, pool: PublicStrings) -> Likeness:
    """The same where it is known which strings stand for the reference: their places, in order."""
    with single_threaded_blas():
        given = _Examples.of(standing, pool)
        weights = _regression(given.rows, given.is_like, given.shrunk)
        steps = _steps(_held_out(given.rows, given.is_like, given.shrunk), given.is_like)
    return Likeness(given.looks, given.middle, given.spread, weights, steps, given.reference)


@dataclass(frozen=True, repr=False)
class _Examples:
    """Strings that stand for a reference and strings of the pool, as a regression reads them."""

    looks: Looks
    middle: Float64Array
    spread: Float64Array
    places: IntArray
    rows: Float64Array
    """Standardized, with an intercept."""
    is_like: BoolArray
    shrunk: Float64Array
    """A penalty for each column."""

    @classmethod
    def of(cls, standing: IntArray, pool: PublicStrings) -> _Examples:
        """``standing``: the places of the strings that stand for the reference."""
        if len(standing) < LEAST_REFERENCE:
            raise UsageError(TOO_FEW)
        like_places = standing[_sample(len(standing))]
        places = np.concatenate([like_places, _sample(len(pool.strings))])
        looks = _looks_of(pool)
        strings = [pool.strings[at] for at in places.tolist()]
        rows = _features(looks, strings, pool.vectors[places])
        is_like = np.arange(len(rows)) < len(like_places)
        middle, spread = rows.mean(axis=0), rows.std(axis=0)
        spread[spread < 1e-9] = 1.0
        standard = _with_intercept((rows - middle) / spread)
        shrunk = _best_penalties(standard, is_like, LOOKS)
        return cls(looks, middle, spread, places, standard, is_like, shrunk)

    @property
    def reference(self) -> int:
        """How many texts are learned from."""
        return int(self.is_like.sum())


@dataclass(frozen=True, repr=False, eq=False)
class HeldOutLikeness:
    """The same log-ratio as an attacker reads it, of strings that were learned from, too.

    Each string of the pool is judged by a regression that has seen it in neither class: else a
    string that stands for a text of the reference is known for that alone, and any other for being
    known. Log-odds are not made steps of, as they are for the popularity of decoys: what an odd
    string says is never drawn, only compared.
    """

    looks: Looks
    middle: Float64Array
    spread: Float64Array
    weights: Float64Array
    """A row for each fold; the last is their mean, for what is not in the pool."""
    pool: PublicStrings
    fold: IntArray
    """The fold of each string of the pool."""
    reference: int
    """How many texts it was learned from."""

    def log_ratio(self, texts: Sequence[str], vectors: Float32Array) -> Float64Array:
        """The logarithm of the ratio of densities, reference over pool, at each text."""
        if len(texts) != len(vectors):
            raise UsageError(f"{len(texts)} texts have {len(vectors)} vectors: give one for each")
        scores, start = [np.empty(0)], 0
        with single_threaded_blas():  # Several threads would round differently.
            for block in row_blocks(vectors):
                strings = texts[start : start + len(block)]
                start += len(block)
                rows = (_features(self.looks, strings, block) - self.middle) / self.spread
                by_fold = _with_intercept(rows) @ self.weights.T
                scores.append(by_fold[np.arange(len(rows)), self._folds_of(strings)])
        return np.concatenate(scores)

    def _folds_of(self, strings: Sequence[str]) -> IntArray:
        places = [self.pool.place(string) for string in strings]
        return np.array([FOLDS if place is None else self.fold[place] for place in places], int)

    def __repr__(self) -> str:
        return f"HeldOutLikeness({self.reference} texts)"


def fit_held_out(standing: IntArray, pool: PublicStrings) -> HeldOutLikeness:
    """Learn it from the places of the strings that stand for a reference."""
    fold = as_generator(1).permutation(len(pool.strings)) % FOLDS
    with single_threaded_blas():
        given = _Examples.of(standing, pool)
        seen = fold[given.places]
        weights = [
            _regression(given.rows[kept], given.is_like[kept], given.shrunk)
            for kept in (_both_kinds(seen != held_out, given.is_like) for held_out in range(FOLDS))
        ]
    return HeldOutLikeness(
        looks=given.looks,
        middle=given.middle,
        spread=given.spread,
        weights=np.array([*weights, np.mean(weights, axis=0)]),
        pool=pool,
        fold=fold,
        reference=given.reference,
    )


def _both_kinds(kept: BoolArray, is_like: BoolArray) -> BoolArray:
    """These examples; all of them, if they are of one kind alone (a reference of one string)."""
    return kept if len(np.unique(is_like[kept])) == len(np.unique(is_like)) else kept | True


@lru_cache(maxsize=2)
def _looks_of(pool: PublicStrings) -> Looks:
    """One for all that is learned of a pool: its words are counted once."""
    return Looks(pool)


def _standing_for(texts: Sequence[str], pool: PublicStrings) -> IntArray:
    """The place of each text in the pool, or of the nearest string."""
    folded = [folded_text(text) for text in texts]
    places = [pool.place(text) for text in folded]
    foreign = [text for text, place in zip(folded, places, strict=True) if place is None]
    nearest = iter(pool.best(pool.encoder.encode(foreign), 1)[:, 0].tolist() if foreign else ())
    standing = [next(nearest) if place is None else place for place in places]
    return np.array(standing, dtype=np.int64)


def _features(looks: Looks, texts: Sequence[str], vectors: Float32Array) -> Float64Array:
    return np.concatenate([looks.of(texts), vectors.astype(np.float64)], axis=1)


def _sample(size: int) -> IntArray:
    """All places, or ``MOST_TEXTS`` of them, the same each time."""
    if size <= MOST_TEXTS:
        return np.arange(size)
    return np.sort(as_generator(0).choice(size, MOST_TEXTS, replace=False))


def logistic(rows: Float64Array, is_like: BoolArray) -> Float64Array:
    """Weights of a logistic regression, and its intercept: log-odds that are a log-ratio.

    rows
        A row of standardized numbers for each text; ``is_like`` says of which kind it is. Both
        kinds count alike, so that the log-odds are the log-ratio of their densities.
    """
    all_rows = _with_intercept(rows)
    return _regression(all_rows, is_like, _best_penalties(all_rows, is_like))


def _with_intercept(rows: Float64Array) -> Float64Array:
    return np.column_stack([rows, np.ones(len(rows))])


def _best_penalties(rows: Float64Array, is_like: BoolArray, few: int = 0) -> Float64Array:
    """A penalty for each column, smaller for the first ``few`` and none for the intercept."""
    shares = np.ones(rows.shape[1])
    shares[:few], shares[-1] = LOOKS_PENALTY, 0

    def likelihood(penalty: float) -> float:
        margins = np.where(is_like, 1.0, -1.0) * _held_out(rows, is_like, penalty * shares)
        logs = -np.logaddexp(0, -margins)
        return float(logs[is_like].mean() + logs[~is_like].mean())

    return max(PENALTIES, key=likelihood) * shares


def _regression(rows: Float64Array, is_like: BoolArray, shrunk: Float64Array) -> Float64Array:
    """The weights for given penalties, one for each column."""
    signs = np.where(is_like, 1.0, -1.0)
    shares = np.where(is_like, 0.5 / is_like.sum(), 0.5 / (~is_like).sum())

    signed = rows * signs[:, None]

    def loss(weights: Float64Array) -> tuple[float, Float64Array]:
        """Of ln(1 + exp(-margin)), with one exponential that never overflows."""
        margins = signed @ weights
        small = np.exp(-np.abs(margins))
        value = shares @ (np.maximum(-margins, 0) + np.log1p(small)) + 0.5 * shrunk @ weights**2
        slopes = -shares * np.where(margins > 0, small, 1.0) / (1 + small)
        return float(value), slopes @ signed + shrunk * weights

    minimum = minimize(loss, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B")
    return np.asarray(minimum.x)


def _held_out(rows: Float64Array, is_like: BoolArray, shrunk: Float64Array) -> Float64Array:
    """The score of each text by a regression that has not learned from it."""
    # Every kind is spread over the folds in a fixed random order.
    fold = np.empty(len(rows), dtype=np.int64)
    for kind in (is_like, ~is_like):
        fold[kind] = as_generator(1).permutation(int(kind.sum())) % FOLDS
    scores = np.empty(len(rows))
    for held_out in range(FOLDS):
        weights = _regression(rows[fold != held_out], is_like[fold != held_out], shrunk)
        scores[fold == held_out] = rows[fold == held_out] @ weights
    return scores


def _steps(scores: Float64Array, is_like: BoolArray) -> tuple[Float64Array, Float64Array]:
    """What ratio there is at which score: counted between quantiles, never falling.

    Scores go on for ever, and one odd string would be all that is popular; ratios do not.
    """
    counts = [int(is_like.sum()), int((~is_like).sum())]
    number = int(np.clip(counts[0] // TEXTS_A_STEP, FEWEST_STEPS, MOST_STEPS))
    shares = np.where(is_like, 0.5 / counts[0], 0.5 / counts[1])
    inner = np.linspace(0, 1, number + 1)[1:-1]
    edges = np.unique(np.quantile(scores, inner, weights=shares, method="inverted_cdf"))
    step = np.searchsorted(edges, scores, side="right")
    used, step = np.unique(step, return_inverse=True)
    middles = np.bincount(step, shares * scores) / np.bincount(step, shares)
    # One text more in each step: none has a share of nothing.
    like, other = (np.bincount(step[kind], minlength=len(used)) + 1 for kind in (is_like, ~is_like))
    ratios = np.log(like / like.sum()) - np.log(other / other.sum())
    return middles, np.asarray(isotonic_regression(ratios).x)
