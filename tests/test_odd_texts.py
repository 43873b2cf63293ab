"""Every mechanism has a defined answer to odd texts, and it is never the text by accident."""

from __future__ import annotations

import pytest

from sottovoce import Obfuscator, TextPipeline
from sottovoce.collections import load_collection
from sottovoce.engines import BM25
from sottovoce.mechanisms import kind, mechanism, names
from sottovoce.mechanisms.base import SetMechanism, WordMechanism
from sottovoce.pools import load_pool

UNKNOWN = "xqzzy", "лечение", "治療", "🙂", "४२", "naïvexq"
ODD = {
    "empty": "",
    "blank": " \t\n ",
    "function words": "the of and to a",
    "unknown": "xqzzy naïvexq",
    "emoji": "🙂 👩‍🚀 xqzzy🙂",
    "other scripts": "лечение 治療 ४२",
    "numbers": "1,000.50 4111111111111111 2019-12-05",
    "punctuation": "?!… – (…)",
    "control": "skin\x00cancer\u200bxqzzy",
}


@pytest.fixture(scope="module")
def build(default_space, wordnet):
    resources = {
        "space": default_space,
        "wordnet": wordnet,
        "engine": BM25(load_collection("demo").documents),
        "pool": load_pool("demo", "light"),
    }

    def make(name):
        return mechanism(name, **{key: resources[key] for key in kind(name).resources()})

    return make


@pytest.mark.parametrize("name", names())
def test_odd_texts_are_protected(build, name):
    chosen = build(name)
    if isinstance(chosen, WordMechanism):
        chosen = mechanism(chosen.spec, space=chosen.space, epsilon=1.0)
    # A mechanism of sets decides how many variants there are.
    obfuscator = Obfuscator(chosen, n=1 if isinstance(chosen, SetMechanism) else 3)
    results = obfuscator.obfuscate(ODD.values())
    for (label, text), result in zip(ODD.items(), results, strict=True):
        assert len(result.variants) <= obfuscator.n, label
        for variant in result.variants:
            assert not any(word in variant for word in UNKNOWN), label
            if any(character.isalnum() for character in text) and label != "function words":
                assert variant.strip() != text.strip(), label
        if not isinstance(chosen, WordMechanism) and not result.variants:
            assert result.guarantee.caveats, label


@pytest.mark.slow
@pytest.mark.parametrize("name", ["santext", "tem", "custext", "wbb", "cmp"])
def test_a_long_text_keeps_its_words_in_place(build, default_space, name):
    words = default_space.words(range(0, 20_000, 20)) * 10
    text = "\n".join(" ".join(words[i : i + 20]) for i in range(0, 10_000, 20))
    pipeline = TextPipeline(protect="all")
    (result,) = Obfuscator(build(name), n=1, rng=1, pipeline=pipeline).obfuscate([text])
    (variant,) = result.variants
    assert variant.count("\n") == text.count("\n")
    assert variant != text


def test_what_wbb_leaves_in_clear_is_reported(build):
    (result,) = Obfuscator(build("wbb"), n=2).obfuscate(["what is the best treatment for cancer"])
    assert {"what", "is", "the", "for"} <= set(result.kept)
    assert not {"treatment", "cancer"} & set(result.kept)
    assert any("kept in clear (not protected)" in caveat for caveat in result.guarantee.caveats)
    for variant in result.variants:
        assert "cancer" not in variant.split()
        assert variant.split()[:3] == ["what", "is", "the"]
    everything = Obfuscator(build("wbb"), n=2, pipeline=TextPipeline(protect="all"))
    (result,) = everything.obfuscate(["what is the best treatment for cancer"])
    assert not result.kept


@pytest.mark.parametrize("text", ["was i abused", "should i leave", "the of and"])
def test_a_text_without_protected_words_is_protected_altogether(build, text):
    """WBB protects nouns and adjectives; a text without any would come out as it is."""
    (result,) = Obfuscator(build("wbb"), n=3).obfuscate([text])
    assert all(variant != text for variant in result.variants)
    assert result.spent is None
    assert any("all its words were protected" in caveat for caveat in result.guarantee.caveats)
    content = TextPipeline(protect="content")
    (result,) = Obfuscator(build("custext"), n=3, rng=1, pipeline=content).obfuscate(["the of and"])
    assert any(variant != "the of and" for variant in result.variants)
    assert result.spent == 6
