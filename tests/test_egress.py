"""Every byte that an engine receives over a real socket, in a thousand hostile searches.

The mechanism may release a few hundred everyday words only, none of which occurs in a query. So a
word of a query that reaches the wire was not drawn: it leaked.
"""

from __future__ import annotations

import json
import re
from urllib.parse import unquote

import numpy as np
import pytest
import servers
from campaigns.leak_parts import connector
from hostile_queries import SECRETS, SHAPES, Heard, Traces, queries
from wires import Relay, Wire

from sottovoce import Obfuscator, OutputVocabulary
from sottovoce.engines.json_http import JsonHttp
from sottovoce.errors import SottovoceError
from sottovoce.mechanisms.cmp import CMP
from sottovoce.search.private_search import PrivateSearch
from sottovoce.search.reranking import PoolOrder

postgres, library = servers.postgres, servers.library

SEARCHES = 1000


def thousand_queries():
    return queries(SECRETS, SEARCHES, np.random.default_rng(7))


@pytest.fixture(scope="module")
def everyday(default_space):
    """The default space, releasing 400 short everyday words."""
    forbidden = " ".join((*SECRETS, *SHAPES)).lower()
    words = [
        position
        for position, word in enumerate(default_space.words(range(8000)))
        if word.isascii() and word.isalpha() and word.islower() and len(word) > 4
        if word not in forbidden
    ]
    return default_space.with_output(OutputVocabulary("everyday", np.array(words[:400])))


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
    for query in thousand_queries():
        try:
            search.search(query)
        except SottovoceError as error:
            heard = Heard()
            heard.error(error)
            assert Traces(SECRETS).in_bytes(heard.getvalue().encode()) == []
            continue
        done += 1
    return done


@pytest.mark.slow
def test_nothing_but_drawn_words_reaches_an_http_engine(everyday):
    hits = [{"id": f"d{place}", "title": "t"} for place in range(3)]
    wire = Wire(lambda target, body: json.dumps({"results": hits}).encode())
    wire.behave("hangs up", every=93)
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
    assert Traces(SECRETS).in_bytes(bytes(wire.received)) == []
    allowed = set(everyday.words(everyday.output.ids))
    shapes = set()
    for request in bytes(wire.received).decode().split("\r\n\r\n")[:-1]:
        line, *headers = request.split("\r\n")
        sent = re.fullmatch(r"GET /search\?q=([^ &#]+)&n=5 HTTP/1\.1", line)
        assert sent, "a query changed the request"
        assert set(re.findall(r"\w+", unquote(sent[1]))) <= allowed
        shapes.add(tuple(headers))
    assert len(shapes) == 1  # the headers depend on nothing


@pytest.mark.thorough
def test_nothing_but_drawn_words_reaches_postgres(everyday, postgres):
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    from sottovoce.engines.postgres import Postgres

    to = conninfo_to_dict(postgres.dsn)
    # What is sent does not depend on how many documents there are; how long it takes does.
    with psycopg.connect(postgres.dsn) as connection:
        connection.execute("CREATE TABLE few AS SELECT * FROM articles LIMIT 10")
    relay = Relay(connector(postgres.dsn))
    account = f"user={to['user']} dbname={to['dbname']} sslmode=disable"
    engine = Postgres(f"host=127.0.0.1 port={relay.port} {account}", "few")
    done = search_all(everyday, engine)
    relay.close()
    received = relay.take()
    assert 500 < done < SEARCHES
    assert len(received) > 100_000
    assert Traces(SECRETS).in_bytes(received) == []
    # Between the fixed parts of the statements, parameters hold drawn words and nothing else.
    allowed = set(everyday.words(everyday.output.ids))
    parameters = re.findall(rb'((?:"[a-z]+"(?: or )?)+)', received)
    quoted = {word.decode() for each in parameters for word in re.findall(rb'"([a-z]+)"', each)}
    assert len(quoted & allowed) > 100
    assert quoted - allowed <= {"few", "text", "title", "doc_id"}
