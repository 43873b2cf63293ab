"""Where the strings of a pool come from: lists of strings, or the documents of a collection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MappingProxyType

from sottovoce.collections import (
    STRING_SOURCES,
    Document,
    has_strings,
    read_documents,
    read_strings,
)
from sottovoce.errors import UsageError
from sottovoce.language.tagging import PARTS_OF_SPEECH, load_tagger
from sottovoce.text import TaggedToken, normalize, tagged
from sottovoce.text.words import sentences

SHORTEST_SENTENCE = 3
"""Words; what is shorter is no sentence but a heading or a number."""
PHRASE_WORDS = range(2, 6)
"""How many words a phrase may have."""

_NOUNS = frozenset(PARTS_OF_SPEECH["noun"])
_IN_PHRASES = _NOUNS.union(PARTS_OF_SPEECH["adjective"])


def strings_of(source: str) -> Iterator[str]:
    """The strings of a source, one at a time.

    source
        ``titles:``, ``sentences:`` or ``phrases:`` and a collection; or what a pool is read from:
        ``demo``, a file, a folder, ``ir_datasets:ID``.
    """
    kind, _, collection = source.partition(":")
    if kind not in OF_DOCUMENTS:
        if not has_strings(source):
            raise UsageError(
                f"a source is missing: there is no '{source}'. Strings come from {STRING_SOURCES}; "
                f"or write {', '.join(f'{name}:' for name in OF_DOCUMENTS)} before a collection"
            )
        return read_strings(source)
    if not collection:
        raise UsageError(
            f"{kind}: goes before a collection: {kind}:demo, {kind}:FOLDER or {kind}:ir_datasets:ID"
        )
    take = OF_DOCUMENTS[kind]
    return (string for document in read_documents(collection) for string in take(document))


def _titles(document: Document) -> Iterator[str]:
    if document.title.strip():
        yield document.title


def _sentences(document: Document) -> Iterator[str]:
    for sentence in sentences(document.text.removeprefix(document.title)):
        if len(sentence.split()) >= SHORTEST_SENTENCE:
            yield sentence


def _phrases(document: Document) -> Iterator[str]:
    """Noun phrases: adjectives and nouns with nothing but blanks between, and a noun at the end."""
    text = normalize(document.text)
    run: list[TaggedToken] = []
    for token in tagged(text, load_tagger()):
        if run and (token.tag not in _IN_PHRASES or text[run[-1].end : token.start] != " "):
            yield from _phrase(run, text)
            run = []
        if token.tag in _IN_PHRASES:
            run.append(token)
    yield from _phrase(run, text)


def _phrase(run: list[TaggedToken], text: str) -> Iterator[str]:
    while run and run[-1].tag not in _NOUNS:
        run.pop()
    if len(run) in PHRASE_WORDS:
        yield text[run[0].start : run[-1].end]


OF_DOCUMENTS: MappingProxyType[str, Callable[[Document], Iterator[str]]] = MappingProxyType(
    {"titles": _titles, "sentences": _sentences, "phrases": _phrases}
)
"""What can be taken from documents, by the name of it."""
