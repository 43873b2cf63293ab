"""The report of a finished experiment: tables, figures, one page."""
