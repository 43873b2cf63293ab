"""LiteLLM's generic guardrail: it shows texts before and after a call, and takes others for them.

The contract, as LiteLLM's client has it: an answer says ``NONE`` (all stays), ``BLOCKED`` (the call
ends) or ``GUARDRAIL_INTERVENED`` (with texts in the same order). What is left out of an answer
stays as it was, so that every doubt must be ``BLOCKED``: nothing here raises.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any

from sottovoce.errors import SottovoceError, UsageError
from sottovoce.prompts.chat import Turn, read_messages
from sottovoce.prompts.placeholders import Restorer, Table
from sottovoce.prompts.protection import Message, PromptProtection, ProtectedPrompt

DESTINATION = "litellm"
TABLES = 2000
LIFETIME = 3600.0
"""Seconds that a call's table is kept for its answer."""
NOT_TEXT = {
    "images": "pictures",
    "tools": "tools",
    "tool_calls": "calls of tools",
}


class Tables:
    """The tables of calls whose answers are still to come, in memory, for a while."""

    def __init__(
        self, most: int = TABLES, lifetime: float = LIFETIME, clock: Callable[[], float] = time.time
    ) -> None:
        self._most, self._lifetime, self._clock = most, lifetime, clock
        self._tables: OrderedDict[str, tuple[float, Table]] = OrderedDict()
        self._lock = Lock()

    def keep(self, call: str, table: Table) -> None:
        """Keep a table for its call's answer."""
        with self._lock:
            self._tables[call] = (self._clock(), table)
            self._tables.move_to_end(call)
            self._forget()

    def get(self, call: str) -> Table | None:
        """The table of a call; an answer in pieces asks for it several times."""
        with self._lock:
            self._forget()
            return self._tables[call][1] if call in self._tables else None

    def _forget(self) -> None:
        """Let go of what is too old, and of the oldest where there are too many."""
        oldest_kept = self._clock() - self._lifetime
        while self._tables and (
            len(self._tables) > self._most or next(iter(self._tables.values()))[0] < oldest_kept
        ):
            self._tables.popitem(last=False)


class Guardrail:
    """Answers LiteLLM: placeholders and passages before a call, values after it.

    ``show`` is told what leaves, after it was counted.
    """

    def __init__(
        self,
        protection: PromptProtection,
        *,
        tables: Tables | None = None,
        show: Callable[[ProtectedPrompt], None] | None = None,
    ) -> None:
        self.protection, self.show = protection, show
        self.tables = Tables() if tables is None else tables

    def answer(self, body: Any) -> dict[str, Any]:
        """What to tell LiteLLM."""
        try:
            if not isinstance(body, dict):
                raise UsageError("the request is no JSON object")
            if body.get("input_type") == "request":
                return self._before(body)
            if body.get("input_type") == "response":
                return self._after(body)
            raise UsageError("input_type is neither request nor response")
        except SottovoceError as error:
            return blocked(str(error))
        except Exception as error:
            return blocked(f"unexpected {type(error).__name__}; the call was stopped")

    def _before(self, body: dict[str, Any]) -> dict[str, Any]:
        for field, what in NOT_TEXT.items():
            if body.get(field):
                raise UsageError(f"{what} are not passed on: nothing here can protect them")
        messages = _messages(body)
        prompt = self.protection.protect(messages)
        prompt = self.protection.count(prompt, DESTINATION)
        if self.show is not None:
            self.show(prompt)
        call = body.get("litellm_call_id")
        if isinstance(call, str) and call and len(prompt.table):
            self.tables.keep(call, prompt.table)
        if prompt.unchanged:
            return {"action": "NONE"}
        return {"action": "GUARDRAIL_INTERVENED", "texts": list(prompt.texts)}

    def _after(self, body: dict[str, Any]) -> dict[str, Any]:
        call, texts = body.get("litellm_call_id"), _texts(body)
        table = self.tables.get(call) if isinstance(call, str) else None
        if table is None:  # Nothing was replaced, or it is forgotten: the answer holds no value.
            return {"action": "NONE"}
        restorers = [Restorer(table) for _ in texts]
        shown = [restorer.feed(text) for restorer, text in zip(restorers, texts, strict=True)]
        held = [restorer.held for restorer in restorers]
        return {
            "action": "GUARDRAIL_INTERVENED",
            "texts": [text + rest for text, rest in zip(shown, held, strict=True)],
            "stream_holdback_chars": [len(rest) for rest in held],
        }


def blocked(why: str) -> dict[str, Any]:
    """The answer that ends a call; ``why`` holds no text."""
    return {"action": "BLOCKED", "blocked_reason": f"sottovoce: {why}"}


def _texts(body: dict[str, Any]) -> list[str]:
    texts = body.get("texts")
    if texts is None:
        return []
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise UsageError("texts is no list of texts")
    return texts


def _messages(body: dict[str, Any]) -> list[Message]:
    """The texts of a call with their roles. Where messages hold more than these texts, refuse."""
    texts, structured = _texts(body), body.get("structured_messages")
    if not structured:
        return [Message("user", text) for text in texts]
    turns: tuple[Turn, ...] = read_messages(structured)
    messages = [Message(turn.role, part) for turn in turns for part in turn.parts]
    if [message.text for message in messages] != texts:
        raise UsageError("the messages hold other texts than those to be protected")
    return messages
