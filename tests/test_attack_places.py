"""Places of a release: words, shape and truth are lined up as the pipeline cut them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce import Obfuscator, mechanism
from sottovoce.errors import UsageError
from sottovoce.privacy.attacks.places import line_up, shape_of
from sottovoce.privacy.attacks.releases import Released
from sottovoce.spaces.extended_space import with_words
from sottovoce.spaces.space import WordSpace
from sottovoce.text import TextPipeline


def test_words_punctuation_and_truth(toy: WordSpace) -> None:
    (text,), uneven = line_up([Released("1", "(A) b, zzz!", ("(c) b, f!", "(e) c, b!"))], toy)
    assert uneven == 0
    assert [place.seen.tolist() for place in text.places] == [[2, 3], [1, 2], [4, 1]]
    assert text.shape == ("(", ")", ",", "!")
    assert [(word.word, word.id) for word in text.truth] == [("a", 0), ("b", 1), ("zzz", -1)]
    assert text.function.tolist() == [True, False, False]
    assert "zzz" not in repr(text) + repr(text.truth)


def test_compounds_have_a_place_for_each_part(toy: WordSpace) -> None:
    (text,), _ = line_up([Released("1", "(a-b) c", ("(c-e) f", "(f-b) a"))], toy)
    assert [place.seen.tolist() for place in text.places] == [[2, 4], [3, 1], [4, 0]]
    assert text.shape == ("(", "-", ")", "")
    assert [word.id for word in text.truth] == [0, 1, 2]
    (single,), _ = line_up([Released("1", "a-b", ("c", "f"))], toy)
    assert single.aligned
    assert [word.word for word in single.truth] == ["a-b"]


def test_punctuation_alone_is_no_word(toy: WordSpace) -> None:
    (text,), _ = line_up([Released("1", "a - b", ("c - e", "f - f"))], toy)
    assert len(text.places) == len(text.truth) == 2
    assert text.shape == ("", "-", "")


def test_punctuation_of_released_words_is_not_that_of_the_text() -> None:
    space = WordSpace.from_arrays(["yes", "no", "u.s.", "etc."], np.eye(4))
    (text,), _ = line_up([Released("1", "yes, no", ("u.s. no", "yes, etc.", "no, u.s."))], space)
    assert text.shape == ("", ",", "")
    assert [place.seen.tolist() for place in text.places] == [[2, 0, 1], [1, 3, 2]]


def test_words_in_clear_belong_to_the_shape(toy: WordSpace) -> None:
    variants = ("c of e zzz", "f of b zzz", "a of c zzz")
    (text,), _ = line_up([Released("1", "a of b zzz", variants)], toy, release="once")
    assert text.replaced.tolist() == [0, 2]
    assert text.shape == ("", "of", "zzz")
    # One word of the space, drawn every time: only a release `once` shows that it is in clear.
    same = [Released("1", "a b", ("c e", "f e", "b e"))]
    (drawn,), _ = line_up(same, toy)
    assert drawn.replaced.tolist() == [0, 1]
    (once,), _ = line_up(same, toy, release="once")
    assert once.replaced.tolist() == [0]
    assert once.shape == ("", "e")


def test_words_left_out_have_no_place(toy: WordSpace) -> None:
    (text,), _ = line_up(
        [Released("1", "a zzz b", ("a b", "c e"))], toy, pipeline=TextPipeline(unknown="drop")
    )
    assert not text.aligned
    assert [word.word for word in text.truth] == ["a", "zzz", "b"]


def test_fewer_variants_are_the_first_ones(toy: WordSpace) -> None:
    (text,), _ = line_up([Released("1", "a", ("b", "c", "e"))], toy, variants=2)
    assert text.places[0].seen.tolist() == [1, 2]


def test_uneven_variants_are_counted_and_refused_when_most_are(toy: WordSpace) -> None:
    even, uneven = Released("1", "a", ("b", "c")), Released("2", "a", ("b", "c e"))
    silent = Released("3", "a", ())
    texts, left_out = line_up([even, uneven, silent], toy)
    assert (len(texts), left_out) == (1, 1)
    with pytest.raises(UsageError, match="2 of 3 texts"):
        line_up([even, uneven, uneven], toy)
    with pytest.raises(UsageError, match="no text"):
        line_up([silent], toy)


def test_without_a_space_words_are_read_as_they_stand() -> None:
    (text,), _ = line_up([Released("1", "B, x", ("(b) y", "B x"))], None)
    assert [place.most_shown.word for place in text.places] == ["b", "y"]
    assert text.places[0].seen.tolist() == []


WORDS = st.sampled_from(["a", "b", "c", "E", "f", "zzz", "the", "of", "b-c", "a/e", "f's", "don't"])
MARKS = st.sampled_from(["", "", "", ",", "?", ":", ")", '"'])
TEXTS = st.lists(st.tuples(st.sampled_from(["", "", "("]), WORDS, MARKS), min_size=1, max_size=6)


@given(pieces=TEXTS, protect=st.sampled_from(["all", "content"]), seed=st.integers(0, 999))
def test_shape_and_truth_are_those_of_the_pipeline(
    toy: WordSpace, pieces, protect: str, seed: int
) -> None:
    pipeline = TextPipeline(protect=protect)
    text = " ".join("".join(piece) for piece in pieces)
    prepared = pipeline.prepare(text, toy)
    obfuscator = Obfuscator(
        mechanism("cmp", space=toy, epsilon=3.0), n=3, release="once", pipeline=pipeline, rng=seed
    )
    (result,) = obfuscator.obfuscate([text])
    (placed,), _ = line_up(
        [Released("1", text, result.variants)], toy, release="once", pipeline=pipeline
    )
    assert placed.aligned
    if len(placed.replaced) == len(prepared) > 0:
        assert placed.shape == shape_of(prepared.literals)
        assert [placed.truth[at].id for at in placed.replaced] == prepared.slots.tolist()
        for place, ids in zip(placed.seen(), prepared.slots, strict=True):
            assert ids == -1 or len(np.unique(place)) == 3


def test_what_was_released_is_a_word_of_the_list(toy: WordSpace) -> None:
    """A log may bring a word that differs from a listed one in its case alone."""
    capital = toy.words([0])[0].capitalize()
    cased = WordSpace.from_arrays([capital, *toy.words(np.arange(1, toy.size))], toy.vectors)
    known = with_words(cased, [capital.lower()], toy.vectors[:1])
    texts, _ = line_up([Released("1", "x", (capital, capital))], known)
    assert texts[0].places[0].seen.tolist() == [0, 0]
