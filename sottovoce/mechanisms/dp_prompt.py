"""DP-Prompt: a language model writes the text anew, a noisy token at a time (Utpala et al. 2023).

It is not registered: it needs a language model, and is used from Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.random import Generator

from sottovoce.guarantees import MANY_RELEASES, Guarantee
from sottovoce.mechanisms.base import (
    Rewriting,
    TextMechanism,
    parameter,
    require,
    require_positive,
    resource,
)
from sottovoce.text import TextPipeline
from sottovoce.types import Float64Array

PROMPT = "Document: {}\nParaphrase of the document:"
MOST_TOKENS = 1000
CAVEATS = (
    "the language model must be public, and not trained on the texts",
    "what the model knows by itself is in the output, true or not; a text, or a word that no list "
    "has, may come back as it is",
    "logits are cut to a range, so that the bound holds; the usual sampling by temperature does "
    "not do that, and promises nothing",
    MANY_RELEASES,
)
FEWER = "some variants were blank, and are left out"


class LanguageModel(Protocol):
    """What is asked of a causal language model on this machine.

    name, end
        For people; and the token that ends a text.
    """

    name: str
    end: int

    def tokens(self, text: str) -> list[int]:
        """The tokens of a prompt."""

    def logits(self, tokens: Sequence[int]) -> Float64Array:
        """The logit of each token to be the next one; always as many."""

    def text(self, tokens: Sequence[int]) -> str:
        """What tokens say."""


@dataclass(frozen=True, repr=False, eq=False)
class DPPrompt(TextMechanism):
    """Asks for a paraphrase; each token is drawn by the exponential mechanism over clipped logits.

    Logits are moved so that the largest one is 0 and cut off ``width`` below. Whatever the text,
    they then lie in one range, and a token drawn with a chance proportional to exp(logit / T) tells
    any two texts apart by at most 2 width / T nats. T = 2 width / epsilon, so that is epsilon. The
    text ends at the model's own end, or after ``length`` tokens.
    """

    name: ClassVar[str] = "dp-prompt"
    summary: ClassVar[str] = "a paraphrase by a local language model, sampled token by token"
    paper: ClassVar[str] = (
        "Utpala, Hooker, Chen: Locally Differentially Private Document Generation Using Zero Shot "
        "Prompting, EMNLP Findings 2023"
    )
    may_repeat: ClassVar[bool] = True

    model: LanguageModel = resource()
    epsilon: float = parameter(
        10.0, "privacy parameter of one token; a release costs this times length"
    )
    length: int = parameter(16, "the most tokens of a variant")
    width: float = parameter(20.0, "how far below the largest logit others are cut off")

    def __post_init__(self) -> None:
        require_positive(self.epsilon)
        require(
            1 <= self.length <= MOST_TOKENS,
            f"length must lie between 1 and {MOST_TOKENS}, got {self.length}",
        )
        require(
            np.isfinite(self.width) and self.width > 0,
            f"width must be a positive number, got {self.width}",
        )

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee("local", self.epsilon * self.length, scope="text", caveats=CAVEATS)

    def law(self, logits: Float64Array) -> Float64Array:
        """The chance of each token to be released next."""
        moved = np.asarray(logits, dtype=np.float64) - np.max(logits)
        require(np.isfinite(np.max(logits)), "the language model gave no numbers: nothing is drawn")
        clipped = np.maximum(np.nan_to_num(moved, nan=-self.width), -self.width)
        weights = np.exp(clipped * (self.epsilon / (2 * self.width)))
        return np.asarray(weights / weights.sum())

    def rewrite(self, text: str, n: int, pipeline: TextPipeline, rng: Generator) -> Rewriting:
        """Variants drawn independently; the pipeline has no say in them."""
        prompt = self.model.tokens(PROMPT.format(text))
        variants = []
        for _ in range(n):
            variant = " ".join(self.model.text(self._drawn(prompt, rng)).split())
            if variant:
                variants.append(variant)
        return Rewriting(tuple(variants), caveats=(FEWER,) if len(variants) < n else ())

    def _drawn(self, prompt: list[int], rng: Generator) -> list[int]:
        tokens: list[int] = []
        while len(tokens) < self.length:
            cumulated = np.cumsum(self.law(self.model.logits([*prompt, *tokens])))
            place = np.searchsorted(cumulated, rng.random() * cumulated[-1], side="right")
            token = min(int(place), len(cumulated) - 1)
            if token == self.model.end:
                break
            tokens.append(token)
        return tokens
