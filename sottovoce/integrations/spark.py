"""Sanitizing on Spark: blocks of a file through mapInArrow, or a whole Spark DataFrame."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from sottovoce.errors import PrivacyWarning, SottovoceError, UsageError, need
from sottovoce.integrations.jobs import Job, Rows, done
from sottovoce.integrations.tables import in_runs
from sottovoce.sanitizing.arrow import load_pyarrow
from sottovoce.sanitizing.executor import Executor, Step, ahead, numbered
from sottovoce.sanitizing.sanitizer import Sanitizer
from sottovoce.sanitizing.sources import Block

if TYPE_CHECKING:
    import pyarrow

JOBS_AT_A_TIME = 2
SETTINGS = {
    "spark.io.encryption.enabled": "true",  # Else rows lie in clear in temporary files.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
ENCRYPTION = ("spark.network.crypto.enabled", "spark.ssl.rpc.enabled")
IN_CLEAR = (
    "originals travel to the cluster without encryption: set spark.authenticate and "
    "spark.network.crypto.enabled in spark-defaults.conf"
)


def on_spark(master: Any = None, workers: int = 1) -> Executor:
    """An executor for ``sanitize_file``: a master's address, a session, or this machine's cores.

    A task that is lost is done again by Spark; one result of it is taken.
    """

    def execute(sanitizer: Sanitizer, blocks: Iterable[Block], first: int) -> Iterator[Step]:
        with _session(master, workers) as session:
            yield from _through(session, Job(sanitizer), blocks, first)

    return execute


def sanitize_dataframe(sanitizer: Sanitizer, frame: Any, row: str | None = None) -> Any:
    """A Spark DataFrame with new texts in the columns of the sanitizer.

    ``row`` names a column of row numbers, each once: a seed needs it. Without a seed, Spark draws
    anew each time that it computes the result: write that once, and go on from what was written.
    """
    if sanitizer.obfuscator.rng is not None and row is None:
        raise UsageError("a seed goes by row numbers: name the column that holds them, row=…")
    for column in (*sanitizer.columns, *(() if row is None else (row,))):
        if frame.columns.count(column) != 1:
            raise UsageError("the DataFrame lacks a column that was asked for, or has it twice")
    return frame.mapInArrow(partial(_batches, Job(sanitizer), row), frame.schema)


def _batches(
    job: Job, row: str | None, batches: Iterator[pyarrow.RecordBatch]
) -> Iterator[pyarrow.RecordBatch]:
    for batch in batches:
        yield from _batch(job.sanitizer(), row, batch)


def _batch(
    sanitizer: Sanitizer, row: str | None, batch: pyarrow.RecordBatch
) -> list[pyarrow.RecordBatch]:
    try:
        if row is None:
            return [sanitizer.batch(batch, 0)[0]]
        runs = in_runs(batch.column(row).to_pylist())
        return [sanitizer.batch(batch.slice(at, size), first)[0] for first, at, size in runs]
    except SottovoceError:
        raise
    except Exception as error:
        raise SottovoceError(
            f"a batch failed ({type(error).__name__}); nothing of it was released"
        ) from None


def _through(session: Any, job: Job, blocks: Iterable[Block], first: int) -> Iterator[Step]:
    """As many blocks in a Spark job as there are cores, and two such jobs at a time."""
    cores = max(1, session.sparkContext.defaultParallelism)
    rows = numbered(blocks, first)
    pool = ThreadPoolExecutor(JOBS_AT_A_TIME)

    def begun() -> Iterator[tuple[list[Block], Future[list[bytes]]]]:
        while group := list(islice(rows, cores)):
            tasks = [Rows.of(block.texts, row) for row, block in group]
            yield [block for _, block in group], pool.submit(_answers, session, job, tasks)

    try:
        for group, future in ahead(begun(), lambda: JOBS_AT_A_TIME):
            for block, answer in zip(group, future.result(), strict=True):
                yield block, *done(answer, block.rows)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _answers(session: Any, job: Job, tasks: list[Rows]) -> list[bytes]:
    """One Spark job: each block is a row of a DataFrame, and alone in its partition."""
    data = [(number, rows.first, bytearray(rows.content)) for number, rows in enumerate(tasks)]
    try:
        frame = session.createDataFrame(data, "number long, first long, content binary")
        results = frame.mapInArrow(partial(_run, job), "number long, answer binary").collect()
    except Exception as error:
        raise SottovoceError(
            f"the Spark cluster failed ({type(error).__name__}): see that its Python "
            "(PYSPARK_PYTHON) has sottovoce and pyarrow on every worker"
        ) from None
    answers = {result["number"]: bytes(result["answer"]) for result in results}
    return [answers[number] for number in range(len(tasks))]


def _run(job: Job, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    pa = load_pyarrow()
    for batch in batches:
        number, first, content = (batch.column(i).to_pylist() for i in range(3))
        answers = [job(Rows(*rows)) for rows in zip(first, content, strict=True)]
        yield pa.RecordBatch.from_arrays(
            [pa.array(number, pa.int64()), pa.array(answers, pa.binary())], ["number", "answer"]
        )


@contextmanager
def _session(master: Any, workers: int) -> Iterator[Any]:
    sql = _load()
    if isinstance(master, sql.SparkSession):
        yield master
        return
    builder = sql.SparkSession.builder.appName("sottovoce").master(master or f"local[{workers}]")
    local = master is None or master.startswith("local")
    if local:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.config("spark.authenticate", "true")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    try:
        session = builder.getOrCreate()
    except Exception as error:
        raise SottovoceError(
            f"Spark does not start ({type(error).__name__}): it needs Java 17, and the address of "
            "a master, as spark://HOST:7077"
        ) from None
    try:
        if not local and not any(session.conf.get(name, "") == "true" for name in ENCRYPTION):
            warnings.warn(IN_CLEAR, PrivacyWarning, stacklevel=2)
        yield session
    finally:
        session.stop()


def _load() -> Any:
    return need("pyspark.sql", "spark", "--on spark needs PySpark")
