"""A stored table of ratios to the bound, and what has become worse since.

Words a second depend on the machine and on what else it does; words a second next to a matrix
product that was timed in the same seconds depend on them much less. So ratios are stored, each with
how far it may fall before that is called a regression.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from statistics import median

from contest import Result
from report import Report, core_rate, cpu_rate, quietness, ratio, shares, whole_rate
from systems import BASE, BOUND, HERE, OURS
from turns import SAMPLING

STORED = HERE / "ratios.json"
TOLERANCE = 0.25
"""By how much a ratio may fall, as a share of itself."""
TOLERANCE_OF_DRAWS = 0.5
"""The same for draws from tables, which are over in a moment."""


@dataclass(frozen=True)
class Case:
    """What was measured: which part of the program, on which work."""

    space: str
    mechanism: str
    threads: int
    workload: str
    install: str
    """``fast`` or ``base``: with the extra ``fast`` or without it."""

    def __str__(self) -> str:
        threads = f"{self.threads} thread{'s' * (self.threads > 1)}"
        return f"{self.space}, {self.mechanism}, {self.workload}, {threads}, {self.install} install"


@dataclass(frozen=True)
class Table:
    """Ratios by case, with their tolerances, and where they were measured."""

    about: dict[str, str]
    ratios: dict[Case, float]
    tolerances: dict[Case, float]

    def write(self, path: Path) -> None:
        """Write it as JSON, a line for each case."""
        lines = [
            json.dumps(asdict(case) | {"ratio": value, "tolerance": self.tolerances[case]})
            for case, value in self.ratios.items()
        ]
        rows = ",\n  ".join(lines)
        head = json.dumps(self.about, indent=1)
        path.write_text(f'{{"about": {head},\n "ratios": [\n  {rows}\n ]}}\n', "utf-8")

    @staticmethod
    def read(path: Path) -> Table:
        """Read what ``write`` wrote."""
        content = json.loads(path.read_text("utf-8"))
        ratios, tolerances = {}, {}
        for row in content["ratios"]:
            value, tolerance = row.pop("ratio"), row.pop("tolerance")
            ratios[Case(**row)], tolerances[Case(**row)] = value, tolerance
        return Table(content["about"], ratios, tolerances)


def measured(report: Report) -> dict[Case, float]:
    """The ratio of every case of a run."""
    heats: dict[tuple[str, str, int], dict[str, Result]] = {}
    for result in report.results:
        heat = heats.setdefault((result.space, result.mechanism, result.threads), {})
        heat[result.system] = result
    installs = {OURS.name: "fast" if report.settings["fast"] else "base", BASE.name: "base"}
    ratios = {}
    for (space, mechanism, threads), heat in heats.items():
        for system, install in installs.items():
            for workload, turns in heat[system].turns.items() if system in heat else ():
                bound = heat[BOUND.name].turns.get(workload, [])
                # With one thread, processor time: it hardly depends on what else is running.
                rates = (cpu_rate, cpu_rate) if threads == 1 else (core_rate, whole_rate)
                value = ratio(turns, bound, *rates)
                if value is not None:
                    # Draws from a table are the same with and without the extra.
                    needed = "base" if mechanism in SAMPLING else install
                    case = Case(space, mechanism, threads, workload, needed)
                    ratios[case] = float(f"{value:.3g}")
    return ratios


def table_of(report: Report) -> Table:
    """The table of a run, to be stored."""
    ratios = measured(report)
    about = dict(report.machine) | {"date": date.today().isoformat()}
    if parts := shares(report):
        about["processor time that the bound got"] = f"{median(parts):.0%}"
    tolerances = {
        case: TOLERANCE_OF_DRAWS if case.mechanism in SAMPLING else TOLERANCE for case in ratios
    }
    return Table(about, ratios, tolerances)


@dataclass(frozen=True)
class Comparison:
    """What became of the stored cases."""

    regressions: Sequence[str]
    compared: int
    missing: int
    change: float | None
    """The median of new ratio / stored ratio."""
    quietness: str
    """Whether other work was in the way."""

    def __str__(self) -> str:
        lines = [f"REGRESSION {line}" for line in self.regressions]
        lines.append(
            f"{self.compared} ratios compared, {len(self.regressions)} of them too low; "
            f"{self.missing} of the table not measured in this run"
        )
        if self.change is not None:
            lines.append(f"the ratios are {self.change:.2f} times the stored ones (median)")
        return "\n".join([*lines, self.quietness])

    @property
    def exit_code(self) -> int:
        """1 for a regression, 2 where there was nothing to compare."""
        return 1 if self.regressions else 0 if self.compared else 2


def compare(stored: Table, report: Report) -> Comparison:
    """Every stored case that was measured again, and those that fell below their tolerance."""
    now, regressions, changes = measured(report), [], []
    for case, before in stored.ratios.items():
        if case not in now:
            continue
        changes.append(now[case] / before)
        least = before * (1 - stored.tolerances[case])
        if now[case] < least:
            regressions.append(
                f"{case}: {now[case]:.2f} of the bound, stored {before:.2f}, allowed {least:.2f}"
            )
    missing = len(stored.ratios) - len(changes)
    change = median(changes) if changes else None
    return Comparison(regressions, len(changes), missing, change, quietness(report))
