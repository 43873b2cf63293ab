"""Chorus: cover for any mechanism that replaces words. Decoys are obfuscated as the text is.

For a text whose subject no public string meets. It leaves among k - 1 strings of a pool, all of
them through the same mechanism and release, n variants each. What is said of the words is what the
mechanism promises; which of the k texts is meant has no proof, since the text need not look like a
string of the pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from sottovoce.errors import SottovoceError
from sottovoce.mechanisms.base import WordMechanism, require
from sottovoce.obfuscation.memory import drawn_by, key_fingerprint, keyed_hash
from sottovoce.obfuscation.obfuscator import AFRESH, REMEMBERED_WORDS, Obfuscator
from sottovoce.obfuscation.result import Choir, Obfuscation
from sottovoce.pools import Pool
from sottovoce.randomness import Randomness, Streams, keyed_generator
from sottovoce.text import folded_text
from sottovoce.types import Float64Array

WHICH_IS_MEANT = (
    "the text leaves among {decoys} public ones that are obfuscated as it is; which of the {k} is "
    "meant has no proof: chance names it once in {k} times, and whoever tells the text from public "
    "ones by what is left of it, more often"
)
REMEMBERED_IN_CHORUS = (
    "the same text always gets the same variants and company, and equal words of it the same "
    "substitutes: that shows, and no number of nats covers it; in another text a word is drawn, "
    "and counted, anew"
)


@dataclass(frozen=True)
class Chorus(Obfuscator):
    """Obfuscates each text together with k - 1 strings of a pool; a result has the variants of all.

    pool
        Where decoys come from: by its popularity, or all alike. It must be public, and chosen
        without the texts.
    k
        Texts that leave together.
    """

    pool: Pool = None  # type: ignore[assignment]  # required below
    k: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        require(isinstance(self.pool, Pool), "a chorus needs public strings: give it a Pool")
        require(
            isinstance(self.mechanism, WordMechanism),
            f"a chorus is for mechanisms that replace words, not for {self.mechanism.name}: "
            "choose one that does, such as cmp (-m cmp), or leave the chorus out",
        )
        require(
            2 <= self.k <= len(self.pool) // 2,
            f"a chorus of {self.k} is too small, or too large for its pool: it has at least 2 "
            f"texts, and at most half as many as the pool, which has {len(self.pool):,} strings; "
            "choose another number (--chorus), or a larger pool (--pool)",
        )

    @property
    def company_setting(self) -> dict[str, Any]:
        """By what decoys are drawn: what two companies of a text have in common gives it away."""
        return {"chorus": self.k, "pool": self._made_with, **drawn_by()}

    def obfuscate_batch(
        self, texts: Sequence[str], first: int, streams: Streams
    ) -> list[Obfuscation]:
        """Obfuscate texts number ``first`` and following, each among decoys of its own."""
        if self.memory_key is not None:
            return [self._remembered(text, self.memory_key) for text in texts]
        obfuscations = super().obfuscate_batch(texts, first, streams)
        return [self._afresh(result, first + at, streams) for at, result in enumerate(obfuscations)]

    def _afresh(self, result: Obfuscation, number: int, streams: Streams) -> Obfuscation:
        """A text among decoys that are drawn for this time."""
        rng = streams.generator(number, 0, Streams.ORDER, 1)
        seed = int(rng.integers(1 << 62)) if streams.reproducible else None
        decoys = self._alone(rng=seed).obfuscate(self._strings(result.text, rng))
        joined = self._joined([result, *decoys], rng)
        return replace(joined, guarantee=joined.guarantee.with_caveats(AFRESH))

    def _remembered(self, text: str, secret: bytes) -> Obfuscation:
        """A text among the decoys that it always has.

        Each of the k texts has a key of its own, which chorus and private text decide. Were words
        replaced alike in two searches, or as they are without a chorus, the group whose words come
        again would be the person's; were they replaced alike in two groups, whoever recognizes a
        decoy would know what stands for its words.
        """
        key = keyed_hash(secret, "chorus", self.k, self._made_with, folded_text(text))
        rng = keyed_generator(keyed_hash(key, "decoys"))
        groups: list[Obfuscation] = []
        for string in (text, *self._strings(text, rng)):
            group_key = keyed_hash(key, "group", folded_text(string))
            groups += self._alone(memory_key=group_key).obfuscate([string])
        joined = self._joined(groups, rng)
        guarantee = joined.guarantee.without_caveat(REMEMBERED_WORDS)
        return replace(
            joined,
            guarantee=guarantee.with_caveats(REMEMBERED_IN_CHORUS),
            remembered_by=key_fingerprint(secret),
        )

    def _alone(self, *, rng: Randomness = None, memory_key: bytes | None = None) -> Obfuscator:
        """What obfuscates each of the k texts: nothing but its generator tells one from another."""
        return Obfuscator(
            self.mechanism,
            n=self.n,
            release=self.release,
            pipeline=self.pipeline,
            rng=rng,
            memory_key=memory_key,
        )

    def _joined(self, groups: Sequence[Obfuscation], rng: Generator) -> Obfuscation:
        """The first of some texts together with the others, their variants in random order."""
        private, order = groups[0], rng.permutation(self.k).tolist()
        return replace(
            private,
            variants=tuple(variant for at in order for variant in groups[at].variants),
            guarantee=private.guarantee.with_caveats(
                WHICH_IS_MEANT.format(decoys=self.k - 1, k=self.k)
            ),
            choir=Choir(self.k, order.index(0)),
        )

    def _strings(self, text: str, rng: Generator) -> list[str]:
        """Different strings of the pool, k - 1 of them, none the text."""
        try:
            places = rng.choice(len(self.pool), self.k, replace=False, p=self._shares).tolist()
            decoys = [place for place in places if place != self.pool.place(text)]
            return [self.pool.strings[place] for place in decoys[: self.k - 1]]
        except Exception as error:
            # The cause could hold the text: say what kind of error it was, and nothing of it.
            raise SottovoceError(
                f"no decoys were found ({type(error).__name__}); nothing was released"
            ) from None

    @cached_property
    def _made_with(self) -> str:
        """The hash of the pool, and of the popularity by which decoys are drawn."""
        return self.pool.drawn_with(self._shares)

    @cached_property
    def _shares(self) -> Float64Array | None:
        popularity = self.pool.popularity
        return None if popularity is None else np.asarray(popularity / popularity.sum())
