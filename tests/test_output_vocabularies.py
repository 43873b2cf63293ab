"""The words of a public collection as those that may be released."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from sottovoce.collections import load_collection
from sottovoce.errors import UsageError
from sottovoce.output_vocabularies import choose_output
from sottovoce.spaces.space import WordSpace
from sottovoce.text.words import content_words, words

WORDS = ["the", "The", "skin", "cancer", "skin cancer", "cancer skin", "cats", "e-mail", "café"]
WORDS += ["new york city", "york", "don't", "..."]


@pytest.fixture
def space():
    return WordSpace.from_arrays(WORDS, np.eye(len(WORDS)))


def released(space, choice):
    return space.words(choose_output(space, choice).ids)


def test_a_corpus_gives_its_words_and_the_phrases_that_stand_in_it(space, tmp_path):
    file = tmp_path / "corpus.txt"
    file.write_text("The SKIN-cancer, don’t.\nNew York\ncity e mail\nCafe\u0301\n")
    # Function words find nothing, and are left out.
    expected = ["skin", "cancer", "skin cancer", "e-mail", "café", "york"]
    assert released(space, f"corpus:{file}") == expected
    assert choose_output(space, f"corpus:{file}").name == f"corpus:{file}"


def test_titles_count_and_folders_are_read(space, tmp_path):
    document = {"doc_id": "1", "title": "New York", "text": "city cats"}
    (tmp_path / "corpus.jsonl.gz").write_bytes(gzip.compress(json.dumps(document).encode()))
    assert released(space, f"corpus:{tmp_path}") == ["cats", "new york city", "york"]


def test_the_demo_collection_gives_its_words(space):
    texts = [f"{doc.title}\n{doc.text}" for doc in load_collection("demo").documents]
    in_demo = {word for text in texts for word in content_words(text)}
    singles = [word for word in WORDS if " " not in word and words(word) == [word]]
    expected = {word for word in singles if word in in_demo}
    assert expected
    assert {word for word in released(space, "demo") if word in singles} == expected
    assert released(space, "corpus:demo") == released(space, "demo")


def test_other_choices_are_those_of_the_space(space):
    assert released(space, "clean") == ["the", "skin", "cancer", "cats", "café", "york"]
    with pytest.raises(UsageError, match="corpus:PATH, demo"):
        choose_output(space, "everything")


def test_a_collection_that_is_not_there_or_shares_nothing_is_refused(space, tmp_path):
    with pytest.raises(UsageError, match="no file or folder"):
        choose_output(space, f"corpus:{tmp_path / 'none.txt'}")
    (tmp_path / "other.txt").write_text("nothing of it\n")
    with pytest.raises(UsageError, match="shares no word"):
        choose_output(space, f"corpus:{tmp_path / 'other.txt'}")


def test_words_are_as_popular_as_the_number_of_documents_that_hold_them(space, tmp_path):
    file = tmp_path / "corpus.txt"
    file.write_text("skin skin cancer\nskin cats\ncats of cats\n")
    chosen = choose_output(space, f"corpus:{file}")
    popularity = dict(zip(space.words(chosen.ids), chosen.popularity.tolist(), strict=True))
    assert popularity == {"skin": 2.0, "cancer": 1.0, "skin cancer": 1.0, "cats": 2.0}
