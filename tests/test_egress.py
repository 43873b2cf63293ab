"""Every byte that an engine receives over a real socket, in a thousand hostile searches.

The mechanism may release a few hundred everyday words only, none of which occurs in a query. So a
word of a query that reaches the wire was not drawn: it leaked.
"""

from __future__ import annotations

import json
import re
import socket
import threading
from urllib.parse import unquote

import numpy as np
import pytest
import servers
from servers import tapped

from sottovoce import Obfuscator, OutputVocabulary
from sottovoce.engines.json_http import JsonHttp
from sottovoce.errors import SottovoceError
from sottovoce.mechanisms.cmp import CMP
from sottovoce.search.private_search import PrivateSearch
from sottovoce.search.reranking import PoolOrder

postgres, library = servers.postgres, servers.library

SECRETS = [
    "cancer",
    "divorce",
    "bankruptcy",
    "pregnant",
    "abortion",
    "melanoma",
    "lawyer",
    "depression",
    "addiction",
    "asylum",
    "chlamydia",
    "suicide",
    "gambling",
    "deportation",
    "hiv",
    "epilepsy",
    "xqzzy",
    "zebulon",
    "quartermaine",
    "o'xqzzyhara",
    "xqzzy-zebulon",
    "4111111111111111",
    "1978-03-14",
    "zebulon@xqzzy.example",
    "🙈",
    "лечение",
]
SHAPES = (
    "{a} {b}",
    "how to treat {a}, {b} and {c}?",
    "{a}'; DROP TABLE docs; -- {b}",
    "{a}\r\nX-Leak: {b}\r\n\r\nGET /?q={c} HTTP/1.1",
    "%0d%0a{a}%00{b}",
    "{{query}} {a} {{depth}} ${{HOME}} {b}",
    '"{a}" AND ("{b}" OR {c}:*)',
    "<script>{a}</script> ../../{b} \\x00 \x00 {c}",
    "{a}" * 40,
    "{a} {b} {c} " * 12,
    "\u202e{a}\u200b{b}\ufeff {c}\ud800",
    "{a}&q={b}#{c}?depth=1",
    "http://{a}.example/{b}?x={c}",
    "  {a}\t\t{b}  ",
    "{a}",
)
SEARCHES = 1000


def queries():
    """A thousand of them, each with secrets in a shape that tries to break something."""
    rng = np.random.default_rng(7)
    for number in range(SEARCHES):
        a, b, c = rng.choice(SECRETS, 3)
        yield SHAPES[number % len(SHAPES)].format(a=a, b=b, c=c)


class Wire:
    """A web server that keeps every byte; now and then it hangs up, or answers nonsense."""

    def __init__(self):
        self.received = b""
        self.requests = 0
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        pending = b""
        with connection:
            while True:
                try:
                    data = connection.recv(65536)
                except OSError:
                    return
                if not data:
                    return
                with self._lock:
                    self.received += data
                pending += data
                while b"\r\n\r\n" in pending:
                    _, _, pending = pending.partition(b"\r\n\r\n")
                    self.requests += 1
                    if self.requests % 97 == 0:
                        return  # hangs up in the middle
                    nonsense = self.requests % 89 == 0
                    results = [{"id": f"d{i}", "title": "t"} for i in range(3)]
                    body = b"<html>" if nonsense else json.dumps({"results": results}).encode()
                    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
                    connection.sendall(head.encode() + body)

    def close(self):
        self._listener.close()


@pytest.fixture(scope="module")
def everyday(default_space):
    """The default space, releasing 400 short everyday words."""
    forbidden = " ".join(SECRETS)
    words = [
        position
        for position, word in enumerate(default_space.words(range(8000)))
        if word.isascii() and word.isalpha() and word.islower() and len(word) > 4
        if word not in forbidden and word not in SHAPES_TEXT
    ]
    return default_space.with_output(OutputVocabulary("everyday", np.array(words[:400])))


SHAPES_TEXT = " ".join(SHAPES).lower()


class Moody(CMP):
    """Now and then it fails, with the words in its message."""

    def draw(self, ids, draws):
        if draws.uniform().max() > 0.98:
            raise ValueError(" ".join(self.space.words(ids)))
        return super().draw(ids, draws)


class MoodyJudge(PoolOrder):
    """A re-ranker that fails now and then, with the query in its message."""

    name = "moody"
    calls = 0

    def scores(self, query, texts):
        self.calls += 1
        if self.calls % 11 == 0:
            raise ValueError(f"{query} cannot be judged")
        return super().scores(query, texts)


def search_all(space, engine):
    """A thousand searches; how many came through."""
    done = 0
    search = PrivateSearch(Obfuscator(Moody(space, 5.0), n=3), engine, MoodyJudge(), depth=5)
    for query in queries():
        try:
            search.search(query)
        except SottovoceError as error:
            said = f"{error!r}{error.__cause__!r}".casefold()
            assert not any(secret in said for secret in SECRETS)
            continue
        done += 1
    return done


def leaks(received: bytes) -> list[str]:
    """The secrets that can be read off the bytes, as they are or decoded."""
    once = received.decode("utf-8", "replace").casefold()
    forms = (once, unquote(once), unquote(unquote(once)), json_unescaped(once))
    return [secret for secret in SECRETS if any(secret in form for form in forms)]


def json_unescaped(text: str) -> str:
    return re.sub(r"\\u([0-9a-f]{4})", lambda match: chr(int(match[1], 16)), text)


@pytest.mark.slow
def test_nothing_but_drawn_words_reaches_an_http_engine(everyday):
    wire = Wire()
    engine = JsonHttp(
        {
            "name": "wire",
            "url": f"http://127.0.0.1:{wire.port}/search?q={{query}}&n={{depth}}",
            "results": "results",
            "id": "id",
            "title": "title",
            "retries": 0,
        }
    )
    done = search_all(everyday, engine)
    wire.close()
    assert 500 < done < SEARCHES  # most came through, and some failed on the way
    assert wire.requests > 1500
    assert not leaks(wire.received)
    allowed = set(everyday.words(everyday.output.ids))
    shapes = set()
    for request in wire.received.decode().split("\r\n\r\n")[:-1]:
        line, *headers = request.split("\r\n")
        sent = re.fullmatch(r"GET /search\?q=([^ &#]+)&n=5 HTTP/1\.1", line)
        assert sent, "a query changed the request"
        assert set(re.findall(r"\w+", unquote(sent[1]))) <= allowed
        shapes.add(tuple(headers))
    assert len(shapes) == 1  # the headers depend on nothing


@pytest.mark.slow
def test_nothing_but_drawn_words_reaches_postgres(everyday, postgres):
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    from sottovoce.engines.postgres import Postgres

    there = conninfo_to_dict(postgres.dsn)
    host, number = there.get("host", "127.0.0.1"), there.get("port", 5432)

    def connect():
        if not host.startswith("/"):
            return socket.create_connection((host, int(number)))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{host}/.s.PGSQL.{number}")
        return server

    # What is sent does not depend on how many documents there are; how long it takes does.
    with psycopg.connect(postgres.dsn) as connection:
        connection.execute("CREATE TABLE few AS SELECT * FROM articles LIMIT 10")
    with tapped(connect) as (port, received):
        account = f"user={there['user']} dbname={there['dbname']} sslmode=disable"
        engine = Postgres(f"host=127.0.0.1 port={port} {account}", "few")
        done = search_all(everyday, engine)
    assert 500 < done < SEARCHES
    assert len(received) > 100_000
    assert not leaks(bytes(received))
    # Between the fixed parts of the statements, parameters hold drawn words and nothing else.
    allowed = set(everyday.words(everyday.output.ids))
    parameters = re.findall(rb'((?:"[a-z]+"(?: or )?)+)', bytes(received))
    quoted = {word.decode() for each in parameters for word in re.findall(rb'"([a-z]+)"', each)}
    assert len(quoted & allowed) > 100
    assert quoted - allowed <= {"few", "text", "title", "doc_id"}
