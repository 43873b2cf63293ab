"""Time, memory and disk of an index on disk, and whether it answers as the engines in memory.

    python benchmarks/stored_index.py FOLDER --documents 1000000 --at index

FOLDER holds corpus.jsonl and queries.jsonl (perhaps gzipped). Its passages are resampled: each new
one has three sentences of random passages. The first --compared of them (all, if as many as
--documents) are also indexed in memory and on disk, and all answers compared. --at is where the
large index is written.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce.collections import Document, load_collection
from sottovoce.engines import BM25
from sottovoce.engines.base import SearchEngine
from sottovoce.engines.dense import Dense
from sottovoce.engines.stored import StoredBM25, StoredDense, make_index

ENCODER = "light"
DEPTH = 100


def resampled(passages: list[str], count: int) -> Iterator[Document]:
    """As many passages of three sentences each, always the same ones."""
    sentences = [sentence for text in passages for sentence in text.split(". ") if sentence]
    rng = Generator(PCG64(0))
    for number in range(count):
        chosen = rng.integers(len(sentences), size=3).tolist()
        yield Document(str(number), "", ". ".join(sentences[at] for at in chosen))


def peak() -> float:
    """The most memory that this process had so far, in MB; mapped pages are counted."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def tell(what: str, start: tuple[float, float]) -> None:
    """Print what something took."""
    clock, processor = time.monotonic() - start[0], time.process_time() - start[1]
    print(f"{what}: {clock:.1f} s, {processor:.1f} s of processor time, peak {peak():,.0f} MB")


def now() -> tuple[float, float]:
    """The clock, and the processor's."""
    return time.monotonic(), time.process_time()


def search(name: str, engine: SearchEngine, queries: list[str]) -> None:
    """Time all queries, after one that maps what all need."""
    engine.search(queries[:1], DEPTH)
    start = now()
    engine.search(queries, DEPTH)
    tell(f"{name}, {len(queries)} queries", start)


def main() -> None:
    """Build, search, compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--compared", type=int, default=20_000)
    parser.add_argument("--at", type=Path, required=True)
    options = parser.parse_args()
    collection = load_collection(options.folder)
    passages = [document.text for document in collection.documents]
    queries = list(collection.queries.values())

    start = now()
    make_index(resampled(passages, options.documents), options.at, encoder=ENCODER)
    tell(f"index of {options.documents:,} passages, with {ENCODER} vectors", start)
    for file in sorted(options.at.iterdir()):
        print(f"  {file.name}: {file.stat().st_size / 1e6:,.1f} MB")
    start = now()
    stored = StoredBM25(options.at)
    tell("opened", start)
    search("BM25", stored, queries)
    search("dense", StoredDense(options.at), queries)

    few = list(resampled(passages, options.compared))
    part = options.at
    if options.compared != options.documents:
        part = options.at.with_name(f"{options.at.name}-compared")
        make_index(few, part, encoder=ENCODER)
    pairs = [(StoredBM25(part), BM25(few)), (StoredDense(part), Dense(few, ENCODER))]
    for on_disk, in_memory in pairs:
        same = on_disk.search(queries, DEPTH) == in_memory.search(queries, DEPTH)
        print(f"{on_disk!r} and {in_memory!r}: {'the same' if same else 'OTHER'} answers")
    # The large index itself: scores of its best documents, added up without any index.
    first = stored.search(queries, DEPTH)
    ranks = stored.ranks(queries, [first[row][0].doc_id for row in range(len(queries))], DEPTH)
    print(f"its own ranks agree: {bool((np.diagonal(ranks) == 1).all())}")
    if part != options.at:
        shutil.rmtree(part)


if __name__ == "__main__":
    main()
