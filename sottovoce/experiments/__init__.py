"""Experiments: a grid in one file, run once, with tables, figures and one report."""
