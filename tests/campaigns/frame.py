"""What all campaigns share: trials by number, a limit, a file to go on from, a report.

A module of this package is a campaign if it has ``opened(folder, plant)``, a context manager that
yields a ``Campaign``, and ``PLANTS``, the defects that can be planted, each with what it breaks.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from sottovoce.files import write_whole

KEPT_FINDINGS = 100
"""Findings are all counted; so many are described."""
SAVED_EVERY = 5.0
"""Seconds between two savings; a campaign that is killed repeats the trials since."""


@dataclass(frozen=True)
class Outcome:
    """What one trial saw.

    counts
        How often what happened; ``unit`` of the campaign is among the keys.
    findings
        A sentence for each promise that was broken; it never repeats a protected text.
    """

    counts: Mapping[str, int]
    findings: tuple[str, ...] = ()


class Campaign(Protocol):
    """A row of trials, each of some units: searches, kills, inputs, requests."""

    unit: str

    def trial(self, number: int, rng: np.random.Generator) -> Outcome:
        """Do something hostile, and look whether every promise held."""
        ...


@dataclass
class Progress:
    """How far a campaign is; as JSON it is the file that the next run goes on from."""

    campaign: str
    seed: int
    unit: str
    trials: int = 0
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    found: int = 0
    findings: list[str] = field(default_factory=list)

    @property
    def units(self) -> int:
        """How many searches, kills, inputs or requests there were."""
        return self.counts[self.unit]

    def add(self, outcome: Outcome) -> None:
        """One more trial."""
        for what in outcome.findings:
            self.found += 1
            if len(self.findings) < KEPT_FINDINGS:
                self.findings.append(f"trial {self.trials}: {what}")
        self.counts.update(outcome.counts)
        self.trials += 1

    def save(self, file: Path) -> None:
        """Write it, whole or not at all."""
        write_whole(file, json.dumps(vars(self), indent=1).encode())

    @classmethod
    def load(cls, file: Path) -> Progress:
        """As it was saved."""
        saved = json.loads(file.read_text("utf-8"))
        return cls(**{**saved, "counts": Counter(saved["counts"])})

    def report(self) -> str:
        """A few lines for a person."""
        lines = [
            f"{self.campaign}: {self.units:,} {self.unit} in {self.trials:,} trials, "
            f"{self.seconds / 60:.1f} min, seed {self.seed}; {self.found:,} findings"
        ]
        lines += [f"  {what}: {count:,}" for what, count in sorted(self.counts.items())]
        return "\n".join([*lines, *(f"  FOUND {what}" for what in self.findings)])


def generator(seed: int, number: int) -> np.random.Generator:
    """The random numbers of one trial: they depend on nothing but seed and number."""
    return np.random.default_rng([seed, number])


def run(
    campaign: Campaign,
    progress: Progress,
    *,
    count: int,
    minutes: float,
    file: Path | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> Progress:
    """Trials until there were ``count`` units or the time is over; then the progress so far."""
    begun = saved = told = time.monotonic()
    before = progress.seconds
    try:
        while progress.units < count and time.monotonic() - begun < 60 * minutes:
            outcome = campaign.trial(progress.trials, generator(progress.seed, progress.trials))
            progress.add(outcome)
            now = time.monotonic()
            progress.seconds = before + now - begun
            if file is not None and now - saved > SAVED_EVERY:
                progress.save(file)
                saved = now
            if now - told > 60 or outcome.findings:
                tell(progress.report().splitlines()[0])
                told = now
    finally:
        if file is not None:
            progress.save(file)
    return progress
