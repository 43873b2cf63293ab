"""``sottovoce search`` as a person, and a program, sees it."""

from __future__ import annotations

import json

import pytest
from command_line import as_text, run_command

from sottovoce.encoders.base import shared_encoder
from sottovoce.paths import spaces_folder

QUERY = "treatment for skin cancer"


@pytest.fixture
def run(default_space, tmp_path):
    """Run the command with the real default space and a ledger of its own."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "spaces").symlink_to(spaces_folder())

    def call(*arguments, command="search", stdin=""):
        return as_text(
            run_command(command, *arguments, home=home, stdin=stdin.encode(), columns=100)
        )

    return call


def test_a_search_shows_what_stayed_what_was_sent_what_was_found_and_what_it_cost(run):
    done = run(QUERY, "--rerank", "light")
    assert done.returncode == 0, done.stderr
    parts = [done.stdout.index(part) for part in ("Stayed here", "Sent", "Found", "Cost")]
    assert parts == sorted(parts)
    assert "20 queries to bm25" in done.stdout
    cost = "7.5 nats per unit of euclidean distance, cmp:epsilon=7.5,prior=0.5, once"
    assert cost in " ".join(done.stdout.split())
    assert "metric privacy with epsilon 7.5" in done.stdout
    assert " 10  " in done.stdout
    assert "re-ranked here, light" in done.stdout


def test_json_for_programs(run):
    done = run(QUERY, "--json", "-n", "5", "--top", "3", "--rerank", "light", "--seed", "3")
    said = json.loads(done.stdout)
    wanted = {"query", "sent", "hits", "pool", "guarantee", "spent"}
    assert wanted <= set(said)
    assert said["query"] == QUERY
    assert len(said["sent"]) <= 5
    assert [hit["rank"] for hit in said["hits"]] == [1, 2, 3]
    assert {"doc_id", "rank", "score", "title", "snippet"} <= set(said["hits"][0])
    assert said["seeded"]
    again = run(QUERY, "--json", "-n", "5", "--top", "3", "--rerank", "light", "--seed", "3")
    assert json.loads(again.stdout)["sent"] == said["sent"]


@pytest.mark.parametrize("top", ["0", "-1"])
def test_without_a_hit_to_show_nothing_is_counted_or_sent(run, top):
    done = run(QUERY, "--top", top, "--rerank", "none")
    assert done.returncode == 2
    assert "--top" in done.stderr
    assert json.loads(run("show", "--json", command="ledger").stdout)["records"] == []


def test_searches_add_up_in_the_ledger_and_words_sent_before_do_not(run):
    first = run(QUERY, "--json", "--rerank", "none")
    again = run(f"{QUERY.title()}?", "--json", "--rerank", "none")
    one, two = json.loads(first.stdout), json.loads(again.stdout)
    assert {query.rstrip("?") for query in two["sent"]} == set(one["sent"])
    assert (one["spent"], two["spent"]) == (7.5, 0)
    assert two["recalled"]
    assert not two["fresh"]
    third = run(QUERY, "--rerank", "none", "--fresh")
    assert "on this query so far 15 nats" in " ".join(third.stdout.split())


LOUD = ("-e", "100000", "-n", "8", "--release", "independent", "--rerank", "none", "--json")
"""So large an epsilon that every word comes back."""


def sent(run, *options):
    done = run("Treatment, for skin cancer?", *LOUD, "--no-ledger", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["sent"]


def test_words_go_in_random_order_to_engines_that_do_not_look_at_it(run):
    in_order = "treatment, for skin cancer?"
    shuffled = sent(run)
    assert len(set(shuffled)) > 2
    # Function words find nothing there, and stay here.
    assert {tuple(sorted(query.split())) for query in shuffled} == {("cancer", "skin", "treatment")}
    assert sent(run, "--in-order") == ["treatment, skin cancer?"]
    everything = sent(run, "--protect", "all", "--no-fit")
    assert all(sorted(query.split()) == sorted(QUERY.split()) for query in everything)
    assert sent(run, "--engine", "dense:light") == [in_order]
    assert len(sent(run, "--engine", "dense:light", "--shuffle")) > 2


def test_queries_can_be_padded(run):
    padded = sent(run, "--pad", "6")
    assert all(len(query.split()) == 6 for query in padded)
    assert all({"treatment", "skin", "cancer"} <= set(query.split()) for query in padded)


def test_obfuscate_keeps_the_order_unless_asked(run):
    def words(*options):
        text = ("skin, cancer?", "-e", "100000", "-n", "30", *options)
        return set(run(*text, command="obfuscate").stdout.splitlines())

    assert words() == {"skin, cancer?"}
    assert words("--shuffle") == {"skin cancer", "cancer skin"}
    assert all(len(line.split()) == 4 for line in words("--shuffle", "--pad", "4"))


def test_words_in_clear_are_refused_while_there_is_a_budget(run):
    assert run("budget", "--total", "1000", command="ledger").returncode == 0
    done = run(QUERY, "--keep", "cancer", "--rerank", "none")
    assert done.returncode == 1
    assert "1 word would go out in clear" in " ".join(done.stderr.split())
    assert not done.stdout
    assert run(QUERY, "--rerank", "none").returncode == 0


@pytest.mark.parametrize("engine", ["tfidf", "dense:light"])
def test_other_engines_on_this_machine(run, engine):
    done = run(QUERY, "--engine", engine, "--rerank", "light", "--no-ledger", "--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["hits"]) == 10


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["  "], 2, "give something to search for"),
        (["x", "--engine", "bm52"], 2, "did you mean"),
        (["x", "--collection", "nowhere"], 2, "use demo, a folder"),
        (["x", "--engine", "http:nowhere.toml"], 2, "cannot read the engine's file"),
        (["x", "-m", "cnp"], 2, "did you mean 'cmp'"),
        (["x", "-m", "santext", "--release", "once"], 2, "use 'independent'"),
        (["x", "--rerank", "bm52"], 2, "bm25"),
        (["x", "-n", "0"], 2, "at least one variant"),
        (
            ["x", "-m", "comet-cmp", "--pool", "demo", "--encoder", "light", "--pad", "4"],
            2,
            "leave it",
        ),
        (["x", "--pad", "5000"], 2, "from 0 to 1000"),
        (["x", "--original", "refuse"], 2, "No such option"),
        (["x", "--release", "remembered"], 2, "independent"),
        (["divorce", "lawyer"], 2, "put a text of several words in quotes"),
        (["x", "--space", "nowhere"], 2, "no word space"),
    ],
)
def test_wrong_use_says_what_to_do(run, arguments, code, says):
    done = run(*arguments)
    assert done.returncode == code
    assert says in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_an_engine_that_is_down_is_a_clear_error(run, tmp_path):
    file = tmp_path / "engine.toml"
    file.write_text(
        'name = "nobody"\nurl = "http://127.0.0.1:9/search?q={query}"\n'
        'results = "results"\nid = "id"\nretries = 0\n'
    )
    done = run("kidney cancer", "--engine", f"http:{file}", "-n", "2", "--rerank", "none")
    assert done.returncode == 1
    assert "127.0.0.1" in done.stderr
    assert "kidney" not in done.stderr
    assert not done.stdout


def test_a_word_that_needs_an_encoder_which_is_not_here_is_not_sent(run):
    shared_encoder.cache_clear()  # Another test may have loaded it from elsewhere.
    done = run("xsecretwordx cancer", "--rerank", "none")
    assert done.returncode == 1
    assert "sottovoce spaces add strong" in " ".join(done.stderr.split())
    assert "xsecretwordx" not in done.stderr
    assert not done.stdout
    assert run("xsecretwordx cancer", "--rerank", "none", "--unknown", "uniform").returncode == 0


def test_a_query_can_be_read_from_standard_input(run):
    done = run("-", "--json", "-n", "3", "--rerank", "none", "--no-ledger", stdin="skin cancer\n")
    said = json.loads(done.stdout)
    assert said["query"].strip() == "skin cancer"
    assert "-" not in said["sent"]


def test_what_obfuscate_prints_can_be_counted_and_refused(run):
    for _ in range(2):
        done = run("skin cancer", "--ledger", "-e", "5", command="obfuscate")
        assert done.returncode == 0, done.stderr
    shown = json.loads(run("show", "--json", command="ledger").stdout)
    assert "standard output" in json.dumps(shown)
    assert run("budget", "--per-text", "12", command="ledger").returncode == 0
    done = run("Skin Cancer", "--ledger", "-e", "5", command="obfuscate")
    assert done.returncode == 1
    assert "2 are left" in done.stderr
    assert not done.stdout
