"""A request for a chat completion, as OpenAI's clients write it: texts out, texts in.

What cannot carry a text is passed on, what is known to be text is protected, and everything else
is refused: a picture, a tool or a field that nobody here knows may hold anything.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sottovoce.errors import UsageError
from sottovoce.prompts.protection import Message

ROLES = ("system", "developer", "user", "assistant")
LONGEST = 400_000
"""Characters of all messages together."""
MOST_MESSAGES = 2000

NUMBERS = {
    **dict.fromkeys(("temperature", "top_p", "min_p", "repetition_penalty"), 100.0),
    **dict.fromkeys(("presence_penalty", "frequency_penalty"), 100.0),
    **dict.fromkeys(("max_tokens", "max_completion_tokens", "top_k"), 1e7),
    "n": 16.0,
    "seed": 2.0**31,
}
"""Numbers that are passed on, and how large they may be."""
FLAGS = ("stream", "store")
CHOICES = {
    "response_format": ({"type": "text"}, {"type": "json_object"}),
    "stream_options": ({"include_usage": True}, {"include_usage": False}),
    "reasoning_effort": ("none", "minimal", "low", "medium", "high"),
}
LEFT_OUT = ("user", "metadata", "safety_identifier", "prompt_cache_key")
"""Who asks, and for what: it is not passed on, and the answer says so."""
REFUSED = {
    **dict.fromkeys(
        ("tools", "tool_choice", "functions", "function_call", "tool_calls", "parallel_tool_calls"),
        "tools are not passed on: their names and arguments may hold anything",
    ),
    **dict.fromkeys(("audio", "modalities"), "only text is passed on"),
    **dict.fromkeys(
        ("logprobs", "top_logprobs", "logit_bias"),
        "tokens are not passed on one by one: placeholders could not be put back",
    ),
    "stop": "stop is not passed on: it is a text like any other, and none that can be changed",
    "name": "a message's name is not passed on: put it into its content",
}
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}")


class Turn(NamedTuple):
    """A message: who speaks, and the texts of its parts."""

    role: str
    parts: tuple[str, ...]
    is_list: bool

    def __repr__(self) -> str:
        return f"Turn({self.role}, {len(self.parts)} parts)"


@dataclass(frozen=True, repr=False)
class ChatRequest:
    """What was asked: the texts, and settings that hold none."""

    model: str
    turns: tuple[Turn, ...]
    settings: dict[str, Any]
    left_out: tuple[str, ...] = ()

    @property
    def stream(self) -> bool:
        """Whether the answer is to come in pieces."""
        return bool(self.settings.get("stream"))

    @property
    def messages(self) -> list[Message]:
        """The texts, in order, and who says them."""
        return [Message(turn.role, part) for turn in self.turns for part in turn.parts]

    def messages_with(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        """The messages with other texts."""
        rest = iter(texts)
        messages = []
        for turn in self.turns:
            parts = [next(rest) for _ in turn.parts]
            content = [{"type": "text", "text": part} for part in parts]
            messages.append({"role": turn.role, "content": content if turn.is_list else parts[0]})
        return messages

    def body_with(self, texts: Sequence[str]) -> bytes:
        """What is sent: these texts and the settings; for lone surrogates stands U+FFFD."""
        body = {"model": self.model, "messages": self.messages_with(texts), **self.settings}
        return json.dumps(_without_surrogates(body), allow_nan=False).encode("ascii")

    def __repr__(self) -> str:
        return f"ChatRequest({len(self.turns)} messages)"


def read_chat(body: Any) -> ChatRequest:
    """The request in a body, or an error that repeats nothing of it."""
    if not isinstance(body, dict):
        raise UsageError("the body is no JSON object")
    model = body.get("model")
    if not isinstance(model, str) or _MODEL.fullmatch(model) is None:
        raise UsageError("model: give the name of a model, of letters, digits and . _ : / @ + -")
    settings = {}
    left_out = []
    for field, value in body.items():
        if field in ("model", "messages") or _is_nothing(value):
            continue
        if field in LEFT_OUT:
            left_out.append(field)
        else:
            settings[field] = _setting(field, value)
    turns = read_messages(body.get("messages"))
    return ChatRequest(model, turns, settings, tuple(left_out))


def read_messages(messages: Any) -> tuple[Turn, ...]:
    """The messages of a request."""
    if not isinstance(messages, list) or not 1 <= len(messages) <= MOST_MESSAGES:
        raise UsageError(f"messages: give a list of 1 to {MOST_MESSAGES} messages")
    turns = tuple(map(_turn, messages))
    if sum(len(part) for turn in turns for part in turn.parts) > LONGEST:
        raise UsageError(f"messages: together they have over {LONGEST:,} characters")
    return turns


def _turn(message: Any) -> Turn:
    if not isinstance(message, dict):
        raise UsageError("messages: each is an object with role and content")
    role = message.get("role")
    if role not in ROLES:
        raise UsageError(f"messages: a role is one of {', '.join(ROLES)}; tools are not passed on")
    for field, value in message.items():
        if field not in ("role", "content") and not _is_nothing(value):
            raise _refusal(field)
    content = message.get("content")
    if isinstance(content, str):
        return Turn(role, (content,), is_list=False)
    if isinstance(content, list) and content and all(map(_is_text, content)):
        return Turn(role, tuple(part["text"] for part in content), is_list=True)
    raise UsageError(
        "messages: content is a text, or a list of parts {type: text}; pictures, sounds and files "
        "are not passed on, since nothing here can take a name out of them"
    )


def _is_text(part: Any) -> bool:
    return (
        isinstance(part, dict)
        and part.get("type") == "text"
        and isinstance(part.get("text"), str)
        and all(_is_nothing(part[field]) for field in part if field not in ("type", "text"))
    )


def _is_nothing(value: Any) -> bool:
    """Whether a field says nothing."""
    return value is None or value is False or value in ([], {})


def _setting(field: str, value: Any) -> Any:
    if field in FLAGS and isinstance(value, bool):
        return value
    if field in NUMBERS:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and math.isfinite(value) and abs(value) <= NUMBERS[field]:
            return value
        raise UsageError(f"{field}: give a number up to {NUMBERS[field]:g}")
    if field in CHOICES:
        if value in CHOICES[field]:
            return value
        raise UsageError(f"{field}: only {_listed(CHOICES[field])} is passed on")
    raise _refusal(field)


def _refusal(field: str) -> UsageError:
    if field in REFUSED:
        return UsageError(f"{field}: {REFUSED[field]}")
    return UsageError("there is a field that is not known here, and may hold a text: leave it out")


def _listed(choices: Sequence[Any]) -> str:
    return " or ".join(
        choice if isinstance(choice, str) else json.dumps(choice) for choice in choices
    )


def _without_surrogates(value: Any) -> Any:
    """The same JSON, of Unicode that every server reads."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_surrogates(item) for key, item in value.items()}
    return value
