"""Words that are remembered: the same word, the same draw, whatever stands around it."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sottovoce import Obfuscator, TextPipeline, mechanism
from sottovoce.errors import UsageError
from sottovoce.mechanisms import WordMechanism, kind, names
from sottovoce.obfuscation.memory import KeyedWords, Memory
from sottovoce.pools import Pool
from sottovoce.spaces.space import OutputVocabulary
from sottovoce.testing import toy_space

KEY = bytes(range(32))
BY_WORD = [name for name in names() if issubclass(kind(name), WordMechanism)]
WORDS = ["word1", "word22", "word303", "zzz", "Qqq"]


def cmp(space, epsilon=3.0):
    return mechanism("cmp", space=space, epsilon=epsilon)


def one(chosen, text, key=KEY, **options):
    (result,) = Obfuscator(chosen, memory_key=key, **options).obfuscate([text])
    return result


def places(result):
    """The words shown at each place, whatever their order."""
    return [Counter(words) for words in zip(*map(str.split, result.variants), strict=True)]


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=6),
    st.sampled_from(["once", "independent"]),
)
def test_a_word_shows_the_same_words_in_any_text(small_space, words, release):
    options = {"n": 5, "release": release}
    alone = {word: places(one(cmp(small_space), word, **options))[0] for word in WORDS}
    shown = places(one(cmp(small_space), " ".join(words), **options))
    assert shown == [alone[word] for word in words]


@settings(max_examples=30)
@given(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=5),
    st.sampled_from([str.upper, str.title, "  {} ?".format, "({})!".format, "{}'s".format]),
)
def test_the_same_words_give_the_same_variants_however_they_are_written(small_space, words, write):
    pipeline = TextPipeline(punctuation="drop")
    chosen, text = cmp(small_space), " ".join(words)
    if write("") == "'s" and words[-1] in ("zzz", "Qqq"):
        return  # An unknown word with 's is another unknown word.
    plain, written = (one(chosen, t, n=4, pipeline=pipeline) for t in (text, write(text)))
    assert [v.split() for v in written.variants] == [v.split() for v in plain.variants]
    assert written.word_hashes == plain.word_hashes


@pytest.mark.parametrize("name", BY_WORD)
def test_every_mechanism_repeats_its_draws(name, small_space):
    chosen = mechanism(name, space=small_space, epsilon=2.0)
    pipeline = TextPipeline()
    text = "word5 zzz word6 word5"
    first, again = (one(chosen, text, n=3, pipeline=pipeline) for _ in range(2))
    assert first.variants == again.variants
    assert not first.seeded
    assert places(first)[0] == places(first)[3]
    assert one(chosen, text, key=bytes(32), n=3, pipeline=pipeline).variants != first.variants


def test_neither_batch_nor_workers_nor_order_matter(small_space):
    texts = ["word1 word2 zzz", "word2", "zzz word1", ""] * 4
    obfuscator = Obfuscator(cmp(small_space), n=4, release="once", memory_key=KEY)
    whole = [result.variants for result in obfuscator.obfuscate(texts)]
    for other in ({"batch_size": 3}, {"batch_size": 2, "workers": 2}):
        changed = replace(obfuscator, **other)
        assert [result.variants for result in changed.obfuscate(texts)] == whole
    backwards = [result.variants for result in obfuscator.obfuscate(texts[::-1])]
    assert backwards[::-1] == whole


def test_each_setting_has_draws_and_hashes_of_its_own(small_space):
    """One noisy point must not move a word by two laws."""
    fewer = small_space.with_output(OutputVocabulary("fewer", np.arange(1000)))
    base = Obfuscator(cmp(small_space), n=3, release="once", memory_key=KEY)
    settings_tried = [
        base,
        replace(base, mechanism=cmp(small_space, 3.5)),
        replace(base, mechanism=mechanism("vickrey-cmp", space=small_space, epsilon=3.0)),
        replace(base, mechanism=cmp(fewer)),
        replace(base, n=4),
        replace(base, release="independent"),
        replace(base, memory_key=bytes(32)),
    ]
    hashes = [next(o.obfuscate(["word1"])).word_hashes for o in settings_tried]
    assert len(set(hashes)) == len(settings_tried)
    # What decides which words are protected does not decide how one is drawn.
    kept = replace(base, pipeline=TextPipeline(keep=frozenset({"word9"}), punctuation="drop"))
    assert next(kept.obfuscate(["word1, word9"])).word_hashes == hashes[0]


@pytest.mark.parametrize("spec", ["cmp:epsilon=2", "santext:epsilon=2", "tem:epsilon=2"])
def test_over_all_keys_words_follow_the_law_of_the_mechanism(spec):
    space = toy_space()
    chosen = mechanism(spec, space=space)
    keys = [number.to_bytes(32, "little") for number in range(1500)]
    drawn = [KeyedWords(key, chosen, n=2).known(np.array([1]))[0] for key in keys]
    counts = np.bincount(np.ravel(drawn), minlength=space.size)
    expected = np.bincount(
        chosen.sample(np.array([1]), 100_000, np.random.default_rng(1))[:, 0],
        minlength=space.size,
    )
    table = np.array([counts, expected])[:, expected > 20]
    assert stats.chi2_contingency(table).pvalue > 1e-4


def test_the_order_of_the_variants_follows_no_word(small_space):
    """Over texts, each of a word's substitutes stands in each variant equally often."""
    chosen = cmp(small_space, 50.0)
    results = [one(chosen, f"word7 word{n}", n=4, release="once") for n in range(20, 420)]
    first = sorted(places(results[0])[0])
    shown = [first.index(result.variants[0].split()[0]) for result in results]
    assert stats.chisquare(np.bincount(shown, minlength=4)).pvalue > 1e-4


def test_hashes_hold_each_word_once_and_follow_from_the_key_alone(small_space):
    result = one(cmp(small_space), "word1 word2 Word1 zzz ZZZ")
    assert len(result.word_hashes) == 3
    assert all(len(bytes.fromhex(word)) == 32 for word in result.word_hashes)
    (fresh,) = Obfuscator(cmp(small_space)).obfuscate(["word1"])
    assert fresh.word_hashes == ()
    assert "word_hashes" not in result.to_dict()


def test_the_guarantee_says_what_memory_gives_away(small_space):
    result = one(cmp(small_space), "word1 word2", n=3, release="once")
    caveats = " ".join(result.guarantee.caveats)
    assert "hold equal words shows" in caveats
    assert "whoever has the key" in caveats
    assert "equal words show" in result.guarantee.sentence
    (fresh,) = Obfuscator(cmp(small_space), n=3, release="once").obfuscate(["word1 word2"])
    assert "equal words" not in " ".join((*fresh.guarantee.caveats, fresh.guarantee.sentence))


def test_the_key_is_in_no_repr_and_no_seed_goes_with_it(small_space):
    obfuscator = Obfuscator(cmp(small_space), memory_key=KEY)
    assert str(KEY) not in repr(obfuscator)
    assert "memory_key" not in repr(obfuscator)
    assert pickle.loads(pickle.dumps(obfuscator)).memory_key == KEY
    with pytest.raises(UsageError, match="not remembered"):
        replace(obfuscator, rng=1)


def test_texts_that_are_replaced_as_a_whole_are_remembered_as_texts():
    pool = Pool(("skin care", "lung disease", "cheap flights", "world cup", "tax law"), "light")
    chosen = mechanism("comet-cmp", pool=pool, epsilon=0.5)
    first, again, other = (
        one(chosen, text, n=4) for text in ("Skin  cancer", "skin CANCER", "skin cancers")
    )
    assert first.variants == again.variants
    assert first.word_hashes == again.word_hashes != other.word_hashes
    assert (first.text, again.text) == ("Skin  cancer", "skin CANCER")
    assert "the same text" in " ".join(first.guarantee.caveats)
    drawn = {one(chosen, "skin cancer", key=bytes([n] * 32), n=4).variants for n in range(9)}
    assert len(drawn) > 3


def test_another_version_of_numpy_counts_as_never_drawn(small_space, monkeypatch):
    """It may draw other numbers from the same bits."""
    chosen = cmp(small_space)
    before = Memory(KEY, chosen, 3, "once").hashes([("known", "word1")])
    monkeypatch.setattr(np, "__version__", "9.9.1")
    after = Memory(KEY, chosen, 3, "once").hashes([("known", "word1")])
    monkeypatch.setattr(np, "__version__", "9.9.2")
    assert Memory(KEY, chosen, 3, "once").hashes([("known", "word1")]) == after != before
