"""``sottovoce ledger`` from the outside."""

from __future__ import annotations

import json

import pytest
from ledger_children import entry
from typer.testing import CliRunner

from sottovoce.cli.ledger import app
from sottovoce.errors import UsageError
from sottovoce.ledger import Budget, DamagedLedgerError, Ledger, NoLedgerError


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def run(*arguments, stdin=None):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_show_without_a_ledger_makes_none(home):
    assert "Nothing has been released." in run("show").stdout
    said = json.loads(run("show", "--json").stdout)
    assert said == {"budget": {"per_text": None, "total": None}, "spent": [], "records": []}
    assert not home.exists()


def test_show_tells_what_was_spent_the_budget_and_the_last_releases():
    ledger = Ledger.open()
    for _ in range(3):
        ledger.charge(entry(words=("a", "b")))
    ledger.set_budget(per_text=5, total=None)
    shown = run("show").stdout
    for part in ("metric euclidean", "At most 2 nats per unit of euclidean distance", "bm25"):
        assert part in shown
    assert "Budget: 5 nats for each text, under each promise." in shown
    assert shown.count("remembered") == 2
    assert run("show", "--last", 1).stdout.count("bm25") == 1


def test_show_as_json_is_json_alone():
    Ledger.open().charge(entry())
    result = run("show", "--json")
    said = json.loads(result.stdout)
    assert said["spent"][0]["nats"] == 2.0
    assert said["records"][0]["mechanism"] == "cmp:epsilon=1"
    assert "melanoma" not in result.stdout
    assert result.stderr == ""


def test_show_of_one_text_takes_it_from_the_line_or_from_standard_input():
    ledger = Ledger.open()
    ledger.charge(entry())
    ledger.set_budget(per_text=5, total=None)
    for result in (
        run("show", "--json", "--text", " Melanoma "),
        run("show", "--json", "--text", "-", stdin="MELANOMA\n"),
    ):
        said = json.loads(result.stdout)
        assert said["spent"][0]["left"] == 3.0
        assert len(said["records"]) == 1
    assert json.loads(run("show", "--json", "--text", "else").stdout)["spent"] == []
    assert "Nothing has been released of this text." in run("show", "--text", "else").stdout


def test_a_budget_is_set_shown_kept_and_removed():
    assert "No budget" in run("budget").stdout
    assert "10 nats for each text" in run("budget", "--per-text", 10).stdout
    assert "10 nats for each text and 50 nats in total" in run("budget", "--total", 50).stdout
    assert Ledger.open().budget() == Budget(10.0, 50.0)
    assert "No budget" in run("budget", "--none").stdout
    assert Ledger.open().budget() == Budget()


def test_a_wrong_budget_is_refused():
    with pytest.raises(UsageError, match="leave out"):
        run("budget", "--none", "--total", 5)
    with pytest.raises(UsageError, match="from 0"):
        run("budget", "--total", -5)
    result = run("budget", "--total", "melanoma")
    assert result.exit_code == 2
    assert "melanoma" not in result.stderr


def test_check_says_that_all_is_well_or_what_is_not(home):
    with pytest.raises(NoLedgerError):
        run("check")
    Ledger.open().charge(entry())
    assert run("check").stdout == "1 records, none changed or removed\n"
    (home / "ledger" / "ledger.key").write_bytes(bytes(32))
    with pytest.raises(DamagedLedgerError):
        run("check")


@pytest.mark.parametrize("answer", ["no\n", "y\n", "YES\n", ""])
def test_reset_forgets_nothing_unless_yes_is_typed(answer):
    Ledger.open().charge(entry())
    result = run("reset", stdin=answer)
    assert result.exit_code == 1
    assert "does not unsay" in result.stderr
    assert Ledger.open().check() == 1


@pytest.mark.parametrize(("options", "stdin"), [(["--yes"], None), ([], "yes\n")])
def test_reset_forgets_what_was_spent_and_keeps_the_budget(options, stdin):
    ledger = Ledger.open()
    ledger.charge(entry())
    ledger.set_budget(1, 2)
    result = run("reset", *options, stdin=stdin)
    assert "budgets are as before" in result.stderr
    assert (ledger.check(), ledger.budget()) == (0, Budget(1.0, 2.0))


def test_reset_sets_a_damaged_ledger_aside(home):
    Ledger.open().charge(entry())
    (home / "ledger" / "ledger.db").write_bytes(b"damaged")
    result = run("reset", "--yes")
    assert "without budgets" in result.stderr
    assert Ledger.open().check() == 0
    (aside,) = home.glob("ledger-*")
    assert str(aside) in result.stderr.replace("\n", "")
    assert (aside / "ledger.db").read_bytes() == b"damaged"
