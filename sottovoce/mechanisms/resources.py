"""The kinds of resources that come with sottovoce: word spaces, WordNet, corpora, pools."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sottovoce.errors import UsageError
from sottovoce.mechanisms.build import Facts, ResourceKind, Settings, register_resource
from sottovoce.types import IntArray, Progress

if TYPE_CHECKING:
    from sottovoce.engines import BM25
    from sottovoce.language.wordnet import WordNet
    from sottovoce.pools import Pool
    from sottovoce.spaces.space import WordSpace

STAND_IN_WORDS = 5000
"""Words of a made-up space: some mechanisms need that many."""
STAND_IN_STRINGS = 10_000
"""Strings of a made-up pool. A guarantee that depends on their number says it."""


@register_resource
class WordSpaceKind(ResourceKind):
    """Word spaces, with the words of them that may be released."""

    name: ClassVar[str] = "space"
    settings: ClassVar[Settings] = {"space": None, "output_vocabulary": "all"}
    cheap: ClassVar[bool] = True

    def load(self, settings: Settings, progress: Progress | None) -> WordSpace:
        """The default space unless another is named."""
        from sottovoce.output_vocabularies import choose_output
        from sottovoce.resources.local import load_space

        space, vocabulary = load_space(settings["space"]), settings["output_vocabulary"]
        return space if vocabulary == "all" else space.with_output(choose_output(space, vocabulary))

    def stand_in(self, settings: Settings) -> WordSpace:
        return _stand_in_space()

    def facts(self, resource: WordSpace) -> Facts:
        return {
            "name": resource.name,
            "sha256": resource.sha256,
            "output_sha256": hashlib.sha256(resource.output.ids.tobytes()).hexdigest(),
            "encoder": resource.encoder and resource.encoder.fingerprint,
        }


@register_resource
class WordNetKind(ResourceKind):
    """WordNet; there is one."""

    name: ClassVar[str] = "wordnet"
    settings: ClassVar[Settings] = {}
    cheap: ClassVar[bool] = True

    def load(self, settings: Settings, progress: Progress | None) -> WordNet:
        from sottovoce.language.wordnet import load_wordnet

        return load_wordnet()

    def stand_in(self, settings: Settings) -> None:
        """Nothing: no description asks for it."""

    def facts(self, resource: WordNet | None) -> Facts:
        """The hash of its files, None where there are none."""
        from sottovoce.files import files_hash
        from sottovoce.language.wordnet import wordnet_folder

        files = sorted(path for path in wordnet_folder().glob("*") if path.is_file())
        return {"name": "wordnet", "sha256": files_hash(files) if files else None}


@register_resource
class CorpusKind(ResourceKind):
    """Documents of the user's, behind a search engine that ``fea`` asks."""

    name: ClassVar[str] = "engine"
    settings: ClassVar[Settings] = {"corpus": None}
    required: ClassVar[Mapping[str, str]] = {"corpus": "it reads its words off a corpus of yours"}

    def load(self, settings: Settings, progress: Progress | None) -> BM25:
        from sottovoce.collections import read_corpus
        from sottovoce.engines import BM25

        if settings["corpus"] is None:
            raise UsageError(
                "this mechanism reads its words off a corpus of yours: give one with --corpus FILE "
                "on the command line, or engine=BM25(documents) in Python"
            )
        return BM25(read_corpus(settings["corpus"]))

    def stand_in(self, settings: Settings) -> BM25:
        from sottovoce.collections import Document
        from sottovoce.engines import BM25

        return BM25([Document("1", "", "stand-in")])

    def facts(self, resource: Any) -> Facts:
        """None: experiments search one collection throughout, and name that."""
        return {}


@register_resource
class PoolKind(ResourceKind):
    """Public strings, with the encoder that gives them their vectors."""

    name: ClassVar[str] = "pool"
    settings: ClassVar[Settings] = {"pool": None, "encoder": "auto"}
    required: ClassVar[Mapping[str, str]] = {"pool": "it releases strings of a public pool"}

    def load(self, settings: Settings, progress: Progress | None) -> Pool:
        """The pool in a source, its vectors computed once."""
        from sottovoce.pools import load_pool

        if settings["pool"] is None:
            raise UsageError(
                "this mechanism releases strings of a public pool: give one with --pool FILE (or "
                "--pool demo) on the command line, or pool=load_pool(FILE) in Python"
            )
        return load_pool(settings["pool"], settings["encoder"], progress)

    def open(self, settings: Settings) -> Pool:
        """Vectors are computed when they are first needed."""
        from sottovoce.pools import read_pool

        return read_pool(settings["pool"], settings["encoder"])

    def stand_in(self, settings: Settings) -> Pool:
        """Made-up strings; the encoder is the real one, since its dimension enters guarantees."""
        from sottovoce.pools import Pool, check_source

        if settings["pool"] is not None:
            check_source(settings["pool"])
        made = _stand_in_pool()
        # A copy with another encoder; copy() would make a Pool of it, whose subjects are computed.
        pool = object.__new__(type(made))
        vars(pool).update(vars(made), encoder=Pool(["a string"], settings["encoder"]).encoder)
        return pool

    def facts(self, resource: Pool) -> Facts:
        sha256 = resource.sha256_with_popularity
        return {"name": resource.name, "strings": len(resource), "sha256": sha256}


# Made once a process: whoever describes mechanisms asks for them again and again.


@cache
def _stand_in_space() -> WordSpace:
    from sottovoce.spaces.space import WordSpace

    numbers = range(STAND_IN_WORDS)
    return WordSpace.from_arrays(list(map(str, numbers)), [[number] for number in numbers])


@cache
def _stand_in_pool() -> Pool:
    from sottovoce.pools import Pool

    class StandIn(Pool):
        def subjects(self, count: int) -> tuple[IntArray, IntArray]:
            """Subjects of equal size: no vector is computed."""
            places = np.arange(len(self))
            return places * count // len(self), places

    return StandIn(map(str, range(STAND_IN_STRINGS)), "light", name="stand-in")
