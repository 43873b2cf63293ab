"""A cover chosen by what a person understands: one in so many, at most so many queries."""

from __future__ import annotations

import json

import pytest
from command_line import as_text, run_command

from sottovoce import mechanism
from sottovoce.errors import SottovoceError
from sottovoce.mechanisms import cover_for, usual_decoys
from sottovoce.mechanisms.company import MATCHED, UNIFORM
from sottovoce.pools import Pool


@pytest.mark.parametrize(
    ("one_in", "most", "k", "m"),
    [
        (20, None, 20, 1),
        (20, 20, 20, 1),
        (20, 59, 20, 2),
        (20, 60, 20, 3),
        (10, 50, 10, 5),
        (5, 100, 5, 5),  # groups of twenty were not measured
        (50, 50, 50, 1),
    ],
)
def test_one_in_so_many_with_so_many_queries(one_in, most, k, m):
    choice = cover_for(one_in, most)
    assert (choice.k, choice.m) == (k, m)
    assert choice.queries <= (most or one_in)
    assert choice.best_guess <= 1 / one_in


def test_it_is_what_the_mechanism_then_says_of_itself():
    choice = cover_for(10, 30, inclusion=0.8)
    made = mechanism(choice.spec, pool=Pool([f"string {at}" for at in range(100)], "light"))
    (result,) = made.release(["anything"], rng=1)
    assert len(made.strings(result)) <= choice.queries
    company = made.company("anything", int(result[0]), result)
    assert company.guesses[UNIFORM] == pytest.approx(choice.best_guess)


@pytest.mark.parametrize(
    ("one_in", "most", "says"),
    [(1, None, "hides nothing"), (0, 5, "hides nothing"), (20, 19, "allow more queries")],
)
def test_what_cannot_be_is_refused(one_in, most, says):
    with pytest.raises(SottovoceError, match=says):
        cover_for(one_in, most)


def test_certain_inclusion_is_refused():
    with pytest.raises(SottovoceError, match="inclusion below 1"):
        cover_for(20, inclusion=1)


@pytest.mark.parametrize(
    ("counts", "decoys"),
    [
        ([1] * 100, "sensitive"),
        ([2] * 100, "sensitive"),
        ([1] * 99 + [2], "sensitive"),  # a line that comes twice is no popularity
        ([1] * 50 + [3] * 50, "popular"),
        ([1] * 99 + [100], "popular"),
    ],
)
def test_the_usual_decoys_follow_the_popularity_if_the_pool_has_one(counts, decoys):
    pool = Pool([f"string {at}" for at in range(100)], "light", weights=counts)
    assert usual_decoys(pool) == decoys


POOL = ("--pool", "demo", "--encoder", "light", "--rerank", "none")


def test_the_command(tmp_path, home):
    def typed(*options):
        return as_text(run_command("search", "skin cancer", *POOL, *options, home=tmp_path))

    answered = typed("--one-in", "5", "--most-queries", "16", "--json")
    assert answered.returncode == 0, answered.stderr
    printed = json.loads(answered.stdout)
    assert printed["mechanism"] == "cover:k=5,p=0.9,m=3,decoys=sensitive"
    assert 5 <= len(printed["sent"]) <= 15
    assert printed["company"]["guesses"][MATCHED] <= 1 / 5
    for options, says in (
        (("--one-in", "20", "--most-queries", "10"), "allow more queries"),
        (("--one-in", "20", "--cover", "20"), "--one-in decides --cover"),
        (("--most-queries", "20"), "goes with --one-in"),
        (("--one-in", "5", "--most-queries", "10", "--subjects", "0"), "leave --most-queries out"),
    ):
        refused = typed(*options)
        assert refused.returncode == 2
        assert says in " ".join(refused.stderr.split())
        assert "skin" not in refused.stdout + refused.stderr
