"""Pools that are made: the rule that cleans strings, sources, what is kept on disk, the command."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from dataclasses import replace

import numpy as np
import pytest
from command_line import as_text, run_command

from sottovoce import Obfuscator, mechanism, pool_store
from sottovoce.collections import load_collection
from sottovoce.encoders.base import corpus_vectors, embeddings_folder, vectors_file
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.guarantees import Guarantee
from sottovoce.ledger import Entry, Ledger
from sottovoce.mechanisms.build import resource_kind
from sottovoce.mechanisms.company import POPULAR, SENSITIVE, UNIFORM
from sottovoce.paths import pools_folder
from sottovoce.pool_making import cleaned, make_pool, strings_of
from sottovoce.pool_making.cleaning import reason_to_leave_out
from sottovoce.pool_store import made_pools, pool_facts, remove_pool
from sottovoce.pools import Pool, check_source, load_pool

STRINGS = ["Skin cancer", "debt advice", "skin  cancer", "SKIN CANCER\u200b", "divorce lawyer"]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    monkeypatch.setenv("SOTTOVOCE_HOME", str(folder))
    return folder


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "strings.txt"
    path.write_text("\n".join(STRINGS), encoding="utf-8")
    return path


# The rule


@pytest.mark.parametrize(
    ("string", "reason"),
    [
        ("how to quit smoking", None),
        ("c++ 11 e.g. in the u.s. at 10.30 p.m.", None),
        ("what is the.net", "addresses"),
        ("yahoo.com", "addresses"),
        ("www.example", "addresses"),
        ("ftp://files", "addresses"),
        ("the.company of men", None),
        ("mail jane@example.org now", "addresses"),
        ("bbc.co.uk news", "addresses"),
        ("who has 555-123 4567", "long numbers"),
        ("1984 and 2001", None),
        ("bell\x07", "control characters"),
        ("lost \ufffd sign", "control characters"),
        ("half \ud800", "control characters"),
        ("tab\tis a blank", None),
        ("12 + 12", "without letters"),
        ("word " * 33, "too long"),
        ("w" * 257, "too long"),
        ("word " * 32, None),
        ("Haus- und Straßenbau", None),
        ("皮肤癌", None),
    ],
)
def test_the_rule(string, reason):
    assert reason_to_leave_out(string) == reason


def test_what_is_the_same_is_joined_and_counted():
    result = cleaned([*STRINGS, "see www.example.com", "a\tb", "A B"])
    assert result.strings == ("Skin cancer", "debt advice", "divorce lawyer", "a b")
    assert result.counts.tolist() == [3, 1, 1, 2]
    assert (result.read, result.joined, result.left_out) == (8, 3, {"addresses": 1})
    rare = cleaned(STRINGS, least=2)
    assert (rare.strings, rare.left_out) == (("Skin cancer",), {"too rare": 2})
    assert result.read == len(result.strings) + result.joined + sum(result.left_out.values())


def test_one_string_in_so_many_is_kept_in_whatever_order_they_come():
    strings = [f"question number {number}" for number in range(3000)]
    kept = cleaned(strings, thin=4)
    assert len(kept.strings) == 750
    assert kept.left_out == {"not among one in 4": 2250}
    assert list(kept.strings) == [string for string in strings if string in kept.strings]
    others = cleaned([string.upper() for string in reversed(strings * 2)], thin=4)
    assert {string.casefold() for string in others.strings} == {*kept.strings}
    assert others.read == 6000 == len(others.strings) + others.joined + 2250
    assert cleaned(strings, thin=1).strings == tuple(strings)
    assert len(cleaned(strings[:2], thin=4).strings) == 1
    with pytest.raises(UsageError, match="not in 0"):
        cleaned(strings, thin=0)


def test_a_list_that_was_thinned_is_thinned_again():
    strings = tuple(f"question number {number}" for number in range(3000))
    for left in (750, 188, 47):
        strings = cleaned(strings, thin=4).strings
        assert len(strings) == left


def test_of_those_that_come_often_enough_one_in_so_many_is_kept():
    often = [f"question number {number}" for number in range(400)]
    kept = cleaned([*often, *often, "once", "only once"], least=2, thin=4)
    assert len(kept.strings) == 100
    assert kept.left_out == {"too rare": 2, "not among one in 4": 300}


def test_nothing_left_is_an_error_that_repeats_nothing():
    with pytest.raises(UsageError, match="none of the 1 strings") as caught:
        cleaned(["secret@example.org"])
    assert "secret" not in str(caught.value)


# Sources


def test_titles_sentences_and_phrases_come_from_documents(tmp_path):
    documents = [
        {
            "doc_id": "1",
            "title": "On cats",
            "text": "On cats\nOld cats sleep. The black cat, a dog",
        },
        {"doc_id": "2", "title": "", "text": "Skin cancer treatment costs money. Yes. Is it new?"},
    ]
    lines = "".join(json.dumps(document) + "\n" for document in documents)
    (tmp_path / "corpus.jsonl").write_text(lines)
    for place in (tmp_path, tmp_path / "corpus.jsonl"):
        assert list(strings_of(f"titles:{place}")) == ["On cats"]
        sentences = [sentence.strip() for sentence in strings_of(f"sentences:{place}")]
        assert "Old cats sleep." in sentences
        assert "Is it new?" in sentences
        assert "Yes." not in sentences
        phrases = list(strings_of(f"phrases:{place}"))
        assert "black cat" in phrases
        assert "Old cats" in phrases
        assert any(phrase.startswith("Skin cancer treatment") for phrase in phrases)
        assert not any("," in phrase or "dog" in phrase for phrase in phrases)
    with pytest.raises(UsageError, match="titles:demo"):
        strings_of("titles:")


def test_the_demo_gives_titles_and_phrases():
    titles = [document.title for document in load_collection("demo").documents]
    assert list(strings_of("titles:demo")) == [title for title in titles if title]
    phrases = list(strings_of("phrases:demo"))
    assert {2, 3} <= {len(phrase.split()) for phrase in phrases} <= {1, 2, 3, 4, 5}


# Popularity that is learned


def test_popularity_is_learned_from_what_people_ask(tmp_path):
    """Long strings of the demo are what is asked: long strings get the popularity."""
    pool = load_pool("demo", "light")
    long = [string for string in pool.strings if len(string.split()) >= 5]
    like = tmp_path / "like.txt"
    like.write_text("\n".join([*long[::2], "www.example.com"]))
    facts = make_pool("demo-like", ["demo"], "light", like=str(like))
    assert f"{len(long[::2]):,} texts" in facts.popularity
    made = load_pool("demo-like")
    assert made.strings == tuple(string for string in pool.strings if string != "1066")
    is_long = np.array([len(string.split()) >= 5 for string in made.strings])
    assert made.popularity.sum() == pytest.approx(1)
    assert made.popularity[is_long].sum() > 0.8 > 2 * is_long.mean()
    # Strings that were learned from and those that were not: the kind counts, not the string.
    learned, other = (
        made.popularity[np.isin(made.strings, half)] for half in (long[::2], long[1::2])
    )
    assert other.mean() == pytest.approx(learned.mean(), rel=0.25)


def test_an_observer_with_the_same_prior_gains_nothing_of_matched_decoys(tmp_path):
    pool = load_pool("demo", "light")
    long = [string for string in pool.strings if len(string.split()) >= 5]
    like = tmp_path / "like.txt"
    like.write_text("\n".join(long[::2]))
    make_pool("demo-like", ["demo"], "light", like=str(like))
    made, asked = load_pool("demo-like"), long[1::2][:150]
    best = {}
    for decoys in ("uniform", "popular"):
        cover = mechanism(f"cover:k=10,p=0.9,decoys={decoys}", pool=made)
        runs = list(Obfuscator(cover, rng=1).obfuscate(asked))
        best[decoys] = np.mean([run.company.guesses[POPULAR] for run in runs])
        company = runs[0].company
        assert set(company.guesses) == {UNIFORM, POPULAR, SENSITIVE}
        assert company.best_guess == max(company.guesses.values())
        assert all(prior in company.sentence for prior in company.guesses)
    assert best["popular"] < 0.15 < best["uniform"]


# Made, opened, removed


def test_a_made_pool_is_the_pool_of_its_strings(file):
    facts = make_pool("mine", [str(file)], "light")
    pool = load_pool("mine")
    plain = Pool(STRINGS, "light")
    assert pool == plain
    assert pool.strings == plain.strings
    assert pool.popularity.tolist() == plain.popularity.tolist() == [3, 1, 1]
    assert np.array_equal(pool.vectors, plain.vectors)
    assert pool.place("skin cancer") == 0
    assert (facts.strings, facts.read, facts.joined) == (3, 5, 2)
    assert pool_facts("mine") == facts
    assert load_pool("mine", "light") == pool


def test_vectors_are_mapped_not_read(file):
    make_pool("mine", [str(file)], "light")
    pool = load_pool("mine")
    assert isinstance(pool.vectors.base, np.memmap)
    assert pool.nearest.vectors.base is pool.vectors.base, "the search works on the mapped rows"
    assert not list(embeddings_folder().glob("*.npy")), "they are kept once"


def test_a_text_is_found_among_others_with_its_hash(monkeypatch):
    """Short hashes meet: what has the same one is compared as a text."""
    monkeypatch.setattr("sottovoce.text.text_index._hash", lambda text: len(text) % 2)
    pool = Pool([*STRINGS, "loan advice", "advice on loans"], "light")
    assert [pool.place(string.upper()) for string in pool.strings] == [0, 1, 2, 3, 4]
    assert pool.place("something else") is None


def test_all_alike_is_no_popularity(tmp_path):
    (tmp_path / "a.txt").write_text("one thing\nanother thing\n")
    assert make_pool("flat", [str(tmp_path / "a.txt")], "light").popularity is None
    assert load_pool("flat").popularity is None


def test_several_sources_are_joined(file):
    make_pool("both", [str(file), str(file), "demo"], "light", least=2)
    assert load_pool("both").strings == ("Skin cancer", "debt advice", "divorce lawyer")


def test_one_string_in_so_many_is_kept_in_a_pool_too(tmp_path):
    path = tmp_path / "many.txt"
    path.write_text("\n".join(f"string {number}" for number in range(200)))
    assert make_pool("few", [str(path)], "light", thin=4).strings == 50
    made = command("pools", "make", "fewer", "--from", path, "--encoder", "light", "--thin", "10")
    assert "180 not among one in 10" in made.stderr
    assert pool_facts("fewer").strings == 20


def test_a_source_that_is_missing_is_named_with_all_that_there_are(file):
    for sources in (["nosuch.txt"], [str(file), "nosuch.txt"]):
        with pytest.raises(UsageError, match=r"missing: there is no 'nosuch\.txt'") as no:
            make_pool("mine", sources, "light")
        for kind in ("demo", ".tsv", "queries.jsonl", "ir_datasets:ID", "titles:", "phrases:"):
            assert kind in str(no.value)
        assert "no such pool" not in str(no.value)
    with pytest.raises(UsageError, match="there is no such pool: use one that 'sottovoce pools"):
        load_pool("nosuch.txt", "light")


def test_a_made_pool_travels_by_its_name(file):
    make_pool("mine", [str(file)], "light")
    cover = mechanism("cover:k=2,p=0.9", pool=load_pool("mine"))
    data = pickle.dumps(cover)
    assert len(data) < 1000
    make_pool("copy", [str(file)], "light")
    copied = replace(cover, pool=load_pool("copy"))
    assert pickle.loads(pickle.dumps(copied)) == cover
    file.write_text("other\nstrings\nhere\n")
    make_pool("mine", [str(file)], "light", replace=True)
    with pytest.raises(SottovoceError, match="changed since"):
        pickle.loads(data)


def test_the_same_strings_with_other_counts_are_not_the_same_pool_to_whoever_kept_figures(tmp_path):
    """Popularity decides decoys and attacks; where all are alike, the hash is that of strings."""
    log = tmp_path / "log.txt"

    def told(*strings):
        log.write_text("\n".join(strings))
        pool = load_pool(log, "light")
        return pool.sha256, resource_kind("pool").facts(pool)["sha256"]

    alike, often, other = told("one", "two"), told("one", "two", "two"), told("one", "one", "two")
    assert alike[0] == often[0] == other[0] == alike[1]
    assert len({alike[1], often[1], other[1]}) == 3
    data = pickle.dumps(load_pool(log, "light"))
    log.write_text("one\ntwo\ntwo\ntwo\n")
    with pytest.raises(SottovoceError, match="changed since"):
        pickle.loads(data)


def test_names_are_checked(file):
    make_pool("mine", [str(file)], "light")
    for name, says in (("demo", "not 'demo'"), ("../x", "lower-case"), ("mine", "already")):
        with pytest.raises(UsageError, match=says):
            make_pool(name, [str(file)], "light")
    check_source("mine")
    with pytest.raises(UsageError, match="pools list"):
        check_source("mime")
    with pytest.raises(UsageError, match="did you mean 'mine'"):
        pool_facts("mime")


@pytest.mark.parametrize(
    "damage", ["strings.txt", "popularity.npy", "vectors.npy", "hashes.npy", "pool.json"]
)
def test_damage_is_noticed(file, damage):
    make_pool("mine", [str(file)], "light")
    path = pools_folder() / "mine" / damage
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(SottovoceError, match="damaged"):
        load_pool("mine")


def test_a_string_that_was_changed_is_noticed(file):
    """As many strings as before, as long as before: else another text would leave."""
    make_pool("mine", [str(file)], "light")
    path = pools_folder() / "mine" / "strings.txt"
    data = path.read_bytes()
    path.write_bytes(data.swapcase())
    assert len(path.read_bytes().splitlines()) == len(data.splitlines())
    with pytest.raises(SottovoceError, match="damaged"):
        load_pool("mine")


def test_another_version_of_the_encoder_is_refused(file):
    make_pool("mine", [str(file)], "light")
    path = pools_folder() / "mine" / "pool.json"
    content = json.loads(path.read_text()) | {"encoder_fingerprint": "another"}
    path.write_text(json.dumps(content))
    with pytest.raises(SottovoceError, match="changed since it was made"):
        load_pool("mine")


class FailingEncoder:
    """Dies after some texts, as a killed process does; counts what it is asked for."""

    name, dimension, exact_batches, fingerprint = "failing", 2, True, "failing"

    def __init__(self, after):
        self.after, self.asked = after, 0

    def encode(self, texts):
        if self.asked + len(texts) > self.after:
            raise KeyboardInterrupt
        self.asked += len(texts)
        return np.ones((len(texts), 2), dtype=np.float32)


def test_a_pool_is_made_whole_or_not_at_all_and_work_goes_on(tmp_path):
    path = tmp_path / "many.txt"
    path.write_text("".join(f"string {'x' * (row % 7)}{row}\n" for row in range(3000)))
    with pytest.raises(KeyboardInterrupt):
        make_pool("many", [str(path)], FailingEncoder(2500))
    assert made_pools() == []
    assert not [left for left in pools_folder().iterdir() if left.name != "many"]
    rest = FailingEncoder(10_000)
    make_pool("many", [str(path)], rest)
    # But for the last block, which may not be on disk after a power cut.
    assert rest.asked == 3000 - 1024, "what was encoded before is not encoded again"
    assert made_pools() == ["many"]


@pytest.mark.parametrize("kept", [0, 1, 500, 1023])
def test_a_block_of_vectors_that_was_not_on_disk_is_made_again(tmp_path, kept):
    """A power cut can leave a file that is long enough, and zeros at its end."""
    texts = [f"string {row}" for row in range(3000)]
    encoder = FailingEncoder(2500)
    with pytest.raises(KeyboardInterrupt):
        corpus_vectors(encoder, texts)
    growing = vectors_file(encoder, texts).with_suffix(".growing")
    row = encoder.dimension * 4
    content = growing.read_bytes()
    header = len(content) - 2048 * row
    growing.write_bytes(content[: header + (1024 + kept) * row] + bytes((1024 - kept) * row))
    rest = FailingEncoder(10_000)
    assert np.array_equal(corpus_vectors(rest, texts), FailingEncoder(10_000).encode(texts))


def test_replacing_fails_whole_too(file, tmp_path):
    make_pool("mine", [str(file)], "light")
    with pytest.raises(KeyboardInterrupt):
        make_pool("mine", [str(file)], FailingEncoder(0), replace=True)
    assert load_pool("mine") == Pool(STRINGS, "light")


def test_removed_is_gone(file):
    make_pool("mine", [str(file)], "light")
    remove_pool("mine")
    assert made_pools() == []
    assert not (pools_folder() / "mine").exists()
    with pytest.raises(UsageError, match="no pool"):
        remove_pool("mine")


# The command


def command(*arguments):
    return as_text(run_command(*arguments, home=os.environ["SOTTOVOCE_HOME"]))


def test_the_command(file):
    made = command("pools", "make", "mine", "--from", file, "--encoder", "light")
    assert made.returncode == 0
    assert "3 strings" in made.stderr
    assert "--pool mine" in made.stderr
    assert "mine" in command("pools", "list").stdout
    info = command("pools", "info", "mine", "--json")
    assert json.loads(info.stdout)["joined"] == 2
    assert "light, 256 dimensions" in command("pools", "info", "mine").stdout
    released = command("obfuscate", "skin cancer", "-m", "cover:k=2,p=0.9", "--pool", "mine")
    assert released.returncode == 0
    assert len(set(released.stdout.splitlines()) & set(load_pool("mine").strings)) == 2
    assert command("pools", "remove", "mine").returncode == 0
    assert command("pools", "info", "mine").returncode == 2


def test_list_shows_what_is_damaged(file):
    make_pool("mine", [str(file)], "light")
    (pools_folder() / "mine" / pool_store.DESCRIPTION).write_text("{}")
    assert "damaged" in command("pools", "list").stdout
    shutil.rmtree(pools_folder())
    assert "no pool was made yet" in command("pools", "list").stderr


# A person's own queries are no pool


def hide(*texts):
    ledger = Ledger.open()
    for text in texts:
        promise = Guarantee("metric", 1.0, "euclidean")
        ledger.charge(Entry(text, ("a",), "cmp:epsilon=1", "once", promise, 1, "bm25"))
    return ledger


def test_a_pool_of_one_s_own_queries_is_noticed(tmp_path):
    own = ["skin cancer", "debt advice", "divorce lawyer", "hair loss", "panic attack"]
    ledger = hide(*own, "only here")
    assert ledger.hidden_among(["Skin  Cancer", "how to knit", "hair loss"]) == 2
    assert ledger.hidden_among(["Skin  Cancer", "how to knit", "hair loss"], least=7) == 0
    history, public = tmp_path / "history.txt", tmp_path / "public.txt"
    history.write_text("\n".join([*own, "how to knit"]), encoding="utf-8")
    public.write_text("\n".join([*own[:4], "how to knit"]), encoding="utf-8")
    made = command("pools", "make", "mine", "--from", history, "--encoder", "light")
    assert made.returncode == 0
    assert "5 of the 6 strings of this pool are texts that you have hidden" in made.stderr
    assert not any(query in made.stderr for query in own)
    searched = command("search", "flu", "--cover", "2", "--pool", "mine", "--collection", "demo")
    assert searched.returncode == 0
    assert "texts that you have hidden before" in searched.stderr
    made = command("pools", "make", "other", "--from", public, "--encoder", "light")
    assert "hidden" not in made.stderr
