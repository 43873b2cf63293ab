"""Whole data sets: columns of text replaced, everything else left as it was."""

from sottovoce.sanitizing.data_files import open_source, sanitize_file
from sottovoce.sanitizing.executor import Executor
from sottovoce.sanitizing.report import Report
from sottovoce.sanitizing.sanitizer import DatasetCounts, Sanitizer

__all__ = ["DatasetCounts", "Executor", "Report", "Sanitizer", "open_source", "sanitize_file"]
