"""A network that reads a word off its neighbors, trained on releases of an attacker's own making.

The releases of two places are independent given the words, so all that a context can add at a place
is a prior of its own:

    P(word | everything seen)  is proportional to  P(seen at the place | word) P(word | seen around)

The evidence gives the first factor; a small transformer learns the second one. It reads the places
around a masked one, each as the mean of its likely words' vectors, and answers a vector q:
P(word | seen around) is proportional to P(word) exp(q . word).

The network and trigrams make different mistakes, so their answers are mixed. How much the network
is trusted was measured on releases of queries that neither of them had learned from; where it adds
nothing, trigrams alone are left. ``denoiser_training.py`` trains one; using it needs no torch.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sottovoce.choices import Release
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.files import parse_json, write_whole
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.paths import denoisers_folder
from sottovoce.privacy.attacks.cut_log import CutLog
from sottovoce.privacy.attacks.language import TextModel, likelihoods
from sottovoce.types import BoolArray, Float32Array, Float64Array, FloatArray, IntArray

LAYOUT = 1
"""Of saved files; files of another layout are not read."""
CANDIDATES = 200
"""Words of each place that are told apart; the others are left to trigrams."""
HEADS, LAYERS = 4, 2
REACH = 8
"""Places to each side that are read."""
PLACES_AT_A_TIME = 256
EVIDENCE, TARGET, START, END, NOTHING = range(5)
"""Kinds of tokens: a place seen, the masked one, the ends of a text, a place not released."""

Weights = dict[str, Any]
"""Arrays, or tensors while the network is trained."""


# The network: one forward pass for numpy and torch.


def read_context(weights: Weights, tokens: Tokens, inputs: Any, arrays: Any = np) -> Any:
    """The vector q of each masked place, (targets, coordinates of a word).

    inputs
        What is seen at each token, (targets, tokens, inputs).
    arrays
        The module that the weights belong to: numpy, or torch.
    """
    states = inputs @ weights["see"] + weights["kind"][tokens.kinds]
    states = states + weights["offset"][tokens.offsets]
    count, _, width = states.shape
    hidden = np.where(tokens.shown, 0, -1e9).astype(np.float32)[:, None, None, :]
    if arrays is not np:
        hidden = arrays.from_numpy(hidden)
    masked = np.arange(count)[:, None], (tokens.kinds == TARGET).argmax(1)[:, None]

    def heads(values: Any) -> Any:
        """(targets, tokens, width) -> (targets, heads, tokens, width / heads)."""
        return values.reshape(count, -1, HEADS, width // HEADS).swapaxes(1, 2)

    for layer in range(LAYERS):
        around = _normalized(states)
        if layer == LAYERS - 1:  # Only the masked place is asked about in the end.
            states = states[masked]
        # Attention.
        query = heads(_normalized(states) @ weights[f"query{layer}"])
        key, value = (heads(around @ weights[f"{name}{layer}"]) for name in ("key", "value"))
        scores = query @ key.swapaxes(2, 3) * (HEADS / width) ** 0.5 + hidden
        shares = arrays.exp(scores - arrays.amax(scores, -1)[..., None])
        shares = shares / shares.sum(-1)[..., None]
        gathered = (shares @ value).swapaxes(1, 2).reshape(count, -1, width)
        states = states + gathered @ weights[f"gather{layer}"]
        # Two linear layers.
        wide = _normalized(states) @ weights[f"widen{layer}"] + weights[f"widen_bias{layer}"]
        states = states + wide.clip(0, None) @ weights[f"narrow{layer}"]
    return _normalized(states)[:, 0] @ weights["answer"] + weights["answer_bias"]


def _normalized(states: Any) -> Any:
    centered = states - states.mean(-1)[..., None]
    return centered / ((centered * centered).mean(-1)[..., None] + 1e-5) ** 0.5


@dataclass(frozen=True)
class Tokens:
    """What stands around masked places, one of each text: arrays (texts, tokens)."""

    places: IntArray
    """Which place of the text a token is; -1 and its length are the ends."""
    kinds: IntArray
    offsets: IntArray
    """Where it stands, seen from the masked place; 0 is the farthest to the left."""
    shown: BoolArray

    @classmethod
    def of(cls, lengths: IntArray, targets: IntArray) -> Tokens:
        """Windows of ``REACH`` places to each side, as far as a text of this length goes."""
        width = min(2 * REACH + 1, int(lengths.max(initial=0)) + 2)
        places = np.maximum(targets - REACH, -1)[:, None] + np.arange(width)
        offsets, ends = places - targets[:, None], lengths[:, None]
        kinds = np.full(places.shape, EVIDENCE)
        kinds[places == -1], kinds[places == ends], kinds[offsets == 0] = START, END, TARGET
        shown = (places <= ends) & (offsets <= REACH)
        kinds[~shown] = NOTHING
        return cls(places, kinds, np.clip(offsets, -REACH, REACH) + REACH, shown)


@dataclass(frozen=True, repr=False)
class Seen:
    """What is kept of the evidence at places: candidates, and what the network reads."""

    words: IntArray
    """(places, candidates)."""
    scores: Float32Array
    """log P(seen | word) + log P(word) of each."""
    inputs: Float32Array
    """The mean of the candidates' vectors and how sure it is; a row of zeros at the end."""

    @classmethod
    def of(cls, rows: Float32Array, prior: Float64Array, vectors: Float32Array) -> Seen:
        """The likeliest words of each place by the prior alone."""
        scores = (np.log(np.maximum(likelihoods(rows), 1e-30)) + prior).astype(np.float32)
        kept = min(CANDIDATES, scores.shape[1])
        words = np.argpartition(-scores, kept - 1, axis=1)[:, :kept]
        scores = np.take_along_axis(scores, words, axis=1)
        shares = softmax(scores)
        entropy = -(shares * np.log(np.maximum(shares, 1e-9))).sum(axis=1)
        sure = [np.ones(len(rows)), entropy / np.log(kept), shares.max(axis=1, initial=0)]
        means = np.einsum("pc,pcd->pd", shares, vectors[words])
        inputs = np.concatenate([means, np.stack(sure, axis=1)], axis=1).astype(np.float32)
        return cls(words, scores, np.pad(inputs, ((0, 1), (0, 0))))


@dataclass(frozen=True)
class MadeFor:
    """What a denoiser was trained for: it is of no use against anything else."""

    mechanism: str
    made_with: str
    release: Release
    n: int
    log: str
    """A hash of the queries that it may learn from, as they were cut; not those attacked."""

    @classmethod
    def of(cls, mechanism: WordMechanism, release: Release, n: int, log: CutLog) -> MadeFor:
        """From what makes the releases, and a log without the attacked queries."""
        digest = hashlib.sha256("\n".join(log.queries).encode())
        for numbers in (log.counts, log.words, log.starts):
            digest.update(np.ascontiguousarray(numbers, dtype="<i8").tobytes())
        return cls(mechanism.spec, mechanism.made_with, release, n, digest.hexdigest())

    @property
    def file(self) -> Path:
        """Where such a denoiser is kept."""
        settings = json.dumps([LAYOUT, asdict(self)], sort_keys=True)
        return denoisers_folder() / f"{hashlib.sha256(settings.encode()).hexdigest()}.npz"


@dataclass(frozen=True, repr=False)
class Denoiser:
    """A model of texts for one mechanism, release, number of variants and log."""

    made_for: MadeFor
    releases: int
    """How many queries were released to train it."""
    trust: float
    """How much the network counts beside trigrams: 1 for the network alone, 0 for trigrams."""
    weights: dict[str, Float32Array]
    """Of the network; also ``vectors`` and ``learned``, the coordinates of the words."""
    prior: Float64Array
    """log P(word), the last one for a word that the space lacks."""
    context: TextModel | None = None
    """Trigrams of the same log; without them the network is alone."""

    @property
    def name(self) -> str:
        """For reports."""
        network = f"a network trained on {self.releases:,} self-made releases of its queries"
        if self.context is None:
            return network
        if not self.trust:
            return f"{self.context.name}; {network} added nothing to them and is left out"
        return f"{self.context.name}; and {network}"

    def beside(self, context: TextModel) -> Denoiser:
        """With trigrams of the log that it was trained on."""
        return replace(self, context=context)

    def check(self, made_for: MadeFor) -> None:
        """Refuse what it was not trained for."""
        pairs = zip(asdict(self.made_for).items(), asdict(made_for).values(), strict=True)
        different = [what for (what, trained), asked in pairs if trained != asked]
        if different:
            raise UsageError(
                f"the denoiser was trained for another {' and '.join(different)}: train one for "
                "these releases and this log without the attacked queries"
            )

    def marginals(self, rows: Float32Array) -> Float64Array:
        """The network's answer among the candidates of each place, mixed with that of trigrams."""
        if self.context is not None and not self.trust:
            return self.context.marginals(rows)
        seen = Seen.of(rows, self.prior, self.weights["vectors"])
        scores = seen.scores + context_scores(self.weights, seen, np.array([len(rows)]))
        answer = np.zeros(rows.shape)
        np.put_along_axis(answer, seen.words, softmax(scores), axis=1)
        if self.context is None:
            return answer
        return mixed(answer, self.context.marginals(rows), self.trust)

    def save(self, file: Path) -> None:
        """Write everything but the trigrams to one file, whole or not at all."""
        about = {"layout": LAYOUT, "releases": self.releases, "trust": self.trust}
        settings = json.dumps({**about, "made_for": asdict(self.made_for)})
        halves = {name: array.astype(np.float16) for name, array in self.weights.items()}
        arrays: dict[str, Any] = {"settings": settings, "prior": self.prior, **halves}
        data = io.BytesIO()
        np.savez_compressed(data, **arrays)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, data.getvalue())

    @classmethod
    def load(cls, file: Path) -> Denoiser:
        """Read what :meth:`save` wrote."""
        try:
            with np.load(io.BytesIO(file.read_bytes()), allow_pickle=False) as stored:
                arrays = dict(stored)
            settings = parse_json(str(arrays.pop("settings")))
            if settings["layout"] != LAYOUT:
                raise UsageError("the denoiser is of another version: train it again")
            return cls(
                MadeFor(**settings["made_for"]),
                int(settings["releases"]),
                float(settings["trust"]),
                prior=arrays.pop("prior"),
                weights={name: array.astype(np.float32) for name, array in arrays.items()},
            )
        except UsageError:
            raise
        except FileNotFoundError:
            raise UsageError("there is no such denoiser: train one with --train") from None
        except (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
            raise SottovoceError("the file holds no denoiser: train one with --train") from None


def kept_denoiser(made_for: MadeFor) -> Denoiser | None:
    """The one that was trained for this, if there is one."""
    return Denoiser.load(made_for.file) if made_for.file.exists() else None


def context_scores(weights: Weights, seen: Seen, lengths: IntArray) -> Float32Array:
    """Q . word of every candidate at every place of texts laid end to end."""
    words = np.concatenate([weights["vectors"], weights["learned"]], axis=1)
    text = np.repeat(np.arange(len(lengths)), lengths)
    firsts = (np.cumsum(lengths) - lengths)[text]
    scores = np.empty_like(seen.scores)
    for start in range(0, len(text), PLACES_AT_A_TIME):
        block = slice(start, start + PLACES_AT_A_TIME)
        targets = np.arange(len(text))[block] - firsts[block]
        tokens = Tokens.of(lengths[text[block]], targets)
        rows = np.where(tokens.kinds == EVIDENCE, firsts[block][:, None] + tokens.places, -1)
        vectors = read_context(weights, tokens, seen.inputs[rows])
        scores[block] = np.einsum("pd,pcd->pc", vectors, words[seen.words[block]])
    return scores


def mixed(network: FloatArray, trigrams: Float64Array, trust: float) -> Float64Array:
    """Both answers in one."""
    return np.asarray(trust * network + (1 - trust) * trigrams, dtype=np.float64)


def softmax(scores: Float32Array) -> Float32Array:
    """Shares that sum to 1 in each row."""
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True), dtype=np.float32)
