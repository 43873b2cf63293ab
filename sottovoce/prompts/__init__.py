"""Requests to language models: what leaves, what stands for it, what it costs."""

from sottovoce.prompts.answers import AnswerStream, restored_answer
from sottovoce.prompts.chat import ChatRequest, read_chat
from sottovoce.prompts.guardrail import Guardrail
from sottovoce.prompts.identifiers import KINDS, Finder, Identifier, Listed, Patterns
from sottovoce.prompts.placeholders import Restorer, Table, restore
from sottovoce.prompts.protection import Message, PromptProtection, ProtectedPrompt
from sottovoce.prompts.upstream import Upstream, UpstreamError

__all__ = [
    "KINDS",
    "AnswerStream",
    "ChatRequest",
    "Finder",
    "Guardrail",
    "Identifier",
    "Listed",
    "Message",
    "Patterns",
    "PromptProtection",
    "ProtectedPrompt",
    "Restorer",
    "Table",
    "Upstream",
    "UpstreamError",
    "read_chat",
    "restore",
    "restored_answer",
]
