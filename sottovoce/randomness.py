"""Random generators: a secure one by default, reproducible ones for experiments.

Nothing here, nor anywhere in sottovoce, touches numpy's global generator.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence

from sottovoce.errors import UsageError
from sottovoce.threads import single_threaded_blas
from sottovoce.types import Float64Array, IntArray

Randomness: TypeAlias = int | SeedSequence | Generator | None
"""None: secure. An int or a SeedSequence: reproducible, for experiments only."""

UNIT = 256
"""Tokens drawn from one child generator; fixed, so that no batch size can change a result."""


class SecureGenerator(Generator):
    """A generator whose numbers nobody can repeat, so that any secure numbers do as well."""


def secure_generator() -> Generator:
    """A numpy generator on AES-128 in counter mode, keyed by the operating system."""
    return SecureGenerator(_aes_counter(secrets.token_bytes(16)))


def keyed_generator(digest: bytes) -> Generator:
    """The same kind of generator, decided by a keyed hash: whoever has the key has its numbers."""
    return Generator(_aes_counter(digest))


def _aes_counter(key: bytes) -> Any:
    from randomgen import AESCounter

    return AESCounter(key=int.from_bytes(key[:16], "little"))


def is_seeded(rng: Randomness) -> bool:
    """Whether the result can be reproduced, and so must not protect anybody."""
    return rng is not None


def is_secure(generator: Generator) -> bool:
    """Whether nobody can repeat the generator's numbers, so that any secure numbers do as well."""
    return isinstance(generator, SecureGenerator)


def as_seed(rng: int | SeedSequence) -> SeedSequence:
    """The root from which the generators of an experiment are spawned."""
    if isinstance(rng, SeedSequence):
        return rng
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer) or rng < 0:
        raise UsageError("a seed is a whole number, 0 or more (or None for secure randomness)")
    return SeedSequence(int(rng))


def as_generator(rng: Randomness) -> Generator:
    """The generator that this stands for: a secure one without a seed."""
    if rng is None:
        return secure_generator()
    return rng if isinstance(rng, Generator) else Generator(PCG64(as_seed(rng)))


class Draws:
    """Random numbers for a run of tokens, some of them from each of several generators.

    Every method answers one row for each token. A token's numbers depend only on its own
    generator and its place there, never on which other tokens share the batch.
    """

    def __init__(self, units: Sequence[tuple[Generator, int]]) -> None:
        self.units = units
        self.size = sum(count for _, count in units)

    @property
    def secure(self) -> bool:
        """Whether the numbers may come from elsewhere, if they are as secure: none is repeated."""
        return all(is_secure(generator) for generator, _ in self.units)

    def parts(self, count: int) -> list[tuple[slice, Draws]]:
        """At most ``count`` runs of rows, each with its draws, that can be drawn at the same time.

        No two share a generator, and each generator gives the numbers that it would give here.
        """
        if count > 1 and self.secure:
            ends = np.linspace(0, self.size, count + 1, dtype=np.int64).tolist()
            return [
                (slice(start, end), Draws([(secure_generator(), end - start)]))
                for start, end in pairwise(ends)
            ]
        if len({id(generator) for generator, _ in self.units}) < len(self.units):
            count = 1
        # Whole generators: their rows are multiplied together, and drawn one after another.
        ends = np.cumsum([0, *(rows for _, rows in self.units)])
        cuts = np.searchsorted(ends, np.linspace(0, self.size, max(count, 1) + 1))
        return [
            (slice(int(ends[first]), int(ends[last])), Draws(self.units[first:last]))
            for first, last in pairwise(dict.fromkeys([0, *cuts[1:-1].tolist(), len(self.units)]))
        ]

    def normal(self, dimension: int) -> Float64Array:
        """Standard normal vectors, (size, dimension)."""
        out = np.empty((self.size, dimension))
        start = 0
        for generator, count in self.units:
            generator.standard_normal(out=out[start : start + count])
            start += count
        return out

    def gamma(self, shape: float) -> Float64Array:
        """Gamma variates of this shape and scale 1, (size,)."""
        return np.concatenate([g.standard_gamma(shape, count) for g, count in self.units])

    def uniform(self) -> Float64Array:
        """Uniform variates in [0, 1), (size,)."""
        return np.concatenate([g.random(count) for g, count in self.units])

    def below(self, bound: int) -> IntArray:
        """Whole numbers uniform in 0..bound-1, (size,)."""
        return np.concatenate([g.integers(bound, size=count) for g, count in self.units])

    def only(self, rows: IntArray) -> Draws:
        """Draws for some rows alone, in ascending order; the others' generators stay untouched.

        Which rows of a generator are still asked for must depend on its own rows only.
        """
        ends = np.cumsum([count for _, count in self.units])
        places = np.searchsorted(rows, ends)
        counts = np.diff(places, prepend=0)
        drawing = [(g, int(n)) for (g, _), n in zip(self.units, counts, strict=True) if n]
        return Draws(drawing or [(self.units[0][0], 0)])

    def orders(self, length: int) -> IntArray:
        """Uniform permutations of 0..length-1, (size, length)."""
        identity = np.arange(length)
        rows = [
            g.permuted(np.tile(identity, (count, 1)), axis=1) for g, count in self.units if count
        ]
        return np.concatenate(rows) if rows else np.empty((0, length), dtype=np.int64)

    def times(self, rows: Float64Array, matrix: Float64Array) -> Float64Array:
        """``rows @ matrix``, generator by generator.

        BLAS rounds differently for different shapes and numbers of threads; the rows of one
        generator always have the same shape, so a token's result cannot depend on its batch.
        """
        out = np.empty((self.size, matrix.shape[1]))
        start = 0
        with single_threaded_blas():
            for _, count in self.units:
                np.matmul(rows[start : start + count], matrix, out=out[start : start + count])
                start += count
        return out


class Streams:
    """The generators of a whole run: one child for each text, variant, purpose and 256 tokens.

    Without a seed there is one secure generator for everything: nothing needs to be
    reproduced, and it is fast. ``label`` names the mechanism: two mechanisms given the same seed
    must not share their noise, or comparing them would mislead.
    """

    WORDS, UNKNOWN_WORDS, DEALING, ORDER = range(4)

    def __init__(self, rng: Randomness, label: str) -> None:
        self.label = label
        digest = hashlib.blake2b(label.encode(), digest_size=8).digest()
        self._label_key = tuple(np.frombuffer(digest, dtype="<u4").tolist())
        self.reproducible = is_seeded(rng)
        self.shared = not self.reproducible
        """Whether one generator serves everything, so that it can be asked for much at once."""
        if isinstance(rng, Generator):
            rng = SeedSequence([int(part) for part in rng.integers(1 << 63, size=4)])
        self._seed = None if rng is None else as_seed(rng)
        self._secure = secure_generator() if rng is None else None

    def generator(self, text: int, variant: int, purpose: int, unit: int) -> Generator:
        """The generator for tokens 256 * unit and following of a variant of a text."""
        if self._seed is None:
            assert self._secure is not None  # noqa: S101 - one of the two is set
            return self._secure
        key = (*self._seed.spawn_key, *self._label_key, text, variant, purpose, unit)
        child = SeedSequence(self._seed.entropy, spawn_key=key, pool_size=self._seed.pool_size)
        return Generator(PCG64(child))

    def draws(self, text: int, variant: int, purpose: int, count: int) -> Draws:
        """Draws for ``count`` tokens of one variant of one text."""
        return Draws(
            [
                (self.generator(text, variant, purpose, start // UNIT), min(UNIT, count - start))
                for start in range(0, count, UNIT)
            ]
        )

    def __reduce__(self) -> tuple[type[Streams], tuple[SeedSequence | None, str]]:
        # A worker process makes its own secure generator: a copied state would repeat itself.
        return Streams, (self._seed, self.label)
