"""Sanitizing on a Dask cluster: one task a block of rows, a bounded number of tasks in flight."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from sottovoce.errors import PrivacyWarning, SottovoceError, need
from sottovoce.integrations.jobs import Job, Rows, done
from sottovoce.sanitizing.executor import Executor, Step, ahead, numbered
from sottovoce.sanitizing.sanitizer import Sanitizer
from sottovoce.sanitizing.sources import Block

TASKS_PER_THREAD = 2
SECONDS_TO_CONNECT = 15
SECONDS_TO_LOOK, SECONDS_WITHOUT_WORKERS = 5.0, 60.0
"""How often it is looked whether a cluster still has workers, and how long it may have none."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
ENCRYPTED = ("tls", "wss", "inproc")
IN_CLEAR = (
    "originals travel to the cluster without encryption: use a scheduler at tls://, with "
    "certificates in Dask's configuration"
)


def on_dask(scheduler: Any = None, workers: int = 1) -> Executor:
    """An executor for ``sanitize_file``: a cluster's address or client, or a local cluster.

    A task whose worker dies is done again by another one; one result of it is taken.
    """

    def execute(sanitizer: Sanitizer, blocks: Iterable[Block], first: int) -> Iterator[Step]:
        if isinstance(scheduler, str):
            _warn_if_in_clear(scheduler)
        with dask_client(scheduler, workers) as client:
            yield from _through(client, Job(sanitizer), blocks, first)

    return execute


def _through(client: Any, job: Job, blocks: Iterable[Block], first: int) -> Iterator[Step]:
    run = secrets.token_hex(8)  # Dask would name a task by a hash of its text.
    with by_kind():
        _check_workers(client, job)
        shared = client.submit(_same, job, key=f"sanitizer-{run}")

    def begun() -> Iterator[tuple[Block, Any]]:
        for number, (row, block) in enumerate(numbered(blocks, first)):
            rows = Rows.of(block.texts, row)
            with by_kind():
                future = client.submit(_run, shared, rows, key=f"sanitize-{run}-{number}")
            yield block, future

    def window() -> int:
        return TASKS_PER_THREAD * int(sum(client.nthreads().values()))

    for block, future in ahead(begun(), window):
        with by_kind():
            answer = patiently(client, partial(result_of, future))
        yield block, *done(answer, block.rows)


def result_of(future: Any, seconds: float) -> Any:
    """The result of a task, if it comes in time."""
    return future.result(timeout=seconds)


def patiently(client: Any, attempt: Callable[[float], Any]) -> Any:
    """Call what waits for a cluster, with the seconds that it may wait, until it has an answer.

    Dask would wait for ever when all workers are gone; here that is an error.
    """
    alone_since = None
    while True:
        try:
            return attempt(SECONDS_TO_LOOK)
        except TimeoutError:
            if client.nthreads():
                alone_since = None
                continue
        alone_since = alone_since or time.monotonic()
        if time.monotonic() - alone_since > SECONDS_WITHOUT_WORKERS:
            raise SottovoceError(
                "the Dask cluster has lost its workers, and got no others: see why they died, and "
                "start some; what is done is kept"
            )


def _check_workers(client: Any, job: Job) -> None:
    """Before any text leaves: every worker has the same sottovoce, and the space.

    The scheduler unpacks tasks too, and needs the package.
    """
    client.wait_for_workers(1, timeout=SECONDS_TO_CONNECT)
    client.run_on_scheduler(_same, job)
    for reason in client.run(job.ready).values():
        if reason:
            raise SottovoceError(f"a worker is not ready, and no text was sent: {reason}")


def _same(job: Job) -> Job:
    return job


def _run(job: Job, rows: Rows) -> bytes:
    return job(rows)


@contextmanager
def dask_client(scheduler: Any, workers: int) -> Iterator[Any]:
    """A client: of the cluster at an address, of a new local cluster (None), or the one given."""
    distributed = load_distributed()
    if isinstance(scheduler, distributed.Client):
        yield scheduler
    elif scheduler is None:
        with _local_cluster(distributed, workers) as client:
            yield client
    else:
        try:
            asyncio.run(_connect(distributed, scheduler))
        except Exception as error:
            raise SottovoceError(
                f"no Dask scheduler answers at that address ({type(error).__name__}): start one "
                "with 'dask scheduler', and give the address that it prints"
            ) from None
        with distributed.Client(scheduler, set_as_default=False) as client:
            yield client


async def _connect(distributed: Any, address: str) -> None:
    """See that somebody answers: a client that cannot connect keeps trying, and complains."""
    options = distributed.Security().get_connection_args("client")
    made = await distributed.comm.connect(address, timeout=SECONDS_TO_CONNECT, **options)
    made.abort()


@contextmanager
def _local_cluster(distributed: Any, workers: int) -> Iterator[Any]:
    """Worker processes on this machine; other users of it can neither connect nor read."""
    with (
        tempfile.TemporaryDirectory(prefix="sottovoce-") as folder,
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            security=distributed.Security.temporary(),
            dashboard_address="127.0.0.1:0",
            memory_limit=0,
            local_directory=folder,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def load_distributed() -> Any:
    """Import Dask's package, or say what to install."""
    why = "--on dask needs Dask"
    need("cryptography", "dask", why)  # The local cluster makes its certificates with it.
    return need("distributed", "dask", why)


def _warn_if_in_clear(address: str) -> None:
    place = urlsplit(address if "://" in address else f"tcp://{address}")
    if place.scheme not in ENCRYPTED and place.hostname not in LOOPBACK:
        warnings.warn(IN_CLEAR, PrivacyWarning, stacklevel=2)


@contextmanager
def by_kind() -> Iterator[None]:
    """Replace an error of the cluster by its kind: its message could hold text."""
    try:
        yield
    except SottovoceError:
        raise
    except Exception as error:
        raise SottovoceError(
            f"the Dask cluster failed ({type(error).__name__}): see that it has workers, with "
            "enough memory, and that sottovoce is installed there and beside the scheduler"
        ) from None
