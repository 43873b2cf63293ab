"""Who may ask the service, and how much; what it writes nowhere; how it starts and ends."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sottovoce.cli import app
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.paths import cache_folder

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from starlette.testclient import TestClient
from typer.testing import CliRunner

from sottovoce.app import server
from sottovoce.app.security import BODY, LARGEST_HEADERS, LONGEST_URL, Guard, TokenBucket
from sottovoce.app.service import create_app
from sottovoce.app.settings import Settings

TOKEN = "0123456789abcdef-token"
SETTINGS = Settings(port=8765, token=TOKEN)
POST = {"text": "skin cancer"}
SECRET = "zebrafinchology"
"""A word that no answer, log or file may hold."""


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(create_app(SETTINGS), base_url="http://127.0.0.1:8765") as opened:
        yield opened


def with_token(**headers: str) -> dict[str, str]:
    return {"X-Sottovoce-Token": TOKEN, **headers}


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8765", "127.0.0.1", "127.0.0.1:8766", "localhost.:8765"),
        *("127.0.0.1:8765.evil.example", "", "[::1]", "0.0.0.0:8765", "127.1:8765", "localhost"),
    ],
)
def test_a_name_that_is_not_ours_is_misdirected(client, host):
    for path in ("/", "/health", "/v1/ledger", "/static/app.js"):
        assert client.get(path, headers={"Host": host}).status_code == 421


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8765", "localhost:8765", "LOCALHOST:8765", "[::1]:8765"]
)
def test_our_own_names_are_answered(client, host):
    assert client.get("/health", headers={"Host": host}).status_code == 200


def test_further_names_must_be_allowed():
    app = create_app(Settings(port=8765, token=TOKEN, allowed_hosts=("box.lan",)))
    client = TestClient(app, base_url="http://box.lan:8765")
    assert client.get("/openapi.json").status_code == 200
    assert client.get("/openapi.json", headers={"Host": "other.lan:8765"}).status_code == 421


def test_a_further_name_may_come_with_the_port_of_a_tunnel():
    own = Settings(port=8765, allowed_hosts=("localhost:9000", "Box.lan:80", "[::1]:7")).hosts
    assert own >= {"localhost:9000", "localhost:8765", "box.lan:80", "box.lan", "[::1]:7"}
    assert not own & {"localhost:9000:8765", "box.lan:8765", "localhost"}
    assert "127.0.0.1" in Settings(port=80).hosts


@pytest.mark.parametrize(
    "origin",
    [
        *("http://evil.example", "null", "https://127.0.0.1:8765", "http://127.0.0.1:8766"),
        *("http://127.0.0.1", "http://localhost:3000", "", "http://127.0.0.1:8765.evil.example"),
    ],
)
def test_another_origin_is_refused_even_with_the_token(client, origin):
    for method, path in (("GET", "/health"), ("POST", "/v1/obfuscate"), ("OPTIONS", "/v1/search")):
        answer = client.request(method, path, headers=with_token(Origin=origin), json=POST)
        assert answer.status_code == 403
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_our_own_origin_passes(client):
    headers = with_token(Origin="http://127.0.0.1:8765")
    assert client.get("/v1/history", headers=headers).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site", "unheard-of"])
def test_requests_that_a_browser_calls_foreign_are_refused(client, site):
    for path in ("/health", "/v1/ledger", "/static/app.js", "/docs"):
        assert client.get(path, headers={"Sec-Fetch-Site": site}).status_code == 403
    for allowed in ("same-origin", "none"):
        assert client.get("/health", headers={"Sec-Fetch-Site": allowed}).status_code == 200


def test_a_link_may_open_the_page_but_not_embed_it(client):
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert client.get("/", headers={**link, "Sec-Fetch-Dest": "document"}).status_code == 200
    assert client.get("/", headers={**link, "Sec-Fetch-Dest": "iframe"}).status_code == 403
    other = client.get("/v1/ledger", headers={**link, "Sec-Fetch-Dest": "document"})
    assert other.status_code == 403


def test_every_call_that_changes_something_needs_the_token(client):
    document = client.get("/openapi.json").json()
    changing = [
        (method.upper(), path)
        for path, methods in document["paths"].items()
        for method in methods
        if method != "get" or path in ("/v1/history", "/v1/ledger")
    ]
    assert len(changing) >= 9
    for method, path in changing:
        wrong = ({}, {"X-Sottovoce-Token": TOKEN[:-1]}, {"Authorization": f"Basic {TOKEN}"})
        for headers in (*wrong, {"X-Sottovoce-Token": ""}, {"Cookie": f"token={TOKEN}"}):
            body = {} if method == "GET" else {"json": {}}
            answer = client.request(method, path, headers=headers, **body)
            assert answer.status_code == 401
            assert answer.json()["kind"] == "token"
        assert client.request(method, f"{path}?token={TOKEN}", **body).status_code == 401
    assert client.post("/v1/nowhere", json={}).status_code == 401
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    assert client.get("/v1/history", headers=bearer).status_code == 200


def test_every_answer_has_the_headers_that_keep_the_page_to_itself(client):
    answers = [
        client.get("/"),
        client.get("/docs"),
        client.get("/health"),
        client.get("/nowhere"),
        client.get("/health", headers={"Host": "evil.example"}),
        client.post("/v1/search", json={}),
        client.post("/v1/search", json={}, headers=with_token()),
    ]
    assert len({each.status_code for each in answers}) == 5
    for each in answers:
        policy = each.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert each.headers["x-content-type-options"] == "nosniff"
        assert each.headers["referrer-policy"] == "no-referrer"
        assert each.headers["cache-control"] == "no-store"
        assert each.headers["cross-origin-opener-policy"] == "same-origin"
        assert each.headers["cross-origin-resource-policy"] == "same-origin"
        assert not [name for name in each.headers if name.startswith("access-control")]


def test_large_bodies_urls_and_headers_are_refused(client):
    large = b'{"text": "' + b"a" * BODY + b'"}'

    def in_pieces() -> Iterator[bytes]:
        for start in range(0, len(large), 1 << 16):
            yield large[start : start + (1 << 16)]

    for content in (large, in_pieces()):
        answer = client.post("/v1/obfuscate", content=content, headers=with_token())
        assert answer.status_code == 413
    data = json.dumps({"texts": ["a" * BODY], "mechanism": "no"})
    assert client.post("/v1/sanitize", content=data, headers=with_token()).status_code == 422
    assert client.get("/health?" + "a" * 3000).status_code == 414
    assert client.get("/health", headers={"X-Much": "a" * 20_000}).status_code == 431


async def through(guard: Guard, messages: list[Any], **scope: Any) -> list[dict[str, Any]]:
    """Send a request by hand; a message that is a number is a pause."""
    sent: list[dict[str, Any]] = []

    async def receive() -> Any:
        while messages and isinstance(messages[0], float):
            await asyncio.sleep(messages.pop(0))
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"127.0.0.1:8765"), (b"x-sottovoce-token", TOKEN.encode())]
    asked = {"method": "POST", "path": "/", "query_string": b"", "headers": headers, **scope}
    await guard({"type": "http", **asked}, receive, send)
    return sent


async def quiet(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def part(data: bytes, more: bool) -> dict[str, Any]:
    return {"type": "http.request", "body": data, "more_body": more}


def test_a_method_that_takes_no_body_reads_none():
    """Nothing is reserved for it: strangers could fill what all bodies share."""
    guard = Guard(quiet, SETTINGS, bodies_together=10)
    host = (b"host", b"127.0.0.1:8765")
    for method in ("GET", "HEAD"):
        for told in ((b"content-length", b"9"), (b"transfer-encoding", b"chunked")):
            messages = [part(b"a" * 9, False)]
            sent = asyncio.run(through(guard, messages, method=method, headers=[host, told]))
            assert sent[0]["status"] == 400
            assert messages  # Nobody asked for it.
        empty = [host, (b"content-length", b"0")]
        sent = asyncio.run(through(guard, [part(b"", False)], method=method, headers=empty))
        assert sent[0]["status"] == 200


def test_a_body_that_trickles_in_is_given_up_and_so_is_its_place():
    guard = Guard(quiet, SETTINGS, body_seconds=0.05, bodies_together=10)
    slow = [part(b"a" * 8, True), 0.2, part(b"b", False)]
    assert asyncio.run(through(guard, slow))[0]["status"] == 408
    assert asyncio.run(through(guard, [part(b"a" * 8, False)]))[0]["status"] == 200


def test_all_bodies_together_are_bounded_and_given_free_again():
    guard = Guard(quiet, SETTINGS, bodies_together=10)
    for _ in range(3):
        assert asyncio.run(through(guard, [part(b"a" * 8, False)]))[0]["status"] == 200
        refused = asyncio.run(through(guard, [part(b"a" * 8, True), part(b"b" * 8, False)]))
        assert refused[0]["status"] == 503
        assert (b"retry-after", b"2") in refused[0]["headers"]
        assert asyncio.run(through(guard, [part(b"a" * 8, True)]))[0]["status"] == 400


def test_what_is_exactly_at_a_limit_passes_and_one_more_does_not():
    guard = Guard(quiet, SETTINGS, bodies_together=BODY + 1)

    def status(body: bytes = b"", **scope: Any) -> int:
        answer: int = asyncio.run(through(guard, [part(body, False)], **scope))[0]["status"]
        return answer

    path = b"/" + b"a" * (LONGEST_URL - 11)
    assert status(raw_path=path, query_string=b"q" * 10) == 200
    assert status(raw_path=path, query_string=b"q" * 11) == 414
    usual = [(b"host", b"127.0.0.1:8765"), (b"x-sottovoce-token", TOKEN.encode())]
    left = LARGEST_HEADERS - sum(len(name) + len(value) for name, value in usual) - 1
    assert status(headers=[*usual, (b"x", b"a" * left)]) == 200
    assert status(headers=[*usual, (b"x", b"a" * (left + 1))]) == 431
    assert status(b"a" * BODY) == 200
    assert status(b"a" * (BODY + 1)) == 413
    announced = (b"content-length", str(BODY).encode())
    assert status(headers=[*usual, announced]) == 200
    assert status(headers=[*usual, (b"content-length", str(BODY + 1).encode())]) == 413
    assert status(headers=[*usual, (b"content-length", b"-1")]) == 413
    together = Guard(quiet, SETTINGS, bodies_together=10)
    assert asyncio.run(through(together, [part(b"a" * 10, False)]))[0]["status"] == 200


def test_an_exception_of_the_service_is_not_passed_on():
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError(SECRET)

    sent = asyncio.run(through(Guard(broken, SETTINGS), [part(b"", False)]))
    assert sent[0]["status"] == 500
    assert SECRET.encode() not in sent[1]["body"]
    assert b"RuntimeError" in sent[1]["body"]


def test_websockets_are_closed():
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def never() -> Any:
        raise AssertionError

    asyncio.run(Guard(quiet, SETTINGS)({"type": "websocket"}, never, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_a_flood_is_slowed_down_and_told_when_to_come_back():
    now = [0.0]
    bucket = TokenBucket(rate=2.0, burst=3, clock=lambda: now[0])
    assert [bucket.take() for _ in range(4)] == [True, True, True, False]
    now[0] += 1.0
    assert [bucket.take() for _ in range(3)] == [True, True, False]
    guard = Guard(quiet, SETTINGS, bucket=bucket)
    sent = asyncio.run(through(guard, [part(b"", False)]))
    assert sent[0]["status"] == 429
    assert (b"retry-after", b"1") in sent[0]["headers"]


def test_a_flood_without_the_token_does_not_stop_whoever_has_it():
    guard = Guard(quiet, SETTINGS, strangers=TokenBucket(rate=0.0, burst=2))
    stranger = {"method": "GET", "headers": [(b"host", b"127.0.0.1:8765")]}
    got = [asyncio.run(through(guard, [part(b"", False)], **stranger)) for _ in range(3)]
    assert [each[0]["status"] for each in got] == [200, 200, 429]
    assert asyncio.run(through(guard, [part(b"", False)]))[0]["status"] == 200


def test_requests_from_elsewhere_do_not_use_up_the_rate():
    bucket = TokenBucket(rate=0.0, burst=1)
    guard = Guard(quiet, SETTINGS, bucket=bucket)
    foreign = [(b"host", b"evil.example")]
    for _ in range(5):
        sent = asyncio.run(through(guard, [part(b"", False)], headers=foreign))
        assert sent[0]["status"] == 421
    assert asyncio.run(through(guard, [part(b"", False)]))[0]["status"] == 200


def test_the_browser_is_brought_to_the_page_once(client):
    opening = client.app.state.service.opening.address()
    assert TOKEN not in opening
    path = opening.removeprefix("http://127.0.0.1:8765")
    paths = ("/open/guess", path, path)
    # A browser calls it foreign, since it comes from a file.
    foreign = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    headers = {**foreign, "Sec-Fetch-Dest": "document"}
    led = [
        client.get(each, follow_redirects=False, headers=headers).headers["location"]
        for each in paths
    ]
    assert led == ["/", f"/#token={TOKEN}", "/"]


def test_a_connection_that_never_asks_is_closed(monkeypatch):
    import uvicorn

    monkeypatch.setattr(server, "HEADER_SECONDS", 0.2)
    listening = server.bind("127.0.0.1", 0)
    port = listening.getsockname()[1]
    config = uvicorn.Config(quiet, http=server._patient_protocol(), log_config=None, lifespan="off")
    serves = uvicorn.Server(config)

    async def ask(data: bytes, then: bytes = b"") -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(data)
        if then:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(then)
        answer = await asyncio.wait_for(reader.read(), 30)
        writer.close()
        return answer

    async def both() -> list[bytes]:
        serving = asyncio.create_task(serves.serve(sockets=[listening]))
        whole = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        kept = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        answers = await asyncio.gather(
            *(ask(b"GET / HT"), ask(b""), ask(kept, b"GET / HT"), ask(kept + b"GET / HT", b"TP")),
            ask(whole),
        )
        serves.should_exit = True
        await serving
        return answers

    with listening:
        *silent, answered = asyncio.run(both())
    assert answered.startswith(b"HTTP/1.1 200")
    assert [each.replace(b"0\r\n\r\n", b"") for each in silent] == [b""] * 4


# The real process


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, default_space: Any) -> Path:
    folder = tmp_path_factory.mktemp("home")
    for name in ("spaces", "embeddings", "strong"):
        if (cache_folder() / name).exists():
            (folder / name).symlink_to(cache_folder() / name)
    return folder


def start(home: Path, *options: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "sottovoce", "serve", "--no-browser", *options],
        env={**os.environ, "SOTTOVOCE_HOME": str(home), "PYTHONUNBUFFERED": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ready(process: subprocess.Popen[str]) -> tuple[int, str]:
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"http://127\.0\.0\.1:(\d+)/#token=(\S+)", line)
    assert found, process.communicate()
    return int(found[1]), found[2]


def ask(port: int, head: str, body: bytes = b"") -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)
        answer = b""
        while data := connection.recv(65536):
            answer += data
    return answer


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_the_service_tells_its_own_user_where_it_is_and_ends_cleanly(home, by):
    with start(home, "--port", "0") as process:
        port, token = ready(process)
        file = home / "serve.json"
        told = json.loads(file.read_text())
        assert told == {"port": port, "token": token, "pid": process.pid}
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert ask(port, f"GET /health HTTP/1.1\nHost: localhost:{port}\nConnection: close")
        process.send_signal(by)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert err.endswith("stopped\n")
    assert "Traceback" not in err
    assert token not in err
    assert not file.exists()


def test_nothing_that_was_typed_is_printed_or_kept(home):
    with start(home, "--port", "0", "--rerank", "light", SOTTOVOCE_TOKEN=TOKEN) as process:
        port, token = ready(process)
        assert token == TOKEN
        assert process.stdout is not None
        head = f"Host: localhost:{port}\nX-Sottovoce-Token: {token}\nConnection: close"
        typed = [
            ("POST", "/v1/search", {"query": f"{SECRET} treatment", "n": 2}),
            ("POST", "/v1/preview", {"query": f"{SECRET} treatment", "n": 2}),
            ("POST", "/v1/obfuscate", {"text": SECRET, "mechanism": SECRET}),
            ("POST", "/v1/obfuscate", {SECRET: SECRET}),
            ("POST", "/v1/sanitize", {"csv": f'text\n"{SECRET}', "column": "text"}),
            ("PUT", f"/{SECRET}", {}),
        ]
        answers = []
        for method, path, body in typed:
            data = json.dumps(body).encode()
            lines = f"{method} {path} HTTP/1.1\n{head}\nContent-Type: application/json\n"
            answers.append(ask(port, f"{lines}Content-Length: {len(data)}", data))
        answers.append(ask(port, f"GET /{SECRET} HTTP/1.1\n{head}"))
        answers.append(ask(port, f"{SECRET}\n{SECRET}"))
        process.terminate()
        out, err = process.communicate(timeout=30)
    assert answers[0].startswith(b"HTTP/1.1 200")
    assert all(SECRET.encode() not in each for each in answers[2:])
    assert SECRET not in out + err
    assert b"\r\nserver:" not in answers[0].lower()
    kept = [file for file in home.rglob("*") if file.is_file() and not file.is_symlink()]
    assert any("ledger" in str(file) for file in kept)
    assert all(SECRET.encode() not in file.read_bytes() for file in kept)


def test_a_port_that_is_taken_is_said_so(home):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with start(home, "--port", str(taken.getsockname()[1])) as process:
            out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "--port" in err
    assert out == ""


@pytest.mark.parametrize(
    "options",
    [
        ("--collection", "nowhere"),
        ("--engine", "bm26"),
        ("--log", "nowhere.txt"),
        ("--pool", "nowhere"),
        ("--host", "x y"),
    ],
)
def test_wrong_names_end_the_start(options):
    result = CliRunner().invoke(app, ["serve", "--port", "0", "--no-browser", *options])
    assert isinstance(result.exception, SottovoceError)
    assert result.output == ""


def test_a_token_of_your_own_must_be_long_enough():
    for token in ("short", "with a blank in it, long"):
        result = CliRunner().invoke(app, ["serve", "--port", "0"], env={"SOTTOVOCE_TOKEN": token})
        assert isinstance(result.exception, UsageError)
        assert token not in str(result.exception)


def test_listening_for_other_machines_is_warned_about(home):
    with start(home, "--port", "0", "--host", "0.0.0.0") as process:
        port, _ = ready(process)
        answer = ask(port, f"GET /health HTTP/1.1\nHost: 0.0.0.0:{port}\nConnection: close")
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert "WARNING" in err
    assert "other machines" in err
    assert "Only this machine" not in err
    assert answer.startswith(b"HTTP/1.1 421")


def test_a_search_that_waits_does_not_keep_the_service_alive(home, tmp_path):
    """The engine listens and never answers; the end comes within seconds all the same."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        engine = tmp_path / "engine.toml"
        engine.write_text(
            f'url = "http://127.0.0.1:{silent.getsockname()[1]}/?q={{query}}"\n'
            'name = "silent"\nresults = "hits"\nid = "id"\ntimeout = 60\n'
        )
        with start(home, "--port", "0", "--engine", f"http:{engine}") as process:
            port, token = ready(process)
            data = json.dumps({"query": "skin cancer", "n": 2}).encode()
            with socket.create_connection(("127.0.0.1", port), timeout=30) as asking:
                asking.sendall(
                    f"POST /v1/search HTTP/1.1\r\nHost: localhost:{port}\r\n"
                    f"X-Sottovoce-Token: {token}\r\nContent-Type: application/json\r\n"
                    f"Content-Length: {len(data)}\r\n\r\n".encode()
                    + data
                )
                silent.settimeout(60)
                connection, _ = silent.accept()
                with connection:
                    process.terminate()
                    process.communicate(timeout=30)
        assert process.returncode == 0
