"""What a person loses: how good the answers still are."""

from sottovoce.evaluation.baselines import depth_matched, no_privacy
from sottovoce.evaluation.effectiveness import Measured, effectiveness, pooled_recall
from sottovoce.evaluation.trec import read_run, write_run

__all__ = [
    "Measured",
    "depth_matched",
    "effectiveness",
    "no_privacy",
    "pooled_recall",
    "read_run",
    "write_run",
]
