"""``sottovoce`` as it is typed, in this process: a new Python takes longer than most commands."""

from __future__ import annotations

import io
import sys
import tempfile
import warnings
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from sottovoce.cli import main


def run_command(
    *arguments: str,
    home: Path,
    stdin: bytes = b"",
    folder: Path | None = None,
    columns: int = 200,
) -> CompletedProcess[bytes]:
    """Exit code, standard output and standard error of a command; none of them is a terminal."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with (
        tempfile.TemporaryFile() as typed,
        io.TextIOWrapper(typed, "utf-8") as reading,
        pytest.MonkeyPatch.context() as patch,
        warnings.catch_warnings(),
    ):
        typed.write(stdin)
        typed.seek(0)
        for name, stream in (("stdin", reading), ("stdout", out), ("stderr", err)):
            patch.setattr(sys, name, stream)
        patch.setattr(sys, "argv", ["sottovoce", *map(str, arguments)])
        patch.setattr(sys, "excepthook", sys.excepthook)  # Typer puts its own there.
        patch.setenv("SOTTOVOCE_HOME", str(home))
        patch.setenv("NO_COLOR", "1")
        patch.setenv("COLUMNS", str(columns))
        if folder is not None:
            patch.chdir(folder)
        with pytest.raises(SystemExit) as ended:
            main()
    code = ended.value.code
    printed, complaints = (stream.buffer.getvalue() for stream in (out, err))
    return CompletedProcess(arguments, code if isinstance(code, int) else 0, printed, complaints)


def as_text(done: CompletedProcess[bytes]) -> CompletedProcess[str]:
    """The same with its output decoded."""
    return CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())
