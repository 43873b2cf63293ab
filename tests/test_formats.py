"""Reading files of vectors: every format, every way a file can be wrong."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.errors import SpaceError, UsageError
from sottovoce.spaces import formats, readers, store
from sottovoce.spaces.formats import detect, import_vectors
from sottovoce.spaces.space import WordSpace

WORDS = ["the", "über", "naïve", "你好", "e-mail", "3.14", "...", "#"]
VECTORS = np.array(
    [[i + j / 8, -i * 1e-3, 2.5e-7 * j - i] for j, i in enumerate(range(len(WORDS)))], np.float32
)


def as_text(words, vectors, *, header=False, end="\n"):
    lines = [f"{len(words)} {vectors.shape[1]}"] if header else []
    lines += [
        " ".join([word, *(repr(float(x)) for x in row)])
        for word, row in zip(words, vectors, strict=True)
    ]
    return "".join(line + end for line in lines).encode()


def as_binary(words, vectors, *, end=b"\n"):
    entries = [
        word.encode() + b" " + row.astype("<f4").tobytes() + end
        for word, row in zip(words, vectors, strict=True)
    ]
    return f"{len(words)} {vectors.shape[1]}\n".encode() + b"".join(entries)


def write_npz(path, words, vectors):
    with path.open("wb") as file:
        np.savez_compressed(file, words=np.array(words), vectors=vectors)


def lines_of(count, dimension=2):
    """Regular lines, one word each."""
    return [f"w{i} " + " ".join([f"{i}.5"] * dimension) for i in range(1, count + 1)]


def imported(path, **options):
    report = import_vectors(path, path.parent / "space", name="test", **options)
    return WordSpace.open(path.parent / "space"), report


def write(tmp_path, lines):
    path = tmp_path / "vectors.txt"
    path.write_bytes(b"\n".join(s if isinstance(s, bytes) else s.encode() for s in lines) + b"\n")
    return path


def import_lines(tmp_path, lines):
    return imported(write(tmp_path, lines))


def contents(space):
    return space.words(range(space.size)), np.asarray(space.vectors)


@pytest.mark.parametrize(
    ("name", "data", "format_name"),
    [
        ("plain.txt", as_text(WORDS, VECTORS), "glove"),
        ("windows.txt", as_text(WORDS, VECTORS, end="\r\n"), "glove"),
        ("no-last-newline.txt", as_text(WORDS, VECTORS).rstrip(b"\n"), "glove"),
        ("mark.txt", b"\xef\xbb\xbf" + as_text(WORDS, VECTORS), "glove"),
        ("blank-lines.txt", as_text(WORDS, VECTORS).replace(b"\n", b"\n \n") + b"\n", "glove"),
        ("gzipped.txt.gz", gzip.compress(as_text(WORDS, VECTORS), mtime=0), "glove"),
        ("gzipped-without-saying", gzip.compress(as_text(WORDS, VECTORS), mtime=0), "glove"),
        ("header.txt", as_text(WORDS, VECTORS, header=True), "word2vec"),
        ("trailing-space.vec", as_text(WORDS, VECTORS, header=True, end=" \n"), "word2vec"),
        ("header-no-suffix", as_text(WORDS, VECTORS, header=True), "word2vec"),
        (
            "facebook.vec.gz",
            gzip.compress(as_text(WORDS, VECTORS, header=True), mtime=0),
            "word2vec",
        ),
        ("google.bin", as_binary(WORDS, VECTORS), "word2vec-binary"),
        ("gensim.bin", as_binary(WORDS, VECTORS, end=b""), "word2vec-binary"),
        ("google.bin.gz", gzip.compress(as_binary(WORDS, VECTORS), mtime=0), "word2vec-binary"),
    ],
)
def test_every_format_is_recognised_and_gives_the_same_space(tmp_path, name, data, format_name):
    path = tmp_path / name
    path.write_bytes(data)
    assert detect(path) == format_name
    space, report = imported(path)
    words, vectors = contents(space)
    assert words == WORDS
    np.testing.assert_array_equal(vectors, VECTORS)
    assert report.words == len(WORDS)
    assert report.dimension == 3
    assert report.remarks() == []


@pytest.mark.parametrize("dtype", ["<f2", "<f4", ">f4", "<f8"])
def test_npz_of_any_float_type_is_read(tmp_path, dtype):
    vectors = np.array([[0.5, -2.0], [1.0, 3.25]], dtype=dtype)
    write_npz(tmp_path / "a.npz", ["one", "zwei"], vectors)
    assert detect(tmp_path / "a.npz") == "npz"
    words, read = contents(imported(tmp_path / "a.npz")[0])
    assert words == ["one", "zwei"]
    np.testing.assert_array_equal(read, vectors.astype(np.float32))


readable_words = st.text(
    st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=1, max_size=8
)
tables = st.integers(1, 4).flatmap(
    lambda width: st.lists(
        st.tuples(
            readable_words,
            st.lists(
                st.floats(-(2.0**18), 2.0**18, width=32) | st.floats(-(2.0**60), 2.0**60, width=32),
                min_size=width,
                max_size=width,
            ),
        ),
        min_size=1,
        max_size=12,
        unique_by=lambda entry: entry[0],
    )
)


@given(
    table=tables,
    kind=st.sampled_from(["word2vec", "fasttext", "word2vec-binary", "npz"]),
    block=st.sampled_from([1, 7, 64, 1 << 22]),
)
def test_what_was_written_is_read_back_exactly_whatever_the_block_size(
    tmp_path_factory, table, kind, block
):
    words = [word for word, _ in table]
    vectors = np.array([row for _, row in table], dtype=np.float32)
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    usual = np.median(lengths[lengths > 0]) if lengths.any() else 0
    extreme = lengths.max() > store.LONGEST or 0 < usual < store.SHORTEST
    path = tmp_path_factory.mktemp("round-trip") / "file"
    if kind == "npz":
        write_npz(path, words, vectors)
    elif kind == "word2vec-binary":
        path.write_bytes(as_binary(words, vectors))
    else:
        path.write_bytes(as_text(words, vectors, header=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(readers, "BLOCK_BYTES", block)
        if extreme:
            with pytest.raises(SpaceError, match=r"too (large|small)"):
                imported(path, format=kind)
            return
        space, _ = imported(path, format=kind)
    read_words, read_vectors = contents(space)
    assert read_words == words
    np.testing.assert_array_equal(read_vectors, vectors)


def classified(line, dimension):
    """The border between entries, malformed lines and errors, as plainly as it can be put."""
    first, *fields = line.rstrip(b" \r").split(b" ")
    plain = rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf)"
    numbers = [re.fullmatch(plain, field) is not None for field in fields]
    k = next((i for i, number in enumerate(reversed(numbers)) if not number), len(numbers))
    if k > dimension or (k == len(fields) and 0 < k < dimension):
        return "wrong dimension"
    if k < dimension:
        return "malformed"
    try:
        return b" ".join([first, *fields[:-dimension]]).decode()
    except UnicodeDecodeError:
        return "malformed"


pieces = st.sampled_from([b"1", b"-2.5e-3", b".5", b"nan", b"x", b"", b"1_0", b"1-2", b"\xa02"])
raw_lines = st.builds(
    lambda word, fields: b" ".join([word, *fields]),
    st.sampled_from([b"w", b"\xff", b"\xc3\xa9", b"7", b"", b"."]),
    st.lists(pieces, max_size=4),
).filter(lambda line: line.strip(b" "))


@given(st.lists(raw_lines, min_size=1, max_size=6))
def test_the_fast_path_draws_the_border_where_the_definition_does(lines):
    expected = [classified(line, 2) for line in lines]
    if "wrong dimension" in expected:
        number = expected.index("wrong dimension") + 1
        with pytest.raises(SpaceError, match=f"line {number}:"):
            readers._parse_lines(Path("f"), 1, lines, 2, 0)
        return
    batch = readers._parse_lines(Path("f"), 1, lines, 2, 0)
    assert batch.words == [each for each in expected if each != "malformed"]
    assert batch.malformed == [n for n, each in enumerate(expected, 1) if each == "malformed"]
    assert len(batch.vectors) == len(batch.words) == len(batch.numbers)


def test_words_with_spaces_are_words_and_a_number_may_be_a_word(tmp_path):
    lines = ["the 1 2", "42 3 4", ". . . 5 6", "at name 7 8", "1e5 9 10"]
    batches = list(formats.read(write(tmp_path, lines), "glove"))
    assert [word for batch in batches for word in batch.words] == [
        *("the", "42", ". . .", "at name", "1e5")
    ]
    np.testing.assert_array_equal(batches[0].vectors, [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]])


def test_words_that_no_text_can_match_are_left_out_and_reported_by_line(tmp_path):
    ugly = ["", "a\xa0b", ". . .", "tab\tbed", "bell\a", "next\x85line", "zero\u200bwidth"]
    space, report = import_lines(tmp_path, [f"{word} 1 2" for word in ["good", *ugly, "fine"]])
    assert contents(space)[0] == ["good", "fine"]
    assert report.left_out.count == len(ugly)
    assert report.left_out.first == tuple(range(2, 2 + len(ugly)))
    assert "7 left out" in report.remarks()[0]
    assert "lines 2, 3, 4, 5, 6, 7, 8" in report.remarks()[0]
    assert space.source["remarks"] == report.remarks()[0]


def test_words_not_in_normal_form_are_kept_but_reported(tmp_path):
    space, report = import_lines(tmp_path, ["cafe\u0301 1 2", "café 3 4"])
    assert space.size == 2
    assert report.not_normalized.first == (1,)


MALFORMED = {
    "a word among the numbers": "w x 2.5",
    "an empty field": "w  2.5",
    "no number": "lonely",
    "an underscore in a number": "w 1_0 2",
    "hexadecimal": "w 0x1 2",
    "a comma": "w 1,5 2",
    "a word that is not UTF-8": b"w\xff 1 2",
    "a word with spaces that is not UTF-8": b"w \xff 1 2",
    "numbers in another script": "w ٣ 2",
    "two fields joined": "w 1-2",
}


@pytest.mark.parametrize("line", MALFORMED.values(), ids=MALFORMED)
def test_malformed_lines_are_skipped_and_counted_by_number(tmp_path, line):
    lines = lines_of(200)
    lines[149] = line
    space, report = import_lines(tmp_path, lines)
    assert space.size == 199
    assert "w150" not in space
    assert "w151" in space
    assert (report.malformed.count, report.malformed.first) == (1, (150,))
    assert "1 malformed, skipped (line 150)" in report.remarks()


def test_only_the_first_malformed_lines_are_listed_but_all_are_counted(tmp_path):
    lines = lines_of(3100)
    for i in range(0, 3100, 100):
        lines[i] = "nothing"
    _, report = import_lines(tmp_path, lines)
    assert report.malformed.count == 31
    assert report.malformed.first == tuple(range(1, 2001, 100))
    assert "1901, 11 more" in report.remarks()[0]


def test_more_than_one_percent_malformed_is_an_error_that_lists_lines(tmp_path):
    lines = lines_of(200)
    lines[9] = lines[19] = lines[29] = "nothing"
    with pytest.raises(SpaceError, match=r"3 malformed \(lines 10, 20, 30\).*--format"):
        import_lines(tmp_path, lines)


def test_too_many_malformed_lines_stop_the_import_early(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "MOST_MALFORMED", 5)
    monkeypatch.setattr(readers, "BLOCK_BYTES", 1000)
    lines = ["nothing"] * 6 + lines_of(10_000)
    # A duplicate at the end would be the complaint if the whole file had been read.
    with pytest.raises(SpaceError, match="6 malformed"):
        import_lines(tmp_path, ["w 1 2", *lines, "w 1 2"])


FATAL = {
    "too few numbers": ("w 1", "2 numbers expected, 1 found"),
    "too many numbers": ("w 1 2 3", "2 numbers expected, 3 found"),
    "too many after a word with spaces": ("a b 1 2 3", "2 numbers expected, 3 found"),
    "NaN": ("w 1 nan", "NaN, infinite or too large"),
    "infinity": ("w -inf 2", "NaN, infinite or too large"),
    "infinity after a word with spaces": ("a b inf 2", "NaN, infinite or too large"),
    "beyond float32": ("w 1 1e39", "NaN, infinite or too large"),
    "beyond float64": ("w 1 1e999", "NaN, infinite or too large"),
    "a norm beyond float32": ("w 1e20 1e20", "NaN, infinite or too large"),
}


@pytest.mark.parametrize(("line", "message"), FATAL.values(), ids=FATAL)
def test_a_line_that_breaks_the_space_stops_the_import_and_is_named(tmp_path, line, message):
    lines = lines_of(200)
    lines[149] = line
    with pytest.raises(SpaceError, match=f"line 150: .*{message}"):
        import_lines(tmp_path, lines)
    assert [path.name for path in tmp_path.iterdir()] == ["vectors.txt"]


@pytest.mark.parametrize("block", [200, 1 << 22])
def test_duplicates_are_an_error_that_names_both_lines_in_spite_of_what_was_skipped(
    tmp_path, monkeypatch, block
):
    monkeypatch.setattr(readers, "BLOCK_BYTES", block)
    lines = lines_of(300)
    lines[4], lines[7], lines[200] = "nothing", "a\xa0b 1 2", lines[10]
    with pytest.raises(SpaceError, match=r"the same word twice \(lines 11, 201\)") as caught:
        import_lines(tmp_path, lines)
    assert "w11" not in str(caught.value)


def test_a_cut_off_file_is_an_error(tmp_path):
    whole = as_text(WORDS, VECTORS, header=True)
    for name, data in {
        "cut.vec": whole[: whole.rindex(b"\n", 0, -1) + 1],
        "cut.bin": as_binary(WORDS, VECTORS)[:-5],
        "long.bin": as_binary(WORDS, VECTORS) + b"more 1234",
        "cut.txt.gz": gzip.compress(whole)[:-20],
        "spoilt.txt.gz": gzip.compress(whole)[:30] + b"?" * 40,
        "long.vec": whole + b"more 1 2 3\n",
    }.items():
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(SpaceError, match=r"promises|damaged or incomplete"):
            imported(path)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("empty.txt", b""),
        ("blank.txt", b"\n \n"),
        ("empty.txt.gz", gzip.compress(b"", mtime=0)),
        ("only-header.vec", b"5 3\n"),
        ("zero.vec", b"0 3\n"),
        ("prose.txt", b"It was a dark night.\nIt rained.\nThe end.\n"),
        ("words.txt", b"one\ntwo\n"),
        ("ugly.txt", b"\xc2\xa0 1 2\n"),
        ("noise.dat", bytes(range(256)) * 50),
    ],
)
def test_a_file_without_vectors_is_an_error_and_leaves_nothing_behind(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(SpaceError, match=name):
        imported(path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_not_there_or_a_format_unknown_is_wrong_use(tmp_path):
    with pytest.raises(UsageError, match="cannot read"):
        imported(tmp_path / "nowhere.txt")
    with pytest.raises(UsageError, match="use auto, glove, word2vec"):
        imported(write(tmp_path, ["a 1"]), format="excel")


def test_a_fasttext_model_is_refused_with_the_way_out(tmp_path):
    path = tmp_path / "cc.de.300.bin"
    path.write_bytes(b"\xba\x16\x4f\x2f" + bytes(100))
    with pytest.raises(UsageError, match=r"\.vec"):
        imported(path)


def test_binary_entries_are_named_by_their_number(tmp_path):
    vectors = np.ones((200, 2), np.float32)
    vectors[149, 1] = np.nan
    words = [f"w{i}" for i in range(200)]
    path = tmp_path / "a.bin"
    path.write_bytes(as_binary(words, vectors))
    with pytest.raises(SpaceError, match="entry 150"):
        imported(path)
    vectors[149, 1] = 1
    path.write_bytes(as_binary(words, vectors).replace(b"w149", b"\xff149"))
    _, report = imported(path)
    assert report.remarks() == ["1 malformed, skipped (entry 150)"]


def test_a_gigantic_promise_does_not_take_gigantic_memory(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"999999999999 999999999999\n" + b"x" * 100)
    with pytest.raises(SpaceError, match="expected the header"):
        imported(path, format="word2vec-binary")


@pytest.mark.parametrize(
    "arrays",
    [
        {"words": np.array(["a"])},
        {"words": np.array(["a", "b"]), "vectors": np.ones((1, 2))},
        {"words": np.array([["a"]]), "vectors": np.ones((1, 2))},
        {"words": np.array(["a"], dtype=object), "vectors": np.ones((1, 2))},
        {"words": np.array(["a"]), "vectors": np.array([["1"]])},
        {"words": np.array(["a", "b"]), "vectors": np.asfortranarray(np.ones((2, 2)))},
        {"words": np.array(["a"]), "vectors": np.ones(())},
        {"words": np.array([], dtype="U1"), "vectors": np.ones((0, 2))},
    ],
)
def test_an_npz_with_other_arrays_is_refused_never_unpickled(tmp_path, arrays):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(SpaceError, match=r"a\.npz"):
        imported(tmp_path / "a.npz")


def test_npz_words_that_are_not_text_are_malformed(tmp_path):
    words = [f"w{i}" for i in range(200)]
    words[149] = "\ud800"
    write_npz(tmp_path / "a.npz", words, np.ones((200, 2)))
    _, report = imported(tmp_path / "a.npz")
    assert report.remarks() == ["1 malformed, skipped (entry 150)"]


def wink(words, vectors, listed=None):
    rows = {
        word: [*map(float, row), 1.0, index]
        for index, (word, row) in enumerate(zip(words, vectors, strict=True))
    }
    content = {
        "precision": 8,
        "dimensions": vectors.shape[1],
        "words": listed or words,
        "vectors": rows,
        "unkVector": [0, 0, 0, 0, -1],
    }
    return json.dumps(content, separators=(",", ":")).encode()


@pytest.mark.parametrize("block", [1, 50, 1 << 22])
def test_wink_json_is_read_in_pieces_of_any_size(tmp_path, monkeypatch, block):
    monkeypatch.setattr(readers, "BLOCK_BYTES", block)
    words = [*WORDS[:6], '"', "\\"]
    path = tmp_path / "a.json"
    path.write_bytes(wink(words, VECTORS))
    assert detect(path) == "wink-json"
    read_words, read_vectors = contents(imported(path)[0])
    assert read_words == words
    np.testing.assert_array_equal(read_vectors, VECTORS)


def test_wink_json_out_of_order_or_cut_off_is_refused(tmp_path):
    path = tmp_path / "a.json"
    for data in (
        wink(WORDS, VECTORS, listed=WORDS[::-1]),
        wink(WORDS, VECTORS).replace(b"1.0,5]", b"1.0,6]"),
        wink(WORDS, VECTORS)[:-200],
        wink(WORDS, VECTORS, listed=[*WORDS, "more"]),
        b'{"some": "other JSON"}',
        b'{"vectors":{}}',
    ):
        path.write_bytes(data)
        with pytest.raises(SpaceError, match=r"a\.json"):
            imported(path)


def test_progress_grows_to_the_whole_file(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "BLOCK_BYTES", 1000)
    path = write(tmp_path, lines_of(1000))
    calls = []
    import_vectors(path, tmp_path / "s", name="s", progress=lambda *call: calls.append(call))
    done = [position for position, _ in calls]
    assert len(done) > 5
    assert done == sorted(done)
    assert {total for _, total in calls} == {path.stat().st_size} == {done[-1]}


def test_an_earlier_space_survives_an_import_that_fails(tmp_path):
    import_vectors(write(tmp_path, ["a 1 2"]), tmp_path / "s", name="s")
    with pytest.raises(SpaceError):
        import_vectors(write(tmp_path, ["a 1 2", "a 1 2"]), tmp_path / "s", name="s")
    assert contents(WordSpace.open(tmp_path / "s"))[0] == ["a"]
