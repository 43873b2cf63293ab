"""Attacks that know the mechanism: exact where they claim to be, and never understated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.random import PCG64, Generator
from sottovoce.privacy.attacks.recovery import Recovery, strongest

from sottovoce import Obfuscator, mechanism
from sottovoce.errors import UsageError
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.privacy.attacks.priors import by_rank, counted
from sottovoce.privacy.attacks.releases import Released, read_releases
from sottovoce.privacy.attacks.run import ATTACKS, reconstruct
from sottovoce.spaces.space import OutputVocabulary, WordSpace
from sottovoce.statistics import clopper_pearson


def words_released(mech: WordMechanism, ids, n: int, seed: int = 3) -> list[Released]:
    """One-word texts with ``n`` fresh draws each."""
    drawn = mech.sample(np.asarray(ids), n, Generator(PCG64(seed)))
    texts = mech.space.words(np.asarray(ids))
    return [
        Released(str(place), text, tuple(mech.space.words(drawn[:, place])))
        for place, text in enumerate(texts)
    ]


def share(found: list[Recovery], attack: str, n: int) -> float:
    (one,) = [each for each in found if (each.attack, each.n) == (attack, n)]
    assert one.applies
    assert one.word_share is not None
    return one.word_share


@pytest.mark.parametrize(
    ("file", "words", "queries"),
    [
        ("CMP/obfuscatedText_CMP_10", 0.81, 0.35),
        ("CMP/obfuscatedText_CMP_12.5", 0.95, 0.74),
        ("Mahalanobis/obfuscatedText_Mahalanobis_10", 0.76, 0.26),
        ("Mahalanobis/obfuscatedText_Mahalanobis_12.5", 0.91, 0.65),
        ("VickreyCMP/obfuscatedText_VickreyCMP_10", 0.71, 0.21),
        ("VickreyCMP/obfuscatedText_VickreyCMP_12.5", 0.92, 0.65),
        ("VickreyMhl/obfuscatedText_VickreyMhl_10", 0.52, 0.07),
    ],
)
def test_the_mode_recovers_what_was_published(
    shared_data: Path, file: str, words: float, queries: float
) -> None:
    releases = read_releases(shared_data / "reference" / "msmarco-dl19" / f"{file}.csv.gz")
    (found,) = reconstruct(releases, None, attacks=["mode"], counts=[50])
    assert found.n == 50
    assert found.queries == 43
    assert found.word_share == pytest.approx(words, abs=0.02)
    assert found.query_share == pytest.approx(queries, abs=0.02)


def test_variants_of_different_lengths_are_no_zero(toy: WordSpace) -> None:
    uneven = Released("1", "a b", ("a b", "b", "c e f"))
    releases = [uneven, uneven, Released("2", "a", ("a",))]
    cmp = mechanism("cmp", space=toy, epsilon=1.0)
    found = reconstruct(releases, cmp, rng=1)
    assert {each.attack for each in found} == set(ATTACKS)
    assert not any(each.applies for each in found)
    assert all(each.word_share is None and each.word_interval is None for each in found)
    assert "2 of 3 texts" in found[0].why
    assert strongest(found) is None


def test_the_mode_takes_the_first_seen_of_several() -> None:
    releases = [Released("1", "B a", ("c a,", "b f", "B a,", "c f"))]
    (found,) = reconstruct(releases, None, attacks=["mode"], counts=[4])
    assert found.words_right == 0
    (found,) = reconstruct(
        [Released("1", "B a", ("b a", "c f", "B f", "c a"))], None, attacks=["mode"], counts=[4]
    )
    assert (found.words_right, found.queries_right) == (2, 1)


def test_surrounding_punctuation_does_not_hide_a_word(toy: WordSpace) -> None:
    santext = mechanism("santext", space=toy, epsilon=50.0)
    releases = [Released("1", "(A) b, c!", ("(a) b, c!",) * 2)]
    found = reconstruct(releases, santext)
    assert share(found, "mode", 2) == share(found, "likelihood", 2) == 1.0


def test_unknown_words_count_among_all_words(toy: WordSpace) -> None:
    santext = mechanism("santext", space=toy, epsilon=50.0)
    releases = [Released("1", "a zzz", ("a c", "a e")), Released("2", "b", ("b", "b"))]
    found = reconstruct(releases, santext, counts=[2])
    assert share(found, "likelihood", 2) == pytest.approx(2 / 3)
    assert strongest(found).queries_right == 1


def test_words_left_out_do_not_shift_the_others_out_of_sight(toy: WordSpace) -> None:
    releases = [Released("1", "a zzz b", ("a b", "a b", "a c"))]
    (found,) = reconstruct(releases, None, attacks=["mode"], counts=[3])
    assert (found.words, found.words_right, found.queries_right) == (3, 2, 0)


@pytest.mark.parametrize("spec", ["santext:epsilon=1.5", "tem:epsilon=2", "santext:sensitive=0.5"])
@pytest.mark.parametrize("frequencies", [None, [1.0, 9.0, 2.0, 4.0, 1.0]])
def test_the_likelihood_attack_is_bayes_rule(toy: WordSpace, spec: str, frequencies) -> None:
    mech = mechanism(spec, space=toy)
    ids = Generator(PCG64(7)).integers(5, size=60)
    releases = words_released(mech, ids, 4)
    prior = "uniform" if frequencies is None else np.array(frequencies)
    found = reconstruct(releases, mech, prior=prior, counts=[1, 2], attacks=["likelihood"])
    law = np.exp(mech.log_probabilities(np.arange(5)))
    weights = np.ones(5) if frequencies is None else np.array(frequencies)
    for n in (1, 2):
        right = 0
        for true, release in zip(ids, releases, strict=True):
            seen = [toy.id(word) for word in release.variants[:n]]
            right += int(np.argmax(weights * law[:, seen].prod(axis=1)) == true)
        assert share(found, "likelihood", n) == right / 60


@pytest.mark.parametrize("spec", ["wbb:epsilon=1,n=20", "custext:compat=knn,k=10,epsilon=1"])
def test_the_intersection_attack_is_bayes_rule_for_boxes(small_space: WordSpace, spec: str) -> None:
    mech = mechanism(spec, space=small_space)
    ids = Generator(PCG64(7)).choice(2000, 100, replace=False)
    releases = words_released(mech, ids, 6)
    found = reconstruct(releases, mech, counts=[2, 6], attacks=["intersection"])
    law = mech.log_probabilities(np.arange(2000))
    for n in (2, 6):
        right, survivors = 0, []
        for true, release in zip(ids, releases, strict=True):
            seen = small_space.ids(release.variants[:n])
            scores = law[:, seen].sum(axis=1)
            survivors.append(np.isfinite(scores).sum())
            same = n >= 3 and len(set(seen)) == 1
            right += int((seen[0] if same else scores.argmax()) == true)
        (one,) = [each for each in found if each.n == n]
        assert one.word_share == right / 100
        assert one.survivors == pytest.approx(np.mean(survivors))


@pytest.fixture(scope="module")
def frequent_words(default_space: WordSpace) -> WordSpace:
    """The five thousand most frequent words of the default space."""
    few = np.arange(5000)
    return WordSpace.from_arrays(default_space.words(few), default_space.vectors[few], "frequent")


def test_boxes_give_words_away(frequent_words: WordSpace) -> None:
    ids = Generator(PCG64(1)).choice(5000, 300, replace=False)
    wbb = mechanism("wbb:epsilon=1,k=4,n=50", space=frequent_words)
    found = reconstruct(words_released(wbb, ids, 20), wbb, attacks=["intersection", "mode"])
    assert share(found, "intersection", 1) < 0.06
    assert share(found, "intersection", 5) == pytest.approx(0.89, abs=0.06)
    assert share(found, "intersection", 20) == pytest.approx(0.99, abs=0.02)
    assert share(found, "mode", 20) == 0.0
    assert strongest(found).attack == "intersection"


def test_overlapping_groups_give_words_away(default_space: WordSpace) -> None:
    ids = Generator(PCG64(1)).choice(5000, 200, replace=False)
    few = np.arange(5000)
    space = WordSpace.from_arrays(default_space.words(few), default_space.vectors[few], "frequent")
    mech = mechanism("custext:compat=knn,k=10,epsilon=1", space=space)
    found = reconstruct(words_released(mech, ids, 20), mech, attacks=["intersection"], counts=[20])
    assert share(found, "intersection", 20) >= 0.97


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "known"), [(2, 0.855)])
def test_santext_is_read_off_twenty_draws(
    default_space: WordSpace, epsilon: float, known: float
) -> None:
    ids = Generator(PCG64(1)).choice(default_space.size, 200, replace=False)
    mech = mechanism("santext", space=default_space, epsilon=epsilon)
    found = reconstruct(words_released(mech, ids, 20), mech, attacks=["likelihood"], counts=[20])
    low, high = clopper_pearson(round(200 * share(found, "likelihood", 20)), 200, 0.99)
    assert low - 0.03 <= known <= high + 0.03


def test_words_left_in_clear_are_seen_to_be(small_space: WordSpace) -> None:
    wbb = mechanism("wbb:epsilon=1,n=20", space=small_space)
    releases = [Released("1", "word7 word9", ("word7 word11",) * 3)]
    found = reconstruct(releases, wbb, counts=[3])
    assert share(found, "intersection", 3) == 0.5


def test_attacks_say_why_they_do_not_apply(small_space: WordSpace, toy: WordSpace) -> None:
    wbb = mechanism("wbb", space=small_space)
    box = small_space.words(wbb.laws(small_space.ids(["word1"]))[0][0][:2])
    releases = [Released("1", "word1", tuple(box))]
    cmp = mechanism("cmp", space=small_space, epsilon=5.0)
    for mech, names in (
        (None, set(ATTACKS) - {"mode"}),
        (cmp, {"likelihood", "intersection", "cell"}),
        (wbb, {"likelihood", "sampled", "cell"}),
        (mechanism("santext", space=small_space), {"intersection", "sampled", "cell"}),
    ):
        found = reconstruct(releases, mech, rng=1)
        assert {each.attack for each in found if not each.applies} == names
        assert all(bool(each.why) != each.applies for each in found)
    once = reconstruct(releases, cmp, release="once", rng=1, counts=[1, 2])
    apart = {(each.attack, each.n) for each in once if not each.applies}
    assert apart == {
        (name, n) for name in ("likelihood", "intersection", "sampled") for n in (1, 2)
    } | {("cell", 1)}


def test_the_headline_is_the_strongest_attack_and_no_bound() -> None:
    weak = Recovery("mode", 5, 10, 1, 5, 0)
    strong = Recovery("cell", 5, 10, 4, 5, 1)
    bound = Recovery("ceiling", 5, 10, 9, 5, 3, bound=True)
    absent = Recovery("sampled", 5, applies=False, why="no")
    assert strongest([weak, absent, strong, bound]) is strong
    assert strongest([absent, bound]) is None
    low, high = strong.word_interval
    assert (low, high) == tuple(map(float, clopper_pearson(4, 10)))
    assert strong.to_dict()["word_share"] == 0.4


def test_all_variants_are_attacked_unless_told_otherwise() -> None:
    releases = [Released("1", "a", ("b",) * 7), Released("2", "a", ("b", "c"))]
    assert [each.n for each in reconstruct(releases, None, attacks=["mode"])] == [1, 5, 7]
    assert [each.n for each in reconstruct(releases, None, attacks=["mode"], counts=[3, 9])] == [
        3,
        7,
    ]


def test_bad_questions_are_refused(toy: WordSpace) -> None:
    releases = [Released("1", "a", ("b",))]
    santext = mechanism("santext", space=toy)
    for wrong in (
        {"attacks": ["secretword"]},
        {"counts": [0]},
        {"counts": []},
        {"prior": np.ones(4)},
        {"prior": np.zeros(5)},
        {"prior": "secretword"},
        {"release": "secretword"},
        {"release": "once"},
    ):
        with pytest.raises(UsageError) as error:
            reconstruct(releases, santext, **wrong)
        assert "secretword" not in str(error.value)
    for nothing in ([], [Released("1", "a", ())], [Released("1", "  ", ("b",))]):
        with pytest.raises(UsageError):
            reconstruct(nothing, None)


def test_words_that_may_not_be_released_can_be_guessed(small_space: WordSpace) -> None:
    half = small_space.with_output(OutputVocabulary("even", np.arange(0, 2000, 2)))
    mech = mechanism("santext", space=half, epsilon=4.0)
    ids = np.arange(1, 400, 4)
    found = reconstruct(words_released(mech, ids, 50), mech, attacks=["likelihood", "mode"])
    assert share(found, "mode", 50) == 0.0
    assert share(found, "likelihood", 50) > 0.5


def test_nothing_of_a_text_is_in_a_repr(toy: WordSpace) -> None:
    texts = [Released("1", "secretword", ("a",))]
    found = reconstruct(texts, mechanism("santext", space=toy))
    assert "secretword" not in repr(found)


def test_the_pipeline_of_obfuscate_is_attacked_as_it_is(small_space: WordSpace) -> None:
    mech = mechanism("cmp", space=small_space, epsilon=200.0)
    results = Obfuscator(mech, n=3, rng=4).obfuscate(["word5, word6!", "word7"])
    releases = [Released(str(i), r.text, r.variants) for i, r in enumerate(results)]
    found = reconstruct(releases, mech, rng=1, counts=[3])
    assert share(found, "mode", 3) == share(found, "sampled", 3) == 1.0
    assert strongest(found).query_share == 1.0


def test_priors_come_from_ranks_or_from_a_log(toy: WordSpace) -> None:
    np.testing.assert_allclose(by_rank(toy), [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5])
    assert counted(toy, ["A b, zzz", "b"]).tolist() == [2.0, 3.0, 1.0, 1.0, 1.0]
