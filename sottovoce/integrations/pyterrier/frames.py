"""Collections as the frames that PyTerrier experiments take."""

from __future__ import annotations

from sottovoce.collections import Collection
from sottovoce.integrations.pyterrier.package import pd


def topics(collection: Collection) -> pd.DataFrame:
    """The judged queries of a collection: ``qid``, ``query``."""
    rows = [row for row in collection.queries.items() if row[0] in collection.judgments]
    return pd.DataFrame(rows, columns=["qid", "query"])


def qrels(collection: Collection) -> pd.DataFrame:
    """The judgments of a collection: ``qid``, ``docno``, ``label``."""
    rows = [
        (query, document, grade)
        for query, grades in collection.judgments.items()
        for document, grade in grades.items()
    ]
    return pd.DataFrame(rows, columns=["qid", "docno", "label"])
