"""Who is a member of what, drawn at random."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.random import Generator

from sottovoce.errors import UsageError
from sottovoce.privacy.membership.logs import UserLog
from sottovoce.types import IntArray

SMALLEST = (
    "the smallest audit has --members 2 and 8 users with --min-queries queries each: lower both, "
    "or give a larger log"
)


@dataclass(frozen=True)
class Sides:
    """The users whose releases train a model, and as many whose releases do not."""

    members: IntArray
    others: IntArray


@dataclass(frozen=True)
class Split:
    """The target and the shadow models' users. No user of the target is one of a shadow's."""

    target: Sides
    shadows: tuple[Sides, ...]


def draw_split(users: int, members: int, shadows: int, rng: Generator) -> Split:
    """Split users at random; shadows are drawn from all those who are not the target's.

    Two shadow models may share users where there are not enough for all.
    """
    order = rng.permutation(users)
    pool = order[2 * members :]
    return Split(
        target=_sides(order[: 2 * members], members),
        shadows=tuple(
            _sides(rng.permutation(pool)[: 2 * members], members) for _ in range(shadows)
        ),
    )


def choose_users(log: UserLog, members: int, fewest: int, most: int) -> UserLog:
    """The users with neither too few queries to be known by, nor as many as a machine asks."""
    if members < 2:
        raise UsageError("at least 2 members are needed (--members)")
    if not 1 <= fewest <= most:
        raise UsageError(
            "a user has at least 1 query, and --min-queries is no more than --max-queries"
        )
    chosen = tuple(own for own in log.queries if fewest <= len(own) <= most)
    needed = 4 * members
    if len(chosen) < needed:
        raise UsageError(
            f"{len(chosen)} of the {len(log)} users in the log have {fewest} to {most} queries, "
            f"and {members} members need {needed} users (members and non-members, of the target "
            f"and of the shadow models): {_advice(log, len(chosen), needed, most)}"
        )
    return UserLog(chosen)


def _advice(log: UserLog, users: int, needed: int, most: int) -> str:
    said = [f"--members {users // 4}"] if users >= 8 else []
    counts = sorted((len(own) for own in log.queries if len(own) <= most), reverse=True)
    if len(counts) >= needed:
        said.append(f"--min-queries {counts[needed - 1]}")
    elif not said and len(counts) >= 8:
        members = len(counts) // 4
        said.append(f"--members {members} --min-queries {counts[4 * members - 1]}")
    return "set " + " or ".join(said) if said else SMALLEST


def _sides(users: IntArray, members: int) -> Sides:
    return Sides(users[:members], users[members:])
