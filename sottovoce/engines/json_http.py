"""Any search engine that answers in JSON over HTTP, as a small TOML file describes it.

A query becomes one value of the URL's query string, percent-encoded, or a string in a JSON body.
It cannot become anything else: the template is taken apart before a query is put in.
"""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from sottovoce.engines.base import EngineError, Hit
from sottovoce.engines.http_client import Transport
from sottovoce.engines.remote import (
    Address,
    Fields,
    check_search,
    courtesy,
    goes_elsewhere,
    pick,
    read_hits,
    sendable,
)
from sottovoce.errors import UsageError, did_you_mean
from sottovoce.text.words import words

_PLACE = re.compile(r"\{(query|depth)\}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_TEXTS = ("name", "url", "results", "id", "title", "snippet", "score", "method", "join_words")
_NUMBERS = ("pause", "timeout")
_COUNTS = ("most_queries", "retries")
_SWITCHES = ("elsewhere",)
_TABLES = ("headers", "body")
_KEYS = (*_TEXTS, *_NUMBERS, *_COUNTS, *_SWITCHES, *_TABLES)
_NEEDED = ("name", "url", "results", "id")


class JsonHttp:
    """A search engine behind a URL; docs/engines.md has the keys and examples."""

    def __init__(self, description: Mapping[str, Any]) -> None:
        _check(description)
        self._target, self._body = _templates(description)
        self._results: str = description["results"]
        self._fields = Fields(
            **{key: description.get(key, "") for key in Fields.__dataclass_fields__}
        )
        self._join_words: str | None = description.get("join_words")
        headers, secret = _from_environment(description.get("headers", {}))
        address = Address.of(description["url"])
        self.name = f"{description['name']} at {address}"
        self.remote = goes_elsewhere(
            address.remote, description.get("elsewhere"), forwards=_is_searxng(description)
        )
        self.pause, self.most_queries = courtesy(
            self.remote, description.get("pause"), description.get("most_queries")
        )
        self._transport = Transport(
            address,
            headers=headers,
            secret=secret,
            pause=self.pause,
            timeout=description.get("timeout", 10.0),
            retries=description.get("retries", 2),
        )

    @classmethod
    def from_file(cls, path: Path | str) -> JsonHttp:
        try:
            description = tomllib.loads(Path(path).expanduser().read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageError(f"cannot read the engine's file {path}: {error.strerror}") from None
        except (ValueError, RecursionError):
            raise UsageError(f"{path} is not a TOML file in UTF-8: see docs/engines.md") from None
        return cls(description)

    def __repr__(self) -> str:
        return f"JsonHttp({self.name})"

    def search(self, queries: Sequence[str], depth: int) -> list[list[Hit]]:
        """The first ``depth`` results for each query, in the engine's order."""
        check_search(queries, depth, self.most_queries)
        return [self._search(query, depth) for query in queries]

    def _search(self, query: str, depth: int) -> list[Hit]:
        query = sendable(query)
        if self._join_words is not None:
            query = self._join_words.join(words(query))
        if not query.strip() or depth == 0:
            return []
        target = _fill(self._target, query, depth, _encoded)
        body = _fill_all(self._body, query, depth) if self._body is not None else None
        answer = self._transport.ask(target, None if body is None else json.dumps(body).encode())
        rows = pick(answer, self._results)
        if not isinstance(rows, list):
            raise EngineError(
                f"the answer of {self._transport.address} has no list at '{self._results}': "
                "check 'results' in the engine's file"
            )
        return read_hits(str(self._transport.address), rows, self._fields, depth)


def _encoded(text: str) -> str:
    return quote(text, safe="")


def _fill(template: str, query: str, depth: int, encode: Callable[[str], str]) -> str:
    """Put query and depth into their places, in one pass: what is put in is not looked at again."""
    values = {"query": encode(query), "depth": str(depth)}
    return _PLACE.sub(lambda place: values[place[1]], template)


def _fill_all(template: Any, query: str, depth: int) -> Any:
    """The same for the strings of a JSON value; one that is only a depth becomes a number."""
    if isinstance(template, dict):
        return {key: _fill_all(value, query, depth) for key, value in template.items()}
    if isinstance(template, list):
        return [_fill_all(value, query, depth) for value in template]
    if template == "{depth}":
        return depth
    return _fill(template, query, depth, str) if isinstance(template, str) else template


def _check(description: Mapping[str, Any]) -> None:
    """Refuse a description with an error that says what to write."""
    for key in description:
        if key not in _KEYS:
            hint = did_you_mean(key, _KEYS, f"use {', '.join(_KEYS)}")
            raise UsageError(f"the engine's file has a key that is not known: {hint}")
    for key in _NEEDED:
        if key not in description:
            raise UsageError(f"the engine's file lacks '{key}': see docs/engines.md")
    for key, value in description.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if key in _TEXTS and not isinstance(value, str):
            raise UsageError(f"'{key}' in the engine's file must be a text in quotes")
        if key in _NUMBERS and not (number and 0 <= value < math.inf):
            raise UsageError(f"'{key}' in the engine's file must be a number of seconds")
        if key in _COUNTS and not (number and isinstance(value, int) and value >= 0):
            raise UsageError(f"'{key}' in the engine's file must be a whole number, 0 or more")
        if key in _SWITCHES and not isinstance(value, bool):
            raise UsageError(f"'{key}' in the engine's file is true or false")
        if key in _TABLES and not isinstance(value, dict):
            raise UsageError(f"'{key}' in the engine's file must be a table: [{key}]")
    if not description["id"] or description.get("timeout", 1) == 0:
        raise UsageError("in the engine's file, 'id' must not be empty and 'timeout' not be 0")


def _is_searxng(description: Mapping[str, Any]) -> bool:
    """Whether a server is asked as SearXNG is: then it asks other engines, wherever it stands."""
    values = description["url"].partition("?")[2].split("&")
    return "format=json" in values and description["results"] == "results"


def _templates(description: Mapping[str, Any]) -> tuple[str, dict[str, Any] | None]:
    """The path with its query string, and the body, with {query} in exactly one of them."""
    url, body = description["url"], description.get("body")
    if not re.fullmatch(r"[!-~]+", url) or "#" in url:
        raise UsageError("the url must be percent-encoded ASCII, without '#'")
    method = description.get("method", "GET" if body is None else "POST")
    if (method, body is None) not in (("GET", True), ("POST", False)):
        raise UsageError('\'method\' must be "GET", or "POST" with a [body]')
    path, mark, values = url.partition("?")
    names = "".join(part.partition("=")[0] for part in values.split("&"))
    if "{" in path + names:
        raise UsageError("{query} and {depth} may only be values of the url, as in ?q={query}")
    if sum(text.count("{query}") for text in [values, *_strings(body)]) != 1:
        raise UsageError("{query} must stand once, as a value of the url or in the [body]")
    if "{" in _PLACE.sub("", values):
        raise UsageError("the url knows {query} and {depth}; write other braces as %7B and %7D")
    try:
        return (urlsplit(path).path or "/") + mark + values, body
    except ValueError:
        raise UsageError(
            "the url is no address: it reads http://host:port/path?q={query}"
        ) from None


def _strings(value: Any) -> list[str]:
    """The strings among the values of a JSON value."""
    if isinstance(value, dict):
        return [text for item in value.values() for text in _strings(item)]
    if isinstance(value, list):
        return [text for item in value for text in _strings(item)]
    return [value] if isinstance(value, str) else []


def _from_environment(headers: Mapping[str, Any]) -> tuple[dict[str, str], bool]:
    """The headers with ${NAME} replaced, and whether they hold secrets."""
    filled = {}
    for name, value in headers.items():
        if not isinstance(value, str):
            raise UsageError(f"the header {name} must be a text in quotes")
        for variable in _VARIABLE.findall(value):
            if variable not in os.environ:
                raise UsageError(f"set the environment variable {variable}: a header needs it")
        filled[name] = _VARIABLE.sub(lambda variable: os.environ[variable[1]], value)
    return filled, filled != headers or any(name.lower() == "authorization" for name in filled)
