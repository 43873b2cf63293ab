"""What the README and the documentation show is run, and where their links lead, is something."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
import warnings
from importlib import import_module
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest
import typer.main
from command_line import run_command
from doc_pages import ROOT, Block, Command, Page, anchors, read_pages
from doc_samples import write_samples

from sottovoce.cli import app
from sottovoce.errors import PrivacyWarning
from sottovoce.extras import EXTRAS
from sottovoce.paths import cache_folder

PAGES = {page.name: page for page in read_pages()}
PRINTS_AS_THE_COMMAND_DOES = ("examples/demo.py", "sottovoce.cli.search")
FRONTS = ("sottovoce", "privacy", "evaluation", "engines", "experiments", "language", "search")
FRONTS += ("integrations", "ledger", "prompts", "testing")
PLAIN_PROGRAMS = ("cat", "cut", "echo", "head", "ls", "printf", "sort", "wc")
"""Commands of others that examples may use, and tests run."""


def runs(page: Page, block: Block) -> bool:
    """Whether a block is run here."""
    if block.not_run is not None:
        return False
    return block.language == "python" or (block.language == "console" and page.leads_by_the_hand)


RUNNING = sorted(
    name for name, page in PAGES.items() if any(runs(page, block) for block in page.blocks)
)


def new_home(folder: Path) -> Path:
    """A home that has the user's word spaces, and to which more can be added."""
    (folder / "spaces").mkdir(parents=True)
    paths = [cache_folder() / name for name in ("embeddings", "strong", "wordnet")]
    for path in [*cache_folder().glob("spaces/[!.]*"), *paths]:
        if path.is_dir():
            (folder / path.relative_to(cache_folder())).symlink_to(path)
    return folder


def run_line(command: Command, folder: Path, home: Path, piped: bytes) -> bytes:
    """What a command prints, in that folder."""
    stdin = (folder / command.stdin).read_bytes() if command.stdin else piped
    program, *arguments = command.arguments
    if program == "sottovoce":
        done = run_command(*arguments, home=home, stdin=stdin, folder=folder)
    else:
        assert program in PLAIN_PROGRAMS, f"{program}: say '<!-- not run: why -->' before the block"
        done = subprocess.run(command.arguments, cwd=folder, input=stdin, capture_output=True)
    assert done.returncode == 0, (command, done.stderr.decode())
    if command.stdout:
        (folder / command.stdout).write_bytes(done.stdout)
    return done.stdout


@pytest.mark.parametrize("name", RUNNING)
def test_the_code_of_a_page_runs(name, default_space, tmp_path, monkeypatch):
    """In the order of the page, in one folder; its Python as one module."""
    home, folder = new_home(tmp_path / "home"), tmp_path / "here"
    folder.mkdir()
    write_samples(folder)
    monkeypatch.setenv("SOTTOVOCE_HOME", str(home))
    monkeypatch.chdir(folder)
    page_module = ModuleType("documentation_page")
    monkeypatch.setitem(sys.modules, page_module.__name__, page_module)
    for block in PAGES[name].blocks:
        if block.title is not None:
            (folder / block.title).parent.mkdir(exist_ok=True)
            (folder / block.title).write_text(block.code, encoding="utf-8")
        elif not runs(PAGES[name], block):
            continue
        elif block.language == "python":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PrivacyWarning)
                try:
                    where = f"{name}, line {block.line}"
                    exec(compile(block.code, where, "exec", dont_inherit=True), vars(page_module))
                except ModuleNotFoundError as error:
                    pytest.skip(f"{name} needs {error.name}")
        else:
            printed = b""
            for command in block.commands:
                printed = run_line(command, folder, home, printed if command.piped else b"")


DONE_AT_ONCE = {"--help", "-h", "--version", "--show-completion", "--install-completion"}
"""Options that act while they are read."""
COMMAND_LINE = typer.main.get_command(app)


def parse(arguments: tuple[str, ...]) -> None:
    """Let the command line read what was typed, and do nothing."""
    command, name, context, rest = COMMAND_LINE, "sottovoce", None, list(arguments)
    while hasattr(command, "resolve_command"):
        context = command.make_context(name, rest, parent=context)
        rest = [*context._protected_args, *context.args]
        name, command, rest = command.resolve_command(context, rest)
    command.make_context(name, rest, parent=context)


def typed() -> list[tuple[str, int, tuple[str, ...]]]:
    """Every command of ours that a reader sees: (page, line, arguments)."""
    return [
        (page.name, block.line, command.arguments[1:])
        for page in PAGES.values()
        for block in page.blocks
        for command in block.commands
        if command.arguments[0] == "sottovoce"
    ]


def test_every_command_of_the_documentation_is_one():
    shown = [(page, line, arguments) for page, line, arguments in typed() if arguments]
    assert len(shown) > 100
    for page, line, arguments in shown:
        if set(arguments) & DONE_AT_ONCE:
            continue
        try:
            parse(arguments)
        except Exception as error:
            pytest.fail(f"{page}, line {line}: {' '.join(arguments)}: {error}")


def test_a_wrong_option_would_be_noticed():
    for wrong in (("search", "x", "--epsilom", "3"), ("spaces", "ad", "x"), ("search",)):
        with pytest.raises(Exception, match=r"(?i)no such|missing"):
            parse(wrong)


def shown_imports():
    """Every import from sottovoce that a reader sees: (where, module, name)."""
    sources = [
        (page.name, block.code)
        for page in PAGES.values()
        for block in page.blocks
        if block.language == "python" and not page.name.startswith("replication/")
    ]
    examples = (ROOT / "examples").rglob("*.py")
    sources += [(path.relative_to(ROOT).as_posix(), path.read_text()) for path in examples]
    for where, source in sources:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "sottovoce":
                yield from ((where, node.module, alias.name) for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from ((where, a.name, None) for a in node.names if "sottovoce" in a.name)


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


@pytest.mark.parametrize("name", PAGES)
def test_the_links_of_a_page_lead_somewhere(name):
    page = PAGES[name]
    for link in page.links:
        path, _, anchor = unquote(link).partition("#")
        target = (page.path.parent / path).resolve() if path else page.path
        assert target.is_file(), f"{name} links to {link}, which is no file"
        if anchor and target.suffix == ".md":
            known = anchors(PAGES[target.relative_to(ROOT).as_posix()])
            assert anchor in known, f"{name} links to {link}: no such heading"


def listed_pages(entry: object) -> list[str]:
    """The pages of a part of the site's navigation."""
    if isinstance(entry, str):
        return [entry]
    parts = entry.values() if isinstance(entry, dict) else entry
    return [page for part in parts for page in listed_pages(part)]


def test_the_navigation_of_the_site_has_every_page_once():
    nav = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    listed = listed_pages(nav)
    assert len(listed) == len(set(listed))
    pages = {name.removeprefix("docs/") for name in PAGES if name != "README.md"}
    assert set(listed) == pages


def test_the_table_of_extras_is_that_of_the_package():
    page = PAGES["docs/install.md"].text
    assert "".join(f"| `{name}` | {brings} |\n" for name, brings in EXTRAS.items()) in page


def test_the_pages_of_the_mechanisms_are_what_the_tool_writes(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    pages = import_module("mechanism_pages").pages()
    assert len(pages) > 30
    for path, content in pages.items():
        assert path.is_file(), f"python tools/mechanism_pages.py would write {path.name}"
        assert path.read_text(encoding="utf-8") == content, f"{path.name}: run the tool again"
    made = {*(ROOT / "docs/mechanisms").iterdir(), *(ROOT / "docs/figures/mechanisms").iterdir()}
    assert made == set(pages)


def test_a_broken_link_of_the_site_would_be_noticed(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT / "tools")
    broken_links = import_module("build_site").broken_links
    (tmp_path / "other.html").write_text('<h1 id="here">Here</h1>')
    page = tmp_path / "page.html"
    page.write_text(
        '<a href="other.html#here">good</a> <a href="https://elsewhere.example">far</a>'
    )
    assert broken_links(tmp_path) == []
    page.write_text('<a href="other.html#there">anchor</a> <img src="none.png">')
    assert broken_links(tmp_path) == [
        "page.html: none.png leads nowhere",
        "page.html: other.html#there: no such anchor",
    ]
