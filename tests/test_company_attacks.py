"""Attacks on company: each breaks decoys that lack something, and cover where it says so."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command_line import as_text, run_command
from decoy_sources import (
    K,
    harmless,
    near_subjects,
    persons_on_subjects,
    random_words,
    released,
    with_decoys,
)
from scipy import stats

from sottovoce import mechanism
from sottovoce.collections import load_judged_queries
from sottovoce.encoders.light import LightEncoder
from sottovoce.errors import UsageError
from sottovoce.likeness import HeldOutLikeness, fit_held_out, fit_likeness, fit_to_strings
from sottovoce.pools import Pool, load_pool
from sottovoce.privacy import Knowledge, QueryLog, Released, attack, attack_company, attack_sets
from sottovoce.privacy.attacks.company.lists import (
    Listed,
    by_nearness_to_pool,
    not_in,
    weights_by_looks,
)
from sottovoce.privacy.attacks.company.nearness import AMONG, Learned, Neighbours
from sottovoce.privacy.attacks.company.public_texts import PublicTexts, queries_of
from sottovoce.privacy.attacks.company.run import strings_near
from sottovoce.privacy.attacks.company.sets import SeenSet, seen_sets, sets_of_cover

pytestmark = pytest.mark.usefixtures("home")

LEVEL = 1e-4
SUBJECTS = list(load_judged_queries("demo").values())
"""What people would rather not be known for: 65 queries."""


@pytest.fixture(scope="module")
def demo():
    return load_pool("demo", "light")


@pytest.fixture(scope="module")
def uniform(demo):
    return mechanism(f"cover:k={K}", pool=demo)


@pytest.fixture(scope="module")
def kind(demo):
    """Queries of one kind: some to attack, some that make decoys popular, some to learn from."""
    strings = near_subjects(demo, SUBJECTS, 15)
    order = np.random.default_rng(0).permutation(len(strings))
    return [[strings[at] for at in part] for part in np.array_split(order, 3)]


@pytest.fixture(scope="module")
def matched(demo, kind):
    """Decoys by how much strings look like the kind."""
    ratios = fit_likeness(kind[1], demo).log_ratio(demo.strings, demo.vectors)
    pool = Pool(demo.strings, "light", weights=np.exp(ratios))
    return mechanism(f"cover:k={K},decoys=popular", pool=pool)


def above_chance(share, chance):
    """Whether so many hits are beyond chance."""
    return stats.binomtest(share.right, share.total, chance, "greater").pvalue < LEVEL


def others(demo):
    return [string for string in demo.strings if string not in SUBJECTS]


# Decoys that lack something


def test_random_words_do_not_look_like_queries(demo):
    rng = np.random.default_rng(1)
    decoys = random_words(demo, 2000, rng)
    seen = seen_sets(with_decoys(SUBJECTS, decoys, rng), SUBJECTS, demo.encoder)
    known = Knowledge(reference=others(demo))
    report = attack_sets(seen, Pool([*decoys, *others(demo)], "light"), known)
    assert report.chance == pytest.approx(1 / K)
    assert report.naming("classifier").mean > 0.4
    assert report.strongest.mean >= report.naming("classifier").mean
    assert not above_chance(report.naming("law alone").group, 1 / K)


def test_a_short_list_is_subtracted_even_if_it_is_not_known(demo):
    rng = np.random.default_rng(2)
    decoys = others(demo)[:60]
    seen = seen_sets(with_decoys(SUBJECTS, decoys, rng), SUBJECTS, demo.encoder)
    report = attack_sets(seen, demo, Knowledge(decoys=decoys))
    assert report.naming("subtraction").mean == 1
    assert report.naming("recurrence").mean > 0.9
    assert report.naming("subtraction").query.value == 1
    # Nobody can subtract the pool from sets that hold nothing else, nor does a string recur.
    cover = mechanism(f"cover:k={K}", pool=demo)
    ours = attack_company(cover, released(cover, SUBJECTS), SUBJECTS)
    for name in ("subtraction", "recurrence"):
        assert not above_chance(ours.naming(name).group, ours.chance)


def test_decoys_on_harmless_subjects_show_what_is_sensitive(demo, uniform):
    rng = np.random.default_rng(3)
    decoys = harmless(demo, SUBJECTS, 1000)
    seen = seen_sets(with_decoys(SUBJECTS, decoys, rng), SUBJECTS, demo.encoder)
    report = attack_sets(seen, demo)
    assert report.naming("sensitive subjects").mean > 0.6
    ours = attack_company(uniform, released(uniform, SUBJECTS), SUBJECTS)
    assert ours.naming("sensitive subjects").mean < report.naming("sensitive subjects").mean - 0.2


def test_fresh_decoys_name_what_is_asked_again_and_remembered_ones_do_not(demo, uniform):
    persons = persons_on_subjects(demo, SUBJECTS[:60:3], 5, 1, np.random.default_rng(4))
    reports = [
        attack_company(uniform, sets, persons.texts, persons=persons.names)
        for sets in (
            released(uniform, persons.texts),
            released(uniform, persons.texts, key=b"key"),
        )
    ]
    for name in ("repetition", "linkage", "clustering"):
        fresh, sticky = (report.naming(name).mean for report in reports)
        assert fresh > 0.7
        assert sticky <= 0.2


def test_decoys_that_are_drawn_without_regard_to_popularity_show_what_is_popular(demo):
    """Some strings are asked much more often than others, as everybody knows."""
    weights = 1 / np.random.default_rng(7).permutation(np.arange(1, len(demo) + 1))
    known = Pool(demo.strings, "light", weights=weights)
    rng = np.random.default_rng(8)
    asked = [demo.strings[at] for at in rng.choice(len(demo), 100, p=weights / weights.sum())]
    alike, like = (
        attack_company(cover, released(cover, asked), asked).naming("popularity")
        for cover in (
            mechanism(f"cover:k={K}", pool=known),
            mechanism(f"cover:k={K},decoys=popular", pool=known),
        )
    )
    assert alike.mean > 0.4
    assert like.mean < 0.2


def test_a_history_finds_its_subject_among_decoys_on_others(demo):
    rng = np.random.default_rng(9)
    near = {subject: near_subjects(demo, [subject], 8) for subject in SUBJECTS[:60:3]}
    texts = [strings[0] for strings in near.values()]
    seen = seen_sets(
        with_decoys(texts, harmless(demo, SUBJECTS, 1000), rng),
        texts,
        demo.encoder,
        persons=texts,
    )
    histories = {strings[0]: strings[1:] for strings in near.values()}
    report = attack_sets(seen, demo, Knowledge(others(demo)[:500], histories))
    assert report.naming("history").mean > 0.8


def test_a_short_list_with_the_queries_in_it_names_them_whatever_the_decoys(demo, matched):
    """Decoys stand for nothing on it; on a list of all that may be asked each counts as much."""
    for cover in (mechanism(f"cover:k={K}", pool=demo), matched):
        sets = released(cover, SUBJECTS)
        short, long = (
            attack_company(cover, sets, SUBJECTS, knowledge=Knowledge(listed=listed)).naming("list")
            for listed in (SUBJECTS, demo.strings)
        )
        assert short.mean > 0.6
        assert not above_chance(long.group, 1 / K)
    assert "list of 5,141 texts" in long.knows
    others_alone = Knowledge(listed=others(demo))
    without = attack_company(cover, sets, SUBJECTS, knowledge=others_alone)
    assert "holds all of it" in without.not_tried["list"]


def test_texts_of_a_kind_on_a_list_are_likelier(demo, uniform, kind):
    """Of all that may be asked, what looks like the kind."""
    asked, _, learned = kind
    known = Knowledge(learned, listed=demo.strings)
    report = attack_company(uniform, released(uniform, asked), asked, knowledge=known)
    assert above_chance(report.naming("list, classifier").group, report.chance)


# Cover


def test_decoys_like_the_kind_leave_a_classifier_less(demo, uniform, matched, kind):
    """It learns from other queries of the kind than those that made decoys popular."""
    asked, _, learned = kind
    known = Knowledge(reference=learned)
    alike, like = (
        attack_company(cover, released(cover, asked), asked, knowledge=known)
        for cover in (uniform, matched)
    )
    assert above_chance(alike.naming("classifier").group, alike.chance)
    assert alike.naming("classifier").mean > like.naming("classifier").mean + 0.05
    assert not above_chance(like.naming("classifier").group, like.chance)
    assert like.strongest.mean < alike.strongest.mean


def test_who_knows_all_subjects_names_more_and_sensitive_decoys_leave_less(demo, uniform):
    """Of 65 persons the subjects are known, and not whose is which."""
    sensitive = mechanism(f"cover:k={K},decoys=sensitive", pool=demo)
    alike, like = (
        attack_company(
            cover, released(cover, SUBJECTS), SUBJECTS, knowledge=Knowledge(demo.strings)
        )
        for cover in (uniform, sensitive)
    )
    assert above_chance(alike.naming("subjects").group, alike.chance)
    assert alike.naming("subjects").mean > alike.naming("classifier").mean + 0.1
    assert alike.naming("nearest subject").mean > alike.naming("subjects").mean + 0.1
    assert alike.strongest.mean > like.strongest.mean + 0.05
    few = attack_company(uniform, released(uniform, SUBJECTS[:19]), SUBJECTS[:19])
    assert "20 different texts" in few.not_tried["subjects"]


def test_strings_near_what_is_asked_are_not_what_is_asked(demo):
    near = strings_near(SUBJECTS, demo)
    assert not set(near) & set(SUBJECTS)
    assert 65 < len(near) <= 5 * len(SUBJECTS)


def test_who_knows_the_popularity_that_decoys_match_sees_nothing(matched, kind):
    report = attack_company(matched, released(matched, kind[0]), kind[0])
    assert not above_chance(report.naming("popularity").group, report.chance)


@pytest.mark.thorough
def test_ten_searches_on_one_subject_by_twenty_persons(demo, uniform, matched, kind):
    """Three queries, asked again and again: what sticky company takes from an attacker."""
    persons = persons_on_subjects(demo, SUBJECTS[:60:3], 10, 3, np.random.default_rng(5))

    def attacked(cover, key, known=None):
        sets = released(cover, persons.texts, key=key)
        return attack_company(cover, sets, persons.texts, persons=persons.names, knowledge=known)

    fresh, sticky = attacked(uniform, None), attacked(uniform, b"key")
    # The attacks that are compared take no knowledge of what people ask; this one has all of it.
    sticky_matched = attacked(matched, b"key", Knowledge(kind[2], persons.histories))
    assert fresh.persons == 20
    assert fresh.sets == 200
    assert fresh.naming("repetition").mean > 0.7
    assert sticky.naming("repetition").mean < 0.2
    assert fresh.naming("clustering").mean > sticky.naming("clustering").mean + 0.1
    assert sticky.naming("clustering").mean > sticky_matched.naming("clustering").mean + 0.1
    # The subject is not hidden from one who knows it: nothing here says that it is.
    assert sticky_matched.naming("history").mean > 0.5


def test_queries_on_one_subject_are_linked_though_each_is_remembered(demo, uniform):
    persons = persons_on_subjects(demo, SUBJECTS[:60:4], 6, 6, np.random.default_rng(6))
    sets = released(uniform, persons.texts, key=b"key")
    report = attack_company(uniform, sets, persons.texts, persons=persons.names)
    for name in ("linkage", "clustering"):
        assert report.naming(name).mean > 0.25
    alone = attack_company(uniform, sets, persons.texts)
    assert set(alone.not_tried) >= {"linkage", "clustering", "repetition"}
    assert alone.strongest.mean < report.strongest.mean


# Exactness


def test_the_odds_are_those_of_the_exact_posterior(matched, kind):
    """Belief and law together order the members of a set as ``Cover.posterior`` does."""
    (seen,) = sets_of_cover(matched, released(matched, kind[0][:1]), kind[0][:1])
    places = [matched.pool.place(string) for string in seen.strings]
    prior = np.random.default_rng(1).random(len(matched.pool)) + 0.1
    posterior = matched.posterior(np.array(places), prior)[places]
    odds = np.exp(seen.inside + np.log(prior[places]))
    assert odds / odds.sum() == pytest.approx(posterior / posterior.sum())


def test_repeated_sets_are_read_by_the_law(matched, kind):
    """The sum of the log-laws over sets, for each string, up to a constant."""
    from sottovoce.privacy.attacks.company.sessions import repetition

    texts = kind[0][:1] * 3
    seen = sets_of_cover(matched, released(matched, texts), texts)
    places = np.array([matched.pool.place(string) for one in seen for string in one.strings])
    sets = places.reshape(3, -1)
    exact = (matched.log_law(sets, places) - matched.law.log_weight(np.sort(sets))[:, None]).sum(0)
    assert np.concatenate(repetition(seen)) == pytest.approx(exact)


def test_groups_are_told_apart_and_strings_that_came_along_left_out(demo):
    cover = mechanism("cover:k=5,m=3", pool=demo)
    sets = released(cover, SUBJECTS[:20])
    seen = sets_of_cover(cover, sets, SUBJECTS[:20])
    meant = [demo.strings[at] for at in cover.representatives(SUBJECTS[:20])]
    there = 0
    for one, sent, string in zip(seen, sets, meant, strict=True):
        assert 5 <= len(one.strings) <= len(sent) <= 15
        assert {string for head in one.strings for string in _group(cover, head)} <= {*sent}
        if one.truth >= 0:
            there += 1
            assert one.strings[one.truth] == string
    assert there >= 14
    assert attack_company(cover, sets, SUBJECTS[:20]).strings <= 15


def test_a_set_of_which_no_group_was_sent_whole_is_refused_not_broken(demo):
    """An engine that fails underway leaves so much of a set."""
    cover = mechanism("cover:k=5,m=3", pool=demo)
    (whole,) = released(cover, SUBJECTS[:1])
    heads = [string for string in whole if len({*_group(cover, string)} & {*whole}) == 3]
    rest = [string for string in whole if string not in heads]
    with pytest.raises(UsageError, match="no group was released whole"):
        attack_company(cover, [rest], SUBJECTS[:1])


def _group(cover, head):
    return cover.strings(np.array([cover.pool.place(head)]))


def test_what_is_attacked_is_not_learned_from(demo):
    known = Knowledge([*SUBJECTS, "bus times"], {"a": ["Skin  Cancer", "debt"]})
    rest = known.without([*SUBJECTS[:-1], "skin cancer"])
    assert rest.reference == [SUBJECTS[-1], "bus times"]
    assert rest.histories == {"a": ["debt"]}


# Reports and files


def test_the_headline_is_the_strongest_with_what_it_knows(uniform, kind):
    texts = kind[0][:60]
    report = attack_company(
        uniform, released(uniform, texts), texts, knowledge=Knowledge(reference=kind[2])
    )
    assert report.headline.share == max(made.mean for made in report.namings)
    assert report.headline.knows == report.strongest.knows
    assert "names what stands for the query" in report.headline.sentence
    assert all(made.knows for made in report.namings)
    assert report.not_tried["history"]
    written = json.dumps(report.to_dict())
    assert not any(text in written + repr(report) for text in texts)


def test_no_set_and_strings_of_another_pool_are_refused(demo, uniform):
    with pytest.raises(UsageError, match="nothing to attack"):
        attack_company(uniform, [], [])
    with pytest.raises(UsageError, match="nothing to attack"):
        attack_sets([], demo)
    with pytest.raises(UsageError, match="no string of this pool"):
        attack_company(uniform, [["xqzzy plugh", "debt advice charity chat"]], ["debt"])
    with pytest.raises(UsageError, match="one of each"):
        attack_company(uniform, [["debt advice charity chat"]], ["debt", "more"])


def test_a_seen_set_does_not_show_its_text(demo):
    (seen,) = seen_sets([["skin cancer", "debt"]], ["skin cancer"], demo.encoder)
    assert isinstance(seen, SeenSet)
    assert "cancer" not in repr(seen)


def test_attack_reads_releases_of_sets(demo, uniform):
    texts = SUBJECTS[:8]
    releases = [
        Released(str(number), text, variants)
        for number, (text, variants) in enumerate(zip(texts, released(uniform, texts), strict=True))
    ]
    report = attack(releases, mechanism=uniform, session=True)
    assert report.groups is not None
    assert report.groups.what == "groups"
    assert report.company.persons == 1
    assert {"clustering", "linkage"} <= {made.attack for made in report.company.namings}
    assert report.words is None
    assert report.to_dict()["strongest"]["groups"]["share"] == report.groups.share


def test_a_blind_guess_at_the_subject_is_measured_on_the_sets_themselves():
    """Three of four strings are on the subject of what was asked."""
    encoder = load_pool("demo", "light").encoder
    texts = ["skin cancer"] * 2
    sets = [["skin cancer", "skin cancers", "Skin cancer?", "debt advice"]] * 2
    pool = Pool([*sets[0], *load_pool("demo", "light").strings], encoder)
    report = attack_sets(seen_sets(sets, texts, encoder), pool)
    assert report.subject_chance == pytest.approx(0.75)
    assert report.to_dict()["subject_chance"] == report.subject_chance


def test_the_command_takes_what_the_person_asked_before(tmp_path, demo):
    asked = near_subjects(demo, SUBJECTS[:1], 16)
    cover = ("-m", "cover:k=6", "--pool", "demo", "--encoder", "light", "-o", "jsonl")
    typed = "\n".join(asked[:4]).encode()
    made = run_command("obfuscate", "-", *cover, home=tmp_path, stdin=typed)
    file, before = tmp_path / "covered.jsonl", tmp_path / "before.txt"
    file.write_bytes(made.stdout)
    before.write_text("\n".join(asked[4:]))

    def attacked(*options):
        pool = ("--pool", "demo", "--pool-encoder", "light", "--json")
        return as_text(run_command("attack", str(file), *pool, *options, home=tmp_path))

    knowing = json.loads(attacked("--session", "--history", str(before)).stdout)["company"]
    (history,) = (made for made in knowing["namings"] if made["attack"] == "history")
    assert history["knows"].endswith("what the person asked before")
    assert "history" not in knowing["not_tried"]
    without = json.loads(attacked("--session").stdout)["company"]
    assert "--history" in without["not_tried"]["history"]
    assert history["group"]["value"] > without["chance"]
    alone = attacked("--history", str(before))
    assert alone.returncode == 2
    assert "--session" in alone.stderr


def test_the_command_attacks_a_file_of_sets(tmp_path):
    typed = "\n".join(SUBJECTS[:6]).encode()
    cover = ("-m", "cover:k=6", "--pool", "demo", "--encoder", "light", "-o", "jsonl")
    made = run_command("obfuscate", "-", *cover, home=tmp_path, stdin=typed)
    file = tmp_path / "covered.jsonl"
    file.write_bytes(made.stdout)
    pool = ("--pool", "demo", "--pool-encoder", "light")
    shown = as_text(run_command("attack", str(file), *pool, "--session", home=tmp_path))
    assert shown.returncode == 0, shown.stderr
    assert "Which of 6 strings was meant?" in shown.stdout
    assert "a blind guess" in shown.stdout
    assert "at a string on the subject: " in shown.stdout
    assert "names what stands for the query" in " ".join(shown.stdout.split())
    assert not any(text in shown.stdout for text in SUBJECTS[:6])


def test_a_log_without_the_queries_is_what_people_of_the_kind_ask(tmp_path, demo):
    """Who has it learns from it, and cannot look a query up on it."""
    cover = mechanism("cover:k=6", pool=demo)
    sets = released(cover, SUBJECTS[:5])
    releases = [Released(text, text, one) for text, one in zip(SUBJECTS[:5], sets, strict=True)]
    log = QueryLog(others(demo))
    report = attack(releases, mechanism=cover, log=log)
    assert not report.inferences
    assert "--add-originals" in report.not_tried["query inference"]
    assert report.company.naming("classifier").knows
    assert "list" in report.not_tried
    listed = attack(releases, mechanism=cover, log=log, add_originals=True)
    assert "query inference" not in listed.not_tried
    assert listed.company.naming("list")


# What a list says is worked out once


class Counting(LightEncoder):
    """The light encoder, counting the texts that it is given."""

    def __init__(self):
        super().__init__()
        self.encoded = 0

    def encode(self, texts):
        self.encoded += len(texts)
        return super().encode(texts)


@pytest.fixture
def made(demo):
    """A pool that lacks half of a log, the log, and an attack on one query with it."""
    encoder = Counting()
    pool = Pool(demo.strings[::2], encoder).prepare()
    log = QueryLog(demo.strings)
    cover = mechanism(f"cover:k={K}", pool=pool)

    def attacked(text):
        (variants,) = released(cover, [text])
        encoder.encoded = 0
        report = attack(
            [Released("query", text, variants)], mechanism=cover, log=log, add_originals=True
        )
        return report.company, encoder.encoded

    return pool, log, attacked


def test_a_log_is_encoded_once_however_often_it_is_attacked_with(made, monkeypatch):
    _, log, attacked = made
    first, encoded = attacked("a query that no log has")
    assert encoded < len(log) + 500
    learned = []
    ratios, learn = HeldOutLikeness.log_ratio, Learned.__init__
    monkeypatch.setattr(
        HeldOutLikeness, "log_ratio", lambda *a: (learned.append(len(a[1])), ratios(*a))[1]
    )
    monkeypatch.setattr(Learned, "__init__", lambda *a: (learned.append("learned"), learn(*a))[1])
    second, encoded = attacked("another that none has")
    assert encoded < 500
    assert "learned" not in learned
    assert max(learned) < 500
    assert {each.attack for each in second.namings} == {each.attack for each in first.namings}


def test_what_is_attacked_is_taken_out_without_encoding_the_rest_anew(made):
    pool, log, attacked = made
    attacked("a query that no log has")  # From now on there are vectors.
    in_log = log.queries[7]
    report, encoded = attacked(in_log)
    assert encoded < 500
    public = queries_of(log, pool)
    left = public.without([in_log])
    assert [*left] == [text for text in log.queries if text != in_log]
    assert public.without(["a query that no log has"]) is public
    assert f"{len(log):,} texts" in report.naming("list").knows
    assert f"{len(log) - 1:,} public texts" in report.naming("classifier").knows
    fresh = PublicTexts([*left], pool)
    assert np.array_equal(left.standing, fresh.standing)
    assert np.array_equal(left.vectors, fresh.vectors)


def test_what_is_put_beside_a_list_counts_as_if_it_stood_there(made):
    pool, log, _ = made
    public = queries_of(log, pool)
    (seen,) = seen_sets([pool.strings[:50]], ["skin"], pool.encoder)
    new = PublicTexts(["Zebra crossing law", "Berlin wall height"], pool)
    joined = PublicTexts([*log.queries, "zebra crossing law", "berlin wall height"], pool)
    for weights in (None, by_nearness_to_pool, lambda texts: weights_by_looks(texts, public)):
        beside, among = Listed(public, new, weights), Listed(joined, weights=weights)
        assert np.allclose(beside(seen), among(seen), rtol=1e-9)
    repeated = Listed(PublicTexts([*log.queries, *log.queries[:40]], pool))
    assert np.array_equal(repeated(seen), Listed(public)(seen))


# What more knowledge of the texts on a list, or of those near to subjects, gives


@pytest.fixture(scope="module")
def other_queries(demo):
    """Queries of random words beside the sensitive ones, and a pool without these."""
    rng = np.random.default_rng(11)
    return random_words(demo, 3000, rng), Pool(others(demo), "light")


def test_texts_on_a_list_that_are_near_to_the_pool_are_likelier(other_queries):
    """People ask where there is an answer: what nothing in the pool is near to was hardly asked."""
    unrelated, pool = other_queries
    cover = mechanism(f"cover:k={K}", pool=pool)
    known = Knowledge(listed=[*unrelated, *SUBJECTS])
    report = attack_company(cover, released(cover, SUBJECTS), SUBJECTS, knowledge=known)
    near = report.naming("list, near the pool")
    assert near.mean > report.naming("list").mean + 0.2
    assert report.strongest.mean >= near.mean
    assert "list of 3,065 texts" in near.knows
    assert "list, kind" in report.not_tried


def test_a_pool_that_holds_the_list_is_near_to_all_of_it(demo, uniform):
    report = attack_company(
        uniform, released(uniform, SUBJECTS), SUBJECTS, knowledge=Knowledge(listed=demo.strings)
    )
    assert "most of the list" in report.not_tried["list, near the pool"]


def test_texts_on_a_list_that_are_near_to_texts_of_the_kind_are_likelier(other_queries):
    unrelated, pool = other_queries
    cover = mechanism(f"cover:k={K}", pool=pool)
    known = Knowledge(SUBJECTS[::2], listed=[*unrelated, *SUBJECTS])
    asked = SUBJECTS[1::2]
    report = attack_company(cover, released(cover, asked), asked, knowledge=known)
    assert report.naming("list, kind").mean > report.naming("list").mean + 0.2
    assert "texts of the person's kind" in report.naming("list, kind").knows
    itself = Knowledge([*unrelated, *SUBJECTS], listed=[*unrelated, *SUBJECTS])
    no_more = attack_company(cover, released(cover, asked), asked, knowledge=itself)
    assert "no more than" in no_more.not_tried["list, kind"]


def test_who_counts_neighbours_names_more_than_who_measures_nearness(demo, uniform):
    """Of the strings near to a query it is itself the nearest to most."""
    report = attack_company(uniform, released(uniform, SUBJECTS), SUBJECTS)
    counted = report.naming("neighbours of subjects")
    assert counted.mean > report.naming("nearest subject").mean + 0.1
    assert counted.knows == report.naming("nearest subject").knows


def test_a_kind_that_is_none_says_nothing_of_the_strings_it_was_learned_from(demo):
    """Random strings of the pool: a regression that has seen them would tell them from others."""
    order = np.random.default_rng(12).permutation(len(demo))
    like, unlike = order[:300], order[300:]
    held_out = fit_held_out(like, demo).log_ratio(demo.strings, demo.vectors)
    in_sample = fit_to_strings(like, demo)
    rows = in_sample.log_ratio(demo.strings, demo.vectors)
    spread = held_out.std() / np.sqrt(len(like))
    assert abs(held_out[like].mean() - held_out[unlike].mean()) < 4 * spread
    assert rows[like].mean() - rows[unlike].mean() > 4 * rows.std() / np.sqrt(len(like))
    foreign = fit_held_out(like, demo).log_ratio(["no string of it"], demo.vectors[:1])
    assert np.isfinite(foreign).all()


def test_one_odd_line_of_a_list_takes_nothing_from_the_others(demo):
    """However likely a weight makes it, what other texts stand for is compared as before."""
    listed = PublicTexts(demo.strings[:50], demo)
    (seen,) = seen_sets([demo.strings[:60]], ["skin"], demo.encoder)

    def weights(texts):
        return np.array([200.0 if text.startswith("?") else len(text) / 10 for text in texts])

    without = Listed(listed, None, weights)(seen)
    with_odd = Listed(PublicTexts([*listed, "?" * 27], demo), None, weights)(seen)
    (odd,) = PublicTexts(["?" * 27], demo).standing
    same = np.arange(60) != odd
    assert np.allclose(with_odd[same], without[same])
    assert (with_odd[:50].min() > with_odd[50:][same[50:]]).all(), "what stands for nothing"


def test_capitals_of_a_pool_do_not_show_that_texts_are_compared_folded(demo):
    """The kind of a text is read of the string that stands for it, as that is written."""
    near = near_subjects(Pool(others(demo), "light"), SUBJECTS, 12)
    order = np.random.default_rng(14).permutation(len(near))
    known, asked = ([near[at] for at in part] for part in np.array_split(order, 2))
    asked = [f"{text} now" for text in asked[:150]]
    rng = np.random.default_rng(15)
    capital = {text for text in others(demo) if text in {*near} or rng.random() < 0.3}
    strings = [text.capitalize() if text in capital else text for text in others(demo)]
    cover = mechanism(f"cover:k={K}", pool=Pool(strings, "light"))
    report = attack_company(cover, released(cover, asked), asked, knowledge=Knowledge(known))
    for name in ("classifier", "nearest", "nearest subject"):
        assert above_chance(report.naming(name).group, report.chance)


def test_a_history_or_a_kind_is_of_so_many_different_texts(demo, uniform):
    """The same text again and again is near to nothing but itself."""
    sets = released(uniform, SUBJECTS[:2])
    known = Knowledge(["Tax  return", "tax return"] * 6, {"a": ["debt advice"] * 12})
    report = attack_company(uniform, sets, SUBJECTS[:2], persons=["a", "a"], knowledge=known)
    for name in ("history", "classifier", "nearest"):
        assert report.not_tried[name]


def test_a_pool_with_little_beside_what_is_attacked_is_attacked_all_the_same(demo):
    for size, k in ((4, 2), (30, 7)):
        cover = mechanism(f"cover:k={k}", pool=Pool(demo.strings[:size], "light"))
        texts = [*demo.strings[:size], *SUBJECTS[:30]]
        report = attack_company(cover, released(cover, texts), texts)
        assert "too few strings" in report.not_tried["nearest subject"]
        assert report.naming("sensitive subjects")
    alone = [f"{text} now" for text in SUBJECTS[:30]]
    assert len(strings_near(alone, Pool(demo.strings[:40], "light"))) > 10


def test_a_string_is_not_its_own_neighbour(demo):
    """Were it, strings on a list would be told from others by that alone."""
    at = demo.place(SUBJECTS[0])
    ranked = demo.best(demo.vectors[[at]], max(AMONG) + 1)[0].tolist()
    nearest = [demo.strings[place] for place in ranked if place != at]
    listed = PublicTexts([SUBJECTS[0], *nearest[:5]], demo)
    (row,) = Neighbours(listed).rows([SUBJECTS[0]], demo.vectors[[at]])
    assert row == pytest.approx(np.log([5.5] * len(AMONG)))
    own, other = PublicTexts([SUBJECTS[0], nearest[0]], demo), demo.place(nearest[0])
    assert own.to_pool[0] == pytest.approx(float(demo.vectors[at] @ demo.vectors[other]), abs=1e-6)
    assert own.to_pool.max() < 1 - 1e-4
    assert np.array_equal(own.some(np.array([1])).to_pool, own.to_pool[1:])


def test_the_rest_of_a_list_holds_nothing_of_the_kind(demo, monkeypatch):
    """However many texts of the kind are known, and learned from."""
    monkeypatch.setattr(f"{PublicTexts.__module__}.LEARNED_FROM", 5)
    listed, reference = PublicTexts(demo.strings[:40], demo), PublicTexts(demo.strings[:12], demo)
    assert len(reference.sample) == 5
    assert not_in(listed, reference).tolist() == [*range(12, 40)]


def test_what_is_asked_again_is_read_with_every_belief(demo, uniform):
    persons = persons_on_subjects(demo, SUBJECTS[:20:2], 4, 2, np.random.default_rng(13))
    sets = released(uniform, persons.texts)
    report = attack_company(uniform, sets, persons.texts, persons=persons.names)
    again = report.naming("repetition, sensitive subjects")
    assert again.mean > report.naming("sensitive subjects").mean
    assert "same was asked again" in again.knows


def test_every_attack_that_was_not_tried_says_why(demo, uniform):
    report = attack_company(uniform, released(uniform, SUBJECTS[:5]), SUBJECTS[:5])
    for name in ("classifier", "nearest", "subjects", "nearest subject", "neighbours of subjects"):
        assert report.not_tried[name]
    for name in ("list", "list, kind", "list, classifier", "history", "clustering"):
        assert report.not_tried[name]
