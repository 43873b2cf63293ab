"""Mutation testing of what must not fail: change a line, and see whether a test notices.

    python tools/mutants.py --sample 200 --seed 1 --out results/mutants.jsonl
    python tools/mutants.py --only ledger/book --sample 0          every mutant of one file

A mutant is one small change: a comparison turned, ``and`` for ``or``, a ``not`` or a statement left
out, another number. It lives in a copy of the sources. The tests named below run against it, of
these only those that execute the changed line, until one fails. Typed again it goes on; what was
done is in the file. Exit status 1: a mutant survived that ``mutants.toml`` does not explain.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
TARGETS = {
    "search/boundary.py": ("test_boundary", "test_private_search"),
    "search/vector_boundary.py": ("test_vector_search", "test_vector_stores"),
    "obfuscation/obfuscator.py": (
        "test_obfuscation",
        "test_same_text",
        "test_chorus",
        "test_cover",
    ),
    "obfuscation/words.py": ("test_obfuscation", "test_unknown_words", "test_open_vocabulary"),
    "obfuscation/memory.py": ("test_same_text", "test_obfuscation", "test_chorus"),
    "obfuscation/chorus.py": ("test_chorus",),
    "obfuscation/vectors.py": ("test_vector_search", "test_vector_noise"),
    "ledger/book.py": ("test_ledger", "test_ledger_damage"),
    "ledger/database.py": ("test_ledger", "test_ledger_damage"),
    "ledger/entries.py": ("test_ledger", "test_ledger_damage"),
    "ledger/ledger.py": ("test_ledger", "test_ledger_damage", "test_same_text"),
    "engines/http_client.py": ("test_http_client", "test_remote_engines"),
    "engines/remote.py": ("test_remote_engines", "test_http_client"),
    "app/security.py": ("test_app_security",),
}
"""Files of the package, and the tests that answer for them."""
EXPLAINED = Path(__file__).with_name("mutants.toml")
SECONDS, TIMES_AS_LONG = 30.0, 5.0
"""How long tests may take on a mutant: so long, and so many times what they took without it."""
BASELINE = 1800.0
KILLED, TOO_LONG, SURVIVED, UNREACHED = "killed", "killed by time", "survived", "not reached"

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
}


@dataclass(frozen=True)
class Mutant:
    """One change: in which file, at which line, the how-manieth there, and what it does."""

    file: str
    line: int
    number: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """What a node may be changed to, with a word for it."""
    new: Any = copy.deepcopy(node)
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in COMPARISONS:
            new.ops = [COMPARISONS[type(operator)]()]
            yield "comparison turned", new
        case ast.BoolOp():
            new.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "and, or exchanged", new
        case ast.UnaryOp(op=ast.Not()):
            yield "not left out", new.operand
        case ast.BinOp(op=operator) if type(operator) in ARITHMETIC and not _is_text(node):
            new.op = ARITHMETIC[type(operator)]()
            yield "arithmetic changed", new
        case ast.Constant(value=bool(value)):
            new.value = not value
            yield f"{value} turned", new
        case ast.Constant(value=int(value)):
            new.value = value + 1
            yield f"{value} + 1", new
        case ast.Constant(value=float(value)):
            new.value = 2 * value + 1
            yield f"{value} made larger", new
        case ast.If() | ast.IfExp():
            new.test = ast.UnaryOp(ast.Not(), new.test)
            yield "condition turned", new
        case ast.Raise() | ast.AugAssign():
            yield f"{type(node).__name__.lower()} left out", ast.Pass()
        case ast.Expr(value=ast.Call()):
            yield "call left out", ast.Pass()
        case ast.Return(value=ast.expr()) if not _is_none(node.value):
            new.value = ast.Constant(None)
            yield "returns None", new


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        for side in sides
    )


def _is_none(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


class Places(ast.NodeTransformer):
    """Goes through a file's places in order; changes the one that is wanted, if any."""

    def __init__(self, file: str, wanted: Mutant | None = None) -> None:
        self.file, self.wanted = file, wanted
        self.mutants: list[Mutant] = []
        self._at: Counter[int] = Counter()

    def visit(self, node: ast.AST) -> ast.AST:
        """One node, then what is in it."""
        if isinstance(node, ast.keyword) and node.arg == "strict":  # Lengths that never differ.
            return node
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            return self.visit_decorators(node)
        replacement = None
        for what, new in changes(node):
            line = int(getattr(node, "lineno", 0))
            self._at[line] += 1
            mutant = Mutant(self.file, line, self._at[line], what)
            self.mutants.append(mutant)
            if mutant == self.wanted:
                replacement = ast.copy_location(new, node)
        self.generic_visit(node)
        return node if replacement is None else replacement

    def visit_decorators(self, node: Any) -> ast.AST:
        """A class or function without its decorators: they are checked by types."""
        decorators, node.decorator_list = node.decorator_list, []
        self.generic_visit(node)
        node.decorator_list = decorators
        return node


def mutants_of(file: str) -> list[Mutant]:
    """All mutants of a file of the package."""
    places = Places(file)
    places.visit(ast.parse(_source(file)))
    return places.mutants


def mutated(mutant: Mutant) -> str:
    """The source with the change."""
    tree = Places(mutant.file, mutant).visit(ast.parse(_source(mutant.file)))
    return ast.unparse(ast.fix_missing_locations(tree))


def _source(file: str) -> str:
    return (ROOT / "sottovoce" / file).read_text("utf-8")


# Tests, in a process of their own that has imported what they all need.


class Watch:
    """A plugin of pytest: which tests execute which lines of a file."""

    def __init__(self, file: Path) -> None:
        self.file = str(file)
        self.tests: dict[int, list[str]] = {}
        self.seconds: Counter[str] = Counter()
        self._lines: set[int] = set()

    def _called(self, frame: FrameType, event: str, _: Any) -> Any:
        return self._ran if frame.f_code.co_filename == self.file else None

    def _ran(self, frame: FrameType, event: str, _: Any) -> Any:
        self._lines.add(frame.f_lineno)
        return self._ran

    def pytest_runtest_setup(self, item: Any) -> None:
        """Begin to watch."""
        import threading

        self._lines = set()
        threading.settrace(self._called)
        sys.settrace(self._called)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note how long it took."""
        self.seconds[_test(report.nodeid)] += report.duration

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Note what ran."""
        sys.settrace(None)
        for line in self._lines:
            tests = self.tests.setdefault(line, [])
            if _test(nodeid) not in tests:
                tests.append(_test(nodeid))


def _test(nodeid: str) -> str:
    """The test, with all its parameters: some of these cannot be asked for by name."""
    return nodeid.partition("[")[0]


def forked(work: Any, seconds: float) -> int | None:
    """The exit status of a function in a child process; None if it took too long."""
    child = os.fork()
    if child == 0:
        os.setsid()
        quiet = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(quiet, stream)
        status = 99
        try:
            status = int(work())
        finally:
            os._exit(status)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        finished, status = os.waitpid(child, os.WNOHANG)
        if finished:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def run_tests(copied: Path, tests: Sequence[str], plugins: Sequence[Any] = ()) -> int:
    """Pytest against a copy of the sources; 0 if all passed."""
    import pytest

    os.chdir(copied)
    sys.path[:0] = [str(copied), str(copied / "tests")]
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow"]
    return int(pytest.main([*options, *tests], plugins=[*plugins]))


@dataclass
class Laboratory:
    """A copy of the sources, and for each file which test executes which line."""

    folder: Path

    def __post_init__(self) -> None:
        self._tests: dict[str, dict[int, list[str]]] = {}
        self._seconds: dict[str, float] = {}
        for name in ("sottovoce", "tests", "benchmarks", "tools", "examples", "replication"):
            shutil.copytree(
                ROOT / name, self.folder / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        for file in ("pyproject.toml", "rooms.toml", "README.md", "Makefile", "zensical.toml"):
            shutil.copy(ROOT / file, self.folder / file)

    def tests_of(self, file: str) -> dict[int, list[str]]:
        """Which tests execute each line of a file; all must pass before anything is changed."""
        if file not in self._tests:
            noted = self.folder / "lines.json"
            noted.unlink(missing_ok=True)
            watch = Watch(self.folder / "sottovoce" / file)
            names = [f"tests/{name}.py" for name in TARGETS[file]]

            def work() -> int:
                status = run_tests(self.folder, names, [watch])
                noted.write_text(json.dumps([watch.tests, watch.seconds]))
                return status

            if forked(work, BASELINE) != 0:
                raise SystemExit(f"the tests of {file} fail before anything is changed")
            lines, seconds = json.loads(noted.read_text())
            self._seconds |= seconds
            self._tests[file] = {int(line): tests for line, tests in lines.items()}
        return self._tests[file]

    def judge(self, mutant: Mutant) -> str:
        """What becomes of a mutant."""
        inside = _inside_functions(mutant.file)
        covered = self.tests_of(mutant.file)
        lines = _statement(mutant.file, mutant.line)
        tests = list(dict.fromkeys(test for line in lines for test in covered.get(line, ())))
        if mutant.line not in inside:  # It runs when the file is imported.
            tests = list(dict.fromkeys(test for ran in covered.values() for test in ran))
        if not tests:
            return UNREACHED
        tests.sort(key=lambda test: self._seconds.get(test, 0.0))
        limit = SECONDS + TIMES_AS_LONG * sum(self._seconds.get(test, 0.0) for test in tests)
        place = self.folder / "sottovoce" / mutant.file
        place.write_text(mutated(mutant), "utf-8")
        try:
            status = forked(lambda: run_tests(self.folder, tests), limit)
        finally:
            place.write_text(_source(mutant.file), "utf-8")
        return {0: SURVIVED, None: TOO_LONG}.get(status, KILLED)


def _inside_functions(file: str) -> set[int]:
    """The lines that run when something is called, rather than when the file is imported."""
    return {
        line
        for node in ast.walk(ast.parse(_source(file)))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for body in (node.body if isinstance(node.body, list) else [node.body])
        for line in range(body.lineno, (body.end_lineno or body.lineno) + 1)
    }


def _statement(file: str, line: int) -> range:
    """The lines of the smallest statement that has this line; of a block, those of its head."""
    best = range(line, line + 1)
    for node in ast.walk(ast.parse(_source(file))):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            lines = range(node.lineno, max(end, node.lineno) + 1)
            if line in lines and (line not in best or len(best) == 1 or len(lines) < len(best)):
                best = lines
    return best


def chosen(only: str, sample: int, seed: int) -> list[Mutant]:
    """Mutants of the files that hold ``only`` in their name, or a sample of them."""
    mutants = [one for file in TARGETS if only in file for one in mutants_of(file)]
    if sample and sample < len(mutants):
        mutants = random.Random(seed).sample(mutants, sample)
    order = list(TARGETS)
    return sorted(mutants, key=lambda one: (order.index(one.file), one.line, one.number))


def explanations() -> dict[str, str]:
    """Why mutants that survive do no harm, by file and line of source."""
    if not EXPLAINED.exists():
        return {}
    table = tomllib.loads(EXPLAINED.read_text("utf-8"))
    return {f"{one['file']}: {one['source']}: {one['what']}": one["why"] for one in table["mutant"]}


def key(mutant: Mutant) -> str:
    """What a mutant is known by, wherever its line has moved to."""
    line = _source(mutant.file).splitlines()[mutant.line - 1].strip()
    return f"{mutant.file}: {line}: {mutant.what}"


def report(done: dict[Mutant, str], of: int) -> int:
    """Print the share killed, and each survivor; how many are not explained."""
    why = explanations()
    print(f"{len(done)} of {of} mutants of {len(TARGETS)} files\n")
    print("| file | mutants | killed | survived | not reached |\n|---|---|---|---|---|")
    for file in (*TARGETS, "all"):
        states = Counter(state for one, state in done.items() if file in (one.file, "all"))
        if states:
            dead = states[KILLED] + states[TOO_LONG]
            counts = [states.total(), dead, states[SURVIVED], states[UNREACHED]]
            print(f"| {file} | {' | '.join(map(str, counts))} |")
    unexplained = 0
    for one, state in done.items():
        if state in (SURVIVED, UNREACHED):
            reason = why.get(key(one))
            unexplained += reason is None
            print(
                f"\n{one} ({state}; {reason or 'NOT EXPLAINED'})\n    {key(one).split(': ', 1)[1]}"
            )
    return unexplained


def main() -> int:
    """Go on where the last run stopped; 1 if a survivor is not explained."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sample", type=int, default=200, help="so many mutants; 0 for all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="files whose name holds this")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--out", type=Path, default=Path("results/mutants.jsonl"))
    options = parser.parse_args()
    sys.dont_write_bytecode = True
    import numpy  # noqa: F401 - imported once, here, for all tests
    import pytest  # noqa: F401
    import scipy.stats  # noqa: F401

    options.out.parent.mkdir(parents=True, exist_ok=True)
    done: dict[Mutant, str] = {}
    if options.out.exists():
        for line in options.out.read_text("utf-8").splitlines():
            noted = json.loads(line)
            done[Mutant(**noted["mutant"])] = noted["state"]
    mutants = chosen(options.only, options.sample, options.seed)
    until = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as folder, options.out.open("a", encoding="utf-8") as out:
        laboratory = Laboratory(Path(folder))
        for mutant in mutants:
            if mutant in done or time.monotonic() > until:
                continue
            done[mutant] = laboratory.judge(mutant)
            out.write(json.dumps({"mutant": asdict(mutant), "state": done[mutant]}) + "\n")
            out.flush()
    return int(report({one: done[one] for one in mutants if one in done}, len(mutants)) > 0)


if __name__ == "__main__":
    sys.exit(main())
