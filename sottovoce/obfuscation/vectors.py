"""A text in, its noisy sentence vector out: what a store of vectors may be asked with.

    q' = v(text) + z,   z of density proportional to exp(-epsilon |z|) in d dimensions,

rounded to a public grid. By the triangle inequality the density of q' changes by a factor of at
most exp(epsilon |v - v'|) from one text to another. Everything after q' looks at q' alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from sottovoce.arrays import row_norms
from sottovoce.encoders import Encoder
from sottovoce.encoders.base import has_unit_length, one_by_one, query_side
from sottovoce.errors import SottovoceError
from sottovoce.guarantees import MANY_RELEASES, Guarantee
from sottovoce.mechanisms.base import Mechanism, parameter, require, require_positive, resource
from sottovoce.mechanisms.comet import ANY_LENGTH, ANY_TWO, LONGEST, NEAR_TEXTS
from sottovoce.mechanisms.noise import SphericalNoise
from sottovoce.obfuscation.memory import Memory
from sottovoce.obfuscation.obfuscator import SEEDED, remembered_guarantee
from sottovoce.randomness import Draws, Randomness, Streams, is_seeded
from sottovoce.text import folded_text
from sottovoce.types import Float32Array, FloatArray

GRID = 2.0**-14
"""The step of the public grid that noisy vectors are rounded to. Rounding comes after the noise,
so it costs nothing; it hides the last bits of floating-point sums, by which one could tell from
which vector a sum was made. Far smaller than the noise, and exact in 32-bit floats."""
FARTHEST = 2**24 - 1
"""Steps from 0: the largest whole number of them that a 32-bit float holds exactly with all those
below. Coordinates beyond are cut off there, which is post-processing, too."""
EPSILON = 60.0
"""Unless something else is asked for: who has a log of 120,644 queries names one query in five."""
OTHER_WORDINGS = (
    "another wording of the same question is another vector with noise of its own: t searches on "
    "one subject tell t times as much of it"
)


@dataclass(frozen=True, repr=False, eq=False)
class VectorNoise(Mechanism):
    """Spherical noise on the sentence vector of a text, by the encoder that a store uses.

    epsilon is the true budget, per unit of Euclidean distance: nothing is hidden in the dimension.
    """

    name: ClassVar[str] = "vector"
    summary: ClassVar[str] = "adds spherical noise to a text's sentence vector, and releases that"
    paper: ClassVar[str] = (
        "Chatzikokolakis, Andres, Bordenabe, Palamidessi: Broadening the Scope of Differential "
        "Privacy Using Metrics, PETS 2013"
    )
    cuts_texts: ClassVar[bool] = False
    has_density: ClassVar[bool] = True

    encoder: Encoder = resource()
    epsilon: float = parameter(EPSILON, "privacy budget per unit of distance between vectors")

    def __post_init__(self) -> None:
        require_positive(self.epsilon)

    @property
    def noise_law(self) -> SphericalNoise:
        """Uniform direction, Gamma radius of mean d / epsilon."""
        return SphericalNoise(self.encoder.dimension, self.epsilon)

    @property
    def unit_length(self) -> bool:
        """Whether all texts have vectors of length 1, but for blank ones."""
        return has_unit_length(self.encoder)

    @property
    def made_with(self) -> str:
        """The hash of the encoder."""
        return self.encoder.fingerprint

    @property
    def metric_space(self) -> tuple[str, str]:
        """The encoder, by its name without folders, which could name somebody."""
        return Path(self.encoder.name).name, self.encoder.fingerprint

    @property
    def guarantee(self) -> Guarantee:
        """Metric privacy; for vectors of length 1 also a bound between any two texts."""
        bound = (
            f"vectors have length 1, so a release tells any two texts apart by at most "
            f"{2 * self.epsilon:.4g} nats: local differential privacy with that epsilon"
        )
        metric = f"euclidean({self.metric_space[0]})"
        anywhere = bound if self.unit_length else ANY_LENGTH
        caveats = (NEAR_TEXTS, OTHER_WORDINGS, MANY_RELEASES, anywhere)
        return Guarantee("metric", self.epsilon, metric, scope="text", caveats=caveats)

    def facts(self) -> dict[str, float]:
        """The bound for every two texts, and how long the noise is on average."""
        bound = {ANY_TWO: 2 * self.epsilon} if self.unit_length else {}
        return {**bound, "mean length of the noise": self.encoder.dimension / self.epsilon}

    @cached_property
    def _alone(self) -> Encoder:
        return one_by_one(query_side(self.encoder))

    def encode(self, texts: Sequence[str]) -> Float32Array:
        """The vectors of private texts, each encoded alone: the same bits every time."""
        vectors = self._alone.encode(texts)
        norms = row_norms(vectors)
        longest = LONGEST if self.unit_length else np.inf
        if not (np.isfinite(norms) & (norms <= longest)).all():
            raise SottovoceError(
                "the encoder gave a vector longer than 1, or no numbers: nothing was released"
            )
        return vectors

    def move(self, vectors: Float32Array, draws: Draws) -> Float32Array:
        """The noisy vectors, on the grid; ``draws`` has a row for each."""
        return on_grid(vectors + self.noise_law.noise(draws))


def on_grid(points: FloatArray) -> Float32Array:
    """The nearest points of the public grid, exact in float32."""
    steps = np.clip(np.rint(points / GRID), -FARTHEST, FARTHEST)
    return np.asarray(steps * GRID, dtype=np.float32)


@dataclass(frozen=True, repr=False)
class NoisyVector:
    """What came of a text. ``vector`` may leave; ``text`` and ``true`` are for its owner alone."""

    text: str
    vector: Float32Array
    true: Float32Array
    mechanism: str
    guarantee: Guarantee
    seeded: bool
    word_hashes: tuple[str, ...] = ()
    """Where draws are remembered, a keyed hash of the text: what the ledger knows it by."""

    @property
    def noise_to_signal(self) -> float | None:
        """How many times as long as the true vector the noise is; None for a vector of zeros."""
        length, noise = row_norms(np.stack([self.true, self.vector - self.true])).tolist()
        return noise / length if length else None

    def __repr__(self) -> str:
        return f"NoisyVector({self.mechanism}, {len(self.vector)} dimensions)"


def noisy_vector(
    text: str,
    mechanism: VectorNoise,
    *,
    rng: Randomness = None,
    memory_key: bytes | None = None,
) -> NoisyVector:
    """The noisy vector of a text; with a ``memory_key`` always the same for the same text.

    The text is encoded in the form in which texts are compared: equal noise must not move two
    different vectors.
    """
    require(
        memory_key is None or not is_seeded(rng),
        "texts drawn for from a seed are not remembered: give a seed or a memory_key",
    )
    folded = folded_text(text)
    names = [("text", folded)]
    guarantee = mechanism.guarantee
    hashes: tuple[str, ...] = ()
    streams: Streams
    if memory_key is not None:
        memory = Memory(memory_key, mechanism, 1, "once")
        streams, hashes = memory.streams(names), memory.hashes(names)
        guarantee = remembered_guarantee(guarantee)
    else:
        streams = Streams(rng, mechanism.spec)
        guarantee = guarantee.with_caveats(*((SEEDED,) if streams.reproducible else ()))
    try:
        true = mechanism.encode([folded])
        moved = mechanism.move(true, Draws([(streams.generator(0, 0, Streams.WORDS, 0), 1)]))
    except SottovoceError:
        raise
    except Exception as error:
        # The cause could hold the text: say what kind of error it was, and nothing of it.
        raise SottovoceError(
            f"the text could not be encoded ({type(error).__name__}): nothing was released"
        ) from None
    return NoisyVector(
        text=text,
        vector=moved[0],
        true=true[0],
        mechanism=mechanism.spec,
        guarantee=guarantee,
        seeded=streams.reproducible,
        word_hashes=hashes,
    )
