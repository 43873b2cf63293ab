"""What a file expects of its experiment: figures of a paper, and their order.

``[[expected]]`` gives a figure (``value``), or one an epsilon (``values`` and ``epsilons``);
``[[expected_order]]`` gives an order.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from sottovoce.errors import UsageError
from sottovoce.experiments.description import Expected, ExpectedOrder
from sottovoce.experiments.problems import Problems, Section, meant
from sottovoce.experiments.tables import QUERIES, TASKS, WORDS

Value: TypeAlias = str | float | int
Expectations: TypeAlias = tuple[tuple[Expected, ...], tuple[ExpectedOrder, ...]]

COLUMNS: dict[str, dict[str, str]] = {
    "queries": QUERIES,
    "words": WORDS,
    "tasks": TASKS,
    "quipu": {
        **dict.fromkeys(("collection", "engine", "reranker", "mechanism", "release"), "string"),
        "n": "int64",
        "utility": "string",
    },
}
"""What the rows of each table can be selected by; ``quipu`` has a row a curve."""
SIGNS = (">", "<", "~")


def expectations_of(file: Path | str) -> Expectations:
    """Those of a TOML file. Nothing else in it is looked at: its data need not be here."""
    try:
        content = tomllib.loads(Path(file).read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise UsageError("there is no such file of an experiment: check the path") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"the experiment's file cannot be read ({type(error).__name__})") from None
    problems = Problems()
    found = read_expectations(Section(content, "", problems))
    problems.check()
    return found


def read_expectations(file: Section) -> Expectations:
    """Those of a file; what is wrong with them becomes the file's problem."""
    expected = [each for table in file.sections("expected") for each in _figures(table)]
    orders = [each for table in file.sections("expected_order") for each in _orders(table)]
    return tuple(expected), tuple(orders)


def _figures(table: Section) -> Iterator[Expected]:
    shared = _shared(table)
    if not any([table.has("values"), table.has("epsilons")]):
        value = table.number("value", required=True)
        table.finish()
        yield Expected(**shared, value=value)
        return
    table.finish()
    values, epsilons = (table.values.get(key) for key in ("values", "epsilons"))
    if (
        not isinstance(values, list)
        or not isinstance(epsilons, list)
        or len(values) != len(epsilons)
        or not all(_fits(each, "float64") for each in [*values, *epsilons])
        or "epsilon" not in COLUMNS[shared["table"]]
    ):
        table.problem("values", "give as many numbers as there are epsilons, both in brackets")
        return
    for value, epsilon in zip(values, epsilons, strict=True):
        name = f"{shared['name']}, epsilon {epsilon:g}"
        where = {**shared["where"], "epsilon": epsilon}
        yield Expected(**(shared | {"name": name, "where": where}), value=float(value))


def _orders(table: Section) -> Iterator[ExpectedOrder]:
    shared = _shared(table)
    columns = COLUMNS[shared["table"]]
    by = table.choice("by", "mechanism", list(columns))
    table.has("order")
    table.finish()
    order = table.values.get("order")
    if (
        not isinstance(order, list)
        or len(order) < 3
        or len(order) % 2 == 0
        or any(sign not in SIGNS for sign in order[1::2])
        or not all(_fits(value, columns[by]) for value in order[::2])
    ):
        table.problem(
            "order",
            f"write values of the column {by} with >, < or ~ between them, such as "
            '["vickrey-cmp", ">", "cmp", "~", "mahalanobis"]',
        )
        return
    yield ExpectedOrder(**shared, by=by, order=tuple(order))


def _shared(table: Section) -> dict[str, Any]:
    """What figures and orders have in common."""
    kind = table.choice("table", "queries", list(COLUMNS))
    return {
        "name": table.text("name", required=True),
        "table": kind,
        "measure": table.text("measure", required=True),
        "where": dict(_where(table.section("where"), COLUMNS[kind])),
        "tolerance": table.number("tolerance", required=True, least=0),
        "source": table.optional("source") or "",
    }


def _where(section: Section, columns: dict[str, str]) -> Iterator[tuple[str, Value]]:
    for column, value in section.values.items():
        if column not in columns:
            section.problem(column, f"there is no such column{meant(column, columns)}")
        elif not _fits(value, columns[column]):
            kind = "a text in quotes" if columns[column] == "string" else "a number"
            section.problem(column, f"it must be {kind}")
        else:
            yield column, value


def _fits(value: Any, kind: str) -> bool:
    if kind == "string":
        return isinstance(value, str)
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**63
