"""Small files that unpack to more than any memory: read in little of it, or refused."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from sottovoce import files
from sottovoce.errors import SottovoceError, UsageError

MEMORY = 3 << 30
READ = f"""
import itertools, resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))
from pathlib import Path
from sottovoce.errors import SottovoceError
from sottovoce.files import read_lines, read_text
from sottovoce.sanitizing.data_files import open_source
source = open_source(sys.argv[1], ("text",))
print(sum(block.rows for block in itertools.islice(source.blocks((0, 0)), 5)))
"""


@pytest.fixture
def parquet_bomb(tmp_path: Path) -> Path:
    """A hundred thousand times the same text of 5 MB: half a terabyte in a kilobyte."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    places = pa.array([0] * 100_000, pa.int32())
    texts = pa.DictionaryArray.from_arrays(places, pa.array(["skin " * 1_000_000]))
    file = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"text": texts}), file, compression="zstd", store_schema=False)
    assert file.stat().st_size < 10_000
    return file


def test_a_parquet_bomb_is_read_row_by_row(parquet_bomb):
    told = subprocess.run(
        [sys.executable, "-c", READ, parquet_bomb], capture_output=True, text=True, check=False
    )
    assert told.stdout == "15\n", told.stderr[-300:]


def test_parquet_rows_come_back_as_they_were(tmp_path):
    """Of all types that hold text, whatever the batches."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    from sottovoce.sanitizing import parquet_batches

    texts = ["a", None, "bb" * 3000, "", "a"] * 40
    table = pa.table(
        {
            "text": pa.array(texts),
            "large": pa.array(texts, pa.large_string()),
            "category": pa.array(texts).dictionary_encode(),
            "bytes": pa.array([None if one is None else one.encode() for one in texts]),
            "list": pa.array([None if one is None else [one, one] for one in texts]),
            "number": pa.array(range(200)),
        }
    )
    file = tmp_path / "all.parquet"
    pq.write_table(table, file, row_group_size=70)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_batches, "BYTES_TOGETHER", 20_000)
        patch.setattr(parquet_batches, "NESTED_BYTES", 200_000)
        got = [batch for group in range(3) for batch in parquet_batches.batches(file, group, 1024)]
    assert len(got) > 50
    plain = [batch.to_pylist() for batch in got]
    assert [row for rows in plain for row in rows] == pq.read_table(file).to_pylist()
    assert {batch.schema.field("text").type for batch in got} == {pa.string()}


def test_a_packed_text_is_unpacked_up_to_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST_UNPACKED", 1 << 20)
    monkeypatch.setattr(files, "LONGEST_LINE", 1 << 20)
    file = tmp_path / "a.txt.gz"
    file.write_bytes(gzip.compress(b"a" * (1 << 20)))
    assert len(files.read_text(file)) == 1 << 20
    assert [len(line) for _, line in files.read_lines(file)] == [1 << 20]
    file.write_bytes(gzip.compress(b"a" * (1 << 24)))
    with pytest.raises(UsageError, match="unpack it first"):
        files.read_text(file)
    with pytest.raises(SottovoceError, match=r"line 1 .* has line ends"):
        list(files.read_lines(file))


def test_parquet_texts_that_are_not_utf8_are_refused_without_repeating_them(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    from sottovoce.sanitizing.data_files import open_source

    raw = pa.array([b"skin \xff secretly"]).view(pa.string())
    file = tmp_path / "latin.parquet"
    pq.write_table(pa.table({"text": raw}), file)
    with pytest.raises(UsageError, match="not UTF-8") as refused:
        list(open_source(file, ("text",)).blocks((0, 0)))
    assert "secretly" not in str(refused.value)
    assert refused.value.__cause__ is None
