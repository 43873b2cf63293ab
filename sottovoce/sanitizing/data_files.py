"""Data sets in files: opened by their format, sanitized block by block, and written whole."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sottovoce import __version__
from sottovoce.choices import Format
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.files import move_file, settle_file, write_whole
from sottovoce.sanitizing.arrow import ParquetSource
from sottovoce.sanitizing.csv_rows import CsvSource
from sottovoce.sanitizing.executor import Executor, sanitize_blocks
from sottovoce.sanitizing.json_rows import JsonSource
from sottovoce.sanitizing.report import Report
from sottovoce.sanitizing.sanitizer import Sanitizer
from sottovoce.sanitizing.sources import START, Source
from sottovoce.sanitizing.work import START_ANEW, State, Work, WorkLostError, open_work
from sottovoce.types import Progress

ENDINGS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}


def open_source(
    path: Path | str,
    columns: tuple[str, ...],
    format: Format | None = None,
    delimiter: str | None = None,
) -> Source:
    """Open a data set; the file's name tells its format unless that is given."""
    file = Path(path)
    if file.is_dir():
        raise UsageError("the input is a folder: name a file, one call for each")
    if not file.exists():
        raise UsageError("there is no such input file: check the path")
    if not file.is_file():
        raise UsageError("the input must be a file on disk: it is read twice, and after a --resume")
    format = format or format_of(file)
    if format is None:
        raise UsageError("the format is not clear from the name: give --format csv|jsonl|parquet")
    if delimiter is not None and format != "csv":
        raise UsageError("--delimiter is for CSV files")
    if format == "csv":
        usual = "\t" if _ending(file) == ".tsv" else ","
        return CsvSource(file, columns, usual if delimiter is None else delimiter)
    return JsonSource(file, columns) if format == "jsonl" else ParquetSource(file, columns)


def format_of(file: Path) -> Format | None:
    """The format that a file's name tells."""
    return ENDINGS.get(_ending(file))


def is_packed(file: Path) -> bool:
    """Whether a file is to be gzipped."""
    return file.suffix.lower() == ".gz"


def _ending(file: Path) -> str:
    return (Path(file.stem) if is_packed(file) else file).suffix.lower()


def sanitize_file(
    sanitizer: Sanitizer,
    source: Source,
    out: Path | str,
    *,
    report: Path | str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    own_secret: bool = False,
    workers: int = 1,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Report:
    """Write the sanitized data set to ``out``, and the report as JSON to ``report``.

    The output has its name only when it is whole. ``resume`` goes on with a run that was killed;
    with a seed, the result is that of an undisturbed run. ``own_secret`` says that the secret of
    linkable words was made for this run: it is kept with the work, and destroyed at its end.
    ``executor`` says where the blocks are worked on, if not here: see ``sottovoce.integrations``.
    """
    target, side = Path(out), None if report is None else Path(report)
    if workers < 1:
        raise UsageError("at least one worker is needed")
    executor = executor or partial(sanitize_blocks, workers=workers)
    _check_paths(source, target, side)
    before = _stamp(source.path)
    rows = sum(block.rows for block in source.blocks(START))
    with _write_errors_explained(), open_work(target, resume=resume, overwrite=overwrite) as work:
        plan = _plan(sanitizer, source, target, own_secret)
        begun = work.plan() if resume else None
        if begun is None:
            _refuse_existing(target, side, overwrite, resume)
            work.begin(plan)
        else:
            sanitizer = _same_work(sanitizer, begun, plan)
            work.restore()
            if not work.state.complete:
                _refuse_existing(target, side, overwrite)
        with _kept_rows_mentioned(work):
            _work_through(sanitizer, source, work, is_packed(target), executor, rows, progress)
            if _stamp(source.path) != before or work.state.rows != rows:
                raise WorkLostError("the input changed while it was read")
            result = Report(sanitizer, work.state.counts)
            _finish(source, work, target, side, result)
        return result


def _work_through(
    sanitizer: Sanitizer,
    source: Source,
    work: Work,
    packed: bool,
    executor: Executor,
    rows: int,
    progress: Progress | None,
) -> None:
    state = work.state
    if progress is not None:
        progress(state.rows, rows)
    if state.complete:
        return
    with work.appending() as out:
        blocks = source.blocks(state.mark)
        for block, texts, counts in executor(sanitizer, blocks, state.rows):
            data = block.filled(texts)
            if packed:
                data = gzip.compress(data, mtime=0)
            state = State(
                state.rows + block.rows, block.end, state.size + len(data), state.counts + counts
            )
            out.append(data, state)
            if progress is not None:
                progress(state.rows, rows)
        work.note(replace(state, complete=True))


def _finish(source: Source, work: Work, out: Path, side: Path | None, report: Report) -> None:
    """Move the output to its final name. Repeating this after a kill is safe."""
    if work.output.exists():
        whole = source.finished(work.output)
        settle_file(whole)
        move_file(whole, out)
        work.output.unlink(missing_ok=True)
    elif not out.exists():
        raise WorkLostError("the output of the earlier run is gone")
    if side is not None:
        write_whole(side, (json.dumps(report.to_dict(), indent=2) + "\n").encode())
    work.remove()


def _check_paths(source: Source, out: Path, report: Path | None) -> None:
    for file, what in ((out, "the output"), (report, "the report")):
        if file is None:
            continue
        if file.is_dir():
            raise UsageError(f"{what} is a folder: name a file")
        if not file.parent.is_dir():
            raise UsageError(f"the folder of {what} does not exist: make it first")
        if file.exists() and os.path.samefile(file, source.path):
            raise UsageError(f"{what} would overwrite the input: name another file")
    if report is not None and report.resolve() == out.resolve():
        raise UsageError("the report would overwrite the output: name another file")
    format = format_of(out)
    if format is not None and format != source.kind.split()[0]:
        raise UsageError("the output has the format of the input: give it the same ending")
    if is_packed(out) and source.kind == "parquet":
        raise UsageError("a Parquet file is compressed inside: name it without .gz")


def _refuse_existing(out: Path, report: Path | None, overwrite: bool, resume: bool = False) -> None:
    why = "; no stopped run is here, so it was finished earlier or is another's" if resume else ""
    for file, what in ((out, "the output"), (report, "the report")):
        if file is not None and file.exists() and not overwrite:
            raise UsageError(f"{what} exists already{why}: name another file, or give --overwrite")


def _plan(sanitizer: Sanitizer, source: Source, out: Path, own_secret: bool) -> dict[str, Any]:
    """Hashes of all that decides the result; and the secret of this run, if it has its own."""
    with source.path.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    secret = sanitizer.linkable
    key = None if secret is None or own_secret else hashlib.sha256(b"key" + secret).hexdigest()
    options = [sanitizer.fingerprint(), source.kind, is_packed(out), secret is None, own_secret]
    return {
        "version": __version__,
        "input": content,
        "options": hashlib.sha256(json.dumps([*options, key]).encode()).hexdigest(),
        "secret": secret.hex() if secret is not None and own_secret else None,
    }


def _same_work(sanitizer: Sanitizer, begun: dict[str, Any], plan: dict[str, Any]) -> Sanitizer:
    """Refuse to go on with other data or options; give back the secret that was in use."""
    names = {"version": "sottovoce", "input": "the input", "options": "an option or the word space"}
    for part, what in names.items():
        if begun.get(part) != plan[part]:
            raise UsageError(f"{what} is not what the earlier run had: {START_ANEW}")
    secret = begun.get("secret")
    return sanitizer if secret is None else replace(sanitizer, linkable=bytes.fromhex(secret))


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


@contextmanager
def _kept_rows_mentioned(work: Work) -> Iterator[None]:
    """Add to an error how many rows are done and kept."""
    try:
        yield
    except (SottovoceError, OSError) as error:
        if isinstance(error, OSError):
            error = _cannot_write(error)
        if work.state.rows and not isinstance(error, WorkLostError):
            error.args = (
                f"{error}. {work.state.rows} rows are done and kept: once that is mended, run the "
                "same command with --resume",
            )
        raise error from None


@contextmanager
def _write_errors_explained() -> Iterator[None]:
    """Turn errors of the system into one that says what to do, without a path."""
    try:
        yield
    except OSError as error:
        raise _cannot_write(error) from None


def _cannot_write(error: OSError) -> SottovoceError:
    reason = os.strerror(error.errno) if error.errno else type(error).__name__
    return SottovoceError(f"the output cannot be written ({reason}): make room, or write elsewhere")
