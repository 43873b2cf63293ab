"""Answers with their placeholders put back, whole or piece by piece."""

from __future__ import annotations

from typing import Any

from sottovoce.prompts.placeholders import Restorer, Table, restore

FIELDS = ("content", "refusal", "reasoning_content", "reasoning")
"""The texts of an answer."""


def restored_answer(answer: dict[str, Any], table: Table) -> dict[str, Any]:
    """A whole answer with its values."""
    choices = [
        {**choice, "message": _restored(choice.get("message"), table)}
        for choice in _choices(answer)
    ]
    return {**answer, "choices": choices}


def _restored(message: Any, table: Table) -> Any:
    if not isinstance(message, dict):
        return message
    texts = {field: message[field] for field in FIELDS if isinstance(message.get(field), str)}
    return {**message, **{field: restore(text, table) for field, text in texts.items()}}


class AnswerStream:
    """An answer that arrives in pieces; each text of each choice is put back by itself."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._restorers: dict[tuple[int, str], Restorer] = {}
        self._last: dict[str, Any] = {}

    def piece(self, event: dict[str, Any]) -> dict[str, Any]:
        """A piece as it may be shown; what may begin a placeholder is kept for the next."""
        self._last = event
        return {**event, "choices": [self._choice(choice) for choice in _choices(event)]}

    def rest(self) -> dict[str, Any] | None:
        """A last piece with what is still held back, where the upstream never said its end."""
        indices = sorted({index for index, _ in self._restorers})
        choices = [{"index": index, "delta": self._finished(index, {})} for index in indices]
        choices = [{**choice, "finish_reason": None} for choice in choices if choice["delta"]]
        return {**self._last, "choices": choices} if choices else None

    def _choice(self, choice: dict[str, Any]) -> dict[str, Any]:
        index = choice.get("index")
        index = index if isinstance(index, int) else 0
        delta = choice.get("delta")
        delta = dict(delta) if isinstance(delta, dict) else {}
        for field in FIELDS:
            if isinstance(delta.get(field), str):
                restorer = self._restorers.setdefault((index, field), Restorer(self._table))
                delta[field] = restorer.feed(delta[field])
        if choice.get("finish_reason") is not None:
            delta = self._finished(index, delta)
        return {**choice, "delta": delta}

    def _finished(self, index: int, delta: dict[str, Any]) -> dict[str, Any]:
        """The delta with all that was held back of a choice."""
        for field in FIELDS:
            restorer = self._restorers.get((index, field))
            rest = "" if restorer is None else restorer.finish()
            if rest:
                delta = {**delta, field: (delta.get(field) or "") + rest}
        return delta


def _choices(answer: dict[str, Any]) -> list[dict[str, Any]]:
    choices = answer.get("choices")
    if not isinstance(choices, list):
        return []
    return [choice for choice in choices if isinstance(choice, dict)]
