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

import numpy as np
from numpy.random import Generator

from sottovoce.errors import SottovoceError
from sottovoce.mechanisms.base import WordMechanism, require
from sottovoce.obfuscation.memory import company_hashes, keyed_hash
from sottovoce.obfuscation.obfuscator import AFRESH, Obfuscator
from sottovoce.obfuscation.result import Choir, Obfuscation
from sottovoce.pools import Pool
from sottovoce.randomness import Streams, keyed_generator
from sottovoce.text import folded_text
from sottovoce.types import Float64Array

WHICH_IS_MEANT = (
    "the text leaves among {decoys} public ones that are obfuscated as it is; which of the {k} is "
    "meant has no proof: chance names it once in {k} times, and whoever tells the text from public "
    "ones by what is left of it, more often"
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
        require(isinstance(self.pool, Pool), "a chorus needs a pool of public strings")
        require(
            isinstance(self.mechanism, WordMechanism),
            f"a chorus is for mechanisms that replace words, not for {self.mechanism.name}",
        )
        require(
            2 <= self.k <= len(self.pool) // 2,
            f"a chorus has at least 2 texts, and decoys for half of a pool of {len(self.pool)} at "
            f"most, not {self.k}",
        )

    @property
    def keeps_company(self) -> bool:
        """Always: what two companies of a text have in common would give it away."""
        return True

    def obfuscate_batch(
        self, texts: Sequence[str], first: int, streams: Streams
    ) -> list[Obfuscation]:
        """Obfuscate texts number ``first`` and following, each among decoys of its own."""
        obfuscations = super().obfuscate_batch(texts, first, streams)
        return [self._joined(result, first + at, streams) for at, result in enumerate(obfuscations)]

    def _joined(self, result: Obfuscation, number: int, streams: Streams) -> Obfuscation:
        try:
            decoys, order = self._decoys(result.text, number, streams)
        except Exception as error:
            # The cause could hold the text: say what kind of error it was, and nothing of it.
            raise SottovoceError(
                f"no decoys were found ({type(error).__name__}); nothing was released"
            ) from None
        groups = [result.variants, *(decoy.variants for decoy in decoys)]
        variants = tuple(variant for at in order for variant in groups[at])
        caveat = WHICH_IS_MEANT.format(decoys=self.k - 1, k=self.k)
        guarantee = result.guarantee.with_caveats(caveat)
        if self.memory_key is None:
            guarantee = guarantee.with_caveats(AFRESH)
        else:
            setting = f"chorus {self.k} {self.pool.sha256}"
            hashes = company_hashes(self.memory_key, folded_text(result.text), setting)
            result = replace(result, company_hashes=hashes)
        choir = Choir(self.k, order.index(0))
        return replace(result, variants=variants, guarantee=guarantee, choir=choir)

    def _decoys(
        self, text: str, number: int, streams: Streams
    ) -> tuple[list[Obfuscation], list[int]]:
        """Decoys of a text, obfuscated, and the order in which all groups leave."""
        key, seed = None, None
        if self.memory_key is not None:
            # Decoys are public. Words must not be replaced in them as they are in private texts,
            # or whoever recognizes a decoy knows what stands for its words.
            key = keyed_hash(self.memory_key, "chorus", self.k, folded_text(text))
            rng = keyed_generator(keyed_hash(key, self.pool.sha256))
        else:
            rng = streams.generator(number, 0, Streams.ORDER, 1)
            seed = int(rng.integers(1 << 62)) if streams.reproducible else None
        strings = self._strings(text, rng)
        alike = {name: getattr(self, name) for name in ("mechanism", "n", "release", "pipeline")}
        decoys = list(Obfuscator(**alike, rng=seed, memory_key=key).obfuscate(strings))
        return decoys, rng.permutation(self.k).tolist()

    def _strings(self, text: str, rng: Generator) -> list[str]:
        """Different strings of the pool, k - 1 of them, none the text."""
        places = rng.choice(len(self.pool), self.k, replace=False, p=self._shares).tolist()
        decoys = [place for place in places if place != self.pool.place(text)]
        return [self.pool.strings[place] for place in decoys[: self.k - 1]]

    @cached_property
    def _shares(self) -> Float64Array | None:
        popularity = self.pool.popularity
        return None if popularity is None else np.asarray(popularity / popularity.sum())
