"""From tokens to the words of a space."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.spaces.space import WordSpace
from sottovoce.text import TextPipeline
from sottovoce.text.comparing import comparable, visible
from sottovoce.text.resolve import resolve
from sottovoce.types import UNKNOWN


def space_of(*words: str) -> WordSpace:
    return WordSpace.from_arrays(words, np.eye(len(words)))


def found(surface: str, *words: str) -> list[tuple[str, str | None]]:
    """The parts of a surface, each with the word found for it."""
    space = space_of(*words)
    return [
        (surface[start:end], None if position == UNKNOWN else space.word(position))
        for start, end, position in resolve(surface, space)
    ]


@pytest.mark.parametrize(
    ("surface", "word"),
    [
        ("Paris", "paris"),
        ("paris", "Paris"),
        ("PARIS", "Paris"),
        ("usa", "USA"),
        ("Straße", "strasse"),
        ("medicare's", "medicare"),
        ("Medicare’s", "medicare"),
        ("dogs'", "dogs"),
        ("dogs’", "dogs"),
        ("don't", "don't"),
        ("don’t", "don't"),
        ("don't", "don’t"),
        ("e-mail", "email"),
        ("e-mail", "e-mail"),
        ("O'Brien", "obrien"),
        ("U.S", "us"),
        ("Ph.D", "phd"),
        ("1,000", "1000"),
        ("1990's", "1990"),
        ("$100", "100"),
        ("c++", "c++"),
        ("c++", "c"),
        ("iPhone™", "iphone"),
        ("café", "café"),
        ("café", "cafe"),
        ("naïve-té", "naivete"),
        ("ﬁne", "fine"),
        ("ＡＢＣ", "abc"),
        ("İzmir", "izmir"),
        ("soft\u00adhyphen", "softhyphen"),
        ("1️⃣", "1"),
        ("❤️", "❤"),
    ],
)
def test_a_spelling_variant_is_found_as_one_word(surface, word):
    assert found(surface, word, "unrelated") == [(surface, word)]


@pytest.mark.parametrize(
    ("surface", "words", "expected"),
    [
        ("Café", ("café", "cafe"), "café"),
        ("US", ("us", "US"), "us"),
        ("dog's", ("dog's", "dog"), "dog's"),
        ("c++", ("c", "c++"), "c++"),
        ("e-mail", ("email", "e", "mail"), "email"),
        ("Maße", ("masse", "maße"), "maße"),
        ("Maße", ("masse", "Maße"), "Maße"),
        ("Maße", ("masse",), "masse"),
        ("MASSE", ("masse", "maße"), "masse"),
    ],
)
def test_the_most_faithful_spelling_wins(surface, words, expected):
    assert found(surface, *words) == [(surface, expected)]


@pytest.mark.parametrize(
    ("surface", "words", "expected"),
    [
        ("well-known", ("well", "known"), [("well", "well"), ("known", "known")]),
        ("covid-19", ("19",), [("covid", None), ("19", "19")]),
        ("and/or", ("and", "or"), [("and", "and"), ("or", "or")]),
        ("R&D", ("r", "d"), [("R", "r"), ("D", "d")]),
        ("Rock'n'Roll", ("rock",), [("Rock", "rock"), ("n", None), ("Roll", None)]),
        ("mother-in-law's", ("mother", "in", "law"), [*zip(
            ("mother", "in", "law's"), ("mother", "in", "law"), strict=True)]),
        ("a=b", ("a", "b"), [("a", "a"), ("b", "b")]),
        ("don't", ("do", "not"), [("do", "do"), ("n't", "not")]),
        ("don’t", ("do", "n't", "not"), [("do", "do"), ("n’t", "n't")]),
        ("can't", ("can", "ca", "not"), [("ca", "can"), ("n't", "not")]),
        ("Won't", ("will", "not"), [("Wo", "will"), ("n't", "not")]),
        ("she'll", ("she", "will", "shell"), [("she", "she"), ("'ll", "will")]),
    ],
)  # fmt: skip
def test_a_compound_is_taken_apart_where_a_part_is_known(surface, words, expected):
    assert found(surface, *words) == expected


@pytest.mark.parametrize(
    "surface",
    [
        "john@acme",
        "john@acme.com",
        "john-smith@acme.com",
        "https://acme.com/john",
        "acme.com",
        "1,000.50",
        "2019-12-05",
        "555-1234",
        "12:30",
        "9/11",
        "5+3",
    ],
)
def test_addresses_and_figures_stay_whole_though_their_parts_are_known(surface):
    parts = [
        "john",
        "smith",
        "acme",
        "com",
        "https",
        "1",
        "000",
        "50",
        "2019",
        "12",
        "05",
        "555",
        "1234",
        "30",
        "9",
        "11",
        "5",
        "3",
    ]
    assert found(surface, *parts) == [(surface, None)]


@pytest.mark.parametrize("surface", ["qqq", "qqq-www", "😀", "\ud800", "+", "日本", "x" * 10_000])
def test_what_nothing_explains_is_one_unknown_word(surface):
    assert found(surface, "house") == [(surface, None)]


def test_the_default_space_knows_what_splitting_at_blanks_alone_would_miss(default_space):
    text = "Medicare's visceral? don't: U.S. dogs' (well-known) e-mail, 1,000 naïve São $100"
    prepared = TextPipeline().prepare(text, default_space)
    assert prepared.unknown == ()
    assert len(prepared) == 13


@given(st.text(st.characters(), min_size=1))
def test_parts_are_ordered_stretches_of_any_surface(surface):
    space = space_of("a", "b", "s", "1")
    end_before = 0
    for start, end, position in resolve(surface, space):
        assert end_before <= start < end <= len(surface)
        assert UNKNOWN <= position < 4
        end_before = end


@given(st.text(st.characters()))
def test_clear_words_carry_nothing_invisible_and_compare_stably(word):
    assert not any(ord(c) < 32 or 0xD800 <= ord(c) < 0xE000 for c in visible(word))
    assert "\u200b" not in visible("a\u200b" + word)
    assert comparable(comparable(word)) == comparable(word)
