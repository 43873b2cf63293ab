"""``sottovoce similarity``: how much of the texts is still to be seen in what was released."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sottovoce.cli.progress import progress_bar
from sottovoce.errors import SottovoceError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sottovoce.privacy import Released, Similarity, SimilarityMeter
    from sottovoce.privacy.text_similarity import Measure

Row = tuple[str, "Similarity"]
"""The name of a file, and what was measured on it."""

UNEVEN = 0.005


def similarity(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE…",
            help="Releases: JSON lines of 'obfuscate -o jsonl', or CSV with id,text,obfuscatedText "
            "(may be gzipped; - is standard input).",
        ),
    ],
    measures: Annotated[
        list[str] | None,
        typer.Option("-m", "--measure", help="jaccard, bleu, meteor, semantic; all if not given."),
    ] = None,
    encoder: Annotated[
        str, typer.Option(help="Who judges meaning: auto, light, strong, a model, or none.")
    ] = "auto",
    keep_case: Annotated[bool, typer.Option("--keep-case", help="Tell Apple from apple.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    per_query: Annotated[
        bool, typer.Option("--per-query", help="With --json: each query's values, by its id.")
    ] = False,
    figure: Annotated[
        Path | None,
        typer.Option(metavar="OUT.png|svg", help="Draw the measures against epsilon."),
    ] = None,
) -> None:
    """Compare texts with what was released instead: words, phrases, meaning.

    One row a file. 1 is the text itself, 0 nothing in common.

    [bold]Examples[/bold]

      sottovoce obfuscate - -n 20 -o jsonl < queries.txt > released.jsonl

      sottovoce similarity released.jsonl

      sottovoce similarity cmp-*.csv.gz --encoder strong --figure similarity.svg

      sottovoce similarity released.jsonl -m jaccard --json --per-query
    """
    from sottovoce.plotting import check_figure_path, save_figure
    from sottovoce.privacy import SimilarityMeter

    if figure is not None:
        check_figure_path(figure)
    found = [(Path(file).name, _read(file, at, len(files))) for at, file in enumerate(files, 1)]
    meter = SimilarityMeter(measures or None, None if encoder == "none" else encoder, not keep_case)
    rows = _in_order(_measure(meter, found))
    if figure is not None:
        save_figure(_draw(rows), figure)
    if as_json:
        typer.echo(json.dumps(_describe(rows, per_query), indent=2))
    else:
        _print(rows)


def _read(file: str, at: int, of: int) -> list[Released]:
    from sottovoce.privacy import read_releases

    try:
        return read_releases(file)
    except SottovoceError as error:
        if of == 1:
            raise
        raise type(error)(f"file {at} of {of}: {error}") from None


def _measure(meter: SimilarityMeter, found: Sequence[tuple[str, list[Released]]]) -> list[Row]:
    from sottovoce.privacy.text_similarity import count_pairs

    total = sum(count_pairs(releases) for _, releases in found)
    rows: list[Row] = []
    done = 0
    with progress_bar("comparing") as bar:
        for name, releases in found:
            before = done
            here = (lambda at, _, before=before: bar(before + at, total)) if bar else None
            rows.append((name, meter.measure(releases, here)))
            done += count_pairs(releases)
    return rows


def _in_order(rows: list[Row]) -> list[Row]:
    """Mechanisms as they come, each by growing epsilon."""
    first = {name: at for at, name in reversed(list(enumerate(map(_kind, rows))))}

    def place(row: Row) -> tuple[int, float]:
        epsilon = row[1].epsilon
        return first[_kind(row)], float("inf") if epsilon is None else epsilon

    return sorted(rows, key=place)


def _kind(row: Row) -> str:
    """The mechanism without its epsilon; the file's name where the file does not say."""
    name, said = row
    if said.mechanism is None:
        return name
    kind, _, settings = said.mechanism.partition(":")
    rest = [each for each in settings.split(",") if each and not each.startswith("epsilon=")]
    return f"{kind}:{','.join(rest)}" if rest else kind


def _describe(rows: list[Row], per_query: bool) -> dict[str, Any]:
    from sottovoce.statistics import LEVEL

    return {
        "level": LEVEL,
        "files": [{"file": name, **said.to_dict(per_query)} for name, said in rows],
    }


def _draw(rows: list[Row]) -> Figure:
    """Each measure against epsilon; where there is nothing to draw that from, its histogram."""
    from sottovoce.plotting import histogram, lines, new_figure

    names = list(rows[0][1].values)
    figure, plots = new_figure(1, len(names), width=4.5, height=3.5)
    curves = _curves(rows)
    for plot, measure in zip(plots, names, strict=True):
        if curves:
            means = {kind: (at, [s.mean(measure) for s in of]) for kind, (at, of) in curves.items()}
            bands = {kind: _band(of, measure) for kind, (_, of) in curves.items()}
            lines(plot, means, bands=bands, title=measure, x="epsilon", y="mean over queries")
            plot.set_ylim(top=1.02)
        else:
            values = {
                f"{_kind(row)} {_number(row[1].epsilon)}": row[1].values[measure] for row in rows
            }
            edges = [each / 20 for each in range(-20 if measure == "semantic" else 0, 21)]
            histogram(plot, values, bins=edges, title=measure, x="similarity", y="share of queries")
    return figure


def _labels(rows: list[Row]) -> list[str]:
    """A different name for each file."""
    short = [f"{_kind(row)} {_number(row[1].epsilon)}" for row in rows]
    if len(set(short)) == len(rows):
        return short
    return [f"{at}. {name}" for at, (name, _) in enumerate(rows, 1)]


def _curves(rows: list[Row]) -> dict[str, tuple[list[float], list[Similarity]]]:
    """By mechanism: its epsilons and what was measured there; nothing where there are not two."""
    curves: dict[str, tuple[list[float], list[Similarity]]] = {}
    for row in rows:
        if row[1].epsilon is not None:
            at, of = curves.setdefault(_kind(row), ([], []))
            at.append(row[1].epsilon)
            of.append(row[1])
    return curves if any(len(set(at)) > 1 for at, _ in curves.values()) else {}


def _band(of: Sequence[Similarity], measure: Measure) -> tuple[list[float], list[float]]:
    ends = [said.interval(measure) or (said.mean(measure),) * 2 for said in of]
    return [low for low, _ in ends], [high for _, high in ends]


def _print(rows: list[Row]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    kinds = [(_kind(row), row[1].epsilon) for row in rows]
    with_files = len(set(kinds)) < len(kinds)
    if with_files:
        table.add_column("file", overflow="fold")
    table.add_column("mechanism", overflow="fold")
    for column in ("epsilon", "queries", *rows[0][1].values):
        table.add_column(column, justify="right")
    for row, (kind, epsilon) in zip(rows, kinds, strict=True):
        said = row[1]
        table.add_row(
            *([escape(row[0])] if with_files else []),
            escape(kind),
            _number(epsilon),
            str(len(said.ids)),
            *(_cell(said, measure) for measure in said.values),
        )
    console = Console(highlight=False)
    console.print(table)
    console.print()
    for note in _notes([said for _, said in rows]):
        console.print(note, style="dim", markup=False)


def _number(epsilon: float | None) -> str:
    return "-" if epsilon is None else f"{epsilon:g}"


def _cell(said: Similarity, measure: Measure) -> str:
    interval = said.interval(measure)
    reach = "" if interval is None else f" ({interval[0]:.2f}–{interval[1]:.2f})"
    return f"{said.mean(measure):.3f}{reach}"


def _notes(said: Sequence[Similarity]) -> list[str]:
    first = said[0]
    notes = ["Means over queries of the means over variants, with the 95 % interval."]
    if first.encoder is not None:
        notes.append(f"semantic: cosine by the encoder {first.encoder}.")
    if first.meteor is not None:
        notes.append(f"meteor: compares {first.meteor}.")
    if first.meteor == "words, stems":
        notes.append("For synonyms: sottovoce spaces add wordnet.")
    if empty := sum(each.both_empty for each in said):
        notes.append(f"{empty} empty variant(s) of empty texts count as equal.")
    if left_out := sum(each.left_out for each in said):
        notes.append(f"{left_out} text(s) of which nothing was released are left out.")
    if any(
        abs(each.mean(name) - each.mean_of_variants(name)) > UNEVEN
        for each in said
        for name in each.values
    ):
        notes.append(
            "Some queries have many more variants than others; the mean over all variants, "
            "which some papers print, is another one (see --json)."
        )
    notes.append("A low value proves no privacy: an attacker may still find the text.")
    return notes
