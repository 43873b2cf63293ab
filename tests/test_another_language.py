"""German from end to end: a list, the folder of a model, what is released, and a search."""

from __future__ import annotations

import json
import unicodedata

import numpy as np
import pytest
from command_line import as_text, run_command
from strong_folder import copy_strong

from sottovoce import mechanism
from sottovoce.collections import Document
from sottovoce.engines import BM25, choose_engine
from sottovoce.engines.base import language_of
from sottovoce.errors import UsageError
from sottovoce.obfuscation.open_words import OpenWords
from sottovoce.output_vocabularies import of_search
from sottovoce.search import laid_out_for
from sottovoce.spaces.space import WordSpace
from sottovoce.testing import toy_space
from sottovoce.text import TextPipeline, tokenize
from sottovoce.text.german import FUNCTION_WORDS
from sottovoce.text.tokens import normalize

SENTENCE = "Die Ärztin sagte: „Ihr Hautkrebs (Größe: 3,5 mm) heilt“ – in der Fußgängerzone, geht's?"
WORDS = "Die Ärztin sagte Ihr Hautkrebs Größe 3,5 mm heilt in der Fußgängerzone geht's"
OWN_WORDS = "Haut Hautkrebs Straße Größe Maße Masse Ärztin Fußpilz"
DOCUMENTS = {
    "haus": ("Kündigung", "Der Vermieter kündigt den Mietern der Häuser an der Straße."),
    "haut": ("Hautkrebs", "Hautkrebs erkennt die Ärztin früh, wenn sie die Haut untersucht."),
    "geld": ("Schulden", "Wer Schulden hat, findet bei der Beratung Hilfe."),
}


# Words, without any model.


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_german_words_are_cut_where_they_begin_and_end(form):
    written = unicodedata.normalize(form, SENTENCE)
    tokens = tokenize(written)
    assert [token.surface for token in tokens] == WORDS.split()
    text = normalize(written)
    assert [text[token.start : token.end] for token in tokens] == WORDS.split()


def test_german_function_words_are_a_choice_of_their_own():
    def kept(protect):
        return TextPipeline(protect=protect).prepare(SENTENCE, toy_space()).kept

    assert kept("content:de") == ("Die", "Ihr", "in", "der")
    assert kept("content") == ("in",)
    with pytest.raises(UsageError, match="content:de"):
        TextPipeline(protect="content:dee")


def test_function_words_are_such_that_they_may_stay_in_clear():
    assert {word.casefold() for word in FUNCTION_WORDS} == FUNCTION_WORDS
    nouns = "würde würden habe haben all weg macht sein werden wollen arm recht laut dank kraft"
    assert FUNCTION_WORDS.isdisjoint(nouns.split())
    # Abbreviations that look like one are protected.
    assert not TextPipeline(protect="content:de").prepare("DAS", toy_space()).kept


def documents():
    return [Document(name, *texts) for name, texts in DOCUMENTS.items()]


def first_hits(engine, *queries):
    return [[hit.doc_id for hit in hits] for hits in engine.search(queries, 3)]


@pytest.mark.parametrize("spec", ["bm25", "tfidf", "bm25:de", "tfidf:de"])
def test_umlauts_and_sharp_s_are_found_however_they_are_written(spec):
    engine = choose_engine(spec, documents())
    decomposed = unicodedata.normalize("NFD", "Ärztin")
    queries = ("STRASSE", "straße", "ärztin", decomposed)
    assert first_hits(engine, *queries) == [["haus"], ["haus"], ["haut"], ["haut"]]


def test_german_documents_are_compared_by_german_stems_without_german_function_words():
    german, english = BM25(documents(), language="de"), BM25(documents())
    assert first_hits(german, "Haus", "Vermietern", "bei der") == [["haus"], ["haus"], []]
    assert first_hits(english, "Haus", "Vermietern") == [[], []]
    assert first_hits(english, "bei der") != [[]]
    assert (german.name, language_of(german)) == ("bm25:de", "de")
    assert (english.name, language_of(english)) == ("bm25", "en")


def test_an_unknown_language_is_named_with_those_there_are():
    for spec in ("bm25:german", "tfidf:xx"):
        with pytest.raises(UsageError, match="use en, de"):
            choose_engine(spec, documents())


def test_a_search_leaves_out_and_releases_no_function_words_of_the_engine_s_language():
    listed = ["die", "straße", "the", "haus", "vermieter"]
    space = WordSpace.from_arrays(listed, np.eye(5), name="german")
    mechanism_ = mechanism("cmp", space=space, epsilon=1.0)
    for language, protect, released in (
        ("de", "content:de", ["straße", "the", "haus", "vermieter"]),
        ("en", "content", ["die", "straße", "haus", "vermieter"]),
    ):
        engine = BM25(documents(), language=language)
        pipeline = laid_out_for(engine, TextPipeline(), mechanism_, drop_function_words=True)
        assert (pipeline.protect, pipeline.unprotected) == (protect, "drop")
        output = of_search(space, documents(), "mine", language_of(engine))
        assert space.words(output.ids) == released


# With a model's folder: the strong encoder's, whose word pieces are English.


@pytest.fixture(scope="module")
def german(tmp_path_factory):
    """Commands with a space that ``spaces make`` made of the folder and two lists."""
    pytest.importorskip("wordfreq")
    folder = tmp_path_factory.mktemp("german")
    model = copy_strong(folder / "model")
    (folder / "own.txt").write_text("\n".join(OWN_WORDS.split()), encoding="utf-8")
    corpus = folder / "documents"
    corpus.mkdir()
    lines = [
        json.dumps({"doc_id": name, "title": title, "text": text}, ensure_ascii=False)
        for name, (title, text) in DOCUMENTS.items()
    ]
    (corpus / "corpus.jsonl").write_text("\n".join(lines), encoding="utf-8")

    def run(*arguments):
        done = as_text(run_command(*arguments, home=folder / "home"))
        assert done.returncode == 0, done.stderr
        return done.stdout

    lists = ("--words", folder / "own.txt", "--words", "wordfreq:de:3000")
    run("spaces", "make", "deutsch", "--encoder", model, *lists)
    return run, folder


def test_words_are_listed_as_their_lists_write_them(german):
    space = WordSpace.open(german[1] / "home" / "spaces" / "deutsch")
    assert space.size > 3000
    assert space.words(np.arange(8)) == OWN_WORDS.split()
    # wordfreq folds case, and with it ß.
    assert {"größe", "straße"}.isdisjoint(space.listed.ids_of_words)
    assert {"haut", "strasse", "für", "ärzte"} <= space.listed.ids_of_words.keys()


TEXT = "DIE Maße der haut: „Gut für die Straße?“"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # Words as the list has them: its own words come first, so that haut is released as Haut.
        ((), "die Maße der Haut: „gut für die Straße?“"),
        (("--restore-case",), "DIE Maße der haut: „Gut für die Straße?“"),
        (("--protect", "content:de", "--unprotected", "drop"), "die Maße Haut: „gut Straße?“"),
    ],
)
def test_at_a_very_large_epsilon_a_german_sentence_comes_back(german, options, expected):
    run, _ = german
    assert (
        run("obfuscate", TEXT, "--space", "deutsch", "-e", "1000000", *options).strip() == expected
    )


def test_words_that_the_list_lacks_are_encoded(german):
    space = WordSpace.open(german[1] / "home" / "spaces" / "deutsch")
    prepared = TextPipeline().prepare("Hautkrebsvorsorge an der Fußgängerbrücke, кожа", space)
    opened = OpenWords(space, [prepared])
    (text,) = opened.texts
    assert (text.counts.known, text.counts.encoded, text.counts.uniform) == (2, 3, 0)
    # Case-folded, as the words of wordfreq are.
    assert text.surfaces(text.encoded) == ["hautkrebsvorsorge", "fussgängerbrücke", "кожа"]


def test_an_encoder_that_drops_marks_gives_words_one_vector_that_differ_by_them(german):
    space = WordSpace.open(german[1] / "home" / "spaces" / "deutsch")
    schon, schön = (space.vectors[space.id(word)] for word in ("schon", "schön"))
    assert np.array_equal(schon, schön)


def test_a_search_in_german_documents_finds_what_is_meant(german):
    run, folder = german
    where = ("--space", "deutsch", "--collection", folder / "documents", "--engine", "bm25:de")
    how = ("-e", "1000000", "-n", "1", "--rerank", "none", "--no-ledger", "--json")
    found = json.loads(run("search", "Wer hat das Haus an der Strasse?", *where, *how))
    # The document has other forms: Häuser, Straße.
    assert sorted(found["sent"][0].split()) == ["haus", "strasse"]
    assert [hit["doc_id"] for hit in found["hits"]] == ["haus"]
