"""Turns what was measured into ratios of medians, as Markdown that also reads well as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from contest import Result
from systems import BASE, BOUND, OURS
from turns import BATCH, DISTINCT, QUERY_WORDS, SAMPLING, TEXT_WORDS, VARIANTS, WORKLOADS, Turn

NOTHING = "–"
LABELS = {
    "interactive": f"{QUERY_WORDS} words, {VARIANTS} variants",
    "batch": f"batches of {BATCH:,} words",
    "once": f"batches of {BATCH:,} words, {VARIANTS} variants of each off one noisy point",
    "text": f"a text of {TEXT_WORDS:,} words, {DISTINCT} of them distinct, {VARIANTS} variants",
    "again": "another text of the same words",
}


@dataclass
class Report:
    """Everything that one run of the benchmark found."""

    machine: dict[str, str]
    settings: dict[str, Any]
    spaces: dict[str, dict[str, Any]]
    import_seconds: list[float]
    skipped: dict[str, str]
    results: list[Result] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """All raw numbers, for a JSON file."""
        return asdict(self)

    def systems(self) -> list[str]:
        """The systems with at least one measurement, in order of appearance."""
        return list(dict.fromkeys(result.system for result in self.results if result.turns))


def whole_rate(turn: Turn) -> float:
    """Words a second, all that a caller waits for included."""
    return turn.words / turn.seconds


def core_rate(turn: Turn) -> float:
    """Words a second of the mechanism alone: ids in, ids out."""
    return turn.words / (turn.core_seconds or turn.seconds)


def cpu_rate(turn: Turn) -> float:
    """Words for each second of processor time: what other programs do changes it least."""
    return turn.words / (turn.cpu_seconds or turn.seconds)


def ratio(
    ours: Sequence[Turn],
    theirs: Sequence[Turn],
    rate: Callable[[Turn], float],
    their_rate: Callable[[Turn], float] = whole_rate,
) -> float | None:
    """How many times faster we were: the median over the rounds, where both had all of them.

    A slow system has fewer turns than a quick one, whose first turns, not yet warm, they would be
    paired with: there the medians are compared.
    """
    if not ours or not theirs:
        return None
    if len(ours) != len(theirs):
        return median(map(rate, ours)) / median(map(their_rate, theirs))
    return median(rate(our) / their_rate(their) for our, their in zip(ours, theirs, strict=True))


def markdown(report: Report) -> str:
    """The whole report."""
    parts = [introduction(report)]
    for space in report.spaces:
        facts = report.spaces[space]
        parts.append(
            f"## Space `{space}`: {facts['size']:,} words, {facts['dimension']} dimensions"
        )
        for workload in WORKLOADS:
            if heats(report, space, workload):
                parts += [f"Words per second, {LABELS[workload]}:", speed(report, space, workload)]
        parts += ["Seconds and peak memory (MiB) of a fresh process:", costs(report, space)]
        if exactness := accuracy(report, space):
            parts += ["Answers that are not the word nearest to the noisy point:", exactness]
    if left_out := omissions(report):
        parts += ["## Left out", left_out]
    return "\n\n".join(parts) + "\n"


def introduction(report: Report) -> str:
    """Where and how it was measured."""
    settings = report.settings
    facts = "\n".join(f"- {name}: {value}" for name, value in report.machine.items())
    return f"""# How fast, next to others

Measured by `python benchmarks/peers.py` in one run on one machine:

{facts}

`import sottovoce` takes {median(report.import_seconds):.3f} s (median of \
{len(report.import_seconds)} fresh processes). {quietness(report)}

Each system runs in a process of its own at ε = {settings["epsilon"]:g}, with the number of \
threads that its row says. The systems of a row take turns of {settings["seconds"]:g} s, \
{settings["rounds"]} each (fewer where a single call takes longer than that), and every figure is \
a median. A ratio is the median over the rounds of how many times faster sottovoce was \
in the same round, so it may differ a little from the quotient of the medians beside it; where a \
system had fewer turns, it is that quotient.

- *sgemm bound*: the words a second of a program that did nothing but the 2·V·d floating point \
operations of an exact search, at the speed of a large float32 matrix product on the same threads.
- *sample*: sottovoce's mechanism alone, word ids in and out; *of bound* compares this one.
- *base install*: the same without the extra `fast`.
- *sottovoce*: words in and words out as the peers do it; the ratios (×) compare this one.
- *pyPANTERA*, *mldp-text*: as published, with their own default parameters. The first goes \
through texts of {QUERY_WORDS} words one by one, the second through single words, so neither gains \
from a batch; the second searches approximately."""


def shares(report: Report) -> list[float]:
    """What part of the time they asked for the products of the bound got, turn by turn."""
    return [
        turn.cpu_seconds / (turn.seconds * result.threads)
        for result in report.results
        if result.system == BOUND.name
        for turns in result.turns.values()
        for turn in turns
    ]


def quietness(report: Report) -> str:
    """Whether other work was in the way: pure computation should get all the time it asks for."""
    if not (parts := shares(report)):
        return ""
    return (
        f"The matrix products got {median(parts):.0%} of the processor time that their threads "
        f"could use (at worst {min(parts):.0%}): well below 100% means that the machine was busy."
    )


def speed(report: Report, space: str, workload: str) -> str:
    """One line for each mechanism and number of threads, one column or two for each system."""
    peers = [n for n in report.systems() if n not in (OURS.name, BASE.name, BOUND.name)]
    with_base = [BASE.name] if BASE.name in report.systems() else []
    header = ["mechanism", "threads", BOUND.name, *with_base, *["of bound"] * len(with_base)]
    header += ["sample", "of bound", OURS.name]
    for peer in peers:
        header += [peer, "×"]
    lines = []
    for mechanism, threads in heats(report, space, workload):
        turns = {
            result.system: result.turns.get(workload, [])
            for result in report.results
            if (result.space, result.mechanism, result.threads) == (space, mechanism, threads)
        }
        ours, bound = turns.get(OURS.name, []), turns.get(BOUND.name, [])
        line = [mechanism, str(threads), rate(bound)]
        for name in (*with_base, OURS.name):
            alone = turns.get(name, [])
            # Draws from a table do not search: nothing bounds them.
            share = None if mechanism in SAMPLING else ratio(alone, bound, core_rate)
            line += [rate(alone, core_rate), number(share, ".0%")]
        line.append(rate(ours))
        for peer in peers:
            theirs = turns.get(peer, [])
            line += [rate(theirs), number(ratio(ours, theirs, whole_rate), ",.0f")]
        lines.append(line)
    return table(header, lines, text_columns=1)


def costs(report: Report, space: str) -> str:
    """Time to the first answer and peak memory, with the fewest threads that were measured."""
    header = ["mechanism", "system", "import", "load", "first answer", "loaded", *WORKLOADS]
    fewest = min((result.threads for result in report.results), default=1)
    lines = []
    for result in report.results:
        if result.space == space and result.threads == fewest and result.turns:
            if result.system == BOUND.name:
                continue
            start = result.start
            peaks = [turns[-1].peak_mib if turns else None for turns in _all_turns(result)]
            seconds = [start[f"{name}_seconds"] for name in ("import", "load", "first")]
            memory = [start["loaded_mib"], *peaks]
            lines.append(
                [result.mechanism, result.system]
                + [number(value, ".2f") for value in seconds]
                + [number(value, ",.0f") for value in memory]
            )
    return table(header, lines, text_columns=2)


def _all_turns(result: Result) -> list[list[Turn]]:
    return [result.turns.get(workload, []) for workload in WORKLOADS]


def accuracy(report: Report, space: str) -> str:
    """How often the systems that search approximately miss, or nothing if none was asked."""
    lines = []
    for mechanism in dict.fromkeys(result.mechanism for result in report.results):
        counts: dict[str, list[dict[str, int]]] = {}
        for result in report.results:
            if (result.space, result.mechanism) == (space, mechanism) and result.checks:
                counts.setdefault(result.system, []).append(result.checks["exactness"])
        for system, found in counts.items():
            missed, checked = (sum(c[key] for c in found) for key in ("not_nearest", "checked"))
            share = f"{missed / checked:.1%}"
            lines.append([mechanism, system, f"{missed:,}", f"{checked:,}", share])
    header = ["mechanism", "system", "not the nearest", "of", "share"]
    return table(header, lines, text_columns=2) if lines else ""


def omissions(report: Report) -> str:
    """What could not be measured, and why."""
    reasons = {f"{name}: {reason}": None for name, reason in report.skipped.items()}
    for result in report.results:
        if result.skipped:
            reasons[f"{result.system}, {result.mechanism}: {result.skipped}"] = None
    return "\n".join(f"- {reason}" for reason in reasons)


def heats(report: Report, space: str, workload: str) -> list[tuple[str, int]]:
    """Mechanism and threads of each heat in a space in which sottovoce did this work."""
    found = [
        (r.mechanism, r.threads)
        for r in report.results
        if r.space == space and r.system == OURS.name and workload in r.turns
    ]
    return list(dict.fromkeys(found))


def rate(turns: Sequence[Turn], of: Callable[[Turn], float] = whole_rate) -> str:
    """The median rate, with three digits or so."""
    value = median(map(of, turns)) if turns else None
    return number(value, ",.1f" if value is not None and value < 100 else ",.0f")


def number(value: float | None, form: str) -> str:
    """A number, or a dash where there is none."""
    return NOTHING if value is None else format(value, form)


def table(header: Sequence[str], lines: Sequence[Sequence[str]], text_columns: int) -> str:
    """A Markdown table, padded so that it also reads well as plain text."""
    widths = [max(2, *map(len, column)) for column in zip(header, *lines, strict=True)]

    def row(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if i < text_columns else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = [
        "-" * width if i < text_columns else "-" * (width - 1) + ":"
        for i, width in enumerate(widths)
    ]
    return "\n".join([row(header), row(rule), *map(row, lines)])
