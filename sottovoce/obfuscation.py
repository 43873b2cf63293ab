"""Obfuscator: texts in, N variants each out, in batches, by a release strategy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

import numpy as np

from sottovoce.errors import SottovoceError, UsageError
from sottovoce.guarantees import Guarantee
from sottovoce.mechanisms.base import ROWS_AT_A_TIME, Mechanism, WordMechanism, require
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.randomness import UNIT, Draws, Randomness, Streams
from sottovoce.text import PreparedText, TextPipeline
from sottovoce.types import IntArray

Release = Literal["independent", "once"]
RELEASES: tuple[Release, ...] = ("independent", "once")

TEXTS_AT_A_TIME = 256
ONE_POINT = "all variants are read off one noisy point per word: together they cost one release"
SEEDED = "drawn from a seed, so reproducible by anybody who has it: for experiments only"


@dataclass(frozen=True, repr=False)
class Obfuscation:
    """What came of one text. ``text``, ``unknown`` and ``kept`` are for its owner alone."""

    text: str
    variants: tuple[str, ...]
    mechanism: str
    epsilon: float | None
    release: Release
    guarantee: Guarantee
    spent: float | None
    """Nats per unit of distance (per word for notion ``local``); None: nothing bounds it."""
    unchanged: float | None
    """Share of the protected words that came back as they were, over all variants; counted, not
    a measure of privacy: a word that changed may still be guessed. None: no word was protected."""
    unknown: tuple[str, ...]
    kept: tuple[str, ...]
    seeded: bool

    def to_dict(self) -> dict[str, Any]:
        """The JSON line of ``sottovoce obfuscate``."""
        return {
            "text": self.text,
            "variants": list(self.variants),
            "mechanism": self.mechanism,
            "epsilon": self.epsilon,
            "release": self.release,
            "guarantee": self.guarantee.to_dict(),
            "spent": self.spent,
            "unchanged": self.unchanged,
            "unknown": list(self.unknown),
            "kept": list(self.kept),
            "seeded": self.seeded,
        }

    def __repr__(self) -> str:
        return f"Obfuscation({self.mechanism}, {len(self.variants)} variants, spent={self.spent})"


@dataclass(frozen=True)
class Obfuscator:
    """Applies a mechanism to texts.

    release
        ``independent``: N fresh draws, costing N times epsilon. ``once`` (noise mechanisms): one
        noisy point for each word, all N variants read off that point, costing one epsilon.
    rng
        None for secure randomness; a seed for experiments, giving the same result for any batch
        size and number of workers. Text number i, counted from ``first``, has its own generators.
    """

    mechanism: Mechanism
    n: int = 1
    release: Release = "independent"
    pipeline: TextPipeline = field(default_factory=TextPipeline)
    rng: Randomness = None
    batch_size: int = TEXTS_AT_A_TIME
    workers: int = 1

    def __post_init__(self) -> None:
        require(self.n >= 1, f"ask for at least one variant, not {self.n}")
        require(self.batch_size >= 1, f"a batch holds at least one text, not {self.batch_size}")
        require(self.workers >= 1, f"at least one worker is needed, not {self.workers}")
        require(
            self.release in RELEASES,
            f"unknown release strategy '{self.release}': use one of {', '.join(RELEASES)}",
        )
        require(
            isinstance(self.mechanism, WordMechanism),
            f"mechanism '{self.mechanism.name}' does not work word by word",
        )
        if self.release == "once":
            require(
                isinstance(self.mechanism, NoiseMechanism),
                f"release 'once' needs a noise mechanism; '{self.mechanism.name}' has none: use "
                "'independent'",
            )
            require(
                self.n <= len(self.mechanism.space.output),
                f"release 'once' reads {self.n} different words off one point, but the output "
                f"vocabulary has {len(self.mechanism.space.output)}: ask for fewer variants",
            )

    def obfuscate(self, texts: Iterable[str], *, first: int = 0) -> Iterator[Obfuscation]:
        """Obfuscate texts one after the other, in order, a batch at a time.

        ``first`` is the number of the first text: whoever splits a seeded run gives each part
        its place, and gets what the whole run would have given.
        """
        if isinstance(texts, str):
            raise UsageError("give a list of texts, not a single string")
        return self._obfuscate(texts, first, Streams(self.rng, self.mechanism.spec))

    def _obfuscate(
        self, texts: Iterable[str], first: int, streams: Streams
    ) -> Iterator[Obfuscation]:
        if self.workers > 1:
            from sottovoce.workers import obfuscate_in_processes

            yield from obfuscate_in_processes(self, streams, texts, first)
            return
        for batch in batches(texts, self.batch_size):
            yield from self.obfuscate_batch(batch, first, streams)
            first += len(batch)

    def obfuscate_batch(
        self, texts: Sequence[str], first: int, streams: Streams
    ) -> list[Obfuscation]:
        """Obfuscate texts number ``first`` and following together."""
        space = self.mechanism.space
        try:
            prepared = [self.pipeline.prepare(text, space) for text in texts]
            substitutes = _Batch(self, prepared, first, streams).substitutes()
            return [self._result(p, s, streams) for p, s in zip(prepared, substitutes, strict=True)]
        except SottovoceError:
            raise
        except Exception as error:
            # The cause could name a word: say what kind of error it was, and nothing of it.
            raise SottovoceError(
                f"{self.mechanism.name} failed ({type(error).__name__}) between texts {first + 1} "
                f"and {first + len(texts)}; nothing of them was released"
            ) from None

    def _result(
        self, prepared: PreparedText, substitutes: IntArray, streams: Streams
    ) -> Obfuscation:
        words = self.mechanism.space.words(substitutes.ravel())
        width = len(prepared)
        rows = [words[v * width : (v + 1) * width] for v in range(self.n)]
        guarantee = self.mechanism.guarantee.with_caveats(*prepared.caveats())
        if self.release == "once" and self.n > 1:
            guarantee = guarantee.with_caveats(ONE_POINT)
        if streams.reproducible:
            guarantee = guarantee.with_caveats(SEEDED)
        releases = 0 if not len(prepared.ids) else 1 if self.release == "once" else self.n
        spent = guarantee.loss(1.0, releases)
        returned = substitutes[:, ~prepared.uniform] == prepared.ids
        return Obfuscation(
            text=prepared.text,
            variants=tuple(prepared.render_many(rows)),
            mechanism=self.mechanism.spec,
            epsilon=getattr(self.mechanism, "epsilon", None),
            release=self.release,
            guarantee=guarantee,
            spent=spent if np.isfinite(spent) else None,
            unchanged=float(returned.mean()) if returned.size else None,
            unknown=prepared.unknown,
            kept=prepared.kept,
            seeded=streams.reproducible,
        )


def batches(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    """The texts in lists of ``size``."""
    source = iter(texts)
    while batch := list(islice(source, size)):
        yield batch


class _Batch:
    """All words of a batch of texts, laid end to end so that the mechanism sees large arrays.

    The layout is a sequence of units, each at most 256 words of one variant of one text with a
    generator of its own, grouped into calls of bounded size.
    """

    def __init__(
        self, obfuscator: Obfuscator, texts: list[PreparedText], first: int, streams: Streams
    ) -> None:
        self.n, self.once = obfuscator.n, obfuscator.release == "once"
        self.mechanism = obfuscator.mechanism
        self.texts, self.first, self.streams = texts, first, streams

    def substitutes(self) -> list[IntArray]:
        """The ids of the substitutes, one array (n, slots) for each text."""
        filled = [np.empty((self.n, len(text)), dtype=np.int64) for text in self.texts]
        self._fill_unknown(filled)
        known = [np.empty((self.n, len(text.ids)), dtype=np.int64) for text in self.texts]
        for units in self._calls():
            self._fill_known(known, units)
        for text, all_slots, words in zip(self.texts, filled, known, strict=True):
            all_slots[:, ~text.uniform] = words
        return filled

    def _fill_unknown(self, filled: list[IntArray]) -> None:
        released = self.mechanism.space.output.ids
        for number, (text, slots) in enumerate(zip(self.texts, filled, strict=True)):
            count = int(text.uniform.sum())
            for variant in range(self.n if count else 0):
                draws = self.streams.draws(
                    self.first + number, variant, Streams.UNKNOWN_WORDS, count
                )
                slots[variant, text.uniform] = released[draws.below(len(released))]

    def _calls(self) -> Iterator[list[tuple[int, int, int, int]]]:
        """Units (text, variant, start, end), grouped so that a call has a bounded size."""
        limit = max(UNIT, ROWS_AT_A_TIME // (self.n if self.once else 1))
        units: list[tuple[int, int, int, int]] = []
        rows = 0
        for number, text in enumerate(self.texts):
            for variant in range(1 if self.once else self.n):
                for start in range(0, len(text.ids), UNIT):
                    end = min(start + UNIT, len(text.ids))
                    if rows + end - start > limit:
                        yield units
                        units, rows = [], 0
                    units.append((number, variant, start, end))
                    rows += end - start
        if units:
            yield units

    def _fill_known(self, known: list[IntArray], units: list[tuple[int, int, int, int]]) -> None:
        ids = np.concatenate([self.texts[number].ids[a:b] for number, _, a, b in units])
        draws = self._draws(units, Streams.WORDS)
        if self.once:
            assert isinstance(self.mechanism, NoiseMechanism)  # noqa: S101 - checked at the start
            points = self.mechanism.draw_once(ids, self.n, draws)
            dealt = self._draws(units, Streams.DEALING).orders(self.n)
            drawn = np.take_along_axis(points, dealt, axis=1)
        else:
            assert isinstance(self.mechanism, WordMechanism)  # noqa: S101 - checked at the start
            drawn = self.mechanism.draw(ids, draws)[:, None]
        row = 0
        for number, variant, start, end in units:
            variants = slice(None) if self.once else slice(variant, variant + 1)
            known[number][variants, start:end] = drawn[row : row + end - start].T
            row += end - start

    def _draws(self, units: list[tuple[int, int, int, int]], purpose: int) -> Draws:
        generators = [
            (
                self.streams.generator(self.first + number, variant, purpose, start // UNIT),
                end - start,
            )
            for number, variant, start, end in units
        ]
        if not self.streams.reproducible:
            return Draws([(generators[0][0], sum(count for _, count in generators))])
        return Draws(generators)
