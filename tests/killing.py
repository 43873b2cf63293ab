"""Killing processes, with kill -9: at every step of their work, or at any moment.

Work to be killed should be on a disk in memory (the fixture ``memory_disk``): what a process gave
to the system survives its death, so that waiting for a real disk would prove nothing here.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TESTS = str(Path(__file__).parent)

# In a process whose children are killed at every step.

_steps = 0
_last = -1


def step() -> None:
    """A moment at which a process may die; it does if this is the one it was made for."""
    global _steps
    if _steps == _last:
        os.kill(os.getpid(), signal.SIGKILL)
    _steps += 1


def around(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with a step before and after it."""

    def call(*arguments: Any, **options: Any) -> Any:
        step()
        result = function(*arguments, **options)
        step()
        return result

    return call


def watch(module: Any, *names: str) -> None:
    """Put a step before and after each of these functions of a module."""
    for name in names:
        setattr(module, name, around(getattr(module, name)))


def torn_write(file: Any, data: bytes) -> None:
    """Write data with a step in the middle and at the end, then wait for the disk."""
    half = len(data) // 2
    os.write(file.fileno(), data[:half])
    step()
    os.write(file.fileno(), data[half:])
    step()
    os.fsync(file.fileno())


def kill_at_every_step(
    folder: Path,
    work: Callable[[Path], None],
    *,
    before: Callable[[Path], None] = lambda _: None,
    after: Callable[[Path], None] = lambda _: None,
) -> int:
    """Do the work once for each of its steps, in a child that is killed there.

    Each time it has a folder of its own, filled by ``before`` and looked after by ``after``. Tells
    how many steps there were.
    """
    global _last
    while True:
        _last += 1
        place = folder / str(_last)
        place.mkdir()
        before(place)
        child = os.fork()
        if not child:
            work(place)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            return _last
        after(place)


# In a test.


def start(code: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
    """Run code in a process of its own; it can import what lies beside the tests."""
    path = os.pathsep.join(filter(None, (TESTS, os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )


def finish(process: subprocess.Popen[str], timeout: float = 300) -> str:
    """What a process that ends well has printed."""
    out, err = process.communicate(timeout=timeout)
    assert process.returncode == 0, err
    return out


# Imports take longer than the work: one process has them ready, and its children do the commands.
COMMANDS = """
import json, os, sys
import sottovoce.cli.sanitize, sottovoce.mechanisms, sottovoce.sanitizing
from sottovoce.cli import main
from sottovoce.threads import set_threads

exec(sys.argv[1])
set_threads(1)
for line in sys.stdin:
    child = os.fork()
    if not child:
        sys.argv = ["sottovoce", *json.loads(line)]
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        try:
            main()
        except SystemExit as done:
            os._exit(done.code if isinstance(done.code, int) else 1)
        os._exit(0)
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""


class Command:
    """A command of sottovoce at work in a process that can be killed."""

    def __init__(self, server: subprocess.Popen[str], arguments: list[str]) -> None:
        self._server = server
        assert server.stdin is not None
        server.stdin.write(json.dumps(arguments) + "\n")
        server.stdin.flush()
        self.pid = int(self._line())

    def running(self) -> bool:
        """Whether it has not ended yet."""
        try:
            state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        return state != "Z"

    def kill(self) -> None:
        """Kill it, if it still runs, and wait for its end."""
        os.kill(self.pid, signal.SIGKILL) if self.running() else None
        self._line()

    def _line(self) -> str:
        assert self._server.stdout is not None
        return self._server.stdout.readline()


@contextmanager
def commands(setup: str = "", **environment: str) -> Iterator[Callable[..., Command]]:
    """Give a function that starts a command, in a process where ``setup`` was run before."""
    server = start(COMMANDS, setup, **environment)
    try:
        yield lambda *arguments: Command(server, [str(argument) for argument in arguments])
    finally:
        server.kill()
        server.communicate()
