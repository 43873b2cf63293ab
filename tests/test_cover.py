"""cover: representatives, sets, groups, decoys, what is promised, and its audit."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from cover_cases import LEVEL, MEMBER, QUERY, circle
from scipy import stats

from sottovoce import Obfuscator, mechanism
from sottovoce.encoders.base import embeddings_folder
from sottovoce.errors import UsageError
from sottovoce.mechanisms.company import MATCHED, SENSITIVE, UNIFORM
from sottovoce.mechanisms.cover import Cover
from sottovoce.obfuscation.obfuscator import AFRESH
from sottovoce.pools import Pool, load_pool
from sottovoce.privacy.auditing import audit
from sottovoce.randomness import Draws
from sottovoce.sensitive import sensitive_shares, sensitivity

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture(scope="module")
def demo():
    return load_pool("demo", "light")


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


def test_sensitive_decoys_of_vectors_that_are_long():
    """Their odds lie so far apart that all but the first would count for nothing."""
    odds = np.array([2000.0, 100.0, 90.0, 80.0, 70.0, 60.0, 50.0, 40.0, 30.0, 20.0])
    shares = sensitive_shares(odds)
    assert shares.sum() == pytest.approx(1)
    assert shares[0] == shares[1], "the first fifth counts alike"
    assert shares[2] / shares[1] == pytest.approx(np.exp(90 - np.quantile(odds, 0.8)))


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
