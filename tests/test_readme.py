"""What the README and the documentation show is run, or at least exists."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PRINTS_AS_THE_COMMAND_DOES = ("examples/demo.py", "sottovoce.cli.search")
FRONTS = ("sottovoce", "privacy", "evaluation", "engines", "experiments", "language", "prompts")


def blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


def shown_imports():
    """Every import from sottovoce that a reader sees: (where, module, name)."""
    sources = [(page, block) for page in PAGES for block in blocks(page)]
    sources += [(path, path.read_text()) for path in (ROOT / "examples").rglob("*.py")]
    for path, source in sources:
        where = str(path.relative_to(ROOT))
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "sottovoce":
                yield from ((where, node.module, alias.name) for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from ((where, a.name, None) for a in node.names if "sottovoce" in a.name)


@pytest.mark.parametrize("page", ["README.md", "docs/texts.md"])
def test_python_examples_run(page, default_space):
    assert blocks(ROOT / page)
    for block in blocks(ROOT / page):
        exec(compile(block, page, "exec"), {})


def test_documentation_imports_from_the_front_doors_and_only_what_is_there():
    seen = list(shown_imports())
    assert len(seen) > 30
    for where, module, name in seen:
        front = (
            module.removeprefix("sottovoce.integrations.").count(".") <= 1
            or (where, module) == PRINTS_AS_THE_COMMAND_DOES
        )
        assert front, f"{where} shows {module}: offer {name} in a package of sottovoce"
        package = import_module(module)
        assert name is None or hasattr(package, name), f"{where}: {module} has no {name}"


@pytest.mark.parametrize("front", FRONTS)
def test_what_a_front_door_offers_is_there_and_hidden_by_no_module(front):
    package = import_module(front if front == "sottovoce" else f"sottovoce.{front}")
    modules = {path.stem for path in Path(package.__file__).parent.iterdir()}
    for name in package.__all__:
        assert not isinstance(getattr(package, name), ModuleType)
        assert name not in modules, f"importing the module {name} would hide what is offered"
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        package.nonsense  # noqa: B018


def test_the_links_of_the_documentation_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
