"""A real `sottovoce serve` and a real browser for tests, and what to ask them.

A test file takes the fixtures it needs by name, as with ``servers``. Where Chromium or Playwright
is missing tests are skipped and say so, unless $SOTTOVOCE_REQUIRE_BROWSER is set: then they fail.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import pytest
import servers

from sottovoce.ledger import Ledger

TOKEN = "a-token-for-tests-0123456789abcdef"
REQUIRED = "SOTTOVOCE_REQUIRE_BROWSER"
QUERY = "treatment for skin cancer"
TITLE = "<img src=x onerror='window.caught = 2'><script>window.caught = 3</script>"
"""What the stranger calls its documents; it is sent with entities, which the engine decodes."""
WAIT = 30_000


def missing(reason: str) -> None:
    """Skip, unless the browser tests must run: then fail."""
    if os.environ.get(REQUIRED):
        pytest.fail(f"{reason} ({REQUIRED} is set)")
    pytest.skip(reason)


def chromium() -> str:
    """The browser's program."""
    found = (
        os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    )
    if not found:
        missing("no chromium: on Debian, apt-get install chromium, or set $CHROMIUM")
    return str(found)


@contextmanager
def browser() -> Iterator[Any]:
    """A headless Chromium."""
    program = chromium()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("no playwright: pip install playwright")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield launched
        launched.close()


def home(folder: Path) -> Path:
    """A home with the word spaces of the user, and a ledger and a history of its own."""
    from sottovoce.paths import cache_folder

    folder.mkdir(parents=True, exist_ok=True)
    for name in ("spaces", "embeddings", "strong", "wordnet"):
        if (cache_folder() / name).exists():
            (folder / name).symlink_to(cache_folder() / name)
    return folder


@dataclass
class Served:
    """A running service."""

    url: str
    home: Path
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def address(self) -> str:
        """What the terminal prints."""
        return f"{self.url}/#token={TOKEN}"

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Talk to the service without a browser."""
        request = urllib.request.Request(
            self.url + path,
            None if body is None else json.dumps(body).encode(),
            {"X-Sottovoce-Token": TOKEN, "Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextmanager
def serving(
    folder: Path, *options: str, environment: dict[str, str] | None = None
) -> Iterator[Served]:
    """`sottovoce serve` on a free port, in a process of its own."""
    log = folder / "serve.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "sottovoce", "serve", "--port", "0", "--no-browser", *options],
            stdout=out,
            stderr=subprocess.STDOUT,
            env={
                **os.environ,
                "SOTTOVOCE_HOME": str(folder),
                "SOTTOVOCE_TOKEN": TOKEN,
                **(environment or {}),
            },
        )
        served = None
        try:
            served = Served(_url(folder / "serve.json", process, log), folder, process, log)
            while served.ask("GET", "/health")["status"] == "loading":
                time.sleep(0.05)
            yield served
        finally:
            Served("", folder, process, log).stop()


def _url(file: Path, process: subprocess.Popen[bytes], log: Path) -> str:
    until = time.monotonic() + 90
    while time.monotonic() < until and process.poll() is None:
        with suppress(OSError, ValueError, KeyError):
            return f"http://127.0.0.1:{json.loads(file.read_text())['port']}"
        time.sleep(0.05)
    raise AssertionError(f"the service did not start: {log.read_text()}")


def figures(fingerprint: str, engine: str, reranker: str, space: str) -> dict[str, Any]:
    """A summary of an experiment that nobody ran: figures to be shown, not to be believed."""
    from sottovoce.collections import demo_log
    from sottovoce.experiments.fingerprints import digest
    from sottovoce.experiments.summary import LAYOUT
    from sottovoce.privacy.attacks.query_log import QueryLog

    def share(value: float, queries: int, **more: Any) -> dict[str, Any]:
        low, high = max(0, value - 0.04), value + 0.06
        return {"value": value, "low": low, "high": high, "queries": queries, **more}

    measured = {5.0: (0.24, 0.0, 0.01), 7.5: (0.5, 0.05, 0.06), 10.0: (0.58, 0.1, 0.17)}
    measured[15.0] = (0.61, 0.19, 0.31)
    texts = {"order": "shuffled", "protect": "content", "unprotected": "drop", "space": space}
    settings = [
        {
            "mechanism": name,
            "spec": f"{spec}epsilon={epsilon}",
            "epsilon": epsilon,
            "release": "once",
            "n": 20,
            "nDCG@10": share(utility, 65),
            "same_depth": None,
            "recall": None,
            "lazy": share(query * factor, 65, by="aligned", knows="a log of 5,141 queries"),
            "words": share(words * factor, 8, by="context", knows="trigrams of a log"),
            "texts": {**texts, "output_vocabulary": vocabulary},
        }
        for name, spec, vocabulary, factor in (
            ("cmp", "cmp:prior=0.5,", "demo", 1),
            ("vickrey-cmp", "vickrey-cmp:", "all", 0.9),
        )
        for epsilon, (utility, query, words) in measured.items()
    ]
    return {
        "layout": LAYOUT,
        "collection": "demo",
        "fingerprint": fingerprint,
        "made": "2026-01-02T03:04:05+00:00",
        "queries": 65,
        "log": 5141,
        "log_sha256": digest(QueryLog(demo_log()).queries),
        "engine": engine,
        "reranker": reranker,
        "depth": 10,
        "baseline": {"nDCG@10": 0.64},
        "settings": settings,
    }


@dataclass
class Traffic:
    """Everything a page asked for, and what it complained about."""

    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def watch(self, page: Any) -> Any:
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        return page

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)


# Fixtures and what tests do with them


# Not for the whole session: while it runs, no test of this process can have an event loop.
@pytest.fixture(scope="module")
def chrome():
    with browser() as launched:
        yield launched


@pytest.fixture(scope="session")
def service(everyday_words, tmp_path_factory):
    """The service on the demo collection; its figures are made up, and only looked at here."""
    from sottovoce.collections import load_collection
    from sottovoce.engines import BM25
    from sottovoce.experiments import summary

    folder, space = home(tmp_path_factory.mktemp("app") / "home"), str(everyday_words.folder)
    fingerprint = BM25(load_collection("demo").documents).fingerprint
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOTTOVOCE_HOME", str(folder))
        summary.remember([figures(fingerprint, "bm25", "light", space)])
    with serving(folder, "--space", space, "--rerank", "light") as running:
        yield running


class Stranger:
    """A search engine elsewhere: keeps every request, answers hostile hits, may be slow."""

    def __init__(self):
        self.answering = threading.Event()
        self.answering.set()

    def answer(self, request):
        assert self.answering.wait(60)
        hits = [
            {"id": f"d{i}", "title": escape(TITLE), "text": escape("<b>so</b>")} for i in range(3)
        ]
        return servers.reply({"results": hits})


@pytest.fixture(scope="session")
def stranger():
    there = Stranger()
    with servers.web(there.answer) as seen:
        there.seen = seen
        yield there
        there.answering.set()


@pytest.fixture(scope="session")
def outside(default_space, stranger, tmp_path_factory):
    """The service in front of the stranger."""
    folder = home(tmp_path_factory.mktemp("outside") / "home")
    with serving(folder, *engine_file(folder, stranger.seen.port), "--rerank", "light") as running:
        yield running


def engine_file(folder, port):
    file = folder / "engine.toml"
    file.write_text(
        f'name = "stranger"\nurl = "http://127.0.0.1:{port}/find?q={{query}}"\n'
        'results = "results"\nid = "id"\ntitle = "title"\nsnippet = "text"\nretries = 0\n'
    )
    return "--engine", f"http:{file}"


def forget(running):
    """A ledger without records and limits, and no history."""
    ledger = Ledger.open(running.home / "ledger")
    ledger.reset()
    ledger.set_budget(None, None)
    running.ask("PUT", "/v1/history", {"on": False})


@contextmanager
def opened(chrome, running, *, risk=False, voice="murmur", **options):
    """The page, loaded, and a voice chosen, if any.

    Attacks on single queries take long, and are left out unless wanted.
    """
    context = chrome.new_context(**options)
    try:
        traffic = Traffic()
        page = traffic.watch(context.new_page())
        page.set_default_timeout(WAIT)
        page.traffic = traffic
        if not risk:
            page.route("**/v1/risk", lambda route: route.fulfill(status=503, json={"error": "x"}))
        page.goto(running.address)
        page.wait_for_selector("#plane > *")
        if voice is not None:
            page.check(f"#voice-{voice}", force=True)
        yield page
    finally:
        context.close()


@pytest.fixture
def page(chrome, service):
    forget(service)
    with opened(chrome, service) as page:
        yield page


@pytest.fixture
def page_as_it_opens(chrome, service):
    """With the usual voice, and nothing touched."""
    forget(service)
    with opened(chrome, service, voice=None) as page:
        yield page


@pytest.fixture
def page_outside(chrome, outside):
    forget(outside)
    with opened(chrome, outside) as page:
        yield page


def search(page, query=QUERY):
    page.fill("#query", query)
    page.click("#go")
    page.wait_for_selector("#came li, #came p, #notice p", state="visible")


def sent(page):
    return page.locator("#left li").all_inner_texts()


def notice(page):
    page.wait_for_selector("#notice p", state="visible")
    return page.inner_text("#notice")


def spent(running):
    totals = Ledger.open(running.home / "ledger").spent()
    return sum(each.nats for each in totals)


# What to ask a page

NAMELESS = """() => [...document.querySelectorAll(
    'button, input, select, textarea, a, [role=region], summary')]
  .filter(each => !(each.labels?.length || each.textContent.trim() && each.tagName !== 'SELECT'
    || each.getAttribute('aria-label') || each.getAttribute('aria-labelledby')))
  .map(each => each.outerHTML)"""

CONTRASTS = """() => {
  const numbers = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const part = each => (each /= 255) <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4;
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const behind = node => {
    for (; node; node = node.parentElement) {
      const colour = numbers(getComputedStyle(node).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.checkVisibility()) continue;
    const style = getComputedStyle(node);
    const text = light(numbers(node.closest('svg') ? style.fill : style.color));
    const [low, high] = [text, light(behind(node))].sort((a, b) => a - b);
    found.push([(high + 0.05) / (low + 0.05), node.outerHTML.slice(0, 120)]);
  }
  return found;
}"""
