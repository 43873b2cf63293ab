"""Real stores of vectors: right answers, and every byte that they receive."""

from __future__ import annotations

import gc
import json
import re
import socket
import struct

import numpy as np
import pytest
import servers
from servers import free_port, reply, tapped, web

from sottovoce.collections import load_collection
from sottovoce.encoders import load_encoder
from sottovoce.engines import OpenSearchKNN, PgVector, Qdrant, choose_engine, choose_vector_store
from sottovoce.engines.base import EngineError
from sottovoce.engines.dense import Dense
from sottovoce.engines.vector_engine import likeness
from sottovoce.errors import PrivacyWarning, UsageError
from sottovoce.obfuscation.vectors import VectorNoise
from sottovoce.search import PrivateVectorSearch

postgres, library = servers.postgres, servers.library

QUERY = "zyzzyva treatment for melanoma"
DIMENSION = 256


@pytest.fixture(scope="module")
def documents():
    return load_collection("demo").documents[:160]


@pytest.fixture(scope="module")
def dense(home, documents):
    return Dense(documents, "light")


@pytest.fixture(scope="module")
def noise():
    return VectorNoise(load_encoder("light"), 200.0)


@pytest.fixture(scope="module")
def rows(dense, documents):
    vectors = load_encoder("light").encode([dense.text(d.doc_id) for d in documents])
    return list(zip(documents, vectors.tolist(), strict=True))


def agrees(engine, dense, noise, depth=25):
    """The same documents, scores and vectors as ours, and so the same search."""
    for number in range(2):
        vector = noise.move(noise.encode([f"{QUERY} {number}"]), draws(number))[0]
        near, expected = engine.nearest(vector, depth), dense.nearest(vector, depth)
        assert [one.hit.doc_id for one in near] == [one.hit.doc_id for one in expected]
        assert [one.hit.title for one in near] == [one.hit.title for one in expected]
        for one, other in zip(near, expected, strict=True):
            assert one.vector == pytest.approx(other.vector, abs=1e-6)
            assert one.hit.snippet[:50] == other.hit.snippet[:50]
        vectors = np.stack([one.vector for one in near])
        scores = likeness(vector, vectors, engine.metric)
        assert (np.diff(scores) <= 1e-6).all()
    hits = PrivateVectorSearch(noise, engine, depth=160).search(QUERY).hits
    best = dense.nearest(noise.encode([QUERY])[0], 10)
    assert [hit.doc_id for hit in hits] == [one.hit.doc_id for one in best]


def draws(seed):
    from sottovoce.randomness import Draws

    return Draws([(np.random.default_rng(seed), 1)])


def holds(received: bytes, vector) -> bool:
    """Whether several numbers of a vector can be read off bytes, as text or as 32-bit floats."""
    text = received.decode("latin-1")
    numbers = [float(number) for number in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", text)]
    near = np.array(numbers or [9.0])
    big = [value for value in vector.tolist() if abs(value) > 0.01]
    shown = sum(np.abs(near - value).min() < 1e-6 for value in big)
    packed = sum(struct.pack(order, value) in received for value in big for order in ("<f", ">f"))
    return max(shown, packed) > len(big) / 4


def tells_nothing_but_noise(received: bytes, result, noise) -> None:
    """The noisy vector arrived; neither the text did, nor the vector of the text."""
    assert holds(received, np.array(result.sent))
    assert not holds(received, noise.encode([QUERY])[0])
    for word in QUERY.split():
        assert len(word) < 4 or word.encode() not in received.lower()


# pgvector


@pytest.fixture(scope="module")
def table(postgres, rows):
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres.dsn) as connection:
        try:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except psycopg.Error:
            pytest.skip("this PostgreSQL comes without pgvector")
        connection.execute(
            "CREATE TABLE passages (doc_id text, title text, text text, embedding vector(256))"
        )
        with connection.cursor().copy("COPY passages FROM STDIN") as copy:
            for document, vector in rows:
                copy.write_row((document.doc_id, document.title, document.text, json.dumps(vector)))
        connection.execute("CREATE TABLE indexed AS SELECT * FROM passages")
        connection.execute("CREATE INDEX ON indexed USING hnsw (embedding vector_cosine_ops)")
    return postgres.dsn


@pytest.mark.parametrize("metric", ["inner", "cosine", "l2"])
def test_pgvector_finds_what_we_find_whatever_its_metric(table, dense, noise, metric):
    agrees(PgVector(table, "passages", "light", metric=metric), dense, noise)


def test_an_index_answers_as_deep_as_it_is_asked(table, dense, noise, postgres):
    vector = noise.move(noise.encode([QUERY]), draws(1))[0]
    start = postgres.log.stat().st_size
    near = PgVector(table, "indexed", "light").nearest(vector, 120)
    exact = PgVector(table, "indexed", "light", exact=True).nearest(vector, 120)
    expected = [one.hit.doc_id for one in dense.nearest(vector, 120)]
    assert [one.hit.doc_id for one in exact] == expected
    assert len({one.hit.doc_id for one in near} & set(expected)) > 105
    said = postgres.log.read_bytes()[start:].decode()
    statements = set(re.findall(r"LOG:  (?:execute <unnamed>|statement): (.*)", said))
    assert len(statements) == 4  # begin, settings, the one statement, commit
    assert not re.search(r"\d\.\d", " ".join(statements))


def test_pgvector_receives_the_noisy_vector_and_nothing_else(table, noise):
    from psycopg.conninfo import conninfo_to_dict

    there = conninfo_to_dict(table)
    host, number = there.get("host", "127.0.0.1"), there.get("port", 5432)

    def connect():
        if not host.startswith("/"):
            return socket.create_connection((host, int(number)))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{host}/.s.PGSQL.{number}")
        return server

    with tapped(connect) as (port, received):
        account = f"user={there['user']} dbname={there['dbname']} sslmode=disable"
        engine = PgVector(f"host=127.0.0.1 port={port} {account}", "passages", "light")
        result = PrivateVectorSearch(noise, engine, depth=20).search(QUERY)
    tells_nothing_but_noise(bytes(received), result, noise)


def test_pgvector_says_what_is_wrong(table, noise):
    vector = noise.encode([QUERY])[0]
    wrong = {
        "no such table": PgVector(table, "missing", "light"),
        "no vectors in that column": PgVector(table, "passages", "light", vector="title"),
        "no such column": PgVector(table, "passages", "light", text="missing"),
        "could not be reached": PgVector(
            f"postgresql://127.0.0.1:{free_port()}/x", "passages", "light"
        ),
    }
    for message, engine in wrong.items():
        with pytest.raises(EngineError, match=message):
            engine.nearest(vector, 5)
    with pytest.raises(EngineError, match="vectors of another length"):
        PgVector(table, "passages", "light").nearest(vector[:100], 5)
    with pytest.raises(UsageError, match="one of inner, cosine, l2"):
        PgVector(table, "passages", "light", metric="euclid")
    with pytest.raises(UsageError, match="1 to 10,000"):
        PgVector(table, "passages", "light").nearest(vector, 0)


# Qdrant


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory):
    """A collection of Qdrant's local mode, made by its own client, then closed."""
    client = pytest.importorskip("qdrant_client", reason="pip install 'sottovoce[qdrant]'")
    models = client.models
    path = tmp_path_factory.mktemp("qdrant")
    store = client.QdrantClient(path=str(path))
    cosine = models.VectorParams(size=DIMENSION, distance=models.Distance.COSINE)
    store.create_collection("passages", vectors_config=cosine)
    store.create_collection("named", vectors_config={"text": cosine})
    points = {"passages": [], "named": []}
    for number, (document, vector) in enumerate(rows):
        payload = {"key": document.doc_id, "title": document.title, "text": document.text}
        for name, value in (("passages", vector), ("named", {"text": vector})):
            points[name].append(models.PointStruct(id=number, vector=value, payload=payload))
    for name, of_collection in points.items():
        store.upsert(name, of_collection)
    store.close()
    return path


def opened(folder, collection="passages", **options) -> Qdrant:
    return Qdrant(collection, "light", folder=str(folder), doc_id="key", **options)


def test_qdrant_finds_what_we_find(folder, dense, noise):
    engine = opened(folder)
    agrees(engine, dense, noise)
    assert not engine.remote
    engine._client.close()
    named = opened(folder, "named", vector="text")
    agrees(named, dense, noise)
    with pytest.raises(EngineError, match="could not answer") as caught:
        named.nearest(np.zeros(3, np.float32), 5)
    assert QUERY not in str(caught.value)
    named._client.close()
    missing = opened(folder, "missing")
    with pytest.raises(EngineError, match="check 'collection'"):
        missing.nearest(noise.encode([QUERY])[0], 5)
    missing._client.close()


# The client does not close the lock that it could not get.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_folder_that_is_open_elsewhere_says_so(folder, noise):
    first, second = opened(folder), opened(folder)
    vector = noise.encode([QUERY])[0]
    first.nearest(vector, 5)
    with pytest.raises(EngineError, match="another process has it open"):
        second.nearest(vector, 5)
    first._client.close()
    gc.collect()


class QdrantServer:
    """Answers as Qdrant's REST protocol says, out of our own exact search."""

    def __init__(self, dense):
        self.dense = dense

    def __call__(self, request):
        if not request.target.endswith("/points/query"):
            return reply({"status": {"error": "Not found"}}, 404)
        asked = json.loads(request.body)
        near = self.dense.nearest(np.array(asked["query"]["nearest"], np.float32), asked["limit"])
        points = [
            {
                "id": number,
                "version": 1,
                "score": one.hit.score,
                "payload": {
                    "key": one.hit.doc_id,
                    "title": one.hit.title,
                    "text": one.hit.snippet,
                },
                "vector": one.vector.tolist(),
            }
            for number, one in enumerate(near)
        ]
        return reply({"result": {"points": points}, "status": "ok", "time": 0.001})


def test_a_qdrant_server_is_asked_as_its_own_client_asks(dense, noise, monkeypatch):
    client = pytest.importorskip("qdrant_client", reason="pip install 'sottovoce[qdrant]'")
    monkeypatch.setenv("SOTTOVOCE_QDRANT_API_KEY", "s3cret")
    vector = noise.move(noise.encode([QUERY]), draws(1))[0]
    with web(QdrantServer(dense)) as server:
        engine = Qdrant("passages", "light", url=server.url, doc_id="key", exact=True)
        agrees(engine, dense, noise)
        engine.nearest(vector, 7)
        own = server.requests[-1]
        theirs = client.QdrantClient(url=server.url, check_compatibility=False)
        answer = theirs.query_points(
            "passages",
            query=vector.tolist(),
            limit=7,
            with_payload=["key", "title", "text"],
            with_vectors=True,
            search_params=client.models.SearchParams(exact=True),
        )
        theirs.close()
    assert len(answer.points) == 7
    assert (own.method, own.target) == (server.requests[-1].method, server.requests[-1].target)
    meant = {
        key: value
        for key, value in json.loads(server.requests[-1].body).items()
        if value is not None
    }
    meant["params"] = {k: v for k, v in meant["params"].items() if v is not None}
    given = json.loads(own.body)
    meant["params"].pop("indexed_only", None)
    assert given == meant
    assert own.headers["api-key"] == "s3cret"


def test_a_qdrant_server_receives_the_noisy_vector_and_nothing_else(dense, noise):
    with web(QdrantServer(dense)) as server:
        engine = Qdrant("passages", "light", url=server.url, doc_id="key")
        result = PrivateVectorSearch(noise, engine, depth=20).search(QUERY)
        (request,) = server.requests
    received = f"{request.target}{request.headers}".encode() + request.body
    tells_nothing_but_noise(received, result, noise)
    assert json.loads(request.body)["query"] == {"nearest": list(result.sent)}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"result": {}}, "does not answer as Qdrant does"),
        ({"result": {"points": [{"id": 1, "score": 1.0, "payload": {}}]}}, "no vector of 256"),
        ({"result": {"points": [{"id": 1, "payload": {}, "vector": [1] * 256}]}}, "no number"),
    ],
)
def test_half_answers_are_refused(noise, answer, message):
    with web(lambda request: reply(answer)) as server:
        engine = Qdrant("passages", "light", url=server.url)
        with pytest.raises(EngineError, match=message):
            engine.nearest(noise.encode([QUERY])[0], 5)


def test_a_server_that_is_gone_says_so_and_keeps_the_query_to_itself(noise, monkeypatch):
    monkeypatch.setattr("sottovoce.engines.http_client.FIRST_WAIT", 0.01)
    engines = [
        Qdrant("passages", "light", url=f"http://127.0.0.1:{free_port()}"),
        OpenSearchKNN(f"http://127.0.0.1:{free_port()}", "passages", "light"),
    ]
    for engine in engines:
        with pytest.raises(EngineError, match="refused the connection") as caught:
            PrivateVectorSearch(noise, engine).search(QUERY)
        assert "melanoma" not in str(caught.value)


# OpenSearch


class KnnCluster:
    """Answers a k-NN search as OpenSearch documents it."""

    def __init__(self, dense):
        self.dense = dense

    def __call__(self, request):
        assert request.target == "/passages/_search"
        body = json.loads(request.body)
        assert set(body) == {"query", "size", "_source", "track_total_hits"}
        (asked,) = body["query"]["knn"].items()
        assert asked[0] == "embedding"
        assert asked[1]["k"] == body["size"]
        near = self.dense.nearest(np.array(asked[1]["vector"], np.float32), body["size"])
        rows = [
            {
                "_index": "passages",
                "_id": one.hit.doc_id,
                "_score": (1 + one.hit.score) / 2,
                "_source": {
                    "title": one.hit.title,
                    "text": one.hit.snippet,
                    "embedding": one.vector.tolist(),
                },
            }
            for one in near
        ]
        shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
        hits = {"max_score": rows[0]["_score"], "hits": rows}
        return reply({"took": 3, "timed_out": False, "_shards": shards, "hits": hits})


def test_opensearch_knn_by_its_documented_contract(dense, noise):
    with web(KnnCluster(dense)) as server:
        engine = OpenSearchKNN(server.url, "passages", "light")
        agrees(engine, dense, noise)
        server.requests.clear()
        result = PrivateVectorSearch(noise, engine, depth=20).search(QUERY)
        (request,) = server.requests
    tells_nothing_but_noise(f"{request.headers}".encode() + request.body, result, noise)
    with pytest.raises(UsageError, match="small letters"):
        OpenSearchKNN("http://localhost:9200", "_all", "light")


# Files that describe stores


def test_stores_are_described_in_files(tmp_path, folder, noise):
    file = tmp_path / "store.toml"
    file.write_text(
        f'collection = "passages"\nencoder = "light"\nfolder = "{folder}"\ndoc_id = "key"\n'
    )
    engine = choose_vector_store(f"qdrant:{file}")
    assert engine.made_by == "light"
    assert len(engine.nearest(noise.encode([QUERY])[0], 3)) == 3
    engine._client.close()
    file.write_text('url = "http://a.example:9200"\nindex = "x"\nencoder = "light"')
    with pytest.warns(PrivacyWarning, match="travel in clear"):
        assert choose_vector_store(f"knn:{file}").remote


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("collection = 1", "a text in quotes"),
        ('colection = "x"', "did you mean 'collection'"),
        ('collection = "x"', "lacks 'encoder'"),
        ('collection = "x"\nencoder = "light"\nexact = "yes"', "true or false"),
        ('collection = "x"\nencoder = "light"\ntimeout = -1', "a number of seconds"),
        ('collection = "x"\nencoder = "light"', "either its 'url' or a 'folder'"),
        ('collection = "a/b"\nencoder = "light"\nfolder = "x"', "letters, digits"),
        ("collection", "not TOML"),
    ],
)
def test_files_that_are_wrong_say_what_to_write(tmp_path, content, message):
    (tmp_path / "store.toml").write_text(content)
    with pytest.raises(UsageError, match=message):
        choose_vector_store(f"qdrant:{tmp_path / 'store.toml'}")


def test_what_is_no_store_is_refused():
    with pytest.raises(UsageError, match="did you mean 'qdrant'"):
        choose_vector_store("qdrnt:x")
    with pytest.raises(UsageError, match=r"write knn:FILE\.toml"):
        choose_vector_store("knn")
    with pytest.raises(UsageError, match="say which"):
        choose_vector_store("vectors")
    with pytest.raises(UsageError, match="takes vectors, not queries"):
        choose_engine("qdrant:x.toml")
