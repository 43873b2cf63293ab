"""What a file may hold after a power cut, for tests: an earlier part that is whole, a torn one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def every_offset(before: bytes, last: bytes) -> Iterator[bytes]:
    """The last part cut off at every byte, alone or followed by zeros or noise."""
    rng = np.random.default_rng(1)
    for place in range(len(last) + 1):
        rest = len(last) - place
        for tail in (b"", bytes(rest), rng.bytes(rest)):
            yield before + last[:place] + tail
