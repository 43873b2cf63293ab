"""What every mechanism is: immutable, without a generator of its own, small to pickle."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import Field, dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.random import Generator

from sottovoce.devices import Device
from sottovoce.errors import UsageError
from sottovoce.guarantees import Guarantee
from sottovoce.mechanisms.subsets import SubsetLaw
from sottovoce.pools import Pool
from sottovoce.randomness import Draws, Streams, is_secure
from sottovoce.spaces.distances import Distances
from sottovoce.spaces.extended_space import with_words
from sottovoce.spaces.space import WordSpace
from sottovoce.text import Counts
from sottovoce.types import Float32Array, Float64Array, IntArray

if TYPE_CHECKING:
    from sottovoce.mechanisms.company import Company
    from sottovoce.text import TextPipeline

EPSILON_HELP = "privacy budget for each word and release; smaller is safer"
SMALLEST_EPSILON, LARGEST_EPSILON = 1e-9, 1e9
ROWS_AT_A_TIME = 8192
"""Tokens drawn and decided at once; bounds the memory of a call."""


def parameter(default: Any, help: str, *, larger_hides: bool = False) -> Any:
    """A parameter of a mechanism with its one-line explanation.

    ``larger_hides``: more is hidden the larger it is; a curve over it starts with the largest.
    """
    return field(default=default, metadata={"help": help, "larger_hides": larger_hides})


def resource() -> Any:
    """Something large that a mechanism works on, such as a word space; no part of its spec."""
    return field(metadata={"resource": True})


@dataclass(frozen=True, repr=False, eq=False)
class Mechanism(ABC):
    """Turns a text into others that say less.

    Its fields are resources and parameters; ``spec`` writes the parameters as a string that
    :func:`sottovoce.mechanism` reads back.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    paper: ClassVar[str]
    supports_once: ClassVar[bool] = False
    """Whether several variants can be read off one draw: release ``once``."""
    by_word: ClassVar[bool] = False
    """Whether each word is replaced by itself; otherwise a text is replaced as a whole."""
    cuts_texts: ClassVar[bool] = True
    """Whether a text is cut into words, so that a ``TextPipeline`` has anything to decide."""
    always_in_spec: ClassVar[tuple[str, ...]] = ("epsilon",)
    """Parameters that a spec holds even if they have their default."""
    has_density: ClassVar[bool] = False
    """Whether it moves a vector, of a word or a text, by ``noise`` that has a ``log_density``."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What this mechanism promises for one release of one token (or text)."""

    @property
    def device(self) -> Device:
        """Which device does the work."""
        return "cpu"

    @property
    def published(self) -> Guarantee | None:
        """What the paper or published code claims, where that is more than ``guarantee`` states."""
        return None

    @property
    def protects(self) -> str:
        """Which words it protects as published: what ``TextPipeline(protect=…)`` takes."""
        return "all"

    @property
    def metric_space(self) -> tuple[str, str] | None:
        """Name and hash of what decides the distances that a metric guarantee speaks of."""
        return None

    @property
    def made_with(self) -> str | None:
        """A hash of what it works on; an attack on its releases needs the same."""
        return None

    @property
    def has_law(self) -> bool:
        """Whether the probability of every output is known exactly."""
        return False

    @property
    def shares_noise(self) -> bool:
        """Whether all texts of a batch are moved by the same noise."""
        return False

    def check_once(self, n: int) -> None:
        """Refuse release ``once`` with ``n`` variants where that is impossible."""
        raise UsageError(
            f"release 'once' needs a noise mechanism; '{self.name}' draws no noise: use "
            "'independent'"
        )

    @classmethod
    def parameters(cls) -> tuple[Field[Any], ...]:
        """The fields that a spec may set."""
        return tuple(f for f in fields(cls) if "resource" not in f.metadata)

    @classmethod
    def hides_more_the_larger(cls, name: str) -> bool:
        """Whether a parameter of this public name is one that hides more the larger it is."""
        fields_of_name = (field for field in cls.parameters() if public_name(field) == name)
        return any(field.metadata.get("larger_hides", False) for field in fields_of_name)

    @classmethod
    def resources(cls) -> tuple[str, ...]:
        """The names of the fields that hold what it works on."""
        return tuple(f.name for f in fields(cls) if "resource" in f.metadata)

    @property
    def spec(self) -> str:
        """``name:key=value,…`` with what it always holds, and all that is not the default."""
        parts = [
            f"{public_name(f)}={write_value(getattr(self, f.name))}"
            for f in self.parameters()
            if f.name in self.always_in_spec or getattr(self, f.name) != f.default
        ]
        return f"{self.name}:{','.join(parts)}" if parts else self.name

    def describe(self) -> dict[str, Any]:
        """What it is, does and promises, for JSON."""
        return {
            "name": self.name,
            "summary": self.summary,
            "paper": self.paper,
            "spec": self.spec,
            "parameters": [
                {
                    "name": public_name(parameter),
                    "value": getattr(self, parameter.name),
                    "default": parameter.default,
                    "help": parameter.metadata.get("help", ""),
                }
                for parameter in self.parameters()
            ],
            "guarantee": self.guarantee.to_dict(),
            "protects": self.protects,
        }

    def facts(self) -> dict[str, float]:
        """Numbers about the promise that depend on the space; they may take a moment."""
        return {}

    def __repr__(self) -> str:
        return f"mechanism({self.spec!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mechanism):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Any, ...]:
        return self.spec, *(getattr(self, name) for name in self.resources())

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), {f.name: getattr(self, f.name) for f in fields(self)})


def _rebuilt(kind: type[Mechanism], arguments: dict[str, Any]) -> Mechanism:
    return kind(**arguments)


def public_name(parameter: Field[Any]) -> str:
    """The name in specs; ``lambda_`` is written ``lambda``."""
    return parameter.name.rstrip("_")


def write_value(value: Any) -> str:
    """A parameter's value as specs write it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "/".join(write_value(part) for part in value)
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


@dataclass(frozen=True, repr=False, eq=False)
class WordMechanism(Mechanism):
    """Replaces each word of the space by a word of its output vocabulary, independently."""

    by_word: ClassVar[bool] = True
    epsilon_per_distance: ClassVar[bool] = True
    """Whether epsilon is per unit of distance, so that its scale depends on the space."""
    box_size: ClassVar[str | None] = None
    """The parameter that says among how many words it chooses, if there is one."""

    space: WordSpace = resource()
    epsilon: float = parameter(10.0, EPSILON_HELP)

    def __post_init__(self) -> None:
        require_positive(self.epsilon)
        require(
            self.space.size > 1,
            "a space of one word hides nothing: every text would come out as it is. Use a larger "
            "one, as 'sottovoce spaces add default' gets it",
        )

    def __repr__(self) -> str:
        return f"mechanism({self.spec!r}, space={self.space.name!r})"

    def _identity(self) -> tuple[Any, ...]:
        return self.spec, self.made_with, *self.further_resources()

    def further_resources(self) -> tuple[Any, ...]:
        """What it works on besides the space."""
        return tuple(getattr(self, name) for name in self.resources() if name != "space")

    @property
    def metric_space(self) -> tuple[str, str]:
        """The word space."""
        return self.space.name, self.space.sha256

    @property
    def epsilon_matters(self) -> bool:
        """Whether epsilon decides anything; where it does not, there is no guarantee."""
        return True

    @cached_property
    def made_with(self) -> str:
        """A hash of the space and of the words that may be released."""
        digest = hashlib.sha256(self.space.sha256.encode())
        digest.update(self.space.output.ids.tobytes())
        if self.space.output.popularity is not None:
            digest.update(self.space.output.popularity.tobytes())
        if self.space.encoder is not None:
            digest.update(self.space.encoder.fingerprint.encode())
        if self.space.axes is not None:
            digest.update(self.space.axes.tobytes())
        return digest.hexdigest()

    @abstractmethod
    def draw(self, ids: IntArray, draws: Draws) -> IntArray:
        """One substitute for each id; ``draws`` has as many rows as there are ids."""

    def draw_at(self, vectors: Float32Array, draws: Draws) -> IntArray:
        """One substitute for each vector: that of a word which the space does not list.

        The word is drawn for as if the space had it at its end: by the same law, with the same
        words to be released.
        """
        places = self.space.size + np.arange(len(vectors))
        extended = with_words(self.space, [f"\0{place}" for place in places], vectors)
        return replace(self, space=extended).draw(places, draws)

    def sample(self, ids: IntArray, n: int, rng: Generator) -> IntArray:
        """``n`` independent substitutes for each id, (n, len(ids))."""
        words = self.checked(ids)
        require(n >= 0, f"the number of variants cannot be negative, got {n}")
        flat = np.empty(n * len(words), dtype=np.int64)
        step = self.rows_at_a_time(is_secure(rng))
        for start in range(0, len(flat), step):
            end = min(start + step, len(flat))
            places = slice(start, end) if n == 1 else np.arange(start, end) % len(words)
            flat[start:end] = self.draw(words[places], Draws([(rng, end - start)]))
        return flat.reshape(n, len(words))

    def draws_on_gpu(self, secure: bool) -> bool:
        """Whether a GPU makes the random numbers; with a seed (not ``secure``) it never does.

        What a seed decides must not look at the device: the same seed, the same words everywhere.
        """
        return False

    def rows_at_a_time(self, secure: bool) -> int:
        """Tokens drawn and decided at once; ``secure``: without a seed, which fixes the number."""
        return ROWS_AT_A_TIME

    def log_probabilities(self, ids: IntArray) -> Float64Array | None:
        """Exact log-probabilities (len(ids), space.size) of each output, where there is a law."""
        return None

    @property
    def has_law(self) -> bool:
        """Whether there are ``log_probabilities``."""
        return self.log_probabilities(np.zeros(1, dtype=np.int64)) is not None

    def distances(self, words: IntArray, partners: IntArray) -> Float64Array:
        """How far each word is from its partner, in the metric of the guarantee."""
        return Distances(self.space, self.space.output.ids).pairs(words, partners)

    def checked(self, ids: IntArray) -> IntArray:
        """The ids as an int64 array, each of them in the space."""
        words = np.asarray(ids)
        require(
            words.ndim == 1 and (words.dtype.kind in "iu" or not words.size),
            "word ids must be a one-dimensional array of whole numbers",
        )
        require(
            not words.size or (words.min() >= 0 and words.max() < self.space.size),
            "a word id is not in the space: resolve words with WordSpace.ids and treat unknown "
            "words (-1) by a policy first",
        )
        return words.astype(np.int64)


@dataclass(frozen=True, repr=False)
class Rewriting:
    """What became of one text. ``unknown`` and ``kept`` are for its owner alone.

    ``counts`` says what became of all its words; without it, ``unknown`` and ``kept`` are counted.
    """

    variants: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    counts: Counts | None = None

    @property
    def word_counts(self) -> Counts:
        """What became of the words; the text itself counts as one that was protected."""
        given = self.counts
        if given is None:
            given = Counts(dropped=len(self.unknown), kept_unprotected=len(self.kept))
        return replace(given, known=int(bool(self.variants)))


@dataclass(frozen=True, repr=False, eq=False)
class TextMechanism(Mechanism):
    """Rewrites a text as a whole. It may find fewer variants than asked for, and says so."""

    may_repeat: ClassVar[bool] = False
    """Whether variants are drawn, as a guarantee demands: then one may come twice, or be the text
    itself, and to refuse that would void the guarantee."""

    @abstractmethod
    def rewrite(self, text: str, n: int, pipeline: TextPipeline, rng: Generator) -> Rewriting:
        """At most ``n`` variants; unless they may repeat all different, none the text itself."""


@dataclass(frozen=True, repr=False, eq=False)
class PoolMechanism(Mechanism):
    """Replaces a text as a whole by strings of a public pool, many texts at a time."""

    supports_once: ClassVar[bool] = True
    cuts_texts: ClassVar[bool] = False

    pool: Pool = resource()
    epsilon: float = parameter(10.0, "privacy parameter for each text and release")

    def __post_init__(self) -> None:
        require_positive(self.epsilon)

    def __repr__(self) -> str:
        return f"mechanism({self.spec!r}, pool={self.pool.name!r})"

    @property
    def made_with(self) -> str:
        """The hash of the pool and its encoder."""
        return self.pool.sha256

    def check_once(self, n: int) -> None:
        """The pool must have as many strings."""
        require_enough(n, len(self.pool), "strings", "pool")

    @abstractmethod
    def release(
        self, texts: Sequence[str], n: int, once: bool, first: int, streams: Streams
    ) -> IntArray:
        """Places in the pool, (len(texts), n), for texts number ``first`` and following.

        n fresh draws for each text or, if ``once``, n different strings read off one draw.
        """

    def on_words(self, space: WordSpace) -> WordMechanism | None:
        """The mechanism that moves words by the same noise, if there is one: attacks use it."""
        return None


@dataclass(frozen=True, repr=False, eq=False)
class SetMechanism(Mechanism):
    """Releases a set of public strings, of which one may stand for the text.

    The set depends on the text through its representative alone, a string of the pool. All strings
    of a set together are one release, and the mechanism decides how many they are.
    """

    supports_once: ClassVar[bool] = True
    cuts_texts: ClassVar[bool] = False

    pool: Pool = resource()

    def __repr__(self) -> str:
        return f"mechanism({self.spec!r}, pool={self.pool.name!r})"

    @property
    def made_with(self) -> str:
        """The hash of the pool and its encoder."""
        return self.pool.sha256

    @property
    @abstractmethod
    def law(self) -> SubsetLaw:
        """The law of the sets, over places in the pool."""

    @property
    def has_law(self) -> bool:
        """Whether the probability of every set is known exactly: always."""
        return True

    @property
    @abstractmethod
    def set_size(self) -> int:
        """How many strings a release has at most."""

    def check_once(self, n: int) -> None:
        """Always possible: a set is one release."""

    @abstractmethod
    def representatives(self, texts: Sequence[str]) -> IntArray:
        """The place in the pool of the string that stands for each text; no chance in it."""

    def decided_by(self, representative: int) -> tuple[str, str]:
        """What decides a set that is remembered, as kind and name: the string that is hidden.

        A set is drawn once for it, and counted once.
        """
        return "representative", self.pool.strings[representative]

    def draw(self, representatives: IntArray, draws: Draws) -> IntArray:
        """A set for each representative: places of the pool, ascending, (draws.size, law.k)."""
        sets = np.empty((draws.size, self.law.k), dtype=np.int64)
        row = 0
        for generator, count in draws.units:
            for _ in range(count):
                sets[row] = self.law.draw(int(representatives[row]), generator)
                row += 1
        return sets

    def log_odds(self, places: IntArray) -> tuple[Float64Array, Float64Array]:
        """The logarithms of P(S | x) for strings x: of sets that hold x, and of those without it.

        Each up to a term that depends on the set alone.
        """
        return self.law.log_inside[places], self.law.log_outside[places]

    @abstractmethod
    def strings(self, members: IntArray) -> tuple[str, ...]:
        """The strings that a set releases, in an order that depends on the set alone."""

    @abstractmethod
    def company(self, text: str, representative: int, members: IntArray) -> Company:
        """What a set is worth for this text."""


def require(condition: bool | np.bool_, message: str) -> None:
    """Raise a :class:`UsageError` unless the condition holds."""
    if not condition:
        raise UsageError(message)


def require_enough(n: int, available: int, things: str, where: str) -> None:
    """Refuse ``n`` different things read off one point where fewer are available."""
    require(
        n <= available,
        f"release 'once' reads {n} different {things} off one point, but the {where} has "
        f"{available}: ask for fewer variants",
    )


def require_positive(epsilon: float) -> None:
    """Refuse an epsilon that is not a positive number, or one that floats cannot draw with."""
    require(
        bool(np.isfinite(epsilon)) and SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON,
        f"epsilon must be a positive number from {SMALLEST_EPSILON:g} to {LARGEST_EPSILON:g}, got "
        f"{epsilon:g}: below that noise is too large for the numbers of a computer, above it "
        "hides nothing",
    )
