"""Attacks that look at fewer words guess what they would have guessed from all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import PCG64, Generator
from sottovoce.privacy.attacks.boxes import contents
from sottovoce.privacy.attacks.contenders import _least_normalisers, bounded

from sottovoce import mechanism
from sottovoce.privacy.attacks import likelihood
from sottovoce.privacy.attacks.priors import by_rank
from sottovoce.privacy.attacks.releases import Released
from sottovoce.privacy.attacks.run import reconstruct
from sottovoce.spaces.space import OutputVocabulary, WordSpace

epsilons = st.sampled_from([0.1, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 50.0])


def released(chosen, n: int, seed: int) -> list[Released]:
    rng = Generator(PCG64(seed))
    ids = rng.integers(chosen.space.size, size=6)
    drawn = chosen.sample(ids, n, rng)
    return [
        Released(str(at), text, tuple(chosen.space.words(drawn[:, at])))
        for at, text in enumerate(chosen.space.words(ids))
    ]


def guesses(monkeypatch, releases, chosen, everything: bool, prior) -> tuple[list, int]:
    """What was guessed of each text for each number of variants; words whose laws were taken."""
    looked = 0
    law = type(chosen).log_probabilities

    def counted(self, ids):
        nonlocal looked
        looked += len(ids)
        return law(self, ids)

    with monkeypatch.context() as patch:
        patch.setattr(type(chosen), "log_probabilities", counted)
        if everything:
            patch.setattr(likelihood, "bounded", lambda _: False)
        found = reconstruct(releases, chosen, attacks=["likelihood"], counts=[1, 4], prior=prior)
    return [each.by_text for each in found], looked


@pytest.mark.parametrize("spec", ["santext", "tem", "tem:gamma=2"])
@pytest.mark.parametrize("output", ["all", "some"])
@settings(max_examples=12)
@given(epsilon=epsilons, seed=st.integers(0, 1000), ranked=st.booleans())
def test_words_that_cannot_win_are_left_out_and_no_others(
    small_space, spec, output, epsilon, seed, ranked
):
    space = small_space
    if output == "some":
        space = space.with_output(OutputVocabulary("some", np.arange(0, space.size, 3)))
    chosen = mechanism(spec, space=space, epsilon=epsilon)
    releases = released(chosen, 4, seed)
    prior = by_rank(space) if ranked else "uniform"
    with pytest.MonkeyPatch.context() as patch:
        few, _ = guesses(patch, releases, chosen, False, prior)
        full, looked = guesses(patch, releases, chosen, True, prior)
    assert few == full
    assert looked >= space.size


def test_few_laws_are_taken(small_space, monkeypatch):
    for epsilon in (0.5, 20.0):
        chosen = mechanism("santext", space=small_space, epsilon=epsilon)
        _, looked = guesses(monkeypatch, released(chosen, 4, 1), chosen, False, "uniform")
        assert looked < small_space.size / 2


@pytest.mark.parametrize("spec", ["santext", "tem:gamma=2"])
@given(epsilon=epsilons)
def test_no_normaliser_falls_below_its_bound(small_space, spec, epsilon):
    space = small_space.with_output(OutputVocabulary("some", np.arange(0, 2000, 3)))
    chosen = mechanism(spec, space=space, epsilon=epsilon)
    words = np.arange(0, 2000, 40)
    law = chosen.log_probabilities(words)[:, space.output.ids]
    costs = chosen.cost(chosen._ranges.distances.rows(words))
    exact = -0.5 * epsilon * costs[:, 0] - law[:, 0]
    assert (_least_normalisers(chosen)[words] <= exact + 1e-9).all()


def test_words_nobody_could_have_released_have_no_author(toy: WordSpace):
    some = toy.with_output(OutputVocabulary("some", toy.ids(["a", "b"])))
    chosen = mechanism("santext", space=some, epsilon=2.0)
    releases = [Released("1", "a", ("f", "f")), Released("2", "zzz", ("yyy", "xxx"))]
    (found,) = reconstruct(releases, chosen, attacks=["likelihood"], counts=[2])
    assert found.words_right == 0


def test_santext_plus_has_two_laws_and_no_bound(toy: WordSpace):
    assert bounded(mechanism("santext", space=toy))
    assert not bounded(mechanism("santext:sensitive=0.5", space=toy))
    assert not bounded(mechanism("custext:k=2", space=toy))


def test_boxes_are_looked_for_once_and_laws_follow_epsilon(small_space, monkeypatch):
    low, high = (mechanism("wbb:k=2,n=8", space=small_space, epsilon=e) for e in (0.5, 40.0))
    assert contents(low) is contents(high)
    assert contents(low) is not contents(mechanism("wbb:k=3,n=8", space=small_space))
    for word in (0, 7, 1999):
        ((box, _),) = high.laws(np.array([word]))
        assert set(contents(low)[word].indices.tolist()) == set(box.tolist())
    releases = released(high, 2, 5)
    looked = []
    laws = type(high).laws
    monkeypatch.setattr(
        type(high), "laws", lambda self, ids: looked.append(len(ids)) or laws(self, ids)
    )
    by_law = {}
    for chosen in (low, high):
        (found,) = reconstruct(releases, chosen, attacks=["intersection"], counts=[2])
        by_law[chosen.epsilon] = found
    assert sum(looked) < 1000
    assert by_law[0.5].survivors == by_law[40.0].survivors >= 1
    for row, each in enumerate(releases):
        ids = small_space.ids(each.variants)
        exact = high.log_probabilities(np.arange(2000))[:, ids].sum(axis=1)
        right = small_space.word(int(exact.argmax())) == each.text
        assert by_law[40.0].by_text[row].whole == right
