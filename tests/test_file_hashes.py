"""Hashes of model files are remembered, and never those of files that were changed."""

from __future__ import annotations

import os
import time

import pytest

from sottovoce.encoders import file_hashes
from sottovoce.encoders.file_hashes import remembered_hash
from sottovoce.files import files_hash


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(file_hashes, "SETTLED", 0.0)
    file = tmp_path / "model"
    file.write_bytes(b"one")
    time.sleep(0.02)
    return file


def test_a_hash_is_computed_once(model, monkeypatch):
    known = files_hash([model])
    assert remembered_hash([model]) == known
    monkeypatch.setattr(file_hashes, "files_hash", lambda _: 1 / 0)
    assert remembered_hash([model]) == known


def test_a_file_that_was_changed_is_read_again_whatever_its_date_says(model):
    about = model.stat()
    before = remembered_hash([model])
    model.write_bytes(b"two")
    os.utime(model, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert remembered_hash([model]) == files_hash([model]) != before


def test_a_file_changed_a_moment_ago_is_not_remembered(model, monkeypatch, tmp_path):
    monkeypatch.setattr(file_hashes, "SETTLED", 3600.0)
    remembered_hash([model])
    assert not (tmp_path / "home").exists()


def test_a_damaged_note_is_no_hash(model, tmp_path):
    known = remembered_hash([model])
    (note,) = (tmp_path / "home" / "hashes").iterdir()
    for damaged in ("", "zz", known[:20], "\ud7ff"):
        note.write_text(damaged, encoding="utf-8")
        assert remembered_hash([model]) == known
