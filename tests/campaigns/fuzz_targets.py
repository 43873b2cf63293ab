"""What is fuzzed: each reader of files with valid seeds of its format, and the text pipeline.

A target reads what it is given, and uses what it read as the program does. Only a
``SottovoceError`` may come out of it, and that never repeats the content.
"""

from __future__ import annotations

import gzip
import io
import json
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sottovoce import pool_store
from sottovoce.app.history import History
from sottovoce.collections import Document, read_corpus, read_judgments, read_queries, read_strings
from sottovoce.engines.json_http import JsonHttp
from sottovoce.engines.stored import StoredBM25, make_index
from sottovoce.evaluation.trec import read_run
from sottovoce.experiments.schema.reading import read_experiment
from sottovoce.guarantees import Guarantee
from sottovoce.ledger import Entry, Ledger
from sottovoce.paths import HOME_VARIABLE
from sottovoce.pool_store import PoolFacts, strings_data
from sottovoce.privacy.attacks.query_log import read_log
from sottovoce.privacy.attacks.releases import read_releases
from sottovoce.resources.word_lists import read_lists
from sottovoce.sanitizing.data_files import open_source
from sottovoce.sanitizing.sources import START
from sottovoce.sanitizing.spreadsheets import without_formulas
from sottovoce.sanitizing.work import open_work, work_folder
from sottovoce.search.vector_depth import DepthPromise
from sottovoce.spaces.formats import import_vectors
from sottovoce.spaces.space import WordSpace
from sottovoce.text.text_index import TextIndex

CANARY = "zebrafinchology"
"""A word of all seeds, which no message may repeat."""
WORDS = ["skin", "cancer", "doctor", "tax", "return", "divorce", "lawyer", "quiet", CANARY, "naïve"]
VECTORS = np.random.default_rng(3).standard_normal((len(WORDS), 4)).astype(np.float32)


@dataclass(frozen=True)
class Target:
    """A reader.

    file
        Where the input is written, below the target's folder.
    weight
        How often it is chosen, against others.
    """

    name: str
    seeds: Sequence[bytes]
    file: Path
    read: Callable[[Path], Any]
    weight: int = 2
    cost: int = 1
    """A batch has so many times fewer inputs, where each takes long."""
    restore: Callable[[], None] = field(default=lambda: None)


def exhausted(iterator: Any) -> None:
    """Read to the end."""
    for _ in iterator:
        pass


def vector_seeds() -> dict[str, bytes]:
    """The same few words in each format."""
    rows = [
        f"{word} {' '.join(f'{value:.5f}' for value in row)}"
        for word, row in zip(WORDS, VECTORS, strict=True)
    ]
    text = "\n".join(rows) + "\n"
    header = f"{len(WORDS)} {VECTORS.shape[1]}\n"
    binary = header.encode() + b"".join(
        word.encode() + b" " + row.tobytes() + b"\n"
        for word, row in zip(WORDS, VECTORS, strict=True)
    )
    packed = io.BytesIO()
    np.savez(packed, words=np.array(WORDS), vectors=VECTORS)
    entries = {
        word: [*map(float, row), 1.0, place]
        for place, (word, row) in enumerate(zip(WORDS, VECTORS, strict=True))
    }
    wink = {"dimensions": 4, "words": WORDS, "vectors": entries}
    return {
        "glove": text.encode(),
        "word2vec": (header + text).encode(),
        "word2vec-binary": binary,
        "npz": packed.getvalue(),
        "wink-json": json.dumps(wink, separators=(",", ":")).encode(),
    }


def vectors_of(folder: Path) -> list[Target]:
    """All formats of word vectors, imported whole."""

    def reading(format_name: str) -> Callable[[Path], None]:
        def read(path: Path) -> None:
            made = folder / "space"
            shutil.rmtree(made, ignore_errors=True)
            import_vectors(path, made, name="fuzzed", format=format_name)
            space = WordSpace.open(made)
            space.words(np.arange(space.size))

        return read

    seeds = vector_seeds()
    targets = [
        Target(f"vectors {name}", [data], folder / f"{name}.bin", reading(name), weight=1)
        for name, data in seeds.items()
    ]
    every = [*seeds.values(), gzip.compress(seeds["glove"])]
    return [*targets, Target("vectors auto", every, folder / "auto.vec", reading("auto"), weight=1)]


def stored_space(folder: Path) -> list[Target]:
    """A converted space, of which one file is damaged."""
    import_file, made = folder / "seed.txt", folder / "stored"
    import_file.write_bytes(vector_seeds()["glove"])
    import_vectors(import_file, made, name="seed", format="glove")

    def read(_: Path) -> None:
        space = WordSpace.open(made)
        space.words(np.arange(min(space.size, 50)))
        space.ids(WORDS)

    return _damaged("stored space", made, read)


def stored_index(folder: Path) -> list[Target]:
    """An index on disk, of which one file is damaged."""
    made = folder / "index"
    make_index(
        [Document(str(i), word, f"{word} of the {CANARY}") for i, word in enumerate(WORDS)], made
    )

    def read(_: Path) -> None:
        hits = StoredBM25(made).search(["skin cancer", CANARY], 5)
        assert len(hits) == 2

    return _damaged("stored index", made, read)


def stored_pool(folder: Path) -> list[Target]:
    """A pool that was made, of which one file is damaged."""
    strings = strings_data(WORDS)
    index = TextIndex.of(WORDS)
    facts = PoolFacts(
        "fuzzed", len(WORDS), sha256(strings).hexdigest(), "light", "hash", 4, None, ("a",), 10, 0
    )
    made = folder / "pools" / "fuzzed"
    made.mkdir(parents=True)
    (made / pool_store.STRINGS).write_bytes(strings)
    (made / pool_store.DESCRIPTION).write_text(
        json.dumps({"layout": pool_store.LAYOUT, **asdict(facts)})
    )
    for name, array in (
        (pool_store.HASHES, index.hashes),
        (pool_store.PLACES, index.places),
        (pool_store.VECTORS, VECTORS),
    ):
        np.save(made / name, array)

    def read(_: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(HOME_VARIABLE, str(folder))
            kept = pool_store.pool_facts("fuzzed")
            texts, _, places = pool_store.read_stored(kept)
            assert len(texts) == kept.strings
            places.find(CANARY, texts)
            assert len(pool_store.map_vectors(kept)) == kept.strings

    return _damaged("stored pool", made, read)


def _damaged(name: str, made: Path, read: Callable[[Path], Any]) -> list[Target]:
    """A target for each file of a folder, which is whole again afterwards."""
    kept = {file: file.read_bytes() for file in sorted(made.iterdir()) if file.is_file()}

    def putting_back(file: Path) -> Callable[[], None]:
        def put_back() -> None:
            for other, data in kept.items():
                if other != file:
                    other.write_bytes(data)

        return put_back

    return [
        Target(f"{name}: {file.name}", [data], file, read, 1, 2, putting_back(file))
        for file, data in kept.items()
    ]


def tables(folder: Path) -> list[Target]:
    """Data sets to be sanitized; what is put in must be read back."""
    rows = [("1", f"skin {CANARY}", "x"), ("2", 'a "quoted", text', ""), ("3", "two\nlines", "é")]
    csv = "id,text,note\r\n" + "".join(
        f'{number},"{text.replace(chr(34), chr(34) * 2)}",{note}\r\n' for number, text, note in rows
    )
    lines = "".join(
        json.dumps({"id": number, "text": text, "more": {"text": [note, None, 1.5]}}) + "\n"
        for number, text, note in rows
    )

    def read(path: Path) -> None:
        source, filled, count = open_source(path, ("text",)), bytearray(), 0
        for block in source.blocks(START):
            (column,) = block.texts
            filled += block.filled([[None if cell is None else "hidden, word" for cell in column]])
            count += len(column)
        if path.suffix == ".parquet" or not count:
            return
        again = path.with_name(f"again{path.suffix}")
        again.write_bytes(filled)
        cells = [
            cell for block in open_source(again, ("text",)).blocks(START) for cell in block.texts[0]
        ]
        assert len(cells) == count
        assert set(cells) <= {"hidden, word", None}
        if path.suffix == ".csv":
            without_formulas(bytes(filled))

    made = [
        Target("csv", [csv.encode(), csv.replace("\r", "").encode()], folder / "a.csv", read, 6),
        Target(
            "jsonl", [lines.encode(), gzip.compress(lines.encode())], folder / "a.jsonl", read, 6
        ),
    ]
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return made
    table = pa.table({"id": [1, 2, 3], "text": [text for _, text, _ in rows]})
    seeds = []
    for options in ({}, {"compression": "none"}, {"use_dictionary": False}, {"version": "1.0"}):
        sink = io.BytesIO()
        pq.write_table(table, sink, **options)
        seeds.append(sink.getvalue())
    return [*made, Target("parquet", seeds, folder / "a.parquet", read, 2)]


def text_files(folder: Path) -> list[Target]:
    """Collections, logs, runs, judgments, releases, word lists: files of lines."""
    corpus = "".join(
        json.dumps({"doc_id": str(i), "title": word, "text": f"{word} {CANARY}"}) + "\n"
        for i, word in enumerate(WORDS)
    ).encode()
    queries = "".join(
        json.dumps({"query_id": str(i), "text": f"{word} {CANARY}"}) + "\n"
        for i, word in enumerate(WORDS)
    ).encode()
    judgments = "".join(f"{i} 0 {word} {i % 3}\n" for i, word in enumerate(WORDS)).encode()
    run = "".join(f"{i} Q0 {word} {i} {1 / (i + 1)} tag\n" for i, word in enumerate(WORDS)).encode()
    releases = "".join(
        json.dumps(
            {
                "id": str(i),
                "text": f"{word} {CANARY}",
                "variants": ["tax", "law"],
                "epsilon": 5.0,
                "mechanism": "cmp:epsilon=5",
                "release": "once",
                "texts": {"order": "kept"},
            }
        )
        + "\n"
        for i, word in enumerate(WORDS)
    ).encode()
    release_table = (
        f"id,text,obfuscatedText,mechanism,epsilon\n1,{CANARY} skin,tax,cmp,5\n".encode()
    )
    log = "\n".join(f"{word} {CANARY}" for word in WORDS).encode()
    table = b"query,count\n" + b"".join(
        f'"{word} {CANARY}",{i}\n'.encode() for i, word in enumerate(WORDS)
    )
    tabs = b"1\tuser\tquery\n" + b"".join(
        f"{i}\tu\t{word}\n".encode() for i, word in enumerate(WORDS)
    )
    return [
        Target(
            "corpus",
            [corpus, gzip.compress(corpus)],
            folder / "corpus.jsonl",
            lambda path: exhausted(read_corpus(path)),
            4,
        ),
        Target(
            "packed corpus",
            [gzip.compress(corpus)],
            folder / "corpus.jsonl.gz",
            lambda path: exhausted(read_corpus(path)),
            2,
        ),
        Target(
            "queries",
            [queries],
            folder / "queries.jsonl",
            lambda path: exhausted(read_queries(path)),
            4,
        ),
        Target(
            "strings",
            [tabs, log],
            folder / "strings.tsv",
            lambda path: exhausted(read_strings(path)),
            3,
        ),
        Target("judgments", [judgments], folder / "qrels.txt", read_judgments, 4),
        Target("run", [run], folder / "run.txt", read_run, 4),
        Target("releases", [releases, release_table], folder / "releases.jsonl", read_releases, 6),
        Target("log of lines", [log, queries], folder / "log.txt", read_log, 4),
        Target("log of a table", [table, tabs], folder / "log.csv", read_log, 4),
        Target(
            "word list",
            [log, b"# list\n" + log],
            folder / "words.txt",
            lambda path: read_lists([str(path)]),
            3,
        ),
    ]


def described(folder: Path) -> list[Target]:
    """TOML and JSON by which people describe things, or the program remembers them."""
    experiment = Path(__file__).parents[2] / "examples" / "demo-experiment.toml"
    engine = (
        f'name = "{CANARY}"\nurl = "http://127.0.0.1:9/search?q={{query}}"\nresults = "hits"\n'
        'id = "id"\ntitle = "t"\ntimeout = 5\nretries = 1\npause = 0.5\n'
        '[headers]\nAccept = "application/json"\n'
    )
    promise = DepthPromise("store", "hash", "vector:epsilon=5", 10, 1000, (1.0, 5.0, 7.0) * 30)
    history = {"searches": [{"time": "now", "query": CANARY, "mechanism": "m", "release": "r"}]}

    def read_promise(path: Path) -> None:
        kept = DepthPromise.read(path)
        kept.depth()
        kept.sentence()

    def read_work(path: Path) -> None:
        with open_work(folder / "out.csv", resume=True, overwrite=False) as work:
            if work.plan() is not None:
                work.restore()

    work = work_folder(folder / "out.csv")
    work.mkdir(exist_ok=True)

    def begin_work() -> None:
        work.mkdir(exist_ok=True)
        (work / "plan.json").write_text('{"version": "1", "input": "h", "options": "h"}')
        (work / "output").write_bytes(b"x" * 100)

    from sottovoce.sanitizing.work import State

    journal = b"".join(State(rows, (rows, 0), 10 * rows).line() for rows in (1, 2, 3))
    return [
        Target(
            "experiment file", [experiment.read_bytes()], folder / "e.toml", read_experiment, 2, 20
        ),
        Target("engine file", [engine.encode()], folder / "engine.toml", JsonHttp.from_file, 5),
        Target(
            "promise of depth",
            [json.dumps(promise.to_dict()).encode()],
            folder / "depth.json",
            read_promise,
            3,
        ),
        Target(
            "history",
            [json.dumps(history).encode()],
            folder / "history.json",
            lambda path: History(path).state(),
            3,
        ),
        Target("journal of work", [journal], work / "journal", read_work, 2, 2, begin_work),
        Target(
            "plan of work",
            [b'{"version": "1", "input": "h"}'],
            work / "plan.json",
            read_work,
            1,
            2,
            begin_work,
        ),
    ]


def ledger(folder: Path) -> list[Target]:
    """The ledger's database."""
    home = folder / "ledger"
    opened = Ledger.open(home)
    guarantee = Guarantee("local", 1.0)
    for word in WORDS[:4]:
        opened.charge(
            Entry(
                text=word,
                variants=("tax",),
                mechanism="m",
                release="once",
                guarantee=guarantee,
                releases=1,
                destination="bm25",
            )
        )
    for file in home.iterdir():
        if file.suffix in (".sqlite", ".db", ".sqlite3") or b"SQLite" in file.read_bytes()[:16]:
            database = file
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    kept = database.read_bytes()

    def read(_: Path) -> None:
        for side in home.glob(f"{database.name}-*"):
            side.unlink()
        book = Ledger.open(home, create=False)
        book.spent()
        book.entries()
        book.budget()
        book.check()

    return [Target("ledger", [kept], database, read, 2, 2)]


def all_targets(folder: Path) -> list[Target]:
    """Each in a folder of its own."""
    made = []
    for make in (
        vectors_of,
        stored_space,
        stored_index,
        stored_pool,
        tables,
        text_files,
        described,
        ledger,
    ):
        own = folder / make.__name__
        own.mkdir()
        made += make(own)
    return made
