"""How long people wait: the list of commands, a cold search, a warm one, the page's first one.

    python benchmarks/latency.py                 medians of ten (`serve`: three)
    python benchmarks/latency.py --times 3       a first look

Everything is the default: demo collection, 20 variants, BM25, the strong encoder where it is
installed, ledger on. Wall clock is what people wait; processor time is what the program is to blame
for when the machine has other things to do. The ledger is one of its own, in a folder that is
removed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

QUERIES = (
    "treatment for skin cancer",
    "debt advice",
    "divorce lawyer",
    "panic attacks at night",
    "side effects of flu vaccines",
)
STAGES = {
    "sottovoce.engines:choose_engine": "BM25 index of the demo",
    "sottovoce.search:load_reranker": "strong encoder",
    "sottovoce.search.reranking:EncoderReranker.prepare": "vectors of the documents, mapped",
    "sottovoce.output_vocabularies:of_search": "words that may be released",
    "sottovoce.search:PrivateSearch.search": "the search itself",
    "sottovoce.cli.search:show": "printing",
}
"""What a cold search does, and what it is called in the table."""
Times = list[tuple[float, float]]
"""Wall clock and processor time of each run, in seconds."""


def main(arguments: list[str] | None = None) -> int:
    """Measure and print tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=10, help="runs of each, after one more")
    parser.add_argument("--stages", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.stages:
        return _stages()
    with _home_of_its_own():
        print("| what | goal | wall clock | least | processor time |\n|---|--:|--:|--:|--:|")
        warm, steps = _warm(options.times)
        up, first, second = _served(max(3, options.times // 3))
        for what, goal, times in (
            ("`sottovoce --help`", 0.25, _command(options.times, "--help")),
            ('cold `sottovoce search "…"`', 1.5, _command(options.times, "search", QUERIES[0])),
            ("warm search, in one process", 0.05, warm),
            ("`sottovoce serve`, until it answers", None, up),
            ("the page's first search, right then", 1.0, first),
            ("its second search", None, second),
        ):
            print(_row(what, goal, times))
        _print_parts("A cold search", _parts_of_a_cold_search(options.times))
        _print_parts("A warm search", steps)
    return 0


def _row(what: str, goal: float | None, times: Times) -> str:
    wall, processor = zip(*times, strict=True)
    limit = "" if goal is None else _shown(goal)
    used = _shown(median(processor)) if all(processor) else "–"
    return f"| {what} | {limit} | {_shown(median(wall))} | {_shown(min(wall))} | {used} |"


def _shown(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms"


def _print_parts(title: str, parts: dict[str, list[float]]) -> None:
    print(f"\n| {title} | processor time |\n|---|--:|")
    for name, times in parts.items():
        print(f"| {name} | {_shown(median(times))} |")


@contextlib.contextmanager
def _home_of_its_own() -> Iterator[None]:
    """A data folder with a new ledger; the cache folder is the user's."""
    from sottovoce.paths import HOME_VARIABLE, cache_folder

    cache = cache_folder()
    home = Path(tempfile.mkdtemp())
    try:
        for kept in cache.iterdir():
            (home / kept.name).symlink_to(kept)
        os.environ[HOME_VARIABLE] = str(home)
        yield
    finally:
        shutil.rmtree(home, ignore_errors=True)


# Commands


def _command(times: int, *arguments: str) -> Times:
    """Wall clock and processor time of whole processes; the first one fills caches."""
    return [_process("-m", "sottovoce", *arguments)[:2] for _ in range(times + 1)][1:]


def _process(*arguments: str) -> tuple[float, float, str]:
    started = time.perf_counter()
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    child = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert child.stdout is not None
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed")
    return time.perf_counter() - started, usage.ru_utime + usage.ru_stime, output


def _parts_of_a_cold_search(times: int) -> dict[str, list[float]]:
    """The stages of a cold search, each without the imports that happen in it."""
    parts: dict[str, list[float]] = {}
    for _ in range(times):
        _, total, output = _process(__file__, "--stages")
        stages = json.loads(output.splitlines()[-1])
        _, bare, _ = _process("-c", "pass")
        stages = {"Python itself": bare, **stages}
        stages["the rest"] = max(0.0, total - sum(stages.values()))
        for name, seconds in stages.items():
            parts.setdefault(name, []).append(seconds)
    return parts


def _stages() -> int:
    """A cold search in this process, which must be a new one; prints how long each part took."""
    spent = {"imports of packages": 0.0, "imports of sottovoce": 0.0}
    spent |= dict.fromkeys(STAGES.values(), 0.0)
    running: list[str] = []
    since = time.process_time()

    def switch() -> None:
        """Count the time until now for what runs."""
        nonlocal since
        now = time.process_time()
        if running:
            spent[running[-1]] = spent.get(running[-1], 0.0) + now - since
        since = now

    @contextlib.contextmanager
    def counted(name: str) -> Iterator[None]:
        switch()
        running.append(name)
        try:
            yield
        finally:
            switch()
            running.pop()

    def timed(function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            with counted(name):
                return function(*arguments, **named)

        return run

    import builtins

    real_import = builtins.__import__

    def importing(name: str, *arguments: Any, **named: Any) -> Any:
        if name in sys.modules and not arguments[2:3]:
            return real_import(name, *arguments, **named)
        kind = "sottovoce" if name.startswith("sottovoce") else "packages"
        with counted(f"imports of {kind}"):
            return real_import(name, *arguments, **named)

    builtins.__import__ = importing
    import importlib

    from sottovoce import cli

    for place, name in STAGES.items():
        module_name, _, path = place.partition(":")
        owner: Any = importlib.import_module(module_name)
        *within, last = path.split(".")
        for part in within:
            owner = getattr(owner, part)
        setattr(owner, last, timed(getattr(owner, last), name))
    sys.argv = ["sottovoce", "search", QUERIES[0]]
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):
        cli.main()
    switch()
    print(json.dumps({name: seconds for name, seconds in spent.items() if seconds > 0}))
    return 0


# One process


def _warm(times: int) -> tuple[Times, dict[str, list[float]]]:
    """Searches after the first ones, and how long each of their steps took."""
    from sottovoce import Ledger, Obfuscator, PrivateSearch, defaults, load_space, mechanism
    from sottovoce.collections import load_collection
    from sottovoce.engines import BM25
    from sottovoce.obfuscation import release_for
    from sottovoce.output_vocabularies import of_search
    from sottovoce.search import Step, fitted_to, laid_out_for, load_reranker
    from sottovoce.search.reranking import EncoderReranker
    from sottovoce.text import TextPipeline

    documents, space = load_collection("demo").documents, load_space()
    engine, reranker = BM25(documents), load_reranker("auto")
    if isinstance(reranker, EncoderReranker):
        reranker.prepare([engine.text(document.doc_id) for document in documents])
    built = fitted_to(
        engine,
        mechanism("cmp", space=space, epsilon=defaults.SEARCH_EPSILON),
        lambda: space.with_output(of_search(space, documents, "demo")),
    )
    pipeline = laid_out_for(engine, TextPipeline(), built, drop_function_words=True)
    obfuscator = Obfuscator(
        built, n=defaults.VARIANTS, release=release_for(built, None), pipeline=pipeline
    )
    search = PrivateSearch(obfuscator, engine, reranker, Ledger.open())
    for query in QUERIES:
        search.search(query)
    whole: Times = []
    steps: dict[str, list[float]] = {}
    for query in QUERIES * times:
        marks: list[tuple[str, float]] = []

        def mark(step: Step, marks: list[tuple[str, float]] = marks) -> None:
            marks.append((step.name, time.process_time()))

        wall, processor = time.perf_counter(), time.process_time()
        search.search(query, on_step=mark)
        end = time.process_time()
        whole.append((time.perf_counter() - wall, end - processor))
        taken: dict[str, float] = {}
        for (name, start), (_, until) in pairwise([*marks, ("", end)]):
            taken[name] = taken.get(name, 0.0) + until - start
        for name, seconds in taken.items():
            steps.setdefault(name, []).append(seconds)
    return whole, steps


# The page


def _served(times: int) -> tuple[Times, Times, Times]:
    """Until a new service answers, its first search, its second one."""
    up, first, second = [], [], []
    for _ in range(times):
        started = time.perf_counter()
        service = subprocess.Popen(
            [sys.executable, "-m", "sottovoce", "serve", "--port", "0", "--no-browser"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert service.stdout is not None
            address, _, token = service.stdout.readline().split()[-1].partition("#token=")
            up.append((time.perf_counter() - started, 0.0))
            first.append((_ask(address, token, QUERIES[0]), 0.0))
            second.append((_ask(address, token, QUERIES[1]), 0.0))
        finally:
            service.terminate()
            service.wait()
    return up, first, second


def _ask(address: str, token: str, query: str) -> float:
    request = urllib.request.Request(
        f"{address.rstrip('/')}/v1/search",
        data=json.dumps({"query": query}).encode(),
        headers={"Content-Type": "application/json", "Authorization": f"Bearer {token}"},
    )
    started = time.perf_counter()
    with urllib.request.urlopen(request, timeout=120) as answer:
        answer.read()
    return time.perf_counter() - started


if __name__ == "__main__":
    raise SystemExit(main())
