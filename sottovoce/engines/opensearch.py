"""OpenSearch and Elasticsearch, many queries in one request (``_msearch``).

Queries go into ``multi_match``, which has no syntax: a text is words, whatever it holds.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

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
from sottovoce.errors import UsageError

HITS_AT_A_TIME = 1000
"""Results asked for in one request; keeps answers well below the largest that is read."""

_PREFIX = "SOTTOVOCE_OPENSEARCH_"
_INDEX = re.compile(r"[a-z0-9][a-z0-9._-]*")


class OpenSearch:
    """An index on an OpenSearch or Elasticsearch server.

    fields
        What is searched; ``title^2`` counts twice.
    title, snippet
        The fields that are shown; '' for none.
    elsewhere
        True for a server on this machine that passes on what it is asked, as a tunnel does.

    Credentials come from the environment: SOTTOVOCE_OPENSEARCH_USER and _PASSWORD, or _API_KEY.
    """

    uses_order = False  # Any of the words, each by itself.

    def __init__(
        self,
        url: str,
        index: str,
        *,
        fields: Sequence[str] = ("title", "text"),
        title: str = "title",
        snippet: str = "text",
        pause: float | None = None,
        most_queries: int | None = None,
        elsewhere: bool | None = None,
        timeout: float = 10.0,
        retries: int = 2,
    ) -> None:
        check_index(index)
        if not fields or isinstance(fields, str):
            raise UsageError('fields must be a list of names, such as ["title", "text"]')
        address = Address.of(url)
        self.name = f"opensearch at {address}"
        self.remote = goes_elsewhere(address.remote, elsewhere)
        self.pause, self.most_queries = courtesy(self.remote, pause, most_queries)
        headers = credentials()
        self._transport = Transport(
            address,
            headers=headers,
            secret=bool(headers),
            pause=self.pause,
            timeout=timeout,
            retries=retries,
        )
        self._target = f"{urlsplit(url).path.rstrip('/')}/{index}/_msearch"
        self._searched = list(fields)
        self._shown = [name for name in (title, snippet) if name]
        self._fields = Fields(
            id="_id",
            title=title and f"_source.{title}",
            snippet=snippet and f"_source.{snippet}",
            score="_score",
        )

    def __repr__(self) -> str:
        return f"OpenSearch({self._transport.address})"

    def search(self, queries: Sequence[str], depth: int) -> list[list[Hit]]:
        """The best ``depth`` documents that hold any word of each query, best first."""
        check_search(queries, depth, self.most_queries)
        if depth == 0:
            return [[] for _ in queries]
        at_once = max(1, HITS_AT_A_TIME // depth)
        return [
            hits
            for start in range(0, len(queries), at_once)
            for hits in self._batch(queries[start : start + at_once], depth)
        ]

    def _batch(self, queries: Sequence[str], depth: int) -> list[list[Hit]]:
        # One copy of each shard answers all queries, so that equal queries get equal answers.
        line = json.dumps({"preference": "sottovoce"})
        lines = [text for query in queries for text in (line, json.dumps(self._ask(query, depth)))]
        body = "".join(text + "\n" for text in lines).encode()
        answer = self._transport.ask(self._target, body, "application/x-ndjson")
        responses = pick(answer, "responses")
        if not isinstance(responses, list) or len(responses) != len(queries):
            raise EngineError(f"{self._transport.address} does not answer as OpenSearch does")
        return [self._hits(response, depth) for response in responses]

    def _ask(self, query: str, depth: int) -> dict[str, Any]:
        return {
            "query": {"multi_match": {"query": sendable(query), "fields": self._searched}},
            "size": depth,
            "_source": self._shown,
            "track_total_hits": False,
        }

    def _hits(self, response: Any, depth: int) -> list[Hit]:
        host = str(self._transport.address)
        status = pick(response, "status")
        if status == 404:
            raise EngineError(f"{host} has no such index: check its name")
        rows = pick(response, "hits.hits")
        if not isinstance(rows, list):
            detail = f" (status {status})" if isinstance(status, int) else ""
            raise EngineError(f"{host} could not answer a query{detail}: check index and fields")
        if pick(response, "timed_out") or pick(response, "_shards.failed"):
            raise EngineError(f"{host} answered in part only: try later")
        return read_hits(host, rows, self._fields, depth)


def check_index(index: str) -> None:
    """Refuse what cannot be the name of an index."""
    if not _INDEX.fullmatch(index):
        raise UsageError("an index has a name of small letters, digits, '-', '_' and '.'")


def credentials() -> dict[str, str]:
    """The header that the environment asks for, if any."""
    key, user = os.environ.get(f"{_PREFIX}API_KEY"), os.environ.get(f"{_PREFIX}USER")
    if key:
        return {"Authorization": f"ApiKey {key}"}
    if user:
        pair = f"{user}:{os.environ.get(f'{_PREFIX}PASSWORD', '')}"
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    return {}
