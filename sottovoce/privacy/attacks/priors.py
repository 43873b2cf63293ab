"""What an attacker believes of a word before looking: as frequent as in a log, or in a language."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from sottovoce.errors import UsageError, need
from sottovoce.privacy.attacks.cut_log import CutLog
from sottovoce.privacy.attacks.language import UNSEEN, likelihoods
from sottovoce.spaces.space import WordSpace
from sottovoce.types import Float32Array, Float64Array


@dataclass(frozen=True, repr=False)
class Prior:
    """How likely each word is before anything was seen; it looks at no context.

    ``log_weights`` has a column for each word of the space and a last one for all words that the
    space lacks. ``name`` says in reports what the attacker knew.
    """

    name: str
    log_weights: Float64Array

    @classmethod
    def of(cls, name: str, weights: Float64Array) -> Prior:
        """From positive weights of any scale."""
        if not (np.isfinite(weights).all() and (weights > 0).all()):
            raise UsageError("the weights of a prior must be positive: add one to every count")
        return cls(name, np.log(weights / weights.sum()))

    @classmethod
    def from_log(cls, log: CutLog) -> Prior:
        """As often as in a log; take out the attacked queries first (:meth:`CutLog.without`)."""
        times = np.repeat(log.counts, log.lengths)
        counts = np.bincount(log.words, weights=times, minlength=log.size + 1)
        return cls.of(log.name, np.asarray(counts + UNSEEN, dtype=np.float64))

    @classmethod
    def from_wordfreq(cls, space: WordSpace, language: str = "en") -> Prior:
        """As often as in a language, by the package wordfreq; its list is in the package.

        Words that the list lacks count half as much as its rarest one.
        """
        wordfreq = need("wordfreq", "lab", "frequencies of words need wordfreq")
        if language not in wordfreq.available_languages("best"):
            raise UsageError(
                f"wordfreq has no frequencies for the language '{language}': give a code such as "
                "en, de or fr"
            )
        listed: dict[str, float] = wordfreq.get_frequency_dict(language, "best")
        rarest = min(listed.values()) / 2
        words = [word.casefold() for word in space.words(np.arange(space.size))]
        frequencies = np.array([listed.get(word, 0.0) for word in words])
        # The list counts numbers by their shape alone: wordfreq knows how to read them.
        for number in np.flatnonzero([any(map(str.isdigit, word)) for word in words]):
            frequencies[number] = wordfreq.word_frequency(words[number], language, "best")
        frequencies = np.maximum(frequencies, rarest)
        missing = max(1 - float(frequencies.sum()), rarest)
        return cls.of(f"wordfreq {language}", np.append(frequencies, missing))

    @classmethod
    def uniform(cls, space: WordSpace) -> Prior:
        """All words alike: an attacker who knows nothing of language."""
        return cls.of("uniform", np.ones(space.size + 1))

    def marginals(self, rows: Float32Array) -> Float64Array:
        """Bayes' rule at each place by itself."""
        posterior = likelihoods(rows) * np.exp(self.log_weights)
        return np.asarray(posterior / posterior.sum(axis=1, keepdims=True))

    def __repr__(self) -> str:
        return f"Prior({self.name})"


def default_prior(
    space: WordSpace, log: CutLog | None, attacked: Iterable[str], language: str = "en"
) -> Prior:
    """The strongest belief there is: the log's without the attacked texts, else the language's."""
    if log is None:
        return Prior.from_wordfreq(space, language)
    return Prior.from_log(log.without(attacked))
