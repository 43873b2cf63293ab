"""A plug-in of SearXNG: its engines get an obfuscated query, or none at all.

SearXNG goes on with the search when a plug-in fails, and drops one that says at the start that it
cannot work. Either would send the query as it was typed. So this one catches whatever happens, and
stops the search; and what it lacks it notices then, not at the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any, ClassVar

from searx.plugins import Plugin, PluginInfo

from sottovoce import defaults
from sottovoce.engines.base import EngineError, Hit
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.ledger import Ledger
from sottovoce.mechanisms.build import mechanism
from sottovoce.obfuscation import Obfuscator
from sottovoce.search import PrivateSearch, load_reranker

PROBLEM = "sottovoce_problem"
"""The attribute of a search that says why it was stopped."""


@dataclass
class Metasearch:
    """SearXNG as the engine that gets the query. It sends it itself, and one alone."""

    name: str = "searxng"
    remote: bool = True
    pause: float = 0.0
    most_queries: int | None = 1

    def search(self, queries: Sequence[str], depth: int) -> list[list[Hit]]:
        """Never called: SearXNG searches."""
        raise EngineError("SearXNG sends the query itself")


class SXNGPlugin(Plugin):  # type: ignore[misc]
    """Every search leaves with other words. For another epsilon, name a class made from this."""

    id = "sottovoce"
    epsilon: ClassVar[float] = defaults.SEARCH_EPSILON
    space: ClassVar[str | None] = None

    def __init__(self, plg_cfg: Any) -> None:
        super().__init__(plg_cfg)
        self._lock = Lock()
        self._obfuscator: Obfuscator | None = None
        self.info = PluginInfo(
            id=self.id,
            name="sottovoce",
            description="Search engines get an obfuscated query; if that fails they get none.",
            preference_section="privacy",
        )

    def init(self, app: Any) -> bool:
        """Always there: a plug-in that is dropped protects nobody."""
        return True

    def pre_search(self, request: Any, search: Any) -> bool:
        """Put another query in the place of what was typed, or stop the search."""
        try:
            search.search_query.query = self._released(search.search_query)
        except Exception as error:
            known = isinstance(error, SottovoceError)
            problem = str(error) if known else f"unexpected {type(error).__name__}"
            with suppress(Exception):
                setattr(search, PROBLEM, problem)
            return False
        return True

    def post_search(self, request: Any, search: Any) -> Any:
        """Say why there are no results."""
        problem = getattr(search, PROBLEM, None)
        if problem is None:
            return []
        from searx.result_types import Answer

        return [Answer(answer=f"sottovoce stopped this search, nothing was sent: {problem}")]

    def _released(self, query: Any) -> str:
        """What may be sent for a query, drawn and counted."""
        if query.external_bang:
            raise UsageError("a bang (!!) would take the query to another site: leave it out")
        search = PrivateSearch(
            self._obfuscating(), Metasearch(), load_reranker("none"), ledger=Ledger.open()
        )
        release = search.count(query.query)
        (released,) = release.outgoing.queries
        search.note_leaving(release)
        return released

    def _obfuscating(self) -> Obfuscator:
        """What draws the words, loaded when first needed."""
        with self._lock:
            if self._obfuscator is None:
                from sottovoce.resources.local import load_space

                cmp = mechanism("cmp", space=load_space(self.space), epsilon=self.epsilon)
                self._obfuscator = Obfuscator(cmp, release="once")
            return self._obfuscator
