"""Mechanisms that are broken on purpose are caught by the check of that name; sound ones pass."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from sottovoce import mechanism
from sottovoce.mechanisms.cmp import CMP
from sottovoce.mechanisms.custext import CusText
from sottovoce.mechanisms.noise import spherical_noise
from sottovoce.mechanisms.santext import SanText
from sottovoce.privacy.auditing import audit
from sottovoce.randomness import Draws
from sottovoce.spaces.space import WordSpace


def broken(kind):
    return dataclass(frozen=True, repr=False, eq=False)(kind)


@broken
class TwiceTheEpsilon(CMP):
    """Draws at twice the epsilon that it states, also in its density."""

    def noise(self, draws):
        return spherical_noise(draws, self.space.dimension, 2 * self.epsilon)


@broken
class TwiceTheEpsilonAsStated(CMP):
    """Noise and density both have twice the epsilon of the guarantee."""

    def noise(self, draws):
        return spherical_noise(draws, self.space.dimension, 2 * self.epsilon)

    def log_density(self, noise):
        return 2 * super().log_density(noise)


@broken
class WrongAlongOneAxis(CMP):
    """The noise is half as wide in one direction of many."""

    def noise(self, draws):
        noise = super().noise(draws)
        noise[:, 0] /= 2
        return noise


@broken
class ForgottenHalf(SanText):
    """exp(-epsilon d) instead of exp(-epsilon d / 2), and says so."""

    def _scores(self, distances):
        return super()._scores(distances) * 2


@broken
class ForgottenHalfInDraws(SanText):
    """States one law and draws from another."""

    def draw(self, ids, draws):
        return SanText(self.space, 2 * self.epsilon).draw(ids, draws)


@broken
class SometimesTheOriginal(CMP):
    def draw(self, ids, draws):
        return np.where(draws.uniform() < 0.1, ids, super().draw(ids, draws))


@broken
class SometimesTheOriginalOfALaw(SanText):
    def draw(self, ids, draws):
        return np.where(draws.uniform() < 0.1, ids, super().draw(ids, draws))


@broken
class NeverTheOriginal(CMP):
    """Looks at the input after the noise, and takes the second nearest word instead of it."""

    def draw(self, ids, draws):
        near, _ = self.near(self.perturb(ids, draws), 2)
        return np.where(near[:, 0] == ids, near[:, 1], near[:, 0])


@broken
class SharedNoise(CMP):
    """One noise vector for a whole batch."""

    def noise(self, draws):
        one = super().noise(Draws([(draws.units[0][0], 1)]))
        return np.repeat(one, draws.size, axis=0)


@broken
class SharedChance(SanText):
    """One uniform number for a whole batch."""

    def draw(self, ids, draws):
        one = super().draw(ids[:1], Draws([(draws.units[0][0], 1)]))
        return np.where(ids == ids[0], one[0], super().draw(ids, draws))


@broken
class IgnoredEpsilon(CMP):
    def noise(self, draws):
        return spherical_noise(draws, self.space.dimension, 3.0)

    def log_density(self, noise):
        return -3.0 * np.sqrt((noise * noise).sum(axis=-1))


@broken
class IgnoredEpsilonOfALaw(SanText):
    def _scores(self, distances):
        return -distances


@broken
class Remembers(SanText):
    """What it drew before changes what it draws."""

    def draw(self, ids, draws):
        seen = self.__dict__.setdefault("seen", [0])
        seen[0] += len(ids)
        drawn = super().draw(ids, draws)
        return self.space.output.ids[(drawn + seen[0]) % len(self.space.output)]


@broken
class Overlapping(CusText):
    """Groups that are none, with the guarantee of groups."""

    def _groups(self, words):
        return self._nearest(words)


@broken
class TooCheap(CMP):
    """Charges half of what it costs."""

    @property
    def guarantee(self):
        return replace(super().guarantee, epsilon=self.epsilon / 2)


def refuted(chosen, seed=1):
    result = audit(chosen, rng=seed, quick=True)
    return {finding.check for finding in result.findings if finding.verdict == "REFUTED"}


@pytest.mark.parametrize(
    ("kind", "epsilon", "check"),
    [
        (TwiceTheEpsilon, 3.0, "draws follow the density"),
        (TwiceTheEpsilon, 3.0, "line, sampled"),
        (TwiceTheEpsilonAsStated, 3.0, "density"),
        (TwiceTheEpsilonAsStated, 3.0, "plane, exact"),
        (TwiceTheEpsilonAsStated, 3.0, "line, sampled"),
        (WrongAlongOneAxis, 3.0, "draws follow the density"),
        (ForgottenHalf, 1.0, "exact, some pairs"),
        (ForgottenHalfInDraws, 3.0, "draws follow the law"),
        (SometimesTheOriginal, 3.0, "returned originals"),
        (SometimesTheOriginalOfALaw, 1.0, "returned originals"),
        (NeverTheOriginal, 3.0, "line, sampled"),
        (SharedNoise, 3.0, "batch independence"),
        (SharedChance, 3.0, "batch independence"),
        (IgnoredEpsilon, 3.0, "effect of epsilon"),
        (IgnoredEpsilonOfALaw, 3.0, "effect of epsilon"),
        (Remembers, 3.0, "data dependence"),
        (Overlapping, 3.0, "exact, within groups"),
        (TooCheap, 3.0, "line, sampled"),
    ],
)
def test_a_broken_mechanism_is_caught_by_name(small_space, kind, epsilon, check):
    assert check in refuted(kind(small_space, epsilon))


@pytest.mark.parametrize(
    "spec",
    ["cmp", "mahalanobis", "vickrey-cmp", "vickrey-mahalanobis", "santext", "tem", "custext"],
)
def test_a_sound_mechanism_is_not_refuted_whatever_the_seed(small_space, spec):
    for seed in range(2):
        assert not refuted(mechanism(spec, space=small_space, epsilon=3.0), seed)


@pytest.mark.parametrize("spec", ["cmp", "vickrey-cmp", "santext", "tem"])
def test_a_sound_mechanism_is_not_refuted_on_a_handful_of_words(toy, spec):
    assert not refuted(mechanism(spec, space=toy, epsilon=1.0))


def test_published_claims_are_refuted_beside_what_is_stated(small_space):
    part = WordSpace.from_arrays(small_space.words(range(300)), small_space.vectors[:300])
    for spec, checks in {
        "wbb": {"exact, all pairs", "never itself", "support"},
        "wbb:compat=repo": {"exact, all pairs", "effect of epsilon"},
        "custext:compat=knn": {"exact, all pairs", "support"},
        "mahalanobis:compat=pypantera": {"plane, exact", "plane, sampled"},
    }.items():
        result = audit(mechanism(spec, space=part), rng=1, quick=True)
        assert {c.label: c.verdict for c in result.claims} == {
            "stated": "NO CLAIM",
            "published": "REFUTED",
        }
        assert result.verdict == "REFUTED"
        found = {f.check: f for f in result.findings if f.verdict == "REFUTED"}
        assert checks <= set(found)
        assert all(f.witness for f in found.values() if f.claim == "published")


def test_wbb_is_refuted_on_the_default_space_with_a_true_witness(default_space):
    chosen = mechanism("wbb", space=default_space)
    result = audit(chosen, rng=1, quick=True, words=2)
    (found,) = (f for f in result.findings if f.check == "exact, some pairs")
    seen = found.witness
    ids = default_space.ids([seen.first, seen.second, seen.output.strip("'")])
    law = np.exp(chosen.log_probabilities(ids[:2])[:, ids[2]])
    assert law[0] == pytest.approx(seen.probabilities[0])
    assert law[1] == seen.probabilities[1] == 0


def test_text_mechanisms_have_no_claim(wordnet):
    result = audit(mechanism("aea", wordnet=wordnet), rng=1)
    assert result.verdict == "NO CLAIM"
    assert {f.check for f in result.findings} >= {"order and seed", "pass-through", "chance"}


def test_a_seed_repeats_an_audit(toy):
    chosen = mechanism("cmp", space=toy, epsilon=1.0)
    one, two = (audit(chosen, rng=5, quick=True, draws=2000).to_dict() for _ in range(2))
    assert one == two
    assert one["seeded"]
    assert not audit(chosen, quick=True, draws=1000).seeded
