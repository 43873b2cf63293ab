"""What a job gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sottovoce.evaluation.trec import Run

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Product:
    """Rows of one of the tables (``kind`` is a key of ``SCHEMAS``), and perhaps a run for TREC."""

    kind: str
    table: pa.Table
    run: Run | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    """What the manifest says of it: hashes and versions of what was used, what did not apply."""
