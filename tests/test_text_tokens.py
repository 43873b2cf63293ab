"""Where tokens begin and end, for any string whatever."""

from __future__ import annotations

import re
import sys
import unicodedata

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.text import tokens as tokens_module
from sottovoce.text.tokens import WHITESPACE, blocks, normalize, spans, tokenize

anything = st.text(st.characters())  # surrogates, controls and unassigned characters included


def surfaces(text: str) -> list[str]:
    return [token.surface for token in tokenize(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, world!", ["Hello", "world"]),
        ("don't rock'n'roll", ["don't", "rock'n'roll"]),
        ("it’s the dogs’ dinner", ["it’s", "the", "dogs’", "dinner"]),
        ("'quoted' (bracketed)", ["quoted", "bracketed"]),
        ("well-known and/or R&D user_name", ["well-known", "and/or", "R&D", "user_name"]),
        ("dash—separated, but 1990–1995", ["dash", "separated", "but", "1990–1995"]),
        ("the U.S. and Ph.D. ...", ["the", "U.S", "and", "Ph.D"]),
        ("the end.Start again", ["the", "end", "Start", "again"]),
        ("1,000.50 at 12:30 on 2019-12-05", ["1,000.50", "at", "12:30", "on", "2019-12-05"]),
        ("one,two 3,four", ["one", "two", "3", "four"]),
        ("mail John.Smith+x@mail.example.com.", ["mail", "John.Smith+x@mail.example.com"]),
        ("(https://x.org/a?b=1&c=(2)), ok", ["https://x.org/a?b=1&c=(2", "ok"]),
        ("see www.x.org/ or x.org/a?b=1!", ["see", "www.x.org/", "or", "x.org/a?b=1"]),
        ("#tag @user 100% $5 c++ iPhone™", ["tag", "user", "100", "$5", "c++", "iPhone™"]),
        ("tracheids are part of _____.", ["tracheids", "are", "part", "of"]),
        ("😀😀 hi👍🏽there", ["😀", "😀", "hi", "👍🏽", "there"]),
        ("👨‍👩‍👧 🏳️‍🌈 🇮🇹🇫🇷 1️⃣", ["👨‍👩‍👧", "🏳️‍🌈", "🇮🇹", "🇫🇷", "1️⃣"]),
        ("שלום, עולם! צה״ל", ["שלום", "עולם", "צה״ל"]),
        ("می‌خواهم soft\u00adhyphen", ["می‌خواهم", "soft\u00adhyphen"]),
        ("\u200bword\u200b\u202e", ["word\u200b\u202e"]),
        ("日本語。中文", ["日本語", "中文"]),
        ("e\u0301te\u0301", ["été"]),
        ("a\0b\x1bc\x85d", ["a", "b", "c", "d"]),
        ("\ud800 \udfff", ["\ud800", "\udfff"]),
        ("", []),
        (" \t\r\n\u3000", []),
        ("...!?", []),
    ],
)
def test_text_is_cut_into_the_expected_tokens(text, expected):
    assert surfaces(text) == expected


@given(anything)
def test_every_character_that_could_tell_something_is_in_a_token(text):
    normal = normalize(text)
    position = 0
    between = []
    for surface, start, end in tokenize(text):
        assert start >= position
        assert end > start
        assert normal[start:end] == surface
        between.append(normal[position:start])
        position = end
    between.append(normal[position:])
    assert regex.fullmatch(r"[\p{P}\p{Z}\p{Cc}\p{Cf}]*", "".join(between))


@given(anything)
def test_no_token_holds_whitespace_or_controls(text):
    assert not regex.search(r"[\p{Z}\p{Cc}]", "".join(surfaces(text)))


@given(anything)
def test_normalising_twice_changes_nothing_and_gives_normal_form_c(text):
    once = normalize(text)
    assert normalize(once) == once
    assert unicodedata.is_normalized("NFC", once)


@given(st.text(st.sampled_from("\u0301\u0327\u0344\u0323"), min_size=25, max_size=100))
def test_long_runs_of_marks_are_broken_once_and_for_all(marks):
    once = normalize("a" + marks)
    assert normalize(once) == once
    assert unicodedata.is_normalized("NFC", once)
    assert not regex.search(r"\P{ccc=0}{31}", once)


def test_a_huge_run_of_marks_is_normalised_in_linear_time():
    text = "a" + "\u0301\u0327" * 300_000  # minutes, were it quadratic
    assert len(normalize(text)) > 600_000


@given(anything, st.integers(min_value=1, max_value=9))
def test_blocks_hold_all_of_the_text_and_chunks_no_whitespace(text, size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens_module, "_BLOCK", size)
        pieces = [pair for block in blocks(text) for pair in zip(*block, strict=True)]
    assert "".join(chunk + blank for chunk, blank in pieces) == text
    assert not any(re.search(f"[{WHITESPACE}]", chunk) for chunk, _ in pieces)
    assert all(re.fullmatch(f"[{WHITESPACE}]*", blank) for _, blank in pieces)


def test_whitespace_is_tab_line_break_and_category_z():
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    assert re.findall(f"[{WHITESPACE}]", everything) == regex.findall(r"[\t\n\r\p{Z}]", everything)


def test_the_short_cut_for_plain_words_agrees_with_the_pattern():
    for character in map(chr, range(sys.maxunicode + 1)):
        if character.isalnum():
            pattern = [match.span() for match in tokens_module._TOKEN.finditer(character)]
            assert pattern == list(spans(character))


def test_a_token_does_not_show_its_text():
    (token,) = tokenize("secret")
    assert repr(token) == "Token(0, 6)"
