"""The versions of what computes."""

from __future__ import annotations

import platform
from functools import cache
from importlib import metadata

PACKAGES = (
    *("sottovoce", "numpy", "scipy", "pyarrow", "ir_measures", "ir_datasets", "onnxruntime"),
    *("scikit-learn", "nltk", "torch", "wordllama"),
)


@cache
def versions() -> dict[str, str]:
    """The versions of Python and our packages; those that are not here are left out."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
