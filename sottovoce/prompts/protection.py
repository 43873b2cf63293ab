"""PromptProtection: messages in, what may be sent out, counted before it is.

Identifiers become placeholders, chosen passages go through a mechanism. All other words leave in
clear: that is the choice of whoever asks, and every result says how many they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from sottovoce.errors import SottovoceError, UsageError
from sottovoce.guarantees import Guarantee
from sottovoce.ledger import Budget, BudgetError, Entry, Ledger, Promise
from sottovoce.mechanisms.base import WordMechanism, require
from sottovoce.obfuscation import Obfuscation, Obfuscator
from sottovoce.prompts.identifiers import Finder, Patterns
from sottovoce.prompts.placeholders import Table
from sottovoce.randomness import is_seeded
from sottovoce.text.tokens import tokenize

OPEN, CLOSE = "⟦", "⟧"
"""Around a passage that goes through the mechanism."""

Passages: TypeAlias = Literal["marked", "user", "all"]
"""What goes through the mechanism: what is marked, all that the user says, or every message."""
PASSAGES: tuple[Passages, ...] = get_args(Passages)

IN_CLEAR = (
    "{count} words leave in clear: no number of nats covers them, and no pattern knows what they "
    "tell together"
)
NOTHING_IN_CLEAR = "no word leaves in clear"


class Message(NamedTuple):
    """A text, and who says it."""

    role: str
    text: str

    def __repr__(self) -> str:
        return f"Message({self.role})"


@dataclass(frozen=True, repr=False)
class ProtectedPrompt:
    """What may be sent in place of messages. ``table`` and ``original`` are for their owner."""

    original: tuple[Message, ...]
    texts: tuple[str, ...]
    """One for each message: this is what leaves."""
    table: Table
    replaced: int
    """How many places are placeholders."""
    in_clear: int
    """How many words leave as they are."""
    passages: tuple[Obfuscation, ...]
    spent: float | None = 0.0
    """Nats for all passages, as counted; None: nothing bounds it."""

    @property
    def unchanged(self) -> bool:
        """Whether all messages leave as they are."""
        return self.texts == tuple(message.text for message in self.original)

    @property
    def guarantee(self) -> Guarantee | None:
        """What holds for passages; None without any."""
        return self.passages[0].guarantee if self.passages else None

    def report(self) -> dict[str, Any]:
        """What leaves and what it costs, for JSON. No value of a placeholder is in it."""
        guarantee = self.guarantee
        return {
            "sent": list(self.texts),
            "placeholders": self.table.kinds,
            "replaced": self.replaced,
            "in_clear": self.in_clear,
            "passages": len(self.passages),
            "words_obfuscated": sum(passage.counts.protected for passage in self.passages),
            "mechanism": self.passages[0].mechanism if self.passages else None,
            "guarantee": guarantee and guarantee.to_dict(),
            "spent": self.spent,
            "sentence": self.sentence,
        }

    @property
    def sentence(self) -> str:
        """The same for people, in one line that holds no text."""
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.table.kinds.items()))
        parts = [f"placeholders: {kinds or 'none'}"]
        if self.passages:
            words = sum(passage.counts.protected for passage in self.passages)
            promise = Promise.of(self.passages[0].guarantee, None)
            cost = "without bound" if self.spent is None else f"{self.spent:g} nats {promise.unit}"
            parts.append(f"{words} words by {self.passages[0].mechanism}, {cost}")
        parts.append(IN_CLEAR.format(count=self.in_clear) if self.in_clear else NOTHING_IN_CLEAR)
        return "; ".join(parts)

    def __repr__(self) -> str:
        return f"ProtectedPrompt({len(self.texts)} messages, spent={self.spent})"


@dataclass(frozen=True)
class PromptProtection:
    """How messages are protected.

    finders
        What finds identifiers.
    obfuscator
        What passages go through: one variant by a mechanism that replaces word by word. None:
        messages with passages are refused.
    ledger
        Counts what leaves before it does; words that were drawn before get the same substitutes,
        so that a conversation, which is sent whole each time, tells nothing more by that.
    """

    finders: tuple[Finder, ...] = (Patterns(),)
    obfuscator: Obfuscator | None = None
    passages: Passages = "marked"
    ledger: Ledger | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        require(self.passages in PASSAGES, f"passages is one of {', '.join(PASSAGES)}")
        if self.obfuscator is None:
            require(self.passages == "marked", f"passages={self.passages} needs an obfuscator")
            return
        mechanism = self.obfuscator.mechanism
        require(
            isinstance(mechanism, WordMechanism) and self.obfuscator.n == 1,
            f"{mechanism.name} cannot stand for a passage: take one variant (n=1) of a mechanism "
            "that replaces word by word, such as cmp",
        )

    def protect(self, messages: Sequence[Message]) -> ProtectedPrompt:
        """What may be sent in place of messages; nothing is counted yet."""
        try:
            return self._protected(messages)
        except SottovoceError:
            raise
        except Exception as error:
            # The cause could hold a text: say what kind of error it was, and nothing of it.
            kind = type(error).__name__
            raise SottovoceError(f"the prompt cannot be protected ({kind}): not sent") from None

    def _protected(self, messages: Sequence[Message]) -> ProtectedPrompt:
        stretches = [self._stretches(message) for message in messages]
        flat = [stretch for row in stretches for stretch in row]
        table = Table(message.text for message in messages)
        clear = iter(table.cut([text for text, is_passage in flat if not is_passage], self.finders))
        results = self._obfuscated([text for text, is_passage in flat if is_passage])
        variants = (result.variants[0] for result in results)
        texts, replaced, in_clear = [], 0, sum(result.counts.kept for result in results)
        for row in stretches:
            parts: list[str] = []
            for _, is_passage in row:
                if is_passage:
                    parts.append(next(variants))
                    continue
                pieces = next(clear)
                parts += [piece.text for piece in pieces]
                replaced += sum(piece.is_placeholder for piece in pieces)
                unreplaced = [piece.text for piece in pieces if not piece.is_placeholder]
                in_clear += sum(len(tokenize(text)) for text in unreplaced)
                if any(map(table.stands_in, unreplaced)):
                    raise SottovoceError("an identifier would still be in the prompt: not sent")
            texts.append("".join(parts))
        costs = [result.spent for result in results]
        spent = sum(cost for cost in costs if cost is not None) if None not in costs else None
        return ProtectedPrompt(
            tuple(messages), tuple(texts), table, replaced, in_clear, tuple(results), spent
        )

    def count(self, prompt: ProtectedPrompt, destination: str) -> ProtectedPrompt:
        """Count what is about to be sent, or raise: then it must not be. The same, with its cost.

        What leaves in clear is counted in words. While there is a budget, that is refused.
        """
        if self.ledger is None:
            return prompt
        if prompt.in_clear and self.ledger.budget() != Budget():
            raise BudgetError(
                f"there is a budget, and {prompt.in_clear} words would leave in clear, which no "
                "budget covers: send whole messages through a mechanism (--passages all), or "
                "remove the budget with 'sottovoce ledger budget --none'"
            )
        self.ledger.charge(_clear_entry(prompt, destination))
        spent: float | None = 0.0
        for result in prompt.passages:
            # What a language model gets is no query, which an engine could compare with others.
            entry = Entry.of(result, self._drawing(), destination, elsewhere=False)
            # Words in clear are counted once, above.
            receipt = self.ledger.charge(replace(entry, in_clear=0))
            cost = receipt.record.spent
            spent = None if cost is None or spent is None else spent + cost
        return replace(prompt, spent=spent)

    def _stretches(self, message: Message) -> list[tuple[str, bool]]:
        """The text in stretches, and whether each goes through the mechanism."""
        stretches, rest = [], message.text
        while rest:
            before, opened, after = rest.partition(OPEN)
            inside, closed, rest = after.partition(CLOSE)
            if CLOSE in before or OPEN in inside or bool(opened) != bool(closed):
                raise UsageError(
                    f"a passage begins with {OPEN} and ends with {CLOSE}; these do not match, so "
                    "nothing was sent"
                )
            stretches += [(before, False), (inside, True)]
        if self.passages == "all" or (self.passages == "user" and message.role == "user"):
            stretches = [("".join(text for text, _ in stretches), True)]
        return [stretch for stretch in stretches if stretch[0]]

    def _obfuscated(self, passages: list[str]) -> list[Obfuscation]:
        if not passages:
            return []
        if self.obfuscator is None:
            raise UsageError(
                "a passage is marked, and there is no mechanism for it: choose one, or take the "
                "marks out; nothing was sent"
            )
        results = list(self._drawing().obfuscate(passages))
        if any(len(result.variants) != 1 for result in results):
            raise SottovoceError("a passage was not replaced: not sent")
        return results

    def _drawing(self) -> Obfuscator:
        """What draws: by the ledger's key, so that words are remembered."""
        obfuscator = self.obfuscator
        assert obfuscator is not None  # noqa: S101 - only called where passages are
        if self.ledger is None or is_seeded(obfuscator.rng):
            return obfuscator
        return replace(obfuscator, memory_key=self.ledger.memory_key())


def _clear_entry(prompt: ProtectedPrompt, destination: str) -> Entry:
    """What leaves outside passages: words in clear, and placeholders, which cost no nats."""
    return Entry(
        text="\n".join(message.text for message in prompt.original),
        variants=("\n".join(prompt.texts),),
        mechanism="placeholders",
        release="independent",
        guarantee=Guarantee("none", None),
        releases=0,
        destination=destination,
        protected=prompt.replaced,
        in_clear=prompt.in_clear,
    )
