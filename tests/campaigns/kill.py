"""Kill: kill -9 at random moments, power cuts, torn files; then the work is gone on with.

Children are forked from a process that has imported everything, so that kills hit the work and not
the imports; some commands are processes of their own. Workers of Dask and Spark are killed while
they work; those that are not installed are counted as not tried.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from ledger_children import entry

from campaigns.frame import Outcome
from campaigns.kill_clusters import CLUSTERS, NAMES, PACKAGES, cluster
from campaigns.kill_processes import forked, told
from campaigns.kill_scenes import LedgerScene, Scene, all_scenes, home, remove
from campaigns.power import Watched, log_of_a_charge, torn
from sottovoce import files
from sottovoce.errors import SottovoceError
from sottovoce.ledger import Ledger
from sottovoce.sanitizing import sources, work
from sottovoce.threads import set_threads

PLANTS = {
    "sent-first": "the ledger's processes send, and count then",
    "journal-first": "the journal of sanitize says that a block is there before it is",
    "no-waiting": "a folder gets its name before its files are on disk",
    "two-renames": "a folder is moved away before the one that replaces it has its name",
    "old-anchor": "the note of how far the ledger is, is written before the ledger",
}
KILLS = 12
"""In one trial, before the work is let go on to its end."""
CUTS = 4
"""Power cuts in one trial, each of another moment."""
COMMAND_EVERY, CLUSTER_EVERY = 40, 25
"""Trials between two with commands as processes of their own, and with a cluster."""


class Kill:
    """One trial: one kind of work, killed a few times, or cut off from power."""

    unit = "kills"

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self.scenes = all_scenes(folder / "setup")
        self.kills = KILLS
        self._seconds: dict[str, float] = {}
        self.watched: dict[str, Watched] = {}
        self._clusters: dict[str, subprocess.Popen[str]] = {}

    def trial(self, number: int, rng: np.random.Generator) -> Outcome:
        place = self._folder / f"trial-{number}"
        try:
            turn, place_in_turn = divmod(number, CLUSTER_EVERY)
            if place_in_turn == CLUSTER_EVERY - 1:
                return self._cluster(tuple(CLUSTERS)[turn % len(CLUSTERS)], place, rng)
            if number % COMMAND_EVERY == COMMAND_EVERY - 1:
                return self._command(place, rng)
            scene = self.scenes[number // 2 % len(self.scenes)]
            if number % 2 == 0:
                return self._kills(scene, place, rng, self.kills)
            if isinstance(scene, LedgerScene):
                return self._torn_ledger(place, rng)
            return self._power_cuts(scene, place, rng)
        finally:
            remove(place)

    # Kills

    def _kills(self, scene: Scene, place: Path, rng: np.random.Generator, attempts: int) -> Outcome:
        counts: Counter[str] = Counter()
        findings: list[str] = []
        scene.prepare(place)
        for _ in range(attempts):
            seconds = self._usual(scene)
            children = [forked(scene.work, place, who) for who in range(scene.processes)]
            moments = sorted((float(rng.random()) * seconds, child) for child in children)
            begun = time.monotonic()
            for moment, child in moments:
                time.sleep(max(0.0, begun + moment - time.monotonic()))
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            all_killed = True
            for moment, child in moments:
                status = os.waitpid(child, 0)[1]
                killed = os.WIFSIGNALED(status)
                all_killed &= killed
                # Kills shall come while there is work, however busy the machine is.
                seconds = self._seconds.get(scene.name, seconds)
                self._seconds[scene.name] = seconds * 1.1 if killed else min(seconds, moment)
                counts["kills" if killed else "done before the kill"] += 1
                counts[f"kills of {scene.name}"] += killed
                if not killed and os.WEXITSTATUS(status):
                    findings.append(f"{scene.name}: it failed after a kill{told(place, child)}")
            findings += wrong(scene, scene.at_any_moment(place))
            if not all_killed and not scene.endless:
                findings += self._ended(scene, place)
                remove(place)
                scene.prepare(place)
        findings += self._ended(scene, place)
        return Outcome(counts, tuple(findings))

    def _ended(self, scene: Scene, place: Path) -> list[str]:
        """Let the work go on to its end, and look at what it made."""
        if not scene.endless:
            child = forked(scene.work, place, 0)
            if os.waitpid(child, 0)[1]:
                return [f"{scene.name}: it could not be gone on with{told(place, child)}"]
        return wrong(scene, scene.when_done(place))

    def _usual(self, scene: Scene) -> float:
        """How long the work takes, undisturbed."""
        if scene.endless:
            return 0.15
        if scene.name not in self._seconds:
            place = self._folder / "usual"
            scene.prepare(place)
            begun = time.monotonic()
            child = forked(scene.work, place, 0)
            if os.waitpid(child, 0)[1]:
                raise RuntimeError(f"{scene.name} fails undisturbed{told(place, child)}")
            self._seconds[scene.name] = time.monotonic() - begun
            remove(place)
        return self._seconds[scene.name]

    def _command(self, place: Path, rng: np.random.Generator) -> Outcome:
        """The real command, begun anew each time."""
        findings: list[str] = []
        place.mkdir()
        space = self._folder / "setup" / "space-csv"
        arguments = ["sanitize", self._folder / "setup" / "in.csv", place / "out.csv"]
        arguments += ["--column", "text", "--seed", "1", "--space", space, "--resume"]
        command = [sys.executable, "-m", "sottovoce", *map(str, arguments)]
        environment = {**os.environ, "SOTTOVOCE_HOME": str(place / "home")}
        journal = place / ".out.csv.sanitizing" / "journal"
        kills = 0
        for _ in range(2):
            process = subprocess.Popen(
                command,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            while process.poll() is None and not journal.exists():
                time.sleep(0.005)
            time.sleep(float(rng.random()) * 0.1)
            process.kill()
            kills += process.wait() == -signal.SIGKILL
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        whole = subprocess.run(
            [argument.replace("out.csv", "whole.csv") for argument in command],
            env=environment,
            capture_output=True,
            check=False,
        )
        # The second one may have been finished before it was killed.
        finished = b"finished earlier" in done.stderr
        if whole.returncode or (done.returncode and not finished):
            findings.append("sanitize as a command: it could not be gone on with")
        elif (place / "out.csv").read_bytes() != (place / "whole.csv").read_bytes():
            findings.append("sanitize as a command: another output than undisturbed")
        return Outcome({"kills": kills, "kills of commands begun anew": kills}, tuple(findings))

    def _cluster(self, kind: str, place: Path, rng: np.random.Generator) -> Outcome:
        counts: Counter[str] = Counter({"kills": 0})
        name = NAMES[kind]
        if importlib.util.find_spec(PACKAGES[kind]) is None:
            return Outcome(counts + Counter({f"not tried: kills of {name} workers": 1}))
        if kind not in self._clusters:
            self._clusters[kind] = self._stack.enter_context(cluster(kind, self._folder))
        process = self._clusters[kind]
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{int(rng.integers(1 << 30))} {place}\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        counts["kills"] = counts[f"kills of {name} workers"] = answer["kills"]
        counts[f"{name} clusters that were lost, gone on with"] += answer["lost"]
        return Outcome(counts, tuple(answer["findings"]))

    # Power

    def _power_cuts(self, scene: Scene, place: Path, rng: np.random.Generator) -> Outcome:
        counts: Counter[str] = Counter({"kills": 0})
        findings: list[str] = []
        watched = self._watch(scene)
        for number in range(CUTS):
            cut = place / str(number)
            cut.mkdir(parents=True)
            at_end = number == 0
            counts["torn files"] += watched.cut(rng, cut, at_end=at_end)
            counts["power cuts"] += 1
            counts[f"power cuts of {scene.name}"] += 1
            if at_end:
                what_is_wrong = wrong(scene, scene.when_done(cut, tidy=False))
            else:
                what_is_wrong = wrong(scene, scene.at_any_moment(cut)) + self._ended(scene, cut)
            findings += [f"power cut: {what}" for what in what_is_wrong]
        return Outcome(counts, tuple(findings))

    def _watch(self, scene: Scene) -> Watched:
        if scene.name not in self.watched:
            place = self._folder / "watched"
            scene.prepare(place)
            watched = Watched(place)
            with watched.watching():
                scene.work(place, 0)
            self.watched[scene.name] = watched
            remove(place)
        return self.watched[scene.name]

    def _torn_ledger(self, place: Path, rng: np.random.Generator) -> Outcome:
        """The last write into SQLite's log, up to any byte: it counts as whole, or not at all."""
        findings: list[str] = []
        files_before = log_of_a_charge(self._folder / "torn-ledger")
        for number in range(CUTS):
            folder = place / str(number) / "ledger"
            shutil.copytree(files_before.before, folder)
            after = (files_before.after / "ledger.db-wal").read_bytes()
            begun = (files_before.before / "ledger.db-wal").read_bytes()
            (folder / "ledger.db-wal").write_bytes(torn(begun, after, rng))
            try:
                ledger = Ledger.open(folder)
                if ledger.check() not in (files_before.records, files_before.records + 1):
                    findings.append("ledger, torn log: a record that was on disk is gone")
                ledger.charge(entry())
                ledger.check()
            except SottovoceError as error:
                findings.append(f"ledger, torn log: it cannot be used ({type(error).__name__})")
        return Outcome({"kills": 0, "torn logs of the ledger": CUTS}, tuple(findings))


def wrong(scene: Scene, findings: Iterator[str]) -> list[str]:
    """What is wrong, as a list; so is an error where something should be readable."""
    what_is_wrong = []
    try:
        what_is_wrong.extend(findings)
    except SottovoceError as error:
        what_is_wrong.append(f"it cannot be read ({type(error).__name__})")
    return [f"{scene.name}: {what}" for what in what_is_wrong]


# Defects


@contextmanager
def planted(plant: str | None, campaign: Kill) -> Iterator[None]:
    """Break something, for as long as it takes to see that it is noticed."""
    with ExitStack() as stack:
        if plant == "sent-first":
            for scene in campaign.scenes:
                if isinstance(scene, LedgerScene):
                    stack.enter_context(patch.object(scene, "charge_first", False))
        if plant == "journal-first":

            def append(appender: work.Appender, data: bytes, state: work.State) -> None:
                appender.work.note(state)
                files.write_through(appender.file, data)

            stack.enter_context(patch.object(work.Appender, "append", append))
        if plant == "no-waiting":
            stack.enter_context(patch.object(files, "settle_folder", lambda folder: None))
        if plant == "two-renames":
            stack.enter_context(patch.object(files, "exchange", lambda one, two: False))
        if plant == "old-anchor":
            stack.enter_context(early_anchor())
        # What was watched before was sound.
        campaign.watched.clear()
        stack.callback(campaign.watched.clear)
        yield


@contextmanager
def early_anchor() -> Iterator[None]:
    """The anchor names the next record before that is on disk."""
    from sottovoce.ledger import anchor, book

    write_state = book.Book._write_state

    def both(this: Any, state: Any) -> None:
        write_state(this, state)
        anchor.write(this._folder, this)
        time.sleep(0.002)

    with patch.object(book.Book, "_write_state", both):
        yield


@contextmanager
def opened(folder: Path, plant: str | None = None) -> Iterator[Kill]:
    """The campaign, in a folder in memory where there is one: waiting for a disk proves nothing."""
    set_threads(1)
    memory = Path("/dev/shm") / f"sottovoce-kill-{os.getpid()}"
    place = memory if os.access("/dev/shm", os.W_OK) else folder / "kill"
    place.mkdir()
    with ExitStack() as stack:
        stack.callback(remove, place)
        stack.enter_context(home(place / "home"))
        stack.enter_context(patch.object(sources, "ROWS_AT_A_TIME", 40))
        stack.enter_context(patch.object(files, "SCRATCH_SECONDS", -1.0))
        campaign = Kill(place, stack)
        stack.enter_context(planted(plant, campaign))
        yield campaign
