"""Qdrant: a server over its REST protocol, or the client's own local mode, in a folder.

A server is asked by sottovoce's own HTTP client, which follows no redirect and sends nothing that
it was not given. The local mode is qdrant-client's; nothing leaves this machine then.
"""

from __future__ import annotations

import json
import os
import re
import weakref
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from sottovoce.engines.base import EngineError
from sottovoce.engines.http_client import Transport
from sottovoce.engines.remote import Address, Fields, courtesy, goes_elsewhere, pick, read_hits
from sottovoce.engines.vector_engine import (
    MOST_BYTES,
    Metric,
    VectorHit,
    check_depth,
    check_metric,
    stored_vector,
)
from sottovoce.errors import SottovoceError, UsageError, need
from sottovoce.types import Float32Array

KEY = "SOTTOVOCE_QDRANT_API_KEY"
_COLLECTION = re.compile(r"[A-Za-z0-9_.-]{1,255}")


class Qdrant:
    """A collection of a Qdrant server (``url``), or of the local mode (``folder``).

    encoder
        What made the vectors: light, strong, a model's folder.
    vector
        The name of the vector, where points have several; '' for the only one.
    doc_id, title, text
        Fields of the payload; '' for none, which for ``doc_id`` means the id of the point.
    exact
        Compare with all points instead of an index, which may miss some.
    elsewhere
        True for a server on this machine that passes on what it is asked, as a tunnel does.

    The key of a server comes from the environment: SOTTOVOCE_QDRANT_API_KEY.
    """

    def __init__(
        self,
        collection: str,
        encoder: str,
        *,
        url: str = "",
        folder: str = "",
        vector: str = "",
        doc_id: str = "",
        title: str = "title",
        text: str = "text",
        metric: Metric = "cosine",
        exact: bool = False,
        elsewhere: bool | None = None,
        timeout: float = 10.0,
    ) -> None:
        if bool(url) == bool(folder):
            raise UsageError("say where Qdrant is: either its 'url' or a 'folder' of local mode")
        if folder and elsewhere:
            raise UsageError("a folder of Qdrant is read here: leave 'elsewhere' out of its file")
        if not _COLLECTION.fullmatch(collection):
            raise UsageError("a collection has a name of letters, digits, '-', '_' and '.'")
        check_metric(metric)
        self._collection, self._encoder, self.metric = collection, encoder, metric
        self._folder, self._using, self._exact = folder, vector, exact
        self._shown = [name for name in (doc_id, title, text) if name]
        self._fields = Fields(
            id=f"payload.{doc_id}" if doc_id else "id",
            title=title and f"payload.{title}",
            snippet=text and f"payload.{text}",
            score="score",
        )
        self.name, self.remote = "qdrant on this machine", False
        self._transport: Transport | None = None
        if url:
            self._ask_at(url, timeout, elsewhere)

    def _ask_at(self, url: str, timeout: float, elsewhere: bool | None) -> None:
        address = Address.of(url)
        self.name = f"qdrant at {address}"
        self.remote = goes_elsewhere(address.remote, elsewhere)
        key = os.environ.get(KEY)
        self._transport = Transport(
            address,
            headers={"api-key": key} if key else {},
            secret=bool(key),
            pause=courtesy(self.remote, None, None)[0],
            timeout=timeout,
            most_bytes=MOST_BYTES,
        )
        path = urlsplit(url).path.rstrip("/")
        self._target = f"{path}/collections/{self._collection}/points/query"

    @property
    def made_by(self) -> str:
        return self._encoder

    def __repr__(self) -> str:
        return f"Qdrant({self.name})"

    def nearest(self, vector: Float32Array, depth: int) -> list[VectorHit]:
        """The best ``depth`` points, best first."""
        check_depth(depth)
        answer = self._from_folder(vector, depth) if self._folder else self._asked(vector, depth)
        points = pick(answer, "points")
        if not isinstance(points, list):
            raise EngineError(f"{self.name} does not answer as Qdrant does: check url and version")
        hits = read_hits(self.name, points, self._fields, depth)
        if len(hits) != len(points):
            raise EngineError(f"{self.name}: two points have the same 'doc_id'")
        return [
            VectorHit(hit, stored_vector(self.name, self._numbers(point), len(vector)))
            for hit, point in zip(hits, points, strict=True)
        ]

    def _numbers(self, point: Any) -> Any:
        vectors = pick(point, "vector")
        return vectors.get(self._using) if isinstance(vectors, dict) else vectors

    def _asked(self, vector: Float32Array, depth: int) -> Any:
        assert self._transport is not None  # noqa: S101 - there is a url, then
        body = {
            "query": {"nearest": vector.tolist()},
            "params": {"exact": self._exact},
            "with_vector": [self._using] if self._using else True,
            "with_payload": self._shown or False,
            "limit": depth,
            **({"using": self._using} if self._using else {}),
        }
        return pick(self._transport.ask(self._target, json.dumps(body).encode()), "result")

    @cached_property
    def _client(self) -> Any:
        package = need("qdrant_client", "qdrant", "a folder of Qdrant needs an extra")
        try:
            client = package.QdrantClient(path=self._folder)
        except Exception as error:
            raise EngineError(
                f"the folder of Qdrant cannot be opened ({type(error).__name__}): check the path, "
                "and whether another process has it open"
            ) from None
        weakref.finalize(self, client.close)
        return client

    def _from_folder(self, vector: Float32Array, depth: int) -> Any:
        try:
            answer = self._client.query_points(
                self._collection,
                query=vector.tolist(),
                using=self._using or None,
                limit=depth,
                with_payload=self._shown or False,
                with_vectors=[self._using] if self._using else True,
            )
        except SottovoceError:
            raise
        except Exception as error:
            raise EngineError(
                f"{self.name} could not answer ({type(error).__name__}): check 'collection', "
                "'vector', and whether 'encoder' made its vectors"
            ) from None
        return {"points": [point.model_dump() for point in answer.points]}
