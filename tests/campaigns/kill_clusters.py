"""A process with a cluster, Dask or Spark, whose workers are killed while they sanitise a file.

Each line that it reads is a seed and a new folder: the file is sanitised there, workers are killed
meanwhile, and a line says what came of it. It is started by ``cluster``.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from cluster_data import make_space, sanitizer, write_rows
from killing import start

from sottovoce.errors import SottovoceError
from sottovoce.integrations import on_dask, on_spark
from sottovoce.sanitizing import open_source, sanitize_file, sources
from sottovoce.sanitizing.executor import Executor

MOST_KILLS, CHANCE = 4, 0.25
"""In one run, and after each block."""
ATTEMPTS = 6
"""At one run: a cluster may be lost with all its workers."""


@dataclass(frozen=True)
class Cluster:
    """A cluster of this machine."""

    name: str
    executor: Callable[[], Executor]
    workers: Callable[[], list[int]]
    """Their process numbers."""
    wait: Callable[[], None]
    """Until there is a worker again."""


@contextmanager
def on_dask_cluster(folder: Path) -> Iterator[Cluster]:
    """Two workers, which Dask starts again."""
    import distributed

    from sottovoce.integrations import dask

    dask.SECONDS_TO_LOOK, dask.SECONDS_WITHOUT_WORKERS = 2.0, 20.0
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            local_directory=folder,
            memory_limit=0,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):

        def wait() -> None:
            if not client.nthreads():
                cluster.scale(0)
                cluster.scale(2)
            client.wait_for_workers(1, timeout=120)

        def workers() -> list[int]:
            return list(client.run(os.getpid).values())

        yield Cluster("Dask", lambda: on_dask(client), workers, wait)


@contextmanager
def on_spark_cluster(folder: Path) -> Iterator[Cluster]:
    """Two cores of this machine; a task is tried four times, as on a real cluster."""
    from sottovoce.integrations import spark

    settings = {**spark.SETTINGS, "spark.log.level": "OFF", "spark.local.dir": str(folder)}
    spark.SETTINGS.update(settings)

    def workers() -> list[int]:
        numbers = []
        for line in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                number = int(line.parent.name)
                if b"pyspark.daemon" in line.read_bytes() and _ancestor(number) == os.getpid():
                    numbers.append(number)
        return numbers

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with spark._session("local[2,4]", 2) as session:
            yield Cluster("Spark", lambda: on_spark(session), workers, lambda: None)


def _ancestor(number: int) -> int:
    """This process, if the other one descends from it, else the first of all."""
    while number > 1 and number != os.getpid():
        stat = Path(f"/proc/{number}/stat").read_text()
        number = int(stat.rsplit(")", 1)[1].split()[1])
    return number


CLUSTERS = {"dask": on_dask_cluster, "spark": on_spark_cluster}
PACKAGES = {"dask": "distributed", "spark": "pyspark"}
NAMES = {"dask": "Dask", "spark": "Spark"}


def serve(kind: str, folder: Path) -> None:
    """Do a run for each line, and say what came of it."""
    sources.ROWS_AT_A_TIME = 50
    space, source = make_space(folder / "space"), write_rows(folder / "in.csv", 1500)

    def run(out: Path, **options: object) -> bytes:
        data = open_source(source, ("text",))
        sanitize_file(sanitizer(space), data, out, resume=True, **options)  # type: ignore[arg-type]
        return out.read_bytes()

    whole = run(folder / "whole.csv")
    with CLUSTERS[kind](folder) as cluster:
        for line in sys.stdin:
            seed, _, place = line.strip().partition(" ")
            Path(place).mkdir()
            answer = _killed(cluster, run, Path(place), int(seed), whole)
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


def _killed(
    cluster: Cluster, run: Callable[..., bytes], place: Path, seed: int, whole: bytes
) -> dict[str, object]:
    draw, kills, findings, lost = random.Random(seed), [], [], 0

    def progress(*_: object) -> None:
        if len(kills) < MOST_KILLS and draw.random() < CHANCE:
            numbers = sorted(set(cluster.workers()).difference(kills))
            if numbers:
                kills.append(draw.choice(numbers))
                os.kill(kills[-1], signal.SIGKILL)
                cluster.wait()

    for _ in range(ATTEMPTS):
        try:
            out = run(place / "out.csv", executor=cluster.executor(), progress=progress)
        except SottovoceError:
            lost += 1
            cluster.wait()
        else:
            if out != whole:
                findings.append(f"{cluster.name}: another output than undisturbed")
            break
    else:
        findings.append(f"{cluster.name}: it could not be gone on with")
    return {"kills": len(kills), "lost": lost, "findings": findings}


@contextmanager
def cluster(kind: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process with such a cluster."""
    (folder / kind).mkdir()
    # Workers import the program anew, so it must be a file.
    code = "import runpy, sys; sys.argv[:] = sys.argv[1:]; "
    code += "runpy.run_path(sys.argv[0], run_name='__main__')"
    process = start(code, __file__, kind, folder / kind)
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(30)
        process.kill()
        process.wait()


if __name__ == "__main__":
    # Nobody reads what a cluster says of its killed workers.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    serve(sys.argv[1], Path(sys.argv[2]))
