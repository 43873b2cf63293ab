"""cover: representatives, sets, groups, what is promised, and that only public strings leave."""

from __future__ import annotations

import hashlib
import json
import math
import pickle
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest
from command_line import as_text, run_command
from scipy import stats
from servers import HangUpError, reply, web

from sottovoce import Obfuscator, mechanism
from sottovoce.collections import load_collection
from sottovoce.encoders.base import embeddings_folder
from sottovoce.engines import BM25
from sottovoce.engines.json_http import JsonHttp
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.ledger import BudgetError, Entry, Ledger, OtherCompanyError
from sottovoce.mechanisms.company import MATCHED, SENSITIVE, UNIFORM
from sottovoce.mechanisms.cover import Cover
from sottovoce.obfuscation import Chorus
from sottovoce.obfuscation.memory import keyed_hash, setting_of
from sottovoce.obfuscation.obfuscator import AFRESH
from sottovoce.pools import Pool, load_pool
from sottovoce.privacy.auditing import audit
from sottovoce.randomness import Draws
from sottovoce.search import PrivateSearch, load_reranker
from sottovoce.sensitive import sensitivity

pytestmark = pytest.mark.usefixtures("home")

LEVEL = 1e-4
QUERY = "treatment for skin cancer"
MEMBER = "melanoma skin cancer treatment options"
"""A query of the demo's log, and the nearest one there to ``QUERY``."""


class Table:
    """An encoder that looks vectors up: texts are numbers of rows; any other is the first axis."""

    name = "table"

    def __init__(self, rows):
        self.rows = np.asarray(rows, dtype=np.float32)
        self.dimension = self.rows.shape[1]

    @property
    def fingerprint(self):
        return hashlib.sha256(self.rows.tobytes()).hexdigest()

    def encode(self, texts):
        axis = np.eye(self.dimension, dtype=np.float32)[0]
        return np.array([self.rows[int(t)] if t.isdigit() else axis for t in texts])


@pytest.fixture(scope="module")
def demo():
    return load_pool("demo", "light")


@pytest.fixture(scope="module")
def light():
    return load_reranker("light")


@pytest.fixture(scope="module")
def engine():
    return BM25(load_collection("demo").documents)


def circle(degrees):
    angles = np.radians(degrees)
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return Pool([str(row) for row in range(len(rows))], Table(rows))


# From a text to its representative


def test_a_text_of_the_pool_represents_itself_however_it_is_written(demo):
    cover = mechanism("cover", pool=demo)
    place = demo.strings.index(MEMBER)
    written = [MEMBER, MEMBER.upper(), f"  {MEMBER.replace(' ', chr(0xA0))}\u200b "]
    assert cover.representatives(written).tolist() == [place] * 3


def test_any_other_text_is_represented_by_the_nearest_the_first_of_equals():
    pool = circle([90, 30, 30, 200])
    cover = mechanism("cover:k=2", pool=pool)
    # Not a member: its vector is the first axis, to which 30 degrees are nearest, twice.
    assert cover.representatives(["anything else"]).tolist() == [1]
    assert cover.representatives(["2", "3"]).tolist() == [2, 3]


def test_the_nearest_by_the_encoder_of_a_real_pool(demo):
    cover = mechanism("cover", pool=demo)
    texts = [QUERY, "divorce lawyer near me cheap", "xqzzy", ""]
    products = demo.encoder.encode(texts) @ demo.vectors.T
    assert cover.representatives(texts).tolist() == products.argmax(axis=1).tolist()
    assert demo.strings[cover.representatives([QUERY])[0]] == MEMBER


def test_strings_that_are_the_same_text_are_one():
    """A string that no text could be represented by would be known for a decoy."""
    pool = Pool(["Skin cancer", "skin  cancer", "debt", "SKIN CANCER\u200b"], "light")
    assert pool.strings == ("Skin cancer", "debt")
    assert pool.popularity.tolist() == [3, 1]
    assert pool.place("sKIN cancer") == 0
    assert pool.place("skin") is None


# Sets


def test_sets_of_the_demo_log_follow_the_law(demo):
    """Chi-square over all 5,141 strings: how often each is in a set that hides another."""
    cover, draws = mechanism("cover", pool=demo), 20_000
    hidden = demo.strings.index(MEMBER)
    rng = np.random.default_rng(1)
    sets = cover.draw(np.full(draws, hidden), Draws([(rng, draws)]))
    counts = np.bincount(sets.ravel(), minlength=len(demo))
    assert stats.binomtest(int(counts[hidden]), draws, 0.9).pvalue > LEVEL
    others, size = np.delete(counts, hidden), len(demo) - 1
    decoys = 20 * draws - counts[hidden]
    # k draws without replacement vary less than independent ones.
    drawn = decoys / draws
    shrunk = (size - drawn) / (size - 1)
    statistic = ((others - decoys / size) ** 2 / (decoys / size)).sum() / shrunk
    assert stats.chi2(size - 1).sf(statistic) > LEVEL
    assert stats.chi2(size - 1).cdf(statistic) > LEVEL


def test_what_is_released_is_a_set_of_the_pool_in_random_order(demo):
    cover = mechanism("cover:k=6,p=0.9", pool=demo)
    results = list(Obfuscator(cover, rng=3).obfuscate([MEMBER] * 1500))
    places = [r.variants.index(MEMBER) for r in results if MEMBER in r.variants]
    assert stats.binomtest(len(places), 1500, 0.9).pvalue > LEVEL
    assert stats.chisquare(np.bincount(places, minlength=6)).pvalue > LEVEL
    assert {len(set(r.variants)) for r in results} == {6}
    assert all(r.company.drawn == (MEMBER in r.variants) for r in results)
    # Secure draws, which nobody can repeat: other sets each time.
    assert len({r.variants for r in Obfuscator(cover).obfuscate([MEMBER] * 20)}) == 20


def test_a_seed_decides_everything_and_batches_and_workers_nothing(demo):
    texts = [QUERY, MEMBER, "", "debt advice", "xqzzy"] * 5
    cover = mechanism("cover:k=5,m=2", pool=demo)
    runs = [
        [r.variants for r in Obfuscator(cover, rng=7, batch_size=size, workers=w).obfuscate(texts)]
        for size, w in ((1, 1), (4, 2), (100, 1))
    ]
    assert runs[0] == runs[1] == runs[2]
    other = [r.variants for r in Obfuscator(cover, rng=8).obfuscate(texts)]
    assert runs[0] != other


def test_groups_are_a_string_and_its_nearest():
    pool = circle([0, 10, 25, 100, 110, 125, 240, 250, 265])
    cover = mechanism("cover:k=2,m=3", pool=pool)
    assert cover.group(np.array([1])) == [1, 0, 2]
    assert cover.group(np.array([0, 3])) == [0, 1, 2, 3, 4, 5]
    assert cover.group(np.array([0, 1])) == [0, 1, 2]  # each string once
    assert cover.law.size == 9
    assert cover.guarantee.epsilon == pytest.approx(math.log(0.9 * 7 / (0.1 * 2)))
    for result in Obfuscator(cover, rng=1).obfuscate(["4"] * 50):
        assert result.spent == cover.guarantee.epsilon
        assert len({*result.variants}) == len(result.variants) == result.company.queries <= 6
        if result.company.drawn:
            assert {"3", "4", "5"} <= {*result.variants}


def test_a_group_holds_its_own_string_even_among_equals():
    pool = circle([50, 50, 50, 50, 200])
    assert mechanism("cover:k=1,m=2", pool=pool).group(np.array([3])) == [3, 0]


# What is promised


def test_the_guarantee_says_what_it_is_and_what_it_is_not(demo):
    promise = mechanism("cover:k=20,p=0.9", pool=demo).guarantee
    assert (promise.notion, promise.scope) == ("local", "text")
    assert promise.epsilon == pytest.approx(math.log(0.9 * (5141 - 20) / (0.1 * 20)))
    assert "between any two texts" in promise.sentence
    said = " ".join(promise.caveats)
    for uncovered in ("when and how often", "believes beforehand", "the engine answers", "pool"):
        assert uncovered in said
    none = mechanism("cover:p=1", pool=demo).guarantee
    assert (none.notion, none.epsilon) == ("none", None)
    assert any("ruled out with certainty" in caveat for caveat in none.caveats)


def test_any_two_texts_keep_the_bound_on_every_set_of_a_small_pool():
    """Through representatives: texts of the pool, and texts that no pool string equals."""
    pool = circle([0, 40, 100, 160, 220, 300])
    cover = mechanism("cover:k=3,p=0.8", pool=pool)
    sets = np.array(list(combinations(range(6), 3)))
    inputs = cover.representatives(["0", "3", "5", "skin cancer", "debt", ""])
    table = cover.log_law(sets, inputs)
    assert (table.max(axis=1) - table.min(axis=1)).max() <= cover.guarantee.epsilon + 1e-12
    assert np.exp(cover.log_law(sets)).sum(axis=0) == pytest.approx(np.ones(6))


def test_the_company_of_a_query(demo):
    cover = mechanism("cover:k=20", pool=demo)
    (result,) = Obfuscator(cover, rng=1).obfuscate([QUERY])
    company = result.company
    assert (company.queries, company.pool, company.inclusion) == (20, 5141, 0.9)
    assert (company.representative, company.is_text) == (MEMBER, False)
    assert company.epsilon == cover.guarantee.epsilon == result.spent
    members = np.array([demo.strings.index(variant) for variant in result.variants])
    assert company.guesses[UNIFORM] == pytest.approx(cover.posterior(members).max()) == 0.045
    assert "1 in 22" in company.sentence
    assert "may do better" in company.sentence
    assert QUERY not in repr(company) + repr(result)
    assert AFRESH in result.guarantee.caveats
    assert json.loads(json.dumps(result.to_dict()))["company"]["queries"] == 20


@pytest.mark.parametrize("decoys", ["uniform", "sensitive"])
@pytest.mark.parametrize("name", ["cover", "cover-subjects"])
def test_what_is_printed_first_is_the_belief_of_the_attacker_who_is_surest(demo, name, decoys):
    """Also what the attack by sensitive subjects believes, which decoys do not match."""
    cover = mechanism(f"{name}:k=20,p=0.99,decoys={decoys}", pool=demo)
    (result,) = Obfuscator(cover, rng=1).obfuscate([MEMBER])
    company = result.company
    members = np.sort([demo.strings.index(variant) for variant in result.variants])
    believed = np.exp(sensitivity(demo.strings, demo.vectors, demo.encoder))
    surest = cover.posterior(members, believed).max()
    assert surest > 0.3
    assert company.guesses[SENSITIVE] == company.best_guess == pytest.approx(surest)
    assert company.prior == SENSITIVE
    if decoys == "sensitive":
        assert company.guesses[MATCHED] == pytest.approx(cover.posterior(members).max())
        assert company.guesses[MATCHED] < 0.08
    printed = [company.sentence.index(prior) for prior in company.guesses]
    guesses = [*company.guesses.values()]
    assert np.argsort(printed).tolist() == np.argsort(guesses)[::-1].tolist()
    assert "not how often it is right" in company.sentence


def test_a_query_alone_is_counted_as_one(demo):
    (result,) = Obfuscator(mechanism("cover:k=1", pool=demo), rng=1).obfuscate([QUERY])
    assert result.company.sentence.startswith("1 query, drawn from 5,141 public ones, leaves")
    assert "1 in 1" not in result.company.sentence


def test_release_gives_sets_that_the_law_and_the_posterior_take(demo):
    cover = mechanism("cover:k=10", pool=demo)
    sets = cover.release([QUERY, MEMBER], rng=1)
    assert sets.shape == (2, 10)
    assert cover.log_law(sets, np.array([5, 6, 7])).shape == (2, 3)
    prior = np.ones(len(demo))
    prior[demo.strings.index(MEMBER)] = 100
    posterior = cover.posterior(sets[0], prior)
    assert posterior.sum() == pytest.approx(1)
    assert demo.strings.index(MEMBER) in sets[0]
    assert posterior.argmax() == demo.strings.index(MEMBER)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("cover:k=5141", "take a smaller k or a larger pool"),
        ("cover:k=100000", "take a smaller k or a larger pool"),
        ("cover:k=0", "k of at least 1"),
        ("cover:k=50,p=0.001", "p must be between 0.009726"),
        ("cover:p=1.5", "p must be between"),
        ("cover:m=0", "a group has between 1 and all 5141"),
        ("cover:decoys=popular", "the pool states no popularity"),
    ],
)
def test_impossible_parameters_are_refused(demo, spec, says):
    with pytest.raises(UsageError, match=says):
        mechanism(spec, pool=demo)


def test_a_set_that_says_nothing_is_refused():
    with pytest.raises(UsageError, match="take a larger p"):
        mechanism("cover:k=2,p=0.5", pool=circle([0, 90, 180, 270]))


def test_the_mechanism_decides_how_many_variants_there_are(demo):
    cover = mechanism("cover:k=4,m=2", pool=demo)
    assert Obfuscator(cover).n == Obfuscator(cover, n=8).n == 8
    assert Obfuscator(cover, release="independent").release == "once"
    with pytest.raises(UsageError, match="releases sets of 8"):
        Obfuscator(cover, n=5)


def test_its_spec_says_k_and_p_and_it_travels(demo):
    cover = mechanism("cover", pool=demo)
    assert cover.spec == "cover:k=20,p=0.9"
    copy = pickle.loads(pickle.dumps(cover))
    assert copy == cover
    assert copy.release([QUERY], rng=1).tolist() == cover.release([QUERY], rng=1).tolist()


# Popularity


def test_decoys_by_popularity_match_what_the_pool_states(demo):
    counts = np.random.default_rng(1).zipf(1.6, len(demo)).clip(max=500)
    lines = [line for line, count in zip(demo.strings, counts, strict=True) for _ in range(count)]
    pool = Pool(lines, "light")
    assert pool.popularity.tolist() == counts.tolist()
    popular = mechanism("cover:decoys=popular", pool=pool)
    assert popular.guarantee.notion == "local"
    assert popular.guarantee.epsilon > mechanism("cover", pool=pool).guarantee.epsilon
    sets = popular.release([QUERY] * 300, rng=1)
    uniform = mechanism("cover", pool=pool).release([QUERY] * 300, rng=1)
    assert counts[sets].mean() > 3 * counts[uniform].mean()
    # For whoever believes the popularity, no member stands out; without matching, one does.
    best = [popular.posterior(row, pool.popularity).max() for row in sets]
    naive = [mechanism("cover", pool=pool).posterior(row, pool.popularity).max() for row in uniform]
    assert max(best) < 0.075
    assert np.mean(naive) > 0.2
    assert popular != mechanism(
        "cover:decoys=popular", pool=Pool(lines[: -len(lines) // 2], "light")
    )


def test_sensitive_decoys_are_flat_for_whoever_expects_something_sensitive(demo):
    cover = mechanism("cover:k=10,p=0.8,decoys=sensitive", pool=demo)
    uniform = mechanism("cover:k=10,p=0.8", pool=demo)
    odds = sensitivity(demo.strings, demo.vectors, demo.encoder)
    hidden = np.argsort(odds)[-200:]
    texts = [demo.strings[place] for place in hidden[::10].tolist()]
    sets = cover.release(texts, rng=1)
    for members in sets:
        matched = cover.posterior(members, cover.popularity)[members]
        assert matched == pytest.approx(matched[0])
        assert matched[0] <= 0.1
    # The same belief picks out the sensitive one among uniform decoys, a steeper one even more.
    for belief, least in ((cover.popularity, 0.12), (np.exp(odds), 0.3)):
        picked = [
            uniform.posterior(members, belief)[members].max()
            for members in uniform.release(texts, rng=1)
        ]
        assert np.mean(picked) > least
    assert 0 < cover.guarantee.epsilon <= uniform.guarantee.epsilon + np.log(10) + 1e-9


def test_how_sensitive_strings_are_is_kept_on_disk_and_damage_is_computed_again(home, demo):
    strings = demo.strings[:300]

    def odds():
        return Pool(strings, "light").prepare().sensitivity

    computed = sensitivity(strings, Pool(strings, "light").vectors, demo.encoder)
    before = set(embeddings_folder().glob("*.npy"))
    assert np.array_equal(odds(), computed)
    (file,) = set(embeddings_folder().glob("*.npy")) - before
    np.save(file, computed + 1)
    assert np.array_equal(odds(), computed + 1), "it is read"
    for damaged in (computed[1:], computed.astype(np.float32)):
        np.save(file, damaged)
        assert np.array_equal(odds(), computed)
    file.write_bytes(b"nothing")
    assert np.array_equal(odds(), computed)


# The audit


def test_the_audit_finds_it_consistent_and_refutes_it_without_chance(demo):
    sound = audit(mechanism("cover", pool=demo), quick=True, rng=1)
    assert [(claim.label, claim.verdict) for claim in sound.claims] == [("stated", "CONSISTENT")]
    assert sound.verdict == "CONSISTENT"
    certain = audit(mechanism("cover:p=1", pool=demo), quick=True, rng=1)
    assert {claim.label: claim.verdict for claim in certain.claims} == {
        "stated": "NO CLAIM",
        "published": "REFUTED",
    }
    (finding,) = (f for f in certain.findings if f.check == "exact, all pairs")
    assert finding.witness.log_ratio == math.inf
    assert finding.witness.probabilities[1] == 0


def test_the_audit_passes_popular_decoys():
    pool = Pool([str(row) for row in range(300)], "light", weights=range(1, 301))
    found = audit(mechanism("cover:decoys=popular,k=10", pool=pool), quick=True, rng=1)
    assert found.verdict == "CONSISTENT"


class AlwaysIn(Cover):
    """The true string always goes along, whatever p says."""

    def draw(self, representatives, draws):
        certain = mechanism(f"cover:k={self.k},p=1", pool=self.pool)
        return certain.draw(representatives, draws)


class ShortList(Cover):
    """Decoys come from the first strings alone."""

    def draw(self, representatives, draws):
        sets = super().draw(representatives, draws)
        for row, hidden in zip(sets, representatives, strict=True):
            kept = [hidden] if hidden in row else []
            row[:] = np.sort([*kept, *(p for p in range(50) if p != hidden)][: len(row)])
        return sets


class OneCompany(Cover):
    """All texts of a batch share their decoys."""

    def draw(self, representatives, draws):
        sets = super().draw(representatives, draws)
        sets[:] = sets[:1]
        return sets


class TooMuchSaid(Cover):
    """Half of the epsilon that holds."""

    @property
    def guarantee(self):
        return replace(super().guarantee, epsilon=self.law.epsilon / 2)


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (AlwaysIn, "draws follow the law"),
        (ShortList, "draws follow the law"),
        (OneCompany, "batch independence"),
        (TooMuchSaid, "exact, all pairs"),
    ],
)
def test_the_audit_catches_broken_covers(demo, broken, check):
    found = audit(broken(demo), quick=True, rng=1)
    assert found.refutes_what_is_stated
    assert {f.verdict for f in found.findings if f.check == check} == {"REFUTED"}


def test_the_audit_catches_an_order_that_gives_the_string_away(demo, monkeypatch):
    monkeypatch.setattr(Draws, "orders", lambda self, length: np.arange(length)[None])
    cover = mechanism("cover", pool=Pool([str(row) for row in range(200)], "light"))
    found = audit(cover, quick=True, rng=1)
    assert {f.verdict for f in found.findings if f.check == "order"} == {"REFUTED"}


# Sticky company


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
    with pytest.raises(OtherCompanyError, match="record 3 of the ledger"):
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


# Searching: only public strings leave


class Stranger:
    """A remote engine that keeps what it hears."""

    name, remote, pause, most_queries = "a stranger", True, 0.0, None

    def __init__(self):
        self.heard = []

    def search(self, queries, depth):
        self.heard += queries
        return [[] for _ in queries]


def test_a_search_sends_strings_of_the_pool_and_finds_what_was_meant(demo, engine, light, tmp_path):
    ledger = Ledger.open(tmp_path)
    search = PrivateSearch(
        Obfuscator(mechanism("cover:k=20,p=0.999", pool=demo)), engine, light, ledger, depth=10
    )
    first = search.search(QUERY)
    assert len(first.sent) == 20
    assert {*first.sent} <= {*demo.strings}
    assert not first.query_sent
    assert "melanoma" in first.hits[0].title.lower()
    assert first.company.sentence.startswith("20 queries, drawn from 5,141 public ones")
    again = search.search(f" {QUERY.upper()}")
    near = search.search("skin cancer melanoma treatment options")
    assert {*again.sent} == {*first.sent} == {*near.sent}
    assert (first.recalled, again.recalled, near.recalled) == (False, True, True)
    assert (again.spent, near.spent) == (0, 0)
    (spent,) = ledger.spent()
    assert (spent.nats, spent.unit) == (first.spent, "between any two texts")
    other = search.search("debt advice")
    (spent,) = ledger.spent()
    assert spent.nats == pytest.approx(2 * first.spent)
    assert not other.recalled


def test_a_query_that_is_public_is_sent_only_as_drawn_and_the_result_says_so(demo, engine, light):
    seen = set()
    for seed in range(30):
        chosen = Obfuscator(mechanism("cover:k=5,p=0.5", pool=demo), rng=seed)
        result = PrivateSearch(chosen, engine, light).search(MEMBER.upper())
        assert result.query_sent == (MEMBER in result.sent) == result.company.query_sent
        assert result.company.is_text
        assert MEMBER.upper() not in result.sent
        seen.add(result.query_sent)
        sentence = result.company.whether_sent
        assert ("was sent as one of them" in sentence) == result.query_sent
        assert ("left out by chance" in sentence) == (not result.query_sent)
    assert seen == {True, False}


def test_nothing_leaves_in_fresh_company(demo, light, tmp_path):
    engine, cover = Stranger(), Obfuscator(mechanism("cover", pool=demo))
    with pytest.raises(UsageError, match="--fresh"):
        PrivateSearch(cover, engine, light, Ledger.open(tmp_path), fresh=True)
    with pytest.raises(UsageError, match="needs the ledger"):
        PrivateSearch(cover, engine, light)
    assert not engine.heard


def test_nothing_leaves_if_the_engine_takes_fewer_queries(demo, light, tmp_path):
    engine, ledger = Stranger(), Ledger.open(tmp_path)
    engine.most_queries = 10
    search = PrivateSearch(Obfuscator(mechanism("cover", pool=demo)), engine, light, ledger)
    with pytest.raises(UsageError, match="--cover 10"):
        search.search(QUERY)
    assert not engine.heard
    assert not ledger.entries()


def test_nothing_leaves_when_the_budget_is_spent_or_nothing_bounds_the_cost(demo, light, tmp_path):
    engine, ledger = Stranger(), Ledger.open(tmp_path)
    ledger.set_budget(None, 10)
    search = PrivateSearch(Obfuscator(mechanism("cover", pool=demo)), engine, light, ledger)
    search.search(QUERY)
    search.search(QUERY)  # the same company again costs nothing
    engine.heard.clear()
    with pytest.raises(BudgetError, match="between any two texts"):
        search.search("debt advice")
    certain = Obfuscator(mechanism("cover:p=1", pool=demo))
    with pytest.raises(BudgetError, match="nothing bounds"):
        PrivateSearch(certain, engine, light, ledger).search(QUERY)
    assert not engine.heard


def test_nothing_leaves_if_the_ledger_is_damaged(demo, light, tmp_path):
    engine, ledger = Stranger(), Ledger.open(tmp_path)
    search = PrivateSearch(Obfuscator(mechanism("cover", pool=demo)), engine, light, ledger)
    search.search(QUERY)
    engine.heard.clear()
    for file in tmp_path.iterdir():
        file.write_bytes(b"not a database at all" * 100)
    with pytest.raises(SottovoceError) as refused:
        search.search(QUERY)
    assert "skin" not in str(refused.value)
    assert not engine.heard


def test_nothing_leaves_if_the_encoder_fails(light, tmp_path):
    class Broken(Table):
        def encode(self, texts):
            if any(not text.isdigit() for text in texts):
                raise RuntimeError(f"cannot read {texts}")
            return super().encode(texts)

    rows = np.eye(6)
    pool = Pool([str(row) for row in range(6)], Broken(rows))
    engine = Stranger()
    search = PrivateSearch(
        Obfuscator(mechanism("cover:k=2", pool=pool)), engine, light, Ledger.open(tmp_path)
    )
    with pytest.raises(SottovoceError, match=r"cover failed \(RuntimeError\)") as refused:
        search.search(QUERY)
    assert "skin" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert not engine.heard


def test_an_engine_that_is_gone_after_seven_of_twenty(demo, light, tmp_path):
    """Over a real socket: seven answers, then the connection breaks for good."""
    heard = []

    def answer(request):
        heard.append(request)
        if len(heard) > 7:
            raise HangUpError
        return reply({"results": [{"id": "a", "title": "Melanoma", "text": "skin cancer"}]})

    ledger = Ledger.open(tmp_path)
    cover = Obfuscator(mechanism("cover:k=20", pool=demo))
    with web(answer) as server:
        description = {
            "name": "test",
            "url": f"{server.url}/find?q={{query}}",
            "results": "results",
            "id": "id",
            "title": "title",
            "pause": 0.001,
            "retries": 0,
        }
        search = PrivateSearch(cover, JsonHttp(description), light, ledger)
        result = search.search(QUERY)
        sent = {*result.sent}
        assert "only 7 of 20 queries were answered" in result.problem
        assert len(sent) == 8  # the last may have been seen
        assert sent <= {*demo.strings}
        assert result.company.queries == 8
        assert result.company.sent == (MEMBER in sent)
        assert all("treatment+for" not in request.target for request in heard)
        heard.clear()
        again = search.search(QUERY)
    # Another try sends queries of the very same set, and costs nothing.
    assert again.spent == 0
    (whole,) = replace(cover, memory_key=ledger.memory_key()).obfuscate([QUERY])
    assert sent | {*again.sent} <= {*whole.variants}
    (spent,) = ledger.spent()
    assert spent.nats == result.spent


# The command


@pytest.fixture
def run(home, tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    return lambda *arguments: as_text(run_command(*arguments, home=folder, columns=100))


COVER = ("--cover", "20", "--pool", "demo", "--encoder", "light", "--rerank", "light")


def test_the_command_says_in_what_company_a_query_left(run, demo):
    done = run("search", QUERY, *COVER)
    assert done.returncode == 0, done.stderr
    for part in ("20 queries to bm25", "Company", "1 in 22", "Your query", "nats between any two"):
        assert part in " ".join(done.stdout.split())
    said = json.loads(run("search", QUERY, *COVER, "--json").stdout)
    assert {*said["sent"]} <= {*demo.strings}
    assert said["recalled"]
    assert said["mechanism"] == "cover:k=20,p=0.9,decoys=sensitive"
    assert said["company"]["guesses"][MATCHED] == pytest.approx(0.045, abs=1e-5)
    grouped = run(
        *("search", QUERY, "--json", "--cover", "5", "--group", "3", "--inclusion", "0.8"),
        *COVER[2:],
    )
    said = json.loads(grouped.stdout)
    assert said["mechanism"] == "cover:k=5,p=0.8,m=3,decoys=sensitive"
    assert 5 <= len(said["sent"]) <= 15


def test_decoys_are_as_the_pool_states_or_else_sensitive(run, tmp_path):
    """What is not said is decided; a mechanism by its spec, and --decoys, are taken as they are."""
    lines = [f"public query number {number}" for number in range(40)]
    plain, counted = tmp_path / "plain.txt", tmp_path / "counted.txt"
    plain.write_text("\n".join(lines))
    counted.write_text("\n".join(line for at, line in enumerate(lines) for _ in range(1 + at % 3)))

    def sent_by(pool, *options):
        asked = ("search", QUERY, "--json", "--pool", str(pool), "--encoder", "light")
        done = run(*asked, "--rerank", "none", *options)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["mechanism"]

    assert sent_by(plain, "--cover", "4") == "cover:k=4,p=0.9,decoys=sensitive"
    assert sent_by(counted, "--cover", "4") == "cover:k=4,p=0.9,decoys=popular"
    assert sent_by(counted, "--one-in", "4") == "cover:k=4,p=0.9,decoys=popular"
    assert sent_by(counted, "--cover", "4", "--decoys", "uniform") == "cover:k=4,p=0.9"
    assert sent_by(counted, "-m", "cover:k=4") == "cover:k=4,p=0.9"
    subjects = sent_by(plain, "--cover", "4", "--subjects", "8")
    assert subjects == "cover-subjects:k=4,p=0.9,decoys=sensitive,subjects=8"


def test_a_cost_without_a_bound_has_no_unit(run):
    certain = ("search", QUERY, "-m", "cover:k=5,p=1", *COVER[2:])
    assert "Cost nothing bounds it" in " ".join(run(*certain).stdout.split())
    again = " ".join(run(*certain).stdout.split())
    assert "Cost 0 nats, cover:k=5,p=1, once; on this query so far without bound." in again


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--cover", "20"), "--pool"),
        (("--cover", "9999", "--pool", "demo", "--encoder", "light"), "take a smaller k"),
        (("--cover", "20", "--pool", "no-such-file.txt"), "there is no such pool"),
        (("--cover", "20", "--pool", "demo", "-n", "5"), "-n does nothing with --cover"),
        (("--cover", "20", "--pool", "demo", "-e", "5"), "-e does nothing with --cover"),
        (("--cover", "20", "--pool", "demo", "-m", "tem"), "-m does nothing with --cover"),
        (("--inclusion", "0.5"), "go with --cover"),
        (("--cover", "20", "--pool", "demo", "--encoder", "light", "--fresh"), "leave --fresh out"),
        (("--cover", "1", "--pool", "demo"), "one in 1 hides nothing"),
        (("--cover", "20", "--pool", "demo", "--inclusion", "1"), "an inclusion below 1"),
        (("--cover", "20", "--pool", "demo", "--encoder", "light", "--shuffle"), "--shuffle"),
    ],
)
def test_wrong_use_says_what_to_do_and_sends_nothing(run, arguments, says):
    done = run("search", QUERY, "--rerank", "none", *arguments)
    assert done.returncode == 2
    assert says in " ".join(done.stderr.split())
    assert "skin" not in done.stdout + done.stderr


def test_obfuscate_prints_a_set(run, demo):
    done = run("obfuscate", QUERY, "-m", "cover:k=7", "--pool", "demo", "--encoder", "light")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len({*lines}) == 7
    assert {*lines} <= {*demo.strings}
    assert "fewer variants" not in done.stderr


def test_a_data_set_does_not_take_sets(demo):
    from sottovoce.sanitizing.sanitizer import Sanitizer

    with pytest.raises(UsageError, match="no mechanism that releases sets"):
        Sanitizer(Obfuscator(mechanism("cover", pool=demo)), ("text",))


def test_a_damaged_ledger_stops_the_command(run, tmp_path):
    assert run("search", QUERY, *COVER).returncode == 0
    files = [path for path in (tmp_path / "home" / "ledger").rglob("*") if path.is_file()]
    assert files
    for path in files:
        path.write_bytes(b"nothing" * 50)
    done = run("search", QUERY, *COVER)
    assert done.returncode != 0
    assert "ledger" in done.stderr
    assert "Sent" not in done.stdout
