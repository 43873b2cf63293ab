"""CSV for spreadsheets, which take a cell that begins with a sign for a formula, and run it.

Whoever wrote a text of a data set could so run something on the machine of whoever opens it. A
quote before the sign makes it text again. The data is then no longer what it was, byte by byte: so
this is asked for, and never done unasked.
"""

from __future__ import annotations

import re
from io import BytesIO

from sottovoce.sanitizing.csv_rows import BOM, CsvReader
from sottovoce.sanitizing.sources import Lines

_FORMULA = re.compile(
    # At the beginning, or behind what another program may take for the end of a cell.
    rb"(?:\A|(?<=[;,\t|\r\n]))(?=[=+\-@\t\r\n]|\xef\xbc[\x8b\x8d\x9d\xa0])"
)
_NUMBER = re.compile(rb"[+-]?\d[\d.,]*(?:[eE][+-]?\d+)?%?|.|")


def without_formulas(table: bytes, delimiter: str = ",") -> bytes:
    """The same table, with a quote before all that a spreadsheet would take for a formula.

    Numbers stay numbers, also negative ones.
    """
    joint = delimiter.encode()
    reader = CsvReader(joint, None, ())
    out = [BOM] if table.startswith(BOM) else []
    with Lines(lambda: BytesIO(table.removeprefix(BOM))) as lines:
        while line := lines.next():
            fields, ending = reader.fields(line, lines)
            out += (joint.join(map(_as_text, fields)), ending)
    return b"".join(out)


def _as_text(field: bytes) -> bytes:
    quoted = field.startswith(b'"')
    cell = field[1:-1] if quoted else field
    if _NUMBER.fullmatch(cell):
        return field
    cell = _FORMULA.sub(b"'", cell)
    return b'"' + cell + b'"' if quoted else cell
