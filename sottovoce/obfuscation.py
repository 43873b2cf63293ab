"""Obfuscator: texts in, N variants each out, in batches, by a release strategy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

import numpy as np

from sottovoce.errors import SottovoceError, UsageError
from sottovoce.guarantees import MANY_RELEASES, WORD_BY_WORD, Guarantee
from sottovoce.mechanisms.base import (
    Mechanism,
    PoolMechanism,
    TextMechanism,
    WordMechanism,
    require,
)
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.randomness import Randomness, Streams
from sottovoce.text import PreparedText, TextPipeline
from sottovoce.text.resolve import comparable
from sottovoce.types import IntArray
from sottovoce.word_release import WordRelease

Release = Literal["independent", "once"]
RELEASES: tuple[Release, ...] = ("independent", "once")

TEXTS_AT_A_TIME = 256
ONE_POINT = "all variants are read off one noisy point per word: together they cost one release"
ONE_POINT_OF_TEXT = (
    "all variants are read off one noisy point of the text: together they cost one release"
)
ALL_PROTECTED = (
    "no word of the text is of the kind to be protected: it would have come out as it is, so all "
    "its words were protected"
)
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
    a measure of privacy: a word that changed may still be guessed. None: no word was protected.
    Where texts are replaced as a whole, the share of variants that are the text."""
    unknown: tuple[str, ...]
    kept: tuple[str, ...]
    seeded: bool
    made_with: str | None = None
    """A hash of the word space and output vocabulary, or of the pool."""

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
            "made_with": self.made_with,
        }

    def __repr__(self) -> str:
        return f"Obfuscation({self.mechanism}, {len(self.variants)} variants, spent={self.spent})"


@dataclass(frozen=True)
class Obfuscator:
    """Applies a mechanism to texts.

    pipeline
        How texts are cut and which words are protected; by default as the mechanism's paper has it.
    release
        ``independent``: N fresh draws, costing N times epsilon. ``once`` (noise mechanisms): one
        noisy point for each word (or text), all N variants read off it, costing one epsilon.
    rng
        None for secure randomness; a seed for experiments, giving the same result for any batch
        size and number of workers. Text number i, counted from ``first``, has its own generators.
    """

    mechanism: Mechanism
    n: int = 1
    release: Release = "independent"
    pipeline: TextPipeline = None  # type: ignore[assignment]  # filled in below
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
        if self.pipeline is None:
            object.__setattr__(self, "pipeline", TextPipeline(protect=self.mechanism.protects))
        if self.release == "once":
            self._check_once()

    def _check_once(self) -> None:
        chosen = self.mechanism
        if isinstance(chosen, NoiseMechanism):
            there, what, where = len(chosen.space.output), "words", "output vocabulary"
        elif isinstance(chosen, PoolMechanism):
            there, what, where = len(chosen.pool), "strings", "pool"
        else:
            raise UsageError(
                f"release 'once' needs a noise mechanism; '{chosen.name}' draws no noise: use "
                "'independent'"
            )
        require(
            self.n <= there,
            f"release 'once' reads {self.n} different {what} off one point, but the {where} has "
            f"{there}: ask for fewer variants",
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
        try:
            if isinstance(self.mechanism, WordMechanism):
                return self._word_by_word(self.mechanism, texts, first, streams)
            if isinstance(self.mechanism, PoolMechanism):
                return self._from_pool(self.mechanism, texts, first, streams)
            assert isinstance(self.mechanism, TextMechanism)  # noqa: S101 - there are three kinds
            return [
                self._as_a_whole(self.mechanism, text, first + number, streams)
                for number, text in enumerate(texts)
            ]
        except SottovoceError:
            raise
        except Exception as error:
            # The cause could name a word: say what kind of error it was, and nothing of it.
            raise SottovoceError(
                f"{self.mechanism.name} failed ({type(error).__name__}) between texts {first + 1} "
                f"and {first + len(texts)}; nothing of them was released"
            ) from None

    def _word_by_word(
        self, mechanism: WordMechanism, texts: Sequence[str], first: int, streams: Streams
    ) -> list[Obfuscation]:
        prepared = [self._prepared(text, mechanism) for text in texts]
        once = self.release == "once"
        release = WordRelease(mechanism, self.n, once, prepared, first, streams)
        return [
            self._filled(mechanism, each, chosen, streams)
            for each, chosen in zip(prepared, release.substitutes(), strict=True)
        ]

    def _prepared(self, text: str, mechanism: WordMechanism) -> PreparedText:
        """The text with its slots; one of unprotected words alone is protected altogether."""
        prepared = self.pipeline.prepare(text, mechanism.space)
        if len(prepared) or not prepared.counts.kept_unprotected:
            return prepared
        everything = replace(self.pipeline, protect="all")
        return replace(everything.prepare(text, mechanism.space), remark=ALL_PROTECTED)

    def _filled(
        self,
        mechanism: WordMechanism,
        prepared: PreparedText,
        substitutes: IntArray,
        streams: Streams,
    ) -> Obfuscation:
        words = mechanism.space.words(substitutes.ravel())
        width = len(prepared)
        rows = [words[v * width : (v + 1) * width] for v in range(self.n)]
        returned = substitutes[:, ~prepared.uniform] == prepared.ids
        caveats = prepared.caveats()
        if prepared.releases_punctuation and WORD_BY_WORD in mechanism.guarantee.caveats:
            caveats = caveats[1:]  # The mechanism says it already.
        return self._result(
            prepared.text,
            tuple(prepared.render_many(rows)),
            streams,
            caveats=caveats,
            protected=len(prepared.ids),
            unchanged=float(returned.mean()) if returned.size else None,
            unknown=prepared.unknown,
            kept=prepared.kept,
        )

    def _from_pool(
        self, mechanism: PoolMechanism, texts: Sequence[str], first: int, streams: Streams
    ) -> list[Obfuscation]:
        places = mechanism.release(texts, self.n, self.release == "once", first, streams)
        strings = mechanism.pool.strings
        released = [tuple(strings[place] for place in row) for row in places.tolist()]
        return [
            self._result(
                text,
                variants,
                streams,
                caveats=(),
                protected=1,
                unchanged=[*map(folded_text, variants)].count(folded_text(text)) / self.n,
                unknown=(),
                kept=(),
            )
            for text, variants in zip(texts, released, strict=True)
        ]

    def _as_a_whole(
        self, mechanism: TextMechanism, text: str, number: int, streams: Streams
    ) -> Obfuscation:
        rng = streams.generator(number, 0, Streams.WORDS, 0)
        rewriting = mechanism.rewrite(text, self.n, self.pipeline, rng)
        folded = {folded_text(variant) for variant in rewriting.variants}
        if folded_text(text) in folded or not len(folded) == len(rewriting.variants) <= self.n:
            raise SottovoceError(
                f"{mechanism.name} gave a text back, or a variant twice; nothing was released"
            )
        return self._result(
            text,
            rewriting.variants,
            streams,
            caveats=rewriting.caveats,
            protected=len(rewriting.variants),
            unchanged=None,
            unknown=rewriting.unknown,
            kept=rewriting.kept,
        )

    def _result(
        self,
        text: str,
        variants: tuple[str, ...],
        streams: Streams,
        *,
        caveats: tuple[str, ...],
        protected: int,
        unchanged: float | None,
        unknown: tuple[str, ...],
        kept: tuple[str, ...],
    ) -> Obfuscation:
        guarantee = self.mechanism.guarantee.with_caveats(*caveats)
        if self.release == "once" and self.n > 1:
            others = tuple(each for each in guarantee.caveats if each != MANY_RELEASES)
            whole = isinstance(self.mechanism, PoolMechanism)
            said = ONE_POINT_OF_TEXT if whole else ONE_POINT
            guarantee = replace(guarantee, caveats=(*others, said))
        if streams.reproducible:
            guarantee = guarantee.with_caveats(SEEDED)
        releases = 0 if not protected else 1 if self.release == "once" else self.n
        spent = guarantee.loss(1.0, releases)
        return Obfuscation(
            text=text,
            variants=variants,
            mechanism=self.mechanism.spec,
            epsilon=getattr(self.mechanism, "epsilon", None),
            release=self.release,
            guarantee=guarantee,
            spent=spent if np.isfinite(spent) else None,
            unchanged=unchanged,
            unknown=unknown,
            kept=kept,
            seeded=streams.reproducible,
            made_with=self.mechanism.made_with,
        )


def folded_text(text: str) -> str:
    """A text as a reader sees it: neither case nor spacing tell two texts apart."""
    return " ".join(comparable(text).split())


def batches(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    """The texts in lists of ``size``."""
    source = iter(texts)
    while batch := list(islice(source, size)):
        yield batch
