"""cover: only public strings leave, whatever goes wrong; and the command."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from command_line import as_text, run_command
from cover_cases import MEMBER, QUERY, Stranger, Table
from servers import HangUpError, reply, web

from sottovoce import Obfuscator, mechanism
from sottovoce.collections import load_collection
from sottovoce.engines import BM25
from sottovoce.engines.json_http import JsonHttp
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.ledger import BudgetError, Ledger
from sottovoce.mechanisms.company import MATCHED
from sottovoce.pools import Pool, load_pool
from sottovoce.search import PrivateSearch, load_reranker

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture(scope="module")
def demo():
    return load_pool("demo", "light")


@pytest.fixture(scope="module")
def light():
    return load_reranker("light")


@pytest.fixture(scope="module")
def engine():
    return BM25(load_collection("demo").documents)


def test_a_search_sends_strings_of_the_pool_and_finds_what_was_meant(demo, engine, light, tmp_path):
    ledger = Ledger.open(tmp_path)
    search = PrivateSearch(
        Obfuscator(mechanism("cover:k=20,p=0.999", pool=demo)), engine, light, ledger, depth=10
    )
    first = search.search(QUERY)
    assert len(first.sent) == 20
    assert {*first.sent} <= {*demo.strings}
    assert not first.query_sent
    assert "melanoma" in first.hits[0].title.lower()
    assert first.company.sentence.startswith("20 queries, drawn from 5,141 public ones")
    again = search.search(f" {QUERY.upper()}")
    near = search.search("skin cancer melanoma treatment options")
    assert {*again.sent} == {*first.sent} == {*near.sent}
    assert (first.recalled, again.recalled, near.recalled) == (False, True, True)
    assert (again.spent, near.spent) == (0, 0)
    (spent,) = ledger.spent()
    assert (spent.nats, spent.unit) == (first.spent, "between any two texts")
    other = search.search("debt advice")
    (spent,) = ledger.spent()
    assert spent.nats == pytest.approx(2 * first.spent)
    assert not other.recalled


def test_a_query_that_is_public_is_sent_only_as_drawn_and_the_result_says_so(demo, engine, light):
    seen = set()
    for seed in range(30):
        chosen = Obfuscator(mechanism("cover:k=5,p=0.5", pool=demo), rng=seed)
        result = PrivateSearch(chosen, engine, light).search(MEMBER.upper())
        assert result.query_sent == (MEMBER in result.sent) == result.company.query_sent
        assert result.company.is_text
        assert MEMBER.upper() not in result.sent
        seen.add(result.query_sent)
        sentence = result.company.whether_sent
        assert ("was sent as one of them" in sentence) == result.query_sent
        assert ("left out by chance" in sentence) == (not result.query_sent)
    assert seen == {True, False}


def test_a_query_that_came_along_with_the_group_of_another_string_is_said_to_have_left(light):
    """Groups overlap: a query that chance left out may be among the nearest of a drawn one."""
    pool = Pool([MEMBER, *(f"{MEMBER} {number}" for number in range(8)), *"abcdefgh"], "light")
    cover = mechanism("cover:k=2,m=6,p=0.5", pool=pool)
    place = pool.place(MEMBER)
    seen = set()
    for members in combinations(range(len(pool)), 2):
        company = cover.company(MEMBER, place, np.array(members))
        left = MEMBER in cover.strings(np.array(members))
        assert company.query_sent == company.sent == left
        assert company.drawn == (place in members)
        assert ("was sent as one of them" in company.whether_sent) == left
        assert ("left out by chance" in company.whether_sent) == (not company.drawn)
        seen.add((company.drawn, company.query_sent))
    assert seen == {(True, True), (False, True), (False, False)}
    for seed in range(20):
        result = PrivateSearch(Obfuscator(cover, rng=seed), BM25([]), light).search(MEMBER)
        assert result.query_sent == result.company.query_sent == (MEMBER in result.sent)


def test_nothing_leaves_in_fresh_company(demo, light, tmp_path):
    engine, cover = Stranger(), Obfuscator(mechanism("cover", pool=demo))
    with pytest.raises(UsageError, match="--fresh"):
        PrivateSearch(cover, engine, light, Ledger.open(tmp_path), fresh=True)
    with pytest.raises(UsageError, match="needs the ledger"):
        PrivateSearch(cover, engine, light)
    assert not engine.heard


def test_nothing_leaves_if_the_engine_takes_fewer_queries(demo, light, tmp_path):
    engine, ledger = Stranger(), Ledger.open(tmp_path)
    engine.most_queries = 10
    search = PrivateSearch(Obfuscator(mechanism("cover", pool=demo)), engine, light, ledger)
    with pytest.raises(UsageError, match="--cover 10"):
        search.search(QUERY)
    assert not engine.heard
    assert not ledger.entries()


def test_a_pool_with_strings_that_no_engine_is_sent_is_refused_before_anything_is_drawn(
    engine, light, tmp_path
):
    pool = Pool([*"abcdef", "long " * 401], "light")
    assert pool.longest == 2004
    cover = Obfuscator(mechanism("cover:k=2", pool=pool))
    ledger = Ledger.open(tmp_path)
    with pytest.raises(UsageError, match="over 2,000 characters"):
        PrivateSearch(cover, engine, light, ledger).search(QUERY)
    assert not ledger.spent()


def test_nothing_leaves_when_the_budget_is_spent_or_nothing_bounds_the_cost(demo, light, tmp_path):
    engine, ledger = Stranger(), Ledger.open(tmp_path)
    ledger.set_budget(None, 10)
    search = PrivateSearch(Obfuscator(mechanism("cover", pool=demo)), engine, light, ledger)
    search.search(QUERY)
    search.search(QUERY)  # the same company again costs nothing
    engine.heard.clear()
    with pytest.raises(BudgetError, match="between any two texts"):
        search.search("debt advice")
    certain = Obfuscator(mechanism("cover:p=1", pool=demo))
    with pytest.raises(BudgetError, match="nothing bounds"):
        PrivateSearch(certain, engine, light, ledger).search(QUERY)
    assert not engine.heard


def test_nothing_leaves_if_the_ledger_is_damaged(demo, light, tmp_path):
    engine, ledger = Stranger(), Ledger.open(tmp_path)
    search = PrivateSearch(Obfuscator(mechanism("cover", pool=demo)), engine, light, ledger)
    search.search(QUERY)
    engine.heard.clear()
    for file in tmp_path.iterdir():
        file.write_bytes(b"not a database at all" * 100)
    with pytest.raises(SottovoceError) as refused:
        search.search(QUERY)
    assert "skin" not in str(refused.value)
    assert not engine.heard


def test_nothing_leaves_if_the_encoder_fails(light, tmp_path):
    class Broken(Table):
        def encode(self, texts):
            if any(not text.isdigit() for text in texts):
                raise RuntimeError(f"cannot read {texts}")
            return super().encode(texts)

    rows = np.eye(6)
    pool = Pool([str(row) for row in range(6)], Broken(rows))
    engine = Stranger()
    search = PrivateSearch(
        Obfuscator(mechanism("cover:k=2", pool=pool)), engine, light, Ledger.open(tmp_path)
    )
    with pytest.raises(SottovoceError, match=r"cover failed \(RuntimeError\)") as refused:
        search.search(QUERY)
    assert "skin" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert not engine.heard


def test_an_engine_that_is_gone_after_seven_of_twenty(demo, light, tmp_path):
    """Over a real socket: seven answers, then the connection breaks for good."""
    heard = []

    def answer(request):
        heard.append(request)
        if len(heard) > 7:
            raise HangUpError
        return reply({"results": [{"id": "a", "title": "Melanoma", "text": "skin cancer"}]})

    ledger = Ledger.open(tmp_path)
    cover = Obfuscator(mechanism("cover:k=20", pool=demo))
    with web(answer) as server:
        description = {
            "name": "test",
            "url": f"{server.url}/find?q={{query}}",
            "results": "results",
            "id": "id",
            "title": "title",
            "pause": 0.001,
            "retries": 0,
        }
        search = PrivateSearch(cover, JsonHttp(description), light, ledger)
        result = search.search(QUERY)
        sent = {*result.sent}
        assert "only 7 of 20 queries were answered" in result.problem
        assert len(sent) == 8  # the last may have been seen
        assert sent <= {*demo.strings}
        assert result.company.queries == 8
        assert result.company.sent == (MEMBER in sent)
        assert all("treatment+for" not in request.target for request in heard)
        heard.clear()
        again = search.search(QUERY)
    # Another try sends queries of the very same set, and costs nothing.
    assert again.spent == 0
    (whole,) = replace(cover, memory_key=ledger.memory_key()).obfuscate([QUERY])
    assert sent | {*again.sent} <= {*whole.variants}
    (spent,) = ledger.spent()
    assert spent.nats == result.spent


# The command


@pytest.fixture
def run(home, tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    return lambda *arguments: as_text(run_command(*arguments, home=folder, columns=100))


COVER = ("--cover", "20", "--pool", "demo", "--encoder", "light", "--rerank", "light")


def test_the_command_says_in_what_company_a_query_left(run, demo):
    done = run("search", QUERY, *COVER)
    assert done.returncode == 0, done.stderr
    for part in ("20 queries to bm25", "Company", "1 in 22", "Your query", "nats between any two"):
        assert part in " ".join(done.stdout.split())
    said = json.loads(run("search", QUERY, *COVER, "--json").stdout)
    assert {*said["sent"]} <= {*demo.strings}
    assert said["recalled"]
    assert said["mechanism"] == "cover:k=20,p=0.9,decoys=sensitive"
    assert said["company"]["guesses"][MATCHED] == pytest.approx(0.045, abs=1e-5)
    grouped = run(
        *("search", QUERY, "--json", "--cover", "5", "--group", "3", "--inclusion", "0.8"),
        *COVER[2:],
    )
    said = json.loads(grouped.stdout)
    assert said["mechanism"] == "cover:k=5,p=0.8,m=3,decoys=sensitive"
    assert 5 <= len(said["sent"]) <= 15


def test_decoys_are_as_the_pool_states_or_else_sensitive(run, tmp_path):
    """What is not said is decided; a mechanism by its spec, and --decoys, are taken as they are."""
    lines = [f"public query number {number}" for number in range(40)]
    plain, counted = tmp_path / "plain.txt", tmp_path / "counted.txt"
    plain.write_text("\n".join(lines))
    counted.write_text("\n".join(line for at, line in enumerate(lines) for _ in range(1 + at % 3)))

    def sent_by(pool, *options):
        asked = ("search", QUERY, "--json", "--pool", str(pool), "--encoder", "light")
        done = run(*asked, "--rerank", "none", *options)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["mechanism"]

    assert sent_by(plain, "--cover", "4") == "cover:k=4,p=0.9,decoys=sensitive"
    assert sent_by(counted, "--cover", "4") == "cover:k=4,p=0.9,decoys=popular"
    assert sent_by(counted, "--one-in", "4") == "cover:k=4,p=0.9,decoys=popular"
    assert sent_by(counted, "--cover", "4", "--decoys", "uniform") == "cover:k=4,p=0.9"
    assert sent_by(counted, "-m", "cover:k=4") == "cover:k=4,p=0.9"
    subjects = sent_by(plain, "--cover", "4", "--subjects", "8")
    assert subjects == "cover-subjects:k=4,p=0.9,decoys=sensitive,subjects=8"


def test_a_cost_without_a_bound_has_no_unit(run):
    certain = ("search", QUERY, "-m", "cover:k=5,p=1", *COVER[2:])
    assert "Cost nothing bounds it" in " ".join(run(*certain).stdout.split())
    again = " ".join(run(*certain).stdout.split())
    assert "Cost 0 nats, cover:k=5,p=1, once; on this query so far without bound." in again


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--cover", "20"), "--pool"),
        (("--cover", "9999", "--pool", "demo", "--encoder", "light"), "take a smaller k"),
        (("--cover", "20", "--pool", "no-such-file.txt"), "there is no such pool"),
        (("--cover", "20", "--pool", "demo", "-n", "5"), "-n does nothing with --cover"),
        (("--cover", "20", "--pool", "demo", "-e", "5"), "-e does nothing with --cover"),
        (("--cover", "20", "--pool", "demo", "-m", "tem"), "-m does nothing with --cover"),
        (("--inclusion", "0.5"), "go with --cover"),
        (("--cover", "20", "--pool", "demo", "--encoder", "light", "--fresh"), "leave --fresh out"),
        (("--cover", "1", "--pool", "demo"), "one in 1 hides nothing"),
        (("--cover", "20", "--pool", "demo", "--inclusion", "1"), "an inclusion below 1"),
        (("--cover", "20", "--pool", "demo", "--encoder", "light", "--shuffle"), "--shuffle"),
    ],
)
def test_wrong_use_says_what_to_do_and_sends_nothing(run, arguments, says):
    done = run("search", QUERY, "--rerank", "none", *arguments)
    assert done.returncode == 2
    assert says in " ".join(done.stderr.split())
    assert "skin" not in done.stdout + done.stderr


def test_obfuscate_prints_a_set(run, demo):
    done = run("obfuscate", QUERY, "-m", "cover:k=7", "--pool", "demo", "--encoder", "light")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len({*lines}) == 7
    assert {*lines} <= {*demo.strings}
    assert "fewer variants" not in done.stderr


def test_a_data_set_does_not_take_sets(demo):
    from sottovoce.sanitizing.sanitizer import Sanitizer

    with pytest.raises(UsageError, match="no mechanism that releases sets"):
        Sanitizer(Obfuscator(mechanism("cover", pool=demo)), ("text",))


def test_a_damaged_ledger_stops_the_command(run, tmp_path):
    assert run("search", QUERY, *COVER).returncode == 0
    files = [path for path in (tmp_path / "home" / "ledger").rglob("*") if path.is_file()]
    assert files
    for path in files:
        path.write_bytes(b"nothing" * 50)
    done = run("search", QUERY, *COVER)
    assert done.returncode != 0
    assert "ledger" in done.stderr
    assert "Sent" not in done.stdout
