"""The part of a document that answers a query best, for people to look at."""

from __future__ import annotations

import regex

from sottovoce.text.stems import content_words, stems

LENGTH = 200
_SENTENCE = regex.compile(r".+?(?:[.!?](?=\s|$)|$)\s*", regex.DOTALL)


def snippet(text: str, title: str, query: str) -> str:
    """The sentence that shares most words with the query, and what follows; the first if none."""
    body = " ".join(text.removeprefix(title).split())
    sentences = _SENTENCE.findall(body) or [""]
    wanted = set(stems(content_words(query)))
    shared = [len(wanted & set(stems(content_words(each)))) for each in sentences]
    best = shared.index(max(shared))
    return shortened("".join(sentences[best:]))


def shortened(text: str, length: int = LENGTH) -> str:
    """The beginning of a text, cut between words."""
    if len(text) <= length:
        return text.strip()
    cut = text.rfind(" ", 0, length)
    return text[: cut if cut > 0 else length].rstrip(" ,;:") + " …"
