"""The files that the jobs read, all made up and the same each time: they lie in ``inputs``."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import re
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

QUERY = "treatment for skin cancer"
QUERIES = (
    QUERY,
    "divorce lawyer fees",
    "HIV test at home",
    "debt advice, free of charge",
    "how do I bake fresh bread?",
)
ODD_TEXTS = (
    QUERY,
    "Treatment for SKIN Cancer, please!",
    "the divorce lawyer's fees in New-York (2024)?",
    "zzyzx skin qwertyuiop",
    "naïve café in the Straße",
    "日本語 のテキスト skin",
    "שלום עולם rtl",
    "emoji 😀 skin 👩‍👩‍👧 cancer",
    "e\u0301galite\u0301 ﬁne ① x²",
    "mail anna@example.org or see http://example.org/skin?x=1",
    "...!?",
    "",
    "   leading  and\ttabs\u00a0and blanks  ",
    "don't can't it's e-mail wi-fi anti-inflammatory",
    "the of and to",
    "soft\u00adhyphen zero\u200bwidth nul\x00byte",
    "skin " * 12,
)
ODD_LINES = "\n".join(ODD_TEXTS).encode() + b"\n\xff\xfe broken skin\r\n"
QUERY_LINES = "\n".join(QUERIES).encode() + b"\n"

ARTICLES = (
    (
        "Skin cancer",
        "Treatment for skin cancer begins with surgery, and a doctor removes the mole.",
    ),
    ("Sun and skin", "Sun cream protects the skin from burns and from cancer."),
    ("A divorce", "A divorce lawyer explains the fees and the law before the court decides."),
    ("Lawyers and fees", "Lawyers charge fees by the hour, and free advice is rare."),
    ("Debt", "Debt advice is free of charge in many towns, and a plan helps to pay a bank."),
    ("A test at home", "A test for HIV can be made at home, and the result is known at once."),
    ("Bread", "Knead the dough, let the yeast rise and bake the fresh bread in a hot oven."),
    ("Apple trees", "Apple trees blossom in spring, before the leaves are out."),
    ("The moon", "The shadow of the earth makes the moon look red at night."),
    ("Cats", "A young cat eats small meals of meat and drinks water."),
    ("Bicycles", "Find the hole in the tyre of the bicycle and glue a patch on it."),
    ("Swallows", "Swallows fly to Africa for the winter and return in April."),
)
JUDGED = {1: (0, 1), 2: (2, 3), 3: (5,), 4: (4, 3), 5: (6,)}
"""By the number of a query, the articles that answer it, best first."""

THINGS = ("film", "book", "hotel", "dinner", "garden", "concert", "journey", "lesson")
GOOD = ("the {} was wonderful and we loved it", "a lovely {} , beautiful and charming",
        "an excellent {} , truly delightful", "this {} is perfect , superb and fun")  # fmt: skip
BAD = ("the {} was terrible and we hated it", "an awful {} , boring and stupid",
       "a horrible {} , truly dreadful", "this {} is ugly , dull and sad")  # fmt: skip
REVIEWS = tuple(
    (pattern.format(thing), label)
    for label, patterns in (("good", GOOD), ("bad", BAD))
    for pattern, thing in product(patterns, THINGS)
)
ANSWERS = {
    "how do i bake fresh bread": ARTICLES[6][1],
    "when do apple trees blossom": ARTICLES[7][1],
    "why is the moon red tonight": ARTICLES[8][1],
    "what does a young cat eat": ARTICLES[9][1],
    "how do i repair a bicycle tyre": ARTICLES[10][1],
    "where do swallows spend winter": ARTICLES[11][1],
}
MEASURED = """\
system,parameter,query,risk,utility
cmp,5,a,0.1,0.2
cmp,5,b,0.0,0.3
cmp,10,a,0.4,0.5
cmp,10,b,0.3,0.6
cmp,15,a,0.8,0.6
cmp,15,b,0.9,0.7
aea,5,a,0.2,0.1
aea,5,b,0.1,0.2
aea,3,a,0.6,0.5
aea,3,b,0.5,0.4
[tem],50,a,1.0,0.7
[tem],50,b,0.9,0.6
"""
ROWS = (
    ("1", "Anna had the treatment for skin cancer!", "a, b"),
    ("2", 'the "divorce" lawyer\nof anna', ""),
    ("3", "", "blank"),
    ("4", "zzyzx naïve café 😀", "odd"),
)
DIMENSION = 8
SMALL_FILLERS = 120

SMALL_EXPERIMENT = """\
name = "small"
description = "Every part of an experiment, on made-up data."
notes = ["One.", "Two & three."]
plotted_words = ["skin"]
[grid]
collections = ["articles"]
engines = ["tfidf"]
rerankers = ["light"]
mechanisms = ["cmp", "santext"]
epsilons = [1, 4]
releases = ["independent", "once"]
n = [3]
seeds = [0, 7]
[[mechanism]]
spec = "vickrey-cmp:t=0.5"
label = "Vickrey"
epsilons = [2]
releases = ["once"]
unknown = "drop"
[[mechanism]]
spec = "comet-cmp"
pool = "log.txt"
encoder = "light"
epsilons = [5]
[[published]]
label = "Theirs"
spec = "cmp"
files = "{data}/theirs_{epsilon}.csv"
epsilons = [12.5, 1]
[texts]
space = "small"
[search]
depth = 5
pooling = "rrf"
[utility]
measures = ["nDCG@5", "AP(rel=2)"]
thresholds = [1, 2]
[privacy]
similarity = ["jaccard", "semantic"]
similarity_encoder = "light"
log = "log.txt"
inference_encoders = ["light"]
[deniability]
words = 5
draws = 40
[downstream]
tasks = ["reviews.csv"]
models = ["tfidf"]
limit = 32
[[expected]]
name = "jaccard of cmp"
measure = "jaccard"
where = {mechanism = "cmp"}
values = [0.1, 0.9]
epsilons = [1, 4]
tolerance = 0.1
source = "Table 1"
[[expected_order]]
name = "order"
measure = "jaccard"
by = "epsilon"
order = [4, ">", 1]
tolerance = 0.1
"""


def write_inputs(folder: Path) -> None:
    """Write all files of this module into a new folder."""
    folder.mkdir(parents=True)
    _write_collection(folder / "articles")
    logged = [*QUERIES, *ANSWERS, *(text for text, _ in REVIEWS[::4])]
    texts = {
        "small.txt": _small_space(),
        "log.txt": "\n".join(logged) + "\n",
        "pool.jsonl": _json_lines({"text": text} for text in logged),
        "users.csv": _users(logged),
        "reviews.csv": _table(("text", "label"), REVIEWS),
        "questions.jsonl": _json_lines(
            {"question": question, "answer": answer, "label": int(answer == right)}
            for question, right in ANSWERS.items()
            for answer in ANSWERS.values()
        ),
        "measured.csv": MEASURED,
        "words.txt": "skin\ncancer\nlawyer\nzzyzx\n",
        "keep.txt": "skin\nTreatment\n",
        "names.txt": "anna\n\nlawyer\n",
        "rows.csv": _table(("id", "text", "note"), ROWS),
        "rows.tsv": "\ufeffid\ttext\r\n1\tthe skin\r\n\r\n2\t\r\n",
        "ragged.csv": "id,text\n1,skin\n2\n",
        "rows.jsonl": '{"id": 1.50, "text": "The skin, anna!"}\n\n{"text":null,  "id":[2]}\n',
        "theirs.csv": _published(QUERIES),
        "theirs_1.csv": _published(QUERIES[::-1]),
        "theirs_12.5.csv": _published(QUERIES),
        "small.toml": SMALL_EXPERIMENT,
        "wrong.toml": SMALL_EXPERIMENT.replace('"articles"', '"pears"').replace(
            '"santext"', '"satnext"'
        ),
        "expectations.toml": SMALL_EXPERIMENT[SMALL_EXPERIMENT.index("[[expected]]") :].replace(
            "tolerance = 0.1", "tolerance = 0.9"
        ),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="")
    (folder / "key").write_bytes(bytes(range(32)))
    (folder / "small.txt.gz").write_bytes(gzip.compress(texts["small.txt"].encode(), mtime=0))
    (folder / "rows.csv.gz").write_bytes(gzip.compress(texts["rows.csv"].encode(), mtime=0))
    _write_vectors(folder, texts["small.txt"])
    _write_parquet(folder / "rows.parquet")


def _write_collection(folder: Path) -> None:
    folder.mkdir()
    documents = (
        {"doc_id": f"d{number}", "title": title, "text": text}
        for number, (title, text) in enumerate(ARTICLES)
    )
    queries = (
        {"query_id": str(number), "text": text} for number, text in enumerate(QUERIES, start=1)
    )
    judgments = (
        f"{query} 0 d{document} {len(documents) - rank}\n"
        for query, documents in JUDGED.items()
        for rank, document in enumerate(documents)
    )
    (folder / "corpus.jsonl").write_text(_json_lines(documents), encoding="utf-8")
    (folder / "queries.jsonl").write_text(_json_lines(queries), encoding="utf-8")
    (folder / "qrels.txt").write_text("".join(judgments), encoding="utf-8")


def _small_space() -> str:
    """A word space in GloVe's format: the words of these texts and some that nothing uses."""
    texts = [*QUERIES, *ODD_TEXTS, *ANSWERS, *(text for _, text in ARTICLES)]
    texts += [text for text, _ in REVIEWS]
    words = re.findall(r"[a-z]+", " ".join(texts).lower())
    fillers = [f"word{first}{second}" for first, second in product("abcdefghij", "abcdefghijkl")]
    kept = [word for word in words if word not in ("zzyzx", "qwertyuiop", "anna")]
    generator = random.Random(1)
    return "".join(
        f"{word} {' '.join(f'{generator.gauss(0, 1):.4f}' for _ in range(DIMENSION))}\n"
        for word in dict.fromkeys([*kept, *fillers[:SMALL_FILLERS]])
    )


def _write_vectors(folder: Path, glove: str) -> None:
    """The small space in the other formats that can be imported, with some faults in one."""
    lines = [line.split() for line in glove.splitlines()]
    words = [word for word, *_ in lines]
    vectors = np.array([numbers for _, *numbers in lines], dtype="<f4")
    header = f"{len(words)} {DIMENSION}\n"
    entries = zip(words, vectors, strict=True)
    binary = b"".join(f"{word} ".encode() + vector.tobytes() for word, vector in entries)
    (folder / "small.vec").write_text(header + glove, encoding="utf-8")
    (folder / "small.bin").write_bytes(header.encode() + binary)
    faults = {"faulty": "two\u00a0words 1 2 3 4 5 6 7 8", "twice": lines[3][0] + " 1 2 3 4 5 6 7 8"}
    for name, line in {**faults, "short": "short 1 2"}.items():
        (folder / f"{name}.txt").write_text(f"{glove}{line}\n", encoding="utf-8")
    np.savez(folder / "small.npz", words=np.array(words), vectors=vectors)


def _users(queries: Sequence[str]) -> str:
    """A query log with users, each with favourites among the queries."""
    generator = random.Random(2)
    rows = []
    for user in range(24):
        favourites = generator.sample(queries, 4)
        rows += [(f"u{user}", f"{generator.choice(favourites)} {user % 5}") for _ in range(20)]
    return _table(("user", "query"), rows)


def _published(variants: Sequence[str]) -> str:
    rows = [
        (number, text, variant)
        for number, (text, variant) in enumerate(zip(QUERIES, variants, strict=True), start=1)
    ]
    return _table(("id", "text", "obfuscatedText"), rows)


def _write_parquet(file: Path) -> None:
    schema = pa.schema(
        [("id", pa.int64()), pa.field("text", pa.string(), metadata={"unit": "none"})],
        metadata={"origin": "made up"},
    )
    columns = [[int(row[0]) for row in ROWS], [row[1] or None for row in ROWS]]
    pq.write_table(pa.table(columns, schema=schema), file, compression="zstd", row_group_size=2)


def _table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def _json_lines(rows: Iterable[object]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
