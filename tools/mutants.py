"""Mutation testing of what must not fail: change a line, and see whether a test notices.

    python tools/mutants.py --sample 200 --seed 1 --out results/mutants.jsonl
    python tools/mutants.py --only ledger/book --sample 0          every mutant of one file

A mutant is one small change inside a function: a comparison turned, ``and`` for ``or``, a ``not``
or a statement left out, another number. For each file one process runs its tests and notes which
of them execute which lines; a child of it takes the changed code and runs those until one fails.
Typed again it goes on; what was done is in the file. Exit status 1: a mutant survived that
``mutants.toml`` does not explain.
"""

from __future__ import annotations

import argparse
import ast
import copy
import gc
import json
import os
import random
import signal
import sys
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, cast

ROOT = Path(__file__).parents[1]
TARGETS = {
    "search/boundary.py": ("test_boundary",),
    "search/vector_boundary.py": ("test_vector_search",),
    "obfuscation/obfuscator.py": ("test_obfuscation", "test_same_text"),
    "obfuscation/words.py": ("test_obfuscation", "test_unknown_words"),
    "obfuscation/memory.py": ("test_obfuscation", "test_same_text", "test_private_search"),
    "obfuscation/chorus.py": ("test_chorus",),
    "obfuscation/vectors.py": ("test_vector_search", "test_vector_noise"),
    "ledger/book.py": ("test_ledger", "test_ledger_damage"),
    "ledger/database.py": ("test_ledger", "test_ledger_damage"),
    "ledger/entries.py": ("test_ledger", "test_ledger_damage", "test_cover_company"),
    "ledger/ledger.py": (
        "test_ledger",
        "test_ledger_damage",
        "test_ledger_older",
        "test_cover_company",
    ),
    "ledger/ways.py": ("test_cover_company", "test_chorus"),
    "engines/http_client.py": ("test_http_client",),
    "engines/remote.py": ("test_remote_engines",),
    "app/security.py": ("test_app_security", "service/test_service_search_box"),
}
"""Files of the package, and the tests that answer for them."""
EXPLAINED = Path(__file__).with_name("mutants.toml")
SECONDS, TIMES_AS_LONG = 30.0, 5.0
"""How long tests may take on a mutant: so long, and so many times what they took without it."""
BASELINE, CONTROLS = 1800.0, 10
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
CHANGED = (
    *(ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Constant, ast.If, ast.IfExp),
    *(ast.Raise, ast.AugAssign, ast.Expr, ast.Return),
)


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
    if not isinstance(node, CHANGED):
        return
    new: Any = copy.copy(node)
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
        case ast.Return(value=ast.expr()) if not _is_nothing(node.value):
            new.value = ast.Constant(None)
            yield "returns None", new


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        for side in sides
    )


def _is_nothing(node: ast.AST | None) -> bool:
    """Whether it is a constant for which None does as well."""
    return isinstance(node, ast.Constant) and not node.value


class Places(ast.NodeTransformer):
    """Goes through a file's functions in order; changes the one place that is asked for, if any."""

    def __init__(self, file: str, target: Mutant | None = None) -> None:
        self.file, self.target = file, target
        self.mutants: list[Mutant] = []
        self._at: Counter[int] = Counter()
        self._inside = False

    def visit(self, node: ast.AST) -> ast.AST:
        """One node, then what is in it."""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return self._function(node)
        if isinstance(node, ast.keyword) and node.arg == "strict":  # Lengths that never differ.
            return node
        replacement = None
        for what, new in changes(node) if self._inside else ():
            line = int(getattr(node, "lineno", 0))
            self._at[line] += 1
            mutant = Mutant(self.file, line, self._at[line], what)
            self.mutants.append(mutant)
            if mutant == self.target:
                replacement = ast.copy_location(new, node)
        self.generic_visit(node)
        return node if replacement is None else replacement

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        """Its body alone: defaults and decorators are taken when the file is imported."""
        outside, self._inside = self._inside, True
        node.body = [cast(ast.stmt, self.visit(statement)) for statement in node.body]
        self._inside = outside
        return node


def mutants_of(file: str) -> list[Mutant]:
    """All mutants of a file of the package."""
    places = Places(file)
    places.visit(ast.parse(_source(file)))
    return places.mutants


def mutated(mutant: Mutant) -> ast.Module:
    """The file with the change."""
    tree = Places(mutant.file, mutant).visit(ast.parse(_source(mutant.file)))
    return cast(ast.Module, ast.fix_missing_locations(tree))


@cache
def _source(file: str) -> str:
    return _place(file).read_text("utf-8")


def _place(file: str) -> Path:
    return ROOT / "sottovoce" / file


def plant(mutant: Mutant) -> None:
    """Give the functions of this process the changed code."""
    place = str(_place(mutant.file))
    codes = dict(_codes(compile(mutated(mutant), place, "exec")))
    for function in [one for one in gc.get_objects() if type(one) is FunctionType]:
        code = function.__code__
        new = codes.get((code.co_qualname, code.co_firstlineno))
        if new is None or code.co_filename != place or code == new:
            continue
        if new.co_freevars == code.co_freevars:
            function.__code__ = new


def _codes(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    """All code in some code, by name and line."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield (constant.co_qualname, constant.co_firstlineno), constant
            yield from _codes(constant)


# Tests, in a process of their own that has imported what they all need.


class Watch:
    """A plugin of pytest: which tests execute which lines of some files, and how long they take."""

    def __init__(self, files: Sequence[str]) -> None:
        self._files = {str(_place(file)): file for file in files}
        self.tests: dict[tuple[str, int], list[str]] = {}
        self.seconds: Counter[str] = Counter()
        self._lines: set[tuple[str, int]] = set()

    def _called(self, frame: FrameType, event: str, _: Any) -> Any:
        return self._ran if frame.f_code.co_filename in self._files else None

    def _ran(self, frame: FrameType, event: str, _: Any) -> Any:
        self._lines.add((self._files[frame.f_code.co_filename], frame.f_lineno))
        return self._ran

    def pytest_runtest_setup(self, item: Any) -> None:
        """Begin to watch."""
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


class FewExamples:
    """A plugin of pytest: a handful of examples will do to notice a mutant, or it survives."""

    def pytest_sessionstart(self) -> None:
        """After the profile of the tests was loaded."""
        from hypothesis import settings

        settings.register_profile("few", max_examples=8, deadline=None, derandomize=True)
        settings.load_profile("few")


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


def run_tests(tests: Sequence[str], plugins: Sequence[Any] = ()) -> int:
    """Pytest in this process; 0 if all passed."""
    import pytest

    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--assert=plain"]
    return int(pytest.main([*options, "-m", "not slow", *tests], plugins=[FewExamples(), *plugins]))


class Laboratory:
    """A process that has run the tests of some files, and judges their mutants in children."""

    def __init__(self, files: Sequence[str]) -> None:
        self.watch = Watch(files)
        if run_tests([f"tests/{name}.py" for name in TARGETS[files[0]]], [self.watch]):
            raise SystemExit("the tests fail before anything is changed")
        quick = sorted(self.watch.seconds, key=lambda test: self.watch.seconds[test])[:CONTROLS]
        if forked(lambda: run_tests(quick), BASELINE) != 0:
            raise SystemExit("tests fail in a child in which nothing is changed")

    def judge(self, mutant: Mutant) -> str:
        """What becomes of a mutant."""
        lines, seconds = _statement(mutant.file, mutant.line), self.watch.seconds
        ran = (test for line in lines for test in self.watch.tests.get((mutant.file, line), ()))
        tests = sorted(dict.fromkeys(ran), key=lambda test: seconds[test])
        if not tests:
            return UNREACHED

        def work() -> int:
            plant(mutant)
            return run_tests(tests)

        limit = SECONDS + TIMES_AS_LONG * sum(seconds[test] for test in tests)
        return {0: SURVIVED, None: TOO_LONG}.get(forked(work, limit), KILLED)


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


def sampled(only: str, sample: int, seed: int) -> list[Mutant]:
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


def judge_all(mutants: Sequence[Mutant], out: Path, until: float) -> int:
    """Judge the mutants of files with the same tests, one line of JSON each."""
    laboratory = Laboratory(list(dict.fromkeys(one.file for one in mutants)))
    for mutant in mutants:
        if time.monotonic() > until:
            break
        noted = {"mutant": asdict(mutant), "state": laboratory.judge(mutant)}
        with out.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(noted) + "\n")
    return 0


def main() -> int:
    """Go on where the last run stopped; 1 if a survivor is not explained."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sample", type=int, default=200, help="so many mutants; 0 for all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="files whose name holds this")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--out", type=Path, default=Path("results/mutants.jsonl"))
    options = parser.parse_args()
    out = options.out.resolve()
    out.parent.mkdir(parents=True, exist_ok=True)
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    mutants = sampled(options.only, options.sample, options.seed)
    until = time.monotonic() + 60 * options.minutes
    for tests in dict.fromkeys(TARGETS[one.file] for one in mutants):
        left = [one for one in mutants if TARGETS[one.file] == tests and one not in _done(out)]
        if left and time.monotonic() < until:
            status = forked(partial(judge_all, left, out, until), 60 * options.minutes + BASELINE)
            if status != 0:
                print(f"{', '.join(tests)} fail before anything is changed, or take too long")
    done = _done(out)
    return int(report({one: done[one] for one in mutants if one in done}, len(mutants)) > 0)


def _done(out: Path) -> dict[Mutant, str]:
    """What became of the mutants that were judged before."""
    lines = out.read_text("utf-8").splitlines() if out.exists() else ()
    noted = [json.loads(line) for line in lines]
    return {Mutant(**one["mutant"]): one["state"] for one in noted}


if __name__ == "__main__":
    sys.exit(main())
