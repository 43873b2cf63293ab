"""A package registry on this machine that can be told to misbehave; PyPI's and npm's protocols."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import stat
import tarfile
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NAME, VERSION = "sottovoce-no-such", "1.0.0"
WHEEL = f"{NAME.replace('-', '_')}-{VERSION}-py3-none-any.whl"
TARBALL = f"{NAME}-{VERSION}.tgz"


@dataclass
class Behaviour:
    """What a registry does instead of what it should.

    package
        The archive that it hands out.
    sha256
        What it says of the archive; None: the truth.
    cut
        The connection ends after so many bytes of it; ``short``: and it was announced so.
    elsewhere
        The address of another registry, to which everything is redirected.
    status
        What it answers to everything.
    hangs
        It accepts connections, and says nothing.
    """

    package: bytes = b""
    sha256: str | None = None
    cut: int | None = None
    short: bool = False
    elsewhere: str | None = None
    status: int = 200
    hangs: bool = False
    asked: list[str] = field(default_factory=list)


class Registry(ThreadingHTTPServer):
    """Serves one package, as its behaviour says; also as a proxy for any address."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behaviour = Behaviour()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is none of our business."""


class _Handler(BaseHTTPRequestHandler):
    server: Registry

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        behaviour = self.server.behaviour
        path = "/" + self.path.split("://", 1)[-1].partition("/")[2] if "://" in self.path else ""
        path = path or self.path
        behaviour.asked.append(path)
        if behaviour.hangs:
            time.sleep(1.5)
            return
        if behaviour.elsewhere is not None:
            self.send_response(302)
            self.send_header("Location", behaviour.elsewhere + path)
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif behaviour.status != 200:
            self._answer(b"no", "text/plain", behaviour.status)
        elif path.rstrip("/") == f"/simple/{NAME}":
            self._answer(self._index(behaviour), "text/html")
        elif path.rstrip("/") == f"/{NAME}":
            self._answer(self._about(behaviour), "application/json")
        elif path.endswith((WHEEL, TARBALL)):
            self._package(behaviour)
        else:
            self._answer(b"no such thing", "text/plain", 404)

    def _index(self, behaviour: Behaviour) -> bytes:
        sha256 = behaviour.sha256 or hashlib.sha256(behaviour.package).hexdigest()
        return f'<a href="/files/{WHEEL}#sha256={sha256}">{WHEEL}</a>'.encode()

    def _about(self, behaviour: Behaviour) -> bytes:
        digest = hashlib.sha512(behaviour.package).digest()
        if behaviour.sha256 is not None:
            digest = hashlib.sha512(behaviour.sha256.encode()).digest()
        distribution = {
            "tarball": f"{self.server.address}/{NAME}/-/{TARBALL}",
            "integrity": "sha512-" + base64.b64encode(digest).decode(),
        }
        version = {"name": NAME, "version": VERSION, "dist": distribution}
        about = {"name": NAME, "dist-tags": {"latest": VERSION}, "versions": {VERSION: version}}
        return json.dumps(about).encode()

    def _package(self, behaviour: Behaviour) -> None:
        data = behaviour.package
        size = len(data)
        if behaviour.cut is not None:
            data = data[: behaviour.cut]
            size = len(data) if behaviour.short else size
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(size))
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = True

    def _answer(self, content: bytes, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def serving() -> Iterator[Registry]:
    """A registry that answers."""
    with Registry() as registry:
        thread = threading.Thread(target=registry.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield registry
        finally:
            registry.shutdown()
            thread.join()


# Packages


def wheel(members: Mapping[str, bytes], *, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A wheel with these files; pip wants to know what it is."""
    folder = f"{NAME.replace('-', '_')}-{VERSION}.dist-info"
    about = {
        f"{folder}/METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n".encode(),
        f"{folder}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{folder}/RECORD": b"",
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, data in {**members, **about}.items():
            archive.writestr(zipfile.ZipInfo(name), data, compression)
    return out.getvalue()


def linked_wheel(name: str, target: str) -> bytes:
    """A wheel in which a file is a symbolic link."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        link = zipfile.ZipInfo(name)
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, target)
    return out.getvalue()


def tarball(*members: tuple[str, bytes | None, bytes, str]) -> bytes:
    """A tarball of members: name, content, kind as tarfile has it, and where a link leads."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=6) as archive:
        for name, data, kind, link in members:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, link
            entry.size = len(data or b"")
            archive.addfile(entry, io.BytesIO(data or b""))
    return out.getvalue()


def plain(members: Mapping[str, bytes]) -> bytes:
    """A tarball of plain files, as npm has them."""
    return tarball(*((name, data, tarfile.REGTYPE, "") for name, data in members.items()))


def announced_too_large(name: str, size: int) -> bytes:
    """A tarball whose file is said to be larger than what follows."""
    entry = tarfile.TarInfo(name)
    entry.size = size
    return gzip.compress(entry.tobuf() + b"short", mtime=0)
