"""Commands of sottovoce without waiting for Python to start and import each time.

Run as a module, it imports the command line once; then, for each line of JSON on its input, it
forks a process that runs one command as ``python -m sottovoce`` would, and prints the exit code.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

TIMED_OUT = -signal.SIGALRM
WARM_UP = (["--help"], ["search"], ["obfuscate", "text", "-m", "nothing"])
"""They import what most commands need, and load no data."""
PRELOADED = ("scipy.stats",)
"""What many commands import later; nothing of sottovoce."""


class Runner:
    """A process that runs one command at a time; close it when all is done.

    ``package`` is the file of the package that it has imported.
    """

    def __init__(self, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "recorded.runner"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.package = Path(self._process.stdout.readline().strip())

    def run(self, arguments: list[str], seconds: int, **where: Any) -> int:
        """The exit code of a command; ``where`` is the rest of what :func:`_become` reads."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        call = {"arguments": arguments, "seconds": seconds, **where}
        self._process.stdin.write(f"{json.dumps(call)}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def _become(call: dict[str, Any]) -> None:
    """Give this process the folder, environment and streams of a call; then run it."""
    os.chdir(call["folder"])
    os.environ.clear()
    os.environ.update(call["environment"])
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    os.dup2(os.open(call["stdin"], os.O_RDONLY), 0)
    os.dup2(os.open(call["stdout"], flags), 1)
    os.dup2(os.open(call["stderr"], flags), 2)
    sys.stdin = os.fdopen(0, encoding="utf-8", errors="surrogateescape")
    signal.alarm(call["seconds"])
    _command(call["arguments"])


def _command(arguments: list[str]) -> None:
    sys.argv = ["sottovoce", *arguments]
    runpy.run_module("sottovoce", run_name="__main__", alter_sys=True)


def _warm_up() -> None:
    for name in PRELOADED:
        import_module(name)
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        for arguments in WARM_UP:
            with suppress(SystemExit):
                _command(arguments)


def main() -> None:
    """Warm up, then run a command for each line of the input until that ends."""
    _warm_up()
    gc.freeze()  # So that a forked process need not copy all this memory to end.
    print(sys.modules["sottovoce"].__file__, flush=True)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _become(json.loads(line))
            return
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
