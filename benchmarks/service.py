"""How the local service stands a thousand requests at once.

    python benchmarks/service.py             the table of docs/app.md
    python benchmarks/service.py --requests 200 --rounds 2

The server is a process of its own, this one sends: all requests of a round at the same time, each
on a connection of its own, with a text and a seed of its own. Every answer is compared with what
the library gives for that text and seed. Memory is the server's resident set after each round.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any

from sottovoce import Obfuscator, load_space, mechanism
from sottovoce.collections import demo_log
from sottovoce.paths import cache_folder

SHAPES = {"one variant": {"n": 1}, "20 variants, once": {"n": 20, "release": "once"}}
IDLE = 0.02
"""Of a processor: a service that uses no more of it has nothing to do."""


@dataclass(frozen=True)
class Server:
    """A running service."""

    port: int
    token: str
    process: subprocess.Popen[bytes]

    @property
    def memory(self) -> int:
        """The resident set, in bytes."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGESIZE")

    def wait_until_idle(self, seconds: float = 1.0) -> None:
        """Return once it has computed next to nothing for so long: it loads on after the start."""
        before = self._ticks
        while True:
            time.sleep(seconds)
            after = self._ticks
            if after - before <= IDLE * seconds * os.sysconf("SC_CLK_TCK"):
                return
            before = after

    @property
    def _ticks(self) -> int:
        """Of the processor, that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])


@dataclass(frozen=True)
class Answer:
    """What came back, and after how long."""

    status: int
    body: dict[str, Any]
    seconds: float


@contextmanager
def serving(home: Path, *options: str) -> Iterator[Server]:
    """`sottovoce serve` on a free port, with the user's spaces and a ledger of its own."""
    for name in ("spaces", "embeddings", "strong"):
        if (cache_folder() / name).exists():
            (home / name).symlink_to(cache_folder() / name)
    command = [sys.executable, "-m", "sottovoce", "serve", "--port", "0", "--no-browser", *options]
    environment = {**os.environ, "SOTTOVOCE_HOME": str(home)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            file = home / "serve.json"
            while not file.exists():
                if process.poll() is not None:
                    raise RuntimeError("the service did not start")
                time.sleep(0.05)
            told = json.loads(file.read_text())
            yield Server(told["port"], told["token"], process)
        finally:
            process.terminate()


async def post(server: Server, path: str, body: Any) -> Answer:
    """One request on a connection of its own."""
    started = time.perf_counter()
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        f"X-Sottovoce-Token: {server.token}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(data)}\r\nConnection: close\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        writer.write(head.encode() + data)
        answer = await reader.read()
    finally:
        writer.close()
    top, _, content = answer.partition(b"\r\n\r\n")
    return Answer(int(top.split()[1]), json.loads(content), time.perf_counter() - started)


async def storm(server: Server, path: str, bodies: Sequence[Any]) -> list[Answer]:
    """All requests at the same time."""
    return await asyncio.gather(*(post(server, path, body) for body in bodies))


def bodies_of(count: int, first: int, shape: dict[str, Any]) -> list[dict[str, Any]]:
    """Requests with texts and seeds of their own."""
    log = demo_log()
    return [
        {"text": log[number % len(log)], "seed": number, **shape}
        for number in range(first, first + count)
    ]


def wrong(
    bodies: Sequence[dict[str, Any]], answers: Sequence[Answer], space: str = "default"
) -> int:
    """How many answers are not what the library gives for the same text and seed."""
    cmp, missed = mechanism("cmp", space=load_space(space)), 0
    for body, answer in zip(bodies, answers, strict=True):
        shape = {key: body[key] for key in ("n", "release") if key in body}
        (own,) = Obfuscator(cmp, rng=body["seed"], **shape).obfuscate([body["text"]])
        missed += answer.status != 200 or answer.body != own.to_dict()
    return missed


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print("| requests at once | wrong or lost | requests/s | p50 (s) | p95 (s) | memory (MiB) |")
    print("|---|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as home, serving(Path(home)) as server:
        for name, shape in SHAPES.items():
            asyncio.run(storm(server, "/v1/obfuscate", bodies_of(1, 0, shape)))
            for turn in range(options.rounds):
                bodies = bodies_of(options.requests, turn * options.requests, shape)
                started = time.perf_counter()
                answers = asyncio.run(storm(server, "/v1/obfuscate", bodies))
                seconds = time.perf_counter() - started
                memory = server.memory / 2**20
                cuts = quantiles([each.seconds for each in answers], n=20)
                print(
                    f"| {options.requests:,}, {name} | {wrong(bodies, answers)} | "
                    f"{options.requests / seconds:.0f} | {cuts[9]:.2f} | {cuts[18]:.2f} | "
                    f"{memory:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
