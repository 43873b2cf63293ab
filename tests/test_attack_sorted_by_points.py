"""Many words off one point, in random order: the noisy points say which belong together."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.random import PCG64, Generator
from scipy.optimize import linear_sum_assignment

from sottovoce import Obfuscator, mechanism
from sottovoce.privacy import QueryLog, Released, attack
from sottovoce.privacy.attacks import separating_points, sorted_by_points
from sottovoce.privacy.attacks.evidence_kinds import evidence_for
from sottovoce.privacy.attacks.one_point import OnePoint
from sottovoce.privacy.attacks.places import line_up
from sottovoce.privacy.attacks.separating_points import SeparatingPoints, Shown
from sottovoce.privacy.attacks.sorted_by_points import sort_by_points
from sottovoce.privacy.attacks.unordered import find_places
from sottovoce.spaces.space import OutputVocabulary, WordSpace
from sottovoce.text import TextPipeline

SIZE = 800
LENGTHS = (4, 5, 6, 5)


@pytest.fixture(scope="module")
def crowded() -> WordSpace:
    """So few words that the hundred nearest to two points are often the same."""
    vectors = Generator(PCG64(1)).standard_normal((SIZE, 60)) * np.linspace(0.4, 1.6, 60)
    return WordSpace.from_arrays([f"w{number:03}" for number in range(SIZE)], vectors)


def made_up(lengths, seed):
    """Texts of so many words each."""
    rng = Generator(PCG64(seed))
    return [" ".join(f"w{word:03}" for word in rng.integers(SIZE, size=k)) for k in lengths]


TEXTS = made_up(LENGTHS, 2)


def released(mech, texts, n, order):
    """Variants off one point for each word, the same in order and not."""
    pipeline = TextPipeline(order=order, punctuation="drop")
    obfuscator = Obfuscator(mech, n=n, release="once", pipeline=pipeline, rng=4)
    results = enumerate(obfuscator.obfuscate(texts))
    return [Released(str(row), result.text, result.variants) for row, result in results], pipeline


def shown_ids(text):
    return np.array(text.seen())


def together(ids, truth):
    """The share of words that stand with those of their own place, (places, variants) both."""
    same = np.array([[(row == true).mean() for true in truth] for row in ids])
    rows, columns = linear_sum_assignment(-same)
    return float(same[rows, columns].mean())


class Case:
    """One release of some texts: what belongs together, and what k-means takes for that."""

    def __init__(self, space: WordSpace, spec: str, n: int) -> None:
        self.mechanism = mechanism(spec, space=space)
        self.evidence = evidence_for(self.mechanism, "once", rng=1)
        assert isinstance(self.evidence, OnePoint)
        placed = {}
        for order in ("kept", "shuffled"):
            releases, pipeline = released(self.mechanism, TEXTS, n, order)
            placed[order], _ = line_up(releases, space, release="once", pipeline=pipeline)
        self.in_order = placed["kept"]
        self.truth = [shown_ids(text) for text in self.in_order]
        self.rough = find_places(placed["shuffled"], space, "once")

    def right(self, texts) -> float:
        """The mean share of words that stand where they belong."""
        pairs = zip(texts, self.truth, strict=True)
        return float(np.mean([together(shown_ids(text), truth) for text, truth in pairs]))


@pytest.fixture(autouse=True)
def few_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as it takes here."""
    monkeypatch.setattr(sorted_by_points, "TURNS", 12)


@pytest.mark.parametrize("name", ["cmp", "mahalanobis", "vickrey-cmp"])
def test_words_that_run_into_each_other_are_sorted(crowded, name):
    case = Case(crowded, f"{name}:epsilon=8", n=80)
    assert case.right(case.rough) < 0.7
    assert case.right(sort_by_points(case.rough, case.evidence)) > case.right(case.rough) + 0.15


def test_every_variant_keeps_its_words_and_texts_do_not_depend_on_each_other(crowded):
    case = Case(crowded, "cmp:epsilon=8", n=80)
    found = sort_by_points(case.rough, case.evidence)
    assert found != case.rough
    for text, truth, rough in zip(found, case.truth, case.rough, strict=True):
        np.testing.assert_array_equal(np.sort(shown_ids(text), axis=0), np.sort(truth, axis=0))
        (alone,) = sort_by_points([rough], case.evidence)
        assert together(shown_ids(alone), shown_ids(text)) > 0.9


def test_what_is_right_already_stays(crowded):
    """Places with all words inside are not given up for others."""
    case = Case(crowded, "cmp:epsilon=8", n=40)
    assert sort_by_points(case.in_order, case.evidence) == case.in_order


def test_few_variants_and_other_releases_are_left_alone(crowded):
    """Of few, k-means finds the places; of fresh draws there is no point to find."""
    few, many = (Case(crowded, "cmp:epsilon=8", n) for n in (20, 30))
    assert sort_by_points(few.rough, few.evidence) == few.rough
    fresh = evidence_for(many.mechanism, "independent", rng=1)
    assert sort_by_points(many.rough, fresh) == many.rough


def test_words_that_cannot_have_been_released_are_left_alone(crowded):
    case = Case(crowded, "cmp:epsilon=8", n=30)
    half = crowded.with_output(OutputVocabulary("half", np.arange(0, SIZE, 2)))
    of_another = evidence_for(mechanism("cmp:epsilon=8", space=half), "once", rng=1)
    assert sort_by_points(case.rough, of_another) == case.rough


def test_sending_more_variants_does_not_look_safer_than_it_is(crowded, monkeypatch):
    """The attack names more queries by places that are sorted by points than by k-means alone."""
    cmp = mechanism("cmp:epsilon=2", space=crowded)
    log = made_up([5] * 500, 3)
    releases, pipeline = released(cmp, log[:8], 60, "shuffled")

    def named() -> float:
        report = attack(
            releases,
            mechanism=cmp,
            release="once",
            pipeline=pipeline,
            log=QueryLog(log),
            counts=[60],
            attacks=["aligned"],
            rng=1,
        )
        ((_, inference),) = report.inferences
        return float(np.mean([query.rank == 1 for query in inference.queries]))

    by_points = named()
    monkeypatch.setattr(sorted_by_points, "MANY_VARIANTS", 60)
    assert by_points > named() + 0.2


def separated(space, unsure_too):
    """How often words near to a point, kept aside, score above those that are not near to it."""
    evidence = OnePoint.of(mechanism("cmp:epsilon=8", space=space), rng=Generator(PCG64(0)))
    separating = SeparatingPoints(evidence.slopes, evidence.levels)
    points = Generator(PCG64(6)).standard_normal((20, space.dimension))
    above = []
    for point in points:
        nearest = np.sort(np.argsort(np.linalg.norm(space.vectors - point, axis=1))[:40])
        shown, kept = nearest[::2], nearest[1::2]
        unsure = nearest if unsure_too else shown
        (x,) = separating.of([Shown(shown, unsure, 40, evidence.guess(shown))])
        scores = evidence.scores(x[None])[0]
        above.append((scores[kept][:, None] > np.delete(scores, nearest)).mean())
    return np.mean(above)


def test_points_tell_words_kept_aside_from_words_that_are_not_near(crowded):
    assert separated(crowded, unsure_too=True) > 0.95


def test_points_are_not_pushed_away_by_words_that_may_belong_to_them(crowded):
    assert separated(crowded, unsure_too=True) > separated(crowded, unsure_too=False) + 0.01


def test_places_in_blocks_have_the_points_they_have_alone(crowded, monkeypatch):
    evidence = OnePoint.of(mechanism("cmp:epsilon=8", space=crowded), rng=Generator(PCG64(0)))
    rng = Generator(PCG64(7))
    shown = [np.sort(rng.choice(SIZE, 10, replace=False)) for _ in range(7)]
    places = [Shown(words, words, 20, evidence.guess(words)) for words in shown]
    separating = SeparatingPoints(evidence.slopes, evidence.levels)
    together = separating.of(places)
    monkeypatch.setattr(separating_points, "SCORES_AT_A_TIME", 1)
    np.testing.assert_allclose(separating.of(places), together, atol=1e-4)


def test_scores_at_a_time_bound_the_memory(crowded):
    """However many places there are, a block of scores stays as large as it is."""
    evidence = OnePoint.of(mechanism("cmp:epsilon=8", space=crowded), rng=Generator(PCG64(0)))
    words = np.arange(10)
    place = Shown(words, words, 20, evidence.guess(words))
    tracemalloc.start()
    SeparatingPoints(evidence.slopes, evidence.levels).of([place] * 20_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000 * SIZE * 4 * 4
