"""Tell who was in the training data of a text model, by user, with shadow models.

Paper: Feyisetan, Balle, Drake and Diethe (WSDM 2020), section 6, after Song and Shmatikov (KDD
2019). There the auditor learnt from clean text alone, a handicap that no attacker need accept. Here
the auditor knows the mechanism, and learns from shadow models of text that went through it; what
an auditor finds who learnt from clean text stands beside it.

What an auditor sees of a user is how well a text model predicts the user's own queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from sottovoce.choices import Release
from sottovoce.errors import UsageError, need
from sottovoce.files import CsvTable, json_lines, numbered_lines, read_text
from sottovoce.mechanisms.base import Mechanism
from sottovoce.obfuscation import Obfuscator
from sottovoce.privacy.membership_audit.ngrams import BOUNDARY, NGramModel, windows
from sottovoce.privacy.membership_audit.outcomes import (
    MembershipReport,
    Scores,
    Setting,
    Sides,
    summarize,
)
from sottovoce.randomness import as_generator, as_seed
from sottovoce.text import TextPipeline, tokenize
from sottovoce.text.comparing import comparable
from sottovoce.types import Float64Array, IntArray, Progress, count_up

RANK_BINS = 17
"""Ranks 1, 2-3, 4-7, ..., from 65,536; one more bin holds the words that the model never saw."""

LOG_BINS = 20
"""Probabilities from 1/e to 1, from 1/e² to 1/e, ..., the last one open."""

USER_COLUMNS = ("user", "anonid")
HOW = (
    "give a CSV or TSV file whose first line names the columns user and query, or JSON lines with "
    '"user" and "query"'
)
SMALLEST = (
    "the smallest audit has --members 2 and 8 users with --min-queries queries each: lower both, "
    "or give a larger log"
)


# Users and their queries.


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


def deal_out(queries: Sequence[str], users: int, each: int, rng: int) -> UserLog:
    """Deal the queries of a log without user ids out to made-up users, at random.

    Such users have no interests of their own: what tells one from another is that they asked.
    """
    if users * each > len(queries):
        raise UsageError(
            f"{users} made-up users with {each} queries each need {users * each} queries, and the "
            f"log has {len(queries)}: take fewer users, or fewer queries of each"
        )
    dealt = as_generator(rng).permutation(len(queries))[: users * each].reshape(users, each)
    return UserLog(tuple(tuple(queries[number] for number in row) for row in dealt.tolist()))


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


# The audit.


def membership(
    log: UserLog,
    mechanisms: Sequence[Mechanism] = (),
    *,
    members: int = 100,
    shadows: int = 4,
    repeats: int = 3,
    min_queries: int = 150,
    max_queries: int = 500,
    n: int = 1,
    release: Release = "independent",
    pipeline: TextPipeline | None = None,
    rng: int | None = None,
    progress: Progress | None = None,
) -> MembershipReport:
    """Audit clean text, then each mechanism, on the same ``repeats`` random splits of the users.

    Only users with ``min_queries`` to ``max_queries`` take part (150 to 500 in the paper). ``n``,
    ``release`` and ``pipeline`` are as for ``Obfuscator``. ``progress`` hears how many models are
    done.
    """
    if shadows < 1 or repeats < 1:
        raise UsageError("at least one shadow model and one repeat are needed")
    users = choose_users(log, members, min_queries, max_queries)
    need("sklearn", "lab", "the membership audit needs scikit-learn")
    seeds = [None] * repeats if rng is None else as_seed(rng).spawn(repeats)
    models = count_up(progress, repeats * (1 + len(mechanisms)) * (1 + shadows))
    by_setting: dict[Setting, list[Scores]] = {}
    for seed in seeds:
        sides = draw_sides(len(users), members, shadows, as_generator(seed))
        obfuscators = [
            Obfuscator(made, n=n, release=release, pipeline=pipeline, rng=seed)  # type: ignore[arg-type]
            for made in mechanisms
        ]
        for setting, scores in _Repeat(users, sides, models).audits(obfuscators):
            by_setting.setdefault(setting, []).append(scores)
    return MembershipReport(
        outcomes=tuple(summarize(setting, scores) for setting, scores in by_setting.items()),
        users=len(users),
        members=members,
        shadows=shadows,
        repeats=repeats,
        variants=n,
        release=release,
        seeded=rng is not None,
    )


class _Repeat:
    """One random split, and the audits made with it."""

    def __init__(self, log: UserLog, sides: list[Sides], models: Callable[[int], None]) -> None:
        self._log, self._sides, self._models = log, sides, models
        self._numbering = Numbering()
        users = np.unique(np.concatenate([np.r_[s.members, s.others] for s in self._sides]))
        self._originals = {int(u): self._numbering.tokens(log.queries[u]) for u in users}

    def audits(self, obfuscators: Sequence[Obfuscator]) -> Iterator[tuple[Setting, Scores]]:
        clean = ([self._originals[int(u)] for u in sides.members] for sides in self._sides)
        target, *shadows = self._asked(clean)
        naive = _auditor(shadows)
        yield Setting(None, None, "clean"), self._scores(naive, target)
        for obfuscator in obfuscators:
            target, *shadows = self._asked(self._released(obfuscator))
            name = obfuscator.mechanism.spec
            epsilon = getattr(obfuscator.mechanism, "epsilon", None)
            aware = _auditor(shadows)
            yield Setting(name, epsilon, "obfuscated"), self._scores(aware, target)
            yield Setting(name, epsilon, "clean"), self._scores(naive, target)

    def _released(self, obfuscator: Obfuscator) -> Iterator[list[IntArray]]:
        """What the members of each model released; a member of two shadows draws anew."""
        first = 0
        for sides in self._sides:
            queries = [query for user in sides.members for query in self._log.queries[user]]
            results = obfuscator.obfuscate(queries, first=first)
            first += len(queries)
            yield [self._numbering.tokens(chain.from_iterable(r.variants for r in results))]

    def _asked(self, training: Iterable[list[IntArray]]) -> list[Float64Array]:
        """A model for each training text, asked with the original queries of both its sides."""
        answers = []
        for sides, texts in zip(self._sides, training, strict=True):
            users = np.concatenate([sides.members, sides.others])
            asked = [self._originals[int(user)] for user in users]
            answers.append(features(NGramModel(np.concatenate(texts)), asked))
            self._models(1)
        return answers

    def _scores(self, auditor: Any, target: Float64Array) -> Scores:
        sides = self._sides[0]
        scores = np.asarray(auditor.decision_function(target), dtype=np.float64)
        return Scores(sides, scores[: len(sides.members)], scores[len(sides.members) :])


def _auditor(shadows: Sequence[Float64Array]) -> Any:
    """A linear classifier of users, trained on shadow models; scores above 0 say member."""
    from sklearn import linear_model, pipeline, preprocessing

    half = len(shadows[0]) // 2
    label = np.tile(np.repeat([1, 0], half), len(shadows))
    return pipeline.make_pipeline(
        preprocessing.StandardScaler(), linear_model.LogisticRegression(max_iter=1000)
    ).fit(np.concatenate(shadows), label)


class Numbering:
    """Ids for words, in the order in which they come; case does not tell two words apart."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def tokens(self, queries: Iterable[str]) -> IntArray:
        """The ids of the words of queries, with ``BOUNDARY`` before each query and at the end."""
        ids, tokens = self._ids, [BOUNDARY]
        for query in queries:
            words = (comparable(token.surface) for token in tokenize(query))
            tokens.extend(ids.setdefault(word, len(ids) + 1) for word in words)
            tokens.append(BOUNDARY)
        return np.asarray(tokens, dtype=np.int64)


def features(model: NGramModel, users: list[IntArray]) -> Float64Array:
    """For each user the shares of true next words by rank and by log-probability, (users, bins).

    Of a user whose queries hold no word, all shares are 0.
    """
    asked = [windows(tokens, model.order) for tokens in users]
    user = np.repeat(np.arange(len(users)), [len(rows) for rows in asked])
    flat = np.concatenate(asked)
    rank = np.minimum(np.log2(model.ranks(flat)).astype(np.int64), RANK_BINS - 1)
    rank[~model.knows(flat[:, -1])] = RANK_BINS
    surprise = np.minimum((-np.log(model.probabilities(flat))).astype(np.int64), LOG_BINS - 1)
    counted = [
        np.bincount(user * bins + binned, minlength=len(users) * bins).reshape(len(users), bins)
        for bins, binned in ((RANK_BINS + 1, rank), (LOG_BINS, surprise))
    ]
    sizes = np.maximum(np.bincount(user, minlength=len(users)), 1)
    return np.concatenate(counted, axis=1) / sizes[:, None]
