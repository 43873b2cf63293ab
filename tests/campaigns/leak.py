"""Leak: hostile searches over real sockets, while everything around them fails.

What may be released has no word in common with the queries, so a word of a query that is received,
logged, printed, said in an error or left in a file was not drawn: it leaked. It is looked for as it
is, in other encodings and as a hash without a key.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import unquote

import numpy as np
from hostile_queries import LISTED, UNLISTED, Heard, Traces, in_files, made_up, overhearing, queries
from wires import MOODS

from campaigns import leak_failures, leak_plants
from campaigns.frame import Outcome
from campaigns.leak_parts import EVERYDAY, Engines, Parts, drawing_step, engines, failing
from campaigns.leak_services import Services
from sottovoce.engines import http_client
from sottovoce.errors import SottovoceError
from sottovoce.ledger import Ledger
from sottovoce.mechanisms import kind as mechanism_kind
from sottovoce.mechanisms import names
from sottovoce.mechanisms.base import TextMechanism, WordMechanism
from sottovoce.paths import cache_folder
from sottovoce.search import PrivateSearch, PrivateVectorSearch
from sottovoce.search.reranking import PoolOrder

PLANTS = {name: plant.what for name, plant in leak_plants.PLANTS.items()}
SIZES = {
    "words": 400,
    "sets": 120,
    "vectors": 150,
    "ledger": 60,
    "chorus": 60,
    "texts": 20,
    "interrupts": 80,
    "postgres": 30,
    "pgvector": 15,
    "proxy": 40,
    "rest": 20,
    "agents": 10,
    "command": 3,
}
"""How many searches a trial of each kind has: many where they are quick."""
RARE = (
    *("sets", "ledger", "vectors", "chorus", "postgres", "interrupts", "ledger", "texts"),
    *("vectors", "pgvector", "proxy", "sets", "rest", "ledger", "agents", "command"),
)
SCHEDULE = tuple(kind for rare in RARE for kind in ("words", rare, "words"))
"""The kinds of trials, in turn."""

WORD_MECHANISMS = [n for n in names() if issubclass(mechanism_kind(n), WordMechanism)]
TEXT_MECHANISMS = [n for n in names() if issubclass(mechanism_kind(n), TextMechanism)]
POOL_MECHANISMS = [n for n in names() if n not in {*WORD_MECHANISMS, *TEXT_MECHANISMS}]
DICTIONARY = [n for n in TEXT_MECHANISMS if "wordnet" in mechanism_kind(n).resources()]
KEEPS_REAL_WORDS = ("aea", "incognito")
"""They may release any word of a dictionary; only words that nobody knows are secrets there."""
STEPS = ("obfuscation raises", "cutting raises", "the re-ranker raises", "a step is interrupted")
INTERRUPTS = ("a step is interrupted", "Ctrl-C")
FRAGILE = ("is silent", "drips")
"""Moods that take the time of a timeout."""
ALONE = 40
"""Queries counted together where something may fail."""
SAMPLE = 3
"""Queries of a trial whose hashes are looked for."""


class ReadableOrder(PoolOrder):
    """A re-ranker that may fail, with the query in its message."""

    name = "pool order"
    fail: Callable[[str], None] = staticmethod(lambda query: None)  # type: ignore[assignment]

    def scores(self, query: str, texts: Sequence[str]) -> Any:
        self.fail(query)
        return super().scores(query, texts)


@dataclass
class Batch:
    """One trial: what is asked, what may go wrong, what was overheard."""

    kind: str
    rng: np.random.Generator
    secrets: list[str]
    asked: list[str]
    heard: Heard
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    failure: str = "nothing fails"
    label: str = ""
    turn: int = 0
    """How many trials of this kind there were before: mechanisms come in turn."""
    only: str = ""
    """What must fail, if it is chosen."""

    def fail_by(self, options: Sequence[str]) -> None:
        """Choose what goes wrong."""
        self.failure = self.only or self.choose(options)

    def choose(self, options: Sequence[str]) -> str:
        return options[int(self.rng.integers(len(options)))]

    def attempt(self, work: Callable[[], Any], searches: int = 1) -> Any:
        """Do something; an error must be ours, or an interrupt, and tell nothing."""
        self.counts["searches"] += searches
        try:
            result = work()
        except (SottovoceError, KeyboardInterrupt) as error:
            if isinstance(error, KeyboardInterrupt) and self.failure not in INTERRUPTS:
                raise  # It is meant for the campaign.
            self.heard.error(error)
            self.counts["refused or failed"] += searches
            return None
        except Exception as error:
            self.heard.error(error)
            self.findings.append(f"an error that nobody foresaw: {type(error).__name__}")
            return None
        return result

    def settle(self, place: str, data: bytes, traces: Traces) -> None:
        """Look for the secrets in what came to some place."""
        self.counts["bytes looked through"] += len(data)
        self.findings += [f"{trace} ({place}; {self.label})" for trace in traces.in_bytes(data)]


class Leak:
    """Searches of all kinds, in turn.

    scale, schedule, failure
        Make trials smaller, choose their kinds, and what goes wrong in all of them.
    """

    unit = "searches"

    def __init__(self, folder: Path, over: Engines, stack: ExitStack) -> None:
        self.home, self.parts, self.engines = folder / "home", Parts(), over
        self.services = Services(folder, self.home, over, stack)
        self.schedule: Sequence[str] = SCHEDULE
        self.scale, self.failure = 1.0, ""
        self.has_dictionary = (self.home / "wordnet").exists()

    def trial(self, number: int, rng: np.random.Generator) -> Outcome:
        """Some searches of one kind, and a look at all that could be overheard of them."""
        cycle, place = divmod(number, len(self.schedule))
        kind = self.schedule[place]
        before = [*self.schedule[:place]].count(kind)
        with overhearing() as heard:
            batch = self._batch(kind, rng, heard)
            batch.turn = cycle * [*self.schedule].count(kind) + before
            ledgers = Path(tempfile.mkdtemp(prefix="ledger-", dir=self._memory))
            try:
                self._do(batch, ledgers)
                traces = Traces(batch.secrets)
                received = self._received(batch)
                batch.settle("on the wire", received, traces)
                traces.add_texts(batch.asked[:SAMPLE])
                batch.settle("said", heard.getvalue().encode("utf-8", "surrogatepass"), traces)
                files = in_files(self.home) + in_files(ledgers)
                batch.settle("in a file", files, traces)
                self._look_for_vectors(batch, received + files)
            finally:
                shutil.rmtree(ledgers)
        batch.counts[f"kind: {kind}"] += batch.counts["searches"]
        batch.counts[f"failure: {batch.failure}"] += batch.counts["searches"]
        return Outcome(batch.counts, tuple(batch.findings))

    _memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

    def _batch(self, kind: str, rng: np.random.Generator, heard: Heard) -> Batch:
        known = [] if kind in ("texts", *Services.KINDS) else list(rng.choice(LISTED, 4, False))
        secrets = [*map(str, known), *map(str, rng.choice(UNLISTED, 3, False)), made_up(rng)]
        if kind in Services.KINDS:
            secrets.append(made_up(rng))
        size = max(2, round(SIZES[kind] * self.scale))
        return Batch(kind, rng, secrets, queries(secrets, size, rng), heard, only=self.failure)

    def _received(self, batch: Batch) -> bytes:
        received = self.engines.wire.take() + self.engines.relayed()
        if self.engines.elsewhere.connections:
            self.engines.elsewhere.connections = 0
            batch.findings.append(f"a redirect was followed ({batch.label})")
            received += self.engines.elsewhere.take()
        if batch.kind == "words" and b"GET /find" in received:
            sent = b" ".join(set(re.findall(rb"GET /find\?q=([^& ]*)&", received)))
            words = set(re.findall(r"[^\W_]+", unquote(sent.decode()).lower()))
            if not words <= ALLOWED:
                batch.findings.append(f"words that cannot be drawn were sent ({batch.label})")
        return received

    def _do(self, batch: Batch, ledgers: Path) -> None:
        if batch.kind in Services.KINDS:
            self.services.ask(batch)
        elif batch.kind in ("vectors", "pgvector"):
            self._vectors(batch, ledgers)
        else:
            self._search(batch, ledgers)
        self.engines.calm()

    # By words

    def _search(self, batch: Batch, ledgers: Path) -> None:
        rng = batch.rng
        texts = [n for n in TEXT_MECHANISMS if n not in DICTIONARY or self.has_dictionary]
        options = {"sets": POOL_MECHANISMS, "texts": texts}.get(batch.kind)
        options = options or WORD_MECHANISMS
        name = options[batch.turn % len(options)]
        if name not in KEEPS_REAL_WORDS and batch.kind == "texts":
            batch.secrets += [*map(str, rng.choice(LISTED, 2, False))]
            batch.asked = queries(batch.secrets, len(batch.asked), rng)
        obfuscator = self.parts.obfuscator(name, rng, chorus=batch.kind == "chorus")
        engine_name = batch.choose(("get", "post", "opensearch"))
        if batch.kind == "postgres":
            engine_name = "postgres"
        retries = int(rng.integers(0, 3))
        engine = self.engines(engine_name, retries, anew=batch.kind == "interrupts")
        engine.pause = 1e-6 if rng.random() < 0.3 else 0.0
        engine.remote = bool(rng.random() < 0.5)
        counted = obfuscator.keeps_company or batch.kind == "ledger" or rng.random() < 0.02
        if counted and batch.kind == "words":
            batch.asked = batch.asked[: SIZES["ledger"]]
        ledger = Ledger.open(ledgers / "ledger", wait=0.02) if counted else None
        order = ReadableOrder()
        search = PrivateSearch(obfuscator, engine, order, ledger, depth=5)
        batch.label = f"{name}, {obfuscator.release}, {engine_name}"
        self._break(batch, search, order, engine_name)
        batch.heard.write(f"{search!r} {obfuscator!r} {engine!r}\n")
        with leak_failures.on(batch, ledger) as step:
            if batch.kind == "interrupts":
                self._interrupted(batch, search)
            else:
                self._counted_and_sent(batch, search, ledger, step)
        n = batch.counts["searches"]
        how = f"{name}, {'chorus' if batch.kind == 'chorus' else obfuscator.release}"
        batch.counts.update({f"mechanism: {how}": n, f"engine: {engine_name}": n})

    def _break(
        self, batch: Batch, search: PrivateSearch, order: ReadableOrder, engine_name: str
    ) -> None:
        """Choose what goes wrong in this trial, and have it go wrong now and then."""
        options = ["nothing fails", *STEPS, *MOODS]
        if search.ledger is not None:
            options += leak_failures.LEDGER * 2
        if engine_name == "postgres":
            options = ["nothing fails", *STEPS, *leak_failures.RELAY * 2]
        if batch.kind == "interrupts":
            options = ["Ctrl-C"]
        batch.fail_by(options)
        if batch.failure in MOODS or batch.failure in leak_failures.RELAY:
            self._annoy(batch, engine_name)
        calls = itertools.count()

        def fail(*arguments: Any) -> None:
            if next(calls) % 4 == 0:
                raise ValueError(f"{arguments} {batch.asked} {batch.secrets}")

        if batch.failure == "obfuscation raises":
            for method in drawing_step(search.obfuscator.mechanism):
                failing(search.obfuscator.mechanism, method, fail)
        elif batch.failure == "cutting raises":
            failing(search.obfuscator.pipeline, "prepare", fail)
        elif batch.failure == "the re-ranker raises":
            order.fail = fail  # type: ignore[method-assign]

    def _annoy(self, batch: Batch, engine_name: str) -> None:
        slow = batch.failure in FRAGILE
        if engine_name in ("postgres", "pgvector"):
            self.engines.relay.behave(batch.failure, int(batch.rng.integers(0, 900)))
            batch.asked = batch.asked[: 5 if slow else len(batch.asked)]
        else:
            every = int(batch.rng.integers(60, 90)) if slow else int(batch.rng.integers(2, 9))
            self.engines.wire.behave(batch.failure, every)

    def _counted_and_sent(
        self, batch: Batch, search: PrivateSearch, ledger: Ledger | None, step: Any
    ) -> None:
        alone = batch.failure != "nothing fails" or ledger is not None
        one_by_one = ledger is not None or batch.failure == "cutting raises"
        size = 1 if one_by_one else ALONE if alone else len(batch.asked)
        for at in range(0, len(batch.asked), size):
            texts = batch.asked[at : at + size]
            step()
            releases = batch.attempt(lambda texts=texts: list(search.count_many(texts)), len(texts))
            for release in releases or ():
                batch.counts["searches"] -= 1  # It is the same search.
                result = batch.attempt(lambda release=release: self._sent(batch, search, release))
                if result is not None:
                    batch.counts["answered"] += 1
                    batch.heard.write(f"{release!r} {result!r} {result.problem} {result.engine}\n")

    def _sent(self, batch: Batch, search: PrivateSearch, release: Any) -> Any:
        if batch.failure != "a step is interrupted":
            return search.send(release, 3)
        last = int(batch.rng.integers(0, 4))
        steps = iter(range(10))

        def on_step(_: Any) -> None:
            if next(steps) == last:
                raise KeyboardInterrupt

        return search.send(release, 3, on_step=on_step)

    def _interrupted(self, batch: Batch, search: PrivateSearch) -> None:
        """Ctrl-C at any moment."""
        for text in batch.asked:
            leak_failures.interrupted(
                float(batch.rng.uniform(1e-5, 4e-3)),
                lambda disarm, text=text: batch.attempt(lambda: (search.search(text), disarm())),
            )
            batch.counts["interrupted"] = batch.counts["refused or failed"]

    # By vectors

    def _vectors(self, batch: Batch, ledgers: Path) -> None:
        rng = batch.rng
        engine_name = "pgvector" if batch.kind == "pgvector" else batch.choose(("qdrant", "knn"))
        engine = self.engines(engine_name, 0)
        counted = rng.random() < 0.2
        if counted:
            batch.asked = batch.asked[: SIZES["ledger"]]
        ledger = Ledger.open(ledgers / "ledger", wait=0.02) if counted else None
        order = ReadableOrder() if rng.random() < 0.5 else None
        search = PrivateVectorSearch(self.parts.noise, engine, order, ledger, depth=5)
        relayed = engine_name == "pgvector"
        options = ["nothing fails", *(leak_failures.RELAY if relayed else MOODS)]
        options += leak_failures.LEDGER if counted else ()
        options += ["the re-ranker raises"] if order is not None else []
        batch.fail_by(options)
        batch.label = f"vector, {engine_name}"
        if batch.failure in MOODS:
            self._annoy(batch, engine_name)
        elif order is not None and batch.failure == "the re-ranker raises":
            calls = itertools.count()

            def fail(query: str) -> None:
                if next(calls) % 4 == 0:
                    raise ValueError(query)

            order.fail = fail  # type: ignore[method-assign]
        with leak_failures.on(batch, ledger) as step:
            for text in batch.asked:
                step()
                result = batch.attempt(lambda text=text: search.search(text, 3))
                if result is not None:
                    batch.counts["answered"] += 1
                    batch.heard.write(f"{result!r}\n")
        n = batch.counts["searches"]
        batch.counts.update({"mechanism: vector, once": n, f"engine: {engine_name}": n})

    def _look_for_vectors(self, batch: Batch, data: bytes) -> None:
        """The true vector of a query is neither sent nor left in a file."""
        for text in batch.asked[:SAMPLE]:
            true = self.parts.noise.encode([text])[0]
            printed = [repr(value).encode() for value in true.tolist()]
            shown = sum(number in data for number in printed if len(number) > 10)
            packed = [true[:2].astype(order).tobytes() for order in ("<f4", ">f4")]
            if true.any() and (shown > 2 or any(pair in data for pair in packed)):
                batch.findings.append(f"the true vector of a query showed ({batch.label})")


ALLOWED = {*EVERYDAY}


@contextmanager
def opened(folder: Path, plant: str | None = None) -> Iterator[Leak]:
    """The campaign, with a home of its own, and a planted defect if any."""
    with ExitStack() as stack:
        (folder / "home").mkdir()
        if (wordnet := cache_folder() / "wordnet").exists():
            (folder / "home" / "wordnet").symlink_to(wordnet)
        stack.enter_context(patch.dict(os.environ, {"SOTTOVOCE_HOME": str(folder / "home")}))
        # Waiting between tries tells nothing here, and takes long.
        stack.enter_context(patch.object(http_client, "FIRST_WAIT", 1e-4))
        over = stack.enter_context(engines(folder))
        if plant is not None:
            stack.enter_context(leak_plants.PLANTS[plant].planted())
        with suppress(ImportError):
            import uvicorn  # noqa: F401 - its first import logs, and takes long

        yield Leak(folder, over, stack)
