"""Small charts as plain SVG: the same bytes on every machine, so that a test can compare them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, log10
from typing import TypeAlias

WIDTH, HEIGHT = 480, 300
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 16, 44
COLOURS = ("#2b6cb0", "#c05621", "#2f855a", "#6b46c1")
GREY = "#a0aec0"
INK = "#4a5568"
Place: TypeAlias = Callable[[float, float], tuple[float, float]]
"""From a value across and one up to a place in the picture."""


@dataclass(frozen=True)
class Line:
    """Points that belong together: (x, y, what stands beside it); ``name`` goes into the key."""

    name: str
    points: Sequence[tuple[float, float, str]]
    colour: str


def chart(
    lines: Sequence[Line],
    *,
    across: str,
    up: str,
    width: float,
    height: float | None = None,
    ticks: Sequence[tuple[float, str]] | None = None,
    level: tuple[float, str] | None = None,
) -> str:
    """Lines with their points; ``ticks`` are places across with what to write there."""
    highest = height or _round_up(max(y for line in lines for _, y, _ in line.points))

    def place(x: float, y: float) -> tuple[float, float]:
        inner_width, inner_height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
        return LEFT + x / width * inner_width, HEIGHT - BOTTOM - y / highest * inner_height

    fifths = [step / 5 for step in range(6)]
    marks = ticks or [(width * fifth, f"{width * fifth:g}") for fifth in fifths]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'font-family="sans-serif" font-size="11" fill="{INK}">',
        f"<title>{escape(up)} against {escape(across)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        *_axes(place, marks, [highest * fifth for fifth in fifths], across, up),
    ]
    if level is not None:
        x, y = place(width, level[0])
        parts.append(f'<path d="M{LEFT} {y:.1f}H{x:.1f}" stroke="{INK}" stroke-dasharray="4 3"/>')
        parts.append(_text(LEFT + 6, y - 4, level[1], "start"))
    for line in lines:
        parts += _line(place, line)
    return "\n".join([*parts, "</svg>", ""])


def _axes(
    place: Place, marks: Sequence[tuple[float, str]], heights: list[float], across: str, up: str
) -> Iterator[str]:
    floor = HEIGHT - BOTTOM
    for value in heights:
        _, y = place(0, value)
        yield f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#e2e8f0"/>'
        yield _text(LEFT - 6, y + 4, f"{value:.2g}", "end")
    yield f'<path d="M{LEFT} {TOP}V{floor}H{WIDTH - RIGHT}" fill="none" stroke="{INK}"/>'
    for value, label in marks:
        yield _text(place(value, 0)[0], floor + 16, label, "middle")
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, across, "middle")
    turned = f"translate(14 {(TOP + floor) / 2:.1f}) rotate(-90)"
    yield f'<text transform="{turned}" text-anchor="middle">{escape(up)}</text>'


def _line(place: Place, line: Line) -> Iterator[str]:
    places = [place(x, y) for x, y, _ in line.points]
    if line.name and len(places) > 1:
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        yield f'<path d="M{path}" fill="none" stroke="{line.colour}" stroke-width="1.5"/>'
    for (x, y), (_, _, label) in zip(places, line.points, strict=True):
        radius = 3.5 if line.name else 2.5
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{line.colour}"/>'
        if label:
            beyond = x > WIDTH - 90
            anchor = "end" if beyond else "start"
            yield _text(x - 6 if beyond else x + 6, y - 5, label, anchor, line.colour)


def _text(x: float, y: float, text: str, anchor: str, colour: str = INK) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">'
        f"{escape(text)}</text>"
    )


def _round_up(value: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    power = 10.0 ** ceil(log10(value))
    return next(top for top in (power / 5, power / 2, power) if top >= value)
