"""Which format a file has, by its name or by choice."""

from __future__ import annotations

from pathlib import Path

from sottovoce.choices import Format
from sottovoce.errors import UsageError
from sottovoce.sanitizing.csv_rows import CsvSource
from sottovoce.sanitizing.json_rows import JsonSource
from sottovoce.sanitizing.parquet_rows import ParquetSource
from sottovoce.sanitizing.sources import Source

ENDINGS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}


def open_source(
    path: Path | str,
    columns: tuple[str, ...],
    format: Format | None = None,
    delimiter: str | None = None,
) -> Source:
    """A data set in a file, whose format its name tells unless it is given."""
    file = Path(path)
    if file.is_dir():
        raise UsageError("the input is a folder: name a file, one call for each")
    if not file.exists():
        raise UsageError("there is no such input file: check the path")
    if not file.is_file():
        raise UsageError("the input must be a file on disk: it is read twice, and after a --resume")
    chosen = format or format_of(file)
    if chosen is None:
        raise UsageError("the format is not clear from the name: give --format csv|jsonl|parquet")
    if delimiter is not None and chosen != "csv":
        raise UsageError("--delimiter is for CSV files")
    if chosen == "csv":
        usual = "\t" if _ending(file) == ".tsv" else ","
        return CsvSource(file, columns, usual if delimiter is None else delimiter)
    return JsonSource(file, columns) if chosen == "jsonl" else ParquetSource(file, columns)


def format_of(file: Path) -> Format | None:
    """The format that a file's name tells."""
    return ENDINGS.get(_ending(file))


def is_packed(file: Path) -> bool:
    """Whether a file is to be gzipped."""
    return file.suffix.lower() == ".gz"


def _ending(file: Path) -> str:
    return (Path(file.stem) if is_packed(file) else file).suffix.lower()
