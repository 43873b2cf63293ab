"""Threads: BLAS adds none of its own while ours are at work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

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

INTERRUPTED = """
import random, signal, sys, time
from contextlib import suppress
from sottovoce.threads import parallel_map, set_threads

def interrupt(*_):
    raise KeyboardInterrupt

set_threads(2)
signal.signal(signal.SIGALRM, interrupt)
draw, until, interrupts = random.Random(1), time.monotonic() + float(sys.argv[1]), 0
while time.monotonic() < until:
    with suppress(KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-5, 3e-4))
        while True:
            parallel_map(abs, range(4))
    interrupts += 1
    assert parallel_map(lambda item: -item, range(4)) == [0, -1, -2, -3]
print(interrupts)
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


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there is no such timer")
def test_after_ctrl_c_at_any_moment_the_pool_works():
    """With an executor of the standard library some ten thousand of them end in a hang."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, "3"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100


def test_the_first_error_is_raised_and_the_pool_goes_on():
    def work(item):
        if item % 3 == 2:
            raise ValueError(item)
        return item

    try:
        set_threads(2)
        with pytest.raises(ValueError, match=r"^2$"):
            parallel_map(work, range(20))
        assert parallel_map(work, range(2)) == [0, 1]
    finally:
        set_threads(None)


def test_threads_of_a_pool_that_nobody_has_end():
    before = set(threading.enumerate())

    def ours():
        new = set(threading.enumerate()) - before
        return sum(thread.name.startswith("sottovoce_") for thread in new)

    try:
        for count in (2, 3, 4, 5):
            set_threads(count)
            parallel_map(abs, range(4))
        until = time.monotonic() + 10
        while ours() > 5 and time.monotonic() < until:
            time.sleep(0.01)
        assert ours() == 5
    finally:
        set_threads(None)
