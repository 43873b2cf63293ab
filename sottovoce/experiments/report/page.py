"""The report as one HTML file that asks nobody for anything."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, TypeAlias

from sottovoce.experiments.report.render import to_html
from sottovoce.experiments.report.table import Section
from sottovoce.experiments.report.tables import TRADES

FIGURES = "Figures"

Part: TypeAlias = tuple[str, list[tuple[str, str]], str]
"""A title, anchors and titles of what is in it, and its HTML."""


@dataclass(frozen=True)
class Drawing:
    """A figure as SVG text, ready for the page."""

    name: str
    title: str
    caption: str
    alt: str
    svg: str


def page(
    manifest: dict[str, Any], sections: Sequence[Section], drawings: Sequence[Drawing] = ()
) -> str:
    """All of it: the best trades, then figures, then the other tables."""
    first = [_tables(each) for each in sections if each.title == TRADES]
    figures = [_figures(drawings)] if drawings else []
    ordered = [*first, *figures, *(_tables(each) for each in sections if each.title != TRADES)]
    folder = files("sottovoce.experiments.report")
    return Template((folder / "page.html").read_text("utf-8")).substitute(
        title=escape(str(manifest.get("name") or "Experiment")),
        style=(folder / "page.css").read_text("utf-8").strip(),
        head=_head(manifest),
        contents=_contents(ordered),
        body="".join(
            f"<section{' class=headline' if title == TRADES else ''} id={_anchor(title)}>"
            f"<h2>{escape(title)}</h2>\n{html}</section>\n"
            for title, _, html in ordered
        ),
    )


def inlined(svg: str, name: str) -> str:
    """An SVG file for the inside of a page: no header, no metadata, ids that no other has."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    start = svg.index("<svg")
    tag, rest = svg[start:].split(">", 1)
    tag = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", tag)
    svg = f"{tag}>{rest}".replace("xlink:href=", "href=").strip()
    mine = f"{_anchor(name)}."
    svg = re.sub(r'(\sid=")', rf"\g<1>{mine}", svg)
    svg = re.sub(r'(href="#)', rf"\g<1>{mine}", svg)
    return re.sub(r"(url\(#)", rf"\g<1>{mine}", svg)


def _head(manifest: dict[str, Any]) -> str:
    """What it is, and where it differs from the paper."""
    said = [f"<p>{escape(str(each))}</p>" for each in (manifest.get("description"),) if each]
    if manifest.get("seeded"):
        warning = manifest.get("warning") or "Drawn from seeds: nothing here protects anybody."
        said.append(f"<p class=note>{escape(str(warning))}</p>")
    if notes := manifest.get("notes"):
        items = "".join(f"<li>{escape(str(each))}</li>" for each in notes)
        said.append(f"<h2>Notes</h2>\n<ul>{items}</ul>")
    return "\n".join(said)


def _contents(parts: Sequence[Part]) -> str:
    items = "".join(
        f'<li><a href="#{_anchor(title)}">{escape(title)}</a><ul>'
        + "".join(f'<li><a href="#{anchor}">{escape(each)}</a></li>' for anchor, each in inside)
        + "</ul></li>\n"
        for title, inside, _ in parts
    )
    return f"<ul>{items}</ul>"


def _tables(section: Section) -> Part:
    anchors = [(_anchor("table", each.name), each.title) for each in section.tables]
    html = "".join(
        to_html(table, anchor) for table, (anchor, _) in zip(section.tables, anchors, strict=True)
    )
    return section.title, anchors, html


def _figures(drawings: Sequence[Drawing]) -> Part:
    anchors = [(_anchor("figure", each.name), each.title) for each in drawings]
    html = "".join(
        f"<figure id={anchor}>"
        f'<div class=drawing role=img aria-label="{escape(each.alt)}">{each.svg}</div>\n'
        f"<figcaption><strong>{escape(each.title)}</strong> {escape(each.caption)}</figcaption>"
        "</figure>\n"
        for each, (anchor, _) in zip(drawings, anchors, strict=True)
    )
    return FIGURES, anchors, html


def _anchor(*parts: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", "-".join(parts)).strip("-").lower()
