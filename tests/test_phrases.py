"""Phrases that a space lists become one unit; where a text is cut depends on the list alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sottovoce import Obfuscator, WordSpace, mechanism
from sottovoce.privacy import Released
from sottovoce.privacy.attacks.places import line_up
from sottovoce.sanitizing import Sanitizer
from sottovoce.text import TextPipeline
from sottovoce.text.phrases import units

SINGLE = ["skin", "cancer", "care", "basal", "cell", "of", "the", "treatment", "order", "cost"]
PHRASES = ["skin cancer", "skin care", "basal cell skin cancer", "cancer of the skin"]
CUT = TextPipeline(phrases=True)


@pytest.fixture(scope="module")
def space():
    words = [*SINGLE, *PHRASES, *(f"word{number}" for number in range(40))]
    vectors = np.random.default_rng(1).standard_normal((len(words), 8))
    return WordSpace.from_arrays(words, vectors, name="phrases")


def cut(text, space, pipeline=CUT):
    prepared = pipeline.prepare(text, space)
    assert prepared.render(["_"] * len(prepared)) is not None
    return [prepared.text[start:end] for start, end in prepared.spans.tolist()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("skin cancer treatment", ["skin cancer", "treatment"]),
        ("Skin  Cancer, treatment", ["Skin  Cancer", "treatment"]),
        ("(skin cancer)", ["skin cancer"]),
        ("skin, cancer", ["skin", "cancer"]),
        ("skin\ncancer", ["skin", "cancer"]),
        ("basal cell skin cancer cost", ["basal cell skin cancer", "cost"]),
        ("basal cell skin care", ["basal", "cell", "skin care"]),
        ("the cancer of the skin cancer", ["the", "cancer of the skin", "cancer"]),
        ("skin", ["skin"]),
        ("", []),
    ],
)
def test_the_longest_listed_phrase_from_the_left(text, expected, space):
    assert cut(text, space) == expected


def test_without_the_option_words_stay_single(space):
    assert cut("skin cancer", space, TextPipeline()) == ["skin", "cancer"]


def test_a_phrase_gets_one_substitute_and_keeps_what_stands_around_it(space):
    prepared = CUT.prepare('"Skin cancer", cost?', space)
    assert prepared.slots.tolist() == space.ids(["skin cancer", "cost"]).tolist()
    assert prepared.render(["A", "B"]) == '"A", B?'
    dropped = TextPipeline(phrases=True, punctuation="drop").prepare('"Skin cancer", cost?', space)
    assert dropped.render(["A", "B"]) == "A B"


def test_kept_and_denied_words_are_no_part_of_a_phrase(space):
    keeping = TextPipeline(phrases=True, keep=frozenset({"cancer"}))
    prepared = keeping.prepare("skin cancer", space)
    assert prepared.kept == ("cancer",)
    chosen = mechanism("cmp", space=space, epsilon=50.0)
    sanitizer = Sanitizer(
        Obfuscator(chosen, pipeline=CUT, rng=1), ("text",), deny=frozenset({"cancer"})
    )
    (released,), counts = sanitizer.rows([["skin cancer"] * 200], 0)
    assert counts.denied == 200
    assert not any("cancer" in text for text in released)


def test_function_words_inside_a_phrase_are_part_of_it(space):
    pipeline = TextPipeline(phrases=True, protect="content", unprotected="drop")
    assert cut("the cost of cancer of the skin", space, pipeline) == ["cost", "cancer of the skin"]


@settings(deadline=None)
@given(st.lists(st.sampled_from([*SINGLE, *PHRASES, "unlisted"]), max_size=8))
def test_pipeline_and_attacker_cut_alike(space, words):
    text = " ".join(words)
    assert units(text, space) == cut(text, space)


def test_an_attacker_lines_up_released_phrases(space):
    chosen = mechanism("cmp", space=space, epsilon=5.0)
    texts = ["skin cancer treatment cost", "order of treatment"]
    results = list(Obfuscator(chosen, n=12, release="once", pipeline=CUT, rng=3).obfuscate(texts))
    releases = [Released(str(i), r.text, r.variants) for i, r in enumerate(results)]
    placed, uneven = line_up(releases, space, release="once", pipeline=CUT)
    assert uneven == 0
    assert [len(text.places) for text in placed] == [3, 3]
    assert all(text.aligned for text in placed)
