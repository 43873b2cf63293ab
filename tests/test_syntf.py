"""SynTF against its law, written out; and its promise between any two texts."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy.stats import chisquare

from sottovoce import mechanism, obfuscate
from sottovoce.errors import UsageError
from sottovoce.obfuscation import Obfuscator
from sottovoce.privacy import audit
from sottovoce.privacy.word_samples import sample_words
from sottovoce.spaces.space import OutputVocabulary, WordSpace
from sottovoce.testing import toy_space
from sottovoce.text import TextPipeline

TEXTS = ["a a b", "c", "", "zz zz", "f e a b c", "a"]
PIPELINE = TextPipeline()


def plain_law(space: WordSpace, word: int, epsilon: float) -> np.ndarray:
    """exp(epsilon max(0, cosine) / 2) over the output vocabulary, by loops."""
    vectors = space.vectors.astype(np.float64)
    weights = []
    for output in space.output.ids:
        one, other = vectors[word], vectors[output]
        cosine = one @ other / np.sqrt((one @ one) * (other @ other))
        weights.append(np.exp(epsilon * max(0.0, cosine) / 2))
    return np.array(weights) / np.sum(weights)


def mixture(space: WordSpace, text: str, epsilon: float) -> np.ndarray:
    """The chance of each word to be the next one released for a text."""
    known = [space.ids([word])[0] for word in text.split()]
    words = [word for word in known if word >= 0] or range(space.size)
    return np.mean([plain_law(space, word, epsilon) for word in words], axis=0)


def test_the_law_is_the_exponential_mechanisms():
    space = toy_space()
    chosen = mechanism("syntf", space=space, epsilon=3.0)
    for word in range(space.size):
        assert np.allclose(chosen.law(word), plain_law(space, word, 3.0), atol=1e-7)
    half = space.with_output(OutputVocabulary("some", np.array([1, 3])))
    chosen = mechanism("syntf", space=half, epsilon=3.0)
    assert np.allclose(chosen.law(0), plain_law(half, 0, 3.0), atol=1e-7)


@pytest.mark.parametrize("text", TEXTS)
def test_draws_follow_the_mixture_over_the_words_of_a_text(text):
    space = toy_space()
    chosen = mechanism("syntf", space=space, epsilon=6.0, length=4)
    released = chosen.rewrite(text, 5000, PIPELINE, np.random.default_rng(3)).variants
    words = space.ids(" ".join(released).split())
    assert {len(variant.split()) for variant in released} == {4}, "whatever the text's length"
    expected = mixture(space, text, 6.0) * len(words)
    assert chisquare(np.bincount(words, minlength=space.size), expected).pvalue > 1e-4


def test_words_of_a_bag_are_independent():
    space = toy_space()
    chosen = mechanism("syntf", space=space, epsilon=6.0, length=2)
    pairs = chosen.rewrite("a a b f", 20_000, PIPELINE, np.random.default_rng(4)).variants
    chances = mixture(space, "a a b f", 6.0)
    seen = np.zeros((5, 5))
    for pair in pairs:
        seen[tuple(space.ids(pair.split()))] += 1
    assert chisquare(seen.ravel(), np.outer(chances, chances).ravel() * len(pairs)).pvalue > 1e-4


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 20.0])
def test_no_word_tells_any_two_texts_apart_by_more_than_epsilon(epsilon):
    space = toy_space()
    laws = [np.log(mixture(space, text, epsilon)) for text in TEXTS]
    worst = max(np.abs(one - other).max() for one, other in combinations_with_replacement(laws, 2))
    assert worst <= epsilon
    chosen = mechanism("syntf", space=space, epsilon=epsilon, length=7)
    assert chosen.guarantee.notion == "local"
    assert chosen.guarantee.scope == "text"
    assert chosen.guarantee.epsilon == pytest.approx(7 * epsilon)
    # The bound is nearly met where one word is rated 1 and the other one 0.
    opposite = WordSpace.from_arrays(["p", "q", *"rstuvw"], np.eye(8))
    law = mechanism("syntf", space=opposite, epsilon=epsilon).law
    assert 0.49 * epsilon < np.log(law(0)[0] / law(1)[0]) <= epsilon


def test_a_variant_may_repeat_or_be_the_text():
    one = WordSpace.from_arrays(["a", "b"], [[1.0, 0.0], [0.0, 1.0]])
    chosen = mechanism("syntf", space=one, epsilon=50.0, length=1)
    assert obfuscate("a", chosen, n=5, rng=1) == ["a"] * 5, (
        "to refuse them would void the guarantee"
    )


def test_unknown_words_leave_no_trace(default_space):
    chosen = mechanism("syntf", space=default_space, epsilon=30.0)
    (result,) = Obfuscator(chosen, n=20, rng=2).obfuscate(["xqzzysecret doctor"])
    assert "xqzzysecret" not in " ".join(result.variants)
    assert result.unknown == ("xqzzysecret",)
    assert "xqzzysecret" not in repr((result, chosen))
    near = default_space.ids(" ".join(result.variants).split())
    chances = chosen.law(default_space.ids(["doctor"])[0])[near]
    assert chances.mean() > 50 / default_space.size, "words near the one that is known"


def test_how_much_a_word_costs_is_as_documented(default_space):
    words = sample_words(default_space, 100)
    documented = {10: (0.003, 0.006), 20: (0.13, 0.17), 30: (0.76, 0.82), 50: (0.97, 0.99)}
    for epsilon, expected in documented.items():
        chosen = mechanism("syntf", space=default_space, epsilon=epsilon)
        best = np.array([np.sort(chosen.law(word))[::-1][:10] for word in words.tolist()])
        assert (best[:, 0].mean(), best.sum(axis=1).mean()) == pytest.approx(expected, abs=0.006)


def test_the_audit_does_not_refute_it(small_space):
    found = audit(mechanism("syntf", space=small_space), quick=True, rng=1)
    assert not found.refutes_what_is_stated


@pytest.mark.parametrize("spec", ["syntf:length=0", "syntf:epsilon=0", "syntf:length=20000"])
def test_impossible_parameters_are_refused(spec):
    with pytest.raises(UsageError):
        mechanism(spec, space=toy_space())
