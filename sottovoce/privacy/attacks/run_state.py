"""One run of all attacks: what is attacked, what the attacker has, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from sottovoce.choices import Release
from sottovoce.mechanisms.base import Mechanism
from sottovoce.privacy.attacks.company.report import CompanyReport
from sottovoce.privacy.attacks.denoiser import Denoiser
from sottovoce.privacy.attacks.query_log import QueryLog
from sottovoce.privacy.attacks.ranked import Inference
from sottovoce.privacy.attacks.releases import Released
from sottovoce.privacy.attacks.words import WordRecovery
from sottovoce.randomness import Randomness
from sottovoce.text import TextPipeline
from sottovoce.types import IntArray, Progress

PriorName: TypeAlias = Literal["log", "wordfreq", "uniform"]
Attack: TypeAlias = Literal[
    "mode", "uniform", "prior", "context", "aligned", "means", "answers", "remade"
]
ATTACKS: tuple[Attack, ...] = get_args(Attack)
"""mode: the word that most variants show. uniform, prior, context: the likeliest word by the
mechanism's own law, with all words alike beforehand, as frequent as in a log or a language, or in
texts like those of a log. aligned: the likeliest query of a log by that law, place by place, and
for fresh draws in random order also variant by variant (``any order``). means: the query of a log
whose words are most like those of the variants, by several ways to compare (``word_means``).
answers: the query of a log that finds what the variants find, where an engine is given. remade:
the query of a log from which the mechanism makes these variants again, where it computes them."""
BY_TEXTS = frozenset({"means", "answers", "remade"})
"""Those that compare whole texts: no words are lined up for them."""


@dataclass
class RunState:
    """One run of all attacks: what is attacked, what the attacker has, and what came of it."""

    releases: Sequence[Released]
    mechanism: Mechanism | None
    release: Release
    pipeline: TextPipeline
    cut_is_known: bool
    log: QueryLog | None
    add_originals: bool
    prior: PriorName
    attacks: tuple[Attack, ...]
    denoiser: Denoiser | None
    seen: list[int]
    rng: Randomness
    progress: Progress | None
    recoveries: list[tuple[int, WordRecovery]] = field(default_factory=list)
    inferences: list[tuple[int, Inference]] = field(default_factory=list)
    not_tried: dict[str, str] = field(default_factory=dict)
    likely: list[list[IntArray]] = field(default_factory=list)
    """Queries that each release may be of, the likeliest first, by attacks that were run."""
    left_out: int = 0
    company: CompanyReport | None = None
