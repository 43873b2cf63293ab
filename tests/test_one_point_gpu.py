"""The noisy point behind a release ``once``, found on a GPU: as on the CPU, many places at a time.

Where torch is installed without a GPU, the same steps run on the processor.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import PCG64, Generator

torch = pytest.importorskip("torch", reason="torch is not installed (extra gpu)")

from test_attack_one_point import NOISE, released_once, tiny_space  # noqa: E402

from sottovoce import mechanism  # noqa: E402
from sottovoce.privacy.attacks import separating_points_gpu  # noqa: E402
from sottovoce.privacy.attacks.one_point import ROUNDS, OnePoint  # noqa: E402
from sottovoce.privacy.attacks.one_point_gpu import PointsOnGpu  # noqa: E402
from sottovoce.privacy.attacks.separating_points import SeparatingPoints, Shown  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def on_device(evidence):
    return PointsOnGpu(evidence.slopes, evidence.levels, evidence.mechanism.candidates, DEVICE)


def both(name, size, dimension, n, places):
    """Points by the CPU and by torch, and how far points are from their words."""
    space = tiny_space(size, dimension, 3)
    mech = mechanism(name, space=space, epsilon=6.0)
    evidence = OnePoint.of(mech, rng=Generator(PCG64(0)))
    words = Generator(PCG64(5)).integers(size, size=places)
    shown = [np.unique(ids) for ids in released_once(mech, words, n, 7)]
    on_cpu = evidence.points(shown)
    guesses = np.stack([evidence.guess(ids) for ids in shown])
    x = on_device(evidence).settle(shown, guesses, ROUNDS)
    return on_cpu, np.stack([evidence.mean + evidence.root @ row for row in x]), evidence


@pytest.mark.parametrize("name", NOISE)
@pytest.mark.parametrize(("size", "dimension", "n"), [(300, 8, 6), (2500, 30, 20)])
def test_points_are_those_of_the_cpu(name, size, dimension, n):
    on_cpu, on_gpu, evidence = both(name, size, dimension, n, 40)
    spread = np.sqrt(np.diag(evidence.root @ evidence.root.T).sum())
    apart = np.linalg.norm(on_cpu - on_gpu, axis=1) / spread
    assert np.median(apart) < 1e-4
    assert apart.max() < 0.01


def test_places_with_few_words_stand_beside_places_with_many():
    """Padding changes nothing: each place alone gives the same point."""
    space = tiny_space(400, 6, 1)
    mech = mechanism("cmp", space=space, epsilon=5.0)
    evidence = OnePoint.of(mech, rng=Generator(PCG64(0)))
    shown = [np.unique(released_once(mech, np.array([3 * n]), n, 7)[0]) for n in (2, 5, 12, 30)]
    guesses = np.stack([evidence.guess(ids) for ids in shown])
    points = on_device(evidence)
    together = points.settle(shown, guesses, ROUNDS)
    places = zip(shown, guesses, strict=True)
    alone = [points.settle([ids], guess[None], ROUNDS)[0] for ids, guess in places]
    np.testing.assert_allclose(together, np.stack(alone), atol=2e-3)


@pytest.fixture(scope="module")
def to_separate():
    """Places of different numbers of words, some of which may belong elsewhere."""
    evidence = OnePoint.of(
        mechanism("cmp", space=tiny_space(900, 20, 1), epsilon=6.0), rng=Generator(PCG64(0))
    )
    rng = Generator(PCG64(7))
    places = []
    for count in (8, 20, 33, 60, 1):
        words = np.sort(rng.choice(900, count, replace=False))
        unsure = np.union1d(words, rng.choice(900, 90, replace=False))
        places.append(Shown(words, unsure, 2 * count, evidence.guess(words)))
    return SeparatingPoints(evidence.slopes, evidence.levels), places


def test_points_that_separate_words_are_those_of_the_cpu(to_separate):
    separating, places = to_separate
    on_cpu = separating._of_block(places)
    on_gpu = separating.on_device(DEVICE, places)
    np.testing.assert_allclose(on_gpu, on_cpu, atol=2e-4)
    assert np.abs(on_cpu - np.stack([place.guess for place in places])).max() > 0.1, "they moved"


def test_blocks_on_a_gpu_change_no_point(to_separate, monkeypatch):
    separating, places = to_separate
    together = separating.on_device(DEVICE, places)
    monkeypatch.setattr(separating_points_gpu, "SCORES_ON_GPU", 1)
    np.testing.assert_allclose(separating.on_device(DEVICE, places), together, atol=2e-4)
