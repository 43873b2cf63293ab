"""A subject on which many different queries left in company is worn out, and the page says so."""

from __future__ import annotations

import pytest

from sottovoce import mechanism
from sottovoce.app.wear import Wear
from sottovoce.pools import load_pool

ON_ONE_SUBJECT = [
    "treatment for skin cancer",
    "melanoma survival rate",
    "is a changing mole cancer",
    "immunotherapy for melanoma how many infusions",
]


@pytest.fixture(scope="module")
def cover():
    return mechanism("cover:k=5", pool=load_pool("demo", "light"))


def test_a_subject_wears_out_with_different_queries_on_it(cover):
    places = cover.representatives(ON_ONE_SUBJECT).tolist()
    assert len(set(places)) == 4
    wear = Wear()
    said = [wear.after(cover, text) for text in ON_ONE_SUBJECT]
    assert said[:2] == [None, None]
    assert "3 different queries" in said[2]
    assert "4 different queries" in said[3]
    assert "4 different queries" in wear.after(cover, ON_ONE_SUBJECT[0].upper())


def test_repeating_a_query_and_asking_of_other_things_wears_nothing_out(cover):
    wear = Wear()
    texts = [*ON_ONE_SUBJECT[:1] * 5, "debt advice", "potato soup recipe", "how to fix a bicycle"]
    assert [wear.after(cover, text) for text in texts] == [None] * 8
