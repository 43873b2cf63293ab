"""``sottovoce similarity``: how much of the texts is still to be seen in what was released."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce.cli.options import AsJson, figure_option
from sottovoce.cli.output import escape, new_console, new_table, print_json, progress_bar
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
        str,
        typer.Option(help="Encoder that compares meanings: auto, light, strong, a model, none."),
    ] = "auto",
    keep_case: Annotated[
        bool, typer.Option("--keep-case", help="Upper and lower case are different.")
    ] = False,
    as_json: AsJson = False,
    per_query: Annotated[
        bool, typer.Option("--per-query", help="With --json: each query's values, by its id.")
    ] = False,
    figure: Annotated[Path | None, figure_option("Draw the measures against epsilon.")] = None,
) -> None:
    """Compare texts with what was released instead: words, phrases, meaning.

    One row a file. 1 is the text itself, 0 nothing in common.

    [bold]Examples[/bold]

      sottovoce obfuscate - -n 20 -o jsonl < queries.txt > released.jsonl

      sottovoce similarity released.jsonl

      sottovoce similarity cmp-*.csv.gz --encoder strong --figure similarity.svg

      sottovoce similarity released.jsonl -m jaccard --json --per-query
    """
    from sottovoce.plotting import save_figure
    from sottovoce.privacy import SimilarityMeter
    from sottovoce.statistics import LEVEL

    contents = [(Path(file).name, _read(file, at, len(files))) for at, file in enumerate(files, 1)]
    meter = SimilarityMeter(measures or None, None if encoder == "none" else encoder, not keep_case)
    rows = _in_order(_measure(meter, contents))
    if figure is not None:
        save_figure(_draw(rows), figure)
    if as_json:
        described = [{"file": name, **similarity.to_dict(per_query)} for name, similarity in rows]
        print_json({"level": LEVEL, "files": described})
    else:
        _print(rows)


def _read(file: str, at: int, of: int) -> list[Released]:
    from sottovoce.privacy import read_releases

    try:
        return read_releases(file)
    except SottovoceError as error:
        raise error if of == 1 else error.with_message(f"file {at} of {of}: {error}") from None


def _measure(meter: SimilarityMeter, files: Sequence[tuple[str, list[Released]]]) -> list[Row]:
    from sottovoce.privacy.text_similarity import count_pairs

    total = sum(count_pairs(releases) for _, releases in files)
    rows: list[Row] = []
    done = 0
    with progress_bar("comparing") as bar:
        for name, releases in files:
            show = (lambda at, _, before=done: bar(before + at, total)) if bar else None
            rows.append((name, meter.measure(releases, show)))
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
    name, similarity = row
    if similarity.mechanism is None:
        return name
    kind, _, parameters = similarity.mechanism.partition(":")
    rest = [part for part in parameters.split(",") if part and not part.startswith("epsilon=")]
    return f"{kind}:{','.join(rest)}" if rest else kind


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
            # The cosine of meanings can be negative.
            edges = [twentieth / 20 for twentieth in range(-20 if measure == "semantic" else 0, 21)]
            histogram(plot, values, bins=edges, title=measure, x="similarity", y="share of queries")
    return figure


def _curves(rows: list[Row]) -> dict[str, tuple[list[float], list[Similarity]]]:
    """By mechanism: its epsilons and what was measured there; nothing where there are not two."""
    curves: dict[str, tuple[list[float], list[Similarity]]] = {}
    for row in rows:
        if row[1].epsilon is not None:
            at, of = curves.setdefault(_kind(row), ([], []))
            at.append(row[1].epsilon)
            of.append(row[1])
    return curves if any(len(set(at)) > 1 for at, _ in curves.values()) else {}


def _band(similarities: Sequence[Similarity], measure: Measure) -> tuple[list[float], list[float]]:
    ends = [one.interval(measure) or (one.mean(measure),) * 2 for one in similarities]
    return [low for low, _ in ends], [high for _, high in ends]


def _print(rows: list[Row]) -> None:
    kinds = [(_kind(row), row[1].epsilon) for row in rows]
    with_files = len(set(kinds)) < len(kinds)
    numbers = ("epsilon", "queries", *rows[0][1].values)
    table = new_table(*(["file"] if with_files else []), "mechanism", *numbers, numbers=numbers)
    for (name, similarity), (kind, epsilon) in zip(rows, kinds, strict=True):
        table.add_row(
            *([escape(name)] if with_files else []),
            escape(kind),
            _number(epsilon),
            str(len(similarity.ids)),
            *(_cell(similarity, measure) for measure in similarity.values),
        )
    console = new_console()
    console.print(table)
    console.print()
    for note in _notes([similarity for _, similarity in rows]):
        console.print(note, style="dim", markup=False)


def _number(epsilon: float | None) -> str:
    return "-" if epsilon is None else f"{epsilon:g}"


def _cell(similarity: Similarity, measure: Measure) -> str:
    interval = similarity.interval(measure)
    reach = "" if interval is None else f" ({interval[0]:.2f}–{interval[1]:.2f})"
    return f"{similarity.mean(measure):.3f}{reach}"


def _notes(similarities: Sequence[Similarity]) -> list[str]:
    first = similarities[0]
    notes = ["Means over queries of the means over variants, with the 95 % interval."]
    if first.encoder is not None:
        notes.append(f"semantic: cosine by the encoder {first.encoder}.")
    if first.meteor is not None:
        notes.append(f"meteor: compares {first.meteor}.")
    if first.meteor == "words, stems":
        notes.append("For synonyms: sottovoce spaces add wordnet.")
    if empty := sum(similarity.both_empty for similarity in similarities):
        notes.append(f"{empty} empty variant(s) of empty texts count as equal.")
    if left_out := sum(similarity.left_out for similarity in similarities):
        notes.append(f"{left_out} text(s) of which nothing was released are left out.")
    if any(
        abs(similarity.mean(measure) - similarity.mean_of_variants(measure)) > UNEVEN
        for similarity in similarities
        for measure in similarity.values
    ):
        notes.append(
            "Some queries have many more variants than others; the mean over all variants, "
            "which some papers print, is another one (see --json)."
        )
    notes.append("A low value proves no privacy: an attacker may still find the text.")
    return notes
