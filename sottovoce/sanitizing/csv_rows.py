"""CSV and its relatives: fields cut by hand, since no parser gives back how a field was written.

A field in quotes may hold separators, line ends and doubled quotes (RFC 4180). A quote inside a
field without quotes is a character like others, as spreadsheets and Python's csv have it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sottovoce.errors import UsageError
from sottovoce.sanitizing.sources import Lines, Mark, Row, RowReader, TextSource, check_length

BOM = b"\xef\xbb\xbf"
_INSIDE_QUOTES = re.compile(rb'(?:[^"]|"")*+')
_END = re.compile(rb"\r?\n?\Z")


@dataclass(frozen=True)
class CsvSource(TextSource):
    """A file with a header, one row a line or more."""

    delimiter: str = ","

    def __post_init__(self) -> None:
        if len(self.delimiter) != 1 or not self.delimiter.isascii() or self.delimiter in '"\r\n\0':
            raise UsageError("the delimiter must be one ASCII character, and no quote or line end")

    @property
    def kind(self) -> str:
        """The format and its delimiter."""
        return f"csv {self.delimiter!r}"

    @property
    def joint(self) -> bytes:
        """The delimiter."""
        return self.delimiter.encode()

    def write_cell(self, text: str, before: bytes) -> bytes:
        """The text in quotes if the cell had quotes, or needs them now."""
        cell = text.encode("utf-8")
        special = (b'"', b"\r", b"\n", self.joint)
        if before.startswith(b'"') or any(sign in cell for sign in special):
            return b'"' + cell.replace(b'"', b'""') + b'"'
        return cell

    def header(self) -> tuple[bytes, Mark]:
        """The line of names."""
        raw, _, mark = self._header()
        return raw, mark

    def reader(self) -> CsvReader:
        """A reader that knows where the chosen columns are."""
        _, names, _ = self._header()
        places = []
        for column in self.columns:
            matching = [place for place, name in enumerate(names) if name == column]
            if len(matching) != 1:
                how_many = "more than one column" if matching else "no column"
                raise UsageError(
                    f"the header, line 1 of the input, has {how_many} of a name that was asked "
                    "for: check --column, and --delimiter"
                )
            places += matching
        return CsvReader(self.joint, len(names), tuple(places))

    def _header(self) -> tuple[bytes, list[str], Mark]:
        with Lines(self.open_file) as lines:
            line = lines.next()
            mark = BOM if line.startswith(BOM) else b""
            if not line.removeprefix(mark).strip():
                raise UsageError("the input is empty: a CSV file begins with the names of columns")
            reader = CsvReader(self.joint, None, ())
            fields, ending = reader.fields(line.removeprefix(mark), lines)
            raw = mark + self.joint.join(fields) + ending
            return raw, [_read(field).strip() for field in fields], lines.mark


class CsvReader(RowReader):
    """Cuts rows into fields, and keeps the bytes of each field as they are."""

    def __init__(self, delimiter: bytes, width: int | None, places: tuple[int, ...]) -> None:
        self.delimiter, self.width, self.places = delimiter, width, places
        sign = re.escape(delimiter)
        self._field = re.compile(rb"[^" + sign + rb"\r\n]*+")

    def blank(self, line: bytes) -> bool:
        """An empty line; in a file of one column it is an empty cell."""
        return self.width != 1 and line in (b"\n", b"\r\n")

    def row(self, line: bytes, lines: Lines) -> Row:
        """The row that begins with this line."""
        number = lines.number
        fields, ending = self.fields(line, lines)
        if len(fields) != self.width:
            raise UsageError(
                f"the row in line {number} of the input has {len(fields)} fields, the header "
                f"{self.width}: put texts with delimiters in quotes"
            )
        texts = tuple(_read(fields[place]) for place in self.places)
        return Row(fields, self.places, texts, ending)

    def fields(self, line: bytes, lines: Lines) -> tuple[list[bytes], bytes]:
        """The fields of a row, and its line end; further lines are read while a quote is open."""
        if b'"' not in line:
            body = line.removesuffix(b"\n").removesuffix(b"\r")
            if b"\r" in body:
                raise _stray_return(lines.number)
            return body.split(self.delimiter), line[len(body) :]
        return self._with_quotes(line, lines)

    def _with_quotes(self, line: bytes, lines: Lines) -> tuple[list[bytes], bytes]:
        number = lines.number
        row, fields, at = bytearray(line), list[bytes](), 0
        while True:
            if row[at : at + 1] == b'"':
                end = _end_of(_INSIDE_QUOTES, row, at + 1)
                while end == len(row):
                    more = lines.next()
                    if not more:
                        raise UsageError(
                            f"the row in line {number} of the input opens a quote that is never "
                            "closed"
                        )
                    row += more
                    check_length(len(row), number)
                    end = _end_of(_INSIDE_QUOTES, row, end)
                end += 1
            else:
                end = _end_of(self._field, row, at)
            fields.append(bytes(row[at:end]))
            if row[end : end + 1] == self.delimiter:
                at = end + 1
            elif _END.match(row, end):
                return fields, bytes(row[end:])
            elif row[end : end + 1] == b"\r":
                raise _stray_return(number)
            else:
                raise UsageError(
                    f"the row in line {number} of the input has a quote that closes in the middle "
                    "of a field: double the quotes inside a field in quotes"
                )


def _stray_return(line: int) -> UsageError:
    return UsageError(
        f"the row in line {line} of the input has a carriage return outside quotes, where programs "
        "disagree about what it means: end lines with a line feed, and put such fields in quotes"
    )


def _end_of(pattern: re.Pattern[bytes], row: bytearray, start: int) -> int:
    """Where a match ends; a match object that stays alive would keep the row from growing."""
    match = pattern.match(row, start)
    return start if match is None else match.end()


def _read(field: bytes) -> str:
    if field.startswith(b'"'):
        field = field[1:-1].replace(b'""', b'"')
    return field.decode("utf-8")
