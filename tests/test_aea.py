"""AEA against an oracle that goes through all combinations, and on real queries."""

from __future__ import annotations

import json
import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng

from sottovoce.collections import read_corpus
from sottovoce.errors import PrivacyWarning, UnknownWordError, UsageError
from sottovoce.language.wordnet import WordNet
from sottovoce.mechanisms import mechanism
from sottovoce.mechanisms.aea import AEA, Choices, _Lexicon, combinations
from sottovoce.mechanisms.base import Rewriting
from sottovoce.text import TextPipeline
from sottovoce.text.words import stems

ALL_WORDS = TextPipeline(protect="all")


@pytest.fixture(scope="module")
def aea(wordnet) -> AEA:
    return AEA(wordnet=wordnet)


def rewrite(
    aea: AEA, text: str, n: int = 50, pipeline: TextPipeline = ALL_WORDS, seed: int = 0
) -> Rewriting:
    return aea.rewrite(text, n, pipeline, default_rng(seed))


def folded(text: str) -> str:
    return " ".join(text.casefold().split())


def neighbours(wordnet: WordNet, word: str, level: int) -> set[str]:
    """Synonyms, hypernyms and holonyms of a noun, straight from the definition."""
    found = set()
    for sense in wordnet.senses(word, "n"):
        found.update(sense.lemmas)
        for holonym in sense.holonyms():
            found.update(holonym.lemmas)
        above = [sense]
        for _ in range(level):
            above = [parent for each in above for parent in each.hypernyms()]
            found.update(lemma for each in above for lemma in each.lemmas)
    return found


def similarity(wordnet: WordNet, word: str, other: str) -> float:
    pairs = product(wordnet.senses(word, "n"), wordnet.senses(other, "n"))
    return max((wordnet.wu_palmer(a, b) for a, b in pairs), default=0.0)


@pytest.mark.parametrize("level", [1, 3])
@pytest.mark.parametrize("threshold", [0.8, 0.9, 1.0])
@pytest.mark.parametrize("nouns", [["pneumonia", "hamburger"], ["pneumonia", "flea", "weather"]])
def test_released_are_the_most_similar_of_all_combinations(wordnet, nouns, level, threshold):
    text = " ".join(nouns)
    choices = [
        [other for other in neighbours(wordnet, word, level) if word not in other.lower()]
        for word in nouns
    ]
    expected = []
    for combination in product(*choices):
        pairs = zip(nouns, combination, strict=True)
        mean = round(sum(similarity(wordnet, *pair) for pair in pairs) / len(nouns), 9)
        if mean <= threshold:
            expected.append((-mean, " ".join(combination)))
    everything = AEA(wordnet=wordnet, level=level, threshold=threshold, cap=10**5)
    released = rewrite(everything, text, 10_000).variants
    assert list(released) == [variant for _, variant in sorted(expected)]
    assert rewrite(everything, text, 7).variants == released[:7]


def test_what_reads_alike_is_released_once_and_the_original_not_at_all(aea):
    prepared = ALL_WORDS.prepare("Skin cancer", _Lexicon(aea))
    choices = [
        Choices(("skin", "hide", "hide my"), (0.5, 0.5, 0.5)),
        Choices(("my crab", "crab", "cancer"), (0.5, 0.5, 0.5)),
    ]
    released = aea._most_similar(prepared, choices, 99, default_rng(0))
    assert released.count("hide my crab") == 1
    assert "hide cancer" in released
    assert "skin cancer" not in released


def test_ties_go_by_alphabet_whatever_the_order_of_summation(aea):
    prepared = ALL_WORDS.prepare("skin cancer cost", _Lexicon(aea))
    choices = [Choices(("a", "b", "c"), (0.1, 0.2, 0.3))] * 3
    released = aea._most_similar(prepared, choices, 99, default_rng(0))
    tied = [text for text in released if sum(map("abc".index, text.split())) == 3]
    assert tied == sorted(tied)
    assert len(tied) == 7


def test_substitutes_are_synonyms_holonyms_and_hypernyms_up_to_the_level(wordnet):
    synonyms = {"Carassius auratus", "Carassius", "genus Carassius"}
    one_up = synonyms | {"cyprinid", "cyprinid fish"}
    for level, expected in ((0, synonyms), (1, one_up), (2, one_up | {"cypriniform fish"})):
        found = rewrite(AEA(wordnet=wordnet, level=level, threshold=1.0), "goldfish").variants
        assert set(found) == expected


def test_as_published_words_may_stay_and_any_combination_may_come(wordnet):
    published = AEA(wordnet=wordnet, level=1, senses="first", compat="published")
    with pytest.warns(PrivacyWarning):
        released = rewrite(published, "goldfish xyzzy", 999).variants
    alone = AEA(wordnet=wordnet, level=1, senses="first", threshold=1.0)
    assert set(released) == {f"{other} xyzzy" for other in rewrite(alone, "goldfish", 999).variants}
    with pytest.warns(PrivacyWarning):
        pairs = rewrite(published, "goldfish pneumonia", 9999).variants
    assert len(pairs) == len({*pairs})
    assert any(pair.startswith("goldfish ") for pair in pairs)
    assert any(pair.endswith(" pneumonia") for pair in pairs)
    assert "goldfish pneumonia" not in pairs
    assert "stand for itself" in published.guarantee.caveats[0]


def test_as_published_few_variants_are_drawn_among_all(wordnet):
    published = AEA(wordnet=wordnet, level=3, compat="published")
    with pytest.warns(PrivacyWarning):
        first, second = (rewrite(published, "cancer weather", 5, seed=n).variants for n in (0, 1))
    assert len(first) == len(second) == 5
    assert first != second


def test_first_sense_alone_on_request(wordnet):
    every, first = (
        set(rewrite(AEA(wordnet=wordnet, threshold=1.0, senses=which), "cancer", 999).variants)
        for which in ("all", "first")
    )
    assert first < every
    assert "malignant tumor" in first
    assert "constellation" in every - first


def test_the_part_of_speech_decides_about_the_senses(wordnet):
    anything = AEA(wordnet=wordnet, threshold=1.0, senses="first")
    pipeline = TextPipeline(protect="noun,verb")
    assert "they set" in rewrite(anything, "they plant", 999, pipeline).variants
    assert "the works" in rewrite(anything, "the plant", 999, pipeline).variants
    assert "the set" not in rewrite(anything, "the plant", 999, pipeline).variants


@pytest.mark.parametrize(
    ("word", "forms"),
    [
        ("mice", ["mouse", "mice"]),
        ("causes", ["cause", "causal"]),
        ("e-mail", ["email", "e-mail"]),
        ("skin", ["skin"]),
        ("gray", ["gray"]),
        ("rn", ["rn"]),
    ],
)
def test_no_form_of_a_word_stands_for_it(wordnet, word, forms):
    released = rewrite(AEA(wordnet=wordnet, threshold=1.0), word, 999).variants
    assert released
    for variant in map(str.casefold, released):
        assert not any(form in (variant if len(form) > 2 else variant.split()) for form in forms)


def test_a_lower_threshold_leaves_less(wordnet):
    sizes = []
    for threshold in (1.0, 0.95, 0.9, 0.8, 0.5):
        strict = AEA(wordnet=wordnet, threshold=threshold, cap=10**5)
        sizes.append(len(rewrite(strict, "pneumonia hamburger", 10_000).variants))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 0


def test_what_is_missing_is_said_without_naming_words(aea):
    result = rewrite(aea, "goldfish", 50)
    assert f"only {len(result.variants)} of 50 variants exist at threshold 0.9" in result.caveats
    result = rewrite(aea, "xqzzy goldfish wvvxq", 3)
    assert result.unknown == ("xqzzy", "wvvxq")
    assert "2 unknown words left out" in result.caveats
    assert any("no vocabulary to draw" in caveat for caveat in result.caveats)
    assert not any(word in " ".join(result.caveats) for word in ("xqzzy", "goldfish", "wvvxq"))


@pytest.mark.parametrize(
    "text",
    ["", " \n ", "the of and", "🍕🍕", "日本語 テスト", "123456 789", "xqzzy", "...", "\ud800"],
)
@pytest.mark.parametrize("protect", ["all", "NN,NNS,NNP,NNPS,JJ,JJS"])
def test_without_a_word_to_replace_nothing_is_released(aea, text, protect):
    result = rewrite(aea, text, 5, TextPipeline(protect=protect))
    assert result.variants == ()
    assert any("no variants" in caveat for caveat in result.caveats)


def test_numbers_that_are_words_are_replaced_and_others_left_out(aea):
    result = rewrite(aea, "3 123456")
    assert "integer" in result.variants
    assert result.unknown == ("123456",)


def test_kept_words_stay_where_they_are_and_are_reported(aea):
    result = rewrite(aea, "my hamburger, please", 5, TextPipeline(keep=frozenset({"please", "my"})))
    assert result.kept == ("my", "please")
    assert all(v.startswith("my ") and v.endswith(", please") for v in result.variants)
    assert "2 words kept in clear (keep list)" in result.caveats


def test_the_published_choice_protects_nouns_and_adjectives(aea):
    pipeline = TextPipeline(protect=aea.protects)
    result = rewrite(aea, "does the hamburger cause pneumonia", 20, pipeline)
    assert "does" in result.kept
    assert not {"hamburger", "pneumonia"} & set(result.kept)
    assert all(variant.startswith("does the ") for variant in result.variants)


def test_policies_for_unknown_words_are_obeyed(aea):
    with pytest.raises(UnknownWordError) as caught:
        rewrite(aea, "xqzzy hamburger", 5, TextPipeline(unknown="error"))
    assert "xqzzy" not in str(caught.value)
    with pytest.warns(PrivacyWarning):
        keeping = TextPipeline(unknown="keep")
    result = rewrite(aea, "xqzzy hamburger", 5, keeping)
    assert result.kept == ("xqzzy",)
    assert all(variant.startswith("xqzzy ") for variant in result.variants)


def test_a_seed_decides_which_combinations_are_drawn(wordnet):
    few = AEA(wordnet=wordnet, cap=40)
    text = "skin cancer treatment cost"
    first = rewrite(few, text, 20, seed=1).variants
    assert len(first) == 20
    assert rewrite(few, text, 20, seed=1).variants == first
    assert rewrite(few, text, 20, seed=2).variants != first


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(1, 60), st.integers(0, 9))
def test_combinations_come_once_and_are_all_or_as_many_as_the_cap(sizes, cap, seed):
    rows = np.concatenate(list(combinations(sizes, cap, default_rng(seed))))
    distinct = {tuple(row) for row in rows.tolist()}
    assert len(rows) == len(distinct) == min(cap, int(np.prod(sizes)))
    assert distinct <= set(product(*map(range, sizes)))


def test_drawn_combinations_are_uniform():
    drawn = [next(combinations([2, 3], 1, default_rng(seed))) for seed in range(1200)]
    counts = np.unique(np.concatenate(drawn), axis=0, return_counts=True)[1]
    assert len(counts) == 6
    assert abs(counts - 200).max() < 60


def test_astronomically_many_combinations_are_drawn_from():
    rows = np.concatenate(list(combinations([50] * 300, 2000, default_rng(0))))
    assert rows.shape == (2000, 300)
    assert len(np.unique(rows, axis=0)) == 2000
    assert (rows.min(), rows.max()) == (0, 49)
    assert np.abs(rows.mean(axis=0) - 24.5).max() < 1.7


words = st.sampled_from(
    ["skin", "cancer", "Mice", "e-mail", "running", "the", "gray", "xqzzy", "U.S.", "3", "it's"]
)
texts = st.lists(words | st.text(max_size=6), max_size=6).map(" ".join)


@given(text=texts, n=st.integers(1, 30), seed=st.integers(0, 3), level=st.integers(0, 4))
def test_the_original_never_comes_out_and_no_variant_comes_twice(wordnet, text, n, seed, level):
    loose = AEA(wordnet=wordnet, level=level, threshold=1.0, cap=200)
    result = rewrite(loose, text, n, seed=seed)
    variants = [folded(variant) for variant in result.variants]
    assert len(set(variants)) == len(variants) <= n
    assert folded(text) not in variants
    assert rewrite(loose, text, n, seed=seed) == result
    assert not any("xqzzy" in variant for variant in variants)


def test_forty_content_words_are_rewritten(aea, shared_data):
    pool = read_corpus(shared_data / "ir" / "msmarco-dl19-pool")
    found: dict[str, None] = {}
    while len(found) < 40:
        found.update(dict.fromkeys(w for w in next(pool).text.split() if w in aea.wordnet))
    text = " ".join(list(found)[:40])
    assert len(rewrite(aea, text, 20).variants) == 20


@pytest.mark.thorough
def test_ten_thousand_words_are_rewritten(aea, shared_data):
    passages = read_corpus(shared_data / "ir" / "msmarco-dl19-pool")
    text = " ".join(" ".join(next(passages).text for _ in range(400)).split()[:10_000])
    result = rewrite(aea, text, 3, TextPipeline(protect=aea.protects))
    assert len(set(result.variants)) == 3


def test_real_queries_overlap_with_their_variants_as_measured(aea, shared_data):
    file = shared_data / "topics" / "dl19" / "queries.jsonl"
    queries = [json.loads(line)["text"] for line in file.read_text().splitlines()]
    pipeline = TextPipeline(protect=aea.protects)
    overlaps, counts = [], []
    for query in queries:
        variants = rewrite(aea, query, 50, pipeline).variants
        own = set(query.casefold().split())
        overlaps += [len(own & set(v.split())) / len(own | set(v.split())) for v in variants]
        counts.append(len(variants))
    assert np.mean(overlaps) == pytest.approx(0.25, abs=0.03)
    assert counts.count(0) <= 7
    assert counts.count(50) >= 28


def test_nothing_is_promised_and_the_limits_are_stated(aea):
    assert aea.guarantee.notion == "none"
    assert aea.guarantee.loss(1.0) == np.inf
    assert any("dictionary" in caveat for caveat in aea.guarantee.caveats)


def test_specs_build_it_and_impossible_parameters_are_refused(wordnet):
    built = mechanism("aea:level=2,threshold=0.8,cap=100,senses=first", wordnet=wordnet)
    assert built == AEA(wordnet=wordnet, level=2, threshold=0.8, cap=100, senses="first")
    assert built.spec == "aea:level=2,threshold=0.8,cap=100,senses=first"
    for wrong in ({"level": -1}, {"level": 21}, {"threshold": 1.1}, {"cap": 0}):
        with pytest.raises(UsageError, match=next(iter(wrong))):
            AEA(wordnet=wordnet, **wrong)


def test_a_pickle_is_small_and_rewrites_alike(aea):
    data = pickle.dumps(aea)
    assert len(data) < 2000
    copy = pickle.loads(data)
    assert copy == aea
    assert rewrite(copy, "skin cancer", 20) == rewrite(aea, "skin cancer", 20)


@pytest.mark.parametrize("text", ["car automobile dealer", "doctor physician salary"])
def test_a_word_does_not_come_back_at_another_place(aea, text):
    own = set(stems(text.split()))
    for variant in rewrite(aea, text, 200).variants:
        assert not own & set(stems(variant.lower().split()))
