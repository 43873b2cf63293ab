"""Threads: BLAS adds none of its own while ours are at work."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from sottovoce.threads import parallel_map, set_threads, threads

CODE = """
import numpy
from threadpoolctl import threadpool_info

from sottovoce.threads import single_threaded_blas

with single_threaded_blas():
    pass
import scipy.linalg.blas

with single_threaded_blas():
    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
print([library["num_threads"] for library in libraries])
"""


def test_every_blas_is_held_to_one_thread_also_one_that_is_loaded_later():
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "2"},
    )
    assert set(json.loads(done.stdout)) == {1}


def test_work_inside_the_pool_is_not_split_again_and_cannot_wait_for_itself():
    def outer(item):
        return threads(), sum(parallel_map(lambda part: item * part, range(4)))

    try:
        set_threads(2)
        assert parallel_map(outer, range(8)) == [(1, 6 * item) for item in range(8)]
        assert threads() == 2
    finally:
        set_threads(None)
