"""Start ``sottovoce serve`` on a free port, ask it everything, and print each answer."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TOKEN = "0123456789abcdef-token"
SECONDS = 120
QUERY = "treatment for skin cancer"
CERTAIN = {"epsilon": 100000.0, "n": 1}
"""So large an epsilon that the one draw is always the same: searches here take no seed."""
MECHANISMS = (
    *("cmp", "mahalanobis", "vickrey-cmp", "vickrey-mahalanobis", "santext", "tem", "custext"),
    *("wbb", "aea", "fea", "comet-cmp", "comet-mahalanobis"),
)
TABLE = 'id,text,note\r\n1,"skin, cancer ""x""",keep me\r\n2,divorce lawyer,\r\n'
Ask = tuple[str, str, Any, dict[str, str]]


def ask(method: str, path: str, body: Any = None, **headers: str) -> Ask:
    """A request; ``X_Y='z'`` sends the header ``X-Y: z``."""
    return method, path, body, {name.replace("_", "-"): value for name, value in headers.items()}


def post(path: str, **body: Any) -> Ask:
    """A request to an address under ``/v1``."""
    return ask("POST", f"/v1/{path}", body)


STREAM = {"Accept": "application/x-ndjson"}
ANSWERS: tuple[Ask, ...] = (
    *(ask("GET", path) for path in ("/health", "/v1/mechanisms", "/v1/voices", "/v1/plane")),
    *(ask("GET", path) for path in ("/v1/ledger", "/v1/history", "/openapi.json")),
    *(
        post("obfuscate", text="Treatment for zzyzx SKIN cancer!", mechanism=name, n=3, seed=3)
        for name in MECHANISMS
    ),
    post("obfuscate", text=QUERY, epsilon=8.0, n=4, release="once", seed=3),
    post("obfuscate", text=QUERY, mechanism="vickrey-cmp", set={"t": 0.5}, seed=1),
    post("obfuscate", text="", seed=1),
    *(post("setting", voice=v) for v in ("whisper", "murmur", "speak-low", "normal-voice")),
    *(post("setting", mechanism=name) for name in MECHANISMS),
    post("setting"),
    post("setting", epsilon=10.5, n=7, release="independent"),
    post("sanitize", texts=["The treatment, for skin cancer!", "", "divorce"], epsilon=3.0, seed=1),
    post("sanitize", csv=TABLE, column="text", epsilon=1.0, seed=1, originals=False),
    post("sanitize", texts=[QUERY], mechanism="comet-cmp", seed=1),
    ("POST", "/v1/sanitize", {"texts": ["skin cancer"] * 300, "seed": 2}, STREAM),
    post("risk", query=QUERY, variants=[QUERY] * 5, epsilon=10.0, release="independent"),
    post("risk", query=QUERY, variants=["football world cup final"], mechanism="comet-cmp"),
    # Searches, what they cost, and what is written down of them.
    ask("PUT", "/v1/history", {"on": True}),
    post("search", query=QUERY, top=3, **CERTAIN),
    post("search", query="skin", top=1, measure=True, release="independent", **CERTAIN),
    ("POST", "/v1/search", {"query": "skin", "top": 1, **CERTAIN}, STREAM),
    post("search", query="?!", n=2, top=2),
    *(post("search", query="debt", top=1, **CERTAIN) for _ in range(2)),
    post("preview", query=QUERY, **CERTAIN),
    post("search", query=QUERY, preview="PREVIEW", top=1, **CERTAIN),
    post("risk", query=QUERY, preview="PREVIEW", **CERTAIN),
    post("search", query="divorce", preview="PREVIEW", top=1, **CERTAIN),
    post("search", query=QUERY, preview="unknown", **CERTAIN),
    ask("GET", "/v1/history"),
    ask("DELETE", "/v1/history"),
    ask("PUT", "/v1/history", {"on": False}),
    ask("PUT", "/v1/ledger/budget", {"per_text": 12.0, "total": None}),
    post("search", query=QUERY, voice="murmur"),
    post("preview", query="divorce", mechanism="wbb"),
    ask("GET", "/v1/ledger"),
    ask("GET", "/v1/ledger", X_Sottovoce_Token=""),
    ask("PUT", "/v1/ledger/budget", {"per_text": None, "total": None}),
    # Wrong requests; 'secretword' must not come back.
    *(
        post("obfuscate", **{"text": "secretword", **wrong})
        for wrong in (
            *({"n": 0}, {"epsilon": -1}, {"mechanism": "secretword"}, {"secretword": 1}),
            *({"set": {"secretword": "secretword"}}, {"release": "secretword"}, {"n": "1"}),
            *({"set": {"t": [["secretword"]]}}, {"mechanism": "santext", "release": "once"}),
            *({"text": ["secretword"]}, {"seed": -1}, {"text": "secretword" * 1000, "n": 100}),
        )
    ),
    *(
        post(path, **wrong)
        for path, wrong in (
            *(("search", {"query": "  "}), ("search", {"query": "secretword", "voice": "loud"})),
            *(("search", {"query": "x", "voice": "whisper", "epsilon": 3}), ("search", {})),
            *(("risk", {"query": "secretword"}), ("setting", {"mechanism": "secretword"})),
            *(("sanitize", {}), ("sanitize", {"texts": ["secretword"], "csv": "secretword"})),
            ("sanitize", {"csv": "secretword,b\n1,2\n", "column": "nothere"}),
            ("sanitize", {"csv": 'text\n"secretword\n', "column": "text"}),
        )
    ),
    ask("POST", "/v1/obfuscate", ["secretword"]),
    ask("POST", "/v1/obfuscate", b'{"text": "secretword'),
    ask("POST", "/v1/obfuscate", b'{"text": NaN}'),
    ask("PUT", "/v1/ledger/budget", {"per_text": -1}),
    ask("PUT", "/v1/history", {"on": "secretword"}),
    ask("GET", "/v1/history", X_Sottovoce_Token="wrong"),
    ask("POST", "/v1/obfuscate", {"text": "secretword"}, X_Sottovoce_Token="wrong"),
    ask("GET", "/health", Host="secretword.example"),
    ask("GET", "/health", Origin="https://secretword.example"),
    ask("GET", "/health", Sec_Fetch_Site="cross-site"),
    ask("GET", "/health?" + "x" * 3000),
    ask("GET", "/v1/secretword"),
    ask("DELETE", "/v1/ledger"),
    ask("GET", "/v1/search"),
    ask("POST", "/v1/search", b"x" * ((1 << 20) + 1)),
)
PAGE = tuple(
    ask("GET", path)
    for path in ("/", "/docs", "/docs.css", "/open/secretword", "/static/nothing", "/favicon.ico")
)
INCOMPLETE = (
    *(ask("GET", path) for path in ("/health", "/v1/mechanisms", "/v1/voices", "/v1/ledger")),
    post("obfuscate", text=QUERY),
    post("search", query=QUERY),
    post("setting", voice="murmur"),
    post("sanitize", texts=[QUERY]),
)


@contextmanager
def served() -> Iterator[int]:
    """The port of a service that has loaded; it is ended afterwards, and what it said printed."""
    options = ("--port", "0", "--no-browser", "--rerank", "light")
    process = subprocess.Popen(
        [sys.executable, "-m", "sottovoce", "serve", *options],
        env={**os.environ, "SOTTOVOCE_TOKEN": TOKEN},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        first_line = process.stdout.readline()
        print(first_line, end="")
        address = re.search(r":(\d+)/", first_line)
        if address:
            port = int(address[1])
            while json.loads(fetch(port, ask("GET", "/health"))[2])["status"] == "loading":
                time.sleep(0.1)
            yield port
        process.send_signal(signal.SIGTERM)
        rest, complaints = process.communicate(timeout=SECONDS)
        print(f"===== ended with {process.returncode}\n{rest}{complaints}", end="")
    finally:
        process.kill()


def give_up(*_: object) -> None:
    """End this script, and the service with it."""
    raise TimeoutError("the service took too long")


def fetch(port: int, asked: Ask) -> tuple[int, list[tuple[str, str]], bytes]:
    """Status, headers and body of an answer; each request has a connection of its own."""
    method, path, body, headers = asked
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    content_type = {"Content-Type": "application/json"} if data else {}
    try:
        connection.request(
            method, path, data, {"X-Sottovoce-Token": TOKEN, **content_type, **headers}
        )
        answer = connection.getresponse()
        return answer.status, sorted(answer.getheaders()), answer.read()
    finally:
        connection.close()


def show(asked: Ask, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
    """Print one answer: JSON on many lines, pages as they are, scripts and styles as a hash."""
    method, path, sent, added = asked
    shown = sent[:60] if isinstance(sent, bytes) else json.dumps(sent, ensure_ascii=False)[:300]
    print(f"===== {method} {path[:60]} {shown!s} {added or ''}\nstatus {status}")
    for name, value in headers:
        if name.lower() not in ("date", "content-length"):
            print(f"{name}: {value}")
    kind = dict(headers).get("content-type", "")
    if "json" in kind:
        for line in body.decode().splitlines():
            print(json.dumps(json.loads(line), indent=1, ensure_ascii=False))
    elif "html" in kind:
        print(body.decode())
    else:
        print(f"{len(body)} bytes, sha256 {hashlib.sha256(body).hexdigest()}")


def show_files(port: int, page: str) -> None:
    """Print the files that a page names, and the scripts that its scripts import."""
    waiting, seen = [page], set[str]()
    while waiting:
        for name in re.findall(r"/static/([\w.-]+)|[\"']\./([\w.-]+)[\"']", waiting.pop()):
            asked = ask("GET", f"/static/{''.join(name)}")
            if asked[1] not in seen:
                seen.add(asked[1])
                status, headers, content = fetch(port, asked)
                show(asked, status, headers, content)
                waiting.append(content.decode())


def main(which: str) -> None:
    """Ask one of the lists of requests; a preview's id is put in where a request names one."""
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(3 * SECONDS)
    # An attacker with the strong encoder would read the whole log first: half a minute.
    Path(os.environ["SOTTOVOCE_HOME"], "strong").unlink(missing_ok=True)
    requests = {"answers": ANSWERS, "page": PAGE, "incomplete": INCOMPLETE}[which]
    with served() as port:
        preview = ""
        for method, path, body, headers in requests:
            if isinstance(body, dict) and body.get("preview") == "PREVIEW":
                body = {**body, "preview": preview}
            asked = (method, path, body, headers)
            status, answered, content = fetch(port, asked)
            show(asked, status, answered, content)
            if path == "/v1/preview" and status == 200:
                preview = json.loads(content)["preview"]
            if path == "/":
                show_files(port, content.decode())


if __name__ == "__main__":
    main(sys.argv[1])
