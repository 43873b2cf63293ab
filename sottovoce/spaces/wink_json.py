"""The JSON of the wink embeddings: hundreds of megabytes on one line, read piece by piece.

``{…, "dimensions": d, "words": […], "vectors": {"word": [d numbers, norm, index], …}, …}``
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from sottovoce.spaces.entries import BLOCK_BYTES, Batch, check_count, opened, refuse

OPENING = b'"vectors":{'
BETWEEN_ENTRIES = b'],"'
AFTER_LAST_ENTRY = b"]}"


def read_wink_json(path: Path) -> Iterator[Batch]:
    """Read the entries in the order of ``words``, which the file must keep."""
    with opened(path) as (stream, raw):
        head = b""
        while OPENING not in head:
            chunk = stream.read(BLOCK_BYTES)
            if not chunk:
                refuse(path, "entry 1", "this JSON holds no word vectors")
            head += chunk
        start, _, buffer = head.partition(OPENING)
        description = json.loads(start + OPENING + b"}}")
        words, dimension = description["words"], description["dimensions"]
        done = 0
        while done < len(words):
            chunk = stream.read(BLOCK_BYTES)
            buffer += chunk
            cut = buffer.rfind(BETWEEN_ENTRIES) if chunk else buffer.find(AFTER_LAST_ENTRY)
            if cut < 0:
                if not chunk:
                    check_count(path, len(words), done)
                continue
            entries = json.loads(b"{" + buffer[: cut + 1] + b"}")
            buffer = buffer[cut + 2 :]
            table = np.array(list(entries.values()), dtype=np.float64).reshape(-1, dimension + 2)
            numbers = np.arange(done, done + len(table), dtype=np.int64)
            if list(entries) != words[done : done + len(table)] or (table[:, -1] != numbers).any():
                refuse(path, f"entry {done + 1}", "the vectors are not in the order of the words")
            done += len(table)
            vectors = table[:, :dimension].astype(np.float32)
            yield Batch(list(entries), vectors, numbers + 1, [], raw.tell())
