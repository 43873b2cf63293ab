"""Obfuscator: texts in, N variants of each out, in batches, by a release strategy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from sottovoce.choices import RELEASES, Release
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.guarantees import MANY_RELEASES, SUBJECT, WORD_BY_WORD, Guarantee
from sottovoce.mechanisms.base import (
    Mechanism,
    PoolMechanism,
    SetMechanism,
    TextMechanism,
    WordMechanism,
    require,
)
from sottovoce.mechanisms.company import Company
from sottovoce.obfuscation.memory import KeyedStreams, Memory, setting_of
from sottovoce.obfuscation.open_words import OpenWords
from sottovoce.obfuscation.result import Obfuscation
from sottovoce.obfuscation.words import MOST_WORDS, WordRelease, require_room
from sottovoce.randomness import Draws, Randomness, Streams, is_seeded
from sottovoce.text import Counts, PreparedText, TextPipeline, folded_text
from sottovoce.text.prepared import SHUFFLED
from sottovoce.types import IntArray
from sottovoce.workers import ordered_map

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
REMEMBERED_WORDS = (
    "the same word always gets the same substitutes: which places of a text, and which texts, hold "
    "equal words shows, and no number of nats covers it"
)
REMEMBERED_TEXTS = "the same text always gets the same variants: that it came again shows"
AFRESH = (
    "this set was drawn afresh: the same text again gets other company, and what several of its "
    "sets have in common gives it away; with a ledger, or a memory_key, it gets the same"
)
WHO_HAS_THE_KEY = "whoever has the key by which words are remembered can undo what was released"
ANY_WORD = "word, listed or not"
DISTINCT_WORDS = "distinct word (equal words show)"

Batch: TypeAlias = tuple[list[str], int]
"""Some texts, and the number of the first."""


@dataclass(frozen=True)
class Obfuscator:
    """Applies a mechanism to texts.

    pipeline
        How texts are cut and which words are protected; by default as the mechanism's paper has it.
    release
        ``independent``: N fresh draws, costing N times epsilon. ``once`` (noise mechanisms): one
        noisy point for each word (or text), all N variants read off it, costing one epsilon. A
        mechanism that releases sets decides both: ``once``, and as many variants as a set has.
    rng
        None for secure randomness; a seed for experiments, giving the same result for any batch
        size and number of workers. Text number i, counted from ``first``, has its own generators.
    memory_key
        None, or a secret, such as the ledger's: each word then always gets the same draw, so that
        saying it again tells nothing more of it. See :mod:`sottovoce.obfuscation.memory`.
    """

    mechanism: Mechanism
    n: int = 1
    release: Release = "independent"
    pipeline: TextPipeline = None  # type: ignore[assignment]  # filled in below
    rng: Randomness = None
    batch_size: int = TEXTS_AT_A_TIME
    workers: int = 1
    memory_key: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        require(self.n >= 1, f"ask for at least one variant, not {self.n}")
        require_room(self.n, 1)
        if isinstance(self.mechanism, SetMechanism):
            self._take_sets(self.mechanism)
        require(self.batch_size >= 1, f"a batch holds at least one text, not {self.batch_size}")
        require(self.workers >= 1, f"at least one worker is needed, not {self.workers}")
        require(
            self.release in RELEASES,
            f"unknown release strategy '{self.release}': use one of {', '.join(RELEASES)}",
        )
        require(
            self.memory_key is None or not is_seeded(self.rng),
            "words drawn from a seed are not remembered: give a seed or a memory_key",
        )
        if self.pipeline is None:
            object.__setattr__(self, "pipeline", TextPipeline(protect=self.mechanism.protects))
        require(
            self.mechanism.by_word or (self.pipeline.order, self.pipeline.pad_to) == ("kept", 0),
            f"{self.mechanism.name} replaces whole texts: their words are neither shuffled nor "
            "padded",
        )
        if self.release == "once":
            self.mechanism.check_once(self.n)

    def _take_sets(self, mechanism: SetMechanism) -> None:
        """Let the mechanism decide how many variants there are; together they are one release."""
        size = mechanism.set_size
        require(
            self.n in (1, size),
            f"{mechanism.name} releases sets of {size}: leave the number of variants (-n) out, and "
            "set its k",
        )
        object.__setattr__(self, "n", size)
        object.__setattr__(self, "release", "once")

    @property
    def _encodes(self) -> bool:
        """Whether words have a vector, and so the promise, that the space does not list."""
        mechanism = self.mechanism
        return (
            isinstance(mechanism, WordMechanism)
            and mechanism.space.encoder is not None
            and self.pipeline.unknown == "encode"
            and mechanism.guarantee.notion == "metric"
        )

    @property
    def company_setting(self) -> dict[str, Any] | None:
        """All that decides, with a text, in which company it leaves; None: texts leave in none."""
        if not isinstance(self.mechanism, SetMechanism):
            return None
        return setting_of(self.mechanism, self.n, self.release)

    @property
    def keeps_company(self) -> bool:
        """Whether texts leave in company, which must not be another one each time."""
        return self.company_setting is not None

    @property
    def releases(self) -> int:
        """What the variants of a text count as: one release where all are read off one point."""
        return 1 if self.release == "once" else self.n

    def obfuscate(self, texts: Iterable[str], *, first: int = 0) -> Iterator[Obfuscation]:
        """Obfuscate texts one after the other, in order, a batch at a time.

        ``first`` is the number of the first text. With it, the parts of a seeded run that was
        split give what the whole run would have given.
        """
        if isinstance(texts, str):
            raise UsageError("give a list of texts, not a single string")
        return self._obfuscate(texts, first, Streams(self.rng, self.mechanism.spec))

    def _obfuscate(
        self, texts: Iterable[str], first: int, streams: Streams
    ) -> Iterator[Obfuscation]:
        batches = numbered_batches(texts, self.batch_size, first)
        if self.workers == 1:
            for batch, number in batches:
                yield from self.obfuscate_batch(batch, number, streams)
            return
        # The seed travels inside ``streams``; secure generators are made anew in each process.
        state = (replace(self, workers=1, rng=None), streams)
        for _, results in ordered_map(_obfuscate_batch, state, batches, self.workers):
            yield from results

    def obfuscate_batch(
        self, texts: Sequence[str], first: int, streams: Streams
    ) -> list[Obfuscation]:
        """Obfuscate texts number ``first`` and following together."""
        try:
            if self.memory_key is not None:
                return [self._from_memory(text, self._memory) for text in texts]
            if isinstance(self.mechanism, WordMechanism):
                return self._word_by_word(self.mechanism, texts, first, streams)
            if isinstance(self.mechanism, PoolMechanism):
                return self._from_pool(self.mechanism, texts, first, streams)
            if isinstance(self.mechanism, SetMechanism):
                places = self.mechanism.representatives(texts)
                return self._as_sets(self.mechanism, texts, places, first, streams)
            assert isinstance(self.mechanism, TextMechanism)  # noqa: S101 - there are four kinds
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
        prepared_texts = [self._prepared(text, mechanism) for text in texts]
        if self.n * sum(map(len, prepared_texts)) > MOST_WORDS:  # Each alone has room.
            return [
                self._word_by_word(mechanism, [text], number, streams)[0]
                for number, text in enumerate(texts, first)
            ]
        opened = OpenWords(mechanism.space, prepared_texts)
        once = self.release == "once"
        release = WordRelease(mechanism, self.n, once, opened, first, streams)
        drawn = zip(opened.texts, release.substitutes(), strict=True)
        return [
            self._filled(mechanism, prepared, substitutes, streams, number)
            for number, (prepared, substitutes) in enumerate(drawn, first)
        ]

    @cached_property
    def _memory(self) -> Memory:
        return Memory(self.memory_key or b"", self.mechanism, self.n, self.release)

    def _from_memory(self, text: str, memory: Memory) -> Obfuscation:
        """A text by draws that its words decide; one that is replaced as a whole decides itself.

        Such a text is obfuscated in the form in which texts are compared: equal noise must not
        move two different vectors. Where a set hides a public string, or its subject, that decides.
        """
        mechanism = self.mechanism
        if isinstance(mechanism, WordMechanism):
            opened = OpenWords(mechanism.space, [self._prepared(text, mechanism)])
            (prepared,) = opened.texts
            names = memory.names(prepared, mechanism)
            streams = memory.streams(names)
            substitutes = memory.substitutes(opened, names, mechanism, streams)
            result = self._filled(mechanism, prepared, substitutes, streams, 0)
        elif isinstance(mechanism, SetMechanism):
            places = mechanism.representatives([text])
            names = [mechanism.decided_by(int(places[0]))]
            (result,) = self._as_sets(mechanism, [text], places, 0, memory.streams(names))
        else:
            folded = folded_text(text)
            names = [("text", folded)]
            streams = memory.streams(names)
            if isinstance(mechanism, PoolMechanism):
                (result,) = self._from_pool(mechanism, [folded], 0, streams)
            else:
                assert isinstance(mechanism, TextMechanism)  # noqa: S101 - there are four kinds
                result = self._as_a_whole(mechanism, folded, 0, streams)
            result = replace(result, text=text)
        return replace(result, word_hashes=memory.hashes(names), remembered_by=memory.fingerprint)

    def _prepared(self, text: str, mechanism: WordMechanism) -> PreparedText:
        """The text with its slots. If none of its words would be protected, all of them are."""
        prepared = self.pipeline.prepare(text, mechanism.space)
        require_room(self.n, len(prepared))
        counts = prepared.counts
        if counts.protected or not (counts.kept_unprotected or counts.dropped_unprotected):
            return prepared
        everything = replace(self.pipeline, protect="all")
        prepared = everything.prepare(text, mechanism.space)
        require_room(self.n, len(prepared))
        return replace(prepared, remark=ALL_PROTECTED)

    def _filled(
        self,
        mechanism: WordMechanism,
        prepared: PreparedText,
        substitutes: IntArray,
        streams: Streams,
        number: int,
    ) -> Obfuscation:
        """The result for text ``number`` with these substitutes, (n, slots)."""
        words = mechanism.space.words(substitutes.ravel())
        width = len(prepared)
        rows = [words[v * width : (v + 1) * width] for v in range(self.n)]
        # A word that is not listed cannot come back.
        returned = substitutes[:, ~prepared.uniform] == prepared.slots[~prepared.uniform]
        says_layout = WORD_BY_WORD in mechanism.guarantee.caveats
        orders = None
        if prepared.order == "shuffled":
            size = width + len(prepared.in_clear)
            orders = np.concatenate(
                [
                    streams.draws(number, variant, Streams.ORDER, 1).orders(size)
                    for variant in range(self.n)
                ]
            )
        return self._result(
            prepared.text,
            tuple(prepared.render_many(rows, orders)),
            streams,
            caveats=prepared.caveats(layout_is_said=says_layout),
            unchanged=float(returned.mean()) if returned.size else None,
            unknown=prepared.unknown,
            kept=prepared.kept,
            counts=prepared.counts,
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
                unchanged=[*map(folded_text, variants)].count(folded_text(text)) / self.n,
                counts=Counts(known=1),
            )
            for text, variants in zip(texts, released, strict=True)
        ]

    def _as_sets(
        self,
        mechanism: SetMechanism,
        texts: Sequence[str],
        places: IntArray,
        first: int,
        streams: Streams,
    ) -> list[Obfuscation]:
        """A set of public strings for each text and its representative, in random order."""
        numbers = range(first, first + len(texts))
        draws = Draws([(streams.generator(n, 0, Streams.WORDS, 0), 1) for n in numbers])
        results = []
        for number, text, place, members in zip(
            numbers, texts, places.tolist(), mechanism.draw(places, draws), strict=True
        ):
            strings = mechanism.strings(members)
            (order,) = streams.draws(number, 0, Streams.ORDER, 1).orders(len(strings))
            variants = tuple(strings[position] for position in order)
            company = mechanism.company(text, place, members)
            results.append(
                self._result(
                    text,
                    variants,
                    streams,
                    caveats=(),
                    unchanged=company.query_sent / len(variants),
                    counts=Counts(known=1),
                    company=company,
                )
            )
        return results

    def _as_a_whole(
        self, mechanism: TextMechanism, text: str, number: int, streams: Streams
    ) -> Obfuscation:
        rng = streams.generator(number, 0, Streams.WORDS, 0)
        rewriting = mechanism.rewrite(text, self.n, self.pipeline, rng)
        folded = {folded_text(variant) for variant in rewriting.variants}
        repeats = folded_text(text) in folded or len(folded) < len(rewriting.variants)
        if (repeats and not mechanism.may_repeat) or len(rewriting.variants) > self.n:
            raise SottovoceError(
                f"{mechanism.name} gave a text back, or a variant twice; nothing was released"
            )
        return self._result(
            text,
            rewriting.variants,
            streams,
            caveats=rewriting.caveats,
            unchanged=None,
            unknown=rewriting.unknown,
            kept=rewriting.kept,
            counts=rewriting.word_counts,
        )

    def _result(
        self,
        text: str,
        variants: tuple[str, ...],
        streams: Streams,
        *,
        caveats: tuple[str, ...],
        unchanged: float | None,
        counts: Counts,
        unknown: tuple[str, ...] = (),
        kept: tuple[str, ...] = (),
        company: Company | None = None,
    ) -> Obfuscation:
        guarantee = self.mechanism.guarantee
        if SHUFFLED in caveats:
            guarantee = guarantee.without_caveat(WORD_BY_WORD)
        guarantee = guarantee.with_caveats(*caveats)
        if self._encodes:
            guarantee = replace(guarantee, scope=ANY_WORD)
        if self.release == "once" and self.n > 1 and company is None:
            by_word = isinstance(self.mechanism, WordMechanism)
            guarantee = guarantee.without_caveat(MANY_RELEASES)
            guarantee = guarantee.with_caveats(ONE_POINT if by_word else ONE_POINT_OF_TEXT)
        if streams.reproducible:
            guarantee = guarantee.with_caveats(SEEDED)
        if company is not None and not isinstance(streams, KeyedStreams):
            guarantee = guarantee.with_caveats(AFRESH)
        if isinstance(streams, KeyedStreams):
            guarantee = remembered_guarantee(guarantee)
        spent = guarantee.loss(1.0, self.releases if counts.protected else 0)
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
            pipeline=self.pipeline,
            counts=counts,
            company=company,
        )


def obfuscate(text: str, mechanism: Mechanism, n: int = 1, *, rng: Randomness = None) -> list[str]:
    """Up to ``n`` obfuscations of a text; word mechanisms always give ``n``, drawn afresh."""
    (result,) = Obfuscator(mechanism, n=n, rng=rng).obfuscate([text])
    return list(result.variants)


def release_for(mechanism: Mechanism, wish: Release | None) -> Release:
    """The strategy that a wish stands for: without one, ``once`` where the mechanism can."""
    return wish or ("once" if mechanism.supports_once else "independent")


def remembered_guarantee(guarantee: Guarantee) -> Guarantee:
    """What is left of a promise if draws are remembered."""
    if guarantee.scope in ("text", SUBJECT):
        return guarantee.with_caveats(REMEMBERED_TEXTS, WHO_HAS_THE_KEY)
    scoped = replace(guarantee, scope=DISTINCT_WORDS)
    return scoped.with_caveats(REMEMBERED_WORDS, WHO_HAS_THE_KEY)


def _obfuscate_batch(state: tuple[Obfuscator, Streams], batch: Batch) -> list[Obfuscation]:
    """One batch, in a worker process."""
    obfuscator, streams = state
    return obfuscator.obfuscate_batch(*batch, streams)


def numbered_batches(texts: Iterable[str], size: int, first: int) -> Iterator[Batch]:
    """The texts in lists of ``size``, each with the number of its first text."""
    source = iter(texts)
    while batch := list(islice(source, size)):
        yield batch, first
        first += len(batch)
