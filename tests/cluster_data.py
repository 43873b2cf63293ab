"""What the tests of clusters share: a space on disk, files of rows, a mechanism that betrays."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np

from sottovoce import mechanism
from sottovoce.obfuscation import Obfuscator
from sottovoce.sanitizing import Sanitizer
from sottovoce.spaces.space import WordSpace
from sottovoce.spaces.store import SpaceWriter

WORDS = [f"word{chr(97 + i)}{chr(97 + j)}" for i in range(20) for j in range(20)]
SECRET = "melanoma"

# A module for workers to import: its mechanisms put the text into their errors, the second one
# where the sanitizer does not expect any.
HOSTILE = """
import sys
from dataclasses import dataclass
from typing import ClassVar
from sottovoce.guarantees import Guarantee
from sottovoce.mechanisms.base import TextMechanism

@dataclass(frozen=True, repr=False, eq=False)
class Hostile(TextMechanism):
    name: ClassVar[str] = "hostile"
    summary: ClassVar[str] = "tells everything"
    paper: ClassVar[str] = ""

    @property
    def guarantee(self):
        return Guarantee("none", None, scope="text")

    def rewrite(self, text, n, pipeline, rng):
        raise ValueError(text)

class Worse(Hostile):
    @property
    def spec(self):
        caller = sys._getframe(1)
        if caller.f_code.co_name == "texts":
            raise KeyError(str(caller.f_locals["texts"]))
        return "worse"
"""


def make_space(folder: Path) -> WordSpace:
    with SpaceWriter(folder, name="small", dimension=8) as writer:
        writer.append(WORDS, np.random.default_rng(1).standard_normal((len(WORDS), 8)))
        writer.commit()
    return WordSpace.open(folder)


def sanitizer(space: WordSpace, rng: int | None = 1, **options) -> Sanitizer:
    return Sanitizer(
        Obfuscator(mechanism("cmp:epsilon=1", space=space), rng=rng), ("text",), **options
    )


def rows(count: int) -> list[dict[str, object]]:
    draw = random.Random(1)
    texts = (" ".join(draw.choices([*WORDS, "zzz"], k=6)) for _ in range(count))
    return [{"id": i, "text": text, "rest": f"x{i}"} for i, text in enumerate(texts)]


def write_rows(file: Path, count: int) -> Path:
    data = rows(count)
    if file.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(data), file, row_group_size=70)
    elif file.suffix == ".jsonl":
        file.write_text("".join(json.dumps(each) + "\n" for each in data))
    else:
        lines = [f"{each['id']},{each['text']},{each['rest']}\n" for each in data]
        file.write_text("id,text,rest\n" + "".join(lines))
    return file
