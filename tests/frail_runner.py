"""A runner whose cells are small and can be told to be slow, to fail, or to kill their process.

The mechanism of a job says what happens; ``file`` is a mark left by who did it once.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time
from pathlib import Path

import pytest

from sottovoce.errors import UsageError
from sottovoce.experiments.grid import Draw, Search, Source
from sottovoce.experiments.schema.experiment import Searching, Texts, Utility
from sottovoce.experiments.store import CellResult
from sottovoce.experiments.tables import PRIVATE, make_table

pq = pytest.importorskip("pyarrow.parquet", reason="pip install 'sottovoce[experiments]'")

SECRET = "sarcoma"


class FrailRunner:
    def __init__(self, folder):
        self.folder = Path(folder)

    def key(self, job):
        if self.folder.name.startswith("sottovoce-"):  # On a worker of a cluster.
            if job.source.mechanism == "absent there":
                raise UsageError("there is no such collection")
            if job.source.mechanism == "other there":
                return "0" * 64
        return hashlib.sha256(repr(job).encode()).hexdigest()

    def run(self, job):
        source = job.source
        if isinstance(job, Draw):
            rows = [(f"q{i}", j, f"variant {i} {j}") for i in range(3) for j in range(source.n)]
            return CellResult("variants", make_table("variants", rows), facts={"space": "a hash"})
        behave(source)
        drawn = pq.read_table(self.folder / "variants" / f"{self.key(Draw(source))}.parquet")
        assert drawn.num_rows == 3 * source.n
        setting = (source.mechanism, source.epsilon, source.release, source.n, source.seed)
        where = (source.collection, job.engine, job.reranker)
        value = int(self.key(job)[:12], 16) / 16**12
        rows = [(*where, *setting, PRIVATE, f"q{i}", "nDCG@10", value / (i + 1)) for i in range(3)]
        run = {"q0": {"d1": 2.0, "d2": 1.5}, "q1": {"d2": 0.1}}
        return CellResult("queries", make_table("queries", rows), run, {"collection": "another"})


def behave(source):
    if source.mechanism == "slow":
        time.sleep(0.2)
    if source.mechanism == "fail":
        raise UsageError("the collection has no judgments")
    if source.mechanism == "crash":
        raise ValueError(SECRET)
    if source.mechanism == "die" and not os.path.exists(source.file):
        Path(source.file).touch()
        os.kill(os.getpid(), signal.SIGKILL)


def frail_plan(*mechanisms, file=None, epsilons=(1.0, 2.5), seeds=(0, 1)):
    sources = [
        Source("demo", mechanism, epsilon, "once", 2, seed, "cmp", file and str(file), Texts())
        for mechanism in mechanisms
        for epsilon in epsilons
        for seed in seeds
    ]
    searches = [
        Search(source, "bm25", "light", Searching(), Utility(measures=("nDCG@10",)))
        for source in sources
    ]
    return [[Draw(source) for source in sources], searches]
