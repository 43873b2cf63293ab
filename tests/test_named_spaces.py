"""Named spaces: adding, importing, finding again, and refusing what is not right."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import threading
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from sottovoce.errors import SpaceError, UsageError
from sottovoce.resources import catalogue as catalogue_module
from sottovoce.resources import install, local
from sottovoce.resources.catalogue import WORD_SPACE, Conversion, PackagedFile, Resource
from sottovoce.spaces import store
from sottovoce.spaces.formats import import_vectors
from sottovoce.spaces.space import WordSpace

TEXT = b"3 2\nthe 1 2\ncat 3 4\na\xc2\xa0b 5 6\n"
JSON = json.dumps(
    {
        "dimensions": 2,
        "words": ["the", "cat"],
        "vectors": {"the": [1, 2, 2.2, 0], "cat": [3, 4, 5, 1]},
        "unkVector": [0, 0, 0, -1],
    },
    separators=(",", ":"),
).encode()
online = pytest.mark.skipif("SOTTOVOCE_OFFLINE" in os.environ, reason="SOTTOVOCE_OFFLINE is set")
needs_npm = pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def write_wheel(path, text=TEXT, member="pkg/data.txt"):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("pkg/__init__.py", "raise SystemExit('never run')")
        wheel.writestr(member, text)
    return path


def write_tarball(path, content=JSON):
    with tarfile.open(path, "w:gz") as tarball:
        for name, data in (("package/package.json", b"{}"), ("package/data.json", content)):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tarball.addfile(entry, io.BytesIO(data))
    return path


@pytest.fixture
def wheel(tmp_path):
    return write_wheel(tmp_path / "pkg-1.0-py3-none-any.whl")


@pytest.fixture(autouse=True)
def catalogue(tmp_path, monkeypatch, request):
    """A catalogue as small as it gets, of the same make as the real one; slow tests use that."""
    if request.node.get_closest_marker("slow"):
        return catalogue_module.CATALOGUE
    (tmp_path / "data.txt").write_bytes(TEXT)
    import_vectors(tmp_path / "data.txt", tmp_path / "expected", name="expected")
    sha256 = WordSpace.open(tmp_path / "expected").sha256
    package = "sottovoce-no-such-package"
    text = Resource(
        name="tiny-text",
        alias="default",
        kind=WORD_SPACE,
        about="two words",
        licence="none needed",
        words=2,
        dimension=2,
        files=(PackagedFile("PyPI", package, "1.0", "pkg/data.txt", sha(TEXT)),),
        conversion=Conversion("word2vec", sha256),
    )
    as_json = replace(
        text,
        name="tiny-json",
        alias="large",
        files=(PackagedFile("npm", package, "1.0.0", "package/data.json", sha(JSON)),),
        conversion=Conversion("wink-json", sha256),
    )
    monkeypatch.setattr(catalogue_module, "CATALOGUE", (text, as_json))
    return text, as_json


def add(name, archive=None, say=None):
    resource = catalogue_module.named(name)
    install.add(resource, archives=[] if archive is None else [archive], say=say)
    return local.load_space(name)


def sha(data):
    return hashlib.sha256(data).hexdigest()


def left_in(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


# Adding


def test_add_takes_the_data_out_of_a_package_and_resolve_finds_it(wheel, home):
    said = []
    space = add("default", archive=wheel, say=said.append)
    assert space.words(range(space.size)) == ["the", "cat"]
    np.testing.assert_array_equal(space.vectors, [[1, 2], [3, 4]])
    assert space.source["licence"] == "none needed"
    assert any("1 left out" in sentence for sentence in said)
    assert local.load_space(None) is local.load_space("default") is local.load_space("tiny-text")
    assert left_in(home / "spaces") == ["tiny-text"]


def test_add_reads_tarballs_too(tmp_path):
    space = add("large", archive=write_tarball(tmp_path / "a.tgz"))
    assert space.words(range(space.size)) == ["the", "cat"]
    assert space.name == "tiny-json"


def test_a_second_add_says_so_and_fetches_nothing(wheel, monkeypatch):
    add("default", archive=wheel)
    wheel.unlink()
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    said = []
    assert add("default", say=said.append).size == 2
    assert said == ["tiny-text is already there, and intact"]


@pytest.mark.parametrize("file", [store.WORDS, store.VECTORS, store.DESCRIPTION, store.OFFSETS])
def test_a_damaged_space_is_noticed_and_replaced(wheel, home, file):
    add("default", archive=wheel)
    damaged = home / "spaces" / "tiny-text" / file
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2] ^= 255
    damaged.write_bytes(bytes(data))
    said = []
    space = add("default", archive=wheel, say=said.append)
    assert "converting data.txt" in said
    assert space.words(range(2)) == ["the", "cat"]
    np.testing.assert_array_equal(space.vectors, [[1, 2], [3, 4]])
    assert left_in(home / "spaces") == ["tiny-text"]


def test_another_hash_is_refused_and_nothing_is_installed(tmp_path, home):
    altered = write_wheel(tmp_path / "altered.whl", TEXT.replace(b"cat", b"dog"))
    with pytest.raises(SpaceError, match=r"sha256 differs.*[Nn]othing was installed"):
        add("default", archive=altered)
    assert left_in(home / "spaces") == []


def test_a_conversion_that_gives_something_else_is_refused(wheel, home, monkeypatch, catalogue):
    wrong = replace(catalogue[0], conversion=Conversion("word2vec", "0" * 64))
    monkeypatch.setattr(catalogue_module, "CATALOGUE", (wrong,))
    with pytest.raises(SpaceError, match="nothing was installed"):
        add("default", archive=wheel)
    assert left_in(home / "spaces") == []


@pytest.mark.parametrize("data", [None, b"", b"neither zip nor tar", b"\x1f\x8b\x08broken"])
def test_an_archive_that_is_none_is_refused(tmp_path, home, data):
    path = tmp_path / "pkg.whl"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(SpaceError, match=r"pkg\.whl"):
        add("default", archive=path)
    assert left_in(home / "spaces") == []


def test_a_package_without_the_file_is_refused(tmp_path, home):
    with pytest.raises(SpaceError, match="not the package"):
        add("default", archive=write_wheel(tmp_path / "a.whl", member="other.txt"))
    with pytest.raises(SpaceError, match="not the package"):
        add("default", archive=write_tarball(tmp_path / "a.tgz"))
    assert left_in(home / "spaces") == []


def test_adding_the_same_space_at_once_from_many_sides_is_safe(wheel, home, catalogue):
    barrier, outcomes = threading.Barrier(8), []

    def work():
        barrier.wait()
        try:
            outcomes.append(add("default", archive=wheel).sha256)
        except Exception as error:
            outcomes.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(outcomes) == {catalogue[0].conversion.sha256}
    assert left_in(home / "spaces") == ["tiny-text"]


def test_losing_the_race_to_an_intact_space_leaves_it_where_it_is(wheel, catalogue, tmp_path):
    add("default", archive=wheel)
    before = catalogue[0].folder.stat().st_ino
    made = tmp_path / "made"
    shutil.copytree(catalogue[0].folder, made)
    install.move_into_place(made, catalogue[0], tmp_path)
    assert catalogue[0].folder.stat().st_ino == before


def test_losing_the_race_to_a_damaged_space_replaces_it(wheel, home, catalogue, tmp_path):
    add("default", archive=wheel)
    made = tmp_path / "made"
    shutil.copytree(catalogue[0].folder, made)
    (catalogue[0].folder / store.WORDS).write_bytes(b"nonsens")
    install.move_into_place(made, catalogue[0], tmp_path)
    assert install.intact(catalogue[0])


def test_adding_an_unknown_name_suggests_the_near_one():
    with pytest.raises(UsageError, match="did you mean 'default'"):
        add("defualt")


# When the network or the tools are missing


def test_without_pip_the_way_out_is_named(monkeypatch, home):
    monkeypatch.setitem(sys.modules, "pip", None)
    with pytest.raises(SpaceError, match=r"ensurepip.*--archive"):
        add("default")
    assert left_in(home / "spaces") == []


def test_without_npm_the_way_out_is_named(monkeypatch, home):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SpaceError, match=r"Node\.js.*--archive"):
        add("large")
    assert left_in(home / "spaces") == []


def test_a_download_that_fails_says_what_to_do(monkeypatch, home):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(SpaceError, match=r"are you online.*--archive"):
        add("default")
    assert left_in(home / "spaces") == []


@needs_npm
def test_an_npm_download_that_fails_says_what_to_do(monkeypatch, home):
    monkeypatch.setenv("npm_config_offline", "true")
    with pytest.raises(SpaceError, match=r"are you online.*--archive"):
        add("large")
    assert left_in(home / "spaces") == []


def test_a_home_that_cannot_be_written_says_what_to_do(wheel, home, tmp_path):
    home.write_text("a file where a folder is needed")
    with pytest.raises(SpaceError, match="SOTTOVOCE_HOME"):
        add("default", archive=wheel)
    with pytest.raises(SpaceError, match="SOTTOVOCE_HOME"):
        install.import_file(tmp_path / "data.txt", name="mine")


# Importing and finding


def test_an_imported_file_is_found_by_name_and_by_folder(tmp_path, home):
    (tmp_path / "Wiki DE.300.vec").write_bytes(TEXT)
    space, report = install.import_file(tmp_path / "Wiki DE.300.vec")
    assert space.name == "wiki-de.300"
    assert report.left_out.first == (4,)
    assert local.load_space("wiki-de.300") is space
    assert local.load_space(str(home / "spaces" / "wiki-de.300")) is space


def test_names_that_are_taken_reserved_or_odd_are_refused(tmp_path):
    path = tmp_path / "data.txt"
    install.import_file(path, name="mine")
    for name, why in {
        "mine": "--replace",
        "default": "choose another",
        "tiny-text": "choose another",
        "../escape": "lower-case",
        "UPPER": "lower-case",
        ".hidden": "lower-case",
    }.items():
        with pytest.raises(UsageError, match=why):
            install.import_file(path, name=name)


def test_a_replaced_space_is_the_one_that_is_found(tmp_path):
    path = tmp_path / "data.txt"
    install.import_file(path, name="mine")
    path.write_bytes(b"dog 1 2\n")
    install.import_file(path, name="mine", replace=True)
    assert local.load_space("mine").words([0]) == ["dog"]


def test_a_missing_space_says_how_to_get_it():
    for name in (None, "default", "tiny-text"):
        with pytest.raises(SpaceError, match="sottovoce spaces add default"):
            local.load_space(name)
    with pytest.raises(SpaceError, match="sottovoce spaces add large"):
        local.load_space("large")


def test_an_unknown_name_suggests_one_that_is_there(tmp_path):
    install.import_file(tmp_path / "data.txt", name="german")
    with pytest.raises(UsageError, match="did you mean 'german'"):
        local.load_space("germna")
    with pytest.raises(UsageError, match="spaces list"):
        local.load_space("no/such/folder")


def test_a_folder_that_holds_no_space_is_refused(tmp_path):
    with pytest.raises(SpaceError, match="no word space in"):
        local.load_space(str(tmp_path))


def test_the_list_shows_what_is_here_what_could_be_and_what_is_broken(wheel, tmp_path, home):
    install.import_file(tmp_path / "data.txt", name="mine")
    install.import_file(tmp_path / "data.txt", name="broken")
    (home / "spaces" / "broken" / store.VECTORS).write_bytes(b"")
    shutil.copytree(home / "spaces" / "mine", home / "spaces" / ".adding-left-by-a-crash")
    add("default", archive=wheel)
    listed = {space.name: space for space in local.listed()}
    assert list(listed) == ["tiny-text", "tiny-json", "broken", "mine"]
    assert listed["tiny-text"].installed
    assert not listed["tiny-json"].installed
    assert listed["mine"].words == 2
    assert listed["mine"].about == "imported from data.txt"
    assert listed["mine"].disk_bytes == sum(
        file.stat().st_size for file in (home / "spaces" / "mine").iterdir()
    )
    assert "add or import the space again" in listed["broken"].problem
    assert [space.name for space in local.installed()] == ["tiny-text", "broken", "mine"]


# The real ones, over the network


@pytest.mark.slow
@online
def test_the_default_space_comes_from_its_package_as_pinned(home):
    space = add("glove-840b-34k")
    assert (space.name, space.size, space.dimension) == ("glove-840b-34k", 33849, 300)
    assert "11 left out" in space.source["remarks"]
    words = space.words(range(space.size))
    assert words[:3] == ["the", "and", "to"]
    assert not any("\xa0" in word for word in words)
    assert space.vectors[space.id("the"), 0] == np.float32(0.27204)
    assert left_in(home / "spaces") == ["glove-840b-34k"]


@pytest.mark.thorough
@online
@needs_npm
def test_the_large_space_is_converted_in_bounded_memory(home):
    script = (
        "import json; from sottovoce import load_space, resources;"
        "resources.add(resources.named('large')); space = load_space('large');"
        "peak = [line for line in open('/proc/self/status') if line.startswith('VmHWM')];"
        "print(json.dumps([space.name, space.size, space.dimension, peak[0].split()[1]]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    name, size, dimension, peak = json.loads(done.stdout)
    assert (name, size, dimension) == ("glove-6b-100d", 341479, 100)
    assert int(peak) < 900 * 1024
    assert left_in(home / "spaces") == ["glove-6b-100d"]
    shutil.rmtree(home)
