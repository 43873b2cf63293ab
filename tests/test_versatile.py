"""Versatile query scrambling: general variants that cover the targets without the text's words."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng
from sklearn.metrics import mutual_info_score

from sottovoce import mechanism
from sottovoce.collections import Document, load_collection
from sottovoce.engines import BM25
from sottovoce.errors import UsageError
from sottovoce.mechanisms.versatile import (
    NOTHING_FOUND,
    NOTHING_GENERAL,
    Versatile,
    covering,
    mutual_information,
)
from sottovoce.text import TextPipeline
from sottovoce.text.words import content_words, stems


def engine_of(*texts: str) -> BM25:
    return BM25([Document(str(number), "", text) for number, text in enumerate(texts)])


def rewrite(scrambler: Versatile, text: str, n: int = 20):
    return scrambler.rewrite(text, n, TextPipeline(), default_rng(0))


@pytest.fixture(scope="module")
def demo() -> Versatile:
    return mechanism("versatile", engine=BM25(load_collection("demo").documents))


def test_variants_hold_no_word_of_the_text_and_are_general(demo):
    text = "symptoms of skin cancers"
    result = rewrite(demo, text, 15)
    assert len(result.variants) == 15
    sample = [hit.doc_id for hit in demo.engine.search([text], demo.sample)[0]]
    documents = [set(content_words(demo.engine.text(doc_id))) for doc_id in sample]
    own = set(stems(content_words(text)))
    for variant in result.variants:
        words = variant.split()
        assert own.isdisjoint(stems(words))
        found = [set(words) <= document for document in documents]
        targets = sum(found[: demo.targets])
        assert targets >= 1
        assert sum(found) >= demo.generality * targets


def test_the_first_variants_cover_what_can_be_covered():
    scrambler = mechanism(
        "versatile:targets=2,sample=8,generality=2,terms=1",
        engine=engine_of(
            "lion lion lion zebra", "lion lion gnu", *["lion zebra"] * 3, *["lion gnu"] * 3
        ),
    )
    assert set(rewrite(scrambler, "lion", 2).variants) == {"zebra", "gnu"}


def test_too_special_words_are_no_variants():
    special = engine_of("lion lion savanna", "lion grass", "lion hill")
    scrambler = mechanism("versatile:targets=1,sample=3,generality=2", engine=special)
    result = rewrite(scrambler, "lion")
    assert result.variants == ()
    assert result.caveats == (NOTHING_GENERAL,)
    assert rewrite(scrambler, "submarine").caveats == (NOTHING_FOUND,)


def test_mutual_information_is_that_of_the_two_events():
    found = default_rng(1).integers(0, 2, (20, 30))
    found[0], found[1] = 0, 1
    targets = np.arange(30) < 7
    for row, information in zip(found, mutual_information(found, 7), strict=True):
        assert information == pytest.approx(mutual_info_score(row, targets), abs=1e-8)


def test_covering_prefers_what_is_not_covered_then_information_then_few_words():
    covered = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 1]])
    information = np.array([0.1, 0.2, 0.3, 0.3])
    assert covering(covered, information, np.array([1, 1, 2, 1]), 4) == [1, 3, 0, 2]
    assert covering(covered, information, np.array([1, 1, 2, 1]), 1) == [1]


def test_it_is_deterministic_and_promises_nothing(demo):
    one, two = (
        demo.rewrite("night of the election", 5, TextPipeline(), default_rng(seed)).variants
        for seed in (1, 2)
    )
    assert one == two
    assert demo.guarantee.notion == "none"


def test_parameters_are_checked():
    engine = engine_of("lion zebra", "lion gnu")
    for wrong in ("targets=0", "targets=9,sample=9", "generality=1", "terms=4", "window=1"):
        with pytest.raises(UsageError, match="must"):
            mechanism(f"versatile:{wrong}", engine=engine)
