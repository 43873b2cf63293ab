"""The promise for any input: nothing but substitutes, punctuation and whitespace is released."""

from __future__ import annotations

import unicodedata
from collections import Counter

import numpy as np
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from sottovoce.spaces.space import WordSpace
from sottovoce.text import TextPipeline, normalize, tokenize
from sottovoce.text import tokens as tokens_module

SUBSTITUTE = "\U000f1234"  # private use: can be told from whatever else is released
WORDS = ["a", "b", "i", "s", "t", "1", "cat", "the", "not", "do", "e1", "un", "été"]
SPACE = WordSpace.from_arrays(WORDS, np.eye(len(WORDS)))

AWKWARD = (
    "cat", "The", "don't", "a's", "s'", "well-cat", "cat/dog", "x@a.b", "http://a/b?c", "www.a",
    "1,000.50", "a.B", "$1", "a=b", "😀", "👨‍👩‍👧", "🇮🇹", "🇮", "1️⃣", "™", "e\u0301", "\u0301",
    "\u0344", "\u200b", "\u200d", "\ufe0f", "\u00ad", "\u202e", "\U000e0041", "\0", "\x1b", "\x85",
    "\ud800", "\udfff", "\ue000", "\uffff", "\u0378", "שלום", "日本", "½", "ß", "İ", "ﬁ", "«", "_",
    "-", "'", "’", ".", ",", ":", "/", "&", "@", "…",
    " ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u2028",
)  # fmt: skip
pieces = st.one_of(st.sampled_from(AWKWARD), st.text(st.characters(), max_size=4))
texts = (
    st.lists(pieces, max_size=25)
    .map("".join)
    .filter(lambda text: SUBSTITUTE not in text and SUBSTITUTE not in normalize(text))
)
protecting = st.builds(
    TextPipeline,
    unknown=st.sampled_from(["uniform", "drop"]),
    punctuation=st.sampled_from(["keep", "drop"]),
    restore_case=st.booleans(),
)


def harmless(character: str) -> bool:
    return (
        unicodedata.category(character)[0] in "PZ"
        or regex.match(r"\p{P}", character) is not None  # newer than Python's own tables
        or character in "\t\n\r"
    )


def is_subsequence(part: str, whole: str) -> bool:
    characters = iter(whole)
    return all(character in characters for character in part)


@settings(max_examples=600)
@given(texts, protecting)
def test_only_substitutes_punctuation_and_whitespace_are_released(text, pipeline):
    prepared = pipeline.prepare(text, SPACE)
    out = prepared.render([SUBSTITUTE] * len(prepared))
    rest = out.replace(SUBSTITUTE, "")
    assert all(harmless(character) for character in rest)
    if pipeline.punctuation == "drop":
        assert rest.strip() == ""
    assert is_subsequence(rest.replace(" ", ""), normalize(text))
    out.encode("utf-8")


@given(texts, protecting)
def test_every_slot_takes_exactly_one_substitute_and_none_touch(text, pipeline):
    prepared = pipeline.prepare(text, SPACE)
    out = prepared.render([SUBSTITUTE] * len(prepared))
    assert out.count(SUBSTITUTE) == len(prepared) == len(prepared.spans)
    assert SUBSTITUTE * 2 not in out
    assert prepared.counts.known == len(prepared.ids)
    assert prepared.counts.uniform == int(prepared.uniform.sum())
    assert prepared.counts.kept == len(prepared.kept) == 0


@given(texts)
def test_every_token_is_covered_by_slots_or_counted_as_dropped(text):
    prepared = TextPipeline().prepare(text, SPACE)
    starts = prepared.spans[:, 0]
    for _, start, end in tokenize(text):
        assert ((starts >= start) & (starts < end)).any()
    dropping = TextPipeline(unknown="drop").prepare(text, SPACE)
    assert dropping.counts.dropped == prepared.counts.uniform
    assert dropping.ids.tolist() == prepared.ids.tolist()


@given(texts)
def test_slots_are_ordered_stretches_of_the_normalised_text(text):
    prepared = TextPipeline().prepare(text, SPACE)
    assert prepared.text == normalize(text)
    edges = prepared.spans.ravel().tolist()
    assert edges == sorted(edges)
    assert all(start < end for start, end in prepared.spans.tolist())
    assert not edges or edges[-1] <= len(prepared.text)


@given(st.text(st.characters(categories=["L", "M", "N", "P", "Z"], include_characters="\t\n\r")))
def test_putting_the_words_back_gives_the_text_back(text):
    lexicon = WordSpace.from_arrays(["house"], np.eye(1))
    prepared = TextPipeline().prepare(text, lexicon)
    words = [prepared.text[start:end] for start, end in prepared.spans.tolist()]
    assert prepared.render(words) == normalize(text)


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=9), st.data())
def test_known_words_are_found_in_whatever_case_and_get_their_case_back(words, data):
    cases = [data.draw(st.sampled_from([str.lower, str.upper, str.capitalize])) for _ in words]
    text = " ".join(case(word) for case, word in zip(cases, words, strict=True))
    prepared = TextPipeline(restore_case=True).prepare(text, SPACE)
    assert prepared.slots.tolist() == SPACE.ids(words).tolist()
    assert prepared.render(words) == text


@given(texts, st.integers(min_value=4, max_value=40))
def test_the_promise_holds_where_long_stretches_are_cut(text, size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens_module, "_BLOCK", size)
        prepared = TextPipeline().prepare(text, SPACE)
    out = prepared.render([SUBSTITUTE] * len(prepared))
    assert all(harmless(character) for character in out.replace(SUBSTITUTE, ""))
    assert out.count(SUBSTITUTE) == len(prepared)
    assert SUBSTITUTE * 2 not in out


@given(st.lists(st.sampled_from([w for w in AWKWARD if len(w) < 9]), max_size=40))
def test_blocks_do_not_change_the_result_where_there_is_whitespace(words):
    text = " ".join(words)
    whole = TextPipeline().prepare(text, SPACE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens_module, "_BLOCK", 16)
        blocked = TextPipeline().prepare(text, SPACE)
    assert blocked.literals == whole.literals
    assert blocked.slots.tolist() == whole.slots.tolist()
    assert blocked.spans.tolist() == whole.spans.tolist()
    assert blocked.counts == whole.counts


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        ("", 0),
        (" \n\t ", 0),
        ("\0" * 1_000_000, 0),
        ("." * 1_000_000, 0),
        ("the cat " * 1_250_000, 2_500_000),
        ("a/" * 100_000, 100_000),
        ("😀" * 20_000, 20_000),
        ("\ud800\n" * 100_000, 100_000),
    ],
    ids=["empty", "blank", "nul", "dots", "10 MB", "slashes", "emoji", "surrogates"],
)
def test_awkward_texts_have_a_defined_result(text, slots):
    prepared = TextPipeline().prepare(text, SPACE)
    assert len(prepared) == slots
    out = prepared.render([SUBSTITUTE] * slots)
    assert Counter(out)[SUBSTITUTE] == slots
    assert all(harmless(character) for character in set(out) - {SUBSTITUTE})


def test_a_word_of_ten_million_letters_is_unknown():
    prepared = TextPipeline().prepare("a" * 10_000_000, SPACE)
    assert prepared.uniform.all()
    assert 1 <= len(prepared) < 200
