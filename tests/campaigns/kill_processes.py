"""Processes of the kill campaign: forked children, and one with a Dask cluster."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from killing import start


def forked(function: Callable[[Path, int], None], place: Path, who: int) -> int:
    """Call a function in a child; its number."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        function(place, who)
        status = 0
    except BaseException as error:
        message = f"{type(error).__name__}: {str(error)[:200]}"
        Path(f"{place}.{os.getpid()}.error").write_text(message)
    finally:
        os._exit(status)


def told(place: Path, child: int) -> str:
    """What a child said when it failed."""
    file = Path(f"{place}.{child}.error")
    return f" ({file.read_text()})" if file.exists() else ""


DASK = """
import json, os, random, signal, sys, threading, time
from pathlib import Path
from cluster_data import make_space, sanitizer, write_rows
import distributed
from sottovoce.errors import SottovoceError
from sottovoce.integrations import dask, on_dask
from sottovoce.sanitizing import open_source, sanitize_file, sources

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    sources.ROWS_AT_A_TIME = 50
    dask.SECONDS_TO_LOOK, dask.SECONDS_WITHOUT_WORKERS = 2.0, 20.0
    space, source = make_space(folder / "space"), write_rows(folder / "in.csv", 1500)
    def run(out, **options):
        data = open_source(source, ("text",))
        sanitize_file(sanitizer(space), data, out, resume=True, **options)
        return out.read_bytes()
    whole = run(folder / "whole.csv")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0",
                                 local_directory=folder, memory_limit=0) as cluster,
        distributed.Client(cluster) as client,
    ):
        for line in sys.stdin:
            seed, _, place = line.strip().partition(" ")
            draw, kills, findings, lost = random.Random(int(seed)), [], [], 0
            place = Path(place)
            place.mkdir()
            def progress(done, _):
                if len(kills) < 4 and draw.random() < 0.25:
                    numbers = [number for number in client.run(os.getpid).values()
                               if number not in kills]
                    if numbers:
                        victim = draw.choice(numbers)
                        kills.append(victim)
                        os.kill(victim, signal.SIGKILL)
                        client.wait_for_workers(1, timeout=60)
            for attempt in range(6):
                try:
                    out = run(place / "out.csv", executor=on_dask(client), progress=progress)
                    break
                except SottovoceError:
                    lost += 1
                    if not client.nthreads():
                        cluster.scale(0)
                        cluster.scale(2)
                    client.wait_for_workers(1, timeout=120)
            else:
                findings.append("Dask: it could not be gone on with")
            if not findings and out != whole:
                findings.append("Dask: another output than undisturbed")
            print(json.dumps({"kills": len(kills), "lost": lost, "findings": findings}), flush=True)
"""


@contextmanager
def cluster(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process with a Dask cluster, which does a run for each line."""
    (folder / "dask").mkdir()
    script = folder / "dask" / "campaign_dask.py"
    script.write_text(DASK)
    process = start(
        "import runpy, sys; sys.argv[:] = sys.argv[1:]; runpy.run_path(sys.argv[0], "
        "run_name='__main__')",
        script,
        folder / "dask",
    )
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(30)
        process.kill()
        process.wait()
