"""Taggers: the tags of real queries, words they cannot know, and taggers that are missing."""

from __future__ import annotations

import importlib.util
import os
import sys

import pytest

from sottovoce.errors import SottovoceError, UsageError
from sottovoce.language import tagging
from sottovoce.language.tagging import TAGS, check_tagger, load_tagger

HAND_TAGGED = """
do/VBP goldfish/NN grow/VB
what/WP is/VBZ wifi/NN vs/IN bluetooth/NN
right/JJ pelvic/JJ pain/NN causes/NNS
how/WRB is/VBZ the/DT weather/NN in/IN jamaica/NNP
types/NNS of/IN dysarthria/NN from/IN cerebral/JJ palsy/NN
what/WP types/NNS of/IN food/NN can/MD you/PRP cook/VB
when/WRB was/VBD the/DT salvation/NN army/NN founded/VBN
difference/NN between/IN rn/NN and/CC bsn/NN
medicare's/NNP definition/NN of/IN mechanical/JJ ventilation/NN
how/WRB to/TO find/VB the/DT midsegment/NN of/IN a/DT trapezoid/NN
what/WP is/VBZ the/DT most/RBS popular/JJ food/NN in/IN switzerland/NNP
cost/NN of/IN interior/JJ concrete/JJ flooring/NN
who/WP formed/VBD the/DT commonwealth/NN of/IN independent/JJ states/NNS
hydrogen/NN is/VBZ a/DT liquid/NN below/IN what/WDT temperature/NN
"""


@pytest.fixture(scope="module")
def tagger():
    if importlib.util.find_spec("textblob") is None:
        pytest.skip("no word list: pip install 'sottovoce[language]'")
    return load_tagger()


def tags(tagger, text):
    return tagger.tags(text.split())


def kind(tag):
    return tag if tag == "POS" else tag[:2]


def test_nine_in_ten_words_of_queries_get_the_tag_that_a_person_gives_them(tagger):
    queries = [line.split() for line in HAND_TAGGED.strip().splitlines()]
    right = total = 0
    for query in queries:
        words, expected = zip(*(each.split("/") for each in query), strict=True)
        found = tagger.tags(words)
        right += sum(kind(a) == kind(b) for a, b in zip(found, expected, strict=True))
        total += len(words)
    assert total == 82
    assert right >= 78


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("can you cook rice", "MD PRP VB NN"),
        ("the cook left", "DT NN VBN"),
        ("a pay rise", "DT NN NN"),
        ("the then president", "DT JJ NN"),
        ("how to water the lawn", "WRB TO VB DT NN"),
        ("water the lawn", "NN DT NN"),
    ],
)
def test_neighbours_decide_where_a_word_can_be_either(tagger, text, expected):
    assert tags(tagger, text) == expected.split()


def test_case_matters_where_it_says_something(tagger):
    assert tags(tagger, "italy") == ["NNP"]
    assert tags(tagger, "Italy") == ["NNP"]
    assert tags(tagger, "ITALY") == ["NNP"]
    assert tags(tagger, "THE HOUSE")[0] == "DT"
    assert tags(tagger, "Exploiting it") == ["VBG", "PRP"]
    assert tags(tagger, "We met Exploiting") == ["PRP", "VBD", "NNP"]
    assert tags(tagger, "We met Fry") == ["PRP", "VBD", "NNP"]
    assert tags(tagger, "We met . Fry it")[-2:] == ["VB", "PRP"]


def test_a_word_with_an_ending_is_tagged_as_the_word(tagger):
    found = tags(tagger, "what's Paula's doctor’s don't can't dogs' it's")
    assert found == ["WP", "NNP", "NN", "VBP", "MD", "NNS", "PRP"]


def test_words_the_lexicon_lacks_are_guessed_by_their_form(tagger):
    assert tags(tagger, "x zorbly zorbing zorbed zorbs zorbous zorb 42 3.5 zorb-like") == [
        *("NN", "RB", "VBG", "VBN", "NNS", "JJ", "NN", "CD", "CD", "JJ")
    ]
    for word in ("zorbly", "42", "zorb-like", "😀", "кошка", "a@b.org", "", "x2", "Exploiting"):
        assert not tagger.knows(word), word
    for word in ("the", "Italy", "italy", "dogs'", "what's", "usa", "quickly"):
        assert tagger.knows(word), word


def test_any_token_gets_a_tag(tagger):
    odd = ["", " ", "\n", "\ud800", "😀", "'", "n't", "'s", "猫", "9" * 50_000 + "x", "a" * 50_000]
    found = tagger.tags(odd)
    assert len(found) == len(odd)
    assert all(found)
    assert tagger.tags([]) == []


def test_the_lexicon_holds_plain_words_with_tags_that_can_be_listed(tagger):
    marks = set(".?!,;:")
    assert len(tagger._lexicon) > 90_000
    assert set(tagger._lexicon.values()) <= TAGS | {"FW", ".", ","}
    assert {word for word in tagger._lexicon if not word[0].isalpha()} == marks


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_it_is_right_more_often_than_the_tagger_it_takes_the_words_from(tagger):
    from textblob.en import tag as textblob_tag

    right = theirs = 0
    for line in HAND_TAGGED.strip().splitlines():
        words, expected = zip(*(each.split("/") for each in line.split()), strict=True)
        other = [tag for _, tag in textblob_tag(" ".join(words), tokenize=False)]
        right += sum(kind(a) == kind(b) for a, b in zip(tagger.tags(words), expected, strict=True))
        theirs += sum(kind(a) == kind(b) for a, b in zip(other, expected, strict=True))
    assert right > theirs


def test_no_package_is_imported_and_nothing_downloaded(tagger):
    code = (
        "import sys; from sottovoce.language.tagging import load_tagger;"
        "load_tagger().tags(['a']); assert not {'nltk', 'textblob'} & set(sys.modules)"
    )
    assert os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", code]) == 0


# Choosing one


def test_a_tagger_is_loaded_once(tagger):
    assert load_tagger("pattern") is load_tagger("auto") is tagger
    assert tagger.name == "pattern"


@pytest.mark.parametrize("name", ["", "patern", "spacy", "spacy:", "nltk"])
def test_an_unknown_tagger_is_refused_with_the_ways_out(name):
    with pytest.raises(UsageError, match="'pattern', or 'spacy:MODEL'"):
        check_tagger(name)
    with pytest.raises(UsageError, match="'pattern', or 'spacy:MODEL'"):
        load_tagger(name)


@pytest.fixture
def no_cache():
    tagging._load.cache_clear()
    yield
    tagging._load.cache_clear()


def test_without_the_word_list_the_extra_is_named(monkeypatch, no_cache):
    monkeypatch.setattr(tagging, "find_spec", lambda name: None)
    with pytest.raises(SottovoceError, match=r"pip install 'sottovoce\[language\]'"):
        load_tagger()


def test_without_spacy_the_way_out_is_named(monkeypatch, no_cache):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(SottovoceError, match="pip install spacy"):
        load_tagger("spacy:en_core_web_md")


# spaCy, with a model small enough to be made here


@pytest.fixture(scope="module")
def spacy_model(tmp_path_factory):
    spacy = pytest.importorskip("spacy")
    from spacy.training import Example

    pipeline = spacy.blank("en")
    component = pipeline.add_pipe("tagger")
    examples = [
        Example.from_dict(pipeline.make_doc(text), {"tags": marks.split()})
        for text, marks in (("the cat sleeps .", "DT NN VBZ ."), ("a dog eats", "DT NN VBZ"))
    ]
    component.initialize(lambda: examples, nlp=pipeline)
    optimiser = pipeline.initialize(lambda: examples)
    for _ in range(30):
        pipeline.update(examples, sgd=optimiser)
    folder = tmp_path_factory.mktemp("model")
    pipeline.to_disk(folder)
    return folder


def test_a_spacy_model_tags_whole_texts_and_knows_the_words_of_its_training(spacy_model, no_cache):
    tagger = load_tagger(f"spacy:{spacy_model}")
    assert tagger.tags(["the", "cat", "sleeps", "."]) == ["DT", "NN", "VBZ", "."]
    assert tagger.tags([]) == []
    tagger.tags(["zorb"])
    assert tagger.knows("cat")
    assert tagger.knows("Cat")
    assert not tagger.knows("zorb")


def test_a_spacy_model_that_is_missing_or_unfit_is_refused(tmp_path, no_cache):
    spacy = pytest.importorskip("spacy")
    with pytest.raises(SottovoceError, match="finds no model 'no_such_model'"):
        load_tagger("spacy:no_such_model")
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(UsageError, match="not an English one with a tagger"):
        load_tagger(f"spacy:{tmp_path / 'blank'}")
