"""chorus: decoys that are obfuscated as the text is, and what they must not tell."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from command_line import as_text, run_command
from cover_cases import Stranger
from scipy import stats

from sottovoce import Obfuscator, mechanism
from sottovoce.collections import load_collection
from sottovoce.engines import BM25
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.ledger import Entry, Ledger, OtherCompanyError
from sottovoce.obfuscation import Chorus
from sottovoce.obfuscation.chorus import REMEMBERED_IN_CHORUS
from sottovoce.obfuscation.memory import keyed_hash
from sottovoce.obfuscation.obfuscator import AFRESH, REMEMBERED_WORDS
from sottovoce.paths import spaces_folder
from sottovoce.pools import Pool
from sottovoce.search import PrivateSearch, load_reranker
from sottovoce.text import TextPipeline

LEVEL = 1e-4
KEY = b"a key"


@pytest.fixture(scope="module")
def pool():
    """Strings of made-up words, so that a word tells which string it comes from."""
    return Pool([f"word{row} word{row + 40}" for row in range(40)], "light")


@pytest.fixture
def keeping(small_space):
    """So large an epsilon that every word stays: what leaves can be read."""
    return mechanism("cmp", space=small_space, epsilon=1e6)


@pytest.fixture
def home_of_spaces(tmp_path):
    """A home with the word spaces of this machine, and nothing else of it."""
    (tmp_path / "spaces").symlink_to(spaces_folder())
    return tmp_path


TEXT = "word1500 word1501"


def groups(result, n):
    return [result.variants[at : at + n] for at in range(0, len(result.variants), n)]


def words_of(variants):
    return frozenset(" ".join(variants).split())


def test_a_text_leaves_among_public_ones(keeping, pool):
    chorus = Chorus(keeping, n=3, release="once", pool=pool, k=5, memory_key=KEY)
    (result,) = chorus.obfuscate([TEXT])
    (plain,) = Obfuscator(keeping, n=3, release="once", memory_key=KEY).obfuscate([TEXT])
    assert len(result.variants) == 15
    own = groups(result, 3)[result.choir.own]
    assert words_of(own) == words_of(plain.variants)
    decoys = [group for group in groups(result, 3) if group != own]
    assert len({*map(words_of, decoys)}) == 4
    assert all(len(decoy) == 3 for decoy in decoys)
    assert result.spent == plain.spent
    assert any("has no proof" in caveat for caveat in result.guarantee.caveats)
    assert AFRESH not in result.guarantee.caveats


def test_the_same_company_each_time(keeping, pool):
    chorus = Chorus(keeping, n=1, pool=pool, k=6, memory_key=KEY)
    one, again, other = chorus.obfuscate([TEXT, TEXT.upper(), "word1502"])
    assert one.variants == again.variants
    assert {*one.variants} - {*other.variants}
    (fresh,) = Chorus(keeping, n=1, pool=pool, k=6).obfuscate([TEXT])
    assert AFRESH in fresh.guarantee.caveats


def test_the_place_of_the_text_is_random_and_decoys_come_from_everywhere(keeping, pool):
    chorus = Chorus(keeping, n=1, pool=pool, k=4, rng=1)
    (plain,) = Obfuscator(keeping).obfuscate([TEXT])
    own, runs = plain.variants[0], list(chorus.obfuscate([TEXT] * 600))
    places = np.bincount([run.variants.index(own) for run in runs], minlength=4)
    assert stats.chisquare(places).pvalue > LEVEL
    seen = [variant for run in runs for variant in run.variants if variant != own]
    counts = [seen.count(string) for string in pool.strings]
    assert sum(counts) == 1800
    assert stats.chisquare(counts).pvalue > LEVEL


def test_a_public_text_is_not_its_own_decoy(keeping, pool):
    chorus = Chorus(keeping, n=1, pool=pool, k=20, rng=1)
    for run in chorus.obfuscate([pool.strings[3]] * 30):
        assert run.variants.count(pool.strings[3]) == 1
        assert len({*run.variants}) == 20


def test_popular_strings_are_decoys_more_often(keeping):
    pool = Pool([f"word{row}" for row in range(40)], "light", weights=[20, *[1] * 39])
    runs = Chorus(keeping, n=1, pool=pool, k=3, rng=1).obfuscate([TEXT] * 200)
    assert sum("word0" in run.variants for run in runs) > 80


def test_words_of_decoys_are_not_replaced_as_they_are_in_private_texts(small_space):
    """Else whoever recognizes a decoy knows the substitutes of its words, for good."""
    pool = Pool([f"word{row}" for row in range(40)], "light")
    noisy = mechanism("cmp", space=small_space, epsilon=1.0)
    private = Obfuscator(noisy, n=4, memory_key=KEY)
    own = {result.variants for result in private.obfuscate(pool.strings)}
    chorus = Chorus(noisy, n=4, pool=pool, k=20, memory_key=KEY)
    (result,) = chorus.obfuscate([TEXT])
    assert not own & {*groups(result, 4)}


def test_a_word_is_drawn_anew_in_each_group_and_in_each_search(small_space):
    """Substitutes that come again would tell the person's group from decoys."""
    pool = Pool([f"word7 word{row}" for row in range(40, 80)], "light")
    noisy = mechanism("cmp", space=small_space, epsilon=1.0)
    chorus = Chorus(noisy, n=4, release="once", pool=pool, k=10, memory_key=KEY)
    one, other = chorus.obfuscate(["word7", "word7 word8"])
    (plain,) = replace(chorus._alone(), memory_key=KEY).obfuscate(["word7"])
    own, *_ = (groups(result, 4)[result.choir.own] for result in (one, other))
    assert not words_of(own) & words_of(plain.variants), "nor is it what leaves without a chorus"
    held = [words_of(group) for result in (one, other) for group in groups(result, 4)]
    pairs = [(a, b) for at, a in enumerate(held) for b in held[at + 1 :]]
    # A word has four of some two thousand substitutes: all four in common is no chance.
    assert max(len(a & b) for a, b in pairs) < 4
    assert not {*one.word_hashes} & {*plain.word_hashes, *other.word_hashes}, "so it is counted"


def test_the_guarantee_says_what_is_remembered_in_a_chorus(keeping, pool):
    (result,) = Chorus(keeping, pool=pool, k=3, memory_key=KEY).obfuscate([TEXT])
    assert REMEMBERED_IN_CHORUS in result.guarantee.caveats
    assert REMEMBERED_WORDS not in result.guarantee.caveats, "in another text they are drawn anew"


def test_an_error_repeats_nothing(keeping, pool, monkeypatch):
    def broken(text):
        raise RuntimeError(f"while looking for {text}")

    monkeypatch.setattr(pool, "place", broken)
    with pytest.raises(SottovoceError, match="RuntimeError") as caught:
        list(Chorus(keeping, n=1, pool=pool, k=3).obfuscate([TEXT]))
    assert TEXT not in f"{caught.value!r} {caught.value.__cause__!r}"
    assert caught.value.__suppress_context__


def test_wrong_use(keeping, pool):
    with pytest.raises(UsageError, match="give it a Pool"):
        Chorus(keeping)
    for k in (1, len(pool)):
        with pytest.raises(UsageError, match=r"at least 2 texts.*another number.*a larger pool"):
            Chorus(keeping, pool=pool, k=k)
    with pytest.raises(UsageError, match=r"mechanisms that replace words.*-m cmp"):
        Chorus(mechanism("cover:k=3", pool=pool), pool=pool, k=3)


def test_a_search_in_chorus(keeping, pool, tmp_path):
    engine = BM25(load_collection("demo").documents)
    chorus = Chorus(keeping, n=2, release="independent", pool=pool, k=4)
    ledger = Ledger.open(tmp_path)
    none = load_reranker("none")
    search = PrivateSearch(chorus, engine=engine, reranker=none, ledger=ledger)
    result = search.search(TEXT)
    assert len(result.sent) == 4, "one word stays one word, twice: sent once for each text"
    assert result.spent == 2e6, "two releases of the text; public ones cost nothing"
    assert search.search(TEXT).spent == 0
    with pytest.raises(UsageError, match=r"chorus never draws.*leave --fresh out"):
        PrivateSearch(chorus, engine=engine, reranker=none, ledger=ledger, fresh=True)


def test_a_text_does_not_leave_in_two_choirs(keeping, pool, tmp_path):
    ledger, chorus = Ledger.open(tmp_path), Chorus(keeping, pool=pool, k=4)

    def entry(obfuscator):
        remembering = replace(obfuscator, memory_key=ledger.memory_key())
        return Entry.of(next(remembering.obfuscate([TEXT])), remembering, "a stranger")

    ledger.charge(entry(chorus))
    assert ledger.charge(entry(chorus)).record.spent == 0
    with pytest.raises(OtherCompanyError, match="has left in company"):
        ledger.charge(entry(replace(chorus, k=5)))
    assert len(ledger.entries()) == 2


def test_another_popularity_brings_another_chorus(keeping, tmp_path):
    """Decoys are drawn by it: the same text would leave in two choirs."""
    strings = [f"word{row} word{row + 40}" for row in range(40)]
    engine, ledger, reranker = Stranger(), Ledger.open(tmp_path), load_reranker("light")
    pools = [Pool(strings, "light", weights=np.arange(1.0, 41.0)[::step]) for step in (1, -1)]
    first, second = (
        PrivateSearch(Chorus(keeping, n=2, pool=pool, k=4), engine, reranker, ledger)
        for pool in pools
    )
    sent = first.search(TEXT).sent
    assert {*first.search(TEXT).sent} == {*sent}
    with pytest.raises(OtherCompanyError):
        second.search(TEXT)
    assert {*engine.heard} == {*sent}


@pytest.mark.parametrize("text", ["...", "zzzunknown"])
def test_a_text_without_a_word_to_draw_may_leave_again(keeping, pool, tmp_path, text):
    engine, reranker = Stranger(), load_reranker("light")
    pipeline = TextPipeline(unknown="drop")
    chorus = Chorus(keeping, n=2, pipeline=pipeline, pool=pool, k=4)
    search = PrivateSearch(chorus, engine, reranker, Ledger.open(tmp_path))
    first, again = (search.search(text) for _ in range(2))
    assert {*first.sent} == {*again.sent}
    assert not again.fresh


def test_a_text_whose_words_left_by_another_key_is_refused(keeping, pool, tmp_path):
    """Its decoys would leave as before, and its own words would not."""
    ledger, chorus = Ledger.open(tmp_path), Chorus(keeping, pool=pool, k=4)
    secret = ledger.memory_key()
    noted = ((TEXT,), (TEXT, f"chorus 4 {pool.sha256}"))  # As ledgers had it.
    hashes = tuple(keyed_hash(secret, "company", *values).hex() for values in noted)
    promise = keeping.guarantee
    ledger.charge(Entry(TEXT, ("a",), keeping.spec, "independent", promise, 1, "", words=hashes))
    (result,) = replace(chorus, memory_key=secret).obfuscate([TEXT])
    with pytest.raises(OtherCompanyError):
        ledger.charge(Entry.of(result, chorus, "a stranger"))


def test_the_command_refuses_what_would_do_nothing(tmp_path):
    def run(*arguments):
        return as_text(run_command("search", "skin cancer", *arguments, home=tmp_path))

    alone, both = run("--chorus", "3"), run("--chorus", "3", "--cover", "3", "--pool", "demo")
    assert (alone.returncode, both.returncode) == (2, 2)
    assert "--pool" in alone.stderr
    assert "--chorus does nothing with --cover" in " ".join(both.stderr.split())
    assert "skin" not in alone.stderr + both.stderr


def test_the_command(default_space, home_of_spaces):
    done = as_text(
        run_command(
            *("search", "treatment for skin cancer", "--chorus", "3", "--pool", "demo"),
            *("--encoder", "light", "-n", "4", "--space", "glove-840b-34k", "--rerank", "none"),
            *("--no-ledger", "--json"),
            home=home_of_spaces,
        )
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert 8 < len(said["sent"]) <= 12
    assert any("among 2 public ones" in caveat for caveat in said["guarantee"]["caveats"])


def test_the_result_is_json(keeping, pool):
    (result,) = Chorus(keeping, pool=pool, k=3, rng=1).obfuscate([TEXT])
    assert len(json.loads(json.dumps(result.to_dict()))["variants"]) == 3
