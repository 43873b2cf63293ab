"""What errors say: the word that was meant, and the package that is missing."""

import json
import sys
from pathlib import Path

import pytest

from sottovoce.errors import SottovoceError, UsageError, did_you_mean, need
from sottovoce.ledger import BudgetError, DamagedLedgerError


def test_the_nearest_option_is_asked_for():
    assert did_you_mean("vikrey", ["cmp", "vickrey-cmp"]) == "did you mean 'vickrey-cmp'?"
    assert did_you_mean("zyzzyva", ["cmp"]) == ""
    assert did_you_mean("zyzzyva", ["cmp"], "there is cmp") == "there is cmp"
    assert did_you_mean("cmp", iter(["cmp"])) == "did you mean 'cmp'?"


def test_a_package_that_is_there_is_imported():
    assert need("json", None) is json


@pytest.mark.parametrize(
    ("package", "extra", "rest", "message"),
    [
        ("torch", "gpu", (), "this needs torch: pip install 'sottovoce[gpu]'"),
        ("a_b.c", None, (), "this needs a_b: pip install a-b"),
        (
            "torch",
            "gpu",
            ("the model needs torch", ", or use another"),
            "the model needs torch: pip install 'sottovoce[gpu]', or use another",
        ),
    ],
)
def test_a_missing_package_is_named_with_the_command_that_brings_it(
    monkeypatch, package, extra, rest, message
):
    monkeypatch.setitem(sys.modules, package.partition(".")[0], None)
    with pytest.raises(SottovoceError) as caught:
        need(package, extra, *rest)
    assert str(caught.value) == message
    # Nothing was typed wrong: the command line ends with 1, the service answers 503.
    assert not isinstance(caught.value, UsageError)


def test_an_error_gets_another_message_and_keeps_what_else_it_knows():
    error = BudgetError("too much", cost=3.0, left=1.0)
    told = error.with_message(f"file 2 of 3: {error}")
    assert told is error
    assert (str(told), told.cost, told.left) == ("file 2 of 3: too much", 3.0, 1.0)
    damaged = DamagedLedgerError(Path("ledger"), "a record is missing")
    assert str(damaged.with_message(f"row 4: {damaged}")).startswith("row 4: the ledger in ledger")
