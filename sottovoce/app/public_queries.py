"""The public queries among which queries leave in company: a pool, or else the query log."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from sottovoce.app.settings import Settings
from sottovoce.errors import SottovoceError
from sottovoce.text import folded_text

if TYPE_CHECKING:
    from sottovoce.pools import Pool


def read_public_queries(settings: Settings) -> Pool:
    """The pool that was named, or the log as one; vectors are computed when first needed.

    Both are read as ``--pool`` of ``sottovoce search`` reads them: so a query has the same company
    there and here, and what comes more often in a file is more popular.
    """
    from sottovoce.pools import read_pool

    if settings.pool is not None:
        return read_pool(settings.pool)
    return _log_as_pool(settings.log)


def _log_as_pool(log: str) -> Pool:
    """A log as a pool.

    One that ``--pool`` does not take, or in which it finds other texts, since it knows no header
    and no CSV, is read as a log: what it takes for queries there must not leave.
    """
    from sottovoce.pools import Pool, read_pool
    from sottovoce.privacy import read_log

    queries = read_log(log)
    with suppress(SottovoceError):
        pool = read_pool(log)
        if set(map(folded_text, pool.strings)) == set(map(folded_text, queries)) - {""}:
            return pool
    return Pool(queries, name="log")
