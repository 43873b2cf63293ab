"""``sottovoce search`` and ``sottovoce vectors`` with stores of vectors, as they are typed."""

from __future__ import annotations

import json

import pytest
from command_line import as_text, run_command

QUERY = "treatment for skin cancer"
STORE = ("--engine", "vectors:light")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")

    def call(*arguments, folder=None):
        return as_text(run_command(*arguments, home=home, folder=folder, columns=120))

    return call


def test_a_search_sends_one_vector_and_says_what_it_costs(run):
    done = run("search", QUERY, *STORE, "-e", "60", "--depth", "200")
    assert done.returncode == 0, done.stderr
    parts = ("Stayed here", "Sent", "Found", "Cost", "Depth", "Promise")
    places = [done.stdout.index(part) for part in parts]
    assert places == sorted(places)
    said = " ".join(done.stdout.split())
    assert "one vector to dense:light" in said
    assert "60 nats per unit of euclidean(light) distance, vector:epsilon=60" in said
    assert "was not tried out" in said
    assert "200 documents; in the order of what you really asked (here, by true vector)" in said
    again = run("search", QUERY, *STORE, "-e", "60", "--json")
    result = json.loads(again.stdout)
    assert (result["recalled"], result["spent"], len(result["sent"])) == (True, 0.0, 256)
    assert result["promise"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-n", "5"], "-n is about queries in words"),
        (["-m", "tem"], "-m is about queries in words"),
        (["--cover", "5"], "--cover is about queries in words"),
        (["--in-order"], "--shuffle is about queries in words"),
        (["--share", "0.5"], "--share goes with --promise"),
        (["--depth", "99999"], "1 to 10,000 documents"),
    ],
)
def test_options_that_would_do_nothing_are_refused(run, options, message):
    done = run("search", QUERY, *STORE, *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert QUERY not in done.stderr


def test_options_of_stores_are_refused_elsewhere(run):
    done = run("search", QUERY, "--engine", "bm25", "--promise", "x.json")
    assert (done.returncode, "for stores of vectors" in done.stderr) == (2, True)


def test_a_promise_is_made_with_public_queries_and_used(run, tmp_path):
    tried = ("vectors", "vectors:light", "--public", "demo", "-n", "20", "--deepest", "300")
    tried = (*tried, "--share", "0.8")
    done = run(*tried, "-e", "400", "--out", "promise.json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "vector:epsilon=400" in done.stdout
    assert "the encoder and epsilon; a log of" in " ".join(done.stdout.split())
    promise = tmp_path / "promise.json"
    kept = json.loads(promise.read_text())
    assert set(map(type, kept["reaches"])) <= {int, float, type(None)}
    found = run(
        "search", QUERY, *STORE, "-e", "400", "--promise", promise, "--share", "0.8", "--json"
    )
    result = json.loads(found.stdout)
    assert "at least 80% of queries like the 20 public ones" in result["promise"]
    assert 10 < result["fetched"] <= 300
    other = run("search", QUERY, *STORE, "-e", "300", "--promise", promise)
    assert "another store, encoder or epsilon" in other.stderr
    seeded = run(*tried, "-e", "50,400", "--json", "--seed", "1")
    few, many = json.loads(seeded.stdout)
    assert few["named"]["share"] < many["named"]["share"]
    assert (few["depth"] or 10**6) > many["depth"]


def test_public_queries_must_be_enough(run, tmp_path):
    (tmp_path / "few.txt").write_text("one\ntwo\n")
    done = run("vectors", "vectors:light", "--public", tmp_path / "few.txt")
    assert (done.returncode, "there are 2 public queries" in done.stderr) == (2, True)
    done = run("vectors", "vectors:light", "--public", "demo", "-n", "20")
    assert (done.returncode, "needs 29 public queries" in done.stderr) == (2, True)
    done = run("vectors", "vectors:light", "--public", "demo", "-e", "5,6", "--out", "x")
    assert "give one epsilon" in done.stderr
