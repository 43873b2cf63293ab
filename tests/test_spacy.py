"""The component in a real pipeline of spaCy, found as spaCy finds components."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from cluster_data import SECRET, WORDS, make_space

from sottovoce.errors import SottovoceError, UsageError
from sottovoce.sanitizing import Sanitizer

spacy = pytest.importorskip("spacy", reason="spaCy is not installed: make spacy")

from sottovoce.integrations import spacy as component  # noqa: E402

ROOT = Path(__file__).parents[1]
TEXT = f"Wordaa wordab, {SECRET} wordaa! (wordba)"


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    return make_space(tmp_path_factory.mktemp("space") / "small")


@pytest.fixture
def pipeline(space):
    def build(**config):
        nlp = spacy.blank("en")
        nlp.add_pipe(
            "sottovoce", config={"mechanism": "cmp:epsilon=1", "space": str(space.folder), **config}
        )
        return nlp

    return build


def test_what_may_be_released_stands_beside_the_document(pipeline):
    doc = pipeline()(TEXT)
    assert doc.text == TEXT
    words = [token.text.lower() for token in spacy.blank("en")(doc._.released) if token.is_alpha]
    assert len(words) == 5
    assert set(words) <= set(WORDS)
    assert [mark for mark in doc._.released if mark in ",!()"] == [",", "!", "(", ")"]
    assert spacy.blank("en")(TEXT)._.released is None


def test_draws_are_fresh_consistent_within_a_document_or_seeded(pipeline):
    text = " ".join(["wordaa"] * 30)
    assert len(set(pipeline()(text)._.released.split())) > 1
    consistent = pipeline(consistent=True)
    by_document = [set(consistent(text)._.released.split()) for _ in range(12)]
    assert {len(words) for words in by_document} == {1}
    assert len(set.union(*by_document)) > 1, "documents are linked"
    first, second = ([doc._.released for doc in pipeline(seed=1).pipe([text] * 3)] for _ in "ab")
    assert first == second
    assert len(set(first)) == 3


def test_lists_and_policies_are_those_of_sottovoce(pipeline):
    doc = pipeline(deny=WORDS[1:], unknown="drop")(TEXT)
    assert doc._.released.lower().count("wordaa") == 4
    with pytest.raises(ValueError, match="unknown"):
        pipeline(unknown="nonsense")
    with pytest.raises(UsageError, match="no word space"):
        pipeline(space="no-such-folder")


def test_a_failure_releases_nothing(pipeline, monkeypatch):
    nlp = pipeline()

    def broken(self, texts, first, streams):
        raise ValueError(texts[0])

    monkeypatch.setattr(Sanitizer, "_together", broken)
    doc = nlp.make_doc(TEXT)
    doc._.released = TEXT
    with pytest.raises(SottovoceError, match="cmp failed") as caught:
        nlp.get_pipe("sottovoce")(doc)
    assert doc._.released is None
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    seen = []
    nlp.set_error_handler(lambda name, process, docs, error: seen.extend(docs))
    assert list(nlp.pipe([TEXT])) == []
    assert [doc._.released for doc in seen] == [None]


def test_a_pipeline_comes_back_from_disk_with_its_settings(pipeline, tmp_path):
    nlp = pipeline(seed=1)
    nlp.to_disk(tmp_path / "before")
    released = nlp(TEXT)._.released
    nlp.to_disk(tmp_path / "after")
    assert spacy.load(tmp_path / "before")(TEXT)._.released == released

    def holding(folder):
        files = (file for file in (tmp_path / folder).rglob("*") if file.is_file())
        return [file.name for file in files if SECRET.encode() in file.read_bytes()]

    assert holding("before") == []
    assert holding("after") == ["strings.json"], "the page says what spaCy itself remembers"


def test_spacy_finds_it_by_its_entry_point(space, tmp_path):
    """As after an installation: by what is declared, before anything was imported."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    info = tmp_path / "declared-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: declared\nVersion: 0\n")
    (info / "entry_points.txt").write_text(
        "".join(
            f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in entries.items())
            for group, entries in declared.items()
        )
    )
    code = (
        "import sys, spacy\n"
        "assert 'sottovoce' not in sys.modules\n"
        "nlp = spacy.blank('en')\n"
        f"config = {{'mechanism': 'cmp:epsilon=1', 'space': {str(space.folder)!r}}}\n"
        "nlp.add_pipe('sottovoce', config=config)\n"
        "print(nlp('wordaa')._.released)"
    )
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert ended.stdout.strip() in WORDS, ended.stderr
    assert component.NAME in declared["spacy_factories"]
