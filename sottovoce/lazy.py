"""Packages whose public names are imported when they are first asked for.

    __getattr__ = lazy_names(__name__, {".bm25": "BM25", ".choose": "choose_engine as engine"})

So importing a package stays cheap, whatever it offers. Type checkers do not see such names: the
package imports them a second time under ``TYPE_CHECKING``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, offers: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package that offers names of modules, written as import writes them.

    A module that begins with a dot is one of the package.
    """
    homes: dict[str, tuple[str, str]] = {}
    for module, names in offers.items():
        for written in names.split(","):
            name, _, alias = written.strip().partition(" as ")
            homes[alias or name] = module, name

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        module, attribute = homes[name]
        value = getattr(import_module(module, package), attribute)
        setattr(sys.modules[package], name, value)
        return value

    return load
