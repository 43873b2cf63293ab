"""cover-subjects: the pool's subjects, the law of two steps, runs of searches, what is promised."""

from __future__ import annotations

import json
import math
import os
import pickle
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from command_line import as_text, run_command
from scipy import stats

from sottovoce import Obfuscator, mechanism
from sottovoce.collections import load_collection
from sottovoce.encoders.base import embeddings_folder
from sottovoce.engines import BM25
from sottovoce.errors import UsageError
from sottovoce.ledger import Ledger
from sottovoce.mechanisms.cover_subjects import CoverSubjects
from sottovoce.pools import Pool, load_pool
from sottovoce.privacy.auditing import audit
from sottovoce.randomness import Draws
from sottovoce.search import PrivateSearch, load_reranker
from sottovoce.search.private_search import SAME_SUBJECTS
from sottovoce.subjects import subjects_of

pytestmark = pytest.mark.usefixtures("home")

LEVEL = 1e-4
KEY = b"a key"


@pytest.fixture(scope="module")
def demo():
    return load_pool("demo", "light")


@pytest.fixture(scope="module")
def few():
    """Nine strings in four subjects of different size and popularity."""
    words = [*["cancer"] * 3, *["debt"] * 2, *["bread"] * 3, "piano"]
    strings = [f"{word} {'abcdefghi'[place]}" for place, word in enumerate(words)]
    pool = Pool(strings, "light", weights=[5, 1, 1, 2, 2, 1, 1, 8, 3])
    pool.subjects = lambda _: (
        np.array([0, 0, 0, 1, 1, 2, 2, 2, 3]),
        np.array([2, 0, 1, 3, 4, 7, 6, 5, 8]),
    )
    return pool


def every_release(cover):
    """All sets of strings of different subjects."""
    rows = combinations(range(len(cover.pool)), cover.k)
    different = np.array([row for row in rows if len({*cover.subject_of[[*row]]}) == cover.k])
    return different[np.isfinite(cover.log_law(different)).any(axis=1)]


# Subjects


def test_subjects_gather_what_is_near():
    rng = np.random.default_rng(1)
    centers = np.eye(8, dtype=np.float32)[:5]
    of = rng.integers(5, size=400)
    rows = centers[of] + rng.normal(0, 0.05, (400, 8)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    subjects = subjects_of(rows, 40)
    assert {*subjects} == {*range(subjects.max() + 1)}
    for subject in range(subjects.max() + 1):
        assert len({*of[subjects == subject]}) == 1
    assert subjects_of(rows, 40).tolist() == subjects.tolist()


def test_neighbours_in_the_demo_share_a_subject_far_more_often_than_strangers(demo):
    subjects, order = demo.subjects(102)
    nearest = demo.best(demo.vectors[:800], 2)[:, 1]
    together = (subjects[nearest] == subjects[:800]).mean()
    apart = (np.bincount(subjects) / len(demo)) ** 2
    assert together > 0.4 > 20 * apart.sum()
    # Strings that follow each other are nearer than any two of a subject.
    assert sorted(order.tolist()) == [*range(len(demo))]
    assert (np.diff(subjects[order]) >= 0).all()
    follows = (demo.vectors[order[1:]] * demo.vectors[order[:-1]]).sum(axis=1)
    mixed = np.random.default_rng(1).permutation(order)
    mixed = mixed[np.argsort(subjects[mixed], kind="stable")]
    any_two = (demo.vectors[mixed[1:]] * demo.vectors[mixed[:-1]]).sum(axis=1)
    assert follows.mean() > 1.5 * any_two.mean()


def test_subjects_are_kept_on_disk_and_damage_is_computed_again(demo):
    before = set(embeddings_folder().glob("*.npy"))
    first = demo.subjects(60)
    (file,) = set(embeddings_folder().glob("*.npy")) - before
    assert np.array_equal(np.load(file), first)
    file.write_bytes(b"nothing")
    assert np.array_equal(demo.subjects(60), first)
    for damaged in (np.stack(first)[:, 1:], np.stack(first).astype(float)):
        np.save(file, damaged)
        kept = demo.subjects(60)
        assert np.array_equal(kept, first)
        assert kept[0].dtype == np.int64


def test_impossible_numbers_of_subjects_are_refused(demo):
    with pytest.raises(UsageError, match="between 1 and as many"):
        subjects_of(demo.vectors[:5], 6)
    for spec in ("cover-subjects:k=20,subjects=20", "cover-subjects:k=3,subjects=9999"):
        with pytest.raises(UsageError, match="change k or subjects"):
            mechanism(spec, pool=demo)


# The law


@pytest.mark.parametrize("decoys", ["uniform", "popular"])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_law_of_two_steps_is_a_law_and_keeps_epsilon_between_subjects(few, k, decoys):
    cover = CoverSubjects(few, k=k, p=0.8, decoys=decoys)
    sets = every_release(cover)
    chances = np.exp(cover.log_law(sets))
    assert chances.sum(axis=0) == pytest.approx(np.ones(9))
    # Strings of a subject as often as its weights say: then every release keeps the bound.
    given_subject = np.array(
        [
            (chances * cover.weights)[:, cover.subject_of == subject].sum(axis=1)
            for subject in range(4)
        ]
    ).T
    ratios = np.log(given_subject)
    widest = (ratios.max(axis=1) - ratios.min(axis=1)).max()
    assert widest == pytest.approx(cover.guarantee.epsilon)
    # Between texts nothing holds: a string of a subject in the set that is not sent is ruled out.
    assert (chances.min(axis=1) == 0).any()


@pytest.mark.parametrize("decoys", ["uniform", "popular"])
def test_draws_follow_the_law(few, decoys):
    cover, draws = CoverSubjects(few, k=2, p=0.8, decoys=decoys), 4_000
    sets = every_release(cover)
    for hidden in (0, 4, 8):
        law = np.exp(cover.log_law(sets, np.array([hidden])))[:, 0]
        rng = np.random.default_rng(hidden)
        drawn = cover.draw(np.full(draws, hidden), Draws([(rng, draws)]))
        counts = Counter(map(tuple, drawn.tolist()))
        assert set(counts) <= {
            tuple(row) for row, chance in zip(sets.tolist(), law, strict=True) if chance
        }
        seen = np.array([counts[tuple(row)] for row in sets.tolist()])
        possible = law > 0
        assert stats.chisquare(seen[possible], law[possible] * draws).pvalue > LEVEL


@pytest.mark.parametrize("decoys", ["uniform", "popular"])
def test_the_posterior_is_that_of_bayes(few, decoys):
    cover = CoverSubjects(few, k=2, p=0.8, decoys=decoys)
    for prior in (np.ones(9), np.arange(1.0, 10)):
        for members in every_release(cover)[::5]:
            joint = np.exp(cover.log_law(members))[0] * prior
            assert cover.posterior(members, prior) == pytest.approx(joint / joint.sum())
    matched = cover.posterior(np.array([0, 3]))
    assert matched[0] == pytest.approx(matched[3]), "members are alike for the matched prior"
    with pytest.raises(UsageError, match="a prior has"):
        cover.posterior(np.array([0, 3]), np.zeros(9))
    with pytest.raises(UsageError, match="a set has 2 different"):
        cover.posterior(np.array([0, 1]))


def test_a_run_on_one_subject_tells_once_what_one_search_tells(few):
    """Two searches on one subject, all pairs of releases: the same epsilon, not twice."""
    cover = CoverSubjects(few, k=2, p=0.8)
    sets = every_release(cover)
    # Given the subjects S of the first, the second has the same: P(Y1, Y2 | c) = P(S | c) ww.
    law = np.exp(cover.log_law(sets))
    company = [frozenset(cover.subject_of[row].tolist()) for row in sets]
    chance_of_set = np.exp(cover.law.log_law(cover.subject_of[sets], np.arange(cover.law.size)))
    run = np.array(
        [
            [
                (law[one] * cover.weights)[cover.subject_of == c].sum()
                * (law[two] * cover.weights)[cover.subject_of == c].sum()
                / chance_of_set[one, c]
                for c in range(4)
            ]
            for one in range(len(sets))
            for two in range(len(sets))
            if company[one] == company[two]
        ]
    )
    assert run.sum(axis=0) == pytest.approx(np.ones(4))
    ratios = np.log(run)
    assert (ratios.max(axis=1) - ratios.min(axis=1)).max() == pytest.approx(cover.law.epsilon)


# Runs of searches


def one_subject(cover, count):
    subject = np.bincount(cover.subject_of).argmax()
    places = np.flatnonzero(cover.subject_of == subject)[:count]
    return [cover.pool.strings[place] for place in places]


def test_company_runs_along(demo):
    cover = mechanism("cover-subjects:k=10,p=0.9", pool=demo)
    run = one_subject(cover, 8)
    results = list(Obfuscator(cover, memory_key=KEY).obfuscate(run))
    places = [[demo.place(variant) for variant in result.variants] for result in results]
    subjects = {tuple(sorted(cover.subject_of[row])) for row in places}
    assert len(subjects) == 1, "the same subjects each time"
    assert len({result.word_hashes for result in results}) == 1, "counted once"
    strings = Counter(string for result in results for string in result.variants)
    assert max(strings.values()) <= 4, "other strings each time"
    again = list(Obfuscator(cover, memory_key=KEY).obfuscate([run[0].upper(), *run[1:]]))
    assert [r.variants for r in again] == [r.variants for r in results]
    other_key = list(Obfuscator(cover, memory_key=b"other").obfuscate(run))
    assert other_key[0].variants != results[0].variants
    own = cover.subject_of[demo.place(run[0])]
    elsewhere = demo.strings[int(np.argmax(cover.subject_of != own))]
    (other,) = Obfuscator(cover, memory_key=KEY).obfuscate([elsewhere])
    assert other.word_hashes != results[0].word_hashes


def test_subjects_in_the_set_do_not_depend_on_which_string_is_meant(demo):
    """Over keys: the company of subjects of two strings of one subject is the same each time."""
    cover = mechanism("cover-subjects:k=5,p=0.7", pool=demo)
    first, second = one_subject(cover, 2)
    own = cover.subject_of[demo.place(first)]
    included = 0
    for number in range(150):
        pair = list(Obfuscator(cover, memory_key=bytes([number])).obfuscate([first, second]))
        sets = [{cover.subject_of[demo.place(v)] for v in result.variants} for result in pair]
        assert sets[0] == sets[1]
        included += own in sets[0]
        assert (first in pair[0].variants) == (own in sets[0])
    assert stats.binomtest(included, 150, 0.7).pvalue > LEVEL


def test_a_search_counts_a_subject_once(demo, tmp_path):
    cover = Obfuscator(mechanism("cover-subjects:k=6", pool=demo))
    engine = BM25(load_collection("demo").documents)
    ledger = Ledger.open(tmp_path)
    search = PrivateSearch(cover, engine=engine, reranker=load_reranker("none"), ledger=ledger)
    one, two = one_subject(cover.mechanism, 2)
    first, second = search.search(one), search.search(two)
    assert first.spent == cover.mechanism.guarantee.epsilon
    assert (second.spent, second.recalled) == (0, True)
    assert SAME_SUBJECTS in second.guarantee.caveats
    assert SAME_SUBJECTS not in first.guarantee.caveats
    (total,) = ledger.spent()
    assert (total.unit, total.nats) == ("between any two subjects", first.spent)


def test_ten_searches_on_a_subject(demo):
    """Whoever counts what persists: sets of their own name the subject, company that stays not."""
    rng = np.random.default_rng(1)
    along = mechanism("cover-subjects:k=10,p=0.99", pool=demo)
    alone = mechanism("cover:k=10,p=0.99", pool=demo)
    sizes = np.bincount(along.subject_of)
    persons = rng.choice(np.flatnonzero(sizes >= 30), 30, replace=False)
    named = {}
    for cover in (along, alone):
        hits = []
        for number, subject in enumerate(persons.tolist()):
            members = np.flatnonzero(along.subject_of == subject)
            run = [demo.strings[place] for place in rng.choice(members, 10, replace=False)]
            results = Obfuscator(cover, memory_key=bytes([number])).obfuscate(run)
            seen = Counter(
                along.subject_of[demo.place(variant)]
                for result in results
                for variant in result.variants
            )
            most = max(seen.values())
            likely = [candidate for candidate, times in seen.items() if times == most]
            hits.append((subject in likely) / len(likely))
        named[cover.name] = np.mean(hits)
    assert named["cover"] > 0.9
    assert named["cover-subjects"] < 0.2


# What is promised, and how it is said


def test_what_is_promised(demo):
    cover = mechanism("cover-subjects:k=10,p=0.9", pool=demo)
    stated = cover.guarantee
    assert (stated.notion, stated.scope) == ("local", "subject")
    assert "between any two subjects" in stated.sentence
    assert "not hidden" in stated.sentence
    assert any("only the subject is hidden" in caveat for caveat in stated.caveats)
    floor = math.log(0.9 * (cover.law.size - 10) / (0.1 * 10))
    assert floor <= stated.epsilon <= floor + math.log(10)
    assert mechanism("cover-subjects:p=1", pool=demo).guarantee.notion == "none"
    (result,) = Obfuscator(cover, rng=1).obfuscate(["treatment for skin cancer"])
    assert f"on 10 of {cover.law.size} subjects" in result.company.sentence
    assert json.loads(json.dumps(result.to_dict()))["company"]["subjects"] == cover.law.size
    assert pickle.loads(pickle.dumps(cover)) == cover
    assert cover.made_with != mechanism("cover", pool=demo).made_with
    assert cover.made_with != mechanism("cover-subjects:subjects=77", pool=demo).made_with


def test_the_audit(demo):
    found = audit(mechanism("cover-subjects:k=5", pool=demo), quick=True, draws=3000, rng=1)
    assert found.verdict == "CONSISTENT"
    sure = mechanism("cover-subjects:k=5,p=1", pool=demo)
    certain = audit(sure, quick=True, draws=3000, rng=1)
    assert not certain.refutes_what_is_stated
    assert "REFUTED" in {claim.verdict for claim in certain.claims}


class Telling(CoverSubjects):
    """Sends another string of the text's own subject than the one that stands for it."""

    def draw(self, representatives, draws):
        others = [
            np.flatnonzero(self.subject_of == self.subject_of[place])[0]
            for place in representatives.tolist()
        ]
        return super().draw(np.array(others), draws)


class AlwaysTheSame(CoverSubjects):
    """Sends no string of decoy subjects but the first."""

    def _string_at(self, subject, at):
        return super()._string_at(subject, 0.0)

    def _guesses(self, members):
        return {"any": 1.0}  # By its law, these sets are impossible.


@pytest.mark.parametrize("kind", [Telling, AlwaysTheSame])
def test_the_audit_catches_broken_ones(demo, kind):
    assert audit(kind(demo, k=5), quick=True, draws=3000, rng=1).refutes_what_is_stated


def test_the_command(home, tmp_path):
    def run(*arguments):
        done = run_command(*arguments, home=tmp_path, columns=200)
        return as_text(done)

    options = ("--cover", "6", "--subjects", "80", "--pool", "demo", "--encoder", "light")
    done = run("search", "treatment for skin cancer", *options, "--rerank", "none", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["mechanism"] == "cover-subjects:k=6,p=0.9,decoys=sensitive,subjects=80"
    assert len(said["sent"]) == 6
    shown = run("search", "treatment for skin cancer", *options, "--rerank", "none")
    assert "on subjects drawn and counted before" in shown.stdout
    alone = run("search", "treatment for skin cancer", "--subjects", "80", "--rerank", "none")
    assert alone.returncode == 2
    assert "go with --cover" in alone.stderr
    assert "skin" not in alone.stdout + alone.stderr
    described = run("mechanisms", "cover-subjects")
    assert "between any two subjects" in " ".join(described.stdout.split())
    assert os.environ["SOTTOVOCE_HOME"] == str(home)


def test_what_attackers_read_off_members_is_the_posterior(demo):
    subjects = mechanism("cover-subjects:k=5,p=0.8,subjects=40", pool=demo)
    texts = demo.strings[10:30]
    for members in subjects.release(texts, rng=3):
        inside, _ = subjects.log_odds(members)
        prior = subjects.law.matched_prior[subjects.subject_of] * subjects.weights
        exact = subjects.posterior(members, prior)[members]
        by_odds = np.exp(inside + np.log(prior[members]))
        np.testing.assert_allclose(by_odds / by_odds.sum(), exact / exact.sum(), rtol=1e-9)
