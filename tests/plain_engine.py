"""An engine for tests, with nothing beyond the protocol."""

from __future__ import annotations

from sottovoce.engines import BM25


class Plain:
    """An engine that can do no more than the protocol asks for."""

    name, remote, pause, most_queries = "plain", False, 0.0, None

    def __init__(self, engine: BM25) -> None:
        self.engine = engine

    def search(self, queries, depth):
        return self.engine.search(queries, depth)

    def text(self, doc_id):
        return self.engine.text(doc_id)
