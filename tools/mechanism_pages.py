"""Write a page for each mechanism, docs/mechanisms/NAME.md, with curves of what was measured.

Nothing is measured here and nothing is interpolated: figures are those of the package
(sottovoce/app/measured.json) and of the tables in docs/comparison.md and docs/mechanisms.md. A
mechanism of which there are none says so. Run it after any of these changed:

    python tools/mechanism_pages.py
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from svg_charts import COLOURS, GREY, Line, chart

from sottovoce.app.measured import PACKAGED
from sottovoce.mechanisms import Mechanism, kind, names
from sottovoce.mechanisms.build import stand_ins

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
FOLDER = DOCS / "mechanisms"
FIGURES = DOCS / "figures" / "mechanisms"
VERDICTS = ROOT / "sottovoce" / "app" / "verdicts.json"
OWN_PAGES = {
    "cover": "cover-law.md#the-law",
    "cover-subjects": "cover-law.md#company-that-runs-along",
}
RISK = "named at the first guess"
EXTRA_OPTIONS = {"pool": "--pool demo", "engine": "--corpus articles.jsonl"}
TRIED = "treatment for skin cancer"


@dataclass(frozen=True)
class Curve:
    """A picture: its file, content, what it shows in a few words, and all that must be known."""

    file: str
    svg: str
    shows: str
    about: str


def pages() -> dict[Path, str]:
    """Every file to be written, with its content."""
    files: dict[Path, str] = {}
    for name in names():
        if not kind(name).__module__.startswith("sottovoce."):
            continue  # Somebody registered one of their own.
        mechanism = kind(name)(**stand_ins(kind(name), {"encoder": "light"}))
        curves = [*_demo_plane(name), *_published_plane(name), *_by_epsilon(name)]
        files.update({FIGURES / curve.file: curve.svg for curve in curves})
        files[FOLDER / f"{name}.md"] = "\n".join(_page(mechanism, curves))
    return files


def _page(mechanism: Mechanism, curves: list[Curve]) -> Iterator[str]:
    name, promise, section = mechanism.name, mechanism.guarantee, _section(mechanism.name)
    with_pool = " and a pool of 10,000 strings" if "pool" in mechanism.resources() else ""
    yield "<!-- Written by tools/mechanism_pages.py: change that, or what it reads. -->"
    yield f"# {name}\n"
    yield f"{mechanism.summary[0].upper()}{mechanism.summary[1:]}.\n"
    yield f"*{mechanism.paper}*\n"
    yield f"[How it works, step by step](../{section}).\n"
    yield "## What it promises\n"
    yield f"With its usual parameters{with_pool}: {promise.sentence}\n"
    yield from (f"- {caveat}" for caveat in promise.caveats)
    yield f"\n{_verdict(name)}\n"
    yield "What these words mean: [glossary](../glossary.md).\n"
    yield "## Parameters\n"
    yield "| name | usual value | meaning |\n|---|---|---|"
    for row in mechanism.describe()["parameters"]:
        usual = "–" if row["default"] in (None, ()) else f"`{row['default']}`"
        yield f"| `{row['name']}` | {usual} | {row['help']} |"
    yield "\n## What was measured\n"
    for curve in curves:
        yield f"![{name}: {curve.shows}](../figures/mechanisms/{curve.file})\n\n{curve.about}\n"
    if not curves:
        yield (
            "There is no curve: neither what attackers get nor what is still found was measured "
            f"over its settings. What is known of it stands in [its section](../{section}).\n"
        )
    yield "## Try it\n\n```console"
    needed = [EXTRA_OPTIONS[part] for part in mechanism.resources() if part in EXTRA_OPTIONS]
    yield f"$ sottovoce mechanisms {name}"
    yield " ".join([f'$ sottovoce obfuscate "{TRIED}" -m {name}', *needed])
    yield "```\n"


def _section(name: str) -> str:
    """Where the mechanism is explained."""
    if name in OWN_PAGES:
        return OWN_PAGES[name]
    heading = _own_section(name).splitlines()[0]
    return "mechanisms.md#" + heading.replace(", ", "-")


def _verdict(name: str) -> str:
    verdicts = json.loads(VERDICTS.read_text("utf-8"))
    verdict = verdicts["mechanisms"].get(name)
    if verdict is None:
        return "The [audit](../audit.md) has given no dated verdict: run `sottovoce audit`."
    claims = "; ".join(f"{claim['label']}: {claim['verdict']}" for claim in verdict["claims"])
    with_spec = f"`{verdict['mechanism']}`, {verdicts['made']}"
    return f"Verdict of the [audit](../audit.md) ({with_spec}): {claims}."


def _demo_plane(name: str) -> Iterator[Curve]:
    """Risk and what is found on the demo, of the figures that the package brings along."""
    summary = json.loads(PACKAGED.read_text("utf-8"))[0]
    lines: dict[str, list[tuple[float, float, str]]] = {}
    rest: list[tuple[float, float, str]] = []
    for setting in summary["settings"]:
        risk, found = setting["lazy"]["value"], setting["nDCG@10"]["value"]
        if setting["spec"].partition(":")[0] == name:
            label = "" if setting["epsilon"] is None else f"{setting['epsilon']:g}"
            lines.setdefault(setting["release"], []).append((risk, found, label))
        else:
            rest.append((risk, found, ""))
    if not lines:
        return
    drawn = [Line(release, lines[release], COLOURS[i]) for i, release in enumerate(lines)]
    svg = chart(
        [Line("", rest, GREY), *drawn],
        across=RISK,
        up="nDCG@10",
        width=1,
        height=1,
        level=(summary["baseline"]["nDCG@10"], "the query itself"),
    )
    names = ("blue", "orange")
    how = " and ".join(f"`{release}` ({names[i]})" for i, release in enumerate(lines))
    knows = next(s["lazy"]["knows"] for s in summary["settings"] if s["spec"].startswith(name))
    yield Curve(
        f"{name}-demo.svg",
        svg,
        "what is found against what is named, demo",
        f"On the demo, released {how}; numbers are epsilons, grey points other mechanisms. Up and "
        f"left is good. {summary['queries']} queries, 20 sent for each, {summary['engine']}, "
        f"re-ranked by {summary['reranker']}; measured on {summary['made'][:10]} by "
        f"`examples/app-experiment.toml`. The attacker knows {knows}.",
    )


def _published_plane(name: str) -> Iterator[Curve]:
    """Risk and what is found on TREC DL 2019 with 50 queries, of docs/comparison.md."""
    points: list[tuple[float, float, str]] = []
    rest: list[tuple[float, float, str]] = []
    page = (DOCS / "comparison.md").read_text("utf-8")
    section = page.partition("## DL'19\n")[2].partition("\n## ")[0]
    header, rows = next(_tables(section))
    risk, quality = header.index("BM25: log"), header.index("nDCG@10")  # That of BM25 is the first.
    for row in rows:
        queries, label = row[:2]
        if queries != "50" or not row[risk]:
            continue
        point = float(row[risk]), float(row[quality].partition(",")[0])
        setting = re.search(r"(?<=ε )[\d.]+|\d+ × \d+", label)
        apart = any(word in label for word in ("afresh", "quarter", "own"))
        if re.split(r"[ ,]", label)[0].lower() == name and setting and not apart:
            points.append((*point, setting[0]))
        else:
            rest.append((*point, ""))
    if not points:
        return
    svg = chart(
        [Line("", rest, GREY), Line(name, sorted(points), COLOURS[0])],
        across=RISK,
        up="nDCG@10, depth 100",
        width=1,
        height=1,
    )
    yield Curve(
        f"{name}-dl19.svg",
        svg,
        "what is found against what is named, TREC DL 2019",
        "On the 43 queries of TREC DL 2019, 50 sent for each, BM25; numbers are epsilons (cover: "
        "strings × group), grey points other mechanisms and releases. The attacker knows the "
        "mechanism and a log of 120,644 queries that holds the true one, all alike, and names it; "
        "of a set of cover, what stands for it, drawn from that log (grey: other pools). The table "
        "with seeds and command: "
        "[comparison](../comparison.md).",
    )


def _by_epsilon(name: str) -> Iterator[Curve]:
    """The tables over epsilon in the mechanism's own section: they are of its first name."""
    if name in OWN_PAGES or _own_section(name).splitlines()[0].split(", ")[0] != name:
        return
    for header, rows in _tables(_own_section(name)):
        columns = [place for place, cell in enumerate(header) if _number(cell) is not None]
        if not header[0].startswith("ε") or not columns:
            continue
        for row in rows:
            values = {header[i]: _number(row[i]) for i in columns}
            known = {epsilon: value for epsilon, value in values.items() if value is not None}
            places = {epsilon: float(place) for place, epsilon in enumerate(known, 1)}
            points = [(places[epsilon], value, f"{value:g}") for epsilon, value in known.items()]
            svg = chart(
                [Line(row[0], points, COLOURS[0])],
                across=header[0],
                up=row[0],
                width=len(known) + 0.5,
                height=1.0 if max(known.values()) <= 1 else None,
                ticks=[(place, epsilon) for epsilon, place in places.items()],
            )
            yield Curve(
                f"{name}-{re.sub(r'[^a-z]+', '-', row[0].lower()).strip('-')}.svg",
                svg,
                f"{row[0]} by epsilon",
                f"*{row[0][0].upper()}{row[0][1:]}*, by {header[0]}. How it was measured: "
                f"[the table](../{_section(name)}).",
            )


def _own_section(name: str) -> str:
    text = (DOCS / "mechanisms.md").read_text("utf-8")
    parts = re.split(r"^## ", text, flags=re.M)
    return next(part for part in parts[1:] if name in part.splitlines()[0].split(", "))


def _tables(text: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    for table in re.findall(r"(?:^\|.*\n)+", text, re.M):
        lines = [line.strip().strip("|").split("|") for line in table.splitlines()]
        rows = [[cell.strip() for cell in line] for line in lines]
        yield rows[0], rows[2:]


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def main() -> None:
    """Write all of them."""
    for path, content in pages().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
