"""The public queries among which the app lets a query leave, as the command line reads them."""

from __future__ import annotations

import json

import pytest
from command_line import as_text, run_command

pytest.importorskip("fastapi")

from sottovoce.app import server
from sottovoce.app.loaded import LoadedParts
from sottovoce.app.previews import Previews
from sottovoce.app.schemas import ProtectionBody, SearchBody
from sottovoce.app.searching import run_search
from sottovoce.app.settings import Settings
from sottovoce.errors import UsageError
from sottovoce.guarantees import Guarantee
from sottovoce.ledger import Entry, Ledger
from sottovoce.pool_making import make_pool
from sottovoce.pools import load_pool
from sottovoce.privacy.attacks.company.public_texts import queries_of
from sottovoce.text import folded_text

QUERY = "treatment for skin cancer"
LINES = [f"Public Query Number {number}" for number in range(60)]


@pytest.fixture
def own_home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("SOTTOVOCE_HOME", str(folder))
    return folder


@pytest.fixture
def log(tmp_path):
    """A log in which two queries come far more often than the others."""
    file = tmp_path / "log.txt"
    file.write_text("\n".join([*LINES, *LINES[:2] * 30]), encoding="utf-8")
    return file


def parts_of(**settings):
    return LoadedParts(Settings(reranker="none", token="not empty", **settings))


def in_company(parts):
    return parts.protection(ProtectionBody(voice="in-company")).obfuscator.mechanism


def hide(*texts):
    for text in texts:
        promise = Guarantee("metric", 1.0, "euclidean")
        entry = Entry(text, ("a",), "cmp:epsilon=1", "once", promise, 1, "bm25")
        Ledger.open().charge(entry)


# Which they are


@pytest.mark.usefixtures("own_home")
def test_what_comes_more_often_in_a_log_is_more_popular(log, tmp_path):
    assert in_company(parts_of(log=str(log))).spec == "cover:k=20,p=0.9,decoys=popular"
    once = tmp_path / "once.txt"
    once.write_text("\n".join(LINES), encoding="utf-8")
    assert in_company(parts_of(log=str(once))).spec == "cover:k=20,p=0.9,decoys=sensitive"


@pytest.mark.parametrize("option", ["log", "pool"])
def test_a_query_has_the_same_company_in_the_app_and_on_the_command_line(own_home, log, option):
    parts = parts_of(**{option: str(log)})
    assert parts.pool().sha256 == load_pool(log).sha256
    cover = ("--one-in", "20", "--pool", log, "--rerank", "none")
    typed = as_text(run_command("search", QUERY, *cover, "--json", home=own_home))
    there = json.loads(typed.stdout)
    here = run_search(parts, Previews(), SearchBody(query=QUERY), lambda event: None)
    assert there["mechanism"] == here["mechanism"]
    assert sorted(there["sent"]) == sorted(here["sent"])
    assert len(here["sent"]) == 20
    assert here["recalled"]


@pytest.mark.usefixtures("own_home")
@pytest.mark.parametrize(
    ("name", "header", "row"),
    [
        ("log.csv", "user,query", "u{at},{line}"),
        ("log.tsv", "query\turl", "{line}\thttps://example.org/{at}"),
        ("log.log", "Public Query Number 0", "{line}"),
    ],
)
def test_of_a_log_that_is_no_list_of_strings_only_the_queries_may_leave(
    tmp_path, name, header, row
):
    file = tmp_path / name
    rows = [row.format(at=at, line=line) for at, line in enumerate(LINES)]
    file.write_text("\n".join([header, *rows]), encoding="utf-8")
    pool = parts_of(log=str(file)).pool()
    assert set(map(folded_text, pool.strings)) == set(map(folded_text, LINES))


@pytest.mark.usefixtures("own_home")
def test_a_pool_that_was_made_is_used_by_its_name(log):
    make_pool("mine", [str(log)], "light")
    parts = parts_of(pool="mine")
    parts.load_named()
    assert parts.pool().sha256 == load_pool("mine").sha256
    assert in_company(parts).spec == "cover:k=20,p=0.9,decoys=popular"
    assert parts.usual_voice().id == "in-company"
    assert "you named a public pool" in parts.usual_voice().why
    assert len(parts.log()) > 5000  # What an attacker is taken to have is still the demo's.


@pytest.mark.usefixtures("own_home")
def test_a_pool_that_is_not_there_ends_the_start():
    with pytest.raises(UsageError, match="no such pool"):
        parts_of(pool="nowhere").load_named()


@pytest.mark.usefixtures("own_home")
def test_what_attackers_learn_of_the_public_queries_is_learned_while_loading(log):
    parts = parts_of(log=str(log))
    parts.load_all()
    learned = queries_of(parts.log(), parts.pool())
    assert {"kind", "standing"} <= vars(learned).keys()


@pytest.fixture
def short(tmp_path):
    """A pool that is too small to hide in."""
    file = tmp_path / "short.txt"
    file.write_text("\n".join(LINES[:15]), encoding="utf-8")
    return file


@pytest.mark.usefixtures("own_home")
def test_a_pool_in_which_no_query_can_hide_ends_the_start(short, tmp_path):
    with pytest.raises(UsageError, match=r"the pool has 15: .*; name another pool with --pool"):
        parts_of(pool=str(short)).load_named()
    parts_of(log=str(short)).load_named()  # What an attacker has may be short.
    long = tmp_path / "long.txt"
    long.write_text("\n".join([*LINES, "word " * 401]), encoding="utf-8")
    with pytest.raises(UsageError, match="characters, which no engine is sent"):
        parts_of(pool=str(long)).load_named()


@pytest.mark.usefixtures("own_home")
def test_while_a_pool_gets_its_vectors_it_is_said_how_far_that_is(log):
    told = []
    parts_of(pool=str(log)).load_named(lambda done, of: told.append((done, of)))
    assert told == [(60, 60)]


# On the command line


def started(command, *options, home):
    """The settings that a command serves with, and what it says before it does."""
    seen = []

    def not_run(_, settings, *__):
        seen.append(settings)
        raise SystemExit(0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "run", not_run)
        patch.setattr(LoadedParts, "load_all", lambda parts: None)
        done = as_text(run_command(command, "--port", "0", *options, home=home))
    assert done.returncode == 0, done.stderr
    return seen[0], done.stderr


COMMANDS = (("serve", "--no-browser"), ("mcp", "--http", "--unlimited"))


def as_needed(command):
    """What a command needs beside a pool: agents murmur unless somebody says otherwise."""
    if command == "serve":
        return ()
    pytest.importorskip("mcp.server.mcpserver")
    return ("--voice", "in-company")


@pytest.mark.parametrize("command", COMMANDS, ids=["serve", "mcp"])
def test_the_commands_pass_on_what_is_named(own_home, log, command):
    company = as_needed(command[0])
    settings, said = started(*command, *company, "--pool", str(log), home=own_home)
    assert (settings.pool, settings.log) == (str(log), "demo")
    assert "hidden" not in said
    settings, _ = started(*command, "--log", str(log), home=own_home)
    assert (settings.pool, settings.log) == (None, str(log))
    assert settings.names_public_queries


@pytest.mark.parametrize("command", COMMANDS, ids=["serve", "mcp"])
@pytest.mark.parametrize("option", ["--log", "--pool"])
def test_a_history_of_one_s_own_is_warned_about_at_the_start(own_home, log, command, option):
    company = as_needed(command[0])
    hide(*LINES[:6])
    _, said = started(*command, *company, option, str(log), home=own_home)
    assert "6 of the 60 strings of this pool are texts that you have hidden before" in said
    assert LINES[0] not in said
    _, said = started(*command, home=own_home)
    assert "hidden" not in said


@pytest.mark.parametrize("command", COMMANDS, ids=["serve", "mcp"])
def test_a_command_does_not_start_with_a_pool_that_hides_nothing(own_home, short, command):
    company = as_needed(command[0])
    refused = as_text(
        run_command(*command, "--port", "0", *company, "--pool", short, home=own_home)
    )
    assert refused.returncode == 2
    assert "no query can leave in company here" in refused.stderr
    assert "name another pool with --pool, or leave it out" in refused.stderr
    assert refused.stdout == ""


def test_agents_in_company_need_public_queries_to_hide_among(own_home, short):
    company = as_needed("mcp")
    for named in ("--log", "--pool"):
        refused = as_text(run_command("mcp", "--unlimited", *company, named, short, home=own_home))
        assert refused.returncode == 2
        assert "the pool has 15" in refused.stderr
        assert "with --pool" in refused.stderr


def test_a_pool_for_agents_that_do_not_leave_in_company_is_refused(own_home, log):
    as_needed("mcp")
    refused = as_text(run_command("mcp", "--unlimited", "--pool", log, home=own_home))
    assert refused.returncode == 2
    assert "the voice is murmur: add --voice in-company, or leave --pool out" in refused.stderr


def test_who_starts_agents_in_a_small_company_is_told(own_home, log, monkeypatch):
    company = as_needed("mcp")
    command = (*COMMANDS[1], *company, "--pool", str(log))
    _, said = started(*command, home=own_home)
    assert "company" not in said
    monkeypatch.setattr(LoadedParts, "usual_variants", 3)
    _, said = started(*command, home=own_home)
    assert "in a company of 3 only, because this engine takes at most 3 queries a search" in said
    _, said = started(*COMMANDS[1], home=own_home)
    assert "company" not in said


@pytest.mark.parametrize("command", ["serve", "mcp"])
def test_the_help_says_both_uses_of_a_log(command, tmp_path):
    help_text = " ".join(as_text(run_command(command, "--help", home=tmp_path)).stdout.split())
    assert "attackers are assumed to have them" in help_text
    assert "a query in company leaves among them" in help_text
    assert "Public strings that leave instead of yours" in help_text


def test_commands_without_voices_do_not_speak_of_them(tmp_path):
    help_text = " ".join(as_text(run_command("attack", "--help", home=tmp_path)).stdout.split())
    assert "Public strings that leave instead of yours" in help_text
    assert "voice" not in help_text
