"""Releases in random order or with places added: found again, and scored exactly."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from exact_evidence import PlainLaw
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import PCG64, Generator

from sottovoce import Obfuscator, mechanism
from sottovoce.collections import demo_log, load_judged_queries
from sottovoce.errors import UsageError
from sottovoce.privacy import QueryLog, attack
from sottovoce.privacy.attacks.cut_log import CutLog
from sottovoce.privacy.attacks.places import line_up
from sottovoce.privacy.attacks.priors import Prior
from sottovoce.privacy.attacks.queries import AlignedLog, rank_queries
from sottovoce.privacy.attacks.releases import Released
from sottovoce.privacy.attacks.unordered import (
    UnorderedScorer,
    best_assignments,
    find_places,
    increasing,
    permanents,
    sort_apart,
)
from sottovoce.privacy.attacks.words import evidence_rows, recover_words
from sottovoce.spaces.space import WordSpace
from sottovoce.text import TextPipeline

SIZE = 60


@pytest.fixture(scope="module")
def clusters() -> WordSpace:
    """Six groups of ten words, far from each other."""
    rng = Generator(PCG64(1))
    centers = rng.standard_normal((6, 4)) * 10
    vectors = np.repeat(centers, 10, axis=0) + rng.standard_normal((SIZE, 4)) * 0.3
    return WordSpace.from_arrays([f"w{number:02}" for number in range(SIZE)], vectors)


@given(places=st.integers(1, 7), variants=st.integers(1, 12), seed=st.integers(0, 10**6))
def test_places_that_lie_apart_are_found_again(places: int, variants: int, seed: int) -> None:
    rng = Generator(PCG64(seed))
    centers = np.linalg.qr(rng.standard_normal((8, 8)))[0][:places] * 20
    vectors = centers[None] + rng.standard_normal((variants, places, 8))
    shuffles = np.argsort(rng.random((variants, places)), axis=1)
    shuffled = np.take_along_axis(vectors, shuffles[:, :, None], axis=1)
    order = sort_apart(shuffled, Generator(PCG64(2)))
    assert order.shape == (places, variants)
    # The true place of the word that each variant has at each place found.
    true = np.take_along_axis(shuffles, order.T, axis=1)
    assert (true == true[0]).all()
    assert sorted(true[0]) == list(range(places))


def shuffled_releases(mech, texts: list[str], n: int, seed: int, pad: int = 0) -> list[Released]:
    """Each variant in an order of its own, perhaps with uniform words added."""
    rng = Generator(PCG64(seed))
    releases = []
    for number, text in enumerate(texts):
        ids = mech.space.ids(text.split())
        ids = np.append(ids, rng.integers(SIZE, size=max(0, pad - len(ids))))
        rows = rng.permuted(mech.sample(ids, n, rng), axis=1)
        variants = tuple(" ".join(mech.space.words(row)) for row in rows)
        releases.append(Released(str(number), text, variants))
    return releases


TEXTS = ["w03 w15 w27", "w33 w05", "w44 w58 w01 w12", "w21", "w09 w19 w29 w39 w49"]


def test_words_count_wherever_they_stand(clusters: WordSpace) -> None:
    santext = mechanism("santext:epsilon=60", space=clusters)
    texts, _ = line_up(shuffled_releases(santext, TEXTS, 6, seed=3), clusters)
    found = find_places(texts, clusters, "independent")
    for text, alone in zip(texts, found, strict=True):
        (again,) = find_places([text], clusters, "independent")
        assert again.places == alone.places
    for text in found:
        groups = [np.unique(place.seen // 10) for place in text.places]
        assert all(len(group) == 1 for group in groups)
        assert {int(group[0]) for group in groups} == {word.id // 10 for word in text.truth}
    (recovery,) = recover_words(PlainLaw(santext), found, [Prior.uniform(clusters)])
    assert recovery.words.value == recovery.whole.value == 1


def test_queries_are_named_without_order_and_with_decoys(clusters: WordSpace) -> None:
    santext = mechanism("santext:epsilon=20", space=clusters)
    rng = Generator(PCG64(4))
    others = [
        " ".join(clusters.words(rng.integers(SIZE, size=length)))
        for length in rng.integers(3, 6, size=400)
    ]
    log = AlignedLog.of(CutLog.of([*others, *TEXTS, "w15 w03 w28"], clusters))
    for pad in (0, 6):
        texts, _ = line_up(shuffled_releases(santext, TEXTS, 8, 5, pad), clusters)
        pairs = evidence_rows(PlainLaw(santext), find_places(texts, clusters, "independent"))
        scorer = UnorderedScorer(log, padded=pad > 0)
        ranks = [query.rank for query in rank_queries(pairs, log, shape_shows=False, score=scorer)]
        assert sum(rank <= 10 for rank in ranks) == len(ranks) == 5
        assert sum(rank == 1 for rank in ranks) >= 4


def tables(places: int, length: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = Generator(PCG64(seed))
    table = rng.normal(0, 2, (places, 7))
    table[0, 2] = -np.inf
    return table, rng.integers(7, size=(length, 9)).astype(np.int32)


@pytest.mark.parametrize(("places", "length"), [(1, 1), (3, 3), (4, 2), (5, 3)])
def test_permanents_and_increasing_maps_equal_enumeration(places: int, length: int) -> None:
    table, columns = tables(places, length, seed=places)
    chances = np.exp(table)

    def mean_over(maps) -> list[float]:
        listed = list(maps)
        totals = []
        for query in columns.T:
            chance = [
                np.prod(chances[list(places_of), query])
                * np.prod(chances[[i for i in range(places) if i not in places_of], -1])
                for places_of in listed
            ]
            totals.append(np.mean(chance))
        return totals

    by_hand = mean_over(permutations(range(places), length))
    assert np.exp(permanents(table, columns)) == pytest.approx(np.array(by_hand))
    in_order = mean_over(combinations(range(places), length))
    assert np.exp(increasing(table, columns)) == pytest.approx(np.array(in_order))


def test_the_best_assignment_is_the_best_of_all() -> None:
    table, columns = tables(4, 3, seed=6)
    best = []
    for query in columns.T:
        values = [
            sum(table[place, word] for place, word in zip(chosen, query, strict=True))
            + sum(table[i, -1] for i in range(4) if i not in chosen)
            for chosen in permutations(range(4), 3)
        ]
        best.append(max(values))
    assert best_assignments(table, columns) == pytest.approx(np.array(best))


def test_many_places_are_scored_by_assignment(clusters: WordSpace) -> None:
    words = [f"w{number:02}" for number in range(0, 60, 5)]
    log = AlignedLog.of(CutLog.of([" ".join(words), " ".join([*words[1:], "w59"])], clusters))
    rows = np.full((12, SIZE + 1), -8.0, dtype=np.float32)
    rows[np.arange(12), clusters.ids(words)[::-1]] = 0.0
    assert UnorderedScorer(log)(rows).scores == pytest.approx([0.0, -8.0])
    assert len(UnorderedScorer(log)(rows[:3]).queries) == 0


def test_a_release_in_order_scores_alike_without_places_to_spare(clusters: WordSpace) -> None:
    log = AlignedLog.of(CutLog.of(TEXTS * 2 + ["w01 w02 w03"], clusters))
    rows = Generator(PCG64(7)).normal(0, 3, (3, SIZE + 1)).astype(np.float32)
    plain, padded = log.score(rows), UnorderedScorer(log, ordered=True, padded=True)(rows)
    at = np.searchsorted(np.sort(padded.queries), plain.queries)
    scores = padded.scores[np.argsort(padded.queries)][at]
    assert scores == pytest.approx(plain.scores, rel=1e-5)


def test_words_in_clear_are_taken_out_first(clusters: WordSpace) -> None:
    variants = ("w03 xyz w50 w11", "w50 w14 w05 xyz", "xyz w12 w01 w50")
    (text,), _ = line_up([Released("1", "w02 w50 xyz w13", variants)], clusters)
    (found,) = find_places([text], clusters, "once")
    assert sorted(place.most_shown.word for place in found.places if place.in_clear) == [
        "w50",
        "xyz",
    ]
    seen = sorted(sorted(place.seen.tolist()) for place in found.places if not place.in_clear)
    assert seen == [[1, 3, 5], [11, 12, 14]]
    uneven = Released("1", "w02 w13", ("w03 w11", "w04 abc", "w05 w12"))
    (text,), _ = line_up([uneven], clusters)
    with pytest.raises(UsageError, match="as many words"):
        find_places([text], clusters, "once")


def test_texts_without_replaced_words_have_no_places_to_find(clusters: WordSpace) -> None:
    silent, clear = Released("1", "?", ("?",) * 3), Released("2", "xyz", ("xyz",) * 3)
    texts, _ = line_up([silent, clear], clusters, release="once")
    blank, word = find_places(texts, clusters, "once")
    assert blank.places == ()
    assert [place.in_clear for place in word.places] == [True]


def test_queries_in_capitals_are_found_in_a_log_that_has_none(default_space: WordSpace) -> None:
    """In capitals "THE" is not left out, as an abbreviation might not be; in the log it is."""
    texts = ["THE RISKS OF CHILD LABOUR", "US visa costs"]
    log = QueryLog([*map(str.lower, texts), "child care costs", "visa for canada", "night bus"])
    cmp = mechanism("cmp", space=default_space, epsilon=60)
    pipeline = TextPipeline(protect="content", unprotected="drop").laid_out(shuffle=True)
    results = Obfuscator(cmp, n=5, rng=1, release="once", pipeline=pipeline).obfuscate(texts)
    releases = [Released(result.text, result.text, tuple(result.variants)) for result in results]
    report = attack(
        releases, mechanism=cmp, release="once", pipeline=pipeline, log=log, encoders=[], rng=0
    )
    (_, inference) = report.inferences[-1]
    assert [query.rank for query in inference.queries] == [1, 1]


def test_variants_in_orders_of_their_own_are_scored_by_all_their_orders(
    clusters: WordSpace,
) -> None:
    """log of the mean over orders, for each variant, and the sum of that over variants."""
    log = AlignedLog.of(CutLog.of(["w03 w17 w42", "w08 w21 w55", "w11 w12 w13"], clusters))
    rng = Generator(PCG64(3))
    tables = [np.log(rng.random((3, SIZE + 1))).astype(np.float32) for _ in range(4)]
    scored = UnorderedScorer(log).of_variants(tables, 3)
    words = log.groups[3].columns.T
    expected = np.zeros(len(words))
    for table in tables:
        relative = table.astype(np.float64) - table.max(axis=1, keepdims=True)
        for number, query in enumerate(words):
            orders = [relative[list(order), query].sum() for order in permutations(range(3))]
            expected[number] += np.log(np.mean(np.exp(orders)))
    assert scored.queries.tolist() == log.groups[3].queries.tolist()
    assert scored.scores == pytest.approx(expected)


def test_fresh_draws_in_random_order_hide_no_more_than_in_order(everyday_words: WordSpace) -> None:
    """Where a word goes everywhere, places cannot be found; each variant still says its part."""
    log = QueryLog(demo_log())
    texts = list(load_judged_queries("demo").values())[:20]
    santext = mechanism("santext:epsilon=1.5", space=everyday_words)
    named = {}
    for order in ("kept", "shuffled"):
        pipeline = TextPipeline(
            protect="content", unprotected="drop", punctuation="drop", order=order
        )
        results = Obfuscator(santext, n=20, pipeline=pipeline, rng=4).obfuscate(texts)
        releases = [
            Released(str(number), result.text, result.variants)
            for number, result in enumerate(results)
        ]
        report = attack(
            releases,
            mechanism=santext,
            pipeline=pipeline,
            log=log,
            add_originals=True,
            counts=[20],
            attacks=["aligned"],
            rng=1,
        )
        for _, inference in report.inferences:
            firsts = [query.rank == 1 for query in inference.queries]
            named[order, inference.attack] = float(np.mean(firsts))
    assert set(named) == {("kept", "aligned"), ("shuffled", "aligned"), ("shuffled", "any order")}
    assert named["shuffled", "any order"] > named["shuffled", "aligned"] + 0.1
    assert named["shuffled", "any order"] >= named["kept", "aligned"] - 0.2
