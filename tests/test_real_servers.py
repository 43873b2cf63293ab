"""Real search servers: right answers, the same every time, and queries that are words alone."""

from __future__ import annotations

import json
import math
import operator
import re
import time
import tomllib
from pathlib import Path

import pytest
import servers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from servers import WORDS, free_port, web

from sottovoce.collections import read_corpus
from sottovoce.engines import choose_engine
from sottovoce.engines import postgres as postgres_engine
from sottovoce.engines.base import EngineError
from sottovoce.engines.json_http import JsonHttp
from sottovoce.engines.postgres import Postgres
from sottovoce.errors import UsageError
from sottovoce.text.words import words

psycopg = pytest.importorskip("psycopg", reason="pip install 'sottovoce[postgres]'")
sql = pytest.importorskip("psycopg.sql")

library, bm25 = servers.library, servers.bm25
postgres, anserini = servers.postgres, servers.anserini
groonga, searx = servers.groonga, servers.searx

LIBRARY = servers.documents()
DOCS = Path(__file__).parents[1] / "docs" / "engines.md"
SQL_EXAMPLES = re.findall(r"```sql\n(.*?)```", DOCS.read_text(), re.DOTALL)
MARK = "zyzzyva"
EASY = ["zebra", "willow winter", "anchor zebra tulip", "river rocket violin", f"{MARK} timber"]
NASTY = ["'; DROP TABLE articles; --", '"', "-zebra", "!", "&", "|", "<->", ":*", "%s", "%(query)s"]
NASTY += ["zebra OR oak", "\\", "\0", "\ud800", "\U0001f40b", "{query}", "'", "or", "AND", "(", ")"]
queries = st.lists(
    st.sampled_from([*NASTY, " ", *WORDS[-9:]])
    | st.text(st.characters(exclude_categories=()), max_size=6),
    max_size=8,
).map("".join)


def example(heading: str, **replaced: str) -> JsonHttp:
    """The engine that the documentation describes, at another address."""
    section = DOCS.read_text().split(f"### {heading}\n")[1]
    described = re.search(r"```toml\n(.*?)```", section, re.DOTALL)[1]
    for old, new in replaced.values():
        assert old in described
        described = described.replace(old, new)
    return JsonHttp(tomllib.loads(described))


def found(hits) -> set[str]:
    return {hit.doc_id for hit in hits}


def agrees_with_bm25(engine, bm25) -> None:
    """The engine finds what holds any of the words, best first, the same each time."""
    answers = engine.search(EASY, 300)
    assert answers == engine.search(EASY, 300)
    for hits, expected in zip(answers, bm25.search(EASY, 300), strict=True):
        assert 0 < len(expected) < 300
        assert found(hits) == found(expected)
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)
    for hits, whole in zip(engine.search(EASY, 3), answers, strict=True):
        assert hits == whole[:3]


def finds_its_words(engine, query: str) -> None:
    """The engine finds what holds a word of the query, and for plain words nothing else.

    Servers may cut or fold signs beyond ASCII, and cut at an apostrophe, otherwise than we do.
    """
    known = set(words(query))
    expected = {d.doc_id for d in LIBRARY if known & {*d.title.split(), *d.text.split()}}
    hits = found(engine.search([query], 300)[0])
    assert hits >= expected
    if query.isascii() and "'" not in query:
        assert hits == expected


# Anserini


@pytest.mark.slow
def test_lucene_and_we_agree_to_the_digit(anserini, bm25):
    where, index = anserini
    engine = example("Anserini", host=("localhost:8080", where), index=("my-index", index))
    agrees_with_bm25(engine, bm25)
    for hits, expected in zip(engine.search(EASY, 50), bm25.search(EASY, 50), strict=True):
        assert [hit.doc_id for hit in hits] == [hit.doc_id for hit in expected]
        assert [hit.score for hit in hits] == pytest.approx(
            [hit.score for hit in expected], abs=1e-3
        )
        assert all(hit.snippet.split() == bm25.text(hit.doc_id).split() for hit in hits)


@pytest.mark.slow
def test_an_index_that_is_not_there_says_so(anserini):
    engine = example("Anserini", host=("localhost:8080", anserini[0]))
    with pytest.raises(EngineError, match="status 400"):
        engine.search(["zebra"], 3)


# Groonga


def test_groonga_finds_what_we_find(groonga, bm25, library):
    engine = example("Groonga", host=("localhost:10041", groonga))
    agrees_with_bm25(engine, bm25)
    known = {document.doc_id: document for document in library}
    for hit in engine.search(["zebra"], 5)[0]:
        assert (hit.title, hit.snippet) == (known[hit.doc_id].title, known[hit.doc_id].text)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(queries)
def test_no_query_is_syntax_to_groonga(groonga, query):
    engine = example("Groonga", host=("localhost:10041", groonga))
    finds_its_words(engine, query)


# searx


def test_searx_passes_words_on_and_answers_their_results(searx, bm25):
    where, behind = searx
    host = ("https://searx.example.org", f"http://{where}")
    engine = example("SearXNG", host=host, pause=("pause = 3", "pause = 0"))
    for query in EASY[:3]:
        (hits,) = engine.search([f"!images {query} :fr"], 10)
        expected = bm25.search([query], 10)[0]
        assert [hit.doc_id for hit in hits] == [f"http://{hit.doc_id}.example/" for hit in expected]
        assert [hit.title for hit in hits] == [hit.title for hit in expected]
        assert behind.requests[-1].target == f"/?q=images+{query.replace(' ', '+')}+fr"


# PostgreSQL


def articles(database, **options) -> Postgres:
    return Postgres(database.dsn, "articles", **options)


def test_postgres_finds_what_we_find(postgres, bm25, library):
    engine = choose_engine(f"postgres:{postgres.dsn}#articles")
    assert (engine.remote, engine.pause, engine.most_queries) == (False, 0.0, None)
    agrees_with_bm25(engine, bm25)
    known = {document.doc_id: document for document in library}
    for hit in engine.search(["zebra"], 5)[0]:
        assert (hit.title, hit.snippet) == (known[hit.doc_id].title, known[hit.doc_id].text)


def test_postgres_puts_first_what_holds_most_of_the_words(postgres):
    with psycopg.connect(postgres.dsn) as connection:
        connection.execute("CREATE TABLE few (doc_id text, title text, text text)")
        texts = ["zebra " * 5, "oak tulip zebra river", "zebra zebra oak", "river", "river"]
        for number, text in enumerate(texts):
            connection.execute("INSERT INTO few VALUES (%s, NULL, %s)", [f"t{number}", text])
    (hits,) = Postgres(postgres.dsn, "few").search(["zebra oak tulip"], 9)
    assert [hit.doc_id for hit in hits] == ["t1", "t2", "t0"]
    (hits,) = Postgres(postgres.dsn, "few").search(["river"], 9)
    assert [hit.doc_id for hit in hits] == ["t1", "t3", "t4"]


def test_postgres_orders_ties_by_id(postgres):
    (hits,) = articles(postgres).search(["anchor apple"], 300)
    keys = [(-hit.score, hit.doc_id) for hit in hits]
    assert keys == sorted(keys)
    assert len({hit.score for hit in hits}) < len(hits)


def test_words_that_stand_in_no_document_together_still_find_some(postgres):
    with psycopg.connect(postgres.dsn) as connection:
        (together,) = connection.execute(
            "SELECT count(*) FROM articles WHERE to_tsvector('english', title || ' ' || text)"
            " @@ websearch_to_tsquery('english', 'zebra willow winter tulip')"
        ).fetchone()
    assert together == 0
    assert articles(postgres).search(["zebra willow winter tulip"], 10)[0]


@pytest.mark.parametrize("length", [300, 3000, 300_000])
def test_a_very_long_word_finds_nothing_and_hides_nothing(postgres, length):
    engine = articles(postgres)
    alone, beside, plain = engine.search(["x" * length, "x" * length + " zebra", "zebra"], 10)
    assert alone == []
    assert found(beside) == found(plain)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(queries)
def test_any_query_is_a_parameter_of_one_statement(postgres, query):
    start = postgres.log.stat().st_size
    engine = articles(postgres, language="simple")
    finds_its_words(engine, query)
    sent = postgres.log.read_bytes()[start:].decode()
    statements = re.findall(r"LOG:  (?:execute <unnamed>|statement): (.*)", sent)
    fixed = engine._statement.as_string().replace("%(query)s", "$1")
    assert statements == [] or statements == [
        "BEGIN READ ONLY",
        "SELECT set_config('statement_timeout', $1, true)",
        fixed.replace("%(depth)s", "$2"),
        "COMMIT",
    ]
    assert bool(statements) == bool(words(query))


def test_a_stored_column_gives_the_same_answers_and_the_indexes_are_used(postgres):
    plain = articles(postgres).search(EASY, 20)
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE indexed AS SELECT * FROM articles")
        for block in SQL_EXAMPLES:
            connection.execute(block.replace("articles", "indexed"))
        connection.execute("SET enable_seqscan = off")
        for options in ({}, {"parsed": "words"}):
            engine = Postgres(postgres.dsn, "indexed", **options)
            assert engine.search(EASY, 20) == plain
            values = {"query": '"zebra" or "oak"', "depth": 5}
            plan = connection.execute(sql.SQL("EXPLAIN ") + engine._statement, values).fetchall()
            assert "Bitmap Index Scan" in str(plan)


def test_odd_names_are_only_names(postgres):
    table, column = 'a "table"; DROP TABLE articles; --', 'the "id" %s {x}'
    with psycopg.connect(postgres.dsn) as connection:
        connection.execute(
            sql.SQL("CREATE TABLE {} ({} int, body text)").format(
                sql.Identifier(table), sql.Identifier(column)
            )
        )
        connection.execute(
            sql.SQL("INSERT INTO {} VALUES (7, 'zebra')").format(sql.Identifier(table))
        )
    engine = Postgres(postgres.dsn, table, doc_id=column, title="", text="body")
    (hit,) = engine.search(["zebra"], 5)[0]
    assert (hit.doc_id, hit.title, hit.snippet) == ("7", "", "zebra")
    assert articles(postgres).search(["zebra"], 5)[0]


@pytest.mark.slow
def test_postgres_ranks_real_passages_well(postgres, shared_data):
    folder = shared_data / "ir" / "msmarco-dl19-pool"
    relevance: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels.txt").read_text().splitlines():
        query, _, document, grade = line.split()
        relevance.setdefault(query, {})[document] = int(grade)
    asked = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    with psycopg.connect(postgres.dsn) as connection:
        connection.execute("CREATE TABLE passages (doc_id text, title text, text text)")
        with connection.cursor().copy("COPY passages FROM STDIN") as copy:
            for passage in read_corpus(folder):
                copy.write_row((passage.doc_id, passage.title, passage.text))
        connection.execute(SQL_EXAMPLES[1].replace("articles", "passages"))
    engine = Postgres(postgres.dsn, "passages", parsed="words")
    answers = engine.search([query["text"] for query in asked], 10)
    discounts = [1 / math.log2(rank + 1) for rank in range(1, 11)]
    gained = []
    for query, hits in zip(asked, answers, strict=True):
        grades = relevance[query["query_id"]]
        best = sorted(grades.values(), reverse=True)
        ideal = sum(grade * discount for grade, discount in zip(best, discounts, strict=False))
        got = [grades.get(hit.doc_id, 0) for hit in hits]
        gained.append(sum(map(operator.mul, got, discounts)) / ideal)
    # BM25 has 0.47 here, and ts_rank_cd 0.19.
    assert sum(gained) / len(gained) > 0.4


def said(engine: Postgres, within: float = 5.0) -> str:
    start = time.monotonic()
    with pytest.raises(EngineError) as caught:
        engine.search([f"{MARK} zebra"], 5)
    assert time.monotonic() - start < within
    assert MARK not in str(caught.value)
    return str(caught.value)


def test_postgres_says_what_is_wrong(postgres):
    assert "no such table" in said(Postgres(postgres.dsn, "missing"))
    assert "no such column" in said(articles(postgres, text="missing"))
    assert "check language" in said(articles(postgres, language="klingon"))
    with psycopg.connect(postgres.dsn) as connection:
        connection.execute("CREATE ROLE stranger LOGIN")
    stranger = Postgres(f"{postgres.dsn}&user=stranger", "articles")
    assert "the right to SELECT" in said(stranger)
    with pytest.raises(UsageError, match="must be given as"):
        Postgres("host localhost", "articles")
    with pytest.raises(UsageError, match="name the table"):
        Postgres(postgres.dsn, "articles", doc_id="")


def test_a_slow_query_is_cancelled_and_a_writing_one_refused(postgres):
    with psycopg.connect(postgres.dsn) as connection:
        connection.execute(
            "CREATE VIEW slow AS SELECT doc_id, title, text || pg_sleep(0.05)::text AS text"
            " FROM articles"
        )
        connection.execute("CREATE TABLE written (at timestamptz)")
        connection.execute(
            "CREATE FUNCTION leave_a_trace() RETURNS text LANGUAGE sql AS"
            " $$INSERT INTO written VALUES (now()); SELECT ''$$"
        )
        connection.execute(
            "CREATE VIEW writing AS SELECT doc_id, title, text || leave_a_trace() AS text"
            " FROM articles"
        )
    assert "in time" in said(Postgres(postgres.dsn, "slow", timeout=0.3), within=2)
    assert "ReadOnlySqlTransaction" in said(Postgres(postgres.dsn, "writing"))


def test_a_database_that_is_down_or_silent_says_so(monkeypatch):
    address = f"postgresql://me:s3cret@127.0.0.1:{free_port()}/x"
    engine = Postgres(address, "articles")
    message = said(engine)
    assert "could not be reached" in message
    assert "s3cret" not in message + repr(engine) + engine.name
    monkeypatch.setattr(postgres_engine, "CONNECT_TIMEOUT", 2)

    def silence(request):
        time.sleep(9)
        yield b""

    with web(silence) as server:
        silent = Postgres(f"postgresql://127.0.0.1:{server.port}/x", "articles")
        assert "did not answer in time" in said(silent)


@pytest.mark.parametrize(
    ("dsn", "environment", "host"),
    [
        ("", {}, None),
        ("host=/var/run/postgresql", {}, None),
        ("postgresql://localhost/x", {}, None),
        ("postgresql://127.0.0.1,[::1]/x", {}, None),
        ("postgresql://db.example.org/x", {}, "db.example.org"),
        ("postgresql://localhost,db.example.org/x", {}, "db.example.org"),
        ("host=localhost hostaddr=192.0.2.7", {}, "192.0.2.7"),
        ("dbname=x", {"PGHOST": "db.example.org"}, "db.example.org"),
        ("dbname=x", {"PGHOSTADDR": "192.0.2.7"}, "192.0.2.7"),
        ("service=x", {}, "a service"),
        ("dbname=x", {"PGSERVICE": "x"}, "a service"),
    ],
)
def test_databases_elsewhere_are_known_and_must_prove_who_they_are(
    monkeypatch, dsn, environment, host
):
    for name in ("HOST", "HOSTADDR", "SERVICE", "SSLMODE", "SSLROOTCERT"):
        monkeypatch.delenv(f"PG{name}", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    engine = Postgres(dsn, "articles")
    assert engine.remote is (host is not None)
    assert engine.name == f"postgres at {host or 'localhost'}"
    assert (engine.pause, engine.most_queries) == ((1.0, 20) if host else (0.0, None))
    assert engine._where.get("sslmode") == ("verify-full" if host else None)
    chosen = Postgres(f"{dsn}{'?' if '//' in dsn else ' '}sslmode=require", "articles")
    assert chosen._where["sslmode"] == "require"
    assert "sslrootcert" not in chosen._where
