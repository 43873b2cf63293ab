"""Heats: systems that do the same job take short turns, so that machine noise hits all alike."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from systems import System
from turns import WORKLOADS, Task, Turn

FEWEST_TURNS = 3


class WorkerFailedError(Exception):
    """A worker said that it cannot, or died; the message is safe to publish."""


class Worker:
    """A system loaded in a fresh process, which waits there until it is its turn."""

    def __init__(self, system: System, task: Task, log: Path) -> None:
        with log.open("a") as output:
            self._process = subprocess.Popen(
                [*system.command(), json.dumps(asdict(task))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                env=system.environment(task.threads),
                encoding="utf-8",
            )

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def start(self) -> dict[str, Any]:
        """Wait until the system is loaded; how long that took."""
        return self._hear()

    def turn(self, workload: str, seconds: float) -> Turn:
        """Work for about this long."""
        return Turn(**self._ask({"workload": workload, "seconds": seconds}))

    def check(self, name: str) -> dict[str, int]:
        """Check the system's answers."""
        return self._ask({"check": name})

    def _ask(self, request: dict[str, object]) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # It died; reading its answer says so.
        return self._hear()

    def _hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise WorkerFailedError(f"its process ended (exit code {self._process.wait()})")
        answer: dict[str, Any] = json.loads(line)
        if "failed" in answer:
            raise WorkerFailedError(answer["failed"])
        return answer


@dataclass(frozen=True)
class Result:
    """All that was measured of one system in one heat, or why there is nothing."""

    space: str
    mechanism: str
    threads: int
    system: str
    skipped: str | None = None
    start: dict[str, Any] = field(default_factory=dict)
    turns: dict[str, list[Turn]] = field(default_factory=dict)
    checks: dict[str, dict[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Pace:
    """How long a system works: turns of ``seconds`` until it has had ``rounds`` times that.

    A system whose single call takes longer than a turn gets fewer turns, but never too few for
    a median.
    """

    seconds: float
    rounds: int

    def enough(self, turns: Sequence[Turn]) -> bool:
        """Whether a system needs no more turns."""
        fewest = min(FEWEST_TURNS, self.rounds)
        spent = sum(turn.seconds for turn in turns)
        return len(turns) >= fewest and spent >= self.seconds * self.rounds


def run_heat(
    systems: Sequence[System],
    task: Task,
    pace: Pace,
    logs: Path,
    say: Callable[[str], None],
    workloads: Sequence[str] = WORKLOADS,
) -> list[Result]:
    """One mechanism, space and number of threads: load all systems, then take turns."""
    results = {
        system.name: Result(task.space, task.mechanism, task.threads, system.name)
        for system in systems
    }

    def give_up(name: str, error: WorkerFailedError) -> None:
        workers.pop(name, None)
        results[name] = Result(task.space, task.mechanism, task.threads, name, str(error))
        say(f"  {name} left out: {error}")

    with ExitStack() as stack:
        workers: dict[str, Worker] = {}
        for system in systems:
            log = logs / f"{system.name.replace(' ', '-')}.log"
            worker = stack.enter_context(Worker(system, task, log))
            try:
                results[system.name].start.update(worker.start())
                workers[system.name] = worker
            except WorkerFailedError as error:
                give_up(system.name, error)
        for workload in workloads:
            while waiting := [
                name
                for name in workers
                if workload in results[name].start["workloads"]
                and not pace.enough(results[name].turns.setdefault(workload, []))
            ]:
                for name in waiting:
                    try:
                        turn = workers[name].turn(workload, pace.seconds)
                        results[name].turns[workload].append(turn)
                    except WorkerFailedError as error:
                        give_up(name, error)
        for name, worker in list(workers.items()):
            for check in results[name].start["checks"]:
                try:
                    results[name].checks[check] = worker.check(check)
                except WorkerFailedError as error:
                    give_up(name, error)
    return list(results.values())
