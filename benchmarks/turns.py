"""The worker's side: load one system once, then take a timed turn whenever asked.

Standard library only, because it also runs inside the peers' own environments.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import json
import os
import resource
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from io import TextIOWrapper
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, TextIO, TypeAlias

BATCH = 1000
QUERY_WORDS, VARIANTS = 6, 20
TEXT_WORDS, DISTINCT = 1000, 400
WORKLOADS = ("interactive", "batch", "once", "text", "again")
"""In this order: peak memory only ever grows, and the interactive peak is the smallest one.

Batches are for mechanisms that treat each word anew; ``once`` reads all variants off one point.
Those that prepare something for each distinct word get a text of new words, then another text of
the same words.
"""
SAMPLING = ("santext", "tem", "custext", "wbb")


def workloads_of(mechanism: str) -> tuple[str, ...]:
    """The work that a mechanism is measured at."""
    left_out = ("batch", "once") if mechanism in SAMPLING else ("text", "again")
    return tuple(workload for workload in WORKLOADS if workload not in left_out)


@dataclass(frozen=True)
class Task:
    """What a worker is to load."""

    space: str
    mechanism: str
    threads: int
    epsilon: float
    folder: str
    """Where ``export_space.py`` left the words to obfuscate and the peers' text files."""

    def facts(self) -> dict[str, Any]:
        """Size and dimension of the space, and the words to obfuscate."""
        found: dict[str, Any] = json.loads((Path(self.folder) / "facts.json").read_text("utf-8"))
        return found


@dataclass(frozen=True)
class Piece:
    """What one call did; ``core_seconds`` is the part spent inside the mechanism alone."""

    words: float
    core_seconds: float | None = None


@dataclass(frozen=True)
class Turn:
    """Calls made in a row, for about the time asked."""

    words: float
    seconds: float
    cpu_seconds: float
    core_seconds: float | None
    peak_mib: float


Call: TypeAlias = Callable[[], Piece]


@dataclass(frozen=True)
class Loaded:
    """A system that is ready: one call per workload, and checks of its answers if it has any."""

    calls: Mapping[str, Call]
    checks: Mapping[str, Callable[[], Mapping[str, int]]] = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)
    warm_up: Callable[[], None] = lambda: None
    """What is made for long work only: done before it, and not timed."""


class NotOfferedError(Exception):
    """The system has no such mechanism."""


class Supply:
    """Words to obfuscate, dealt in order, round and round."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = itertools.cycle(words)

    def take(self, count: int) -> list[str]:
        """The next words."""
        return list(itertools.islice(self._words, count))

    def text(self, length: int = TEXT_WORDS) -> list[str]:
        """The next distinct words, some of them more than once."""
        words = self.take(length * DISTINCT // TEXT_WORDS)
        return [words[position % len(words)] for position in range(length)]


def peak_mib() -> float:
    """The most memory this process has held, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def take_turn(call: Call, seconds: float) -> Turn:
    """Call again and again until the time is over, at least once."""
    words, core, has_core = 0.0, 0.0, True
    begin, begin_cpu = perf_counter(), process_time()
    while True:
        piece = call()
        words += piece.words
        has_core = has_core and piece.core_seconds is not None
        core += piece.core_seconds or 0.0
        if (elapsed := perf_counter() - begin) >= seconds:
            break
    spent = process_time() - begin_cpu
    return Turn(words, elapsed, spent, core if has_core else None, peak_mib())


def serve(
    bring_in: Callable[[Task], Any], load: Callable[[Task, Any], Loaded], distribution: str
) -> None:
    """Import, load, answer the first query, then take turns until the requests end."""
    answers = _claim_standard_output()
    task = Task(**json.loads(sys.argv[1]))
    try:
        begin = perf_counter()
        module = bring_in(task)
        imported = perf_counter()
        loaded = load(task, module)
        ready, ready_peak = perf_counter(), peak_mib()
        loaded.calls["interactive"]()
        first = perf_counter()
        _answer(
            answers,
            {
                "import_seconds": imported - begin,
                "load_seconds": ready - imported,
                "first_seconds": first - ready,
                "loaded_mib": ready_peak,
                "about": {distribution: _version(distribution), "numpy": _version("numpy")}
                | dict(loaded.about),
                "checks": sorted(loaded.checks),
                "workloads": sorted(loaded.calls),
            },
        )
        for line in sys.stdin:
            request = json.loads(line)
            if "check" in request:
                _answer(answers, dict(loaded.checks[request["check"]]()))
            else:
                if request["workload"] != "interactive":
                    loaded.warm_up()
                turn = take_turn(loaded.calls[request["workload"]], request["seconds"])
                _answer(answers, asdict(turn))
    except NotOfferedError:
        _answer(answers, {"failed": "not offered"})
    except Exception as error:
        traceback.print_exc()
        _answer(answers, {"failed": type(error).__name__})


def _claim_standard_output() -> TextIO:
    """Keep standard output for answers; what a library prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    sys.stdout.flush()
    os.dup2(2, 1)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # A worker is killed when it is done.
    return answers


def _answer(answers: TextIO, content: Mapping[str, object]) -> None:
    answers.write(json.dumps(content) + "\n")
    answers.flush()


def _version(distribution: str) -> str:
    return importlib.metadata.version(distribution)
