"""Collections as people have them, and files that are broken."""

from __future__ import annotations

import gzip
import json

import pytest

from sottovoce.collections import Document, load_collection, read_corpus
from sottovoce.errors import SottovoceError, UsageError

LINES = (
    '{"doc_id": "1", "title": "Fish", "text": "Salmon swim."}\n'
    "\n"
    '{"doc_id": "b", "text": "Für Elise\\u2028again"}\r\n'
)
DOCUMENTS = [Document("1", "Fish", "Salmon swim."), Document("b", "", "Für Elise\u2028again")]


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.jsonl.gz"])
@pytest.mark.parametrize("whole_folder", [False, True])
def test_json_lines_are_read_from_files_and_folders(tmp_path, name, whole_folder):
    data = LINES.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert list(read_corpus(tmp_path if whole_folder else str(tmp_path / name))) == DOCUMENTS


@pytest.mark.parametrize("name", ["own.txt", "own.txt.gz"])
def test_each_line_of_a_text_file_is_a_document_with_its_number_as_id(tmp_path, name):
    data = "\ufeffone fish\n\n  two fish \r\n".encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert list(read_corpus(tmp_path / name)) == [
        Document("1", "", "one fish"),
        Document("3", "", "two fish"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        '{"doc_id": "secret"',
        '["secret"]',
        '"secret"',
        '{"text": "secret"}',
        '{"doc_id": 7, "text": "secret"}',
        '{"doc_id": "secret"}',
        '{"doc_id": "secret", "text": null}',
        '{"doc_id": "secret", "text": "secret", "title": 3}',
        "[" * 100_000 + "secret",
    ],
)
def test_errors_name_file_and_line_but_not_the_content(tmp_path, line):
    file = tmp_path / "corpus.jsonl"
    file.write_text(LINES + line + "\n")
    documents = read_corpus(file)
    assert [next(documents), next(documents)] == DOCUMENTS
    with pytest.raises(SottovoceError) as caught:
        next(documents)
    assert f"line 4 of {file}" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_text_that_is_not_utf8_is_refused_by_line(tmp_path):
    file = tmp_path / "own.txt"
    file.write_bytes(b"fine\nf\xfcr secret\n")
    with pytest.raises(SottovoceError, match=r"line 2 of .*own\.txt is not UTF-8") as caught:
        list(read_corpus(file))
    assert "secret" not in str(caught.value)


def test_a_damaged_archive_is_refused(tmp_path):
    file = tmp_path / "corpus.jsonl.gz"
    whole = gzip.compress("".join(f'{{"doc_id": "{i}", "text": "x"}}\n' for i in range(9)).encode())
    for damaged in (whole[:-12], b"no archive", whole[:10] + b"\xff" * 9 + whole[19:]):
        file.write_bytes(damaged)
        with pytest.raises(SottovoceError, match=r"cannot read .*corpus\.jsonl\.gz"):
            list(read_corpus(file))


def test_what_is_no_collection_is_refused_at_once(tmp_path):
    (tmp_path / "table.csv").write_text("a,b\n")
    with pytest.raises(UsageError, match="there is no file or folder"):
        read_corpus(tmp_path / "missing.jsonl")
    with pytest.raises(UsageError, match=r"holds neither corpus\.jsonl"):
        read_corpus(tmp_path)
    with pytest.raises(UsageError, match=r"neither \.jsonl nor \.txt"):
        read_corpus(tmp_path / "table.csv")


def test_real_collections_are_read_whole(shared_data):
    documents = list(read_corpus(shared_data / "ir" / "cranfield"))
    assert len(documents) == 1400
    with gzip.open(shared_data / "ir" / "cranfield" / "corpus.jsonl.gz", "rt") as stream:
        first = json.loads(stream.readline())
    assert documents[0] == Document(first["doc_id"], first["title"], first["text"])


@pytest.mark.parametrize(
    ("name", "message"),
    [("nfcorpuss", "did you mean 'nfcorpus'"), ("zzzzzzzz", "listed at ir-datasets.com")],
)
def test_an_unknown_collection_of_ir_datasets_says_where_to_look(name, message):
    pytest.importorskip("ir_datasets")
    with pytest.raises(UsageError, match=message):
        load_collection(f"ir_datasets:{name}")
