"""The only code that sends queries: it gets obfuscated strings and an engine, nothing else.

The true query never comes here, so no error in this file can reveal it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from numpy.random import Generator

from sottovoce.engines.base import EngineError, Hit, SearchEngine
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.randomness import secure_generator
from sottovoce.text.comparing import single_spaced
from sottovoce.types import Progress

LONGEST_QUERY = 2000
"""Characters; engines cut longer queries, or refuse them."""


@dataclass(frozen=True, repr=False)
class Outgoing:
    """Queries that may leave: checked, each once. Only :meth:`Boundary.check` makes one."""

    queries: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.queries)

    def __repr__(self) -> str:
        return f"Outgoing({len(self.queries)} queries)"


@dataclass(frozen=True, repr=False)
class Answers:
    """What came back. ``sent`` are the queries that left, in the order in which they did."""

    sent: tuple[str, ...]
    hits: dict[str, list[Hit]]
    failure: EngineError | None = None
    """Why the last query that left was not answered, and no other was sent."""

    def __repr__(self) -> str:
        return f"Answers({len(self.hits)} of {len(self.sent)})"


class Boundary:
    """Sends queries to an engine: each once, in random order, spaced as the engine asks."""

    def __init__(
        self,
        engine: SearchEngine,
        *,
        rng: Generator | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.engine = engine
        self._rng = rng or secure_generator()
        self._sleep = sleep

    def check(self, queries: Iterable[str]) -> Outgoing:
        """The queries as they would be sent, each once; refuses what may not leave."""
        distinct = tuple(dict.fromkeys(filter(None, map(single_spaced, queries))))
        most = self.engine.most_queries
        if most is not None and len(distinct) > most:
            raise UsageError(
                f"{self.engine.name} takes {most} queries for a search, these are {len(distinct)}: "
                f"ask for at most {most} (-n {most}, or --cover {most}), or raise most_queries"
            )
        if any(len(query) > LONGEST_QUERY for query in distinct):
            raise UsageError(
                f"a query would have over {LONGEST_QUERY:,} characters: search with fewer words"
            )
        return Outgoing(distinct)

    def send(self, outgoing: Outgoing, depth: int, progress: Progress | None = None) -> Answers:
        """Send the queries. An engine that fails underway leaves the answers given so far.

        ``progress`` is called after each answer, if the engine wants queries one by one.
        """
        order = [outgoing.queries[place] for place in self._rng.permutation(len(outgoing))]
        if not order:
            return Answers((), {})
        if self.engine.pause > 0:
            return self._spaced(order, depth, progress)
        return Answers(tuple(order), dict(zip(order, self._ask(order, depth), strict=True)))

    def _spaced(self, queries: list[str], depth: int, progress: Progress | None) -> Answers:
        """One by one, with random pauses: no rhythm shows which queries belong together."""
        answers: dict[str, list[Hit]] = {}
        for number, query in enumerate(queries):
            if number:
                self._sleep(self.engine.pause * self._rng.uniform(1.0, 1.75))
            try:
                (answers[query],) = self._ask([query], depth)
            except EngineError as failure:
                if not answers:
                    raise
                return Answers(tuple(queries[: number + 1]), answers, failure)
            if progress is not None:
                progress(number + 1, len(queries))
        return Answers(tuple(queries), answers)

    def _ask(self, queries: list[str], depth: int) -> list[list[Hit]]:
        try:
            answers = self.engine.search(queries, depth)
        except SottovoceError:
            raise
        except Exception as error:
            raise EngineError(
                f"{self.engine.name} failed ({type(error).__name__}); nothing more was sent"
            ) from None
        if len(answers) != len(queries):
            raise EngineError(
                f"{self.engine.name} answered {len(answers)} of {len(queries)} queries"
            )
        return [list(hits[:depth]) for hits in answers]
