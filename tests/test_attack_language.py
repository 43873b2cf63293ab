"""What an attacker believes beforehand: priors, and models of texts that must be exact."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import PCG64, Generator

from sottovoce.errors import UsageError
from sottovoce.privacy.attacks.cut_log import CutLog
from sottovoce.privacy.attacks.language import Bigrams, TextModel, Trigrams, likelihoods
from sottovoce.privacy.attacks.places import shape_of
from sottovoce.privacy.attacks.priors import Prior, default_prior
from sottovoce.spaces.space import WordSpace
from sottovoce.text import TextPipeline

LOG = ["a b c", "a b", "b c", "zzz a", "c", "a b c e", "f", "a, b?", "A B", "b-c e"]


@pytest.fixture(scope="module")
def log(toy: WordSpace) -> CutLog:
    return CutLog.of(LOG, toy)


def test_a_log_is_cut_as_one_query_at_a_time_would_be(toy: WordSpace) -> None:
    queries = [*LOG, "qqq", "the qqq a", "... !", "qqq qqq b", "a (qqq) b", "rrr"]
    for pipeline in (
        TextPipeline(),
        TextPipeline(unknown="drop"),
        TextPipeline(punctuation="drop"),
        TextPipeline(protect="content"),
        TextPipeline(protect="noun"),
        TextPipeline(keep=frozenset({"b"})),
    ):
        log = CutLog.of(queries, toy, pipeline)
        shapes = {number: shape for shape, number in log.shape_numbers.items()}
        for number, query in enumerate(log.queries):
            prepared = pipeline.prepare(query, toy)
            words = log.words[log.starts[number] : log.starts[number + 1]]
            assert np.where(words == toy.size, -1, words).tolist() == prepared.slots.tolist()
            assert shapes[log.shapes[number]] == shape_of(prepared.literals)


def test_a_log_counts_its_queries_and_leaves_out_those_attacked(log: CutLog) -> None:
    assert len(log) == 9  # "a b" and "A B" are one query.
    assert log.counts[log.numbers["a b"]] == 2
    rest = log.without(["A  b", "c", "not in it"])
    assert len(rest) == 7
    assert {"a b", "c"}.isdisjoint(rest.queries)
    assert rest.name == "log of 7 queries without those attacked"
    at = rest.numbers["zzz a"]
    assert rest.words[rest.starts[at] : rest.starts[at + 1]].tolist() == [5, 0]
    with pytest.raises(UsageError, match="larger"):
        log.without(LOG)
    with pytest.raises(UsageError, match="no query"):
        CutLog.of([" "], WordSpace.from_arrays(["a"], [[1.0]]))


def test_a_prior_from_a_log_counts_words(log: CutLog, toy: WordSpace) -> None:
    prior = Prior.from_log(log)
    counts = np.array([6, 7, 5, 2, 1, 1]) + 0.5  # a b c e f, then zzz
    assert np.exp(prior.log_weights) == pytest.approx(counts / counts.sum())
    assert prior.name == "log of 9 queries"
    assert default_prior(toy, log, ["c"]).name == "log of 8 queries without those attacked"
    assert Prior.uniform(toy).log_weights == pytest.approx(np.full(6, -np.log(6)))
    with pytest.raises(UsageError, match="positive"):
        Prior.of("none", np.zeros(6))


def test_a_prior_from_wordfreq_ranks_words_as_people_use_them() -> None:
    words = ["the", "Cancer", "lymphoma", "qzxqzx", "2019", "1473829"]
    space = WordSpace.from_arrays(words, np.eye(6))
    prior = default_prior(space, None, [])
    assert prior.name == "wordfreq en"
    the, cancer, lymphoma, unlisted, year, number, missing = np.exp(prior.log_weights)
    assert the > cancer > lymphoma > unlisted > 0
    assert the == pytest.approx(0.0537, rel=0.01)
    assert year > number
    assert missing > 0.9
    assert default_prior(space, None, [], "de").name == "wordfreq de"
    with pytest.raises(UsageError, match="no frequencies"):
        Prior.from_wordfreq(space, "tlh")


def exact_rows(places: int) -> np.ndarray:
    """Log-likelihoods whose sums and differences float32 holds exactly."""
    return (Generator(PCG64(places)).integers(-200, 200, (places, 6)) / 64).astype(np.float32)


def brute_force(chain, rows: np.ndarray) -> np.ndarray:
    """Marginals by enumerating every text of this length; ``chain`` gives P(text)."""
    places, states = rows.shape
    total = np.zeros(rows.shape)
    for text in product(range(states), repeat=places):
        chance = chain(text) * np.exp(sum(rows[place, word] for place, word in enumerate(text)))
        total[np.arange(places), list(text)] += chance
    return total / total.sum(axis=1, keepdims=True)


def bigram_by_hand(log: CutLog):
    """Interpolated as the definition says, with k = 2."""
    unknown, start, end = log.size, log.size + 1, log.size + 2
    texts = [
        (start, *log.words[log.starts[i] : log.starts[i + 1]].tolist(), end)
        for i in range(len(log))
    ]
    single = np.full(log.size + 3, 0.5)
    single[start] = 0
    pairs: dict[tuple[int, int], float] = {}
    for text, times in zip(texts, log.counts, strict=True):
        for first, second in pairwise(text):
            pairs[first, second] = pairs.get((first, second), 0) + times
            single[second] += times
    single /= single.sum()
    assert unknown < start

    def follows(first: int, second: int) -> float:
        after = [times for (left, _), times in pairs.items() if left == first]
        if not after:
            return single[second]
        count = pairs.get((first, second), 0)
        return (count + 2 * len(after) * single[second]) / (sum(after) + 2 * len(after))

    return follows, start, end


@pytest.mark.parametrize("places", [1, 2, 4])
def test_bigram_marginals_equal_enumeration(log: CutLog, places: int) -> None:
    follows, start, end = bigram_by_hand(log)
    rows = exact_rows(places)
    rows[0, 3] = -np.inf

    def chain(text) -> float:
        framed = (start, *text, end)
        return np.prod([follows(a, b) for a, b in pairwise(framed)])

    assert Bigrams.of(log).marginals(rows) == pytest.approx(brute_force(chain, rows), abs=1e-7)


def trigram_by_hand(log: CutLog):
    """The same one word further, with k = 5."""
    follows, start, end = bigram_by_hand(log)
    triples: dict[tuple[int, int, int], float] = {}
    for number, times in enumerate(log.counts):
        words = log.words[log.starts[number] : log.starts[number + 1]].tolist()
        text = (start, start, *words, end)
        for triple in zip(text, text[1:], text[2:], strict=False):
            triples[triple] = triples.get(triple, 0) + times

    def chance(first: int, second: int, third: int) -> float:
        after = [n for (a, b, _), n in triples.items() if (a, b) == (first, second)]
        below = follows(second, third)
        if not after:
            return below
        count = triples.get((first, second, third), 0)
        return (count + 5 * len(after) * below) / (sum(after) + 5 * len(after))

    return chance, start, end


@pytest.mark.parametrize("places", [1, 2, 4])
def test_trigram_marginals_equal_enumeration_where_all_words_are_kept(
    log: CutLog, places: int
) -> None:
    chance, start, end = trigram_by_hand(log)
    rows = exact_rows(places)
    rows[-1, 0] = -np.inf

    def chain(text) -> float:
        framed = (start, start, *text, end)
        triples = zip(framed, framed[1:], framed[2:], strict=False)
        return np.prod([chance(*triple) for triple in triples])

    assert Trigrams.of(log).marginals(rows) == pytest.approx(brute_force(chain, rows), abs=1e-7)


@given(seed=st.integers(0, 10**6), places=st.integers(1, 6))
def test_every_model_answers_probabilities(log: CutLog, seed: int, places: int) -> None:
    rows = Generator(PCG64(seed)).normal(0, 30, (places, 6)).astype(np.float32)
    rows[Generator(PCG64(seed + 1)).random(rows.shape) < 0.3] = -np.inf
    models: list[TextModel] = [Prior.from_log(log), Bigrams.of(log), Trigrams.of(log)]
    for model in models:
        marginals = model.marginals(rows)
        assert marginals.shape == rows.shape
        assert marginals.sum(axis=1) == pytest.approx(np.ones(places))
        possible = np.isfinite(rows) | ~np.isfinite(rows).any(axis=1, keepdims=True)
        assert (marginals[~possible] == 0).all()


def test_a_place_where_nothing_is_possible_says_nothing() -> None:
    rows = np.array([[-np.inf, -np.inf], [-5000.0, -5001.0]], dtype=np.float32)
    assert likelihoods(rows) == pytest.approx(np.array([[1, 1], [1, np.exp(-1)]]))


def test_constants_of_rows_change_nothing(log: CutLog) -> None:
    rows = Generator(PCG64(1)).integers(-8, 8, (3, 6)).astype(np.float32)
    shifted = rows + np.array([[2048.0], [-4096.0], [0.0]], dtype=np.float32)
    for model in (Prior.from_log(log), Bigrams.of(log), Trigrams.of(log)):
        assert model.marginals(shifted) == pytest.approx(model.marginals(rows))
