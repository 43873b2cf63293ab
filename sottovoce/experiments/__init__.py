"""Experiments: a grid in one file, run once, with tables, figures and one report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sottovoce.lazy import lazy_names

if TYPE_CHECKING:
    from sottovoce.experiments.reading import read_experiment
    from sottovoce.experiments.report.quipu_table import quipu_scores
    from sottovoce.experiments.report.write import write_report
    from sottovoce.experiments.results import Results
    from sottovoce.experiments.running import run_experiment

__all__ = ["Results", "quipu_scores", "read_experiment", "run_experiment", "write_report"]

__getattr__ = lazy_names(
    __name__,
    {
        ".reading": "read_experiment",
        ".report.quipu_table": "quipu_scores",
        ".report.write": "write_report",
        ".results": "Results",
        ".running": "run_experiment",
    },
)
