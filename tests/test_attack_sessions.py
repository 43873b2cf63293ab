"""Several releases of a text add up and show that they belong together; subjects are compared."""

from __future__ import annotations

import numpy as np
import pytest
from exact_evidence import NoEvidence, PlainLaw, released
from numpy.random import PCG64, Generator

from sottovoce import mechanism
from sottovoce.encoders.base import corpus_vectors
from sottovoce.errors import UsageError
from sottovoce.privacy.attacks.places import line_up
from sottovoce.privacy.attacks.priors import Prior
from sottovoce.privacy.attacks.releases import Released
from sottovoce.privacy.attacks.sessions import (
    link,
    link_scores,
    recover_asked_again,
    recover_over_searches,
)
from sottovoce.privacy.attacks.subject import (
    alike_from,
    as_query,
    fused_top,
    same_subjects,
    shown_by_answers,
)
from sottovoce.privacy.attacks.words import recover_words
from sottovoce.spaces.space import WordSpace

SIZE = 40


@pytest.fixture(scope="module")
def space() -> WordSpace:
    vectors = Generator(PCG64(5)).standard_normal((SIZE, 3))
    return WordSpace.from_arrays([f"w{number:02}" for number in range(SIZE)], vectors)


def texts(seed: int, count: int) -> list[np.ndarray]:
    rng = Generator(PCG64(seed))
    return [rng.integers(SIZE, size=rng.integers(2, 5)) for _ in range(count)]


def test_askings_add_up(space: WordSpace) -> None:
    santext, truths = mechanism("santext:epsilon=1.5", space=space), texts(1, 150)
    releases = [released(santext, truths, 2, seed) for seed in (2, 3, 4)]
    askings = [line_up(release, space)[0] for release in releases]
    evidence, prior = PlainLaw(santext), Prior.uniform(space)
    found = recover_asked_again(evidence, askings, prior)
    # Two askings of two variants are one of four.
    joined = [
        Released(first.id, first.text, first.variants + second.variants)
        for first, second in zip(releases[0], releases[1], strict=True)
    ]
    (together,) = recover_words(evidence, line_up(joined, space)[0], [prior])
    assert found[1].by_text == together.by_text
    shares = [recovery.words for recovery in found]
    assert shares[0].value < shares[1].value < shares[2].value
    assert shares[0].high < shares[2].low
    with pytest.raises(UsageError, match="same texts"):
        recover_asked_again(evidence, [askings[0], askings[1][1:]], prior)


def test_searches_on_one_subject_show_its_words_one_by_one(space: WordSpace) -> None:
    santext = mechanism("santext:epsilon=5000", space=space)
    sessions = [
        line_up(released(santext, [np.array(ids) for ids in session], 2, 1), space)[0]
        for session in ([[1, 2], [2, 3]], [[4, 5]])
    ]
    shares = recover_over_searches(PlainLaw(santext), sessions, Prior.uniform(space))
    assert [(share.right, share.total) for share in shares] == [(4, 4), (5, 5)]
    only_two = Prior.of("w02", np.where(np.arange(SIZE + 1) == 2, 2.0, 1.0))
    shares = recover_over_searches(NoEvidence(santext), sessions, only_two)
    assert [(share.right, share.total) for share in shares] == [(1, 4), (1, 5)]


def test_links_are_the_log_odds_of_one_text(space: WordSpace) -> None:
    prior = Prior.of("given", Generator(PCG64(1)).random(SIZE + 1) + 0.1)
    rows = [
        Generator(PCG64(seed)).normal(0, 2, (length, SIZE + 1)).astype(np.float32)
        for seed, length in ((1, 2), (2, 2), (3, 3))
    ]
    scores = link_scores(rows, prior)
    weights = np.exp(prior.log_weights)
    chances = [np.exp(places.astype(float)) for places in rows]
    by_hand = sum(
        np.log((weights * first * second).sum())
        - np.log((weights * first).sum())
        - np.log((weights * second).sum())
        for first, second in zip(chances[0], chances[1], strict=True)
    )
    assert scores[0, 1] == scores[1, 0] == pytest.approx(by_hand, abs=1e-5)
    assert scores[0, 2] == -np.inf


def test_releases_of_one_text_belong_together(space: WordSpace) -> None:
    truths = [ids for ids in texts(6, 30) if len(ids) == 3] * 2
    truths = [*truths, np.array([1, 2])]
    prior = Prior.uniform(space)
    areas = []
    for epsilon in (1e-6, 2, 5000):
        santext = mechanism(f"santext:epsilon={epsilon}", space=space)
        placed, _ = line_up(released(santext, truths, 3, 7), space)
        linkage = link(PlainLaw(santext), placed, prior)
        assert linkage.same == len(truths) // 2
        assert linkage.different > linkage.different_same_shape > 0
        assert linkage.low <= linkage.auc <= linkage.high
        areas.append(linkage.auc_same_shape)
    assert abs(areas[0] - 0.5) < 0.25
    assert areas[0] + 0.1 < areas[1]
    assert areas[2] == 1
    with pytest.raises(UsageError, match="several releases"):
        link(PlainLaw(santext), placed[:1], prior)


class LetterEncoder:
    """Texts are as alike as the letters they have."""

    name, dimension, fingerprint, exact_batches = "letters", 26, "letters", True

    def encode(self, texts) -> np.ndarray:
        counts = np.array([[text.count(chr(97 + at)) for at in range(26)] for text in texts])
        lengths = np.linalg.norm(counts, axis=1, keepdims=True)
        return (counts / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def test_a_subject_is_more_alike_than_random_pairs() -> None:
    rng = Generator(PCG64(8))
    letters = [chr(97 + at) for at in range(26)]
    background = ["".join(rng.choice(letters, 6)) for _ in range(300)]
    truths = background[:100]
    encoder = LetterEncoder()
    right = same_subjects(truths, [text[::-1] for text in truths], encoder, background)
    assert right.same.value == 1
    blind = same_subjects(truths, background[100:200], encoder, background)
    assert blind.same.low <= 0.05 <= blind.same.high
    assert blind.threshold == right.threshold
    blank = same_subjects(truths, [""] * 100, encoder, background)
    assert blank.same.value == 0
    with pytest.raises(UsageError, match="two different"):
        same_subjects(truths, truths, encoder, ["a"])


def test_vectors_of_the_background_on_disk_give_the_same_threshold(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path))
    background = [f"{first}{second}  " for first in "abcde" for second in "abxyz"] + [" "]
    encoded = alike_from(LetterEncoder(), background)
    corpus_vectors(LetterEncoder(), background)
    monkeypatch.setattr(LetterEncoder, "encode", None)
    assert alike_from(LetterEncoder(), background) == encoded


def test_guessed_words_become_a_query_of_content_words() -> None:
    assert as_query(["the", "skin", "of", "cancer"]) == "skin cancer"


def test_answers_are_fused_by_reciprocal_ranks() -> None:
    answers = [["a", "b", "c"], ["b", "d"], ["b", "a", "e"]]
    assert fused_top(answers, 2) == ["b", "a"]
    assert shown_by_answers(["a", "b", "x", "y"], answers, 4) == 0.5
    assert shown_by_answers(["x"], answers) == 0
    assert shown_by_answers([], answers) is None
