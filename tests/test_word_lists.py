"""Public word lists: what each source gives, what is left out, and what is said when it cannot."""

from __future__ import annotations

import gzip
import sys

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.errors import SottovoceError, SpaceError, UsageError
from sottovoce.resources.catalogue import WORDFREQ_EN, WORDNET
from sottovoce.resources.word_lists import clean_entry, given_words, read_lists
from sottovoce.spaces.store import SpaceWriter

LICENCE = "  1 This software and database is being provided to you, the LICENSEE\n"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def tiny_wordnet(home):
    WORDNET.folder.mkdir(parents=True)
    lemmas = {
        "noun": ["cat", "skin_cancer", "a._d."],
        "verb": ["cat", "give_up"],
        "adj": [],
        "adv": [],
    }
    for part, listed in lemmas.items():
        lines = "".join(f"{lemma} n 1 0 1 0 00001740  \n" for lemma in listed)
        (WORDNET.folder / f"index.{part}").write_text(LICENCE + lines)


@pytest.mark.parametrize(
    ("entry", "clean"),
    [
        ("melanoma", "melanoma"),
        ("Berlin", "Berlin"),
        ("don’t", "don't"),
        ("o'brien", "o'brien"),
        ("e-mail", "e-mail"),
        ("cafe\u0301", "café"),
        ("हिन्दी", "हिन्दी"),
        ("水", "水"),
        ("a", "a"),
        ("skin cancer", "skin cancer"),
        ("vitamin b 12", "vitamin b 12"),
        ("crohn's disease", "crohn's disease"),
        ("one two three four five", "one two three four five"),
        ("1", "1"),
        ("1984", "1984"),
    ],
)
def test_clean_words_and_phrases_come_in_their_normal_form(entry, clean):
    assert clean_entry(entry) == clean


NOT_CLEAN = ["", " ", "x", "º", "ʿ", "u.s.", "a@b.c", "12345", "9 11", "covid19", "3rd", "☺"]
NOT_CLEAN += ["-dash", "dash-", "it'", "two  blanks", " before", "after ", "tab\tinside"]
NOT_CLEAN += ["a b c d e f", "\u0301x"]


@pytest.mark.parametrize("entry", NOT_CLEAN)
def test_what_is_not_clean_is_left_out(entry):
    assert clean_entry(entry) is None


@given(st.text())
def test_what_is_clean_stays_clean(entry):
    clean = clean_entry(entry)
    assert clean is None or clean_entry(clean) == clean


def test_lists_are_joined_in_order_without_repetitions(tmp_path, tiny_wordnet):
    (tmp_path / "mine.txt").write_text(
        "# terms of mine\nmelanoma\n\n  skin   cancer \nmelanoma\nx@y.z\ncafe\u0301\n",
        encoding="utf-8-sig",
    )
    listed = read_lists([str(tmp_path / "mine.txt"), "wordnet:phrases", "wordnet:words"])
    assert listed.words == ("melanoma", "skin cancer", "café", "give up", "cat")
    told = [(part.source, part.words, part.left_out) for part in listed.contributions]
    assert told == [("mine.txt", 3, 1), ("wordnet:phrases", 1, 1), ("wordnet:words", 1, 0)]
    assert read_lists([f"file:{tmp_path / 'mine.txt'}"]).words == listed.words[:3]
    assert given_words(["b c", "3.5", "b c"]).words == ("b c",)


def test_a_space_gives_its_words(home):
    with SpaceWriter(home / "spaces" / "mine", name="mine", dimension=1) as writer:
        writer.append(["cat", "...", "dog"], np.ones((3, 1)))
        writer.commit()
    assert read_lists(["space:mine"]).words == ("cat", "dog")
    with pytest.raises(UsageError, match="no word space"):
        read_lists(["space:none"])
    with pytest.raises(SpaceError, match="spaces add default"):
        read_lists(["space:default"])


def test_the_most_frequent_words_of_a_language(monkeypatch):
    english = read_lists(["wordfreq:en:2000"]).words
    assert len(english) == 2000
    assert english[:3] == ("the", "to", "and")
    assert not [word for word in english if word.endswith("'s") or not word.isascii()]
    assert not [word for word in english if any(sign.isdigit() for sign in word)]
    german = read_lists(["wordfreq:de:500"]).words
    assert {"über", "nicht"} <= set(german)
    with pytest.raises(UsageError, match="no list for 'xx': it has ar, "):
        read_lists(["wordfreq:xx:10"])
    for wrong in ("wordfreq:en", "wordfreq:en:", "wordfreq:en:0", "wordfreq:en:many"):
        with pytest.raises(UsageError, match="as in wordfreq:en:100000"):
            read_lists([wrong])
    monkeypatch.setitem(sys.modules, "wordfreq", None)
    with pytest.raises(SottovoceError, match=r"pip install 'sottovoce\[words\]'"):
        read_lists(["wordfreq:en:10"])


def test_the_english_list_that_was_added_comes_before_the_installed_one(monkeypatch):
    WORDFREQ_EN.folder.mkdir(parents=True)
    file = WORDFREQ_EN.folder / WORDFREQ_EN.files[0].name
    buckets = [{"format": "cB", "version": 1}, [], ["the"], ["0000", "cat's", "cat", "a.b"]]
    file.write_bytes(gzip.compress(msgpack.dumps(buckets)))
    monkeypatch.setitem(sys.modules, "wordfreq", None)
    listed = read_lists(["wordfreq:en:10"])
    assert listed.words == ("the", "cat")
    assert listed.contributions[0].left_out == 3
    for damaged in (b"nothing", gzip.compress(msgpack.dumps([{"format": "cC"}]))):
        file.write_bytes(damaged)
        with pytest.raises(SottovoceError, match="damaged or of another format"):
            read_lists(["wordfreq:en:10"])


def test_what_cannot_be_read_says_what_can(tmp_path):
    with pytest.raises(UsageError, match=r"cannot read the word list .*wordfreq:LANGUAGE:COUNT"):
        read_lists([str(tmp_path / "none.txt")])
    with pytest.raises(UsageError, match="needs words"):
        read_lists([])
    with pytest.raises(SottovoceError, match="spaces add wordnet"):
        read_lists(["wordnet:phrases"])
    with pytest.raises(UsageError, match="wordnet:phrases and wordnet:words"):
        read_lists(["wordnet:verbs"])
    (tmp_path / "empty.txt").write_text("# nothing\n???\n")
    with pytest.raises(UsageError, match="no clean word"):
        read_lists([str(tmp_path / "empty.txt")])
