"""Kernels that may not run: another card, another Triton. Then something slower does their work.

A GPU is used without being asked for, so what it cannot compile must not end a command.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

from sottovoce.errors import need

Answer = TypeVar("Answer")


def if_it_runs(launch: Callable[[], Answer], kernel: str, instead: str) -> Answer | None:
    """What ``launch`` answers; None, with a warning, where its kernels do not compile or start.

    The caller remembers a None and does not try again. Too little memory is another matter.
    """
    torch = need("torch", "gpu")
    try:
        return launch()
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        # Its kind alone: a compiler's message is long, and an exception may hold what it was given.
        warnings.warn(
            f"{kernel} does not run on this GPU ({type(error).__name__}): {instead}, more slowly",
            stacklevel=2,
        )
        return None
