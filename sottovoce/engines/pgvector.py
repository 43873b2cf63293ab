"""pgvector: the nearest rows of a PostgreSQL table; the vector is a bound parameter, never SQL."""

from __future__ import annotations

import json
from typing import Any

from sottovoce.engines.base import SNIPPET, EngineError, Hit, beginning
from sottovoce.engines.postgres import connection_settings, reason
from sottovoce.engines.remote import Pace, courtesy, goes_elsewhere, plain_text
from sottovoce.engines.vector_engine import (
    Metric,
    VectorHit,
    check_depth,
    check_metric,
    stored_vector,
)
from sottovoce.errors import UsageError
from sottovoce.files import parse_json
from sottovoce.types import Float32Array

OPERATORS: dict[Metric, str] = {"inner": "<#>", "cosine": "<=>", "l2": "<->"}
"""What orders rows: the negative product, one minus the cosine, the distance."""
WIDEST_SEARCH = 1000
"""The most candidates that an HNSW index looks at in one go; then it goes on (pgvector 0.8)."""


class PgVector:
    """A table with a column of type ``vector`` in a PostgreSQL database with pgvector 0.8 or later.

    dsn, table
        As for :class:`sottovoce.engines.Postgres`.
    encoder
        What made the vectors: light, strong, a model's folder.
    vector, doc_id, title, text
        Columns; '' for no title.
    metric
        inner, cosine or l2: that of the index, if there is one.
    exact
        Read all rows instead of an index, which may miss some.
    elsewhere
        True for a server on this machine that passes on what it is asked, as a tunnel does.
    """

    def __init__(
        self,
        dsn: str,
        table: str,
        encoder: str,
        *,
        vector: str = "embedding",
        doc_id: str = "doc_id",
        title: str = "title",
        text: str = "text",
        metric: Metric = "cosine",
        exact: bool = False,
        elsewhere: bool | None = None,
        timeout: float = 10.0,
    ) -> None:
        if not (table and vector and doc_id and text):
            raise UsageError("name the table, and the columns of vectors, ids and texts")
        check_metric(metric)
        self._where, host = connection_settings(dsn)
        self._statement = _statement(table, vector, doc_id, title, text, metric)
        self._milliseconds = max(1, round(1000 * timeout))
        self._exact, self._encoder, self.metric = exact, encoder, metric
        self.remote = goes_elsewhere(host is not None, elsewhere)
        self.name = f"pgvector at {host or 'localhost'}"
        self._pace = Pace(courtesy(self.remote, None, None)[0])

    @property
    def made_by(self) -> str:
        return self._encoder

    def __repr__(self) -> str:
        return f"PgVector({self.name})"

    def nearest(self, vector: Float32Array, depth: int) -> list[VectorHit]:
        """The best ``depth`` rows, best first."""
        import psycopg

        check_depth(depth)
        settings = {**self._where, "autocommit": True, "prepare_threshold": None}
        asked = {"vector": json.dumps(vector.tolist()), "depth": depth}
        try:
            with psycopg.connect(**settings) as connection:
                connection.read_only = True
                with self._pace.turn(), connection.transaction():
                    for setting, value in self._settings(depth).items():
                        connection.execute("SELECT set_config(%s, %s, true)", [setting, value])
                    rows = connection.execute(self._statement, asked).fetchall()
        except psycopg.Error as error:
            # In words of our own: the server's may repeat what was asked.
            raise EngineError(f"{self.name} {_reason(error)}") from None
        return [self._hit(row, len(vector)) for row in rows]

    def _settings(self, depth: int) -> dict[str, str]:
        """For this transaction alone: how long it may take, and how widely an index looks."""
        settings = {
            "statement_timeout": str(self._milliseconds),
            "hnsw.ef_search": str(min(WIDEST_SEARCH, max(40, depth))),
            "hnsw.iterative_scan": "strict_order",
            "ivfflat.iterative_scan": "relaxed_order",
        }
        return {**settings, "enable_indexscan": "off"} if self._exact else settings

    def _hit(self, row: tuple[Any, ...], dimension: int) -> VectorHit:
        doc_id, score, title, text, numbers = row
        try:
            values = parse_json(numbers)
        except (TypeError, ValueError):
            values = None
        hit = Hit(str(doc_id), score, plain_text(title), beginning(plain_text(text)))
        return VectorHit(hit, stored_vector(self.name, values, dimension))


def _statement(table: str, vector: str, doc_id: str, title: str, text: str, metric: Metric) -> Any:
    """The one statement that is ever sent, with names quoted and values left open."""
    from psycopg import sql

    def name(*parts: str) -> sql.Identifier:
        return sql.Identifier(*(part.replace("%", "%%") for part in parts))

    return sql.SQL(
        "SELECT {doc_id}, -({vector} {nearness} %(vector)s::vector)::float8, {title},"
        " left({text}, {most}), {vector}::text FROM {table}"
        " ORDER BY {vector} {nearness} %(vector)s::vector LIMIT %(depth)s"
    ).format(
        doc_id=name(doc_id),
        vector=name(vector),
        nearness=sql.SQL(OPERATORS[metric]),
        title=name(title) if title else sql.SQL("''"),
        text=name(text),
        table=name(*table.split(".")),
        most=sql.Literal(4 * SNIPPET),
    )


def _reason(error: Any) -> str:
    """What to do about an error, by its kind alone."""
    from psycopg import errors

    match error:
        case errors.UndefinedFunction():
            return "has no vectors in that column: check 'vector' in the store's file"
        case errors.UndefinedObject() | errors.InvalidName():
            return "lacks pgvector 0.8 or later: CREATE EXTENSION vector there"
        case errors.DataException():
            return "has vectors of another length: name the encoder that made them"
        case errors.UndefinedTable():
            return "has no such table: check 'table' in the store's file"
    return reason(error)
