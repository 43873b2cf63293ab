"""cover: the same query always leaves in the same company, and in one way only."""

from __future__ import annotations

import shutil
import threading
from dataclasses import replace
from itertools import permutations

import pytest
from cover_cases import LEVEL, MEMBER, QUERY, Stranger, in_company
from scipy import stats

from sottovoce import Obfuscator, mechanism
from sottovoce.collections import load_collection
from sottovoce.engines import BM25
from sottovoce.errors import SottovoceError
from sottovoce.guarantees import Guarantee
from sottovoce.ledger import Entry, Ledger, LedgerError, OlderLedgerError, OtherCompanyError
from sottovoce.mechanisms.cover import Cover
from sottovoce.obfuscation import Chorus
from sottovoce.obfuscation.memory import keyed_hash, setting_of
from sottovoce.obfuscation.obfuscator import AFRESH
from sottovoce.pools import Pool, load_pool
from sottovoce.search import PrivateSearch, load_reranker
from sottovoce.text import TextPipeline

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture(scope="module")
def demo():
    return load_pool("demo", "light")


@pytest.fixture(scope="module")
def light():
    return load_reranker("light")


@pytest.fixture(scope="module")
def engine():
    return BM25(load_collection("demo").documents)


def test_the_same_representative_brings_the_same_company_and_is_counted_once(demo, tmp_path):
    ledger = Ledger.open(tmp_path)
    cover = mechanism("cover:k=8", pool=demo)
    obfuscator = Obfuscator(cover, memory_key=ledger.memory_key())
    same = [QUERY, MEMBER, QUERY.upper(), "skin cancer melanoma treatment options"]
    assert len(set(cover.representatives(same).tolist())) == 1
    results = list(obfuscator.obfuscate(same))
    assert len({r.variants for r in results}) == len({r.word_hashes for r in results}) == 1
    assert AFRESH not in results[0].guarantee.caveats
    (other,) = obfuscator.obfuscate(["debt advice"])
    assert other.variants != results[0].variants
    # Over all keys, what is remembered follows the law like anything else.
    drawn = [
        MEMBER in next(Obfuscator(cover, memory_key=bytes([i, j])).obfuscate([QUERY])).variants
        for i in range(20)
        for j in range(20)
    ]
    assert stats.binomtest(sum(drawn), 400, 0.9).pvalue > LEVEL


@pytest.mark.parametrize("changed", ["cover:k=9", "cover:k=8,p=0.8", "cover-subjects:k=8"])
def test_a_query_does_not_leave_in_two_companies(demo, light, tmp_path, changed):
    engine, ledger = Stranger(), Ledger.open(tmp_path)

    def search(spec, pool=demo):
        return PrivateSearch(Obfuscator(mechanism(spec, pool=pool)), engine, light, ledger)

    sent = {*search("cover:k=8").search(QUERY).sent}
    for spec, pool in ((changed, demo), ("cover:k=8", Pool(demo.strings[1:], "light"))):
        with pytest.raises(OtherCompanyError, match="record 1 of the ledger") as refused:
            search(spec, pool).search(MEMBER.upper())
        assert QUERY not in str(refused.value)
        assert MEMBER not in str(refused.value)
    assert {*engine.heard} == sent
    assert len(ledger.entries()) == 1
    assert {*search("cover:k=8").search(MEMBER).sent} == sent
    search(changed).search("debt advice")
    counted = ledger.entries()[0].number
    with pytest.raises(OtherCompanyError, match=f"record {counted} of the ledger"):
        search("cover:k=8").search("debt advice")


WAYS = ("cover", "chorus", "words", "words drawn afresh")
BY_WORDS = frozenset(WAYS[2:])


def search_in(way, small_space, demo, engine, reranker, ledger):
    cmp = mechanism("cmp", space=small_space, epsilon=3.0)
    obfuscator = {
        "cover": lambda: Obfuscator(mechanism("cover:k=8", pool=demo)),
        "chorus": lambda: Chorus(cmp, n=2, pool=demo, k=4),
    }.get(way, lambda: Obfuscator(cmp, n=2))()
    return PrivateSearch(obfuscator, engine, reranker, ledger, fresh=way == "words drawn afresh")


@pytest.mark.parametrize(
    ("before", "after"), [pair for pair in permutations(WAYS, 2) if {*pair} != BY_WORDS]
)
def test_a_query_leaves_in_company_or_by_words_and_not_in_both(
    demo, light, small_space, tmp_path, before, after
):
    """Its words would name it among its company, and two companies have it in common."""
    engine, ledger = Stranger(), Ledger.open(tmp_path)
    first, second = (
        search_in(way, small_space, demo, engine, light, ledger) for way in (before, after)
    )
    first.search(QUERY)
    heard = [*engine.heard]
    with pytest.raises(OtherCompanyError, match="record 1 of the ledger") as refused:
        second.search(QUERY.upper())
    assert "same way as before" in str(refused.value)
    assert ("without company" in str(refused.value)) == (before in BY_WORDS)
    assert "cancer" not in str(refused.value).lower()
    assert (engine.heard, len(ledger.entries())) == (heard, 1)
    assert second.search("debt advice").sent, "other queries may leave as they like"
    assert {*first.search(QUERY.upper()).sent} == {*heard} or "afresh" in before
    ledger.reset()
    assert second.search(QUERY).sent


def test_words_of_a_query_may_leave_in_any_setting(demo, light, small_space, tmp_path):
    engine, ledger = Stranger(), Ledger.open(tmp_path)
    for way in (*WAYS[2:], "words"):
        assert search_in(way, small_space, demo, engine, light, ledger).search(QUERY).sent


@pytest.mark.parametrize("order", [1, -1])
def test_what_stands_for_a_query_does_not_leave_by_words(demo, light, small_space, tmp_path, order):
    engine, ledger = Stranger(), Ledger.open(tmp_path)
    searches = [("cover", QUERY), ("words", MEMBER.title())][::order]
    (before, one), (after, other) = searches
    search_in(before, small_space, demo, engine, light, ledger).search(one)
    with pytest.raises(OtherCompanyError):
        search_in(after, small_space, demo, engine, light, ledger).search(other)


def test_what_stays_on_this_machine_is_not_held_against_a_query(
    demo, engine, light, small_space, tmp_path
):
    ledger = Ledger.open(tmp_path)
    for way in WAYS:
        search_in(way, small_space, demo, engine, light, ledger).search(QUERY)
    search_in("cover", small_space, demo, Stranger(), light, ledger).search(QUERY)
    search_in("words", small_space, demo, engine, light, ledger).search(QUERY)


def test_company_that_was_drawn_afresh_is_no_company_that_was_drawn_before(demo, tmp_path):
    ledger, obfuscator = Ledger.open(tmp_path), Obfuscator(mechanism("cover:k=8", pool=demo))
    ledger.charge(Entry.of(next(obfuscator.obfuscate([QUERY])), obfuscator, "a stranger"))
    with pytest.raises(OtherCompanyError):
        ledger.charge(Entry.of(next(obfuscator.obfuscate([QUERY])), obfuscator, "a stranger"))


def charge_as_ledgers_did(ledger, cover, public):
    """A release in company of which only what stands for the query was noted."""
    secret, setting = ledger.memory_key(), setting_of(cover, cover.set_size, "once")
    values = ((public,), (public, keyed_hash(secret, "setting", setting).hex()))
    noted = tuple(keyed_hash(secret, "company", *each).hex() for each in values)
    ledger.charge(Entry("", (public,), cover.spec, "once", cover.guarantee, 1, "", words=noted))


@pytest.mark.parametrize("written", [str, str.title])
def test_a_ledger_that_noted_only_what_stands_for_a_query_still_refuses(
    demo, light, small_space, tmp_path, written
):
    engine, ledger = Stranger(), Ledger.open(tmp_path)
    pool = Pool([*map(written, demo.strings)], "light")
    cover, other = (mechanism(f"cover:k={k}", pool=pool) for k in (8, 9))
    charge_as_ledgers_did(ledger, cover, written(MEMBER))
    with pytest.raises(OtherCompanyError):
        PrivateSearch(Obfuscator(other), engine, light, ledger).search(QUERY)
    same = PrivateSearch(Obfuscator(cover), engine, light, ledger)
    assert same.search(QUERY).sent, "the same company"
    for way in ("words", "chorus"):
        with pytest.raises(OtherCompanyError):
            search_in(way, small_space, demo, engine, light, ledger).search(MEMBER)


def test_a_text_for_which_another_string_stands_is_refused(demo, light, tmp_path, monkeypatch):
    """As may happen on another machine, whose encoder rounds otherwise."""
    engine, ledger = Stranger(), Ledger.open(tmp_path)
    cover = mechanism("cover:k=8,p=0.99", pool=demo)
    search = PrivateSearch(Obfuscator(cover), engine, light, ledger)
    heard = search.search(QUERY).sent
    assert {*search.search(QUERY).sent} == {*heard}, "the same string, the same company"
    nearest = Cover.representatives
    monkeypatch.setattr(Cover, "representatives", lambda self, texts: nearest(self, texts) + 1)
    with pytest.raises(OtherCompanyError, match="in company"):
        search.search(QUERY)
    assert {*engine.heard} == {*heard}
    assert search.search("debt advice").sent


def test_company_drawn_by_another_secret_is_another_company(demo, light, tmp_path):
    engine, ledger = Stranger(), Ledger.open(tmp_path)
    cover = mechanism("cover:k=8", pool=demo)
    search = PrivateSearch(Obfuscator(cover), engine, light, ledger)
    heard = search.search(QUERY).sent
    (other,) = Obfuscator(cover, memory_key=b"another secret").obfuscate([QUERY])
    with pytest.raises(OtherCompanyError):
        search.answer(other)
    assert {*engine.heard} == {*heard}


@pytest.mark.parametrize("way", WAYS)
def test_what_was_only_looked_at_may_still_leave_in_any_way(
    demo, light, small_space, tmp_path, way
):
    engine, ledger = Stranger(), Ledger.open(tmp_path)
    cover, other = (
        search_in(name, small_space, demo, engine, light, ledger) for name in ("cover", way)
    )
    looked_at = cover.count(QUERY)
    sent = {*other.search(QUERY).sent}
    if way == "cover":
        assert {*cover.send(looked_at).sent} == sent
        return
    with pytest.raises(OtherCompanyError, match="record 2 of the ledger"):
        cover.send(looked_at)
    assert {*engine.heard} == sent
    ledger.check()


def test_what_was_looked_at_and_sent_has_left(demo, light, small_space, tmp_path):
    engine, ledger = Stranger(), Ledger.open(tmp_path)
    cover = search_in("cover", small_space, demo, engine, light, ledger)
    looked_at = cover.count(QUERY)
    assert not engine.heard
    sent = {*cover.send(looked_at).sent}
    with pytest.raises(OtherCompanyError, match="record 1 of the ledger"):
        search_in("words", small_space, demo, engine, light, ledger).search(QUERY)
    assert {*cover.send(looked_at).sent} == {*engine.heard} == sent
    assert [record.number for record in ledger.entries()] == [1], "counted when it was looked at"


def test_that_something_left_is_a_record_and_no_release(demo, light, small_space, tmp_path):
    """Without a record an older ledger would not be noticed; shown it would be another search."""
    ledger = Ledger.open(tmp_path)
    cover = search_in("cover", small_space, demo, Stranger(), light, ledger)
    looked_at = cover.count(QUERY)
    before = ledger.spent(), ledger.spent(QUERY), ledger.entries(), ledger.entries(text=QUERY)
    assert ledger.check() == 1
    for _ in range(2):  # The second time it is known already.
        cover.send(looked_at)
        assert ledger.check() == 2
        after = ledger.spent(), ledger.spent(QUERY), ledger.entries(), ledger.entries(text=QUERY)
        assert after == before
    assert cover.search(QUERY).recalled
    assert ledger.check() == 3
    assert [record.number for record in ledger.entries()] == [3, 1]
    assert ledger.spent()[0].records == 2


def test_the_record_that_is_named_counted_the_query_itself(tmp_path):
    """And not another text, which shares its words."""
    ledger = Ledger.open(tmp_path)
    promise, words = Guarantee("metric", 1.0, "euclidean"), ("3f", "a0")
    for text in (MEMBER, QUERY):
        by_words = Entry(text, ("a",), "cmp", "once", promise, 1, "", words=words, elsewhere=True)
        ledger.charge(by_words)
    with pytest.raises(OtherCompanyError, match="record 2 of the ledger"):
        ledger.charge(replace(in_company(QUERY), representative="divorce lawyer"))


def test_an_older_ledger_put_back_after_something_left_is_noticed(
    demo, light, small_space, tmp_path
):
    """Else the query would leave in another company."""
    engine, ledger = Stranger(), Ledger.open(tmp_path / "ledger")
    cover = search_in("cover", small_space, demo, engine, light, ledger)
    looked_at = cover.count(QUERY)
    copy = shutil.copytree(ledger.folder, tmp_path / "copy")
    heard = {*cover.send(looked_at).sent}
    shutil.rmtree(ledger.folder)
    shutil.copytree(copy, ledger.folder)
    other = PrivateSearch(Obfuscator(mechanism("cover:k=9", pool=demo)), engine, light, ledger)
    for search in (cover, other):
        with pytest.raises(OlderLedgerError, match="1 records, and 2"):
            search.search(QUERY)
    assert {*engine.heard} == heard


class Stopped(Exception):
    """Somebody presses Stop."""


@pytest.mark.parametrize("step", ["obfuscating", "counting", "sending"])
def test_what_was_stopped_before_it_left_may_leave_in_any_way(
    demo, light, small_space, tmp_path, step
):
    engine, ledger = Stranger(), Ledger.open(tmp_path)

    def stop(told):
        if told.name == step:
            raise Stopped

    cover = search_in("cover", small_space, demo, engine, light, ledger)
    with pytest.raises(Stopped):
        cover.search(QUERY, on_step=stop)
    assert not engine.heard
    assert search_in("words", small_space, demo, engine, light, ledger).search(QUERY).sent


def test_a_way_is_noted_before_the_first_query_leaves(demo, light, small_space, tmp_path):
    """And holds even if the process ends there."""
    engine, ledger = Stranger(), Ledger.open(tmp_path)
    cover = search_in("cover", small_space, demo, engine, light, ledger)
    words = search_in("words", small_space, demo, Stranger(), light, ledger)

    def answer(queries, depth):
        with pytest.raises(OtherCompanyError):
            words.search(QUERY)
        raise Stopped

    engine.search = answer
    with pytest.raises(SottovoceError, match="Stopped"):
        cover.search(QUERY)
    with pytest.raises(OtherCompanyError):
        words.search(QUERY)


def test_what_sends_nothing_has_not_left(demo, light, small_space, tmp_path):
    ledger, query = Ledger.open(tmp_path), "???"
    dropping = Obfuscator(
        mechanism("cmp", space=small_space, epsilon=3.0), pipeline=TextPipeline(punctuation="drop")
    )
    by_words = PrivateSearch(dropping, Stranger(), light, ledger)
    assert by_words.search(query).sent == ()
    assert search_in("cover", small_space, demo, Stranger(), light, ledger).search(query).sent


def test_of_companies_sent_at_once_one_leaves(demo, light, tmp_path):
    """All were counted while none had left."""
    engine, ledger, sizes = Stranger(), Ledger.open(tmp_path), (5, 6, 7, 8)
    searches = [
        PrivateSearch(
            Obfuscator(mechanism(f"cover:k={k},p=0.99", pool=demo)), engine, light, ledger
        )
        for k in sizes
    ]
    pairs = [(search, search.count(QUERY)) for search in searches]
    together, sent = threading.Barrier(len(sizes)), []

    def send(search, release):
        together.wait()
        try:
            sent.append(search.send(release).sent)
        except OtherCompanyError:
            sent.append(None)

    threads = [threading.Thread(target=send, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (left,) = filter(None, sent)
    assert len(sent) == len(sizes)
    assert {*left} == {*engine.heard}
    assert ledger.check() == len(sizes) + 1


def test_what_the_ledger_forgot_or_never_had_is_not_sent(demo, light, small_space, tmp_path):
    engine, ledger = Stranger(), Ledger.open(tmp_path)
    cover = search_in("cover", small_space, demo, engine, light, ledger)
    looked_at = cover.count(QUERY)
    ledger.reset()
    for counted in range(2):
        with pytest.raises(LedgerError, match="draw the variants anew"):
            cover.send(looked_at)
        cover.search("debt advice" if not counted else "eczema")
    words = search_in("words", small_space, demo, engine, light, ledger)
    with pytest.raises(SottovoceError, match="not at hand"):
        replace(words, ledger=None).send(looked_at)
    heard = [*engine.heard]
    ledger.check()
    assert cover.search(QUERY).sent, "it may be asked anew"
    assert len(engine.heard) > len(heard)


@pytest.mark.parametrize("way", WAYS)
def test_what_was_counted_for_one_engine_is_sent_to_no_other(
    demo, light, small_space, tmp_path, way
):
    """Counted for an engine that keeps queries to itself, it would leave unnoted."""
    elsewhere, here, ledger = Stranger(), Stranger(), Ledger.open(tmp_path)
    here.remote = False
    search = search_in(way, small_space, demo, here, light, ledger)
    counted = search.count(QUERY)
    with pytest.raises(SottovoceError, match="counted for another engine"):
        search_in(way, small_space, demo, elsewhere, light, ledger).send(counted)
    assert not elsewhere.heard
    assert search.send(counted).sent


def test_what_was_counted_without_a_ledger_is_not_sent_beside_one(demo, small_space, tmp_path):
    engine, none = Stranger(), load_reranker("none")
    engine.remote = False
    uncounted = search_in("cover", small_space, demo, engine, none, None)
    release = uncounted.count(QUERY)
    with pytest.raises(SottovoceError, match="counted without the ledger"):
        replace(uncounted, ledger=Ledger.open(tmp_path)).send(release)
    assert not engine.heard
