"""Every registered mechanism keeps the contract; a broken one is caught by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from sottovoce import testing
from sottovoce.collections import load_collection
from sottovoce.engines import BM25
from sottovoce.errors import UsageError
from sottovoce.guarantees import Guarantee
from sottovoce.mechanisms import kind, mechanism, names, register
from sottovoce.mechanisms.base import (
    PoolMechanism,
    SetMechanism,
    TextMechanism,
    WordMechanism,
)
from sottovoce.mechanisms.cmp import CMP
from sottovoce.mechanisms.comet import CometCMP
from sottovoce.mechanisms.cover import Cover
from sottovoce.pools import load_pool

WORD_MECHANISMS = [name for name in names() if issubclass(kind(name), WordMechanism)]
TEXT_MECHANISMS = [name for name in names() if issubclass(kind(name), TextMechanism)]
POOL_MECHANISMS = [name for name in names() if issubclass(kind(name), PoolMechanism)]
SET_MECHANISMS = [name for name in names() if issubclass(kind(name), SetMechanism)]
SPECS = [
    *WORD_MECHANISMS,
    "mahalanobis:compat=pypantera",
    "vickrey-mahalanobis:compat=pypantera",
    "santext:sensitive=0.5,p=0.3",
    "custext:compat=knn",
    "wbb:compat=repo",
]


def test_every_mechanism_is_under_contract():
    kinds = (WORD_MECHANISMS, TEXT_MECHANISMS, POOL_MECHANISMS, SET_MECHANISMS)
    assert {name for kind_names in kinds for name in kind_names} == set(names())


@pytest.mark.parametrize("check", testing.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("where", ["toy", "small_space"])
def test_contract(spec, check, where, request):
    # Five words are too few for the boxes that are usual elsewhere.
    fitting = {"k": 1, "n": 3} if where == "toy" and spec.startswith("wbb") else {}
    check(mechanism(spec, space=request.getfixturevalue(where), epsilon=3.0, **fitting))


@pytest.mark.parametrize("spec", SPECS)
def test_contract_on_the_default_space(spec, default_space):
    testing.check_mechanism(mechanism(spec, space=default_space, epsilon=12.0))


@pytest.fixture(scope="module")
def resources(request):
    """What text mechanisms work on: WordNet, the demo collection on this machine, a word space."""
    return {
        "wordnet": request.getfixturevalue("wordnet"),
        "engine": BM25(load_collection("demo").documents[:150]),
        "space": request.getfixturevalue("default_space"),
    }


@pytest.mark.parametrize("check", testing.TEXT_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", TEXT_MECHANISMS)
def test_contract_of_text_mechanisms(name, check, resources):
    smaller = {"window": 6, "targets": 4} if name == "fea" else {}
    check(mechanism(name, **{key: resources[key] for key in kind(name).resources()}, **smaller))


@pytest.fixture(scope="module")
def pool():
    return load_pool("demo", "light")


@pytest.mark.parametrize("check", testing.POOL_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", POOL_MECHANISMS)
def test_contract_of_pool_mechanisms(name, check, pool):
    check(mechanism(name, pool=pool))


@pytest.mark.parametrize("check", testing.SET_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("parameters", ["", ":k=4,m=3,p=0.5", ":p=1"])
@pytest.mark.parametrize("name", SET_MECHANISMS)
def test_contract_of_set_mechanisms(name, parameters, check, pool):
    check(mechanism(f"{name}{parameters}", pool=pool))


@pytest.mark.parametrize("name", POOL_MECHANISMS)
def test_published_comet_breaks_the_contract_by_its_shared_noise_alone(name, pool):
    published = mechanism(name, pool=pool, compat="authors")
    for check in testing.POOL_CHECKS:
        if check is testing.check_pool_texts_are_independent:
            with pytest.raises(AssertionError, match="do not share their noise"):
                check(published)
        else:
            check(published)


# Mechanisms that break one promise each


class ReturnsOriginal(CMP):
    def draw(self, ids, draws):
        super().draw(ids, draws)
        return ids


class SharesNoise(CMP):
    def noise(self, draws):
        noise = super().noise(draws)
        noise[:] = noise[0]
        return noise


class UsesGlobalGenerator(CMP):
    def draw(self, ids, draws):
        return np.random.randint(0, self.space.size, len(ids))  # noqa: NPY002


class DependsOnBatch(CMP):
    def draw(self, ids, draws):
        return (super().draw(ids, draws) + len(ids)) % self.space.size


class CarriesLuggage(CMP):
    def __reduce__(self):
        return (*super().__reduce__(), {"luggage": b"x" * 5000})


class SaysNothing(CMP):
    @property
    def guarantee(self):
        return Guarantee("metric", self.epsilon, "euclidean")


class ClaimsTooMuch(CMP):
    @property
    def guarantee(self):
        return Guarantee("metric", self.epsilon, "euclidean", caveats=("this is epsilon-DP",))


class Chatters(CMP):
    def draw(self, ids, draws):
        import logging

        logging.getLogger("chatter").info("drawing for %s", testing.SECRET)
        return super().draw(ids, draws)


class LeavesTheVocabulary(CMP):
    def near(self, points, k):
        return self.space.nearest_output.top(points, k)


class IgnoresTheSeed(CMP):
    def draw(self, ids, draws):
        from sottovoce.randomness import secure_generator

        return super().draw(ids, type(draws)([(secure_generator(), draws.size)]))


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (ReturnsOriginal, testing.check_epsilon_matters),
        (SharesNoise, testing.check_rows_are_independent),
        (UsesGlobalGenerator, testing.check_global_generator_untouched),
        (DependsOnBatch, testing.check_batching),
        (CarriesLuggage, testing.check_pickle),
        (SaysNothing, testing.check_guarantee),
        (ClaimsTooMuch, testing.check_guarantee),
        (Chatters, testing.check_silence),
        (LeavesTheVocabulary, testing.check_shape_and_closure),
        (IgnoresTheSeed, testing.check_seeds),
    ],
)
def test_each_broken_promise_is_caught(broken, check, small_space):
    with pytest.raises(AssertionError):
        check(broken(small_space, 3.0))


class SharesNoiseWithinTheBatch(CometCMP):
    def release(self, texts, n, once, first, streams):
        places = super().release(texts, n, once, first, streams)
        places[:] = places[:1]
        return places


class SharesNoiseWithinTheText(CometCMP):
    def release(self, texts, n, once, first, streams):
        places = super().release(texts, n, once, first, streams)
        places[:] = places[:, :1]
        return places


class KeepsTheText(CometCMP):
    def perturb(self, vectors, noise):
        return super().perturb(vectors, 0 * noise)


class ForgetsTheSeed(CometCMP):
    def release(self, texts, n, once, first, streams):
        return super().release(texts, n, once, first, type(streams)(None, self.spec))


class KnowsItsPlace(CometCMP):
    def release(self, texts, n, once, first, streams):
        return super().release(texts, n, once, 0, streams)


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (SharesNoiseWithinTheBatch, testing.check_pool_texts_are_independent),
        (SharesNoiseWithinTheText, testing.check_pool_variants_are_independent),
        (SharesNoiseWithinTheText, testing.check_pool_once),
        (KeepsTheText, testing.check_pool_epsilon),
        (ForgetsTheSeed, testing.check_text_seeds),
        (KnowsItsPlace, testing.check_text_seeds),
    ],
)
def test_each_promise_broken_by_a_pool_mechanism_is_caught(broken, check, pool):
    with pytest.raises(AssertionError):
        check(broken(pool))


class AlwaysIncludes(Cover):
    def draw(self, representatives, draws):
        sets = super().draw(representatives, draws)
        lacking = ~(sets == representatives[:, None]).any(axis=1)
        sets[lacking, 0] = representatives[lacking]
        return np.sort(sets, axis=1)


class SharesDecoys(Cover):
    def draw(self, representatives, draws):
        sets = super().draw(representatives, draws)
        sets[:] = sets[:1]
        return sets


class RepeatsAString(Cover):
    def strings(self, members):
        return super().strings(members) * 2


class LetsTheTextOut(Cover):
    def strings(self, members):
        return (*super().strings(members)[1:], "no string of the pool")


class RemembersCase(Cover):
    def representatives(self, texts):
        return super().representatives(texts) + np.array([text.isupper() for text in texts])


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (AlwaysIncludes, testing.check_set_law),
        (SharesDecoys, testing.check_set_texts_are_independent),
        (RepeatsAString, testing.check_set_closure),
        (LetsTheTextOut, testing.check_set_closure),
        (RemembersCase, testing.check_set_is_sticky),
    ],
)
def test_each_promise_broken_by_a_set_mechanism_is_caught(broken, check, pool):
    with pytest.raises(AssertionError):
        check(broken(pool))


# The registry


def test_spec_and_keywords_build_the_same_object(toy):
    by_spec = mechanism("vickrey-cmp:epsilon=12.5,t=0.5", space=toy)
    by_keywords = mechanism("vickrey-cmp", space=toy, epsilon=12.5, t=0.5)
    assert by_spec == by_keywords
    assert hash(by_spec) == hash(by_keywords)
    assert by_spec != mechanism("vickrey-cmp", space=toy, epsilon=12.5)
    assert repr(by_spec) == "mechanism('vickrey-cmp:epsilon=12.5,t=0.5', space='toy')"


@pytest.mark.parametrize(
    "spec",
    [
        "cmp:epsilon=10",
        "cmp:epsilon=0.1234567890123",
        "mahalanobis:epsilon=1,lambda=0.75,compat=pypantera",
        "vickrey-mahalanobis:epsilon=3,lambda=1,t=0.5,law=exponential,weights=0.5/1/2",
    ],
)
def test_specs_parse_back(toy, spec):
    built = mechanism(spec, space=toy)
    assert built.spec == spec
    assert mechanism(built.spec, space=toy) == built


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("vikrey", "did you mean 'vickrey-cmp'"),
        ("zzz", "there are .*cmp, .*custext"),
        ("cmp:epsilom=3", "did you mean 'epsilon'"),
        ("cmp:epsilon", "key=value"),
        ("cmp:epsilon=ten", "must be a number"),
        ("cmp:epsilon=__import__('os')", "must be a number"),
        ("mahalanobis:compat=yes", "one of none, pypantera"),
    ],
)
def test_a_wrong_spec_says_what_to_type(toy, spec, says):
    with pytest.raises(UsageError, match=says):
        mechanism(spec, space=toy)


def test_a_taken_name_is_refused():
    @dataclass(frozen=True, repr=False, eq=False)
    class Impostor(CMP):
        name: ClassVar[str] = "cmp"

    with pytest.raises(UsageError, match="is taken"):
        register(Impostor)


@pytest.mark.parametrize("ids", [[-1], [5], [[0]], [0.5]])
def test_ids_outside_the_space_are_refused(toy, ids):
    with pytest.raises(UsageError, match="word id"):
        mechanism("cmp", space=toy).sample(np.array(ids), 1, np.random.default_rng(1))
