"""Private words, queries that try to break something, and every form in which a word may show."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import json
import logging
import re
import string
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from urllib.parse import unquote_to_bytes

import numpy as np

from sottovoce.text import folded_text

LISTED = (
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
    "hepatitis",
    "epilepsy",
)
"""Words that spaces list, and that may not be released."""
UNLISTED = (
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
)
SECRETS = (*LISTED, *UNLISTED)
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


def queries(secrets: Sequence[str], count: int, rng: np.random.Generator) -> list[str]:
    """So many queries, each with secrets in a shape that tries to break something."""
    drawn = rng.choice(np.array(secrets, dtype=object), (count, 3))
    shapes = rng.integers(len(SHAPES), size=count)
    return [
        SHAPES[shape].format(a=a, b=b, c=c) for shape, (a, b, c) in zip(shapes, drawn, strict=True)
    ]


def made_up(rng: np.random.Generator) -> str:
    """A word that nobody has ever said."""
    return "xq" + "".join(rng.choice(list(string.ascii_lowercase), 9))


# Forms of a word. Long enough that none comes about by chance.

HASHES: tuple[Callable[[bytes], bytes], ...] = (
    lambda data: hashlib.md5(data).digest(),
    lambda data: hashlib.sha1(data).digest(),
    lambda data: hashlib.sha256(data).digest(),
    lambda data: hashlib.sha512(data).digest(),
    lambda data: hashlib.blake2b(data).digest(),
    lambda data: hashlib.blake2b(data, digest_size=16).digest(),
)


def traces(secret: str) -> set[bytes]:
    """What would give a word away, in lower case where the form has cases."""
    data = secret.encode("utf-8", "surrogatepass")
    escaped = "".join(
        f"\\u{unit:04x}" for unit in np.frombuffer(secret.encode("utf-16-le"), np.uint16).tolist()
    )
    forms = {
        data,
        json.dumps(secret)[1:-1].lower().encode(),
        escaped.encode(),
        *((data[::-1],) if len(data) > 5 else ()),
        *(secret.encode(name) for name in ("utf-16-le", "utf-16-be")),
        binascii.hexlify(data),
        *(_base64_core(data, offset) for offset in range(3)),
    }
    return {form for form in forms if len(form) >= 3} | hashed(secret)


def hashed(text: str) -> set[bytes]:
    """Hashes of a text without a key, as bytes and in hexadecimal digits, whole or begun."""
    data = text.encode("utf-8", "surrogatepass")
    digests = [hash_(data) for hash_ in HASHES]
    return {digest[:12] for digest in digests} | {digest.hex()[:16].encode() for digest in digests}


def _base64_core(data: bytes, offset: int) -> bytes:
    """The letters that a text has in base64 whatever stands around it; cases matter there."""
    coded = base64.b64encode(b"\0" * offset + data)
    begin, end = (0, 2, 3)[offset], len(data) + offset
    core = coded[begin : end * 8 // 6]
    return core if len(core) >= 7 else b""


class Traces:
    """All forms of some secrets, to be looked for in bytes."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._forms = {form: number for number, s in enumerate(secrets) for form in traces(s)}

    def add_texts(self, texts: Iterable[str]) -> None:
        """Also look for hashes of whole texts, as they are and as they are compared."""
        for text in texts:
            for form in (text, folded_text(text)):
                self._forms |= dict.fromkeys(hashed(form), -1)

    def in_bytes(self, data: bytes) -> list[str]:
        """What of them is there, as it is or decoded; said without saying the secret."""
        # The same line again tells nothing new, and most lines are headers.
        data = b"\n".join(dict.fromkeys(data.split(b"\n")))
        shown = set()
        for name, view in self._views(data):
            shown |= {(name, number) for form, number in self._forms.items() if form in view}
        return [
            f"the hash of a query, {name}" if number < 0 else f"secret {number}, {name}"
            for name, number in sorted(shown)
        ]

    def _views(self, data: bytes) -> Iterator[tuple[str, bytes]]:
        yield "as it is", data
        lower = data.lower()
        if lower != data:
            yield "in small letters", lower
        if b"%" in data:
            once = unquote_to_bytes(data.replace(b"+", b" ")).lower()
            yield "percent-decoded", once
            if b"%" in once:
                yield "percent-decoded twice", unquote_to_bytes(once)
        if b"\\u" in data:
            text = lower.decode("utf-8", "replace")
            yield "unescaped", unescaped(text).encode("utf-8", "replace")


def unescaped(text: str) -> str:
    """With what JSON's escapes stand for."""
    pairs = re.sub(
        r"\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})",
        lambda match: bytes.fromhex(match[1] + match[2]).decode("utf-16-be"),
        text,
    )
    return re.sub(r"\\u([0-9a-f]{4})", lambda match: chr(int(match[1], 16)), pairs)


# What people, logs and files get to see.


class Heard(io.StringIO):
    """What was printed, logged, warned of, or stands in an error."""

    tracebacks = 20
    """So many are written out, which takes long."""

    def error(self, error: BaseException) -> None:
        """Note all that a traceback, a log or a debugger's summary would show of it."""
        self.tracebacks -= 1
        if self.tracebacks >= 0:
            self.write("".join(traceback.format_exception(error)))
        cause: BaseException | None = error
        while cause is not None:
            self.write(f"{cause!r} {cause.args!r} {getattr(cause, '__notes__', '')}\n")
            suppressed = cause.__suppress_context__
            cause = cause.__cause__ or (None if suppressed else cause.__context__)


@contextmanager
def overhearing() -> Iterator[Heard]:
    """Collects it, for the block."""
    heard = Heard()
    handler = logging.StreamHandler(heard)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with redirect_stdout(heard), redirect_stderr(heard), warnings.catch_warnings():
            warnings.simplefilter("always")
            # Ctrl-C may drop a socket while it is opened; that says nothing.
            warnings.simplefilter("ignore", ResourceWarning)
            yield heard
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def in_files(folder: Path) -> bytes:
    """All that lies in a folder, and the names it lies under."""
    parts = []
    for path in sorted(folder.rglob("*")):
        parts.append(str(path.relative_to(folder)).encode())
        if path.is_file():
            parts.append(path.read_bytes())
    return b"\n".join(parts)
