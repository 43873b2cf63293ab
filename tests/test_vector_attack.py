"""Inversion of noisy vectors: the exact posterior of a log."""

from __future__ import annotations

import numpy as np
import pytest

from sottovoce.collections import demo_log
from sottovoce.encoders import load_encoder
from sottovoce.errors import UsageError
from sottovoce.obfuscation.vectors import VectorNoise, noisy_vector
from sottovoce.privacy import QueryLog, SeenVector, invert


@pytest.fixture(scope="module")
def log(home):
    return QueryLog(demo_log()[:1500])


def seen(log, epsilon, count=30):
    mechanism = VectorNoise(load_encoder("light"), epsilon)
    rng = np.random.default_rng(1)
    texts = [log.queries[at] for at in rng.integers(len(log), size=count)]
    vectors = [noisy_vector(text, mechanism, rng=rng).vector for text in texts]
    rows = zip(texts, vectors, strict=True)
    return mechanism, [SeenVector(str(at), *row) for at, row in enumerate(rows)]


def test_the_posterior_is_bayes_rule_with_the_density_of_the_noise(log):
    mechanism, releases = seen(log, 40.0)
    vectors = log.vectors(mechanism.encoder).astype(np.float64)
    prior = np.random.default_rng(2).random(len(log)) + 0.1
    for weights in (None, prior):
        got = invert(releases, log, mechanism, prior=weights)
        for release, rank, posterior, name in zip(
            releases, got.inference.ranks, got.posteriors, got.named, strict=True
        ):
            densities = mechanism.noise_law.log_density(release.vector - vectors)
            beliefs = np.exp(densities - densities.max())
            beliefs *= 1 if weights is None else weights
            beliefs /= beliefs.sum()
            truth = log.queries.index(release.text)
            assert posterior == pytest.approx(beliefs[truth], rel=1e-6)
            assert rank == 1 + (beliefs > beliefs[truth]).sum()
            assert name == log.queries[beliefs.argmax()]
    assert release.text not in repr(got)


def test_beliefs_are_right_as_often_as_they_say(log):
    """The mean belief in the named query is the share that is named: no attack here does better."""
    mechanism, releases = seen(log, 45.0, count=200)
    got = invert(releases, log, mechanism)
    vectors = log.vectors(mechanism.encoder).astype(np.float64)
    largest = []
    for release in releases:
        densities = mechanism.noise_law.log_density(release.vector - vectors)
        largest.append(1 / np.exp(densities - densities.max()).sum())
    assert 0.1 < got.headline.share < 0.9
    assert abs(got.headline.share - np.mean(largest)) < 3 * 0.5 / np.sqrt(200)


def test_much_noise_leaves_chance_and_none_names_everything(log):
    mechanism, releases = seen(log, 0.01)
    blind = invert(releases, log, mechanism)
    assert blind.headline.share <= 0.05
    assert np.mean(blind.inference.ranks) == pytest.approx(len(log) / 2, rel=0.3)
    mechanism, releases = seen(log, 5000.0)
    certain = invert(releases, log, mechanism)
    assert certain.headline.share == 1
    assert "the encoder and epsilon; a log of 1,500" in certain.headline.sentence
    texts = [release.text for release in releases]
    assert list(certain.named) == texts
    assert not any(map(str.__eq__, certain.nearest_others, texts))


def test_originals_must_be_in_the_log_or_are_put_beside_it(log):
    mechanism, _ = seen(log, 5000.0, count=1)
    text = "a query that nobody asked before"
    release = SeenVector("1", text, noisy_vector(text, mechanism, rng=1).vector)
    with pytest.raises(UsageError, match="add_originals"):
        invert([release], log, mechanism)
    got = invert([release], log, mechanism, add_originals=True, prior=np.ones(len(log)))
    assert (got.named, got.inference.added) == ((text,), 1)
    with pytest.raises(UsageError, match="nothing to attack"):
        invert([], log, mechanism)
    with pytest.raises(UsageError, match="a positive number for each query"):
        invert([release], log, mechanism, add_originals=True, prior=np.ones(3))
