"""Words moved by common noise: the same answers as one search for each, and the same law."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

from sottovoce import mechanism
from sottovoce.mechanisms.cmp import CMP
from sottovoce.privacy import word_draws
from sottovoce.privacy.plausible_deniability import deniability
from sottovoce.privacy.word_draws import CommonNoise, Sampler, sampler_for, usual_sharing
from sottovoce.privacy.word_samples import sample_words
from sottovoce.randomness import Draws
from sottovoce.spaces import moved_words
from sottovoce.spaces.extended_space import with_words
from sottovoce.spaces.moved_words import MovedWords, Shifts, kth_at_least
from sottovoce.spaces.space import OutputVocabulary, WordSpace
from sottovoce.threads import set_threads


def same_as_the_search(space: WordSpace, words, shifts, k: int, made: Shifts | None = None) -> None:
    """``made``: the shifts with their products, where they come from elsewhere."""
    ids, distances = MovedWords(space, words).nearest(made or Shifts(space, shifts), k)
    sums = (shifts[None] + space.vectors[words][:, None]).astype(np.float32)
    places, far = space.nearest_output.top(sums.reshape(-1, space.dimension), k)
    assert np.array_equal(ids.reshape(-1, k), space.output.ids[places])
    assert np.array_equal(distances.reshape(-1, k), far)


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("size", [0.01, 1.0, 1000.0])
def test_every_sum_gets_the_words_that_a_search_finds(small_space, k, size):
    shifts = size * np.random.default_rng(k).standard_normal((70, 20))
    same_as_the_search(small_space, np.array([0, 3, 3, 1999]), shifts, k)


def test_words_that_only_rounding_tells_apart_are_decided_exactly():
    rng = np.random.default_rng(1)
    vectors = np.repeat(rng.standard_normal((20, 8)), 10, axis=0)
    vectors[100:] += 1e-7 * rng.standard_normal((100, 8))  # Below float32's steps, or near them.
    vectors[0] *= 1e4
    space = WordSpace.from_arrays([f"word{i}" for i in range(200)], vectors)
    same_as_the_search(space, np.array([5, 150]), rng.standard_normal((40, 8)), 3)
    with_zeros = np.concatenate([np.zeros((1, 8)), rng.standard_normal((4, 8))])
    same_as_the_search(space, np.arange(200), with_zeros, 1)


@given(
    st.integers(0, 1000),
    st.integers(2, 400),
    st.integers(1, 12),
    st.floats(1e-3, 1e3),
    st.floats(0, 3),
    st.integers(1, 8),
)
@settings(max_examples=60)
def test_words_that_are_left_out_are_never_among_the_nearest(seed, size, moved, length, skew, k):
    """Few words looked at for each shift, small tiles, words of any length."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((size, 6)) * rng.uniform(0.1, 1, (size, 1)) ** skew
    vectors += rng.standard_normal(6)
    space = WordSpace.from_arrays([f"word{i}" for i in range(size)], vectors)
    shifts = length * rng.standard_normal((20, 6))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moved_words, "NEAR", 5)
        patch.setattr(moved_words, "TILE", 16)
        patch.setattr(moved_words, "LANES", 4)
        same_as_the_search(space, rng.integers(size, size=moved), shifts, min(k, size))


def test_a_crowd_of_equal_words_is_left_to_the_search(monkeypatch):
    rng = np.random.default_rng(2)
    vectors = rng.standard_normal((300, 8))
    vectors[100:] = vectors[100]
    space = WordSpace.from_arrays([f"word{i}" for i in range(300)], vectors)
    words, shifts = np.array([3, 150]), rng.standard_normal((20, 8))
    same_as_the_search(space, words, shifts, 2)
    searched = []
    search = space.nearest_output.top
    monkeypatch.setattr(
        space.nearest_output, "top", lambda *given: searched.append(1) or search(*given)
    )
    ids, _ = MovedWords(space, words).nearest(Shifts(space, np.zeros((1, 8))), 2)
    assert ids[1].tolist() == [[100, 101]]
    assert searched


@pytest.mark.parametrize("k", [1, 3])
def test_words_that_are_clearly_apart_need_no_search(small_space, monkeypatch, k):
    monkeypatch.setattr(moved_words, "NEAR", 50)
    monkeypatch.setattr(moved_words, "TILE", 16)
    monkeypatch.setattr(small_space.nearest_output, "top", None)
    shifts = Shifts(small_space, np.random.default_rng(4).standard_normal((40, 20)))
    ids, _ = MovedWords(small_space, np.arange(20)).nearest(shifts, k)
    assert ids.shape == (20, 40, k)


@given(st.integers(0, 1000), st.integers(1, 300), st.integers(1, 80))
def test_the_kth_best_score_is_never_said_to_be_better_than_it_is(seed, size, k):
    scores = np.random.default_rng(seed).standard_normal((size, 3)).astype(np.float32)
    told = kth_at_least(scores, k)
    if k > size:
        assert (told == -np.inf).all()
    else:
        true = np.sort(scores, axis=0)[-k]
        assert (told <= true).all()
        assert k > 1 or np.array_equal(told, true)


@given(st.integers(0, 1000), st.floats(1e-4, 1e4), st.integers(1, 3))
@settings(max_examples=20)
def test_products_serve_the_same_shifts_at_any_length(small_space, seed, scale, k):
    rng = np.random.default_rng(seed)
    made = Shifts(small_space, rng.standard_normal((9, 20)))
    other = made.vectors * scale
    scaled = made.scaled_to(small_space, other)
    assert scaled.products is made.products
    same_as_the_search(small_space, np.array([7, 700]), other, k, scaled)
    same_as_the_search(small_space, np.array([7, 700]), other[3:5], k, scaled.part(slice(3, 5)))


def test_products_do_not_serve_other_shifts(small_space, toy):
    vectors = np.random.default_rng(1).standard_normal((9, 20))
    made = Shifts(small_space, vectors)
    one_off = 2 * vectors
    one_off[4] *= 1 + 1e-6
    for other in (-vectors, one_off, vectors[::-1], vectors[:8], 0 * vectors):
        assert made.scaled_to(small_space, other) is None
    assert made.scaled_to(toy, vectors) is None
    assert Shifts(small_space, 0 * vectors).scaled_to(small_space, vectors) is None


def test_the_number_of_threads_changes_nothing(small_space):
    shifts = np.random.default_rng(3).standard_normal((70, 20))
    answers = []
    try:
        for count in (1, 3):
            set_threads(count)
            moved = MovedWords(small_space, np.array([5, 50, 500]))
            answers.append(moved.nearest(Shifts(small_space, shifts), 2))
    finally:
        set_threads(None)
    assert all(np.array_equal(*both) for both in zip(*answers, strict=True))


def test_only_words_of_the_output_come_out_also_for_words_outside_the_list(small_space):
    few = small_space.with_output(OutputVocabulary("few", np.arange(0, 2000, 7)))
    more = with_words(few, ["outside"], np.full((1, 20), 0.3))
    same_as_the_search(more, np.array([2000, 7, 8]), np.eye(20), 2)


def test_common_noise_draws_by_the_law_of_the_mechanism(toy):
    """Of five words each is drawn as often as by itself, with and without a choice."""
    for name in ("cmp", "vickrey-cmp"):
        built = mechanism(name, space=toy, epsilon=2)
        words, places = np.arange(5), np.arange(5)
        common = CommonNoise(name, words, 3, sharing=5).all(built, places, 4000)
        alone = Sampler(name, words, 4).all(built, places, 4000)
        for one, other in zip(common, alone, strict=True):
            counts = np.array([np.bincount(row, minlength=5) for row in (one, other)])
            assert chi2_contingency(counts[:, counts.any(axis=0)]).pvalue > 1e-4


def drawn_one_by_one(built, sampler: CommonNoise, place: int, sharing: int, draws: int):
    """What common noise draws for a word, the straightforward way."""
    rows = []
    for number, start in enumerate(range(0, draws, word_draws.DRAWN_TOGETHER)):
        count = min(word_draws.DRAWN_TOGETHER, draws - start)
        generator = sampler._generator(place // sharing, number, word_draws.NOISE)
        noise = built.noise(Draws([(generator, count)]))
        points = (noise + built.space.vectors[sampler.words[place]]).astype(np.float32)
        chance = Draws([(sampler._generator(place, number, word_draws.CHOICE), count)])
        rows.append(built.choose(*built.near(points, built.candidates), chance))
    return np.concatenate(rows)


@pytest.mark.parametrize("keeping", [False, True])
@pytest.mark.parametrize("name", ["cmp", "vickrey-cmp", "mahalanobis"])
def test_all_epsilons_get_the_draws_that_each_gets_by_itself(small_space, name, keeping):
    """In any order of words, also where products are kept, or where their room is used again."""
    places = np.array([9, 2, 3, 0, 7])
    sampler = CommonNoise(name, sample_words(small_space, 12), 5, 4, keeping)
    for epsilon in (3.0, 40.0, 0.5):
        built = mechanism(name, space=small_space, epsilon=epsilon)
        rows = sampler.all(built, places, 700)
        for place, row in zip(places, rows, strict=True):
            assert np.array_equal(row, drawn_one_by_one(built, sampler, place, 4, 700))


def test_products_are_made_once_for_all_epsilons_as_far_as_there_is_room(small_space, monkeypatch):
    made = []
    monkeypatch.setattr(word_draws, "Shifts", lambda *given: made.append(given) or Shifts(*given))
    monkeypatch.setattr(word_draws, "MOST_PRODUCTS", 300 * 2000)
    cmp = mechanism("cmp", space=small_space, epsilon=3)
    sampler = CommonNoise("cmp", np.arange(6), 5, sharing=6, keeping=True)
    for epsilon in (3.0, 2.0, 1.0):
        sampler.all(replace(cmp, epsilon=epsilon), np.arange(6), 500)
    # Of 500 draws the first 256 are kept, the others made each time.
    assert [len(noise) for _, noise, _ in made] == [256, 244, 244, 244]


def test_other_draws_for_the_same_words_share_what_the_words_decide(small_space, monkeypatch):
    cmp = mechanism("cmp", space=small_space, epsilon=3)
    words, places = sample_words(small_space, 6), np.arange(6)
    alone = [CommonNoise("cmp", words, seed, 6).all(cmp, places, 300) for seed in (5, 6)]
    prepared = []
    monkeypatch.setattr(
        word_draws, "MovedWords", lambda *given: prepared.append(given) or MovedWords(*given)
    )
    first = CommonNoise("cmp", words, 5, sharing=6)
    first.all(cmp, places, 300)
    second = first.reseeded(6)
    # In turns, batch by batch: neither writes into memory of the other.
    both = zip(*(sampler.batches(cmp, places, 300) for sampler in (first, second)), strict=True)
    for rows, batches in zip(alone, zip(*both, strict=True), strict=True):
        assert np.array_equal(np.concatenate(batches, axis=1), rows)
    assert len(prepared) == 1


def test_memory_for_products_is_used_again_but_never_by_two_at_once(small_space, monkeypatch):
    rooms = []
    monkeypatch.setattr(
        word_draws, "Shifts", lambda *given: rooms.append(given[2]) or Shifts(*given)
    )
    cmp = mechanism("cmp", space=small_space, epsilon=3)
    sampler = CommonNoise("cmp", np.arange(6), 5, sharing=2)
    for group in sampler.groups(300):
        sampler.all(cmp, group, 300)
    assert len(rooms) == 6
    assert all(room is rooms[0] for room in rooms)
    rooms.clear()
    for _ in sampler.batches(cmp, np.arange(6), 100):
        assert len({id(room) for room in rooms}) == 3


def test_a_word_has_the_same_draws_whatever_is_drawn_beside_it(small_space):
    cmp = mechanism("cmp", space=small_space, epsilon=3)
    sampler = CommonNoise("cmp", sample_words(small_space, 12), 5, sharing=4)
    together = sampler.all(cmp, np.arange(12), 200)
    assert np.array_equal(together[3:5], sampler.all(cmp, np.array([3, 4]), 200))
    again = sampler.all(replace(cmp, epsilon=1e9), np.arange(12), 10)
    assert np.array_equal(again, np.repeat(sampler.words[:, None], 10, axis=1))


def test_as_many_words_share_their_noise_as_are_told_to(small_space):
    cmp = mechanism("cmp", space=small_space, epsilon=3)
    same = np.zeros(8, dtype=np.int64)
    rows = CommonNoise("cmp", same, 5, sharing=4).all(cmp, np.arange(8), 100)
    assert len(np.unique(rows[:4], axis=0)) == len(np.unique(rows[4:], axis=0)) == 1
    assert not np.array_equal(rows[0], rows[4])
    assert [usual_sharing(draws) for draws in (3, 100, 1000)] == [1, 3, 32]


def test_what_is_no_mere_noise_is_drawn_word_by_word(small_space, monkeypatch):
    """A subclass that changes how words are drawn must not be measured by what it does not do."""
    monkeypatch.setattr(word_draws, "WORTH_SHARING", 0)

    @dataclass(frozen=True, repr=False, eq=False)
    class Shy(CMP):
        def settle(self, points, draws):
            return np.zeros(len(points), dtype=np.int64)

    words = np.arange(3)
    kinds = {
        "cmp": mechanism("cmp", space=small_space, epsilon=3),
        "vickrey": mechanism("vickrey-mahalanobis", space=small_space, epsilon=3),
        "prior": mechanism("cmp", space=small_space, epsilon=3, prior=1.0),
        "shy": Shy(space=small_space, epsilon=3),
        "law": mechanism("santext", space=small_space, epsilon=3),
    }
    shared = {
        name: isinstance(sampler_for(built, words, 1, 3), CommonNoise)
        for name, built in kinds.items()
    }
    assert shared == {"cmp": True, "vickrey": True, "prior": False, "shy": False, "law": False}
    measured = deniability(kinds["shy"], words, draws=100, rng=1)
    assert measured.unchanged.tolist() == [1, 0, 0]
    alone = sampler_for(kinds["cmp"], words, 1, 1)
    assert not isinstance(alone, CommonNoise)
