"""The pipeline's options, and what it says about what it did."""

from __future__ import annotations

import gc
import pickle
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sottovoce.errors import PrivacyWarning, UnknownWordError, UsageError
from sottovoce.spaces.space import WordSpace
from sottovoce.text import FUNCTION_WORDS, PreparedText, TextPipeline
from sottovoce.text import pipeline as pipeline_module
from sottovoce.text.prepared import restore_case
from sottovoce.types import UNKNOWN

WORDS = [
    "the",
    "a",
    "who",
    "cat",
    "dog",
    "sat",
    "on",
    "mat",
    "well",
    "known",
    "medicare",
    "of",
    "don",
    "do",
    "not",
]


@pytest.fixture(scope="module")
def space() -> WordSpace:
    return WordSpace.from_arrays(WORDS, np.eye(len(WORDS)))


def pipeline(**options) -> TextPipeline:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return TextPipeline(**options)


def released(text: str, space: WordSpace, substitute: str = "W", **options) -> str:
    prepared = pipeline(**options).prepare(text, space)
    return prepared.render([substitute] * len(prepared))


def test_slots_carry_ids_and_offsets_and_unknown_words_wait_for_a_uniform_draw(space):
    prepared = TextPipeline().prepare("The Zyx sat; medicare's dog!", space)
    the, sat, medicare, dog = (space.id(word) for word in ("the", "sat", "medicare", "dog"))
    assert prepared.slots.tolist() == [the, UNKNOWN, sat, medicare, dog]
    assert prepared.ids.tolist() == [the, sat, medicare, dog]
    assert prepared.uniform.tolist() == [False, True, False, False, False]
    spans = [prepared.text[start:end] for start, end in prepared.spans]
    assert spans == ["The", "Zyx", "sat", "medicare's", "dog"]
    assert prepared.unknown == ("Zyx",)
    assert prepared.kept == ()
    assert len(prepared) == 5
    assert prepared.slots.dtype == prepared.ids.dtype == np.int64


def test_each_slot_gets_its_substitute_and_punctuation_stays(space):
    prepared = TextPipeline().prepare("  The cat,\n(well-known)  sat!\t", space)
    assert prepared.render(list("abcde")) == "  a b,\n(c-d)  e!\t"


def test_many_rows_render_as_each_row_does(space):
    prepared = TextPipeline(restore_case=True).prepare("The cat SAT - well", space)
    rows = [["one", "two", "three", "four"], ["x", "y", "z", "w"]]
    assert prepared.render_many(rows) == [prepared.render(row) for row in rows]
    assert prepared.render_many(rows)[0] == "One two THREE - four"
    assert prepared.render_many([]) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the zyx cat", "W W"),
        ("zyx cat", "W"),
        ("cat zyx", "W"),
        ("the zyx zyx cat", "W W"),
        ("the (zyx) cat", "W () W"),
        ("cat\nzyx dog", "W\nW"),
        ("cat zyx\ndog", "W\nW"),
        ("cat\nzyx\ndog", "W\n\nW"),
        ("cat\r\nzyx zyx\r\ndog", "W\r\n\r\nW"),
        ("well-zyx dog", "W W"),
        ("zyx-well dog", "W W"),
        ("cat😀dog", "W W"),
        ("zyx", ""),
        (" zyx ", " "),
    ],
)
def test_dropping_unknown_words_leaves_no_double_blanks_or_dangling_hyphens(space, text, expected):
    assert released(text, space, unknown="drop") == expected


def test_unknown_error_names_positions_and_never_the_words(space):
    with pytest.raises(UnknownWordError) as caught:
        TextPipeline(unknown="error").prepare("the secretive cat, hushhush", space)
    message = str(caught.value)
    assert "2 of 4 words" in message
    assert "4-13 (word 2)" in message
    assert "19-27 (word 4)" in message
    assert "secretive" not in message
    assert "hushhush" not in message
    assert "unknown='uniform'" in message


def test_unknown_error_names_at_most_ten_positions(space):
    with pytest.raises(UnknownWordError, match="and 5 more"):
        TextPipeline(unknown="error").prepare("zyx " * 15, space)


def test_unknown_error_accepts_a_text_of_known_words(space):
    assert released("the cat", space, unknown="error") == "W W"


def test_keeping_unknown_words_is_warned_of_and_reported(space):
    with pytest.warns(PrivacyWarning, match="in clear"):
        keeping = TextPipeline(unknown="keep")
    prepared = keeping.prepare("Zyx sat, Zyx\u200b 😀\ud800", space)
    assert prepared.render(["W"]) == "Zyx W, Zyx 😀"
    assert prepared.kept == ("Zyx", "😀")
    assert prepared.counts.kept_unknown == 3
    assert "3 unknown words kept in clear (unknown='keep')" in prepared.caveats()


def test_the_default_pipeline_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TextPipeline()


def test_listed_words_stay_in_clear_in_any_case_and_are_reported(space):
    prepared = pipeline(keep=frozenset({"Cat", "zyx"})).prepare("the CAT, Zyx and cats", space)
    assert prepared.render(["W"] * 3) == "W CAT, Zyx W W"
    assert prepared.kept == ("CAT", "Zyx")
    assert prepared.unknown == ("and", "cats")
    assert "2 words kept in clear (keep list)" in prepared.caveats()


def test_a_listed_word_is_neither_dropped_nor_refused(space):
    for unknown in ("drop", "error"):
        assert released("zyx cat", space, unknown=unknown, keep=frozenset({"zyx"})) == "zyx W"


def test_hidden_characters_do_not_leave_with_a_listed_word(space):
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "secret")
    assert released(f"cat{hidden} sat", space, keep=frozenset({"cat"})) == "cat W"


def test_protecting_content_leaves_function_words_in_clear_but_not_abbreviations(space):
    prepared = pipeline(protect="content").prepare("Who is the cat of WHO? Don't!", space)
    assert prepared.render(["W", "W"]) == "Who is the W of W? Don't!"
    assert prepared.counts.kept_unprotected == prepared.counts.kept == 5
    assert "5 words kept in clear (not protected)" in prepared.caveats()


def test_the_function_words_are_a_short_list_of_folded_words():
    assert 150 <= len(FUNCTION_WORDS) <= 300
    assert all(word == word.casefold() for word in FUNCTION_WORDS)
    assert {"the", "of", "not", "don't"} <= FUNCTION_WORDS
    assert not {"cat", "president", "cancer"} & FUNCTION_WORDS


def test_punctuation_can_be_dropped(space):
    assert released("The cat, (well-known) - sat!", space, punctuation="drop") == "W W W W W"


def test_words_that_touch_are_set_apart(space):
    assert released("cat😀😀dog don't a\0cat", space) == "W W W W W W W W"


@pytest.mark.parametrize(
    ("original", "expected"),
    [
        ("cat", "house"),
        ("Cat", "House"),
        ("CAT", "HOUSE"),
        ("I", "House"),
        ("medicare's", "house"),
        ("4th", "house"),
        ("iPhone", "hoUse"),
        ("日本", "hoUse"),
        ("42", "hoUse"),
    ],
)
def test_a_substitute_takes_the_case_pattern_of_the_original(original, expected):
    assert restore_case(original, "hoUse") == expected


def test_case_is_restored_on_request_only(space):
    assert released("The CAT", space, "word") == "word word"
    assert released("The CAT", space, "word", restore_case=True) == "Word WORD"


def test_caveats_say_what_is_released_beside_the_words(space):
    plain = TextPipeline().prepare("the cat", space).caveats()
    assert plain == ("punctuation, whitespace and the number of words are released as they are",)
    options = TextPipeline(unknown="drop", punctuation="drop", restore_case=True)
    assert options.prepare("the zyx", space).caveats() == (
        "whitespace and the number of words are released as they are",
        "the case pattern of each word is released as it is",
        "1 unknown word left out",
    )
    uniform = TextPipeline().prepare("zyx zyx", space).caveats()
    assert uniform[-1] == (
        "2 unknown words obfuscated by way of uniform draws: nothing but the place is released"
    )


def test_the_repr_shows_counts_and_no_text(space):
    prepared = pipeline(keep=frozenset({"hush"})).prepare("cat secret hush", space)
    assert repr(prepared) == "PreparedText(known=1, uniform=1, kept_listed=1)"


def test_a_wrong_number_of_substitutes_is_refused_without_the_text(space):
    prepared = TextPipeline().prepare("cat secret", space)
    with pytest.raises(UsageError, match="2 slots, but 1") as caught:
        prepared.render(["W"])
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unknown": "unifrom"}, "did you mean 'uniform'"),
        ({"unknown": "xyz"}, "choose one of encode, uniform, drop, error, keep"),
        ({"protect": "contents"}, "did you mean 'content'"),
        ({"punctuation": "Keep"}, "did you mean 'keep'"),
        ({"restore_case": "yes"}, "True or False"),
        ({"keep": "python"}, "collection of words"),
        ({"keep": {1}}, "collection of words"),
        ({"keep": {"New York"}}, "one by one"),
        ({"keep": {"(cat)"}}, "without punctuation"),
        ({"keep": {""}}, "one word"),
    ],
)
def test_wrong_options_are_refused_with_a_hint(options, message):
    with pytest.raises(UsageError, match=message):
        TextPipeline(**options)


def test_a_text_that_is_no_string_is_refused(space):
    with pytest.raises(UsageError, match="not bytes"):
        TextPipeline().prepare(b"secret", space)


def test_a_pipeline_pickles_small_even_after_use(space):
    used = TextPipeline(keep=frozenset({"cat"}))
    used.prepare("the cat sat " * 1000, space)
    stored = pickle.dumps(used)
    assert len(stored) < 500
    assert pickle.loads(stored) == used


def test_a_prepared_text_survives_pickling(space):
    prepared = TextPipeline(restore_case=True).prepare("The zyx, CAT", space)
    again: PreparedText = pickle.loads(pickle.dumps(prepared))
    assert again.render(list("abc")) == prepared.render(list("abc")) == "A b, C"


def test_what_one_pipeline_remembers_does_not_change_what_another_says(space):
    text = "the zyx, cat"
    for _ in range(2):
        assert released(text, space) == "W W, W"
        assert released(text, space, unknown="drop", punctuation="drop") == "W W"
        assert released(text, space, protect="content") == "the W, W"
    other = WordSpace.from_arrays(["zyx"], np.eye(1))
    assert TextPipeline().prepare(text, other).slots.tolist() == [UNKNOWN, 0, UNKNOWN]


def test_memory_of_earlier_texts_is_bounded_and_goes_with_the_space(monkeypatch):
    monkeypatch.setattr(pipeline_module, "_REMEMBERED_CHUNKS", 8)
    space = WordSpace.from_arrays(WORDS, np.eye(len(WORDS)))
    for start in range(0, 100, 5):
        text = " ".join(f"w{number}" for number in range(start, start + 5))
        assert len(TextPipeline().prepare(text, space)) == 5
    TextPipeline().prepare("y" * 1000, space)
    kept = pipeline_module._remembered[space][TextPipeline()]
    assert len(kept) <= 8 + 5
    assert "y" * 1000 not in kept
    dead = weakref.ref(space)
    del space, kept
    gc.collect()
    assert dead() is None


def test_threads_may_share_a_space(monkeypatch, space):
    monkeypatch.setattr(pipeline_module, "_REMEMBERED_CHUNKS", 4)
    texts = [f"the cat {number}, well-known zyx{number % 7}" for number in range(200)]
    expected = [TextPipeline().prepare(text, space).slots.tolist() for text in texts]
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda text: TextPipeline().prepare(text, space), texts * 3))
    assert [result.slots.tolist() for result in results] == expected * 3
