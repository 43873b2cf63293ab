"""Attacks on the running service, each over a real socket, and what another user can see."""

from __future__ import annotations

import gzip
import json
import os
import re
import socket
import stat
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from sottovoce.errors import SottovoceError, UsageError
from sottovoce.files import create_new, write_whole
from sottovoce.sanitizing.spreadsheets import without_formulas
from sottovoce.sanitizing.work import open_work, work_folder

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from serving import served

from sottovoce.app import security, server
from sottovoce.app.opening import Opening
from sottovoce.app.service import create_app
from sottovoce.app.settings import Settings

TOKEN = "0123456789abcdef-token"
SECRET = "zebrafinchology"
NOBODY = 65534
SLOW = 0.3
"""Seconds that the service waits in these tests; it is patient for longer otherwise."""


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A service without a word space, whose patience is short."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOTTOVOCE_HOME", str(tmp_path_factory.mktemp("home")))
        for module, name in (
            *((server, "HEADER_SECONDS"), (server, "ANSWER_SECONDS")),
            (security.Guard.__init__, "__kwdefaults__"),
        ):
            value: Any = SLOW
            if name == "__kwdefaults__":
                value = {**security.Guard.__init__.__kwdefaults__, "body_seconds": SLOW}
            patch.setattr(module, name, value)
        listening = server.bind("127.0.0.1", 0)
        number = listening.getsockname()[1]
        settings = Settings(port=number, token=TOKEN, reranker="light")
        with served(create_app(settings), listening):
            yield number


def head(port: int, line: str, *headers: str) -> bytes:
    lines = (line, f"Host: 127.0.0.1:{port}", *headers)
    return "".join(f"{one}\r\n" for one in lines).encode() + b"\r\n"


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def rest(connection: socket.socket) -> bytes:
    """All that still comes, until the service closes."""
    answer = b""
    try:
        while data := connection.recv(1 << 16):
            answer += data
    except ConnectionResetError:
        pass
    return answer


def ask(port: int, data: bytes) -> bytes:
    with connected(port) as connection:
        connection.sendall(data)
        return rest(connection)


def well(port: int) -> bool:
    """Whether somebody else is answered, and how soon."""
    begun = time.monotonic()
    answer = ask(port, head(port, "GET /openapi.json HTTP/1.1", "Connection: close"))
    return answer.startswith(b"HTTP/1.1 200") and time.monotonic() - begun < 10


# Slow clients


def test_slow_and_half_open_connections_are_closed_while_others_are_answered(port):
    begun = time.monotonic()
    with_token = f"X-Sottovoce-Token: {TOKEN}"
    beginnings = {
        "nothing at all": b"",
        "half a line": b"GET / HT",
        "headers without an end": head(port, "GET / HTTP/1.1")[:-2],
        "a body that stops": head(
            port, "POST /v1/obfuscate HTTP/1.1", with_token, "Content-Length: 99"
        )
        + b'{"te',
        "a chunk that stops": head(
            port, "POST /v1/obfuscate HTTP/1.1", with_token, "Transfer-Encoding: chunked"
        )
        + b"40\r\n{",
    }
    open_ones = {name: [connected(port) for _ in range(40)] for name in beginnings}
    for name, connections in open_ones.items():
        for connection in connections:
            connection.sendall(beginnings[name])
    assert well(port)
    answers = {
        name: {rest(connection) for connection in connections}
        for name, connections in open_ones.items()
    }
    assert time.monotonic() - begun < 15
    for connections in open_ones.values():
        for connection in connections:
            connection.close()
    for name in ("nothing at all", "half a line", "headers without an end"):
        assert answers[name] == {b""}
    for name in ("a body that stops", "a chunk that stops"):
        assert {answer.split(b"\r\n")[0] for answer in answers[name]} == {
            b"HTTP/1.1 408 Request Timeout"
        }


def test_headers_that_drip_get_no_more_time_than_others(port):
    begun = time.monotonic()
    with connected(port) as connection:
        try:
            connection.sendall(b"GET / HTTP/1.1\r\n")
            for number in range(100):
                connection.sendall(f"X-{number}: a\r\n".encode())
                time.sleep(SLOW / 5)
        except (BrokenPipeError, ConnectionResetError):
            pass
    assert time.monotonic() - begun < 10 * SLOW


def test_who_does_not_take_the_answer_is_let_go(port):
    """The system takes some of it for them; so they ask for more than that, and read nothing."""
    asking = head(port, "GET /openapi.json HTTP/1.1") * 400
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", port))
        connection.settimeout(20)
        begun = time.monotonic()
        with suppress(BrokenPipeError, ConnectionResetError, TimeoutError):
            connection.sendall(asking)
        assert well(port)
        time.sleep(4 * SLOW)
        taken = rest(connection)
    assert time.monotonic() - begun < 15
    whole = len(ask(port, head(port, "GET /openapi.json HTTP/1.1", "Connection: close")))
    assert len(taken) < 400 * whole


# One request hidden in another


HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.mark.parametrize(
    "headers",
    [
        ("Content-Length: 4", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 4"),
        ("Content-Length: 4", "Content-Length: 50"),
        ("Content-Length: 4, 50",),
        ("Content-Length: +4",),
        ("Content-Length: 0x4",),
        ("Transfer-Encoding: identity",),
        ("Transfer-Encoding: xchunked",),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
        ("Transfer-Encoding : chunked",),
        ("Transfer-Encoding: chunked\r\n Content-Length: 4", "Content-Length: 9"),
        ("Host: evil.example",),
        ("X: a\rHost: evil.example",),
        ("X: a\0b",),
    ],
)
@pytest.mark.parametrize("method", ["POST", "GET"])
def test_a_request_whose_end_is_unclear_is_refused_and_the_connection_closed(port, headers, method):
    token = f"X-Sottovoce-Token: {TOKEN}"
    body = b"0\r\n\r\n" + HIDDEN
    answer = ask(port, head(port, f"{method} /v1/history HTTP/1.1", token, *headers) + body)
    statuses = re.findall(rb"HTTP/1\.1 (\d+)", answer)
    assert len(statuses) == 1
    assert statuses[0] in (b"400", b"413", b"421", b"501")
    assert b"hidden" not in answer


@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/0.9"])
def test_a_request_without_a_host_is_refused(port, version):
    answer = ask(port, f"GET /openapi.json {version}\r\nConnection: close\r\n\r\n".encode())
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 421"))


def test_another_protocol_is_not_begun(port):
    upgrade = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk")
    answer = ask(port, head(port, "GET /hidden HTTP/1.1", *upgrade))
    assert answer.startswith(b"HTTP/1.1 404")
    assert ask(port, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").startswith(b"HTTP/1.1 4")


# Bombs


def posted(port: int, path: str, body: bytes, *headers: str) -> tuple[int, str]:
    about = (f"X-Sottovoce-Token: {TOKEN}", "Content-Type: application/json", "Connection: close")
    length = f"Content-Length: {len(body)}"
    answer = ask(port, head(port, f"POST {path} HTTP/1.1", *about, length, *headers) + body)
    return int(answer.split(b" ", 2)[1]), answer.partition(b"\r\n\r\n")[2].decode()


def peak_memory() -> int:
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) << 10


def test_packed_bodies_are_not_unpacked(port):
    packed = gzip.compress(b" " * (60 << 20), 9)
    before = peak_memory()
    for how in ("gzip", "deflate", "br", "gzip, gzip"):
        status, text = posted(port, "/v1/sanitize", packed, f"Content-Encoding: {how}")
        assert status == 415
        assert "plain JSON" in text
    assert peak_memory() - before < 32 << 20


@pytest.mark.parametrize(
    "bomb",
    [
        b"[" * 900_000,
        b'{"texts":' * 90_000,
        b'{"texts": [' + b'"a",' * 1_900_000 + b'"a"]}',
        b'{"seed": ' + b"9" * 900_000 + b"}",
        b'{"seed": 1e999999, "texts": []}',
        b'{"texts": ["\\ud800\\ud800"], "seed": NaN}',
        json.dumps({"csv": "," * 7_000_000 + "\n", "column": SECRET}).encode(),
        json.dumps({"csv": "a\n" + '"' * 3_000_001, "column": "a"}).encode(),
        json.dumps({"csv": f"{SECRET}\0", "column": SECRET}).encode(),
        b"\x1f\x8b" + b"\0" * 100,
        b"PAR1" + b"\xff" * 1000 + b"PAR1",
    ],
    ids=lambda bomb: repr(bomb[:24]),
)
def test_a_body_that_blows_up_is_refused_in_little_time_and_memory(port, bomb):
    before, begun = peak_memory(), time.monotonic()
    status, text = posted(port, "/v1/sanitize", bomb)
    # 503: this service has no word space.
    assert status in (400, 413, 422, 503)
    assert SECRET not in text
    assert time.monotonic() - begun < 10
    assert peak_memory() - before < 700 << 20


# Formulas


@pytest.mark.parametrize(
    ("table", "harmless"),
    [
        ("a,b\n=1+1,x\n", "a,b\n'=1+1,x\n"),
        ("a,b\n-2+3+cmd|' /C calc'!A0,-5\n", "a,b\n'-2+3+cmd|' /C calc'!A0,-5\n"),
        ('a\n"=HYPERLINK(""http://x"")"\n', 'a\n"\'=HYPERLINK(""http://x"")"\n'),
        ("a\r\n@SUM(A1)\r\n+1e3\r\n-1,5\r\n", None),
        ('a\n"\t=1"\n"\r=1"\n', "a\n\"'\t'=1\"\n\"'\r'=1\"\n"),
        ("=a;b\n1;x,=1\n", "'=a;b\n1;x,'=1\n"),
        ("\ufeffa\n＝1+1\n", "\ufeffa\n'＝1+1\n"),
        ("a\n-\n\n- x\n", "a\n-\n\n'- x\n"),
        ("a\n+1,000.5\n", None),
    ],
)
def test_cells_that_a_spreadsheet_would_run_become_text(table, harmless):
    delimiter = ";" if ";" in table else "," if "\r\n" not in table else ";"
    made = without_formulas(table.encode(), delimiter).decode()
    if harmless is None:
        harmless = table.replace("@", "'@") if delimiter == ";" else table
    assert made == harmless


# What another user of the machine sees


BROWSER = """
import re, sys, time, urllib.request
from pathlib import Path
from urllib.parse import unquote, urlsplit
time.sleep(1)
page = Path(unquote(urlsplit(sys.argv[1]).path)).read_text()
address = re.search("url=([^\\"]+)", page)[1]
class Stop(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, request, answer, code, message, headers, to):
        Path(sys.argv[0] + ".led").write_text(to)
urllib.request.build_opener(Stop).open(address)
"""


class Poller(threading.Thread):
    """Reads all command lines, again and again, as every user of a machine may."""

    def __init__(self, sign: str) -> None:
        super().__init__(daemon=True)
        self.sign, self.ended, self.seen = sign, threading.Event(), set[str]()

    def run(self) -> None:
        while not self.ended.is_set():
            for file in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    line = file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
                except OSError:
                    continue
                if self.sign in line:
                    self.seen.add(line)
            time.sleep(0.005)


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="command lines are elsewhere")
def test_nobody_reads_the_address_off_the_command_line(tmp_path):
    """A poller reads every command line while a browser, which is slow, is started with a file."""
    program = tmp_path / "browser.py"
    program.write_text(BROWSER)
    environment = {
        **os.environ,
        "SOTTOVOCE_HOME": str(tmp_path / "home"),
        "SOTTOVOCE_TOKEN": TOKEN,
        "BROWSER": f"{sys.executable} {program} %s",
        "PYTHONUNBUFFERED": "1",
    }
    poller = Poller(str(tmp_path))
    poller.start()
    try:
        with subprocess.Popen(
            [sys.executable, "-m", "sottovoce", "serve", "--port", "0", "--rerank", "light"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                led, until = Path(f"{program}.led"), time.monotonic() + 60
                opened: list[Path] = []
                while not led.exists() and time.monotonic() < until:
                    opened = opened or list((tmp_path / "home").glob(".opening-*/open.html"))
                    modes = [stat.S_IMODE(path.stat().st_mode) for path in opened if path.exists()]
                    assert modes in ([], [0o600])
                    if modes:
                        assert stat.S_IMODE(opened[0].parent.stat().st_mode) == 0o700
                        assert TOKEN not in opened[0].read_text()
                    time.sleep(0.02)
                assert led.read_text().endswith(f"/#token={TOKEN}")
                assert opened
                assert not opened[0].parent.exists()
            finally:
                process.terminate()
                process.communicate(timeout=30)
    finally:
        poller.ended.set()
        poller.join()
    lines = [line for line in poller.seen if "open.html" in line]
    assert lines, "the poller did not see the browser"
    assert all("http" not in line and TOKEN not in line for line in poller.seen)


def test_the_opening_file_goes_when_nobody_opened_it(tmp_path, monkeypatch):
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path))
    opening = Opening("http://127.0.0.1:1")
    file = Path(unquote(urlsplit(opening.write_file()).path))
    code = re.search(r"/open/([\w-]+)", file.read_text())[1]
    opening.close()
    assert not file.parent.exists()
    assert not opening.use(code)
    assert list(tmp_path.iterdir()) == []


def test_without_a_folder_the_browser_is_not_opened(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path / "file"))
    with pytest.raises(SottovoceError, match="open the printed address"):
        Opening("http://127.0.0.1:1").write_file()


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be two users"
)
def test_another_user_reads_and_changes_nothing(port, tmp_path, monkeypatch):
    """The other user is a process of its own, with another user id."""
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:3]:
        parent.chmod(0o755)
    home = tmp_path / "home"
    monkeypatch.setenv("SOTTOVOCE_HOME", str(home))
    opening = Opening("http://127.0.0.1:1")
    file = Path(unquote(urlsplit(opening.write_file()).path))
    home.chmod(0o755)  # As careless as a home can be.
    announced = home / "serve.json"
    write_whole(announced, b"{}", 0o600)
    other = f"""
import json, pathlib, urllib.error, urllib.request
def answer(method, path):
    request = urllib.request.Request("http://127.0.0.1:{port}" + path, method=method)
    try:
        return urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        return error.code
def readable(file):
    try:
        return bool(pathlib.Path(file).read_bytes())
    except PermissionError:
        return False
print(json.dumps([
    [answer("GET", path) for path in ("/openapi.json", "/v1/ledger", "/v1/history")],
    [readable(file) for file in ({str(file)!r}, {str(announced)!r}, "/proc/{os.getpid()}/environ")],
]))
"""
    told = subprocess.run(
        ["/usr/bin/env", "python3", "-c", other],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    if not told.stdout:
        pytest.skip("another user cannot run Python here")
    assert json.loads(told.stdout) == [[200, 401, 401], [False, False, False]]
    opening.close()


# Links that another user put where we write


def test_files_are_not_written_through_links(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    target = tmp_path / "out.json"
    for name in (".out.json.growing",):
        (tmp_path / name).symlink_to(precious)
    write_whole(target, b"{}")
    assert (precious.read_text(), target.read_bytes()) == ("precious", b"{}")
    (tmp_path / "link").symlink_to(precious)
    with pytest.raises(FileExistsError):
        create_new(tmp_path / "link")


def test_a_file_made_beforehand_that_others_can_read_is_not_written_into(tmp_path):
    waiting = tmp_path / ".secret.json.growing"
    waiting.write_text("")
    waiting.chmod(0o666)
    with waiting.open("rb") as watching:
        write_whole(tmp_path / "secret.json", b"secret", 0o600)
        assert watching.read() == b""
    assert stat.S_IMODE((tmp_path / "secret.json").stat().st_mode) == 0o600


def test_a_work_folder_that_is_a_link_is_refused(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    out = tmp_path / "out.csv"
    work_folder(out).symlink_to(elsewhere)
    with (
        pytest.raises(UsageError, match="write elsewhere"),
        open_work(out, resume=False, overwrite=False),
    ):
        pass
    assert list(elsewhere.iterdir()) == []


def test_a_journal_that_is_a_link_is_not_written_through(tmp_path):
    precious, out = tmp_path / "precious", tmp_path / "out.csv"
    precious.write_text("precious")
    work_folder(out).mkdir(mode=0o755)
    (work_folder(out) / "journal").symlink_to(precious)
    with pytest.raises(OSError, match="symbolic"), open_work(out, resume=False, overwrite=True):
        pass
    assert precious.read_text() == "precious"
    assert stat.S_IMODE(work_folder(out).stat().st_mode) == 0o700


# Many tabs


def test_many_tabs_get_their_own_answers(port):
    """A hundred connections at once, half of them kept open for a second request."""

    def tab(number: int) -> None:
        path = "/openapi.json" if number % 2 else "/static/app.js"
        request = head(port, f"GET {path} HTTP/1.1", "Connection: close")
        answers[number] = ask(port, request)

    answers: dict[int, bytes] = {}
    threads = [threading.Thread(target=tab, args=(number,)) for number in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(answers) == 100
    for number, answer in answers.items():
        assert answer.startswith(b"HTTP/1.1 200")
        assert (b'"openapi"' in answer) == bool(number % 2)


def test_the_token_is_asked_for_where_something_is_told(port):
    for path in ("/v1/ledger", "/v1/history", "/v1/search-box"):
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request)
        with refused.value as answer:
            assert answer.code == 401
        request.add_header("X-Sottovoce-Token", TOKEN)
        with urllib.request.urlopen(request) as answer:
            assert answer.status == 200
