"""The same sanitizing elsewhere: in data frames, in data sets of others, on many machines.

Nothing here is imported before it is used: each function needs the package it is for, and no other.
"""

from sottovoce.integrations.dask import on_dask
from sottovoce.integrations.spark import on_spark, sanitize_dataframe
from sottovoce.integrations.tables import dataset_function, sanitize_frame, sanitize_table

__all__ = [
    "dataset_function",
    "on_dask",
    "on_spark",
    "sanitize_dataframe",
    "sanitize_frame",
    "sanitize_table",
]
