"""The report as one HTML file that asks nobody for anything."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from sottovoce.errors import need
from sottovoce.experiments.report.render import interval, to_text
from sottovoce.experiments.report.table import Number, Section, shown

FIGURES = "Figures"


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
    jinja2 = need("jinja2", "experiments", "reports need Jinja2")
    from markupsafe import Markup

    folder = files("sottovoce.experiments.report")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {"anchor": anchor, "shown": shown, "interval": interval, "text": to_text}
    environment.filters["number_class"] = lambda numeric: " class=number" if numeric else ""
    environment.tests["has_value"] = lambda cell: isinstance(cell, Number)
    figures = {
        "title": FIGURES,
        "is_headline": False,
        "entries": [
            {
                **vars(drawing),
                "anchor": anchor("figure", drawing.name),
                "svg": Markup(drawing.svg),  # noqa: S704 - drawn here
            }
            for drawing in drawings
        ],
    }
    style = (folder / "page.css").read_text("utf-8").strip()
    content: str = environment.from_string((folder / "page.html").read_text("utf-8")).render(
        title=str(manifest.get("name") or "Experiment"),
        style=Markup(style),  # noqa: S704 - of the package
        manifest=manifest,
        parts=[
            *(_tables(section) for section in sections if section.is_headline),
            *([figures] if drawings else []),
            *(_tables(section) for section in sections if not section.is_headline),
        ],
    )
    return content


def _tables(section: Section) -> dict[str, Any]:
    return {
        "title": section.title,
        "is_headline": section.is_headline,
        "entries": [
            {"anchor": anchor("table", table.name), "title": table.title, "table": table}
            for table in section.tables
        ],
    }


def inlined(svg: str, name: str) -> str:
    """An SVG file for the inside of a page: no header, no metadata, ids that no other has."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    start = svg.index("<svg")
    tag, rest = svg[start:].split(">", 1)
    tag = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", tag)
    svg = f"{tag}>{rest}".replace("xlink:href=", "href=").strip()
    prefix = f"{anchor(name)}."
    svg = re.sub(r'(\sid=")', rf"\g<1>{prefix}", svg)
    svg = re.sub(r'(href="#)', rf"\g<1>{prefix}", svg)
    return re.sub(r"(url\(#)", rf"\g<1>{prefix}", svg)


def anchor(*parts: str) -> str:
    """The id of a part of the page."""
    return re.sub(r"[^A-Za-z0-9]+", "-", "-".join(parts)).strip("-").lower()
