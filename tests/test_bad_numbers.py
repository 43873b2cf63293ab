"""Numbers at the ends of what a computer knows, and spaces that hardly are any."""

from __future__ import annotations

import json
import math
import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from sottovoce import Obfuscator, mechanism
from sottovoce.cli import app
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.experiments.schema.reading import read_experiment
from sottovoce.mechanisms import names
from sottovoce.mechanisms.base import LARGEST_EPSILON, SMALLEST_EPSILON
from sottovoce.mechanisms.build import kind, parse
from sottovoce.obfuscation import words
from sottovoce.spaces.space import WordSpace
from sottovoce.text import pipeline

SPACE_ALONE = [name for name in names() if kind(name).resources() == ("space",)]
MANY = [f"w{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(80)]
RNG = np.random.default_rng(7)


def space(vectors: Any, listed: list[str] = MANY, name: str = "odd") -> WordSpace:
    return WordSpace.from_arrays(listed, np.asarray(vectors, dtype=np.float32), name=name)


SPACES = {
    "usual": space(RNG.standard_normal((80, 6))),
    "equal": space(np.ones((80, 3))),
    "zeros": space(np.zeros((80, 3))),
    "a zero among others": space(np.vstack([np.zeros(3), RNG.standard_normal((79, 3))])),
    "pairs": space(np.repeat(RNG.standard_normal((40, 3)), 2, axis=0)),
    "one dimension": space(RNG.standard_normal((80, 1))),
    "two words": space([[1, 0], [0, 1]], ["alpha", "beta"]),
    "one word": space([[1, 0]], ["alpha"]),
}
BAD_EPSILONS = [
    *(0.0, -0.0, -1.0, -1e-300, 5e-324, 1e-300, 1e-45, 0.99e-9, 1.01e9, 1e45, 1e300, 1.7e308),
    *(math.nan, math.inf, -math.inf),
]


@pytest.mark.parametrize("name", SPACE_ALONE)
@pytest.mark.parametrize("epsilon", BAD_EPSILONS)
def test_an_epsilon_that_cannot_be_drawn_with_is_refused(name, epsilon):
    """Where the mechanism is built, before anything is released."""
    for spec, given_value in ((name, {"epsilon": epsilon}), (f"{name}:epsilon={epsilon}", {})):
        with pytest.raises(UsageError, match=r"from 1e-09 to 1e\+09|number"):
            mechanism(spec, space=SPACES["usual"], **given_value)


@pytest.mark.parametrize("name", SPACE_ALONE)
@settings(max_examples=25)
@given(
    which=st.sampled_from(sorted(SPACES)),
    exponent=st.floats(-9, 9),
    n=st.integers(1, 4),
    once=st.booleans(),
    seed=st.integers(0, 2**63 - 1),
)
def test_odd_spaces_and_epsilons_are_drawn_with_or_refused(name, which, exponent, n, once, seed):
    """Numbers never overflow, laws sum to 1, and every refusal is ours."""
    epsilon = min(max(10.0**exponent, SMALLEST_EPSILON), LARGEST_EPSILON)
    odd = SPACES[which]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            built = mechanism(name, space=odd, epsilon=epsilon)
            release = "once" if once and built.supports_once else "independent"
            obfuscator = Obfuscator(built, n=n, release=release, rng=seed)
            (result,) = obfuscator.obfuscate([" ".join(odd.words(np.arange(min(3, odd.size))))])
        except UsageError as error:
            refusal: UsageError | None = error
        else:
            refusal = None
        if refusal is not None:
            assert which != "usual"
            assert len(str(refusal)) > 30
            return
        assert len(result.variants) == n
        released = set(odd.words(odd.output.ids))
        assert {word for text in result.variants for word in text.split()} <= released
        law = getattr(built, "log_probabilities", lambda ids: None)(np.array([0, 1]))
        if law is not None:
            assert np.exp(law).sum(axis=1) == pytest.approx([1, 1], abs=1e-9)
        json.dumps(built.describe(), allow_nan=False)


def test_one_word_hides_nothing_and_equal_vectors_tell_nothing_apart():
    for name in SPACE_ALONE:
        if name != "syntf":
            with pytest.raises(UsageError, match=r"Use a larger|only 1|set k or n lower|no shape"):
                mechanism(name, space=SPACES["one word"])
    for name in ("cmp", "vickrey-cmp"):
        for which in ("equal", "zeros"):
            with pytest.raises(UsageError, match="same vector"):
                mechanism(name, space=SPACES[which])


def test_equal_words_are_drawn_evenly_by_laws():
    """Words at one place have one law: none of them is favoured, at any epsilon."""
    for name in ("santext", "tem", "custext"):
        for epsilon in (SMALLEST_EPSILON, 1.0, LARGEST_EPSILON):
            law = mechanism(name, space=SPACES["equal"], epsilon=epsilon).log_probabilities([3])
            chances = np.exp(law[law > -np.inf])
            assert chances == pytest.approx(np.full(len(chances), 1 / len(chances)))


def test_syntf_draws_by_its_law_where_all_weights_vanish():
    """exp(-epsilon / 2) of a word unlike all others is 0 at an epsilon of 2,000."""
    law = mechanism("syntf", space=SPACES["a zero among others"], epsilon=1e6).law(0)
    assert law == pytest.approx(np.full(80, 1 / 80))
    assert mechanism("syntf", space=SPACES["usual"], epsilon=1e6).law(5)[5] == pytest.approx(1)


# How many


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("custext:k=1000000", "set k lower"),
        ("custext:k=99999999999999999999", "whole number"),
        ("custext:k=1", "2 or more"),
        ("custext:k=-5", "2 or more"),
        ("wbb:k=1000000", "set k or n lower"),
        ("wbb:n=1000000", "set k or n lower"),
        ("wbb:k=0,n=0", "k is 1 or more"),
        ("syntf:length=1000000", "length must lie"),
        ("vickrey-cmp:t=1e300", "t "),
    ],
)
def test_sizes_are_capped(spec, says):
    with pytest.raises(UsageError, match=says):
        mechanism(spec, space=SPACES["usual"])


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 10**400, 1e300, "1e5", [], {}])
def test_numbers_that_are_none_are_refused_wherever_they_stand(value):
    for name, key in (("custext", "k"), ("wbb", "n"), ("cmp", "epsilon"), ("cmp", "prior")):
        try:
            mechanism(name, space=SPACES["usual"], **{key: value})
        except UsageError:
            continue
        assert value in (1e300, "1e5")  # prior and epsilon may be written so.


def test_more_variants_than_memory_holds_are_refused_before_it_is_gone():
    cmp = mechanism("cmp", space=SPACES["usual"])
    with pytest.raises(UsageError, match="ask for 20,000,000 variants at most"):
        Obfuscator(cmp, n=10**9)
    text = " ".join(MANY)
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match="80 words are more than memory holds"):
            list(Obfuscator(cmp, n=10**6).obfuscate([text]))
        assert tracemalloc.get_traced_memory()[1] < 50 << 20
    finally:
        tracemalloc.stop()


def test_many_texts_that_do_not_fit_together_are_done_one_by_one(monkeypatch):
    cmp = mechanism("cmp", space=SPACES["usual"])
    texts = [" ".join(MANY[i : i + 5]) for i in range(8)]
    whole = list(Obfuscator(cmp, n=3, rng=5).obfuscate(texts))
    monkeypatch.setattr("sottovoce.obfuscation.obfuscator.MOST_WORDS", 40)
    monkeypatch.setattr(words, "MOST_WORDS", 40)
    assert list(Obfuscator(cmp, n=3, rng=5).obfuscate(texts)) == whole


@pytest.mark.parametrize("sign", ["a", "a ", ", ", "é"])
def test_a_text_of_a_hundred_megabytes_is_refused_at_once(sign):
    text = sign * ((100 << 20) // len(sign.encode()))
    for name in ("cmp", "syntf"):
        with pytest.raises(UsageError, match="cut it into several"):
            list(Obfuscator(mechanism(name, space=SPACES["usual"])).obfuscate([text]))


def test_a_text_as_long_as_allowed_is_taken(monkeypatch):
    monkeypatch.setattr(pipeline, "LONGEST_TEXT", 100)
    obfuscator = Obfuscator(mechanism("cmp", space=SPACES["usual"]))
    assert len(list(obfuscator.obfuscate(["waa " * 25]))) == 1
    with pytest.raises(UsageError, match="101 characters is longer than 100"):
        list(obfuscator.obfuscate(["waa " * 25 + "."]))


# The same numbers on the command line, in experiment files and in requests


@pytest.mark.parametrize(
    "options",
    [
        ("-e", "nan"),
        ("-e", "inf"),
        ("-e", "1e-300"),
        ("-e", "1e300"),
        ("-e=-1",),
        ("-n", "0"),
        ("-n=-5",),
        ("-n", "1000000000000"),
        ("-m", "custext", "--set", "k=1e400"),
        ("-m", "wbb", "--set", "n=99999999"),
        ("--seed=-1",),
    ],
)
def test_the_command_refuses_them_with_what_to_do(default_space, options):
    told = CliRunner().invoke(app, ["obfuscate", *options, "--space", "glove-840b-34k", "secretly"])
    assert told.exit_code != 0
    refusal = told.exception if isinstance(told.exception, SottovoceError) else None
    said = f"{refusal or ''}{told.output}"
    assert isinstance(refusal, UsageError) or told.exit_code == 2
    assert "secretly" not in said
    assert len(said) > 20


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "0", "-1", "1e-300", "1e300"])
def test_experiment_files_refuse_them(tmp_path, number):
    file = tmp_path / "experiment.toml"
    content = (
        'name = "odd"\n[grid]\ncollections = ["demo"]\nengines = ["bm25"]\nepsilons = [{}]\n'
        'rerankers = ["light"]\nn = [2]\n[[mechanism]]\nspec = "cmp"\n[search]\n'
    )
    file.write_text(content.format("5"))
    read_experiment(file)
    file.write_text(content.format(number))
    with pytest.raises(SottovoceError, match="epsilon"):
        read_experiment(file)


def test_specs_are_read_without_surprises():
    assert parse("cmp:epsilon=1e3")[1] == {"epsilon": 1000.0}
    with pytest.raises(UsageError, match="whole number"):
        parse("custext:k=2.5")
