"""Small files under the names that the documentation uses for files of the reader's own."""

from __future__ import annotations

import csv
import json
from itertools import product
from pathlib import Path

from small_tasks import GOOD, THINGS

QUERIES = ("treatment for skin cancer", "debt advice", "divorce lawyer near me")
BAD = ("the {} was awful and we hated it", "a boring {} , ugly and dull", "this {} is a shame")


def write_samples(folder: Path) -> None:
    """Write them all."""
    (folder / "queries.txt").write_text("\n".join(QUERIES) + "\n")
    (folder / "names.txt").write_text("anna\nbruno\n")
    (folder / "terms.txt").write_text("melanoma\nskin cancer\nbiopsy\n")
    rows = [(template.format(thing), "good") for template, thing in product(GOOD, THINGS)]
    rows += [(template.format(thing), "bad") for template, thing in product(BAD, THINGS)]
    _write_csv(folder / "reviews.csv", ("text", "label"), rows)
    _write_csv(folder / "tweets.csv", ("id", "text"), enumerate(QUERIES))
    notes = ({"id": place, "note": text} for place, text in enumerate(QUERIES))
    (folder / "notes.jsonl").write_text("".join(json.dumps(note) + "\n" for note in notes))
    releases = [{"text": text, "variants": [text[::-1], text.upper()]} for text in QUERIES]
    lines = "".join(json.dumps(release) + "\n" for release in releases)
    for name in ("releases.jsonl", "released.jsonl"):
        (folder / name).write_text(lines)


def _write_csv(path: Path, header: tuple[str, ...], rows: object) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)  # type: ignore[arg-type]
