"""What the harness itself promises; run with ``pytest benchmarks``."""

# ruff: noqa: D103 - the names say it

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from contest import Pace, Result, run_heat
from export_space import export, words_to_obfuscate
from ratios import STORED, Case, Table, compare, measured, table_of
from report import Report, core_rate, markdown, ratio, table, whole_rate
from systems import NotInstalledError, Peer, System
from turns import WORKLOADS, Piece, Supply, Task, Turn, take_turn, workloads_of

from sottovoce.spaces.space import WordSpace

WORKER = """
import sys
sys.path.insert(0, {here!r})
from turns import Loaded, NotOfferedError, Piece, serve

def bring_in(task):
    print("a library that talks")
    if task.mechanism == "unheard-of":
        raise NotOfferedError
    return None

def load(task, module):
    def call():
        if task.mechanism == "breaks" and task.threads == 2:
            raise SystemExit(3)
        return Piece(10, 0.001)
    def broken():
        raise RuntimeError("never to be shown")
    return Loaded(
        {{"interactive": call, "batch": broken if task.mechanism == "breaks" else call}},
        {{"exactness": lambda: {{"checked": 10, "not_nearest": 1}}}},
    )

serve(bring_in, load, "numpy")
"""


@pytest.fixture
def toy(tmp_path: Path) -> System:
    """A system whose worker does next to nothing."""
    script = tmp_path / "worker_toy.py"
    script.write_text(WORKER.format(here=str(Path(__file__).parent)))
    return System("toy", str(script))


SETTINGS = {"epsilon": 10.0, "seconds": 2, "rounds": 5, "fast": True}


def turn(words: float, seconds: float = 1.0, core: float | None = None) -> Turn:
    """A turn that was taken."""
    return Turn(words, seconds, seconds, core, 10.0)


def heat(toy: System, tmp_path: Path, mechanism: str, threads: int = 1) -> Result:
    """The toy's result in a heat of its own."""
    task = Task("tiny", mechanism, threads, 10.0, str(tmp_path))
    (result,) = run_heat([toy], task, Pace(0.01, 3), tmp_path, lambda _: None)
    return result


def test_a_heat_measures_every_workload_whatever_the_library_prints(
    toy: System, tmp_path: Path
) -> None:
    result = heat(toy, tmp_path, "cmp")
    assert result.skipped is None
    for workload in ("interactive", "batch"):
        turns = result.turns[workload]
        assert len(turns) >= 3
        assert all(turn.words >= 10 and turn.seconds >= 0.01 for turn in turns)
    assert result.checks == {"exactness": {"checked": 10, "not_nearest": 1}}
    assert "a library that talks" in (tmp_path / "toy.log").read_text()


def test_a_mechanism_that_a_system_lacks_is_left_out_with_the_reason(
    toy: System, tmp_path: Path
) -> None:
    assert heat(toy, tmp_path, "unheard-of").skipped == "not offered"


def test_a_worker_that_fails_is_left_out_and_its_message_stays_in_the_log(
    toy: System, tmp_path: Path
) -> None:
    result = heat(toy, tmp_path, "breaks")
    assert result.skipped == "RuntimeError"
    assert not result.turns
    assert "never to be shown" in (tmp_path / "toy.log").read_text()


def test_a_worker_that_dies_is_left_out_with_its_exit_code(toy: System, tmp_path: Path) -> None:
    assert heat(toy, tmp_path, "breaks", threads=2).skipped == "its process ended (exit code 3)"


def test_a_slow_system_gets_fewer_turns_but_enough_for_a_median() -> None:
    pace = Pace(seconds=2.0, rounds=5)
    assert not pace.enough([turn(1, 30.0)] * 2)
    assert pace.enough([turn(1, 30.0)] * 3)
    assert not pace.enough([turn(1, 2.0)] * 4)
    assert pace.enough([turn(1, 2.0)] * 5)


def test_a_turn_counts_all_words_and_only_whole_calls() -> None:
    taken = take_turn(lambda: Piece(7), 0.0)
    assert taken.words == 7
    assert taken.core_seconds is None
    assert take_turn(lambda: Piece(7, 0.5), 0.0).core_seconds == 0.5


def test_words_are_dealt_in_order_and_round_and_round() -> None:
    supply = Supply(["a", "b", "c"])
    assert [supply.take(2), supply.take(2)] == [["a", "b"], ["c", "a"]]


def test_a_ratio_pairs_the_rounds_so_that_noise_in_both_cancels() -> None:
    ours, theirs = [turn(100), turn(10), turn(50)], [turn(10), turn(1), turn(10)]
    assert ratio(ours, theirs, whole_rate) == 10
    assert ratio(ours, [], whole_rate) is None
    assert ratio([], theirs, whole_rate) is None
    assert core_rate(turn(100, 2.0, core=1.0)) == 100


def test_few_turns_of_a_slow_system_are_not_paired_with_our_first_ones() -> None:
    """Of five turns the first two were not warm yet; the slow system had three."""
    ours, theirs = [turn(100), turn(100), *[turn(400)] * 3], [turn(10, 5.0)] * 3
    assert ratio(ours, theirs, whole_rate) == 200


def test_the_report_names_ratios_and_what_was_left_out() -> None:
    def taken(system: str, words: float, core: float | None = None) -> Result:
        turns = {name: [turn(words, 1.0, core)] for name in ("interactive", "batch")}
        start = {f"{name}_seconds": 1.0 for name in ("import", "load", "first")}
        return Result("tiny", "cmp", 1, system, start=start | {"loaded_mib": 5.0}, turns=turns)

    report = Report({}, SETTINGS, {}, [0.1], {"gone": "why"})
    report.spaces["tiny"] = {"size": 10, "dimension": 2}
    report.results += [
        taken("sgemm bound", 1000),
        taken("sottovoce", 450, core=0.5),
        taken("base install", 400, core=0.5),
        taken("pyPANTERA", 3),
        Result("tiny", "cmp", 1, "mldp-text", skipped="not offered"),
    ]
    text = markdown(report)
    line = next(line for line in text.splitlines() if line.startswith("| cmp"))
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells == ["cmp", "1", "1,000", "800", "80%", "900", "90%", "450", "3.0", "150"]
    assert "- gone: why" in text
    assert "- mldp-text, cmp: not offered" in text
    assert json.loads(json.dumps(report.as_dict()))["results"][1]["system"] == "sottovoce"


def run_of(fast: bool, **rates: float) -> Report:
    """A run in which the bound did 100 words a second, and the systems named so many."""
    report = Report({"processor": "made up"}, SETTINGS | {"fast": fast}, {}, [], {})
    systems = {"bound": "sgemm bound", "ours": "sottovoce", "base": "base install"}
    for name, rate in ({"bound": 100.0} | rates).items():
        # One round on a machine twice as slow: the bound was, too.
        slower = 50.0 if name == "bound" else rate / 2
        turns = {"batch": [turn(rate if name != "bound" else 100.0), turn(slower)]}
        report.results.append(Result("tiny", "cmp", 2, systems[name], turns=turns))
    return report


def test_a_ratio_is_stored_and_read_back_with_its_tolerance(tmp_path: Path) -> None:
    table = table_of(run_of(True, ours=150, base=90))
    table.write(tmp_path / "ratios.json")
    assert Table.read(tmp_path / "ratios.json") == table
    fast, base = (Case("tiny", "cmp", 2, "batch", install) for install in ("fast", "base"))
    assert table.ratios == {fast: 1.5, base: 0.9}
    assert table.about["processor"] == "made up"
    assert table.about["processor time that the bound got"] == "50%"


def test_a_ratio_below_its_tolerance_is_a_regression_and_named() -> None:
    stored = table_of(run_of(True, ours=150, base=90))
    worse = compare(stored, run_of(True, ours=112, base=68))
    assert worse.exit_code == 1
    assert worse.compared == 2
    (line,) = worse.regressions
    assert line.startswith("tiny, cmp, batch, 2 threads, fast install: 1.12 of the bound")
    assert "REGRESSION tiny" in str(worse)
    better = compare(stored, run_of(True, ours=113, base=200))
    assert (better.exit_code, list(better.regressions)) == (0, [])


def test_a_run_without_the_extra_is_compared_with_the_base_install_only() -> None:
    stored = table_of(run_of(True, ours=150, base=90))
    now = compare(stored, run_of(False, ours=90))
    assert (now.exit_code, now.compared, now.missing, now.change) == (0, 1, 1, 1.0)


def test_nothing_to_compare_is_not_taken_for_good() -> None:
    empty = compare(table_of(run_of(True, ours=1)), run_of(True))
    assert (empty.exit_code, empty.compared) == (2, 0)


def test_with_one_thread_processor_time_is_compared() -> None:
    """A machine that gives us a tenth of the time it gives to the bound makes no regression."""
    report = Report({}, SETTINGS, {}, [], {})
    for system, seconds in (("sgemm bound", 1.0), ("sottovoce", 10.0)):
        turns = {"batch": [Turn(100.0, seconds, 1.0, seconds, 10.0)]}
        report.results.append(Result("tiny", "cmp", 1, system, turns=turns))
    assert list(measured(report).values()) == [1.0]


def test_every_workload_is_measured_for_one_kind_of_mechanism_at_least() -> None:
    assert set(workloads_of("cmp")) | set(workloads_of("tem")) == set(WORKLOADS)
    assert "batch" not in workloads_of("tem")


def test_the_stored_table_can_be_read_and_has_no_case_twice() -> None:
    text = STORED.read_text("utf-8")
    table = Table.read(STORED)
    assert len(table.ratios) == len(json.loads(text)["ratios"])
    assert all(0 < tolerance < 1 for tolerance in table.tolerances.values())


def test_every_line_of_a_table_has_the_same_width_and_every_rule_a_dash() -> None:
    lines = table(["a", "heading", "×"], [["a long cell", "1", "2"], ["b", "22", "3"]], 1)
    assert len({len(line) for line in lines.splitlines()}) == 1
    assert all("-" in cell for cell in lines.splitlines()[1].strip("|").split("|"))


def test_peers_read_the_same_words_and_vectors_as_we_do(tmp_path: Path) -> None:
    words = ["the", "of", "two words", "no\u00a0break", "naïve", "X", "12"]
    vectors = np.round(np.random.default_rng(3).normal(size=(7, 4)), 5)
    space = WordSpace.from_arrays(words, vectors, name="tiny")
    folder = export(space, tmp_path, texts=True)
    glove = (folder / "glove.txt").read_text("utf-8")
    assert (folder / "word2vec.txt").read_text("utf-8") == "5 4\n" + glove
    for line in glove.splitlines():
        word, *values = line.split()
        assert np.array_equal(np.array(values, dtype=np.float32), space.vectors[space.id(word)])
    assert json.loads((folder / "facts.json").read_text())["words"] == words_to_obfuscate(space)
    assert sorted(words_to_obfuscate(space)) == ["of", "the"]


def test_a_peer_that_cannot_be_installed_is_refused_and_not_taken_for_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    peer = Peer("nobody", "no-such-package-anywhere==0.0.0", "worker_toy.py")
    with pytest.raises(NotInstalledError, match="no-such-package-anywhere"):
        peer.install(tmp_path)
    assert "no-such-package-anywhere" in next(tmp_path.glob("*.log")).read_text()
    assert not list(tmp_path.glob("*/complete"))
