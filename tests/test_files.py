"""Files: read with errors by line, written whole or not at all, locked between processes."""

import gzip
import io
import os
import signal
import subprocess
import sys
import time

import pytest

from sottovoce import files
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.files import (
    CsvTable,
    json_lines,
    json_objects,
    locked,
    move_folder,
    numbered_lines,
    read_lines,
    read_text,
    read_words,
    settle_file,
    whole_file,
    write_whole,
)

SECRET = "melanoma"
HOW = "give another file"


# Reading.


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_text_is_read_plain_or_gzipped_with_a_byte_order_mark_or_without(tmp_path, pack, mark):
    file = tmp_path / "text"
    file.write_bytes(pack(f"{mark}café\r\nsecond\n".encode()))
    assert read_text(file) == "café\r\nsecond\n"


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_text_is_read_from_standard_input(monkeypatch, pack):
    data = io.BytesIO(pack(b"one\ntwo\n"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(data))
    assert read_text("-") == "one\ntwo\n"


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (f"one\n{SECRET} caf".encode() + b"\xe9\n", UsageError, "line 2 of the file is not UTF-8"),
        (f"one\ntwo\n{SECRET}\0\n".encode(), UsageError, "line 3 of the file holds a NUL byte"),
        (
            gzip.compress(SECRET.encode() * 9, mtime=0)[:-9],
            SottovoceError,
            r"cannot be read \(EOFError\)",
        ),
        (
            gzip.compress(b"x" * 99, mtime=0)[:10] + b"\xff" * 99,
            SottovoceError,
            r"cannot be read \(error\)",
        ),
    ],
    ids=["latin-1", "NUL byte", "cut off", "damaged"],
)
def test_a_text_that_cannot_be_read_is_refused_by_line(tmp_path, data, kind, message):
    file = tmp_path / "text"
    file.write_bytes(data)
    with pytest.raises(SottovoceError, match=message) as caught:
        read_text(file)
    assert type(caught.value) is kind
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path):
    with pytest.raises(UsageError, match="there is no such file"):
        read_text(tmp_path / "none")
    with pytest.raises(UsageError, match="that is a folder"):
        read_text(tmp_path)


@pytest.mark.parametrize(("name", "pack"), [("a.txt", bytes), ("a.txt.gz", gzip.compress)])
def test_lines_come_stripped_with_their_numbers(tmp_path, name, pack):
    file = tmp_path / name
    file.write_bytes(pack("\ufeffone\n\n  two \r\n".encode()))
    assert list(read_lines(file)) == [(1, "one"), (3, "two")]


def test_lines_are_read_as_far_as_they_can_be(tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes(b"one\n" + SECRET.encode() + b"\xff\n")
    lines = read_lines(file)
    assert next(lines) == (1, "one")
    with pytest.raises(SottovoceError, match=r"line 2 of .*a\.txt is not UTF-8 text") as caught:
        next(lines)
    assert SECRET not in str(caught.value)
    file = tmp_path / "cut.txt.gz"
    file.write_bytes(gzip.compress(b"one\n" * 100_000, mtime=0)[:-20])
    with pytest.raises(SottovoceError, match=r"cannot read .* beyond line \d+ \(EOFError\)"):
        list(read_lines(file))
    with pytest.raises(SottovoceError, match=r"beyond line 0 \(FileNotFoundError\)"):
        list(read_lines(tmp_path / "none"))


def test_words_come_one_a_line_each_once(tmp_path):
    file = tmp_path / "words"
    file.write_bytes("\ufeffskin\r\n\n  Cancer \nskin\n".encode())
    assert read_words(file) == {"skin", "Cancer"}


def test_json_lines_name_the_line_and_what_to_write(tmp_path):
    content = '{"a": 1}\n\n[2]\n3\n{"' + SECRET
    values = json_lines(numbered_lines(content), "the log", how=HOW)
    assert [next(values) for _ in range(3)] == [(1, {"a": 1}), (3, [2]), (4, 3)]
    with pytest.raises(UsageError, match=f"line 5 of the log is not JSON: {HOW}") as caught:
        next(values)
    assert SECRET not in str(caught.value)
    with pytest.raises(UsageError, match="line 1 of the file is not JSON"):
        list(json_lines([(1, "[" * 100_000)], how=HOW))


def test_json_objects_refuse_other_values():
    rows = json_objects(numbered_lines('{"a": 1}\n[2]'), how=HOW, error=SottovoceError)
    assert next(rows) == (1, {"a": 1})
    with pytest.raises(SottovoceError, match="line 2 of the file is JSON but not an object") as e:
        next(rows)
    assert not isinstance(e.value, UsageError)


def test_rows_of_a_table_come_with_the_line_they_end_in():
    table = CsvTable('id,text\r\n1,"a, ""b"",\nc"\r\n\r\n2,d\r\n', how=HOW)
    assert table.header == ["id", "text"]
    rows = [(3, {"id": "1", "text": 'a, "b",\nc'}), (5, {"id": "2", "text": "d"})]
    assert list(table) == rows


def test_a_table_with_tabs_takes_quotes_as_letters_and_folds_its_header():
    table = CsvTable(' User \tQUERY\n1\ta "b, c\n', how=HOW, tabs=True, fold_header=True)
    assert list(table) == [(2, {"user": "1", "query": 'a "b, c'})]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f"id,text\n1,a\n2,{SECRET},c\n", "ends in line 3 of the log has another number .*: quote"),
        (f'id,text\n"1\n{SECRET}"\n', "the row that ends in line 3 of the log has another number"),
        (f"id,text\n1,{SECRET * 20_000}\n", f"line 2 of the log cannot be read: {HOW}"),
        (f"{SECRET * 20_000},id\n1,2\n", f"line 1 of the log cannot be read: {HOW}"),
        (f"{SECRET},x\n1,2\n", f"the log has no column id and text: {HOW}"),
        ("", f"the log has no column id and text: {HOW}"),
    ],
)
def test_a_broken_table_is_refused_by_line(content, message):
    def read():
        table = CsvTable(content, "the log", how=HOW, quoting="quote it")
        table.require("id", "text")
        list(table)

    with pytest.raises(UsageError, match=message) as caught:
        read()
    assert SECRET not in str(caught.value)


# Writing.


def test_a_file_is_replaced_as_a_whole(tmp_path):
    file = tmp_path / "file"
    write_whole(file, b"old")
    write_whole(file, b"new")
    assert file.read_bytes() == b"new"
    with whole_file(file) as part:
        part.write_bytes(b"newest")
        assert file.read_bytes() == b"new"
    assert file.read_bytes() == b"newest"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("error", [OSError, UsageError, KeyboardInterrupt])
def test_after_an_error_the_old_file_is_as_it_was(tmp_path, alone, error):
    file = tmp_path / "file"
    file.write_bytes(b"old")

    def interrupted():
        with whole_file(file, alone=alone) as part:
            part.write_bytes(b"half")
            raise error

    with pytest.raises(error):
        interrupted()
    assert file.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_disk_that_fails_leaves_the_old_file(tmp_path, monkeypatch, call):
    file = tmp_path / "file"
    file.write_bytes(b"old")

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match="No space left"):
        write_whole(file, b"new")
    assert file.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_what_a_killed_process_left_is_written_over_by_the_only_writer(tmp_path):
    (tmp_path / ".file.growing").write_bytes(b"half of something longer")
    write_whole(tmp_path / "file", b"whole")
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"whole"


def test_two_writers_at_once_do_not_mix(tmp_path):
    file = tmp_path / "file"
    with whole_file(file) as one, whole_file(file) as other:
        one.write_bytes(b"one")
        other.write_bytes(b"other")
    assert file.read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_private_files_are_private_from_the_first_byte(tmp_path):
    file = tmp_path / "file"
    mask = os.umask(0o022)
    try:
        with whole_file(file, 0o600, alone=True) as part:
            part.write_bytes(b"mine")
            assert part.stat().st_mode & 0o777 == 0o600
        assert file.stat().st_mode & 0o777 == 0o600
        settle_file(file)
        assert file.stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(mask)


def folder(path, content):
    path.mkdir()
    (path / "file").write_text(content)
    return path


def test_a_folder_is_moved_replaced_or_kept(tmp_path):
    aside, target = tmp_path / "aside", tmp_path / "target"
    aside.mkdir()
    move_folder(folder(aside / "first", "first"), target, aside)
    assert (target / "file").read_text() == "first"
    move_folder(folder(aside / "second", "second"), target, aside)
    assert (target / "file").read_text() == "second"
    move_folder(folder(aside / "third", "third"), target, aside, keep=lambda: True)
    assert (target / "file").read_text() == "second"
    with pytest.raises(FileNotFoundError):
        move_folder(aside / "none", target, aside)


# Locking.

HOLD = """
import sys, time
from pathlib import Path
from sottovoce.files import locked
with locked(Path(sys.argv[1]), wait=True, remove=len(sys.argv) > 2):
    print("in", flush=True)
    sys.stdin.readline()
print("out", flush=True)
"""


def hold(file, *options):
    """Another process that holds the lock until it gets a line, or is killed."""
    command = [sys.executable, "-c", HOLD, str(file), *options]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_lock_keeps_other_processes_out_until_it_is_let_go(tmp_path):
    file = tmp_path / "lock"
    with hold(file) as process:
        assert process.stdout.readline() == "in\n"
        with pytest.raises(UsageError, match="in use"), locked(file, wait=False, busy="in use"):
            pass
        process.stdin.write("\n")
        process.stdin.close()
        assert process.stdout.readline() == "out\n"
        with locked(file, wait=False):
            pass


def test_a_waiting_process_comes_in_when_the_other_is_killed(tmp_path):
    file = tmp_path / "lock"
    with hold(file) as first:
        assert first.stdout.readline() == "in\n"
        with hold(file) as second:
            time.sleep(0.3)
            assert second.poll() is None
            first.send_signal(signal.SIGKILL)
            assert second.stdout.readline() == "in\n"
            second.stdin.close()


def test_a_lock_that_is_removed_still_keeps_everybody_out(tmp_path):
    file = tmp_path / "lock"
    with hold(file, "remove") as first:
        assert first.stdout.readline() == "in\n"
        with hold(file, "remove") as second:
            time.sleep(0.3)
            first.stdin.close()  # It removes the file while the second one waits for it.
            assert second.stdout.readline() == "in\n"
            with pytest.raises(UsageError), locked(file, wait=False):
                pass
            second.stdin.close()
            assert second.stdout.readline() == "out\n"
    assert not file.exists()


def test_a_lock_is_free_after_an_error(tmp_path):
    file = tmp_path / "lock"
    with pytest.raises(KeyError), locked(file, wait=False, remove=True):
        raise KeyError
    with locked(file, wait=False):
        pass


# Folders: made aside, moved into place.


def filled(folder, content):
    folder.mkdir()
    (folder / "file").write_text(content)
    return folder


def test_a_folder_changes_places_with_the_one_it_replaces_in_one_step(tmp_path, monkeypatch):
    """A process that is killed in between leaves the old one, or the new one, never none."""
    names = []
    rename = os.rename
    monkeypatch.setattr(os, "rename", lambda *both: (names.append(both), rename(*both)))
    filled(tmp_path / "mine", "old")
    aside = tmp_path / "aside"
    aside.mkdir()
    made = filled(aside / "made", "new")
    if not files.exchange(made, tmp_path / "mine"):
        pytest.skip("this system cannot exchange two folders")
    files.exchange(made, tmp_path / "mine")
    move_folder(made, tmp_path / "mine", aside)
    assert (tmp_path / "mine" / "file").read_text() == "new"
    assert (made / "file").read_text() == "old"
    assert all(os.fspath(one) != str(tmp_path / "mine") for one, _ in names)


def test_where_folders_cannot_be_exchanged_the_old_one_is_moved_aside(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "exchange", lambda one, two: False)
    filled(tmp_path / "mine", "old")
    aside = tmp_path / "aside"
    aside.mkdir()
    move_folder(filled(aside / "made", "new"), tmp_path / "mine", aside)
    assert (tmp_path / "mine" / "file").read_text() == "new"
    assert (aside / "replaced-0" / "file").read_text() == "old"


IN_A_SCRATCH_FOLDER = """
import sys, time
from pathlib import Path
from sottovoce.files import scratch_folder
with scratch_folder(Path(sys.argv[1]), ".made-") as folder:
    print(folder, flush=True)
    time.sleep(60)
"""


def test_what_a_killed_process_left_goes_away_and_what_others_use_stays(tmp_path, monkeypatch):
    process = subprocess.Popen(
        [sys.executable, "-c", IN_A_SCRATCH_FOLDER, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        folder = process.stdout.readline().strip()
        monkeypatch.setattr(files, "SCRATCH_SECONDS", -1.0)
        with files.scratch_folder(tmp_path, ".made-"):
            assert os.path.exists(folder)
    finally:
        process.kill()
        process.communicate()
    monkeypatch.setattr(files, "SCRATCH_SECONDS", 60.0)
    files.clear_scratch(tmp_path, ".made-")
    assert os.path.exists(folder), "it is too young to be told from one that is being made"
    monkeypatch.setattr(files, "SCRATCH_SECONDS", -1.0)
    with files.scratch_folder(tmp_path, ".made-") as mine:
        assert [path.name for path in tmp_path.iterdir()] == [mine.name]
    assert list(tmp_path.iterdir()) == []
