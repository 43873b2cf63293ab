"""Query logs with user ids: who asked what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sottovoce.errors import UsageError
from sottovoce.files import CsvTable, json_lines, numbered_lines, read_text

USER_COLUMNS = ("user", "anonid")
HOW = (
    "give a CSV or TSV file whose first line names the columns user and query, or JSON lines with "
    '"user" and "query"'
)


@dataclass(frozen=True, repr=False)
class UserLog:
    """The queries of each user, in the order of the file. Users are numbered, not named."""

    queries: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        return len(self.queries)

    def __repr__(self) -> str:
        return f"UserLog({len(self)} users, {sum(map(len, self.queries))} queries)"


def read_user_log(file: Path | str) -> UserLog:
    """The log in a file (``-`` is standard input): CSV, TSV or JSON lines, or one of them gzipped.

    Rows without a query are left out.
    """
    content = read_text(file)
    start = content.lstrip()[:1]
    if not start:
        raise UsageError(f"the log is empty: {HOW}")
    by_user: dict[str, list[str]] = {}
    for user, query in _from_json(content) if start == "{" else _from_table(content):
        if query.strip():
            by_user.setdefault(user, []).append(query)
    if not by_user:
        raise UsageError(f"the log holds no query: {HOW}")
    return UserLog(tuple(map(tuple, by_user.values())))


def _from_json(content: str) -> Iterator[tuple[str, str]]:
    for number, row in json_lines(numbered_lines(content), "the log", how=HOW):
        user, query = (row.get("user"), row.get("query")) if isinstance(row, dict) else (None, None)
        if isinstance(user, bool) or not isinstance(user, str | int) or not isinstance(query, str):
            raise UsageError(
                f'line {number} of the log lacks "user" (a string or a whole number) or "query" '
                f"(a string): {HOW}"
            )
        yield str(user), query


def _from_table(content: str) -> Iterator[tuple[str, str]]:
    table = CsvTable(
        content,
        "the log",
        how=HOW,
        quoting="put queries with commas in quotes",
        tabs="\t" in content.split("\n", 1)[0],
        fold_header=True,
    )
    user = next((name for name in USER_COLUMNS if name in table.header), USER_COLUMNS[0])
    table.require(user)
    table.require("query")
    for _, row in table:
        yield row[user].strip(), row["query"]
