"""A moment of the kill campaign: nothing is found, and each planted defect is."""

from __future__ import annotations

import os
import shutil

import pytest

pytest.importorskip("pyarrow", reason="pip install 'sottovoce[data]'")

from campaigns import kill
from campaigns.frame import generator
from ledger_children import entry
from power_cases import every_offset

from sottovoce.ledger import Ledger
from sottovoce.sanitizing.work import State, open_work

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked to be killed")

# Which trials meet the defect, by their scenes: kills are even, power cuts odd.
MET_BY = {
    "sent-first": (2, 12),
    "journal-first": (11, 1),
    "no-waiting": (15, 7),
    "two-renames": (15, 17),
    "old-anchor": (12, 2),
}


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    with kill.opened(tmp_path_factory.mktemp("kill")) as opened:
        opened.kills = 3
        yield opened


@pytest.mark.parametrize("number", [2, 3, 6, 9, 14, 15, 17, 19])
def test_killed_work_is_made_whole(campaign, number):
    outcome = campaign.trial(number, generator(2, number))
    assert outcome.findings == ()
    assert outcome.counts


@pytest.mark.parametrize("plant", kill.PLANTS)
def test_a_planted_defect_is_found(campaign, plant):
    with kill.planted(plant, campaign):
        for attempt in range(20):
            number = MET_BY[plant][attempt % 2] + 20 * attempt
            if campaign.trial(number, generator(2, number)).findings:
                return
    pytest.fail("twenty trials did not find it")


def test_a_journal_torn_at_any_byte_says_what_was_on_disk(memory_disk):
    """Cut off there, or followed by zeros or noise."""
    first, second = State(rows=40, size=3), State(rows=80, mark=(7, 7), size=6)
    for data in every_offset(first.line(), second.line()):
        with open_work(memory_disk / "out.csv", resume=True, overwrite=False) as work:
            work.begin({})
            (work.folder / "journal").write_bytes(data)
            work.output.write_bytes(b"abcdef")
            work.restore()
            assert work.state in (first, second)
            assert (work.state == second) == data.startswith(first.line() + second.line())
            assert work.output.stat().st_size == work.state.size


@pytest.mark.parametrize("step", [101, pytest.param(1, marks=pytest.mark.thorough)])
def test_the_ledgers_log_torn_at_any_byte_counts_whole_records(memory_disk, step):
    log = kill.log_of_a_charge(memory_disk / "log")
    begun = (log.before / "ledger.db-wal").read_bytes()
    after = (log.after / "ledger.db-wal").read_bytes()
    changed = next(i for i, byte in enumerate(after) if begun[i : i + 1] != bytes([byte]))
    seen = set()
    folder = memory_disk / "torn"
    for place in (*range(max(changed, len(after) - 4096), len(after), step), len(after)):
        for tail in (b"", bytes(len(after) - place)):
            shutil.copytree(log.before, folder)
            (folder / "ledger.db-wal").write_bytes(after[:place] + tail)
            records = Ledger.open(folder).check()
            assert records in (log.records, log.records + 1)
            assert records == log.records + 1 or place < len(after)
            seen.add(records)
            shutil.rmtree(folder)
    assert seen == {log.records, log.records + 1}
    Ledger.open(log.after).charge(entry())
