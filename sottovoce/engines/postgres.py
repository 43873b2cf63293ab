"""PostgreSQL's full-text search over a table; queries are bound parameters, never SQL.

``websearch_to_tsquery`` asks for documents that hold all words of a query. The words of an
obfuscated query have nothing to do with each other, so that hardly any document would; here a
query's words, each in quotes, are joined with ``or``. Any of them finds a document, and none has a
meaning of its own (``-``, ``or``).

``ts_rank`` then adds up the words of the query that a document holds, repetitions counting less
and less. ``ts_rank_cd`` looks for words close together; between words joined with ``or`` that
comes down to counting occurrences, and one word said five times would outrank four words said once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sottovoce.engines.base import SNIPPET, EngineError, Hit, beginning
from sottovoce.engines.remote import (
    Pace,
    check_search,
    courtesy,
    goes_elsewhere,
    is_loopback,
    plain_text,
    sendable,
)
from sottovoce.errors import UsageError, need
from sottovoce.text.words import words

if TYPE_CHECKING:
    import psycopg

CONNECT_TIMEOUT = 5


class Postgres:
    """A table of documents in a PostgreSQL database.

    dsn
        As libpq reads it: ``postgresql://host/database`` or ``host=… dbname=…``; what it does not
        say comes from the environment (PGHOST, PGUSER, …) and passwords best from ~/.pgpass.
    table
        Its name, perhaps with a schema: ``public.articles``.
    doc_id, title, text
        Columns; '' for no title.
    parsed
        A column of type ``tsvector`` made of title and text, if there is one: much faster.
    language
        The text search configuration, as in ``to_tsvector('english', …)``.
    elsewhere
        True for a server on this machine that passes on what it is asked, as a tunnel does.
    """

    uses_order = False  # Any of the words, each by itself.

    def __init__(
        self,
        dsn: str,
        table: str,
        *,
        doc_id: str = "doc_id",
        title: str = "title",
        text: str = "text",
        parsed: str = "",
        language: str = "english",
        pause: float | None = None,
        most_queries: int | None = None,
        elsewhere: bool | None = None,
        timeout: float = 10.0,
    ) -> None:
        if not (table and doc_id and text):
            raise UsageError("name the table, the column of ids, and the column of texts")
        self._where, host = connection_settings(dsn)
        self._statement = _statement(table, doc_id, title, text, parsed, language)
        self._milliseconds = max(1, round(1000 * timeout))
        self.remote = goes_elsewhere(host is not None, elsewhere)
        self.name = f"postgres at {host or 'localhost'}"
        self.pause, self.most_queries = courtesy(self.remote, pause, most_queries)
        self._pace = Pace(self.pause)

    def __repr__(self) -> str:
        return f"Postgres({self.name})"

    def search(self, queries: Sequence[str], depth: int) -> list[list[Hit]]:
        """The best ``depth`` documents that hold any word of each query; ties by id."""
        import psycopg

        check_search(queries, depth, self.most_queries)
        settings = {**self._where, "autocommit": True, "prepare_threshold": None}
        try:
            with psycopg.connect(**settings) as connection:
                connection.read_only = True
                return [self._search(connection, query, depth) for query in queries]
        except psycopg.Error as error:
            # In words of our own: the server's may repeat a query.
            raise EngineError(f"{self.name} {reason(error)}") from None

    def _search(self, connection: psycopg.Connection[Any], query: str, depth: int) -> list[Hit]:
        distinct = dict.fromkeys(words(sendable(query)))
        if not distinct:
            return []
        any_word = " or ".join(f'"{word}"' for word in distinct)
        with self._pace.turn(), connection.transaction():
            timeout = [str(self._milliseconds)]
            connection.execute("SELECT set_config('statement_timeout', %s, true)", timeout)
            asked = {"query": any_word, "depth": depth}
            rows = connection.execute(self._statement, asked).fetchall()
        return [
            Hit(str(doc_id), score, plain_text(title), beginning(plain_text(text)))
            for doc_id, score, title, text in rows
        ]


def _statement(table: str, doc_id: str, title: str, text: str, parsed: str, language: str) -> Any:
    """The one statement that is ever sent, with names quoted and values left open."""
    from psycopg import sql

    def name(*parts: str) -> sql.Identifier:
        return sql.Identifier(*(part.replace("%", "%%") for part in parts))

    names = {
        "doc_id": name(doc_id),
        "title": name(title) if title else sql.SQL("''"),
        "text": name(text),
        "language": sql.SQL("{}::regconfig").format(sql.Literal(language.replace("%", "%%"))),
    }
    document = "to_tsvector({language}, coalesce({title}, '') || ' ' || coalesce({text}, ''))"
    return sql.SQL(
        "SELECT {doc_id}, ts_rank({document}, asked)::float8 AS score,"
        " {title}, left({text}, {most})"
        " FROM {table}, websearch_to_tsquery({language}, %(query)s) AS asked"
        " WHERE {document} @@ asked ORDER BY score DESC, {doc_id} LIMIT %(depth)s"
    ).format(
        **names,
        document=name(parsed) if parsed else sql.SQL(document).format(**names),
        table=name(*table.split(".")),
        most=sql.Literal(4 * SNIPPET),
    )


def connection_settings(dsn: str) -> tuple[dict[str, Any], str | None]:
    """What to connect with, and the host if it is another machine.

    A connection to another machine is encrypted and its certificate verified unless the DSN or
    the environment says otherwise.
    """
    psycopg = need("psycopg", "postgres", "this engine needs an extra")
    try:
        given = psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.Error:
        raise UsageError(
            "the database must be given as postgresql://host/database or 'host=… dbname=…'"
        ) from None
    host = _other_machine(given)
    usual: dict[str, Any] = {
        "connect_timeout": CONNECT_TIMEOUT,
        "client_encoding": "UTF8",
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
    }
    if host is not None and "sslmode" not in given and "PGSSLMODE" not in os.environ:
        usual["sslmode"] = "verify-full"
        if "PGSSLROOTCERT" not in os.environ:
            usual["sslrootcert"] = "system"
    return {**usual, **given}, host


def _other_machine(given: dict[str, Any]) -> str | None:
    """The first host that is another machine; sockets in the file system are not."""
    if "service" in given or "PGSERVICE" in os.environ:
        return "a service"
    for name in ("host", "hostaddr"):
        for host in str(given.get(name) or os.environ.get(f"PG{name.upper()}", "")).split(","):
            if host and not host.startswith(("/", "@")) and not is_loopback(host):
                return host
    return None


def reason(error: psycopg.Error) -> str:
    """What to do about an error, by its kind alone."""
    from psycopg import errors

    match error:
        case errors.QueryCanceled():
            return "did not answer in time: raise timeout, or index the table (docs/engines.md)"
        case errors.UndefinedTable():
            return "has no such table: check the name after '#'"
        case errors.UndefinedColumn():
            return "has no such column: name those of ids, titles and texts"
        case errors.UndefinedObject():
            return "has no such text search configuration: check language"
        case errors.InsufficientPrivilege():
            return "does not let this user read the table: ask for the right to SELECT"
        case errors.InvalidPassword() | errors.InvalidAuthorizationSpecification():
            return "refused the user or password: check PGUSER and ~/.pgpass"
        case errors.ConnectionTimeout():
            return "did not answer in time: check the host and your network"
        case _ if error.sqlstate is None:
            return "could not be reached: check host, port, user and certificate"
    return f"could not answer ({type(error).__name__})"
