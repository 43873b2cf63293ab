"""What is measured, as data. Tables hold labels, which are written and read back here alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

InferenceKind: TypeAlias = Literal["lazy", "active", "motivated"]
RecoveryKind: TypeAlias = Literal["words", "content", "query"]
MeasureKind: TypeAlias = (
    Literal["answers", "pooled recall", "pool", "similarity", "strongest", "sent", "chance"]
    | InferenceKind
    | RecoveryKind
)
"""answers: how good they are, by a measure of ir_measures. pooled recall, pool: the share of the
relevant documents in a pool, and its documents. similarity: of variants and query. lazy, active,
motivated: query inference that guesses once, ten times, or goes down its list. words, content,
query: the share of the words recovered, of the content words, and whether all were. strongest: the
attack that gets most. sent: how many different queries leave for it. chance: how often a blind
guess names what stands for it in a set."""

INFERENCE: tuple[InferenceKind, ...] = get_args(InferenceKind)
RECOVERY: tuple[RecoveryKind, ...] = get_args(RecoveryKind)
SIMILARITIES = ("jaccard", "semantic", "bleu", "meteor")

_BY_ATTACKER = re.compile(rf"({'|'.join((*INFERENCE, *RECOVERY))})\[(.*)\]", re.DOTALL)
_POOLED_RECALL = re.compile(r"pooled recall\(rel=(.*)\)", re.DOTALL)
_RELATIVE = re.compile(r"(synonym|hyponym|neighbour) of (.+)", re.DOTALL)
_DISTANCE = re.compile(r"distance to neighbour (\d+)")


@dataclass(frozen=True)
class Measure:
    """A measure of queries.

    ``detail`` is, by kind, the name that ir_measures has for it; the least grade that counts; the
    similarity; ``aligned``, the attacker's encoder or way to compare words (query inference); the
    attack on words.
    """

    kind: MeasureKind
    detail: str = ""

    @classmethod
    def read(cls, label: Measure | str) -> Measure:
        """The measure that a label in a table stands for."""
        if isinstance(label, Measure):
            return label
        if attacked := _BY_ATTACKER.fullmatch(label):
            return cls(attacked[1], attacked[2])  # type: ignore[arg-type]  # as in the pattern
        if recall := _POOLED_RECALL.fullmatch(label):
            return cls("pooled recall", recall[1])
        for whole in (POOL, STRONGEST, SENT, CHANCE):
            if label == whole.label:
                return whole
        return cls("similarity" if label in SIMILARITIES else "answers", label)

    @property
    def label(self) -> str:
        """As tables have it, such as ``nDCG@10``, ``lazy[light]``, ``pooled recall(rel=1)``."""
        if self.kind in INFERENCE or self.kind in RECOVERY:
            return f"{self.kind}[{self.detail}]"
        if self.kind == "pooled recall":
            return f"pooled recall(rel={self.detail})"
        return self.detail or self.kind

    @property
    def is_share(self) -> bool:
        """Whether it is 0 or 1 for each query, so that its mean is a share of the queries."""
        return self.kind in ("lazy", "active", "query")

    @property
    def counts_pool(self) -> bool:
        """Whether it is a fact of the pool, which no re-ranker changes."""
        return self.kind in ("pool", "pooled recall")


POOL = Measure("pool")
STRONGEST = Measure("strongest")
SENT = Measure("sent", "queries sent")
CHANCE = Measure("chance")
MAIN_MEASURE = Measure("answers", "nDCG@10")
MAIN_SIMILARITY = Measure("similarity", "semantic")
"""The similarity that figures show beside risks."""


# In the table of words

UNCHANGED, SUPPORT, DISTINCT, MOVED = "N_w", "S_w", "distinct", "moved"
DENIABILITY = (UNCHANGED, SUPPORT, DISTINCT, MOVED)
"""Of a word and a mechanism: how often it comes back as itself, how many words stand in for it, how
many different ones came in so many draws, how far it moves."""

# In the table of audits

AUDITORS = {"obfuscated": "knows the mechanism", "clean": "learnt from clean text"}
"""By what the auditor's shadow models learnt from."""
AUC, PRECISION, RECALL, ACCURACY = "AUC", "precision", "recall", "accuracy"
EITHER_WAY, FOUND = "max(AUC, 1 - AUC)", "found at 1 % false alarms"
AUDITED = (EITHER_WAY, AUC, PRECISION, RECALL, ACCURACY, FOUND)
"""Of a membership audit: four as Feyisetan et al. (WSDM 2020) have them, and what they mean."""


RelativeKind: TypeAlias = Literal["synonym", "hyponym", "neighbour"]
RELATIVES: tuple[RelativeKind, ...] = get_args(RelativeKind)
DISTANCE, ANGLE = "distance", "angle"
"""Of a plotted word's relatives, as seen from it."""


def relatives_label(kind: RelativeKind, word: str) -> str:
    """Of words around a plotted one: their rows have it where others have the mechanism."""
    return f"{kind} of {word}"


def read_relatives(label: str) -> tuple[RelativeKind, str] | None:
    """The kind and the plotted word that a label stands for; None for a mechanism."""
    relatives = _RELATIVE.fullmatch(label)
    return relatives and (relatives[1], relatives[2])  # type: ignore[return-value]


def neighbour_label(rank: int) -> str:
    """Of how far a word is from its nearest neighbour, its tenth nearest, and so on."""
    return f"distance to neighbour {rank}"


def read_neighbour(label: str) -> int | None:
    """The rank that a label stands for; None for another measure."""
    distance = _DISTANCE.fullmatch(label)
    return distance and int(distance[1])
