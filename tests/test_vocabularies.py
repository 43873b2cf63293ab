"""Output vocabularies: what each choice admits, and that none is ever guessed."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.errors import SottovoceError, UsageError
from sottovoce.spaces.space import WordSpace
from sottovoce.spaces.vocabularies import admitted, choose_output, is_clean, read_word_list

WORDS = [
    "the",
    "The",
    "house",
    "e-mail",
    "2nd",
    "a",
    "i",
    "x",
    "...",
    "über",
    "haus",
    "हिन्दी",
    "zqxj",
]


@pytest.fixture
def space():
    return WordSpace.from_arrays(WORDS, np.eye(len(WORDS)))


def chosen(space, choice):
    return space.words(choose_output(space, choice).ids)


def test_all_is_every_word(space):
    assert chosen(space, "all") == WORDS
    assert choose_output(space, "all").name == "all"


def test_clean_is_lower_case_words_of_letters(space):
    assert chosen(space, "clean") == ["the", "house", "a", "i", "über", "haus", "हिन्दी", "zqxj"]


def test_dictionary_is_the_clean_english_words(space):
    assert chosen(space, "dictionary") == chosen(space, "language:en") == ["the", "house", "a", "i"]


def test_a_language_has_its_own_words(space):
    german = chosen(space, "language:de")
    assert {"über", "haus"} <= set(german)
    assert "house" not in german


@given(st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=20, unique=True))
def test_clean_words_never_hold_digits_capitals_punctuation_or_blanks(words):
    words = [word for word in words if word.encode("utf-8", "replace").decode() == word]
    for word in filter(is_clean, words):
        assert word == word.lower()
        assert not any(sign.isdigit() or sign.isspace() for sign in word)
        assert not any(sign in "!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~" for sign in word)


def test_a_list_of_ones_own_is_taken_as_it_is_and_what_is_missing_is_counted(space, tmp_path):
    path = tmp_path / "list.txt"
    path.write_text("house\n\n  The \nunknown\nhouse\nalso unknown\n", encoding="utf-8-sig")
    assert chosen(space, f"file:{path}") == ["The", "house"]
    assert read_word_list(space, str(path)).missing == 2


def test_a_list_that_shares_no_word_with_the_space_is_refused(space, tmp_path):
    (tmp_path / "list.txt").write_text("nothing\nknown\n")
    with pytest.raises(UsageError, match="shares no word"):
        choose_output(space, f"file:{tmp_path / 'list.txt'}")
    assert len(admitted(space, f"file:{tmp_path / 'list.txt'}")) == 0


def test_a_list_that_cannot_be_read_is_refused(space, tmp_path):
    with pytest.raises(UsageError, match="cannot read the word list"):
        choose_output(space, f"file:{tmp_path / 'none.txt'}")
    (tmp_path / "latin.txt").write_bytes("über".encode("latin-1"))
    with pytest.raises(UsageError, match="not UTF-8"):
        choose_output(space, f"file:{tmp_path / 'latin.txt'}")


@pytest.mark.parametrize("choice", ["", "everything", "all:x", "file:", "language:", "clean:en"])
def test_an_unknown_choice_lists_the_known_ones(space, choice):
    with pytest.raises(UsageError, match="use all, clean, dictionary, language:CODE, file:PATH"):
        choose_output(space, choice)


@pytest.mark.parametrize("code", ["xx", "../en", "EN "])
def test_an_unknown_language_lists_the_known_ones(space, code):
    with pytest.raises(UsageError, match=r"use one of ar, de, en"):
        choose_output(space, f"language:{code}")


@pytest.mark.parametrize("choice", ["dictionary", "language:de"])
def test_without_the_extra_the_choice_fails_and_names_it(space, monkeypatch, choice):
    monkeypatch.setitem(sys.modules, "spellchecker", None)
    with pytest.raises(SottovoceError, match=r"pip install 'sottovoce\[languages\]'"):
        choose_output(space, choice)
    assert len(choose_output(space, "clean"))


def test_a_choice_depends_on_the_space_alone(space):
    first, second = choose_output(space, "clean"), choose_output(space, "clean")
    np.testing.assert_array_equal(first.ids, second.ids)
    assert space.with_output(first).sha256 == space.sha256
