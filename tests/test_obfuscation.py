"""Texts in, variants out: in order, in batches, and nothing leaves when something fails."""

from __future__ import annotations

import json
import pickle
import traceback
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sottovoce import Obfuscator, TextPipeline, WordSpace, mechanism
from sottovoce.errors import PrivacyWarning, SottovoceError, UnknownWordError, UsageError
from sottovoce.guarantees import Guarantee
from sottovoce.mechanisms import WordMechanism, kind, names
from sottovoce.mechanisms.base import Rewriting, TextMechanism
from sottovoce.mechanisms.cmp import CMP
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.obfuscation.memory import Memory
from sottovoce.randomness import UNIT, Draws
from sottovoce.spaces import SpaceWriter
from sottovoce.testing import SECRET


def run(chosen, texts, **options):
    return list(Obfuscator(chosen, **options).obfuscate(texts))


def test_a_result_says_everything(toy):
    (result,) = run(mechanism("cmp", space=toy, epsilon=2.0), ["A b, zzz!"], n=3, rng=1)
    assert len(result.variants) == 3
    said = json.loads(json.dumps(result.to_dict()))
    assert said["text"] == "A b, zzz!"
    assert said["mechanism"] == "cmp:epsilon=2"
    assert said["epsilon"] == 2.0
    assert said["release"] == "independent"
    assert said["guarantee"]["notion"] == "metric"
    assert said["spent"] == 6.0
    assert 0 <= said["unchanged"] <= 1
    assert said["unknown"] == ["zzz"]
    assert said["kept"] == []
    assert said["seeded"] is True
    assert any("seed" in caveat for caveat in said["guarantee"]["caveats"])
    for variant in result.variants:
        assert all(word in "abcef" for word in variant.replace(",", "").rstrip("!").split())
        assert variant.endswith("!")
    assert "zzz" not in repr(result)


def test_secure_results_are_not_stamped_and_never_repeat(small_space):
    chosen = mechanism("cmp", space=small_space, epsilon=0.1)
    text = " ".join(small_space.words(range(30)))
    one, other = (run(chosen, [text])[0] for _ in range(2))
    assert not one.seeded
    assert one.variants != other.variants


def test_once_costs_one_release(small_space):
    chosen = mechanism("cmp", space=small_space, epsilon=4.0)
    text = "word1 word2 word3"
    (once,) = run(chosen, [text], n=20, release="once")
    (independent,) = run(chosen, [text], n=20)
    assert once.spent == 4.0
    assert independent.spent == 80.0
    columns = list(zip(*(variant.split() for variant in once.variants), strict=True))
    assert all(len(set(column)) == 20 for column in columns), "twenty different words each"


def test_once_reads_the_nearest_words_off_one_point_and_deals_them_at_random(small_space):
    chosen = mechanism("cmp", space=small_space, epsilon=1e6)
    expected = set(
        small_space.words(small_space.nearest_output.top(small_space.vectors[[7]], 5)[0][0])
    )
    results = run(chosen, ["word7"] * 400, n=5, release="once", rng=1)
    assert all(set(result.variants) == expected for result in results)
    place = [result.variants.index("word7") for result in results]
    assert stats.chisquare(np.bincount(place, minlength=5)).pvalue > 1e-4


def test_once_with_one_variant_is_the_mechanism_itself(small_space):
    ids = np.arange(500)
    for name in (name for name in names() if issubclass(kind(name), NoiseMechanism)):
        chosen = mechanism(name, space=small_space, epsilon=5.0)
        one, other = (Draws([(np.random.default_rng(3), 500)]) for _ in range(2))
        assert np.array_equal(chosen.draw_once(ids, 1, one)[:, 0], chosen.draw(ids, other))


@pytest.mark.parametrize("plain", ["cmp", "mahalanobis"])
def test_vickrey_released_once_is_the_noise_without_it(small_space, plain):
    """From two variants on; and it says so."""
    chosen = mechanism(plain, space=small_space, epsilon=5.0)
    vickrey = mechanism(f"vickrey-{plain}", space=small_space, epsilon=5.0)
    ids = np.arange(300)
    for k in (1, 2, 7):
        one, other = (Draws([(np.random.default_rng(3), 300)]) for _ in range(2))
        sets = (np.sort(m.draw_once(ids, k, d)) for m, d in ((chosen, one), (vickrey, other)))
        assert np.array_equal(*sets) == (k >= 2)
    (result,) = run(vickrey, ["word1"], n=2, release="once")
    said = f"release 'once' with 2 or more variants is that of {plain}"
    assert said in " ".join(result.guarantee.caveats)
    wider = mechanism(f"vickrey-{plain}:weights=1/1/1", space=small_space)
    assert "with 3 or more variants" in " ".join(wider.guarantee.caveats)


def test_unknown_words_are_uniform_over_the_output_vocabulary(toy):
    chosen = mechanism("cmp", space=toy, epsilon=1000.0)
    (result,) = run(chosen, ["zzz " * 20_000], rng=5)
    counts = [result.variants[0].split().count(word) for word in "abcef"]
    assert sum(counts) == 20_000
    assert stats.chisquare(counts).pvalue > 1e-4
    assert result.spent == 1000.0, "a place costs what it costs, whatever word stood there"


def test_unknown_words_can_be_dropped_refused_or_kept(toy):
    chosen = mechanism("cmp", space=toy, epsilon=1000.0)
    (dropped,) = run(chosen, ["a zzz b"], pipeline=TextPipeline(unknown="drop"))
    assert len(dropped.variants[0].split()) == 2
    with pytest.raises(UnknownWordError) as caught:
        run(chosen, ["a zzz b"], pipeline=TextPipeline(unknown="error"))
    assert "zzz" not in str(caught.value)
    with pytest.warns(PrivacyWarning):
        keeping = TextPipeline(unknown="keep")
    (kept,) = run(chosen, ["a zzz b"], pipeline=keeping)
    assert "zzz" in kept.variants[0]
    assert kept.kept == ("zzz",)
    assert any("in clear" in caveat for caveat in kept.guarantee.caveats)


@pytest.mark.parametrize("release", ["independent", "once"])
def test_long_texts_are_drawn_in_units_and_stay_in_order(small_space, release):
    words = small_space.words(np.arange(3 * UNIT + 17) % 2000)
    chosen = mechanism("cmp", space=small_space, epsilon=1e6)
    (result,) = run(chosen, [" ".join(words)], n=1, rng=2, release=release)
    assert result.variants[0].split() == words


@given(st.lists(st.text(), max_size=5), st.integers(1, 3), st.sampled_from(["once", "independent"]))
def test_any_texts_give_defined_results(texts, n, release):
    from sottovoce.testing import toy_space

    chosen = mechanism("vickrey-cmp", space=toy_space(), epsilon=1.0)
    results = run(chosen, texts, n=n, rng=1, release=release)
    assert [len(result.variants) for result in results] == [n] * len(texts)


def test_a_single_string_is_not_taken_for_a_list(toy):
    with pytest.raises(UsageError, match="list of texts"):
        Obfuscator(mechanism("cmp", space=toy)).obfuscate("abc")


def test_words_that_come_back_are_counted(small_space):
    loud = mechanism("cmp", space=small_space, epsilon=1e6)
    quiet = mechanism("cmp", space=small_space, epsilon=1e-3)
    (result,) = run(loud, ["word1 zzz word2"], n=4)
    assert result.unchanged == 1.0
    (result,) = run(quiet, ["word1 zzz word2"], n=4)
    assert result.unchanged < 0.5
    (result,) = run(quiet, ["zzz !"], n=4)
    assert result.unchanged is None


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"n": 0}, "at least one variant"),
        ({"batch_size": 0}, "at least one text"),
        ({"workers": 0}, "at least one worker"),
        ({"release": "twice"}, "independent, once"),
        ({"release": "once", "n": 6}, "ask for fewer variants"),
    ],
)
def test_impossible_options_are_refused(toy, options, says):
    with pytest.raises(UsageError, match=says):
        Obfuscator(mechanism("cmp", space=toy), **options)


class Fails(CMP):
    """A mechanism that fails with a word in its message."""

    def draw(self, ids, draws):
        raise KeyError(self.space.word(int(ids[0])))


def test_a_failing_mechanism_releases_nothing_and_names_no_word(small_space):
    failing = Fails(small_space, 1.0)
    released = []
    text = small_space.word(1234)
    with pytest.raises(SottovoceError) as caught:
        released.extend(Obfuscator(failing).obfuscate([text]))
    assert released == []
    told = "".join(traceback.format_exception(caught.value))
    assert "KeyError" in str(caught.value)
    assert text not in told


class FailingPipeline(TextPipeline):
    """A pipeline that fails as a codec would, with the text in its message."""

    def prepare(self, text, space):
        return text.encode("ascii")


def test_a_failing_pipeline_names_no_word(small_space):
    text = small_space.word(1234) + "é"
    failing = Obfuscator(mechanism("cmp", space=small_space), pipeline=FailingPipeline())
    with pytest.raises(SottovoceError, match="UnicodeEncodeError") as caught:
        list(failing.obfuscate([text]))
    assert text not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_obfuscators_pickle(small_space):
    obfuscator = Obfuscator(mechanism("cmp", space=small_space), n=3, rng=1)
    copy = pickle.loads(pickle.dumps(obfuscator))
    texts = ["word1 word2", SECRET]
    assert [r.variants for r in copy.obfuscate(texts)] == [
        r.variants for r in obfuscator.obfuscate(texts)
    ]


@pytest.fixture(scope="module")
def frequent(default_space, tmp_path_factory):
    """The five thousand most frequent words of the default space, on disk."""
    folder = tmp_path_factory.mktemp("frequent") / "space"
    with SpaceWriter(folder, name="frequent", dimension=default_space.dimension) as writer:
        writer.append(default_space.words(range(5000)), default_space.vectors[:5000])
        writer.commit()
    return WordSpace.open(folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in names() if issubclass(kind(n), WordMechanism)])
def test_two_thousand_words_are_the_same_for_any_batch_size_and_workers(name, frequent):
    """Texts of 1 to 300 words in batches of 1, 7 and 1000, on one and two worker processes."""
    words = frequent.words(np.arange(2000) * 7 % frequent.size)
    ends = np.cumsum([1, 7, 40, 3, 300, 20, 5, 24] * 5)
    texts = [" ".join(words[a:b]) for a, b in pairwise([0, *ends])]
    chosen = mechanism(name, space=frequent, epsilon=3.0)
    runs = [
        [result.variants for result in run(chosen, texts, rng=99, **options)]
        for options in (
            {"batch_size": 1},
            {"batch_size": 7},
            {"batch_size": 1000},
            {"batch_size": 20, "workers": 2},
        )
    ]
    assert sum(len(variants[0].split()) for variants in runs[0]) >= 2000
    assert runs[0] == runs[1] == runs[2] == runs[3]


@dataclass(frozen=True, repr=False, eq=False)
class Careless(TextMechanism):
    """Rewrites texts as it is told."""

    name: ClassVar[str] = "careless"
    summary: ClassVar[str] = "gives anything"
    paper: ClassVar[str] = ""
    variants: tuple[str, ...] = ()

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee("none", None, scope="text")

    def rewrite(self, text, n, pipeline, rng):
        return Rewriting(self.variants)


@pytest.mark.parametrize(
    "variants", [("bread", "Skin  CANCER"), ("bread", "Bread"), ("bread", "milk", "salt")]
)
def test_what_gives_a_text_back_or_too_much_releases_nothing(variants):
    with pytest.raises(SottovoceError, match="nothing was released") as caught:
        list(Obfuscator(Careless(variants=variants), n=2).obfuscate(["skin cancer"]))
    assert "skin" not in str(caught.value)
    (fine,) = Obfuscator(Careless(variants=variants[:1]), n=2).obfuscate(["skin cancer"])
    assert fine.variants == ("bread",)


def test_padding_is_not_remembered_as_a_word(small_space):
    cmp = mechanism("cmp", space=small_space)
    words = " ".join(small_space.words(np.arange(3)))
    memory = Memory(b"secret", cmp, 2, "once")
    names = [
        memory.names(TextPipeline(pad_to=pad_to).prepare(words, small_space), cmp)
        for pad_to in (0, 8)
    ]
    assert len(names[0]) == 3
    assert names[1] == names[0]
