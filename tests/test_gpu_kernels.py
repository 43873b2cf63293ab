"""The kernels of the GPU without one: in Triton's interpreter, where torch and Triton are there."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from gpu_cases import keystream

RFC_8439 = """
    e4e7f110 15593bd1 1fdd0f50 c47120a3 c7f4d1c7 0368c033 9aaa2204 4e6cd4c3
    466482d2 09aa9f07 05d7c214 a2028bd9 d19c12b5 b94e16de e883d0cb 4e3c50a2
"""
"""The block of section 2.3.2."""


def test_the_reference_is_chacha20():
    block = keystream(bytes(range(32)), (0x09000000, 0x4A000000, 0), 1, first=1)[0]
    assert [f"{word:08x}" for word in block] == RFC_8439.split()


def test_the_reference_is_that_of_another_implementation():
    ciphers = pytest.importorskip("cryptography.hazmat.primitives.ciphers")
    key, nonce = np.random.default_rng(8).bytes(32), (7, 0x12345678, 0xFFFFFFFF)
    counter_and_nonce = np.array([0, *nonce], dtype="<u4").tobytes()
    cipher = ciphers.Cipher(ciphers.algorithms.ChaCha20(key, counter_and_nonce), mode=None)
    stream = cipher.encryptor().update(bytes(64 * 20))
    expected = np.frombuffer(stream, dtype="<u4").reshape(20, 16)
    assert np.array_equal(keystream(key, nonce, 20), expected)


@pytest.mark.slow
def test_the_kernels_in_the_interpreter():
    for package in ("torch", "triton"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed (extra gpu)")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            # Numpy warns of how the interpreter reads numbers, and of inf - inf behind masks.
            *("-W", "ignore::DeprecationWarning", "-W", "ignore::RuntimeWarning"),
            "interpreted_kernels.py",
        ],
        cwd=Path(__file__).parent,
        env={**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    if "SKIPPED" in done.stdout:
        pytest.skip(done.stdout.strip().splitlines()[-1])
