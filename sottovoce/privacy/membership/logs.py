"""Query logs with user ids: who asked what."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sottovoce.errors import UsageError
from sottovoce.privacy.releases import read_text

USER_COLUMNS = ("user", "anonid")
QUERY_COLUMNS = ("query",)
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
    content = read_text(file).lstrip("\ufeff")
    start = content.lstrip()[:1]
    if not start:
        raise UsageError(f"the log is empty: {HOW}")
    own: dict[str, list[str]] = {}
    for user, query in _from_json(content) if start == "{" else _from_table(content):
        if query.strip():
            own.setdefault(user, []).append(query)
    if not own:
        raise UsageError(f"the log holds no query: {HOW}")
    return UserLog(tuple(map(tuple, own.values())))


def _from_json(content: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(content.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            raise UsageError(f"line {number} of the log is not JSON: {HOW}") from None
        user, query = (row.get("user"), row.get("query")) if isinstance(row, dict) else (None, None)
        if isinstance(user, bool) or not isinstance(user, str | int) or not isinstance(query, str):
            raise UsageError(
                f'line {number} of the log lacks "user" (a string or a whole number) or "query" '
                f"(a string): {HOW}"
            )
        yield str(user), query


def _from_table(content: str) -> Iterator[tuple[str, str]]:
    tabs = "\t" in content.split("\n", 1)[0]
    stream = io.StringIO(content, newline="")
    rows = (
        csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE) if tabs else csv.reader(stream)
    )
    try:
        header = [name.strip().lower() for name in next(rows)]
        user, query = _column(header, USER_COLUMNS), _column(header, QUERY_COLUMNS)
        for row in rows:
            if row and len(row) != len(header):
                raise UsageError(
                    f"the row that ends in line {rows.line_num} of the log has another number of "
                    "fields than the first line: put queries with commas in quotes"
                )
            if row:
                yield row[user].strip(), row[query]
    except csv.Error:
        raise UsageError(f"line {rows.line_num} of the log cannot be read: {HOW}") from None


def _column(header: list[str], names: tuple[str, ...]) -> int:
    for name in names:
        if name in header:
            return header.index(name)
    raise UsageError(f"the log has no column {names[0]}: {HOW}")
