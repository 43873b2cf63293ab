"""The running service under steady load, with all that may go wrong around it.

Each trial is some seconds of mixed requests, at a fixed rate, to a `sottovoce serve` of its own
process: texts, tables, searches, accounts, pages. Every answer is checked, those with a seed word
by word. Beside them are clients that send slowly, never send, or never read; in some trials the
disk is full, or the clock jumps. No request may be lost or answered wrongly, and memory must not
grow.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from campaigns.frame import Outcome
from campaigns.soak_client import PATIENCE, Client, LostError, Served, slow_clients
from sottovoce import Obfuscator, load_space, mechanism
from sottovoce.app.service import PAGE
from sottovoce.collections import demo_log
from sottovoce.paths import cache_folder
from sottovoce.sanitizing import Sanitizer
from sottovoce.spaces.store import SpaceWriter

PLANTS = {
    "leak": "each request leaves a quarter of a megabyte behind",
    "mixed": "one answer in a hundred is that of another client",
    "lost": "one request in a hundred gets no answer",
}
RATE = 200.0
SECONDS = 10.0
GROWTH = 64 << 20
"""Bytes by which the service may be larger than after it was warm."""
WARM = 2
"""Trials after which it is."""
SHARES = {"obfuscate": 65, "page": 25, "sanitize": 4, "ledger": 1, "search": 2, "health": 3}
"""Of a hundred requests."""
SPACE_WORDS = 3000
LATENCIES = (0.01, 0.05, 0.2, 1.0, 5.0)
HOME_BYTES = "64m"
DAY = 86_400


class Expected(NamedTuple):
    """A request, and what must come back: the whole body, or what it must hold."""

    kind: str
    method: str
    path: str
    body: bytes | None
    answer: bytes | None = None
    holds: tuple[tuple[str, Any], ...] = ()


class Soak:
    """One service, which lasts as long as the campaign."""

    unit = "requests"

    def __init__(
        self, served: Served, requests: dict[str, list[Expected]], small: Path | None
    ) -> None:
        self.served, self.requests, self.small_disk = served, requests, small
        self.rate, self.seconds, self.patience = RATE, SECONDS, PATIENCE
        self.trials, self.warm_memory, self.searches = 0, 0, 0
        self.trace: Path | None = None

    def plant(self, name: str | None) -> None:
        """Have a defect from now on, or none; memory is judged anew."""
        (self.served.home / "plant").write_text(name or "")
        self.trials = 0

    def trial(self, number: int, rng: np.random.Generator) -> Outcome:
        """Some seconds of load; every fifth one with a full disk, every seventh one with a jump."""
        full = self.small_disk is not None and number % 5 == 4
        if number % 7 == 3:
            # Forward by a day, back by two, and right again.
            jump = (DAY, -2 * DAY, 0)[number // 7 % 3]
            (self.served.home / "clock").write_text(str(jump))
        counts: Counter[str] = Counter()
        findings: list[str] = []
        begun = time.monotonic()
        with self._full_disk() if full else nullcontext():
            asyncio.run(self._load(rng, full, counts, findings))
        counts["full disk, trials"] += full
        counts["clock set, trials"] += number % 7 == 3
        self._judge_memory(counts, findings)
        self._judge_ledger(counts, findings)
        if self.trace is not None:
            line = {"trial": number, "seconds": time.monotonic() - begun, **counts}
            with self.trace.open("a") as out:
                out.write(json.dumps(line) + "\n")
        return Outcome(counts, tuple(findings[:20]))

    async def _load(
        self, rng: np.random.Generator, full: bool, counts: Counter[str], findings: list[str]
    ) -> None:
        kinds = rng.choice(
            list(SHARES),
            size=int(self.rate * self.seconds),
            p=np.array(list(SHARES.values())) / 100,
        )
        places = rng.integers(1 << 30, size=len(kinds))
        client, loop = Client(self.served, self.patience), asyncio.get_running_loop()
        async with slow_clients(self.served, 10), client:
            begun = loop.time()
            tasks = []
            for turn, (kind, place) in enumerate(zip(kinds.tolist(), places.tolist(), strict=True)):
                await asyncio.sleep(max(0.0, begun + turn / self.rate - loop.time()))
                choices = self.requests[kind]
                expected = choices[place % len(choices)]
                tasks.append(
                    asyncio.create_task(self._one(client, expected, full, counts, findings))
                )
            await asyncio.gather(*tasks)
            counts["milliseconds of load"] += round(1000 * (loop.time() - begun))

    async def _one(
        self,
        client: Client,
        expected: Expected,
        full: bool,
        counts: Counter[str],
        findings: list[str],
    ) -> None:
        begun = time.monotonic()
        counts[self.unit] += 1
        counts[f"requests: {expected.kind}"] += 1
        try:
            status, body = await client.ask(expected.method, expected.path, expected.body)
        except LostError as error:
            findings.append(f"{expected.kind}: no answer ({error})")
            return
        took = time.monotonic() - begun
        below = next(
            (f"within {1000 * limit:g} ms" for limit in LATENCIES if took <= limit), "later"
        )
        counts[f"answered {below}"] += 1
        if expected.kind == "search" and full:
            # Nothing may be sent that cannot be written down.
            self._judge_refusal(status, body, counts, findings)
        elif status == 503:
            counts["asked to wait"] += 1
        elif status != 200:
            findings.append(f"{expected.kind}: status {status}")
        elif wrong := _wrong(expected, body):
            findings.append(f"{expected.kind}: {wrong}")
        elif expected.kind == "search":
            self.searches += 1

    def _judge_refusal(
        self, status: int, body: bytes, counts: Counter[str], findings: list[str]
    ) -> None:
        kind = json.loads(body).get("kind") if status != 200 else None
        if (status, kind) == (503, "ledger"):
            counts["searches refused on a full disk"] += 1
        elif status == 200:
            # What was freed by others may have been enough for one more record.
            counts["searches written on a nearly full disk"] += 1
            self.searches += 1
        else:
            findings.append(f"search on a full disk: status {status} ({kind})")

    def _judge_memory(self, counts: Counter[str], findings: list[str]) -> None:
        memory = self.served.memory
        counts[f"memory {memory // (10 << 20) * 10} MiB, trials"] += 1
        self.trials += 1
        if self.trials <= WARM:
            self.warm_memory = memory
        elif memory > self.warm_memory + GROWTH:
            grown = (memory - self.warm_memory) >> 20
            findings.append(f"memory: {grown} MiB more than after it was warm")
            self.trials = 0

    def _judge_ledger(self, counts: Counter[str], findings: list[str]) -> None:
        """As many records as searches that were answered: none lost, none twice."""
        from sottovoce.ledger import Ledger

        checked = Ledger.open(self.served.home / "ledger", create=False).check()
        if checked != self.searches:
            findings.append(f"ledger: {checked} records of {self.searches} searches")
            self.searches = checked

    @contextmanager
    def _full_disk(self) -> Iterator[None]:
        """Fill what the service writes to, and make room again."""
        assert self.small_disk is not None
        filler = self.small_disk / "filler"
        with filler.open("wb", buffering=0) as out, suppress(OSError):
            for size in (1 << 20, 4096, 1):
                with suppress(OSError):
                    while out.write(b"\0" * size):
                        pass
        try:
            yield
        finally:
            filler.unlink()


def _wrong(expected: Expected, body: bytes) -> str | None:
    """What is wrong with an answer."""
    if expected.answer is not None:
        return None if body == expected.answer else "another answer than the library's"
    answer = json.loads(body)
    for name, value in expected.holds:
        if answer.get(name) != value:
            return f"{name} is another one"
    return None


def requests_for(space: Any) -> dict[str, list[Expected]]:
    """All requests that are sent, with what the library answers."""
    log, cmp = demo_log(), mechanism("cmp", space=space)

    def line(content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()

    def obfuscate(seed: int) -> Expected:
        text = log[seed * 7 % len(log)]
        (own,) = Obfuscator(cmp, n=2, rng=seed).obfuscate([text])
        body = {"text": text, "seed": seed, "n": 2}
        return Expected("obfuscate", "POST", "/v1/obfuscate", line(body), line(own.to_dict()))

    def sanitize(seed: int) -> Expected:
        texts = [log[(seed * 31 + place) % len(log)] for place in range(5)]
        own, _ = Sanitizer(Obfuscator(cmp, rng=seed), ("text",)).texts("text", texts, 0)
        body = {"csv": "text\n" + "".join(f'"{text}"\n' for text in texts), "column": "text"}
        made = "text\n" + "".join('"' + str(text) + '"\n' for text in own)
        holds = (("csv", made),)
        return Expected(
            "sanitize", "POST", "/v1/sanitize", line({**body, "seed": seed}), None, holds
        )

    def search(place: int) -> Expected:
        query = log[place * 11 % len(log)]
        body = {"query": query, "mechanism": "cmp", "epsilon": 7.5, "n": 3, "top": 3}
        holds = (("query", query), ("engine", "bm25"))
        return Expected("search", "POST", "/v1/search", line(body), None, holds)

    pages = [Expected("page", "GET", "/", None, (PAGE / "index.html").read_bytes())] + [
        Expected("page", "GET", f"/static/{file.name}", None, file.read_bytes())
        for file in sorted(PAGE.iterdir())
        if file.suffix in (".js", ".css", ".svg")
    ]
    return {
        "obfuscate": [obfuscate(seed) for seed in range(200)],
        "sanitize": [sanitize(seed) for seed in range(40)],
        "search": [search(place) for place in range(100)],
        "page": pages,
        "ledger": [Expected("ledger", "GET", "/v1/ledger", None)],
        "health": [Expected("health", "GET", "/health", None, None, (("status", "ready"),))],
    }


@contextmanager
def opened(folder: Path, plant: str | None) -> Iterator[Soak]:
    """A service of its own, whose home is a small disk where that can be had."""
    with ExitStack() as stack:
        home = folder / "home"
        home.mkdir()
        small = home if stack.enter_context(_small_disk(home)) else None
        for name in ("spaces", "embeddings", "strong"):
            if (cache_folder() / name).exists():
                (home / name).symlink_to((cache_folder() / name).resolve())
        whole = load_space("glove-840b-34k")
        with SpaceWriter(
            folder / "frequent", name="frequent", dimension=whole.dimension, source={}
        ) as writer:
            ids = np.arange(SPACE_WORDS)
            writer.append(whole.words(ids), whole.vectors[ids])
            writer.commit()
        (home / "may-be-planted").write_text("")
        served = stack.enter_context(serving(home, "--space", str(folder / "frequent")))
        soak = Soak(served, requests_for(load_space(str(folder / "frequent"))), small)
        if plant is not None:
            soak.plant(plant)
        elif Path("results/campaigns").is_dir():
            soak.trace = Path("results/campaigns/soak-trace.jsonl")
        yield soak


@contextmanager
def _small_disk(home: Path) -> Iterator[bool]:
    """Put a disk of a few megabytes under a folder; only root can, and not everywhere."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={HOME_BYTES},mode=700", "tmpfs", str(home)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(home)], capture_output=True, check=False)


@contextmanager
def serving(home: Path, *options: str) -> Iterator[Served]:
    """The service in a process of its own."""
    command = [sys.executable, str(Path(__file__).with_name("soaked_server.py")), "serve"]
    command += ["--port", "0", "--no-browser", "--rerank", "light", *options]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command,
            env={**os.environ, "SOTTOVOCE_HOME": str(home)},
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
        try:
            file, until = home / "serve.json", time.monotonic() + 120
            while not file.exists() and process.poll() is None and time.monotonic() < until:
                time.sleep(0.05)
            announced = json.loads(file.read_text())
            served = Served(home, announced["port"], announced["token"], process.pid)
            while served.status() == "loading":
                time.sleep(0.1)
            yield served
        finally:
            process.terminate()
            process.wait(20)
