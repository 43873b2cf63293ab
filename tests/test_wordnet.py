"""WordNet as published: senses, relations, nearness."""

from __future__ import annotations

import os
import pickle
import random
import shutil
import sys
import weakref

import pytest

from sottovoce.errors import SottovoceError
from sottovoce.language.wordnet import WordNet, load_wordnet
from sottovoce.resources.catalogue import WORDNET


def lemmas(senses):
    return [sense.lemmas[0] for sense in senses]


# Senses


def test_the_most_frequent_sense_comes_first(wordnet):
    assert wordnet.senses("dog", "n")[0].lemmas == ("dog", "domestic dog", "Canis familiaris")
    assert wordnet.senses("bank", "n")[0].hypernyms()[0].lemmas == ("slope", "incline", "side")


def test_without_a_part_of_speech_come_nouns_verbs_adjectives_adverbs(wordnet):
    found = "".join(sense.pos for sense in wordnet.senses("well"))
    assert found == "".join(sorted(found, key="nvar".index))
    assert set(found) == set("nvar")
    assert {sense.pos for sense in wordnet.senses("well", "v")} == {"v"}


@pytest.mark.parametrize(
    ("word", "pos", "first"),
    [
        ("mice", "n", "mouse"),
        ("children", "n", "child"),
        ("wolves", "n", "wolf"),
        ("churches", "n", "church"),
        ("countries", "n", "state"),
        ("went", "v", "travel"),
        ("running", "v", "run"),
        ("tries", "v", "try"),
        ("prettiest", "a", "pretty"),
        ("deeper", "r", "profoundly"),
    ],
)
def test_inflected_words_have_the_senses_of_their_base_form(wordnet, word, pos, first):
    assert wordnet.senses(word, pos)[0].lemmas[0] == first


def test_words_of_several_parts_are_found_with_blanks_and_in_any_case(wordnet):
    assert "New York" in wordnet
    assert "new york" in wordnet
    assert wordnet.senses("NEW YORK") == wordnet.senses("new_york")
    assert "New York City" in wordnet.senses("new york")[0].lemmas


def test_satellite_adjectives_are_adjectives_and_their_marks_are_left_out(wordnet):
    assert {sense.pos for sense in wordnet.senses("gorgeous")} == {"a"}
    assert not any("(" in lemma for sense in wordnet.senses("afloat") for lemma in sense.lemmas)


def test_the_first_and_the_last_word_of_the_files_are_found(wordnet):
    for word in ("'hood", "zyrian", "zymotic", "zoom", "a cappella"):
        assert word in wordnet, word


@pytest.mark.parametrize(
    "word",
    [
        "",
        " ",
        "\n",
        "  1",
        "a\nb",
        "\ud800",
        "😀",
        "кошка",
        "wordnett",
        "the",
        "dog n",
        "x" * 100_000,
    ],
)
def test_what_is_no_word_has_no_sense(wordnet, word):
    assert word not in wordnet
    assert wordnet.senses(word) == ()


def test_relations_go_one_step(wordnet):
    dog = wordnet.senses("dog", "n")[0]
    assert lemmas(dog.hypernyms()) == ["canine", "domestic animal"]
    assert "puppy" in lemmas(dog.hyponyms())
    assert lemmas(dog.holonyms()) == ["Canis", "pack"]
    assert lemmas(wordnet.senses("finger", "n")[0].holonyms()) == ["hand"]
    assert lemmas(wordnet.senses("flour", "n")[0].holonyms()) == ["bread", "dough", "pastry"]


def test_instances_count_as_kinds(wordnet):
    einstein = wordnet.senses("einstein", "n")[0]
    assert lemmas(einstein.hypernyms()) == ["physicist"]
    assert einstein in einstein.hypernyms()[0].hyponyms()


def test_a_sense_is_one_object_whatever_way_leads_to_it(wordnet):
    dog = wordnet.senses("dog", "n")[0]
    assert wordnet.senses("Dogs", "n")[0] is dog
    assert dog in dog.hypernyms()[0].hyponyms()
    assert pickle.loads(pickle.dumps(dog)) is dog
    assert pickle.loads(pickle.dumps(wordnet)) is wordnet
    assert weakref.ref(wordnet)() is wordnet
    assert len({wordnet, WordNet.open(wordnet.folder)}) == 1


def test_no_word_is_shown(wordnet):
    assert repr(wordnet.senses("dog")[0]) == "Sense(n)"


# Nearness


def test_nearness_is_that_of_the_published_measure(wordnet):
    def first(word, pos):
        return wordnet.senses(word, pos)[0]

    dog = first("dog", "n")
    assert wordnet.wu_palmer(dog, first("cat", "n")) == 12 / 14
    assert wordnet.wu_palmer(dog, dog) == 13 / 14
    assert wordnet.wu_palmer(first("wine", "n"), first("milk", "n")) == 16 / 19
    assert wordnet.wu_palmer(first("cat", "n"), first("cat", "n")) == 1
    assert wordnet.wu_palmer(first("entity", "n"), dog) == 1 / 5
    assert wordnet.wu_palmer(first("run", "v"), first("walk", "v")) == 2 / 7
    assert wordnet.wu_palmer(first("big", "a"), first("small", "a")) == 1 / 2
    assert wordnet.wu_palmer(dog, first("run", "v")) == 1 / 7


@pytest.fixture(scope="module")
def oracle(wordnet, tmp_path_factory):
    """The reader of nltk over the same files."""
    nltk = pytest.importorskip("nltk")
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    class Reader(WordNetCorpusReader):
        def map_wn(self, version="wordnet"):
            """Leave other languages out: they need another file."""

    root = tmp_path_factory.mktemp("nltk") / "corpora" / "wordnet"
    root.mkdir(parents=True, mode=0o700)
    for file in wordnet.folder.iterdir():
        shutil.copyfile(file, root / file.name)
    (root / "lexnames").write_text(
        "".join(f"{number:02}\tfile{number}\t1\n" for number in range(45))
    )
    for file in root.iterdir():
        file.chmod(0o600)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nltk.data, "path", [str(root.parents[1])])
        yield Reader(str(root), object())


def key(synset):
    return synset.pos().replace("s", "a"), synset.offset()


@pytest.fixture(scope="module")
def all_synsets(wordnet):
    """Part of speech and offset of every synset, read off the lines of the files."""
    synsets = []
    for name in ("noun", "verb", "adj", "adv"):
        for line in (wordnet.folder / f"data.{name}").read_text().splitlines():
            if not line.startswith("  "):
                offset, _, pos = line.split(" ", 3)[:3]
                synsets.append((pos.replace("s", "a"), int(offset)))
    return synsets


@pytest.mark.slow
def test_senses_agree_with_nltk(wordnet, oracle):
    draw = random.Random(1)
    listed = [
        word.replace("_", " ") for word in draw.sample(sorted(oracle.all_lemma_names()), 2000)
    ]
    irregular = [
        line.split()[0]
        for file in ("noun.exc", "verb.exc", "adj.exc", "adv.exc")
        for line in (wordnet.folder / file).read_text().splitlines()
    ]
    # Two lines of one irregular form: nltk knows the last, here any will do.
    irregular = [word for word in irregular if word != "involucra"]
    inflected = [
        word + end for word in listed[:500] for end in ("s", "es", "ed", "ing", "er", "est")
    ]
    for word in listed + irregular + inflected:
        expected = dict.fromkeys(map(key, oracle.synsets(word.replace(" ", "_"))))
        found = wordnet.senses(word)
        assert [(sense.pos, sense._offset) for sense in found] == list(expected), word


@pytest.mark.slow
def test_synsets_and_their_relations_agree_with_nltk(wordnet, oracle, all_synsets):
    assert len(set(all_synsets)) == WORDNET.synsets
    for pos, offset in random.Random(2).sample(all_synsets, 10_000):
        ours, theirs = wordnet._sense(pos, offset), oracle.synset_from_pos_and_offset(pos, offset)
        assert list(ours.lemmas) == [name.replace("_", " ") for name in theirs.lemma_names()]
        for mine, other in (
            (ours.hypernyms(), theirs.hypernyms() + theirs.instance_hypernyms()),
            (ours.hyponyms(), theirs.hyponyms() + theirs.instance_hyponyms()),
            (
                ours.holonyms(),
                theirs.member_holonyms() + theirs.part_holonyms() + theirs.substance_holonyms(),
            ),
        ):
            assert sorted((each.pos, each._offset) for each in mine) == sorted(map(key, other))


@pytest.mark.slow
def test_nearness_agrees_with_nltk(wordnet, oracle, all_synsets):
    draw = random.Random(3)
    pairs = [(draw.choice(all_synsets), draw.choice(all_synsets)) for _ in range(1000)]
    for start in draw.sample(all_synsets, 3000):  # neighbours have the ancestors that matter
        sense = wordnet._sense(*start)
        for step in [type(sense).hypernyms] * draw.randint(0, 3) + [type(sense).hyponyms] * 2:
            sense = draw.choice(step(sense) or (sense,))
        pairs.append((start, (sense.pos, sense._offset)))
    for a, b in pairs:
        ours = wordnet.wu_palmer(wordnet._sense(*a), wordnet._sense(*b))
        theirs = oracle.synset_from_pos_and_offset(*a).wup_similarity(
            oracle.synset_from_pos_and_offset(*b)
        )
        assert ours == (theirs or 0.0), (a, b)


# Missing and damaged files


def test_a_missing_wordnet_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path))
    with pytest.raises(SottovoceError, match="sottovoce spaces add wordnet"):
        load_wordnet()


def test_damaged_files_are_noticed_and_say_what_to_do(wordnet, tmp_path):
    for file in wordnet.folder.iterdir():
        shutil.copyfile(file, tmp_path / file.name)
    data = bytearray((tmp_path / "data.noun").read_bytes())
    del data[2_000_000]
    (tmp_path / "data.noun").write_bytes(data)
    damaged = WordNet.open(tmp_path)
    with pytest.raises(SottovoceError, match=r"damaged.*sottovoce spaces add wordnet") as caught:
        damaged.senses("tree", "n")
    assert "tree" not in str(caught.value)
    index = (tmp_path / "index.noun").read_bytes()
    (tmp_path / "index.noun").write_bytes(index.replace(b"\nhouse n ", b"\nhouse n x"))
    with pytest.raises(SottovoceError, match="damaged"):
        WordNet(tmp_path).senses("house")
    (tmp_path / "adv.exc").write_bytes(b"")
    with pytest.raises(SottovoceError, match="damaged"):
        WordNet(tmp_path)


def test_the_catalogue_counts_what_is_in_the_files(wordnet):
    words, synsets = set(), 0
    for pos in ("noun", "verb", "adj", "adv"):
        index = (wordnet.folder / f"index.{pos}").read_text().splitlines()
        words |= {line.split(" ")[0] for line in index if not line.startswith("  ")}
        data = (wordnet.folder / f"data.{pos}").read_text().splitlines()
        synsets += sum(not line.startswith("  ") for line in data)
    assert (len(words), synsets) == (WORDNET.words, WORDNET.synsets)
    assert "WordNet 3.1 Copyright" in (wordnet.folder / "data.noun").read_text()[:2000]


def test_reading_needs_no_other_package(wordnet):
    code = (
        "import sys; from sottovoce.language.wordnet import load_wordnet;"
        "assert 'dog' in load_wordnet(); assert not {'nltk', 'textblob'} & set(sys.modules)"
    )
    assert os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", code]) == 0
