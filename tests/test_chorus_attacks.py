"""Attacks on a chorus: which of the texts is meant, and what it says."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from command_line import as_text, run_command
from naive_chorus import RemembersByWord
from scipy import stats

from sottovoce import Obfuscator, mechanism
from sottovoce.errors import UsageError
from sottovoce.obfuscation import Chorus
from sottovoce.pools import Pool
from sottovoce.privacy import Knowledge, QueryLog, Released, attack, attack_chorus
from sottovoce.spaces.extended_space import with_words
from sottovoce.text import TextPipeline

pytestmark = pytest.mark.usefixtures("home")

LEVEL = 1e-4
K, N = 5, 4
LOG = [f"word{row} word{row + 500} word{row + 900}" for row in range(400)]
"""Queries are three words that belong together; no word is in two of them."""
ASKED = LOG[::16]
SHUFFLED = TextPipeline(order="shuffled", punctuation="drop")


@pytest.fixture(scope="module")
def cmp(small_space):
    return mechanism("cmp", space=small_space, epsilon=4.0)


@pytest.fixture(scope="module")
def naive():
    """Decoys of random words of the same queries, which nobody asks together."""
    rng = np.random.default_rng(1)
    words = sorted({word for query in LOG for word in query.split()})
    return Pool([" ".join(rng.choice(words, 3)) for _ in range(400)], "light")


@pytest.fixture(scope="module")
def public():
    """Decoys are queries such as people ask, the person's among them."""
    return Pool(LOG, "light")


def attacked(cmp, pool, pipeline=None, knowledge=None, texts=ASKED):
    chorus = Chorus(cmp, n=N, release="once", pipeline=pipeline, rng=1, pool=pool, k=K)
    results = list(chorus.obfuscate(texts))
    return attack_chorus(chorus, results, QueryLog(LOG), knowledge=knowledge, rng=0)


def above_chance(share):
    return stats.binomtest(share.right, share.total, 1 / K, "greater").pvalue < LEVEL


@pytest.mark.parametrize("pipeline", [None, SHUFFLED], ids=["in order", "shuffled"])
def test_random_words_are_told_from_queries(cmp, naive, public, pipeline):
    broken = attacked(cmp, naive, pipeline)
    assert broken.naming("law alone").mean > 0.9
    assert broken.headline.share > 0.5
    ours = attacked(cmp, public, pipeline)
    assert not above_chance(ours.naming("law alone").group)
    assert ours.headline.share < broken.headline.share / 2


def test_a_query_that_the_pool_lacks_is_what_the_pool_does_not_explain(cmp):
    """The attacker need not have the query in a list: all other groups are strings of the pool."""
    report = attacked(cmp, Pool([query for query in LOG if query not in ASKED], "light"))
    assert above_chance(report.naming("not in the pool").group)
    assert report.naming("law alone").mean > 0.8


def test_both_are_never_named_more_often_than_either(cmp, naive, public):
    for pool in (naive, public):
        report = attacked(cmp, pool)
        assert [made.attack for made in report.namings] == [made.attack for made in report.told]
        for made, told in zip(report.namings, report.told, strict=True):
            assert made.query.right <= min(made.group.right, told.query.right)
            assert told.group.value == 1
            assert "which group is meant" in told.knows
        assert report.headline.share == max(made.query.value for made in report.namings)
        assert report.chance == 1 / K


@pytest.mark.parametrize("pipeline", [TextPipeline(), SHUFFLED], ids=["in order", "shuffled"])
def test_told_the_group_it_is_the_attack_on_texts_alone(cmp, public, pipeline):
    texts = LOG[::10]
    chorus = Chorus(cmp, n=N, release="once", pipeline=pipeline, rng=1, pool=public, k=K)
    results = list(chorus.obfuscate(texts))
    report = attack_chorus(chorus, results, QueryLog(LOG), rng=0)
    own = [result.variants[result.choir.own * N :][:N] for result in results]
    alone = attack(
        [Released(str(at), text, own[at]) for at, text in enumerate(texts)],
        mechanism=cmp,
        release="once",
        pipeline=pipeline,
        log=QueryLog(LOG),
        attacks=["aligned"],
        counts=[N],
        rng=0,
    )
    ((_, inference),) = alone.inferences
    assert 0.2 < inference.lazy.value < 1
    assert report.told[0].query.value == pytest.approx(inference.lazy.value)


def test_which_kind_is_asked_tells_the_group(cmp):
    """Most strings of the pool are of a kind that the person never asks."""
    subjects = ["debt", "divorce", "eczema", "asylum"]
    kind = [f"word{row} {subject}" for row in range(30) for subject in subjects]
    other = [f"word{row} word{row + 500}" for row in range(480)]
    space = with_words(cmp.space, subjects, cmp.space.vectors[[7, 77, 777, 1777]] * 1.5)
    chorus = Chorus(
        replace(cmp, space=space),
        n=N,
        release="once",
        rng=1,
        pool=Pool([*kind, *other], "light"),
        k=K,
    )
    texts = kind[::3]
    reference = [query for query in kind if query not in texts]
    results = list(chorus.obfuscate(texts))
    log = QueryLog([*kind, *other])
    blind = attack_chorus(chorus, results, log, rng=0)
    assert "classifier" in blind.not_tried
    known = attack_chorus(chorus, results, log, knowledge=Knowledge(reference), rng=0)
    assert known.naming("classifier").mean > known.naming("law alone").mean + 0.1
    assert above_chance(known.naming("classifier").group)


def test_popular_decoys_are_what_the_attacker_expects(cmp):
    """Decoys are often popular strings; a query that is not popular stands out by law."""
    weights = [1.0 if query in ASKED else 50.0 for query in LOG]
    report = attacked(cmp, Pool(LOG, "light", weights=weights))
    assert report.naming("law alone").mean > 0.8
    assert report.naming("popularity").mean < report.naming("law alone").mean


@pytest.fixture(scope="module")
def searches():
    """Two searches of each person that share one word, and whose they are."""
    firsts = [LOG[row] for row in range(0, 400, 16)]
    others = [LOG[-row - 1].split() for row in range(len(firsts))]
    seconds = [
        " ".join([first.split()[0], *other[1:]])
        for first, other in zip(firsts, others, strict=True)
    ]
    texts = [text for pair in zip(firsts, seconds, strict=True) for text in pair]
    return texts, [str(row) for row in range(len(firsts)) for _ in range(2)]


def recurring(kind, cmp, pool, searches):
    """How often the group is named whose words come again in the person's other search.

    The noise is large: with less of it two draws of a word have words near to it in common.
    """
    texts, persons = searches
    plain = kind(replace(cmp, epsilon=2.0), n=N, release="once", pipeline=SHUFFLED, pool=pool, k=K)
    results = [
        next(replace(plain, memory_key=person.encode()).obfuscate([text]))
        for text, person in zip(texts, persons, strict=True)
    ]
    report = attack_chorus(plain, results, QueryLog(LOG), persons=persons, rng=0)
    return report.naming("recurring words").group


def test_two_searches_that_share_a_word_do_not_tell_which_group_is_meant(cmp, public, searches):
    """Replaced alike each time, the shared word would name both groups."""
    assert recurring(RemembersByWord, cmp, public, searches).value > 0.9
    ours = recurring(Chorus, cmp, public, searches)
    assert not above_chance(ours)
    assert ours.total == len(searches[0])


def test_the_same_search_again_tells_nothing(cmp, public):
    chorus = Chorus(cmp, n=N, release="once", pool=public, k=K, memory_key=b"a key")
    results = list(chorus.obfuscate([ASKED[0]] * 2 + ASKED[1:9]))
    persons = ["one", *map(str, range(1, len(results)))]
    persons[1] = "one"
    report = attack_chorus(chorus, results, QueryLog(LOG), persons=persons, rng=0)
    assert report.naming("recurring words").ranks[:2] == (3.0, 3.0), "all five groups are alike"


def test_recurring_words_need_a_person_who_asks_again(cmp, public):
    report = attacked(cmp, public, texts=ASKED[:3])
    assert "say whose" in report.not_tried["recurring words"]


def test_the_report_holds_no_text(cmp, public):
    report = attacked(cmp, public, texts=ASKED[:5])
    written = json.dumps(report.to_dict())
    for ours in ("how often words are said", "list of words", "recurring words"):
        written = written.replace(ours, "")
    assert "word" not in written
    assert report.to_dict()["strongest"]["share"] == report.headline.share
    assert "which variants belong together" in report.headline.sentence


def test_wrong_use(cmp, public):
    chorus = Chorus(cmp, n=N, pool=public, k=K, rng=1)
    plain = list(Obfuscator(cmp, n=N, rng=1).obfuscate(ASKED[:2]))
    for results in ([], plain):
        with pytest.raises(UsageError, match="no chorus to attack"):
            attack_chorus(chorus, results, QueryLog(LOG))


def test_the_command_says_that_it_does_not_read_a_chorus(cmp, public, tmp_path):
    (result,) = Chorus(cmp, n=N, pool=public, k=K, rng=1).obfuscate(ASKED[:1])
    file = tmp_path / "chorus.jsonl"
    file.write_text(json.dumps(result.to_dict()))
    done = as_text(run_command("attack", str(file), home=tmp_path))
    assert done.returncode == 2
    assert "attack_chorus" in " ".join(done.stderr.split())
    assert "word" not in done.stderr
