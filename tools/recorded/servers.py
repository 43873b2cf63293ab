"""Search a made-up server on this machine, and print the answers and what the server was asked."""

from __future__ import annotations

import json
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from recorded.inputs import ARTICLES, QUERY

LOCAL = "127.0.0.1"
SECONDS = 100
ENGINE_FILE = """\
name = "made up"
url = "http://{host}:{port}/{path}?q={{query}}&k={{depth}}"
results = "found.items"
id = "key"
title = "name"
snippet = "about"
retries = 0
"""
SEARCH = (
    *("search", QUERY, "--space", "small", "-e", "3", "-n", "4", "--depth", "3", "--seed", "1"),
    *("--no-ledger", "--rerank", "bm25"),
)


def answer(query: str, depth: int) -> list[dict[str, Any]]:
    """The articles by how many words they share with the query, as this server ranks them."""
    words = set(query.lower().split())
    scores = [
        len(words & set(f"{title} {text}".lower().split())) + 1 / (2 + number)
        for number, (title, text) in enumerate(ARTICLES)
    ]
    best = sorted(range(len(ARTICLES)), key=lambda number: -scores[number])[:depth]
    return [
        {"key": f"d{number}", "name": ARTICLES[number][0], "about": ARTICLES[number][1]}
        for number in best
    ]


class Handler(BaseHTTPRequestHandler):
    """Answers as a JSON engine (GET) and as OpenSearch (POST), and notes each request."""

    asked: list[str]

    def do_GET(self) -> None:
        """One query in the address."""
        given = parse_qs(urlsplit(self.path).query)
        if self.path.startswith("/broken"):
            self._send({"unexpected": True})
            return
        self._send({"found": {"items": answer(given["q"][0], int(given["k"][0]))}})

    def do_POST(self) -> None:
        """Several queries, as lines of JSON."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        questions = [json.loads(line) for line in body.splitlines()[1::2]]
        answers = [
            [
                {"_id": hit["key"], "_score": 1.0, "_source": {"title": hit["name"]}}
                for hit in answer(question["query"]["multi_match"]["query"], question["size"])
            ]
            for question in questions
        ]
        self._send({"responses": [{"status": 200, "hits": {"hits": hits}} for hits in answers]})
        self.asked += [f"  {line}" for line in sorted(map(json.dumps, questions))]

    def _send(self, content: Any) -> None:
        names = ("Host", "User-Agent", "Accept", "Content-Type", "Authorization", "Cookie")
        headers = {name: self.headers[name] for name in names if name in self.headers}
        self.asked.append(f"{self.command} {self.path} {headers}")
        data = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def main() -> None:
    """Search each kind of server once; the order of the requests is random, so they are sorted."""
    server = ThreadingHTTPServer((LOCAL, 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_port
    for path in ("search", "broken"):
        Path(f"{path}.toml").write_text(ENGINE_FILE.format(host=LOCAL, port=port, path=path))
    # The first query that fails ends a search, and which one is first is random: so one alone.
    for engine, *more in (
        *(["http:search.toml"], [f"opensearch:http://{LOCAL}:{port}/articles"]),
        *(["http:broken.toml", "-n", "1"], [f"opensearch:http://{LOCAL}:{port}/WRONG"]),
    ):
        for options in (more, [*more, "--json"]):
            Handler.asked = []
            done = subprocess.run(
                [sys.executable, "-m", "sottovoce", *SEARCH, *options, "--engine", engine],
                capture_output=True,
                text=True,
                timeout=SECONDS,
            )
            print(f"===== {engine} {options}\nexit code {done.returncode}\n{done.stdout}")
            print(done.stderr, *sorted(Handler.asked), sep="\n", flush=True)


if __name__ == "__main__":
    main()
