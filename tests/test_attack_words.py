"""The attacks on words and queries: Bayes' rule, exactly, and never worse for knowing more."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from exact_evidence import NoEvidence, PlainLaw, released
from numpy.random import PCG64, Generator
from scipy.stats import binomtest

from sottovoce import Obfuscator, mechanism
from sottovoce.errors import UsageError
from sottovoce.privacy.attacks import words as words_module
from sottovoce.privacy.attacks.cut_log import CutLog
from sottovoce.privacy.attacks.evidence_kinds import evidence_for
from sottovoce.privacy.attacks.language import Bigrams
from sottovoce.privacy.attacks.places import PlacedText, line_up
from sottovoce.privacy.attacks.priors import Prior
from sottovoce.privacy.attacks.queries import AlignedLog, nearest_queries, rank_queries
from sottovoce.privacy.attacks.releases import Released
from sottovoce.privacy.attacks.words import (
    Share,
    TextWords,
    WordRecovery,
    evidence_rows,
    recover_words,
)
from sottovoce.spaces.space import WordSpace

SIZE = 40


@pytest.fixture(scope="module")
def space() -> WordSpace:
    vectors = Generator(PCG64(5)).standard_normal((SIZE, 3))
    return WordSpace.from_arrays([f"w{number:02}" for number in range(SIZE)], vectors)


def texts_of_a_chain(seed: int, count: int) -> list[np.ndarray]:
    """Texts of three to six words; a word is followed by one of few, mostly frequent ones."""
    rng, followers = Generator(PCG64(seed)), Generator(PCG64(1))
    chances = 1 / np.arange(1, SIZE + 1)
    chances /= chances.sum()
    follow = [followers.choice(SIZE, 4, replace=False, p=chances) for _ in range(SIZE)]
    texts = []
    for _ in range(count):
        text = [int(rng.choice(SIZE, p=chances))]
        for _ in range(rng.integers(2, 6)):
            text.append(int(rng.choice(follow[text[-1]])))
        texts.append(np.array(text))
    return texts


def spelled(space: WordSpace, texts: list[np.ndarray]) -> list[str]:
    return [" ".join(space.words(text)) for text in texts]


def placed(releases: list[Released], space: WordSpace) -> list[PlacedText]:
    return line_up(releases, space)[0]


def right(recovery: WordRecovery) -> int:
    return sum(text.right for text in recovery.by_text)


def test_guesses_equal_bayes_rule_by_hand(space: WordSpace) -> None:
    santext = mechanism("santext:epsilon=2", space=space)
    truths = texts_of_a_chain(2, 40)
    releases = released(santext, truths, 3, seed=3)
    weights = Generator(PCG64(4)).random(SIZE + 1) + 0.05
    (found,) = recover_words(
        PlainLaw(santext), placed(releases, space), [Prior.of("given", weights)]
    )
    law = np.exp(santext.log_probabilities(np.arange(SIZE)))
    for truth, release, text in zip(truths, releases, found.by_text, strict=True):
        guesses = [
            np.argmax(weights[:-1] * law[:, space.ids(shown)].prod(axis=1))
            for shown in zip(*(variant.split() for variant in release.variants), strict=True)
        ]
        assert text.right == int((np.array(guesses) == truth).sum())
        assert text.whole == bool((np.array(guesses) == truth).all())
    assert (found.attack, found.knows) == ("given", "the mechanism (exact law)")


def test_query_scores_equal_bayes_rule_by_hand(space: WordSpace) -> None:
    santext = mechanism("santext:epsilon=1.5", space=space)
    queries = [*spelled(space, texts_of_a_chain(6, 200)), "w01 zzz w02", "yyy w03 w02"]
    attacked = [space.ids(text.split()) for text in queries[:25]]
    texts = placed(released(santext, attacked, 2, seed=7), space)
    aligned = AlignedLog.of(CutLog.of(queries, space))
    law = np.exp(santext.log_probabilities(np.arange(SIZE)))
    pairs = list(evidence_rows(PlainLaw(santext), texts))
    ranks = [query.rank for query in rank_queries(pairs, aligned)]
    for (text, rows), rank in zip(pairs, ranks, strict=True):
        by_hand = {}
        for query in aligned.log.queries:
            ids = space.ids(query.split())
            if len(ids) == len(text.places):
                # A word that the space lacks was one of the output vocabulary, each as likely.
                rest = [
                    law[:, place.seen].prod(axis=1).mean()
                    if word < 0
                    else law[word, place.seen].prod()
                    for word, place in zip(ids, text.places, strict=True)
                ]
                by_hand[query] = float(np.prod(rest))
        scored = aligned.score(rows, text.shape)
        found = [aligned.log.queries[number] for number in scored.queries]
        assert set(found) == set(by_hand)
        expected = np.log([by_hand[query] for query in found])
        frequency = np.log(aligned.log.counts[scored.queries])
        assert np.diff(scored.scores) == pytest.approx(np.diff(expected + frequency), abs=1e-3)
        own = by_hand[text.text] * aligned.log.counts[aligned.log.numbers[text.text]]
        weighted = [
            chance * aligned.log.counts[aligned.log.numbers[query]]
            for query, chance in by_hand.items()
        ]
        assert rank == 1 + sum(chance > own * (1 + 1e-5) for chance in weighted)


def test_the_evidence_of_a_mechanism_gives_the_same_guesses(space: WordSpace) -> None:
    santext = mechanism("santext:epsilon=2", space=space)
    texts = placed(released(santext, texts_of_a_chain(2, 40), 3, seed=3), space)
    models = [Prior.uniform(space)]
    plain = recover_words(PlainLaw(santext), texts, models)
    assert recover_words(evidence_for(santext, "independent"), texts, models) == plain


def test_one_noisy_point_is_seen_through_where_noise_is_small(space: WordSpace) -> None:
    cmp = mechanism("cmp:epsilon=60", space=space)
    originals = spelled(space, texts_of_a_chain(19, 20))
    results = Obfuscator(cmp, n=3, release="once", rng=20).obfuscate(originals)
    releases = [
        Released(str(number), text, result.variants)
        for number, (text, result) in enumerate(zip(originals, results, strict=True))
    ]
    texts, _ = line_up(releases, space, release="once")
    (found,) = recover_words(evidence_for(cmp, "once", rng=1), texts, [Prior.uniform(space)])
    assert found.knows == "the mechanism (one noisy point)"
    assert found.words.low > 1 / 3  # A blind guess among the three words shown.


def test_knowing_more_is_never_worse(space: WordSpace) -> None:
    santext = mechanism("santext:epsilon=1.5", space=space)
    truths = texts_of_a_chain(8, 600)
    log = CutLog.of(spelled(space, texts_of_a_chain(9, 4000)), space)
    models = [Prior.uniform(space), Prior.from_log(log), Bigrams.of(log)]
    recoveries = recover_words(
        PlainLaw(santext), placed(released(santext, truths, 2, 10), space), models
    )
    for less, more in itertools.pairwise(recoveries):
        gains = [b.right - a.right for a, b in zip(less.by_text, more.by_text, strict=True)]
        better, worse = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
        assert binomtest(better, better + worse, alternative="greater").pvalue < 1e-4
    assert right(recoveries[2]) > right(recoveries[1]) > right(recoveries[0])
    assert recoveries[2].words.low > recoveries[0].words.high


def test_without_evidence_the_prior_decides(space: WordSpace) -> None:
    santext = mechanism("santext:epsilon=1.5", space=space)
    constant = [
        Released(str(number), text, ("w07 w07 w07",) * 4)
        for number, text in enumerate(("w03 w05 w03", "w05 w05 w05", "w07 w07 w07"))
    ]
    weights = np.ones(SIZE + 1)
    weights[5] = 2.0
    weights[-1] = 50.0  # That a word is unknown is no guess, however likely.
    (found,) = recover_words(
        NoEvidence(santext), placed(constant, space), [Prior.of("given", weights)]
    )
    assert [text.right for text in found.by_text] == [1, 3, 0]
    assert [text.whole for text in found.by_text] == [False, True, False]


def test_where_the_truth_is_released_everything_is_right(space: WordSpace) -> None:
    santext = mechanism("santext:epsilon=5000", space=space)
    truths = texts_of_a_chain(11, 30)
    log = CutLog.of(spelled(space, truths), space)
    texts = placed(released(santext, truths, 2, 12), space)
    models = [Prior.uniform(space), Prior.from_log(log), Bigrams.of(log)]
    for found in recover_words(PlainLaw(santext), texts, models):
        assert found.words.value == found.whole.value == 1
        assert found.words.high == 1 > found.words.low > 0.8
    ranked = rank_queries(evidence_rows(PlainLaw(santext), texts), AlignedLog.of(log))
    assert [(query.rank, query.ties) for query in ranked] == [(1, 0)] * len(texts)


def test_batches_change_nothing(space: WordSpace, monkeypatch: pytest.MonkeyPatch) -> None:
    santext = mechanism("santext:epsilon=1.5", space=space)
    texts = placed(released(santext, texts_of_a_chain(13, 30), 2, 14), space)
    reported: list[tuple[int, int]] = []
    whole = list(evidence_rows(PlainLaw(santext), texts, lambda *counts: reported.append(counts)))
    places = sum(len(text.places) for text in texts)
    assert reported[-1] == (places, places)
    for at_a_time in (1, 4, 7):
        monkeypatch.setattr(words_module, "PLACES_AT_A_TIME", at_a_time)
        for (text, rows), (same, again) in zip(
            whole, evidence_rows(PlainLaw(santext), texts), strict=True
        ):
            assert text is same
            assert (rows == again).all()


def test_unknown_words_count_and_are_not_recovered(toy: WordSpace) -> None:
    santext = mechanism("santext:epsilon=50", space=toy)
    releases = [Released("1", "b zzz", ("b c", "b c")), Released("2", "e", ("e", "e"))]
    (found,) = recover_words(PlainLaw(santext), placed(releases, toy), [Prior.uniform(toy)])
    assert (found.words.right, found.words.total) == (2, 3)
    assert [text.whole for text in found.by_text] == [False, True]
    assert "zzz" not in json.dumps(found.to_dict())


def test_words_in_clear_are_read_wherever_they_stand(toy: WordSpace) -> None:
    variants = ("c zzz b", "e zzz c", "f zzz f")
    releases = [Released("1", "a zzz b", variants)]
    texts, _ = line_up(releases, toy, release="once")
    (found,) = recover_words(
        NoEvidence(mechanism("santext", space=toy)),
        texts,
        [Prior.of("b", np.array([1, 3, 1, 1, 1, 1.0]))],
    )
    assert found.by_text == (TextWords("1", 2, 2, 1, 0, False),)


def test_words_without_a_place_count_wherever_they_are_guessed(toy: WordSpace) -> None:
    santext = mechanism("santext:epsilon=50", space=toy)
    releases = [Released("1", "b zzz c c", ("c b", "c b"))]
    (found,) = recover_words(PlainLaw(santext), placed(releases, toy), [Prior.uniform(toy)])
    assert found.by_text == (TextWords("1", 4, 2, 0, 0, False),)


def test_scores_of_a_permuted_log_are_permuted(space: WordSpace) -> None:
    queries = [*spelled(space, texts_of_a_chain(15, 120)), "w01, w02 w03?", "w04, w05 w01?"]
    log = AlignedLog.of(CutLog.of(queries, space))
    order = Generator(PCG64(16)).permutation(len(queries))
    permuted = AlignedLog.of(CutLog.of([queries[number] for number in order], space))
    rows = Generator(PCG64(17)).normal(0, 3, (3, SIZE + 1)).astype(np.float32)
    for shape in (None, ("", ",", "", "?"), ("", "", "", "")):
        by_query = [
            {
                aligned.log.queries[n]: score
                for n, score in zip(*aligned.score(rows, shape), strict=True)
            }
            for aligned in (log, permuted)
        ]
        assert by_query[0] == by_query[1]
        assert by_query[0]
    assert len(log.score(rows, ("", ",", "", "?")).queries) == 2
    assert len(log.score(rows, ("!", "", "", "")).queries) == 0
    assert len(log.score(rows[:1]).queries) == 0


def test_ranks_of_ties_and_of_the_impossible_are_in_the_middle(space: WordSpace) -> None:
    log = AlignedLog.of(CutLog.of(["w01 w02", "w03 w04", "w05 w06", "w07", "w08"], space))
    rows = np.zeros((2, SIZE + 1), dtype=np.float32)
    assert log.score(rows).rank(1, 5) == (2, 2)
    assert log.score(rows).rank(3, 5) == (4.5, 1)
    rows[0, 1] = 1000.0
    assert [log.score(rows).rank(number, 5) for number in range(3)] == [(1, 0), (2.5, 1), (2.5, 1)]
    rows[0, 3] = -np.inf
    assert log.score(rows).rank(1, 5) == (4, 2)
    assert log.score(rows).best == 0
    assert log.score(np.full((2, SIZE + 1), -np.inf, dtype=np.float32)).best == -1


def test_counts_of_a_log_are_believed(space: WordSpace) -> None:
    log = AlignedLog.of(CutLog.of(["w01", "w02", "w02", "w02", "w03"], space))
    scored = log.score(np.zeros((1, SIZE + 1), dtype=np.float32))
    assert scored.rank(log.log.numbers["w02"], 3) == (1, 0)
    assert log.name == "log of 3 queries, with counts"


def test_a_query_that_the_log_lacks_is_judged_by_the_nearest(space: WordSpace) -> None:
    santext = mechanism("santext:epsilon=5000", space=space)
    texts = placed(released(santext, [np.array([1, 2, 3])], 2, 18), space)
    pairs = list(evidence_rows(PlainLaw(santext), texts))
    log = AlignedLog.of(CutLog.of(["w01 w02 w03", "w04 w02 w09", "w03 w03, w03"], space))
    rank_queries(pairs, log)
    with pytest.raises(UsageError, match="nearest_queries"):
        rank_queries(pairs, AlignedLog.of(CutLog.of(["w09"], space)))

    class Letters:
        name, dimension, fingerprint = "letters", 2, "letters"

        def encode(self, texts):
            return np.array([[1.0, 0.0] if "w02" in text else [0.6, 0.8] for text in texts])

    (nearest,) = nearest_queries(pairs, log, encoder=Letters())
    assert nearest.query == "w04 w02 w09"
    assert nearest.common == pytest.approx(1 / 3)
    assert nearest.cosine == pytest.approx(1.0)
    assert "w04" not in repr(nearest)
    (none,) = nearest_queries(pairs, AlignedLog.of(CutLog.of(["w09"], space)))
    assert (none.query, none.common, none.cosine) == (None, 0.0, None)


def test_intervals_resample_texts() -> None:
    share = Share.by_text([4, 0] * 20, [4, 4] * 20)
    assert share.value == 0.5
    # Forty texts, all or nothing: as wide as forty coins, not as 160.
    assert share.high - share.low == pytest.approx(0.31, abs=0.03)
    assert Share.by_text([0] * 20, [5] * 20).high == pytest.approx(0.15)
    assert Share.by_text([], []).value is None
    assert Share.of_texts([]).value is None
