"""Experiments: a grid in one file, computed cell by cell, kept, and reported on.

From the file to the page: ``schema`` (read and check), ``grid`` (jobs), ``fingerprints`` (keys),
``cells`` (compute), ``executors`` (where), ``store`` (keep), ``run`` (all of this); ``results``,
``estimates``, ``check``, ``summary`` and ``report`` (read back).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sottovoce.lazy import lazy_names

if TYPE_CHECKING:
    from sottovoce.experiments.estimates import quipu_scores
    from sottovoce.experiments.report.write import write_report
    from sottovoce.experiments.results import Place, Results
    from sottovoce.experiments.run import run_experiment
    from sottovoce.experiments.schema.reading import read_experiment

__all__ = ["Place", "Results", "quipu_scores", "read_experiment", "run_experiment", "write_report"]

__getattr__ = lazy_names(
    __name__,
    {
        ".estimates": "quipu_scores",
        ".report.write": "write_report",
        ".results": "Place, Results",
        ".run": "run_experiment",
        ".schema.reading": "read_experiment",
    },
)
