"""Defects that somebody could really make, to see that the campaign finds each of them."""

from __future__ import annotations

import base64
import hashlib
import http.client
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch
from urllib.parse import quote, urlsplit

from sottovoce.encoders.base import corpus_vectors
from sottovoce.engines.http_client import Transport
from sottovoce.errors import SottovoceError
from sottovoce.ledger.book import Key
from sottovoce.obfuscation import Obfuscator
from sottovoce.pools import Pool
from sottovoce.prompts import PromptProtection
from sottovoce.search import PrivateSearch
from sottovoce.search.reranking import rerank
from sottovoce.text import TextPipeline, folded_text

PLANTS: dict[str, Plant] = {}


@dataclass(frozen=True)
class Plant:
    """What is wrong, and the kind of search and failure by which it shows."""

    what: str
    kind: str
    failure: str
    planted: Callable[[], Any]


def plant(name: str, kind: str, failure: str, what: str) -> Callable[[Any], Any]:
    """Make a defect known."""

    def known(defect: Callable[[], Iterator[None]]) -> Any:
        PLANTS[name] = Plant(what, kind, failure, contextmanager(defect))
        return defect

    return known


@contextmanager
def _true_query() -> Iterator[list[str]]:
    """The query that is being sent, where no code of ours could get it."""
    current = [""]
    send = PrivateSearch.send

    def sending(self: Any, release: Any, *arguments: Any, **named: Any) -> Any:
        current[0] = release.result.text
        return send(self, release, *arguments, **named)

    with patch.object(PrivateSearch, "send", sending):
        yield current


@plant(
    "header",
    "words",
    "is busy",
    "a request that is tried again has the query in a header, in base64",
)
def _header() -> Iterator[None]:
    ask_once = Transport._ask_once

    with _true_query() as current:

        def asking(self: Any, target: str, body: Any, headers: dict[str, str]) -> Any:
            again = headers.pop("X-Tries", None)
            if again is not None:
                text = current[0].encode("utf-8", "replace")
                headers = {**headers, "X-Context": base64.b64encode(text).decode()}
            try:
                return ask_once(self, target, body, headers)
            except Exception:
                headers["X-Tries"] = "1"
                raise

        def ask(self: Any, target: str, body: Any = None, kind: str = "application/json") -> Any:
            headers = {**self._headers, "Content-Type": kind}
            for _ in range(2):
                with suppress(Exception):
                    return self._ask_once(target, body, headers)
            return self._ask_once(target, body, headers)

        with patch.object(Transport, "_ask_once", asking), patch.object(Transport, "ask", ask):
            yield


@plant("redirect", "words", "redirects", "a redirect is followed, with the query itself")
def _redirect() -> Iterator[None]:
    getresponse = http.client.HTTPConnection.getresponse
    with _true_query() as current:

        def following(self: Any) -> Any:
            response = getresponse(self)
            if 300 <= response.status < 400:
                place = urlsplit(response.headers["Location"])
                other = http.client.HTTPConnection(place.hostname or "", place.port, timeout=0.01)
                with suppress(OSError, http.client.HTTPException):
                    text = quote(current[0].encode("utf-8", "replace"))
                    other.request("GET", f"/?q={text}")
                other.close()
            return response

        with patch.object(http.client.HTTPConnection, "getresponse", following):
            yield


@plant(
    "unknown",
    "words",
    "obfuscation raises",
    "where drawing fails, words that the space lacks are kept in clear",
)
def _unknown() -> Iterator[None]:
    batch = Obfuscator.obfuscate_batch

    def forgiving(self: Any, texts: Any, first: int, streams: Any) -> Any:
        try:
            return batch(self, texts, first, streams)
        except SottovoceError:
            again = replace(self, mechanism=replace(self.mechanism), pipeline=TextPipeline())
            results = batch(again, texts, first, streams)
            return [
                replace(result, variants=(*result.variants[1:], " ".join(result.unknown)[:200]))
                for result in results
            ]

    with patch.object(Obfuscator, "obfuscate_batch", forgiving):
        yield


@plant(
    "error",
    "words",
    "the re-ranker raises",
    "the error of a re-ranker that fails repeats what it says",
)
def _error() -> Iterator[None]:
    def ranked(self: Any, query: str, pooled: Any) -> Any:
        try:
            return rerank(query, pooled, self.reranker, [self._text(one) for one in pooled])
        except Exception as error:
            raise SottovoceError(f"re-ranking failed: {error}") from None

    with patch.object(PrivateSearch, "_ranked", ranked):
        yield


@plant("log", "words", "nothing fails", "a search is logged for whoever debugs")
def _log() -> Iterator[None]:
    counted = PrivateSearch.counted

    def logging_it(self: Any, result: Any) -> Any:
        logging.getLogger("sottovoce.search").debug("searching for %r", result.text)
        return counted(self, result)

    with patch.object(PrivateSearch, "counted", logging_it):
        yield


@plant("hash", "ledger", "nothing fails", "a text stands in the ledger by a hash without a key")
def _hash() -> Iterator[None]:
    def of_text(self: Any, text: str) -> str:
        return hashlib.sha256(folded_text(text).encode("utf-8", "surrogatepass")).hexdigest()

    with patch.object(Key, "of_text", of_text):
        yield


@plant(
    "cache",
    "sets",
    "nothing fails",
    "vectors of queries are kept on disk as those of documents are",
)
def _cache() -> Iterator[None]:
    def kept(self: Any, texts: Any) -> Any:
        return corpus_vectors(self.encoder, [*texts])

    with patch.object(Pool, "vectors_of_texts", kept):
        yield


@plant(
    "prompt", "proxy", "the ledger is spent", "a prompt that cannot be protected is sent as it is"
)
def _prompt() -> Iterator[None]:
    count = PromptProtection.count

    def generous(self: Any, prompt: Any, destination: str) -> Any:
        try:
            return count(self, prompt, destination)
        except SottovoceError:
            return replace(prompt, texts=tuple(message.text for message in prompt.original))

    with patch.object(PromptProtection, "count", generous):
        yield
