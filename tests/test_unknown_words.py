"""The places of unknown and of denied words show what a known uniform word would give."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sottovoce import Obfuscator, mechanism
from sottovoce.mechanisms import WordMechanism, kind, names
from sottovoce.randomness import Streams
from sottovoce.sanitizing import Sanitizer
from sottovoce.testing import toy_space
from sottovoce.text.prepared import STOOD_IN

UNKNOWN_WORDS = ("zzz", "Qqq", "xqzzyvwk")
BY_WORD = [name for name in names() if issubclass(kind(name), WordMechanism)]


def stand_ins(chosen, seed, count, text=0):
    """The words that stand in for the unknown words of a text, by the seeded stream."""
    released = chosen.space.output.ids
    draws = Streams(seed, chosen.spec).draws(text, 0, Streams.UNKNOWN_WORDS, count)
    return chosen.space.words(released[draws.below(len(released))])


def variants(chosen, texts, **options):
    return [result.variants for result in Obfuscator(chosen, **options).obfuscate(texts)]


def in_turn(text, words):
    """The text with these words in the places of its unknown ones."""
    turn = iter(words)
    return " ".join(next(turn) if word in UNKNOWN_WORDS else word for word in text.split())


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.sampled_from(["word1", "word77", *UNKNOWN_WORDS]), min_size=1, max_size=7),
    st.integers(0, 2**32),
    st.sampled_from(["once", "independent"]),
)
def test_an_unknown_word_gives_exactly_what_a_known_uniform_word_gives(
    small_space, words, seed, release
):
    chosen = mechanism("cmp", space=small_space, epsilon=4.0)
    text, options = " ".join(words), {"n": 6, "release": release, "rng": seed}
    count = sum(word in UNKNOWN_WORDS for word in words)
    known = in_turn(text, stand_ins(chosen, seed, count)) if count else text
    assert variants(chosen, [text], **options) == variants(chosen, [known], **options)


@pytest.mark.parametrize("name", BY_WORD)
def test_every_mechanism_gets_the_word_that_stands_in(name, small_space):
    chosen = mechanism(name, space=small_space, epsilon=2.0)
    text = "word5 zzz word6 Qqq"
    known = in_turn(text, stand_ins(chosen, 8, 2))
    pipeline = {"rng": 8, "n": 3}
    assert variants(chosen, [text], **pipeline) == variants(chosen, [known], **pipeline)


def test_once_shows_the_nearest_words_of_one_point_for_an_unknown_word(small_space):
    """Without noise the point is the stand-in's own: the N words shown are its N nearest."""
    chosen = mechanism("cmp", space=small_space, epsilon=1e6)
    results = variants(chosen, ["zzz"] * 50, n=8, release="once", rng=3)
    for number, shown in enumerate(results):
        (stand_in,) = stand_ins(chosen, 3, 1, text=number)
        point = small_space.vectors[small_space.ids([stand_in])]
        nearest = small_space.nearest_output.top(point, 8)[0][0]
        assert set(shown) == set(small_space.words(nearest))


def spread(space, shown):
    """How far apart the words shown at one place lie: the mean distance from their centre."""
    vectors = space.vectors[space.ids(list(shown))].astype(np.float64)
    return float(np.linalg.norm(vectors - vectors.mean(axis=0), axis=1).mean())


def test_places_of_unknown_words_look_like_places_of_known_ones(small_space):
    """The words shown at a place lie as close together, whether the word was known or not."""
    chosen = mechanism("cmp", space=small_space, epsilon=20.0)
    rng = np.random.default_rng(4)
    known = small_space.words(rng.integers(small_space.size, size=300))
    unknown = [f"zz{number}qx" for number in range(300)]
    spreads = [
        [spread(small_space, shown) for shown in variants(chosen, texts, n=8, release="once")]
        for texts in (known, unknown)
    ]
    assert stats.ks_2samp(*spreads).pvalue > 1e-4
    # What was released before, a uniform word for each variant, is told apart at once.
    fresh = [small_space.words(rng.integers(small_space.size, size=8)) for _ in range(300)]
    assert stats.ks_2samp(spreads[0], [spread(small_space, w) for w in fresh]).pvalue < 1e-6


@pytest.mark.parametrize("release", ["once", "independent"])
def test_batches_and_workers_change_nothing_for_unknown_words(small_space, release):
    chosen = mechanism("cmp", space=small_space, epsilon=3.0)
    texts = ["zzz word1", "word2 Qqq zzz", "", "xqzzyvwk"] * 5
    options = {"n": 4, "release": release, "rng": 5}
    runs = [
        variants(chosen, texts, **options, **more)
        for more in ({"batch_size": 1}, {"batch_size": 7}, {"batch_size": 3, "workers": 2})
    ]
    assert runs[0] == runs[1] == runs[2]


def test_the_guarantee_says_what_became_of_unknown_words(small_space):
    chosen = mechanism("cmp", space=small_space, epsilon=3.0)
    known, unknown = Obfuscator(chosen, n=4).obfuscate(["word1 word2", "word1 zzz"])
    assert unknown.spent == known.spent == 12.0
    assert f"1 unknown word {STOOD_IN}" in unknown.guarantee.caveats
    (alone,) = Obfuscator(chosen, n=4).obfuscate(["zzz"])
    assert alone.spent == 12.0


# Denied words


def sanitizer(space, spec="cmp:epsilon=2", **options):
    return Sanitizer(Obfuscator(mechanism(spec, space=space), rng=1), ("text",), **options)


def test_denied_words_go_through_the_mechanism_like_unknown_ones(small_space):
    """At the same places of the same rows a denied word gives what an unknown one gives."""
    subject = sanitizer(small_space, deny=frozenset({"word5"}))
    texts = ["word1 {} word2", "{}", "{} {} word9"]
    denied, denied_counts = subject.texts("text", [t.replace("{}", "word5") for t in texts], 0)
    unknown, unknown_counts = subject.texts("text", [t.replace("{}", "zzz") for t in texts], 0)
    assert denied == unknown
    assert denied_counts.denied == unknown_counts.uniform == 4


@pytest.mark.parametrize("linkable", [None, b"a secret of 32 bytes, more or less"])
def test_the_substitutes_of_unknown_words_follow_the_law_of_a_uniform_word(linkable):
    """Their law is that of the mechanism after a uniform word: not uniform, where that is not."""
    space = toy_space()
    subject = sanitizer(space, "santext:epsilon=1", linkable=linkable)
    words = [f"zz{number}q" for number in range(8_000)]
    (released,), _ = subject.texts("text", [" ".join(words)], 0)
    law = np.exp(mechanism("santext:epsilon=1", space=space).log_probabilities(space.output.ids))
    expected = law.mean(axis=0)[space.output.ids]
    counts = Counter(released.split())
    drawn = [counts[word] for word in space.words(space.output.ids)]
    assert stats.chisquare(drawn, expected / expected.sum() * len(words)).pvalue > 1e-4
    assert stats.chisquare(drawn).pvalue < 1e-4, "a uniform law would be refuted"


def test_linkable_unknown_words_have_draws_of_their_own(small_space):
    """Two unknown words with the same stand-in need not have the same substitute."""
    subject = sanitizer(small_space, "cmp:epsilon=0.01", linkable=bytes(range(32)))
    text = " ".join(f"zz{number}q" for number in range(400))
    (released,), _ = subject.texts("text", [text], 0)
    assert len(set(released.split())) > 150
    again = replace(subject).texts("text", [text], 7)[0]
    assert again == [released]
