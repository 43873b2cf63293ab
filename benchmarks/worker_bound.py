"""Takes turns with nothing but float32 matrix products: what the machine could do at best.

An exact nearest word by brute force costs 2 V d floating point operations, so the rate of
those operations, in products large enough to run at full speed, bounds the words a second.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np
from threadpoolctl import threadpool_info
from turns import Loaded, Piece, Task, serve, workloads_of

SIDE = 3072


def bring_in(task: Task) -> ModuleType:  # noqa: ARG001
    """Nothing but numpy, which is here already."""
    return np


def load(task: Task, module: ModuleType) -> Loaded:  # noqa: ARG001
    """Two square matrices and room for their product."""
    facts = task.facts()
    rng = np.random.default_rng(1)
    left, right = (rng.standard_normal((SIDE, SIDE), dtype=np.float32) for _ in range(2))
    product = np.empty_like(left)
    words = SIDE**3 / (facts["size"] * facts["dimension"])

    def multiply() -> Piece:
        np.matmul(left, right, out=product)
        return Piece(words)

    return Loaded(dict.fromkeys(workloads_of(task.mechanism), multiply), about={"BLAS": _blas()})


def _blas() -> str:
    libraries = [found for found in threadpool_info() if found["user_api"] == "blas"]
    return ", ".join(
        " ".join(str(found[key]) for key in ("internal_api", "version", "architecture"))
        for found in libraries
    )


if __name__ == "__main__":
    serve(bring_in, load, "numpy")
