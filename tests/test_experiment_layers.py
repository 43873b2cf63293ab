"""Experiments are a pipeline: a module of the room imports what comes before it alone."""

from __future__ import annotations

import ast
from pathlib import Path

import sottovoce

FOLDER = Path(sottovoce.__file__).parent / "experiments"
ORDER = (
    *("naming", "measures", "tables"),
    *("schema.values", "schema.problems", "schema.experiment"),
    *("grid", "schema.expectations", "schema.systems", "schema.reading"),
    *("resource_cache", "fingerprints", "store"),
    *("cells.draw", "cells.search", "cells.leak", "cells.words", "cells.learn", "cells.audit"),
    *("cells.runner", "executors", "results", "estimates", "summary", "run", "check"),
    *("report.table", "report.render", "report.significance"),
    *("report.risk_tables", "report.utility_tables", "report.further_tables"),
    *("report.figures.curves", "report.figures.lines", "report.figures.planes"),
    *("report.figures.boxes", "report.figures.words"),
    *("report.figures", "report.write"),
)
ROOM = "sottovoce.experiments."


def modules() -> dict[str, Path]:
    """The modules with code, by their name in the room."""
    named = {}
    for file in FOLDER.rglob("*.py"):
        parts = file.relative_to(FOLDER).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if any(not isinstance(node, ast.Expr) for node in ast.parse(file.read_text()).body):
            named[name] = file
    named.pop("")  # The door: it offers names of all others.
    named.pop("schema")  # It asks for pydantic, and imports nothing of the room.
    return named


def imported(file: Path) -> set[str]:
    """What a module imports of the room, wherever in the file."""
    nodes = ast.walk(ast.parse(file.read_text()))
    sources = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return {source.removeprefix(ROOM) for source in sources if source.startswith(ROOM)}


def test_every_module_has_its_place():
    assert sorted(modules()) == sorted(ORDER)


def test_nothing_imports_what_comes_after_it():
    for name, file in modules().items():
        before = set(ORDER[: ORDER.index(name)])
        assert imported(file) <= before, name
