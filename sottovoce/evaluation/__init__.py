"""What privacy costs: how good the answers still are, and what models still learn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sottovoce.lazy import lazy_names

if TYPE_CHECKING:
    from sottovoce.evaluation.downstream.data import LabelledTexts, Questions, read_task
    from sottovoce.evaluation.downstream.scores import Score
    from sottovoce.evaluation.downstream.tasks import evaluate
    from sottovoce.evaluation.search_quality import (
        Measured,
        Quality,
        depth_matched,
        effectiveness,
        no_privacy,
        pooled_recall,
        with_more_depth,
        with_privacy,
        with_unrelated_queries,
        without_privacy,
    )
    from sottovoce.evaluation.trec import read_run, write_run

__all__ = [
    "LabelledTexts",
    "Measured",
    "Quality",
    "Questions",
    "Score",
    "depth_matched",
    "effectiveness",
    "evaluate",
    "no_privacy",
    "pooled_recall",
    "read_run",
    "read_task",
    "with_more_depth",
    "with_privacy",
    "with_unrelated_queries",
    "without_privacy",
    "write_run",
]

__getattr__ = lazy_names(
    __name__,
    {
        ".downstream.data": "LabelledTexts, Questions, read_task",
        ".downstream.tasks": "evaluate",
        ".downstream.scores": "Score",
        ".search_quality": "Measured, Quality, depth_matched, effectiveness, no_privacy, "
        "pooled_recall, with_more_depth, with_privacy, with_unrelated_queries, without_privacy",
        ".trec": "read_run, write_run",
    },
)
