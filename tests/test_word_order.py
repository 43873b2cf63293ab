"""Words in random order, without punctuation, and padded: what still shows of a query's shape."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sottovoce import Obfuscator, TextPipeline, mechanism
from sottovoce.collections import load_collection
from sottovoce.engines import BM25, TfIdf
from sottovoce.engines.base import uses_order
from sottovoce.engines.opensearch import OpenSearch
from sottovoce.errors import UsageError
from sottovoce.guarantees import WORD_BY_WORD
from sottovoce.pools import Pool
from sottovoce.sanitizing import Sanitizer
from sottovoce.search import laid_out_for
from sottovoce.testing import toy_space

SHUFFLED = TextPipeline(order="shuffled", punctuation="drop")
KEY = bytes(range(32))
LOUD = 1e6
"""An epsilon at which every word comes back."""


def run(space, texts, pipeline=SHUFFLED, epsilon=LOUD, **options):
    chosen = mechanism("cmp", space=space, epsilon=epsilon)
    return list(Obfuscator(chosen, pipeline=pipeline, **options).obfuscate(texts))


known_words = st.lists(st.integers(0, 1999).map("word{}".format), min_size=1, max_size=7)


@given(known_words, st.sampled_from([{"rng": 3}, {"memory_key": KEY}, {}]))
def test_each_variant_has_the_same_words_in_some_order(small_space, words, how):
    (result,) = run(small_space, [", ".join(words) + "?!"], n=5, **how)
    assert all(Counter(variant.split(" ")) == Counter(words) for variant in result.variants)
    assert result.pipeline.order == result.to_dict()["texts"]["order"] == "shuffled"


@pytest.mark.parametrize("how", [{"rng": 3}, {"memory_key": KEY}, {}])
def test_orders_are_uniform_and_independent(small_space, how):
    texts = [f"word1 word2 word{n}" for n in range(3, 303)]
    results = run(small_space, texts, n=2, **how)
    firsts = [
        tuple(variant.split().index(word) for word in ("word1", "word2"))
        for result in results
        for variant in result.variants
    ]
    seen = Counter(firsts)
    assert len(seen) == 6
    assert stats.chisquare(list(seen.values())).pvalue > 1e-4
    same = sum(first == second for first, second in zip(firsts[::2], firsts[1::2], strict=True))
    assert stats.binomtest(same, 300, 1 / 6).pvalue > 1e-4


def test_neither_batch_nor_workers_change_an_order(small_space):
    texts = ["word1 word2 zzz", "word5", "", "word3 word4 word5 word6"] * 3
    pipeline = replace(SHUFFLED, pad_to=5)
    runs = [
        [result.variants for result in run(small_space, texts, pipeline, n=3, rng=4, **options)]
        for options in ({"batch_size": 1}, {"batch_size": 7}, {"batch_size": 2, "workers": 2})
    ]
    assert runs[0] == runs[1] == runs[2]


def test_shuffling_changes_no_draw(small_space):
    """With the same seed the words are those of the texts in order."""
    texts = ["word1 word2 zzz", "word9 word8"]
    shuffled = run(small_space, texts, n=4, rng=6, epsilon=3.0)
    in_order = run(small_space, texts, TextPipeline(), n=4, rng=6, epsilon=3.0)
    for one, other in zip(shuffled, in_order, strict=True):
        assert [sorted(v.split()) for v in one.variants] == [
            sorted(v.split()) for v in other.variants
        ]


def test_words_in_clear_are_shuffled_among_the_others(small_space):
    pipeline = replace(SHUFFLED, keep=frozenset({"python", "c++"}))
    (result,) = run(small_space, ["word1 python word2 C++"], pipeline, n=40)
    assert all(
        Counter(variant.split()) == Counter(["word1", "python", "word2", "C++"])
        for variant in result.variants
    )
    assert {variant.split().index("python") for variant in result.variants} == {0, 1, 2, 3}


@given(
    words=st.lists(st.sampled_from(["word1", "word2", "zzz"]), max_size=8),
    pad_to=st.integers(0, 6),
    order=st.sampled_from(["kept", "shuffled"]),
    how=st.sampled_from([{"rng": 1}, {"memory_key": KEY}]),
)
def test_shorter_texts_are_padded_and_longer_ones_stay(small_space, words, pad_to, order, how):
    pipeline = TextPipeline(order=order, punctuation="drop", pad_to=pad_to)
    (result,) = run(small_space, [" ".join(words)], pipeline, n=3, **how)
    size = max(pad_to, len(words))
    assert [len(variant.split()) for variant in result.variants] == [size] * 3
    assert result.counts.padding == max(0, pad_to - len(words))
    assert result.counts.protected == len(words)
    assert (result.spent == 0) == (not words)
    for word in set(words) - {"zzz"}:
        assert all(variant.split().count(word) >= words.count(word) for variant in result.variants)


def test_padding_is_what_an_unknown_word_gives(small_space):
    """The same places with the same seed, whether padding or a word that the space lacks."""
    padded = run(small_space, ["word1"], TextPipeline(pad_to=3), n=4, rng=2, epsilon=3.0)
    unknown = run(small_space, ["word1 zzz zzz"], TextPipeline(), n=4, rng=2, epsilon=3.0)
    assert padded[0].variants == unknown[0].variants


def test_remembered_padding_belongs_to_the_text_and_is_no_word(small_space):
    pipeline = replace(SHUFFLED, pad_to=6)
    texts = ["word1 word2", "Word1, word2?", "word1 word3", "word1 word2 word3"]
    same, again, other, longer = run(small_space, texts, pipeline, n=3, memory_key=KEY)
    assert same.variants == again.variants

    def padding(result):
        return {word for variant in result.variants for word in variant.split()} - {
            *("word1", "word2", "word3")
        }

    assert len(padding(same)) == 4
    assert padding(same) != padding(other) != padding(longer)
    assert len(same.word_hashes) == 2
    assert set(longer.word_hashes) == {*same.word_hashes, *other.word_hashes}


def test_texts_without_words_get_padding_alone(small_space):
    (result,) = run(small_space, ["?!"], replace(SHUFFLED, pad_to=4), n=2)
    assert [len(variant.split()) for variant in result.variants] == [4, 4]
    assert result.spent == 0


def test_the_guarantee_says_what_is_released_of_the_layout(small_space):
    (plain,) = run(small_space, ["word1 word2"], TextPipeline())
    (shuffled,) = run(small_space, ["word1 word2"], replace(SHUFFLED, pad_to=3))
    assert WORD_BY_WORD in plain.guarantee.caveats
    said = " ".join(shuffled.guarantee.caveats)
    assert WORD_BY_WORD not in said
    assert "their order is random" in said
    assert "1 place is padding" in said


def test_case_goes_with_the_word(small_space):
    (result,) = run(small_space, ["WORD1 word2"], replace(SHUFFLED, restore_case=True), n=20)
    assert {frozenset(variant.split()) for variant in result.variants} == {
        frozenset({"WORD1", "word2"})
    }


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"order": "shuffled"}, "punctuation='drop'"),
        ({"order": "suffled", "punctuation": "drop"}, "shuffled"),
        ({"pad_to": -1}, "from 0 to 1000"),
        ({"pad_to": 2.5}, "from 0 to 1000"),
        ({"pad_to": 10_000}, "from 0 to 1000"),
    ],
)
def test_impossible_layouts_are_refused(options, says):
    with pytest.raises(UsageError, match=says):
        TextPipeline(**options)


def test_whole_texts_and_data_sets_keep_their_order():
    pool = Pool(("skin care", "lung disease"), "light")
    for pipeline in (SHUFFLED, TextPipeline(pad_to=2)):
        with pytest.raises(UsageError, match="neither shuffled nor padded"):
            Obfuscator(mechanism("comet-cmp", pool=pool), pipeline=pipeline)
        chosen = Obfuscator(mechanism("cmp", space=toy_space()), pipeline=pipeline)
        with pytest.raises(UsageError, match="neither shuffled nor padded"):
            Sanitizer(chosen, ("text",))


# Engines


class Unheard:
    """An engine that does not say whether it looks at the order."""

    name, remote, pause, most_queries = "unheard of", True, 0.0, None


@pytest.fixture(scope="module")
def demo():
    return load_collection("demo")


@pytest.mark.parametrize("kind", [BM25, TfIdf])
def test_the_order_of_words_changes_nothing_for_lexical_engines(demo, kind):
    engine, rng = kind(demo.documents), np.random.default_rng(1)
    assert not uses_order(engine)
    for query in list(demo.queries.values())[:20]:
        words = query.split()
        mixed = " ".join(rng.permutation(words))
        (one,), (other,) = engine.search([mixed], 50), engine.search([" ".join(words)], 50)
        assert [hit.doc_id for hit in one] == [hit.doc_id for hit in other]
        assert [hit.score for hit in one] == pytest.approx([hit.score for hit in other], rel=1e-12)


def test_engines_that_may_look_at_the_order_get_it_unless_asked(small_space, demo):
    chosen, plain = mechanism("cmp", space=small_space), TextPipeline()
    bm25 = BM25(demo.documents)
    index = OpenSearch("http://127.0.0.1:9", "articles")
    assert not uses_order(index)
    assert uses_order(Unheard())
    for engine, usual in ((bm25, "shuffled"), (index, "shuffled"), (Unheard(), "kept")):
        assert laid_out_for(engine, plain, chosen).order == usual
        assert laid_out_for(engine, plain, chosen, shuffle=True).order == "shuffled"
        assert laid_out_for(engine, plain, chosen, shuffle=False, pad_to=3) == replace(
            plain, pad_to=3
        )
    whole = mechanism("comet-cmp", pool=Pool(("skin care", "lung disease"), "light"))
    assert laid_out_for(bm25, plain, whole) == plain
