"""Users and their queries: reading a log, and drawing who is a member of what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.random import Generator

from sottovoce.errors import UsageError
from sottovoce.files import CsvTable, json_lines, numbered_lines, read_text
from sottovoce.types import IntArray

USER_COLUMNS = ("user", "anonid")
HOW = (
    "give a CSV or TSV file whose first line names the columns user and query, or JSON lines with "
    '"user" and "query"'
)
SMALLEST = (
    "the smallest audit has --members 2 and 8 users with --min-queries queries each: lower both, "
    "or give a larger log"
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
    tabs, quoting = "\t" in content.split("\n", 1)[0], "put queries with commas in quotes"
    table = CsvTable(content, "the log", how=HOW, quoting=quoting, tabs=tabs, fold_header=True)
    user = next((name for name in USER_COLUMNS if name in table.header), USER_COLUMNS[0])
    table.require(user)
    table.require("query")
    for _, row in table:
        yield row[user].strip(), row["query"]


@dataclass(frozen=True)
class Sides:
    """The users whose releases train a model, and as many whose releases do not."""

    members: IntArray
    others: IntArray


def draw_sides(users: int, members: int, shadows: int, rng: Generator) -> list[Sides]:
    """Split users at random: the sides of the target model, then those of each shadow model.

    Shadows are drawn from all users who are not the target's; two of them may share users where
    there are not enough for all.
    """
    target, rest = np.split(rng.permutation(users), [2 * members])
    drawn = [target, *(rng.permutation(rest)[: 2 * members] for _ in range(shadows))]
    return [Sides(side[:members], side[members:]) for side in drawn]


def choose_users(log: UserLog, members: int, fewest: int, most: int) -> UserLog:
    """Users with ``fewest`` to ``most`` queries: fewer cannot be recognized, more are likely bots.

    Refuses a log in which there are not enough of them.
    """
    if members < 2:
        raise UsageError("at least 2 members are needed (--members)")
    if not 1 <= fewest <= most:
        raise UsageError(
            "a user has at least 1 query, and --min-queries is no more than --max-queries"
        )
    users = tuple(queries for queries in log.queries if fewest <= len(queries) <= most)
    needed = 4 * members
    if len(users) < needed:
        raise UsageError(
            f"{len(users)} of the {len(log)} users in the log have {fewest} to {most} queries, "
            f"and {members} members need {needed} users (members and non-members, of the target "
            f"and of the shadow models): {_advice(log, len(users), needed, most)}"
        )
    return UserLog(users)


def _advice(log: UserLog, users: int, needed: int, most: int) -> str:
    """Which options would make the log large enough."""
    options = [f"--members {users // 4}"] if users >= 8 else []
    counts = sorted((len(queries) for queries in log.queries if len(queries) <= most), reverse=True)
    if len(counts) >= needed:
        options.append(f"--min-queries {counts[needed - 1]}")
    elif not options and len(counts) >= 8:
        members = len(counts) // 4
        options.append(f"--members {members} --min-queries {counts[4 * members - 1]}")
    return "set " + " or ".join(options) if options else SMALLEST
