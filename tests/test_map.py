"""The map: which room imports which (``rooms.toml``), no circle anywhere, no room left out."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "sottovoce"
MAP = tomllib.loads((ROOT / "rooms.toml").read_text(encoding="utf-8"))
SERVICES: list[str] = MAP["services"]
ROOMS: dict[str, list[str]] = MAP["rooms"]
ENTRANCES = {"sottovoce", "__main__"}
"""The package's own names, and ``python -m sottovoce``: they may name any room."""
VERSION = "__version__"


def modules() -> dict[str, Path]:
    """Every module of the package and its file."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def imports(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules of the package that a file imports: anywhere, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sottovoce":
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                yield module if module in known or alias.name == VERSION else str(node.module)


def room(module: str) -> str:
    """The room or service that a module belongs to."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    known = modules()
    return {module: set(imports(path, known)) - {module} for module, path in known.items()}


@pytest.fixture(scope="module")
def room_graph(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    rooms: dict[str, set[str]] = {}
    for module, imported in graph.items():
        rooms.setdefault(room(module), set()).update(map(room, imported))
    return {name: used - {name, VERSION} for name, used in rooms.items()}


def test_every_room_and_service_is_on_the_map(room_graph: dict[str, set[str]]) -> None:
    assert set(room_graph) - ENTRANCES == {*SERVICES, *ROOMS}


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_imports_what_the_map_allows(name: str, room_graph: dict[str, set[str]]) -> None:
    assert room_graph[name] - set(SERVICES) == set(ROOMS[name])


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_knows_no_room(name: str, room_graph: dict[str, set[str]]) -> None:
    assert room_graph[name] <= set(SERVICES[: SERVICES.index(name)])


def test_there_is_no_circle(graph: dict[str, set[str]], room_graph: dict[str, set[str]]) -> None:
    for edges in (graph, room_graph, ROOMS):
        TopologicalSorter(edges).prepare()


def test_the_contributors_map_names_every_room() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [
        name
        for name in (*ROOMS, *SERVICES)
        if f"{name}/`" not in guide and f"{name}.py`" not in guide
    ] == []
