"""All attacks together on releases: what is attacked, how, and what is said of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.random import PCG64, Generator

from sottovoce import Obfuscator, mechanism
from sottovoce.errors import UsageError
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.privacy import attack
from sottovoce.privacy.attacks.query_log import QueryLog
from sottovoce.privacy.attacks.reasons import ANOTHER_LAW, NO_LOG, NO_MECHANISM, WHOLE_RELEASE
from sottovoce.privacy.attacks.releases import Released, read_releases
from sottovoce.privacy.attacks.report import RiskReport
from sottovoce.privacy.attacks.run_state import ATTACKS, BY_TEXTS
from sottovoce.privacy.attacks.word_means import COMPARED
from sottovoce.privacy.attacks.words import WordRecovery
from sottovoce.spaces.space import OutputVocabulary, WordSpace
from sottovoce.statistics import clopper_pearson
from sottovoce.text import TextPipeline

ON_WORDS = ("mode", "uniform", "prior", "context")


def words_released(mech: WordMechanism, ids: Sequence[int], n: int, seed: int = 3):
    """One-word texts with ``n`` fresh draws each."""
    drawn = mech.sample(np.asarray(ids), n, Generator(PCG64(seed)))
    texts = mech.space.words(np.asarray(ids))
    return [
        Released(str(place), text, tuple(mech.space.words(drawn[:, place])))
        for place, text in enumerate(texts)
    ]


def pairs_released(mech: WordMechanism, n: int, release: str, words: int) -> list[Released]:
    """Texts of two words each, from a seed."""
    ids = Generator(PCG64(11)).choice(mech.space.size, words, replace=False)
    names = mech.space.words(ids)
    texts = [f"{a} {b}" for a, b in zip(names[::2], names[1::2], strict=True)]
    return obfuscated(mech, texts, n, release)


def obfuscated(
    mech: WordMechanism, texts: Sequence[str], n: int, release: str = "independent"
) -> list[Released]:
    results = Obfuscator(mech, n=n, release=release, rng=5).obfuscate(texts)
    return [
        Released(str(number), result.text, result.variants) for number, result in enumerate(results)
    ]


def recovery_of(report: RiskReport, name: str, n: int) -> WordRecovery:
    (recovery,) = [
        recovery for seen, recovery in report.recoveries if (recovery.attack, seen) == (name, n)
    ]
    return recovery


def share(report: RiskReport, name: str, n: int) -> float:
    value = recovery_of(report, name, n).words.value
    assert value is not None
    return value


def right(report: RiskReport, name: str, n: int) -> int:
    return recovery_of(report, name, n).words.right


# What was published, and what variants alone show


@pytest.mark.parametrize(
    ("file", "words", "queries"),
    [
        ("CMP/obfuscatedText_CMP_10", 0.81, 0.35),
        ("CMP/obfuscatedText_CMP_12.5", 0.95, 0.77),
        ("Mahalanobis/obfuscatedText_Mahalanobis_10", 0.76, 0.26),
        ("Mahalanobis/obfuscatedText_Mahalanobis_12.5", 0.91, 0.67),
        ("VickreyCMP/obfuscatedText_VickreyCMP_10", 0.71, 0.21),
        ("VickreyCMP/obfuscatedText_VickreyCMP_12.5", 0.92, 0.67),
        ("VickreyMhl/obfuscatedText_VickreyMhl_10", 0.52, 0.07),
    ],
)
def test_the_mode_recovers_what_was_published(
    shared_data: Path, file: str, words: float, queries: float
) -> None:
    # One query ends in a blank to fill in, "_____.", which is no word.
    releases = read_releases(shared_data / "reference" / "msmarco-dl19" / f"{file}.csv.gz")
    report = attack(releases, attacks=["mode"], counts=[50])
    ((n, recovery),) = report.recoveries
    assert (n, len(recovery.by_text)) == (50, 43)
    assert recovery.words.value == pytest.approx(words, abs=0.02)
    assert recovery.whole.value == pytest.approx(queries, abs=0.02)


def test_the_mode_takes_the_first_seen_of_several() -> None:
    first_wrong = Released("1", "B a", ("c a,", "b f", "B a,", "c f"))
    report = attack([first_wrong], attacks=["mode"], counts=[4])
    assert right(report, "mode", 4) == 1  # "a," and "f" are shown twice each, "a" before "f".
    first_right = Released("1", "B a", ("b a", "c f", "B f", "c a"))
    recovery = recovery_of(attack([first_right], attacks=["mode"], counts=[4]), "mode", 4)
    assert (recovery.words.right, recovery.whole.right) == (2, 1)


def test_words_that_never_change_are_all_got_back() -> None:
    texts = [Released(str(number), "a b c", ("a b c",) * 4) for number in range(10)]
    report = attack(texts)
    assert report.words is not None
    assert report.words.share == share(report, "mode", 4) == 1
    assert recovery_of(report, "mode", 4).whole.value == 1
    hidden = attack([replace(text, variants=("e f e",) * 4) for text in texts]).words
    assert hidden is not None
    assert hidden.share == hidden.low == 0
    assert 0.2 < hidden.high < 0.5  # Ten texts that show nothing do not prove safety.


# Texts and places


def test_variants_of_different_lengths_are_no_zero(toy: WordSpace) -> None:
    uneven = Released("1", "a b", ("a b", "b", "c e f"))
    releases = [uneven, uneven, Released("2", "a", ("a",))]
    report = attack(releases, mechanism=mechanism("cmp", space=toy, epsilon=1.0), rng=1)
    assert report.recoveries == ()
    assert report.words is None
    assert "2 of 3 texts" in report.not_tried["words"]
    assert report.to_dict()["strongest"]["words"] is None


def test_texts_that_do_not_line_up_are_left_out_and_counted() -> None:
    same = [Released(str(number), "a b", ("a b", "a b", "a b")) for number in range(4)]
    uneven, unreleased = Released("5", "a b", ("a", "a b", "c")), Released("6", "a b", ())
    report = attack([*same, uneven, unreleased])
    assert report.words is not None
    assert report.words.share == 1
    assert report.left_out == report.to_dict()["left_out"] == 1


def test_surrounding_punctuation_does_not_hide_a_word(toy: WordSpace) -> None:
    santext = mechanism("santext", space=toy, epsilon=50.0)
    report = attack([Released("1", "(A) b, c!", ("(a) b, c!",) * 2)], mechanism=santext)
    assert share(report, "mode", 2) == share(report, "uniform", 2) == 1.0


def test_unknown_words_count_among_all_words(toy: WordSpace) -> None:
    santext = mechanism("santext", space=toy, epsilon=50.0)
    releases = [Released("1", "a zzz", ("a c", "a e")), Released("2", "b", ("b", "b"))]
    report = attack(releases, mechanism=santext, counts=[2])
    for name in ("mode", "uniform", "prior"):
        recovery = recovery_of(report, name, 2)
        assert (recovery.words.right, recovery.words.total) == (2, 3)
        assert recovery.whole.right == 1
    assert report.words is not None
    assert report.words.share == pytest.approx(2 / 3)


def test_words_left_out_do_not_shift_the_others_out_of_sight() -> None:
    releases = [Released("1", "a zzz b", ("a b", "a b", "a c"))]
    recovery = recovery_of(attack(releases, attacks=["mode"]), "mode", 3)
    assert (recovery.words.right, recovery.words.total, recovery.whole.right) == (2, 3, 0)


@pytest.mark.parametrize("spec", ["wbb:epsilon=1,n=20", "santext:epsilon=1", "cmp:epsilon=2"])
def test_words_left_in_clear_are_seen_to_be(small_space: WordSpace, spec: str) -> None:
    """A word that every variant shows, and one that the space lacks."""
    mech = mechanism(spec, space=small_space)
    releases = [Released("1", "word7 word9 zzz", ("word7 word11 zzz",) * 3)]
    report = attack(releases, mechanism=mech, counts=[3], rng=1)
    assert report.words is not None
    assert report.words.share >= 2 / 3
    for name in ("uniform", "prior"):
        assert right(report, name, 3) >= 1  # The unknown one cannot come from the mechanism.


def test_parts_of_a_compound_are_attacked_one_by_one(small_space: WordSpace) -> None:
    santext = mechanism("santext", space=small_space, epsilon=50)
    (release,) = obfuscated(santext, ["word1 word2-word3 word4"], 5)
    assert set(release.variants) == {release.text}
    report = attack([release], mechanism=santext, rng=1, counts=[5])
    for name in ("uniform", "prior"):
        recovery = recovery_of(report, name, 5)
        assert (recovery.words.right, recovery.words.total, recovery.whole.value) == (4, 4, 1)


@pytest.mark.parametrize(
    ("spec", "protect"),
    [
        ("santext:epsilon=50", "all"),
        ("wbb:epsilon=5,k=2,n=15", "noun,adjective"),
        ("custext:epsilon=3,k=8", "content"),
        ("santext:epsilon=3", "content"),
    ],
)
def test_a_query_is_named_by_what_was_left_in_clear_too(
    frequent_words: WordSpace, spec: str, protect: str
) -> None:
    """Words in clear and compounds that come back whole are no reason to rule the query out."""
    texts = ["price of self-help books", "history of the state", "death of a child in the house"]
    others = ["price of good-will books", "history of the church", "life of a child in the city"]
    mech = mechanism(spec, space=frequent_words)
    pipeline = TextPipeline(protect=protect)
    results = list(Obfuscator(mech, n=8, rng=2, pipeline=pipeline).obfuscate(texts))
    report = attack(
        [Released(str(at), result.text, result.variants) for at, result in enumerate(results)],
        mechanism=mech,
        pipeline=pipeline,
        log=QueryLog([*others, *texts, "house prices"]),
        counts=[8],
    )
    (_, inference) = report.inferences[-1]
    assert inference.attack == "aligned"
    assert [query.rank for query in inference.queries] == [1, 1, 1]


def test_the_pipeline_of_obfuscate_is_attacked_as_it_is(small_space: WordSpace) -> None:
    cmp = mechanism("cmp", space=small_space, epsilon=200.0)
    releases = obfuscated(cmp, ["word5, word6!", "word7"], 3)
    report = attack(releases, mechanism=cmp, rng=1, counts=[3])
    assert share(report, "mode", 3) == share(report, "uniform", 3) == 1.0
    assert recovery_of(report, "uniform", 3).whole.value == 1.0


def test_words_nobody_could_have_released_have_no_author(toy: WordSpace) -> None:
    some = toy.with_output(OutputVocabulary("some", toy.ids(["a", "b"])))
    santext = mechanism("santext", space=some, epsilon=2.0)
    releases = [Released("1", "c", ("f", "f")), Released("2", "zzz", ("yyy", "xxx"))]
    report = attack(releases, mechanism=santext, attacks=["uniform"], counts=[2])
    assert right(report, "uniform", 2) == 0


def test_a_release_of_the_whole_vocabulary_is_attacked_all_the_same(toy: WordSpace) -> None:
    cmp = mechanism("cmp", space=toy, epsilon=2.0)
    releases = [Released("1", "a", ("a", "b", "c", "e", "f"))]
    report = attack(releases, mechanism=cmp, release="once", rng=1)
    assert recovery_of(report, "uniform", 5).words.total == 1


# What those get who know the mechanism


@pytest.fixture(scope="module")
def frequent_words(default_space: WordSpace) -> WordSpace:
    """The five thousand most frequent words of the default space."""
    few = np.arange(5000)
    return WordSpace.from_arrays(default_space.words(few), default_space.vectors[few], "frequent")


def test_boxes_give_words_away(frequent_words: WordSpace) -> None:
    ids = Generator(PCG64(1)).choice(5000, 300, replace=False)
    wbb = mechanism("wbb:epsilon=1,k=4,n=50", space=frequent_words)
    releases = words_released(wbb, ids, 20)
    report = attack(releases, mechanism=wbb, attacks=["uniform", "mode"], counts=[1, 5, 20])
    assert share(report, "uniform", 1) < 0.06
    assert share(report, "uniform", 5) == pytest.approx(0.89, abs=0.06)
    assert share(report, "uniform", 20) == pytest.approx(0.99, abs=0.02)
    assert share(report, "mode", 20) == 0.0
    assert report.words is not None
    assert report.words.attack == "uniform"


def test_overlapping_groups_give_words_away(frequent_words: WordSpace) -> None:
    ids = Generator(PCG64(1)).choice(5000, 200, replace=False)
    custext = mechanism("custext:compat=knn,k=10,epsilon=1", space=frequent_words)
    releases = words_released(custext, ids, 20)
    report = attack(releases, mechanism=custext, attacks=["uniform"], counts=[20])
    assert share(report, "uniform", 20) >= 0.97


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("frequent_words", 0.94),
        pytest.param("default_space", 0.855, marks=pytest.mark.thorough),
    ],
)
def test_santext_is_read_off_twenty_draws(
    request: pytest.FixtureRequest, words: str, expected: float
) -> None:
    space = request.getfixturevalue(words)
    ids = Generator(PCG64(1)).choice(space.size, 200, replace=False)
    santext = mechanism("santext", space=space, epsilon=2)
    releases = words_released(santext, ids, 20)
    report = attack(releases, mechanism=santext, attacks=["uniform"], counts=[20])
    low, high = clopper_pearson(round(200 * share(report, "uniform", 20)), 200, 0.99)
    assert low - 0.03 <= expected <= high + 0.03


def test_words_that_may_not_be_released_can_be_guessed(small_space: WordSpace) -> None:
    half = small_space.with_output(OutputVocabulary("even", np.arange(0, 2000, 2)))
    santext = mechanism("santext", space=half, epsilon=4.0)
    releases = words_released(santext, range(1, 400, 4), 50)
    report = attack(releases, mechanism=santext, attacks=["uniform", "mode"])
    assert share(report, "mode", 50) == 0.0
    assert share(report, "uniform", 50) > 0.5


@pytest.mark.parametrize("spec", ["cmp", "vickrey-mahalanobis", "mahalanobis:compat=pypantera"])
def test_one_noisy_point_gives_away_more_than_the_mode(small_space: WordSpace, spec: str) -> None:
    mech = mechanism(spec, space=small_space, epsilon=6.0)
    releases = pairs_released(mech, 10, "once", 120)
    report = attack(releases, mechanism=mech, release="once", rng=1, attacks=["mode", "uniform"])
    assert right(report, "uniform", 10) > 2 * right(report, "mode", 10)
    assert report.words is not None
    assert (report.words.attack, report.words.n) == ("uniform", 10)


@pytest.mark.parametrize("spec", ["cmp", "mahalanobis", "vickrey-cmp"])
def test_the_law_reads_fresh_draws_better_than_the_mode(small_space: WordSpace, spec: str) -> None:
    mech = mechanism(spec, space=small_space, epsilon=4.0)
    releases = pairs_released(mech, 10, "independent", 120)
    report = attack(releases, mechanism=mech, rng=1, attacks=["mode", "uniform"], counts=[10])
    assert right(report, "uniform", 10) > right(report, "mode", 10)


@pytest.mark.slow
def test_one_noisy_point_of_the_default_space(default_space: WordSpace) -> None:
    cmp = mechanism("cmp", space=default_space, epsilon=12.5)
    ids = Generator(PCG64(5)).choice(10_000, 60, replace=False)
    releases = obfuscated(cmp, default_space.words(ids), 20, "once")
    report = attack(
        releases, mechanism=cmp, release="once", rng=1, counts=[20], attacks=["mode", "uniform"]
    )
    assert right(report, "uniform", 20) >= 0.2 * 60
    assert right(report, "uniform", 20) > right(report, "mode", 20)


def test_a_frequent_word_is_guessed_first(small_space: WordSpace) -> None:
    """A log that speaks of the same words, in other queries, helps the attacker."""
    cmp = mechanism("cmp", space=small_space, epsilon=6.0)
    releases = pairs_released(cmp, 10, "once", 60)
    words = [word for release in releases for word in release.text.split()]
    log = QueryLog(f"{word} {word}" for word in words)
    report = attack(
        releases, mechanism=cmp, release="once", log=log, rng=1, attacks=["uniform", "prior"]
    )
    assert right(report, "prior", 10) > right(report, "uniform", 10)


# How many variants are seen


def test_all_variants_are_attacked_unless_told_otherwise() -> None:
    releases = [Released("1", "a", ("b",) * 7), Released("2", "a", ("b", "c"))]
    assert [n for n, _ in attack(releases).recoveries] == [1, 5, 7]
    assert [n for n, _ in attack(releases, counts=[3, 9]).recoveries] == [3, 7]
    assert [n for n, _ in attack(releases, counts=[5, 1]).recoveries] == [1, 5, 7]


def test_the_whole_release_is_always_attacked(small_space: WordSpace) -> None:
    """Of a release 'once' a part alone is a random part of the nearest words."""
    cmp = mechanism("cmp", space=small_space, epsilon=6)
    releases = obfuscated(cmp, small_space.words(np.arange(40, 52)), 60, "once")
    report = attack(releases, mechanism=cmp, release="once", rng=1, counts=[5])
    assert {(recovery.attack, n) for n, recovery in report.recoveries} == {
        ("mode", 5),
        ("mode", 60),
        ("uniform", 60),
        ("prior", 60),
    }
    assert WHOLE_RELEASE in report.not_tried.values()


# What is said


def test_attacks_that_were_not_tried_are_named_with_the_reason(small_space: WordSpace) -> None:
    releases = [Released("1", "word1", ("word2", "word3"))]
    report = attack(releases)
    assert report.not_tried == {
        "query inference": NO_LOG,
        "attacks that know the mechanism": NO_MECHANISM,
    }
    assert report.queries is None
    santext = mechanism("santext", space=small_space)
    known = attack(releases, mechanism=santext)
    assert known.not_tried == {"query inference": NO_LOG, "context": NO_LOG}
    log = QueryLog(["word1", "word2 word3"])
    assert attack(releases, mechanism=santext, log=log).not_tried == {}
    uniform = attack(releases, mechanism=santext, log=log, prior="uniform")
    assert set(uniform.not_tried) == {"context"}
    assert {recovery.attack for _, recovery in uniform.recoveries} == {"mode", "uniform"}


def test_all_attacks_are_run_by_default(small_space: WordSpace) -> None:
    santext = mechanism("santext", space=small_space, epsilon=3)
    releases = obfuscated(santext, ["word1 word2", "word3"], 4)
    log = QueryLog(["word1 word2", "word3", "word4 word2", "word5"])
    report = attack(releases, mechanism=santext, log=log, counts=[4])
    tried = [recovery.attack for _, recovery in report.recoveries]
    assert tried == list(ON_WORDS)
    assert [inference.attack for _, inference in report.inferences] == [*COMPARED, "aligned"]
    assert {*tried, "aligned", *BY_TEXTS} == set(ATTACKS)
    for name in ATTACKS:
        alone = attack(releases, mechanism=santext, log=log, counts=[4], attacks=[name])
        assert [r for r in report.recoveries if r[1].attack == name] == list(alone.recoveries)
        named = {"aligned": ["aligned"], "means": [*COMPARED]}.get(name, [])
        assert [inference.attack for _, inference in alone.inferences] == named


def test_no_text_in_reprs_and_reports(small_space: WordSpace) -> None:
    santext = mechanism("santext", space=small_space)
    releases = [
        Released("1", "secretword word5", ("word6 word7", "word8 word9")),
        Released("2", "word11", ("word12", "word13")),
    ]
    log = QueryLog(["word14", "secretword word5", "word11"])
    report = attack(releases, mechanism=santext, log=log, rng=1)
    parts = [report, *report.recoveries, *report.inferences, report.words, report.queries, log]
    written = json.dumps(report.to_dict()) + "".join(map(repr, [*parts, *releases]))
    assert "secretword" not in written
    assert "word5" not in written
    assert "word11" not in written
    assert report.queries is not None


@pytest.mark.parametrize("release", ["independent", "once"])
def test_a_seed_gives_the_same_again_and_is_reported(small_space: WordSpace, release: str) -> None:
    cmp = mechanism("cmp", space=small_space, epsilon=5.0)
    releases = pairs_released(cmp, 5, release, 20)
    first, second = (
        attack(
            releases,
            mechanism=mechanism("cmp", space=small_space, epsilon=5.0),
            release=release,
            rng=9,
            counts=[5],
        )
        for _ in range(2)
    )
    assert first.recoveries == second.recoveries
    assert first.to_dict() == second.to_dict()
    assert first.seeded
    assert not attack(releases, release=release, attacks=["mode"]).seeded


def test_progress_reaches_its_end(small_space: WordSpace) -> None:
    cmp = mechanism("cmp", space=small_space, epsilon=5.0)
    steps: list[tuple[int, int]] = []
    attack(
        pairs_released(cmp, 3, "once", 10),
        mechanism=cmp,
        release="once",
        attacks=["uniform"],
        rng=1,
        counts=[3],
        progress=lambda done, total: steps.append((done, total)),
    )
    assert steps[-1] == (10, 10)


def test_bad_questions_are_refused(toy: WordSpace) -> None:
    releases = [Released("1", "a", ("b",))]
    santext = mechanism("santext", space=toy)
    for wrong in (
        {"attacks": ["secretword"]},
        {"counts": [0]},
        {"counts": []},
        {"prior": "secretword"},
        {"prior": "log"},
        {"release": "secretword"},
        {"release": "once"},
    ):
        with pytest.raises(UsageError) as error:
            attack(releases, mechanism=santext, **wrong)
        assert "secretword" not in str(error.value)
    for nothing in ([], [Released("1", "a", ())]):
        with pytest.raises(UsageError, match="nothing to attack"):
            attack(nothing)


def test_blank_texts_are_said_to_be_no_words() -> None:
    report = attack([Released("1", "  ", ("b",))])
    assert report.words is None
    assert "no text to attack" in report.not_tried["words"]


def test_another_vocabulary_is_not_taken_for_safety(small_space: WordSpace) -> None:
    half = small_space.with_output(OutputVocabulary("half", np.arange(0, small_space.size, 2)))
    wbb = mechanism("wbb", space=half, k=4, n=50)
    results = list(Obfuscator(wbb, n=20, rng=5).obfuscate(small_space.words(np.arange(40, 80))))
    releases = [Released(str(i), result.text, result.variants) for i, result in enumerate(results)]
    known = attack(releases, mechanism=wbb, attacks=["uniform"], counts=[20])
    assert known.words is not None
    assert known.words.share > 0.9
    assert results[0].made_with != mechanism("wbb", space=small_space).made_with
    whole = mechanism("wbb", space=small_space, k=4, n=50)
    mistaken = attack(releases, mechanism=whole, attacks=["uniform"], counts=[20])
    assert mistaken.words is None
    assert ANOTHER_LAW in mistaken.not_tried.values()
