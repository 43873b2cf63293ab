"""Whether two texts are the same is decided once, for searches, the ledger, logs and attacks."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce import Obfuscator, PrivateSearch, TextPipeline, mechanism
from sottovoce.engines.base import Hit
from sottovoce.ledger import Ledger
from sottovoce.privacy.attacks.query_log import QueryLog
from sottovoce.search.boundary import Boundary
from sottovoce.search.reranking import load_reranker
from sottovoce.text import folded_text

BLANKS = [
    chr(code)
    for code in range(sys.maxunicode + 1)
    if unicodedata.category(chr(code)) in ("Zs", "Zl", "Zp", "Cc")
]
"""Every Unicode blank and control character: all of them set words apart."""


class Stranger:
    """A remote engine that keeps what it hears."""

    name, remote, pause, most_queries = "a stranger", True, 0.0, None

    def __init__(self):
        self.heard = []

    def search(self, queries, depth):
        self.heard += queries
        return [[Hit("x", 1.0, "A title", "a snippet")] for _ in queries]


@pytest.fixture(scope="module")
def loud(default_space):
    """A mechanism that returns nearly every word as it is."""
    return mechanism("cmp", space=default_space, epsilon=10_000)


def test_there_are_blanks_to_try():
    assert {"\t", "\n", "\r", "\x00", "\x0b", "\x85", "\u00a0", "\u2028", "\u3000"} <= set(BLANKS)


@pytest.mark.parametrize("blank", BLANKS, ids=lambda blank: f"U+{ord(blank):04X}")
def test_every_blank_sets_words_apart(blank):
    assert folded_text(f"{blank}Skin{blank}{blank}cancer{blank}") == "skin cancer"
    assert QueryLog([f"Skin{blank}cancer"]).queries == ["skin cancer"]


@pytest.mark.parametrize("blank", BLANKS, ids=lambda blank: f"U+{ord(blank):04X}")
def test_a_query_that_left_is_reported_whatever_blank_it_was_typed_with(loud, blank):
    engine = Stranger()
    search = PrivateSearch(Obfuscator(loud, n=3), engine, load_reranker("none"))
    result = search.search(f"skin{blank}cancer")
    assert engine.heard == ["skin cancer"]
    assert result.query_sent


@given(st.text())
def test_folding_again_changes_nothing(text):
    assert folded_text(folded_text(text)) == folded_text(text)


@given(st.text())
def test_what_a_query_looks_like_when_it_leaves_is_the_same_text(text):
    for query in Boundary(Stranger()).check([text]).queries:
        assert folded_text(query) == folded_text(text)


@given(st.text(alphabet=st.sampled_from("aB ß’'`\t\n\x00\u00ad\u200b\u0301\ud800."), max_size=12))
def test_odd_characters_too(text):
    assert folded_text(folded_text(text)) == folded_text(text)
    for query in Boundary(Stranger()).check([text]).queries:
        assert folded_text(query) == folded_text(text)


def test_texts_of_unprotected_words_alone_are_booked_as_protected(tmp_path, default_space):
    """They are protected altogether; the ledger once wrote that they had left in clear."""
    ledger = Ledger.open(tmp_path)
    quiet = mechanism("cmp", space=default_space, epsilon=1)
    obfuscator = Obfuscator(quiet, n=3, pipeline=TextPipeline(protect="content"))
    search = PrivateSearch(obfuscator, Stranger(), load_reranker("none"), ledger)
    search.search("the of and")
    (record,) = ledger.entries()
    assert (record.protected, record.in_clear, record.unknown) == (3, 0, 0)
    search.search("the skin of xqzzy")
    record = ledger.entries()[0]
    assert (record.protected, record.in_clear, record.unknown) == (2, 2, 1)
