"""The report on a finished experiment: tables, figures, one page."""
