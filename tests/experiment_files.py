"""A folder with all that a small experiment's file names: a space, a collection, other files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sottovoce.spaces.store import SpaceWriter

WHOLE = """
name = "whole"
description = "Everything that a file may hold."
notes = ["One.", "Two."]
plotted_words = ["worda"]

[grid]
collections = ["demo", "apples"]
engines = ["bm25", "dense:light"]
rerankers = ["light", "none"]
mechanisms = ["cmp"]
epsilons = [10, 1, 5]
releases = ["independent", "once"]
n = [3, 2]
seeds = [0, 7]

[[mechanism]]
spec = "vickrey-cmp:t=0.5"
label = "Vickrey"
epsilons = [2]
releases = ["once"]
unknown = "drop"

[[mechanism]]
spec = "santext"

[[mechanism]]
spec = "comet-cmp"
pool = "pool.txt"
encoder = "light"

[texts]
space = "words"
protect = "content"

[[published]]
label = "Theirs"
spec = "cmp"
files = "{data}/theirs_{epsilon}.csv"
epsilons = [12.5, 1]

[search]
depth = 10
pooling = "rrf"
kept = 50

[utility]
measures = ["nDCG@5", "AP(rel=2)"]
thresholds = [1, 2]

[privacy]
similarity = ["jaccard"]
similarity_encoder = "light"
log = "demo"
inference_encoders = ["light"]
attacks = ["mode"]

[deniability]
words = 5
draws = 20

[downstream]
tasks = ["task.csv"]
models = ["tfidf"]
limit = 10

[[expected]]
name = "nDCG of theirs"
table = "queries"
measure = "nDCG@5"
where = {mechanism = "Theirs", epsilon = 12.5, engine = "bm25", collection = "apples"}
value = 0.5
tolerance = 0.1
source = "Table 1"

[[expected_order]]
name = "order"
table = "queries"
measure = "jaccard"
where = {collection = "demo"}
by = "mechanism"
order = ["cmp", "<", "Theirs"]
tolerance = 0.1
"""


def write_files(folder: Path) -> Path:
    """Write the experiment and its files; the answer is the experiment's file."""
    rng = np.random.default_rng(1)
    words = [f"word{chr(97 + at)}" for at in range(20)]
    with SpaceWriter(folder / "words", name="words", dimension=5) as writer:
        writer.append(words, rng.standard_normal((len(words), 5)))
        writer.commit()
    apples = folder / "apples"
    apples.mkdir()
    (apples / "corpus.jsonl").write_text('{"doc_id": "a", "text": "worda wordb"}\n')
    queries = ['{"query_id": "1", "text": "worda"}', '{"query_id": "2", "text": "wordb"}']
    (apples / "queries.jsonl").write_text("\n".join(queries))
    (apples / "qrels.txt").write_text("1 0 a 1\n")
    (folder / "pool.txt").write_text("a string\nanother string\nand a third one\n")
    (folder / "task.csv").write_text("text,label\nworda,good\nwordb,bad\n")
    data = folder / "data"
    data.mkdir()
    for epsilon in ("1", "12.5"):
        (data / f"theirs_{epsilon}.csv").write_text("id,text,obfuscatedText\n1,worda,wordc\n")
    file = folder / "whole.toml"
    file.write_text(WHOLE)
    return file
