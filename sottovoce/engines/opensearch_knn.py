"""OpenSearch's k-NN search: one request with a vector, by the protocol that it documents."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

from sottovoce.engines.base import EngineError
from sottovoce.engines.http_client import Transport
from sottovoce.engines.opensearch import check_index, credentials
from sottovoce.engines.remote import Address, Fields, courtesy, goes_elsewhere, pick, read_hits
from sottovoce.engines.vector_engine import (
    MOST_BYTES,
    Metric,
    VectorHit,
    check_depth,
    check_metric,
    stored_vector,
)
from sottovoce.errors import UsageError
from sottovoce.types import Float32Array


class OpenSearchKNN:
    """An index with a field of type ``knn_vector``.

    encoder
        What made the vectors: light, strong, a model's folder.
    vector, title, text
        Fields; '' for no title or text.
    metric
        inner, cosine or l2: the ``space_type`` of the field.
    elsewhere
        True for a server on this machine that passes on what it is asked, as a tunnel does.

    Credentials come from the environment, as for ``opensearch``.
    """

    def __init__(
        self,
        url: str,
        index: str,
        encoder: str,
        *,
        vector: str = "embedding",
        title: str = "title",
        text: str = "text",
        metric: Metric = "cosine",
        elsewhere: bool | None = None,
        timeout: float = 10.0,
    ) -> None:
        check_index(index)
        check_metric(metric)
        if not vector:
            raise UsageError("name the field of vectors: 'vector' in the store's file")
        address, headers = Address.of(url), credentials()
        self.name = f"opensearch at {address}"
        self.remote = goes_elsewhere(address.remote, elsewhere)
        self._vector, self._encoder, self.metric = vector, encoder, metric
        self._transport = Transport(
            address,
            headers=headers,
            secret=bool(headers),
            pause=courtesy(self.remote, None, None)[0],
            timeout=timeout,
            most_bytes=MOST_BYTES,
        )
        self._target = f"{urlsplit(url).path.rstrip('/')}/{index}/_search"
        self._shown = [name for name in (title, text, vector) if name]
        self._fields = Fields(
            id="_id",
            title=title and f"_source.{title}",
            snippet=text and f"_source.{text}",
            score="_score",
        )

    @property
    def made_by(self) -> str:
        return self._encoder

    def __repr__(self) -> str:
        return f"OpenSearchKNN({self.name})"

    def nearest(self, vector: Float32Array, depth: int) -> list[VectorHit]:
        """The best ``depth`` documents, best first."""
        check_depth(depth)
        body = {
            "query": {"knn": {self._vector: {"vector": vector.tolist(), "k": depth}}},
            "size": depth,
            "_source": self._shown,
            "track_total_hits": False,
        }
        answer = self._transport.ask(self._target, json.dumps(body).encode())
        rows = pick(answer, "hits.hits")
        if not isinstance(rows, list):
            raise EngineError(f"{self.name} does not answer as OpenSearch does: check the url")
        if pick(answer, "timed_out") or pick(answer, "_shards.failed"):
            raise EngineError(f"{self.name} answered in part only: try later")
        hits = read_hits(self.name, rows, self._fields, depth)
        numbers = [pick(row, f"_source.{self._vector}") for row in rows]
        return [
            VectorHit(hit, stored_vector(self.name, values, len(vector)))
            for hit, values in zip(hits, numbers, strict=True)
        ]
