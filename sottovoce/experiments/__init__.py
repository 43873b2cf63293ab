"""Experiments: a grid in one file, computed cell by cell, kept, and reported on.

From the file to the page: ``schema`` (read and check), ``grid`` (jobs), ``fingerprints`` (keys),
``cells`` (compute), ``executors`` (where), ``store`` (keep), ``run`` (all of this); ``results``,
``estimates``, ``check``, ``summary`` and ``report`` (read back).
"""
