"""What the words around a place say about it: bigrams and trigrams of a log, exact marginals.

    P(text | release)  is proportional to  P(text) prod_i P(seen at place i | word i)

Bigrams with Witten-Bell interpolation are a sparse matrix plus a rank-one part,

    P(b|a) = (c(a, b) + k t(a) P(b)) / (c(a) + k t(a)),  t(a) = number of different words after a,

so forward-backward over the whole vocabulary takes one sparse product a place: exact, without
lists of candidates. Trigrams interpolate with bigrams in the same way. Their states are pairs of
words, so they run over the ``KEPT`` words of largest bigram marginal at each place, and are exact
among those. Witten and Bell have k = 1; on a log of 120,000 queries a larger k foretells other
queries better (perplexity of 1,000 of them: bigrams 242 with k = 1, 233 with k = 2; trigrams on top
of these 240 with k = 1, 218 with k = 5).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_matrix

from sottovoce.privacy.attacks.cut_log import CutLog
from sottovoce.types import Float32Array, Float64Array, IntArray

UNSEEN = 0.5
"""Added to the count of every word: one that a log lacks may still be meant."""
BIGRAM_CAUTION, TRIGRAM_CAUTION = 2, 5
"""k above: how little a few counts are trusted."""
KEPT = 100
"""Words at each place among which trigrams choose."""


class TextModel(Protocol):
    """What an attacker knows of texts: anything that tells likely words from unlikely ones."""

    @property
    def name(self) -> str:
        """What reports call it: the attacker's knowledge."""
        ...

    def marginals(self, rows: Float32Array) -> Float64Array:
        """P(word | everything seen) at each place of one text, (places, size + 1).

        ``rows``, of the same shape, are log P(seen at the place | word), up to a constant of each
        row. The last column stands for a word that the space lacks.
        """
        ...


def likelihoods(rows: Float32Array) -> Float64Array:
    """The likelihoods of a text's words, the largest of each place scaled to 1.

    A place where nothing is possible was not made by the mechanism: it says nothing.
    """
    top = rows.max(axis=1, keepdims=True)
    known = np.isfinite(top)
    shifted = np.where(known, rows - np.where(known, top, 0), 0.0)
    return np.exp(shifted, dtype=np.float64)


@dataclass(frozen=True, repr=False)
class Bigrams:
    """Pairs of words. States: the words, then UNKNOWN, START and END of a text."""

    source: str
    single: Float64Array
    """P(b)."""
    follow: Any
    """c(a, b) / (c(a) + k t(a)), a sparse matrix with a row for each a."""
    precede: Any
    """Its transpose, by rows."""
    back_off: Float64Array
    """k t(a) / (c(a) + k t(a))."""

    @classmethod
    def of(cls, log: CutLog) -> Bigrams:
        """Count the pairs of a log; take out the attacked queries first."""
        states = log.size + 3
        framed, times = _framed(log, starts=1)
        inside = framed[:-1] != log.size + 2  # No pair goes from the end of a query to the next.
        first, second, weight = framed[:-1][inside], framed[1:][inside], times[:-1][inside]
        counts = csr_matrix((weight.astype(np.float64), (first, second)), shape=(states, states))
        single = np.bincount(second, weights=weight, minlength=states) + UNSEEN
        single[log.size + 1] = 0.0  # START follows nothing.
        seen = np.asarray(counts.sum(axis=1)).ravel()
        kinds = np.diff(counts.indptr)
        total = np.maximum(seen + BIGRAM_CAUTION * kinds, 1)
        shares = counts.data / np.repeat(total, kinds)
        follow = csr_matrix((shares, counts.indices, counts.indptr), shape=counts.shape)
        back_off = np.where(seen > 0, BIGRAM_CAUTION * kinds / total, 1.0)
        return cls(log.name, single / single.sum(), follow, follow.T.tocsr(), back_off)

    @property
    def name(self) -> str:
        """For reports."""
        return f"bigrams, {self.source}"

    @property
    def start(self) -> int:
        """The state before the first word."""
        return len(self.single) - 2

    @property
    def end(self) -> int:
        """The state after the last word."""
        return len(self.single) - 1

    def marginals(self, rows: Float32Array) -> Float64Array:
        """Forward-backward over the whole vocabulary."""
        emission = likelihoods(rows)
        ahead, behind = np.empty_like(emission), np.empty_like(emission)
        words = slice(0, rows.shape[1])
        # Forward: P(word at the place, all seen up to it), scaled.
        chances = np.zeros(len(self.single))
        chances[self.start] = 1.0
        for place, seen in enumerate(emission):
            reached = self.precede @ chances + self.single * (self.back_off @ chances)
            ahead[place] = reached[words] * seen
            ahead[place] /= ahead[place].sum()
            chances = np.zeros(len(self.single))
            chances[words] = ahead[place]
        # Backward: P(all seen after the place | word at the place), scaled.
        values = np.zeros(len(self.single))
        values[self.end] = 1.0
        for place in range(len(emission) - 1, -1, -1):
            before = self.follow @ values + self.back_off * (self.single @ values)
            behind[place] = before[words] / before[words].max()
            values = np.zeros(len(self.single))
            values[words] = behind[place] * emission[place]
        posterior = ahead * behind
        return np.asarray(posterior / posterior.sum(axis=1, keepdims=True))

    def table(self, first: IntArray, second: IntArray) -> Float64Array:
        """P(b|a), (first, second), for lists of states."""
        pairs: Float64Array = self.follow[first][:, second].toarray()
        return pairs + np.outer(self.back_off[first], self.single[second])


@dataclass(frozen=True, repr=False)
class Trigrams:
    """Triples of words, by their first two: the context."""

    bigrams: Bigrams
    contexts: IntArray
    """Pairs of states a, b as numbers a * states + b, ascending."""
    back_off: Float64Array
    """k t(a, b) / (c(a, b) + k t(a, b)) of each context."""
    edges: IntArray
    """Where the followers of each context begin, and the end of all."""
    followers: IntArray
    shares: Float64Array
    """c(a, b, c) / (c(a, b) + k t(a, b)) of each follower."""
    kept: int = KEPT

    @classmethod
    def of(cls, log: CutLog) -> Trigrams:
        """Count the triples of a log; take out the attacked queries first."""
        states = log.size + 3
        framed, times = _framed(log, starts=2)
        # A triple may begin anywhere but at the last two states of a query.
        inside = (framed[:-2] != log.size + 2) & (framed[1:-1] != log.size + 2)
        first, second, third = (framed[at : len(framed) - 2 + at][inside] for at in range(3))
        context, weight = first * states + second, times[:-2][inside]
        # Sum the weights of equal triples.
        order = np.lexsort((third, context))
        context, third, weight = context[order], third[order], weight[order]
        begins = np.ones(len(context), dtype=np.bool_)
        begins[1:] = (np.diff(context) != 0) | (np.diff(third) != 0)
        at = np.flatnonzero(begins)
        counts = np.add.reduceat(weight, at)
        contexts, edges, kinds = np.unique(context[at], return_index=True, return_counts=True)
        total = np.add.reduceat(counts, edges) + TRIGRAM_CAUTION * kinds
        return cls(
            bigrams=Bigrams.of(log),
            contexts=contexts,
            back_off=TRIGRAM_CAUTION * kinds / total,
            edges=np.append(edges, len(at)),
            followers=third[at],
            shares=counts / np.repeat(total, kinds),
        )

    @property
    def name(self) -> str:
        """For reports."""
        return f"trigrams, {self.bigrams.source}"

    def marginals(self, rows: Float32Array) -> Float64Array:
        """Forward-backward over pairs of the likeliest words."""
        guide, emission = self.bigrams.marginals(rows), likelihoods(rows)
        kept = min(self.kept, rows.shape[1])
        words = np.argpartition(-guide, kept - 1, axis=1)[:, :kept]
        start, end = np.array([self.bigrams.start]), np.array([self.bigrams.end])
        frame = [start, start, *words, end]
        seen = [*(row[some] for row, some in zip(emission, words, strict=True)), np.ones(1)]

        def steps(places: range) -> Iterator[Float64Array]:
            """P(c|a, b) P(seen | c) for the words of three neighbouring places."""
            for place in places:
                yield self.table(*frame[place : place + 3]) * seen[place]

        # Forward: P(two last words, all seen up to the place), scaled.
        forward = [np.ones((1, 1))]
        for step in steps(range(len(rows) + 1)):
            reached = np.einsum("ab,abc->bc", forward[-1], step)
            forward.append(reached / reached.sum())
        # Backward: P(all seen after the place | two last words), scaled.
        value = np.ones_like(forward[-1])
        posterior = np.zeros_like(guide)
        for place, step in zip(
            range(len(rows) - 1, -1, -1), steps(range(len(rows), 0, -1)), strict=True
        ):
            value = np.einsum("abc,bc->ab", step, value)
            value /= value.max()
            marginal = (forward[place + 1] * value).sum(axis=0)
            posterior[place, words[place]] = marginal / marginal.sum()
        return posterior

    def table(self, first: IntArray, second: IntArray, third: IntArray) -> Float64Array:
        """P(c|a, b), (first, second, third), for lists of states."""
        states = len(self.bigrams.single)
        pairs = self.bigrams.table(second, third)
        table = np.repeat(pairs[None], len(first), axis=0).reshape(-1, len(third))
        # The contexts that the log holds, and their rows in the table.
        keys = (first[:, None] * states + second[None, :]).ravel()
        at = np.minimum(np.searchsorted(self.contexts, keys), len(self.contexts) - 1)
        row = np.flatnonzero(self.contexts[at] == keys)
        context = at[row]
        table[row] *= self.back_off[context][:, None]
        # Their followers, laid end to end, as far as they are among ``third``.
        sizes = np.diff(self.edges)[context]
        offsets = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        entries = np.repeat(self.edges[context], sizes) + offsets
        columns = np.full(states, -1)
        columns[third] = np.arange(len(third))
        column = columns[self.followers[entries]]
        inside = column >= 0
        table[np.repeat(row, sizes)[inside], column[inside]] += self.shares[entries[inside]]
        return table.reshape(len(first), len(second), len(third))


def _framed(log: CutLog, starts: int) -> tuple[IntArray, IntArray]:
    """All queries laid end to end, each between START (once or twice) and END, and their counts."""
    start, end = log.size + 1, log.size + 2
    lengths = log.lengths + starts + 1
    firsts = np.cumsum(lengths) - lengths
    framed = np.full(int(lengths.sum()), -1, dtype=np.int64)
    for offset in range(starts):
        framed[firsts + offset] = start
    framed[firsts + lengths - 1] = end
    framed[framed == -1] = log.words
    return framed, np.repeat(log.counts, lengths)
