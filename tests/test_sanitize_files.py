"""Files: other columns byte for byte, bad files refused with their line, nothing half-written."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import stat
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from command_line import run_command
from hypothesis import given, settings
from hypothesis import strategies as st

from sottovoce import mechanism
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.obfuscation import Obfuscator
from sottovoce.sanitizing import Sanitizer, open_source, sanitize_file
from sottovoce.sanitizing.sources import START
from sottovoce.sanitizing.work import State, work_folder
from sottovoce.text import TextPipeline

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

SECRET = "melanoma"


@pytest.fixture
def sanitize(small_space, tmp_path):
    """Sanitise content, and give back the output file."""

    def call(content, name, columns=("text",), out=None, rng=3, **options):
        source = tmp_path / name
        if content is not None:
            source.write_bytes(content)
        subject = Sanitizer(
            Obfuscator(
                mechanism("cmp:epsilon=0.5", space=small_space),
                pipeline=options.pop("pipeline", TextPipeline(restore_case=True)),
                rng=rng,
            ),
            columns,
            options.pop("linkable", None),
        )
        out = tmp_path / (out or f"out-{name}")
        described = {key: options.pop(key) for key in ("format", "delimiter") if key in options}
        call.report = sanitize_file(
            subject, open_source(source, columns, **described), out, **options
        )
        return out

    return call


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("scratch")


def unchanged(source):
    """The file as it would be if no text changed."""
    return b"".join(block.filled(block.texts) for block in source.blocks(START))


# CSV

CELLS = st.text(st.sampled_from("ab \",;\n\r\té😀'"), max_size=6)


@given(
    st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=8),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([",", ";", "\t"]),
)
def test_csv_is_read_as_others_read_it_and_nothing_else_is_rewritten(
    scratch, rows, quoting, ending, delimiter
):
    if any("\r" in cell for row in rows for cell in row):
        quoting = csv.QUOTE_ALL  # Python's writer leaves them bare, which its reader refuses.
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=quoting, lineterminator=ending, delimiter=delimiter)
    writer.writerows([("id", "text", "more"), *rows])
    file = scratch / "in.csv"
    file.write_bytes(out.getvalue().encode())
    source = open_source(file, ("more", "text"), delimiter=delimiter)
    (block,) = source.blocks(START)
    assert list(zip(*block.texts, strict=True)) == [(more, text) for _, text, more in rows]
    assert unchanged(source) == file.read_bytes()
    filled = block.filled([["new"] * len(rows), ['x"' + delimiter] * len(rows)])
    again = list(csv.reader(io.StringIO(filled.decode(), newline=""), delimiter=delimiter))
    assert again[1:] == [[one, 'x"' + delimiter, "new"] for one, _, _ in rows]


def test_csv_keeps_quotes_blank_lines_line_ends_and_a_byte_order_mark(sanitize):
    content = (
        b'\xef\xbb\xbfid,"text",rest\r\n\r\n"1",word1 word2,"a ""b"" c"\r\n'
        b'2,"word3, Word4",  x  \n\n\n03,"two\nlines",5" pipe'
    )
    out = sanitize(content, "in.csv").read_bytes()
    head, first, second, third = (
        b'\xef\xbb\xbfid,"text",rest\r\n\r\n"1",',
        b',"a ""b"" c"\r\n2,"',
        b'",  x  \n\n\n03,"',
        b'",5" pipe',
    )
    assert out.startswith(head)
    assert out.endswith(third)
    rest = out.removeprefix(head).removesuffix(third)
    one, rest = rest.split(first)
    two, three = rest.split(second)
    assert len(one.split()) == len(two.split()) == len(three.split(b"\n")) == 2
    assert b"," in two
    assert {one, two, three}.isdisjoint({b"word1 word2", b"word3, Word4", b"two\nlines"})
    assert sanitize.report.counts.rows == 3


def test_a_header_alone_is_a_data_set_without_rows(sanitize):
    assert sanitize(b"id,text\n", "in.csv").read_bytes() == b"id,text\n"


def test_one_column_may_have_empty_rows(sanitize):
    out = sanitize(b"text\nword1\n\nword2\n", "in.csv").read_bytes()
    assert out.count(b"\n") == 4
    assert sanitize.report.counts.rows == 3


def test_tabs_are_told_by_the_name(sanitize):
    out = sanitize(b"id\ttext\n1,5\tword1, word2\n", "in.tsv").read_bytes()
    assert out.startswith(b"id\ttext\n1,5\t")


# JSON lines

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(st.dictionaries(st.text(max_size=4), VALUES), st.none() | st.text(max_size=9)),
        min_size=1,
        max_size=5,
    ),
    st.booleans(),
    st.sampled_from([(", ", ": "), (",", ":"), (" ,\t", " :  ")]),
)
def test_json_is_read_as_others_read_it_and_nothing_else_is_rewritten(
    scratch, rows, ascii, separators
):
    objects = [{**dict(list(more.items())[:1]), "text": text, **more} for more, text in rows]
    objects = [{**each, "text": text} for each, (_, text) in zip(objects, rows, strict=True)]
    lines = [json.dumps(each, ensure_ascii=ascii, separators=separators) for each in objects]
    file = scratch / "in.jsonl"
    file.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    source = open_source(file, ("text",))
    (block,) = source.blocks(START)
    assert block.texts == [[text for _, text in rows]]
    assert unchanged(source) == file.read_bytes()
    new = [None if text is None else 'né "w' for _, text in rows]
    written = block.filled([new]).decode().split("\n")
    for line, text, before in zip(written, new, objects, strict=True):
        after = json.loads(line)
        assert list(after) == list(before)
        assert after == {**before, "text": text}


def test_json_lines_keep_order_spaces_numbers_and_blank_lines(sanitize):
    content = b'{"n": 1.50,  "text":"Word1" ,"x":{"text":"word1"}}\r\n\n{"text":null,"n":1e3}\n'
    out = sanitize(content, "in.jsonl").read_bytes()
    before, after = (
        b'{"n": 1.50,  "text":"',
        b'" ,"x":{"text":"word1"}}\r\n\n{"text":null,"n":1e3}\n',
    )
    assert out.startswith(before)
    assert out.endswith(after)
    assert out.removeprefix(before).removesuffix(after).startswith(b"Word")


# Parquet


@pytest.fixture
def table():
    n = 5000
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False, metadata={"unit": "one"}),
            pa.field("text", pa.string()),
            pa.field("kind", pa.dictionary(pa.int8(), pa.string())),
            pa.field("tags", pa.list_(pa.struct([("name", pa.string())]))),
            pa.field("when", pa.timestamp("us", tz="UTC")),
        ],
        metadata={"owner": "me"},
    )
    return pa.table(
        {
            "id": range(n),
            "text": [None if i % 7 == 0 else f"word{i % 2000} Word{i % 13}!" for i in range(n)],
            "kind": pa.array([["a", "b"][i % 2] for i in range(n)]).dictionary_encode(),
            "tags": [[{"name": f"word{i}"}] if i % 2 else None for i in range(n)],
            "when": [i * 1_000_000 for i in range(n)],
        },
        schema=schema,
    )


def test_parquet_keeps_schema_compression_and_other_columns(sanitize, table, tmp_path):
    pq.write_table(table, tmp_path / "in.parquet", compression="zstd", row_group_size=1500)
    out = sanitize(None, "in.parquet")
    file = pq.ParquetFile(out)
    assert file.schema_arrow.equals(
        pq.ParquetFile(tmp_path / "in.parquet").schema_arrow, check_metadata=True
    )
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    after = file.read()
    assert after.drop_columns("text").equals(table.drop_columns("text"))
    assert after["text"].is_null().equals(table["text"].is_null())
    texts = zip(after["text"].to_pylist(), table["text"].to_pylist(), strict=True)
    assert sum(new == old for new, old in texts if old) < 50
    assert sanitize.report.counts.rows == 5000


def test_the_three_formats_give_the_same_texts(sanitize, table, tmp_path):
    texts = [text or "" for text in table["text"].to_pylist()[:2500]]
    pq.write_table(pa.table({"text": texts}), tmp_path / "in.parquet", row_group_size=700)
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    rows = "".join(f'"{text}"\n' for text in ["text", *texts])
    from_parquet = pq.read_table(sanitize(None, "in.parquet"))["text"].to_pylist()
    from_json = sanitize(lines.encode(), "in.jsonl").read_text().splitlines()
    assert [json.loads(line)["text"] for line in from_json] == from_parquet
    with sanitize(rows.encode(), "in.csv").open(newline="") as file:
        assert [row["text"] for row in csv.DictReader(file)] == from_parquet


def test_an_empty_table_keeps_its_schema(sanitize, table, tmp_path):
    pq.write_table(table.slice(0, 0), tmp_path / "in.parquet")
    out = pq.read_table(sanitize(None, "in.parquet"))
    before = pq.read_schema(tmp_path / "in.parquet")
    assert out.schema.equals(before, check_metadata=True)
    assert out.num_rows == 0


# Packed files, workers, secure draws


def test_packed_files(sanitize):
    content = b"id,text\n" + b"".join(b"%d,word%d word2\n" % (i, i) for i in range(3000))
    plain = sanitize(content, "in.csv").read_bytes()
    assert gzip.decompress(sanitize(None, "in.csv", out="out.csv.gz").read_bytes()) == plain
    packed = sanitize(gzip.compress(content), "in2.csv.gz", out="out2.csv")
    assert packed.read_bytes() == plain


def test_workers_give_the_same_as_one_process(sanitize):
    content = b"id,text\n" + b"".join(b"%d,word%d word2\n" % (i, i) for i in range(4000))
    alone = sanitize(content, "in.csv", out="one.csv")
    counts = sanitize.report.counts
    together = sanitize(None, "in.csv", out="two.csv", workers=2)
    assert together.read_bytes() == alone.read_bytes()
    assert sanitize.report.counts == counts


def test_secure_draws_differ_from_run_to_run(sanitize):
    content = b"text\n" + b"word1 word2 word3 word4\n" * 5
    one = sanitize(content, "in.csv", out="one.csv", rng=None).read_bytes()
    assert sanitize(None, "in.csv", out="two.csv", rng=None).read_bytes() != one


# Bad files

GOOD = b"id,text\n1,word1\n"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.csv", b"", "empty"),
        ("a.csv", b"\n\n", "empty"),
        ("a.csv", GOOD + b"2,caf\xe9 melanoma\n", "line 3 of the input is not UTF-8"),
        ("a.csv", "id,text\n1,melanoma\n".encode("utf-16"), "line 1 of the input"),
        ("a.csv", GOOD + b"2,melanoma,3\n", "row in line 3 of the input has 3 fields"),
        ("a.csv", GOOD + b"melanoma\n", "row in line 3 of the input has 1 fields"),
        ("a.csv", GOOD + b'2,"x\ny"\n3,"melanoma\n', "line 5 of the input opens a quote"),
        ("a.csv", GOOD + b'2,"mela"noma\n', "line 3 of the input has a quote that closes"),
        ("a.csv", GOOD + b"2,mela\rnoma\n", "line 3 of the input has a carriage return"),
        ("a.csv", GOOD + b'"2",mela\rnoma\n', "line 3 of the input has a carriage return"),
        ("a.csv", b"id,text\r1,melanoma\r", "line 1 of the input has a carriage return"),
        ("a.csv", GOOD + b"2,mela\0noma\n", "line 3 of the input holds a NUL"),
        ("a.csv", b"id,body\n1,melanoma\n", "no column"),
        ("a.csv", b"text,text\n1,melanoma\n", "more than one column"),
        ("a.csv", GOOD + b"2," + b"melanoma " * (2 << 20) + b"\n", "row in line 3 .* longer"),
        (
            "a.csv",
            GOOD + b'2,"' + (b"melanoma " * 999 + b"\n") * 2000 + b'"\n',
            "row in line 3 .* longer",
        ),
        ("a.jsonl", b"", "empty"),
        ("a.jsonl", b"\n \n", "empty"),
        ("a.jsonl", b'{"text":"a"}\nmelanoma\n', "line 2 of the input is not a JSON object"),
        ("a.jsonl", b'{"text":"a"}\n["melanoma"]\n', "line 2 of the input is not a JSON object"),
        ("a.jsonl", b'{"text":"a"}\n{"text":"melanoma"', "line 2 of the input is not a JSON"),
        ("a.jsonl", b'{"text":"a"} {"text":"melanoma"}', "line 1 of the input is not a JSON"),
        ("a.jsonl", b'{"text":"a"}\n{"body":"melanoma"}', "line 2 of the input lacks a column"),
        ("a.jsonl", b'{"text":"a"}\n{"text":["melanoma"]}', "line 2 of the input has something"),
        ("a.jsonl", b'{"text":"a","text":"melanoma"}', "line 1 of the input has a column twice"),
        ("a.jsonl", b'{"text":' + b"[" * 99999 + b'"melanoma"', "line 1 of the input is not a"),
        (
            "a.jsonl.gz",
            gzip.compress(b'{"text":"a"}\n' * 999, mtime=0)[:-9],
            "cannot be read after line",
        ),
        ("a.parquet", b"", "empty"),
        ("a.parquet", b"PAR1 melanoma PAR1", "no Parquet file"),
    ],
)
def test_bad_files_are_refused_by_line_and_leave_nothing(sanitize, tmp_path, name, content, says):
    with pytest.raises(SottovoceError, match=says) as caught:
        sanitize(content, name, out=name.replace("a.", "out."))
    assert SECRET not in str(caught.value)
    assert (tmp_path / name).read_bytes() == content
    assert os.listdir(tmp_path) == [name]


def test_a_line_of_100_megabytes_is_refused_in_little_memory(tmp_path, small_space):
    file = tmp_path / "in.jsonl"
    with file.open("wb") as out:
        out.write(b'{"text": "a"}\n{"text": "')
        for _ in range(100):
            out.write(b"melanoma" * (1 << 17))
    with pytest.raises(UsageError, match="line 2 of the input is longer than 16 MiB"):
        list(open_source(file, ("text",)).blocks(START))


def test_a_damaged_parquet_page_is_an_error(sanitize, table, tmp_path):
    file = tmp_path / "in.parquet"
    pq.write_table(table, file, compression="zstd")
    content = bytearray(file.read_bytes())
    content[4:400] = b"\xff" * 396
    with pytest.raises(SottovoceError, match="damaged"):
        sanitize(bytes(content), "in.parquet")
    assert os.listdir(tmp_path) == ["in.parquet"]


def test_an_unknown_word_under_the_policy_error_names_its_row(sanitize, tmp_path):
    policy = TextPipeline(unknown="error")
    with pytest.raises(SottovoceError, match="row 2") as caught:
        sanitize(b"text\nword1\nword1 melanoma\n", "in.csv", pipeline=policy)
    assert SECRET not in str(caught.value)
    assert os.listdir(tmp_path) == ["in.csv"]


# Paths


def test_the_input_is_never_overwritten(sanitize, tmp_path):
    (tmp_path / "link.csv").symlink_to("in.csv")
    (tmp_path / "in.csv").write_bytes(GOOD)
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "in.csv")
    for out in ("in.csv", "link.csv", "hard.csv"):
        with pytest.raises(UsageError, match="overwrite the input"):
            sanitize(GOOD, "in.csv", out=out, overwrite=True)
        assert (tmp_path / "in.csv").read_bytes() == GOOD
    with pytest.raises(UsageError, match="report would overwrite the input"):
        sanitize(GOOD, "in.csv", report=tmp_path / "in.csv", overwrite=True)
    with pytest.raises(UsageError, match="report would overwrite the output"):
        sanitize(GOOD, "in.csv", out="out.csv", report=tmp_path / "out.csv")


def test_files_that_exist_are_replaced_only_on_demand(sanitize, tmp_path):
    old = tmp_path / "out.csv"
    old.write_bytes(b"precious")
    with pytest.raises(UsageError, match="exists already"):
        sanitize(GOOD, "in.csv", out="out.csv")
    assert old.read_bytes() == b"precious"
    with pytest.raises(UsageError, match="empty"):
        sanitize(b"", "in.csv", out="out.csv", overwrite=True)
    assert old.read_bytes() == b"precious"
    sanitize(GOOD, "in.csv", out="out.csv", overwrite=True)
    assert old.read_bytes().startswith(b"id,text\n1,word")


@pytest.mark.parametrize(
    ("out", "options", "says"),
    [
        ("out.jsonl", {}, "format of the input"),
        ("nowhere/out.csv", {}, "does not exist"),
        (".", {}, "folder"),
        ("out.csv", {"workers": 0}, "worker"),
        ("out.csv", {"delimiter": ";;"}, "one ASCII character"),
    ],
)
def test_wrong_use_leaves_nothing(sanitize, tmp_path, out, options, says):
    with pytest.raises(UsageError, match=says):
        sanitize(GOOD, "in.csv", out=out, **options)
    assert os.listdir(tmp_path) == ["in.csv"]


def test_inputs_that_cannot_be_read_twice_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    for name, says in (
        ("pipe.csv", "file on disk"),
        ("none.csv", "no such"),
        (".", "folder"),
    ):
        with pytest.raises(UsageError, match=says):
            open_source(tmp_path / name, ("text",))
    (tmp_path / "in.txt").write_bytes(GOOD)
    with pytest.raises(UsageError, match="--format"):
        open_source(tmp_path / "in.txt", ("text",))
    assert open_source(tmp_path / "in.txt", ("text",), "csv").kind.startswith("csv")


# What is on disk meanwhile, and a full disk

ROWS = 4000


def many_rows():
    return b"id,text\n" + b"".join(b"%d,word%d Word2!\n" % (i, i) for i in range(ROWS))


def stopped(sanitize, after, **options):
    """Run until some rows are done, and stop as Ctrl-C would."""

    def progress(done, total):
        if done >= after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sanitize(many_rows(), "in.csv", out="out.csv", progress=progress, **options)


def test_the_work_is_private_and_beside_the_output(sanitize, tmp_path):
    stopped(sanitize, 1000)
    folder = work_folder(tmp_path / "out.csv")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for file in folder.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not (tmp_path / "out.csv").exists()
    assert b"Word" in (folder / "output").read_bytes()
    assert b"Word" not in (folder / "journal").read_bytes() + (folder / "plan.json").read_bytes()


def test_the_output_has_the_usual_permissions(sanitize, tmp_path):
    usual = tmp_path / "usual"
    usual.touch()
    assert sanitize(GOOD, "in.csv").stat().st_mode == usual.stat().st_mode


@pytest.mark.parametrize("linkable", [None, bytes(32)])
def test_a_stopped_run_goes_on_where_it_was(sanitize, tmp_path, linkable):
    whole = sanitize(many_rows(), "in.csv", out="whole.csv", linkable=linkable)
    counts = sanitize.report.counts
    stopped(sanitize, 1000, linkable=linkable)
    with pytest.raises(UsageError, match="--resume"):
        sanitize(many_rows(), "in.csv", out="out.csv", linkable=linkable)
    seen = []
    out = sanitize(
        many_rows(),
        "in.csv",
        out="out.csv",
        resume=True,
        linkable=linkable,
        progress=lambda done, _: seen.append(done),
    )
    assert seen[0] >= 1000
    assert out.read_bytes() == whole.read_bytes()
    assert sanitize.report.counts == counts
    assert sorted(os.listdir(tmp_path)) == ["in.csv", "out.csv", "whole.csv"]


def test_a_secret_of_its_own_outlives_a_stop_and_then_is_gone(sanitize, tmp_path):
    stopped(sanitize, 1000, rng=None, linkable=os.urandom(32), own_secret=True)
    out = sanitize(
        many_rows(), "in.csv", out="out.csv", resume=True, rng=None,
        linkable=os.urandom(32), own_secret=True,
    )  # fmt: skip
    last = Counter(line.split()[-1] for line in out.read_text().splitlines()[1:])
    assert len(last) == 1
    assert not work_folder(out).exists()


def test_nothing_is_mixed(sanitize, tmp_path):
    """Other options, another input: the stopped run stays as it is and is not gone on with."""
    stopped(sanitize, 1000)
    journal = (work_folder(tmp_path / "out.csv") / "journal").read_bytes()
    for change in (
        {"rng": 4},
        {"pipeline": TextPipeline()},
        {"columns": ("id",)},
        {"linkable": bytes(32)},
    ):
        with pytest.raises(UsageError, match="an option"):
            sanitize(many_rows(), "in.csv", out="out.csv", resume=True, **change)
    with pytest.raises(UsageError, match="the input is not what"):
        sanitize(many_rows() + b"9,word1\n", "in.csv", out="out.csv", resume=True)
    assert (work_folder(tmp_path / "out.csv") / "journal").read_bytes() == journal
    sanitize(many_rows(), "in.csv", out="out.csv", resume=True)


def test_a_stopped_run_can_be_given_up(sanitize, tmp_path):
    stopped(sanitize, 1000)
    fresh = sanitize(many_rows(), "in.csv", out="out.csv", overwrite=True, rng=9).read_bytes()
    assert fresh == sanitize(many_rows(), "in.csv", out="other.csv", rng=9).read_bytes()


@pytest.mark.parametrize("damage", ["output", "plan.json"])
def test_damaged_work_is_not_gone_on_with(sanitize, tmp_path, damage):
    stopped(sanitize, 2000)
    file = work_folder(tmp_path / "out.csv") / damage
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(SottovoceError, match="damaged"):
        sanitize(many_rows(), "in.csv", out="out.csv", resume=True)
    assert not (tmp_path / "out.csv").exists()


def test_a_torn_last_line_of_the_journal_is_no_damage(sanitize, tmp_path):
    whole = sanitize(many_rows(), "in.csv", out="whole.csv").read_bytes()
    stopped(sanitize, 2000)
    folder = work_folder(tmp_path / "out.csv")
    with (folder / "journal").open("ab") as file:
        file.write(State(rows=4000).line()[:-9])
    with (folder / "output").open("ab") as file:
        file.write(b"half a row")
    assert sanitize(many_rows(), "in.csv", out="out.csv", resume=True).read_bytes() == whole


@pytest.mark.parametrize("place", [0, -300, -20])
def test_a_journal_is_good_up_to_its_first_bad_line(sanitize, tmp_path, place):
    """Noise with ends of lines, as a power cut leaves it: the blocks that follow are done again."""
    whole = sanitize(many_rows(), "in.csv", out="whole.csv").read_bytes()
    stopped(sanitize, 2000)
    journal = work_folder(tmp_path / "out.csv") / "journal"
    content = journal.read_bytes()
    journal.write_bytes(content[:place] + b"\n\0noise\n" + content[place:] + b"\nnoise\n\n")
    assert sanitize(many_rows(), "in.csv", out="out.csv", resume=True).read_bytes() == whole


def test_two_processes_do_not_write_one_output(sanitize, tmp_path):
    def progress(done, total):
        if done:
            with pytest.raises(UsageError, match="another process"):
                sanitize(None, "in.csv", out="out.csv", resume=True)

    sanitize(many_rows(), "in.csv", out="out.csv", progress=progress)
    assert (tmp_path / "out.csv").read_bytes().count(b"\n") == ROWS + 1


def test_an_input_that_changes_meanwhile_is_noticed(sanitize, tmp_path):
    def progress(done, total):
        with (tmp_path / "in.csv").open("ab") as file:
            file.write(b"9,melanoma\n")

    with pytest.raises(SottovoceError, match="changed while"):
        sanitize(many_rows(), "in.csv", out="out.csv", progress=progress)
    assert not (tmp_path / "out.csv").exists()


FULL_DISK = """
import resource, sys
from pathlib import Path
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
sys.argv = ["sottovoce", *sys.argv[2:]]
from sottovoce.cli import main
main()
"""


@pytest.mark.parametrize("name", ["in.csv", pytest.param("in.parquet", marks=pytest.mark.slow)])
def test_a_full_disk_is_an_error_and_what_was_done_is_not_lost(tmp_path, name, small_home):
    texts = [f"worda wordb wordc {i}" for i in range(4000)]
    source, out = tmp_path / name, tmp_path / f"out-{name}"
    if name == "in.csv":
        source.write_text("text\n" + "\n".join(texts) + "\n")
    else:
        pq.write_table(pa.table({"text": texts}), source)
    before = source.read_bytes()
    command = ["sanitize", str(source), str(out), "--column", "text", "--seed", "1"]
    full = subprocess.run(
        [sys.executable, "-c", FULL_DISK, "40000", *command],
        capture_output=True,
        text=True,
        env={**os.environ, "SOTTOVOCE_HOME": str(small_home)},
        timeout=120,
    )
    assert full.returncode == 1
    assert "cannot be written (File too large)" in full.stderr
    assert "--resume" in full.stderr
    assert "word" not in full.stderr
    assert not out.exists()
    assert source.read_bytes() == before
    assert run_command(*command, "--resume", home=small_home).returncode == 0
    resumed = out.read_bytes()
    assert run_command(*command, "--overwrite", home=small_home).returncode == 0
    assert out.read_bytes() == resumed


@pytest.fixture(scope="module")
def small_home(tmp_path_factory):
    return make_home(tmp_path_factory.mktemp("home"))


def make_home(folder: Path) -> Path:
    import numpy as np

    from sottovoce.spaces.store import SpaceWriter

    words = [f"word{chr(97 + i)}" for i in range(20)]
    name = "glove-840b-34k"
    with SpaceWriter(folder / "spaces" / name, name=name, dimension=5) as writer:
        writer.append(words, np.random.default_rng(1).standard_normal((20, 5)))
        writer.commit()
    return folder
