"""Whole data sets: columns of text replaced, everything else left as it was."""

from sottovoce.sanitizing.counts import Counts
from sottovoce.sanitizing.files import sanitize_file
from sottovoce.sanitizing.formats import open_source
from sottovoce.sanitizing.report import Report
from sottovoce.sanitizing.sanitizer import Sanitizer

__all__ = ["Counts", "Report", "Sanitizer", "open_source", "sanitize_file"]
