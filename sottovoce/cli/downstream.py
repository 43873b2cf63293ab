"""``sottovoce downstream``: what models still get right on obfuscated texts."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sottovoce.errors import SottovoceError, UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from sottovoce.evaluation.downstream.data import Task
    from sottovoce.evaluation.downstream.scores import Score
    from sottovoce.mechanisms import Mechanism

FEW_SEEDS = 3


def downstream(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-",
            help="CSV or JSON lines (may be gzipped) with text,label, or question,answer,label.",
        ),
    ],
    mechanisms: Annotated[
        list[str] | None,
        typer.Option("-m", "--mechanism", help="Name or spec; give several. Default: cmp."),
    ] = None,
    epsilons: Annotated[
        list[str] | None,
        typer.Option("-e", "--epsilon", metavar="E[,E…]", help="One or more epsilons."),
    ] = None,
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model", help="tfidf (default), svm, embeddings, bilstm; give several if you like."
        ),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Texts to test on; else a quarter of FILE, drawn anew."),
    ] = None,
    seeds: Annotated[int, typer.Option(help="How many splits and obfuscations.")] = 3,
    limit: Annotated[
        int | None, typer.Option(metavar="N", help="Use N rows of each file, drawn once.")
    ] = None,
    space: Annotated[str | None, typer.Option(help="Word space: a name or a folder.")] = None,
    encoder: Annotated[
        str,
        typer.Option(help="Encoder of embeddings and of comet: auto, light, strong, a folder."),
    ] = "auto",
    pool: Annotated[
        str | None,
        typer.Option(help="Public strings that comet releases: demo, a file, a collection."),
    ] = None,
    corpus: Annotated[
        Path | None, typer.Option(help="Documents of yours that fea reads its words off.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    csv_file: Annotated[
        Path | None, typer.Option("--csv", metavar="OUT.csv", help="Write all scores to a file.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(metavar="OUT.png|svg", help="Draw scores against epsilon.")
    ] = None,
) -> None:
    """Measure what models get right when texts are obfuscated: to learn from, to be asked, or both.

    Texts with labels are classified; candidate answers of questions are ranked (MAP, MRR).

    [bold]Examples[/bold]

      sottovoce downstream reviews.csv -m cmp -e 5,10,20

      sottovoce downstream tweets.jsonl.gz -m cmp -m santext -e 2,10 --model embeddings

      sottovoce downstream train.csv --test test.csv -m comet-cmp --pool public.txt -e 1,5 --json

      sottovoce downstream questions.csv -m cmp -e 10,15,20 --model embeddings --figure qa.svg
    """
    if seeds < 1:
        raise UsageError("at least one seed is needed")
    values = _epsilons(epsilons)
    _check_outputs(csv_file, figure)
    from sottovoce.cli.progress import progress_bar
    from sottovoce.evaluation.downstream import evaluate

    task = _read(file, limit)
    tested = None if test is None else _read(test, limit, "the test file: ")
    chosen = [
        each
        for spec in dict.fromkeys(mechanisms or ["cmp"])
        for each in _mechanisms(spec, values, space, corpus, pool, encoder)
    ]
    with progress_bar("obfuscating and training") as progress:
        scores = evaluate(
            task,
            chosen,
            models or ["tfidf"],
            test=tested,
            seeds=range(seeds),
            encoder=encoder,
            space=_space(space, models or ()),
            progress=progress,
        )
    _write(scores, csv_file, figure)
    if as_json:
        typer.echo(json.dumps([each.to_dict() for each in scores], indent=2))
    else:
        _print(scores, task)


def _epsilons(given: list[str] | None) -> list[float]:
    try:
        return list(dict.fromkeys(float(part) for each in given or () for part in each.split(",")))
    except ValueError:
        raise UsageError("an epsilon is a number: write -e 10, or -e 5,10,15") from None


def _check_outputs(csv_file: Path | None, figure: Path | None) -> None:
    """Before the long work, not after it."""
    if figure is not None:
        from sottovoce.plotting import check_figure_path

        check_figure_path(figure)
    if csv_file is not None and (csv_file.is_dir() or not csv_file.parent.is_dir()):
        raise UsageError("the CSV file cannot be written there: give a file in an existing folder")


def _read(file: str, limit: int | None, which: str = "") -> Task:
    from sottovoce.evaluation.downstream import read_task

    try:
        task = read_task(file)
        return task if limit is None else task.sample(limit)
    except SottovoceError as error:
        raise type(error)(f"{which}{error}") from None


def _mechanisms(
    spec: str,
    epsilons: list[float],
    space: str | None,
    corpus: Path | None,
    pool: str | None,
    encoder: str,
) -> list[Mechanism]:
    """The mechanism with each epsilon; one that has none, once."""
    from sottovoce.cli.building import build_mechanism

    made = build_mechanism(spec, {}, space, "all", corpus, pool, encoder)
    if not epsilons or not any(each.name == "epsilon" for each in made.parameters()):
        return [made]
    changed: list[Any] = [{"epsilon": each} for each in epsilons]
    return [replace(made, **each) for each in changed]


def _space(name: str | None, models: Sequence[str]) -> Any:
    from sottovoce.resources.local import load_space

    return load_space(name) if "bilstm" in models else None


def _write(scores: Sequence[Score], csv_file: Path | None, figure: Path | None) -> None:
    if figure is not None:
        from sottovoce.evaluation.downstream.figure import downstream_figure
        from sottovoce.plotting import save_figure

        save_figure(downstream_figure(scores), figure)
    if csv_file is None:
        return
    from sottovoce.files import whole_file

    rows = [each.to_dict() for each in scores]
    try:
        with (
            whole_file(csv_file) as part,
            part.open("w", encoding="utf-8", newline="") as out,
        ):
            writer = csv.DictWriter(out, list(rows[0]))
            writer.writeheader()
            for row in rows:
                writer.writerow({**row, "by_seed": " ".join(f"{v:.6g}" for v in row["by_seed"])})
    except OSError as error:
        raise SottovoceError(f"the CSV file cannot be written ({type(error).__name__})") from None


def _print(scores: Sequence[Score], task: Task) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    obfuscated = [each for each in scores if each.setting.mechanism is not None]
    for model, measure in dict.fromkeys((e.setting.model, e.setting.measure) for e in obfuscated):
        console.print(f"[bold]{measure}[/bold] of {model}: {_lines(scores, model, measure)}")
        own = [e for e in obfuscated if (e.setting.model, e.setting.measure) == (model, measure)]
        console.print(_table(own))
        console.print()
    for note in _notes(scores, task):
        console.print(note, style="dim", markup=False)
    typer.secho("seeded: reproducible, for experiments only", fg="yellow", err=True)


def _lines(scores: Sequence[Score], model: str, measure: str) -> str:
    """The clean score and the baseline."""
    from sottovoce.evaluation.downstream.figure import BASELINES

    said = []
    for each in scores:
        if each.setting.mechanism is None and each.setting.measure == measure:
            name = "clean" if each.setting.model == model else each.setting.model
            if name in ("clean", *BASELINES):
                said.append(f"{name} {each.value:.3f} {_between(each.interval)}")
    return ", ".join(reversed(said))


def _table(scores: Sequence[Score]) -> Table:
    """A row for each mechanism and epsilon, a column for each regime."""
    from rich.markup import escape
    from rich.table import Table

    from sottovoce.evaluation.downstream.figure import without_epsilon

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("mechanism", no_wrap=True)
    table.add_column("epsilon", justify="right", no_wrap=True)
    table.add_column("un-\nchanged", justify="right", no_wrap=True)
    for which in dict.fromkeys(each.hidden for each in scores):
        table.add_column(f"{which}\nobfuscated", justify="right")
    rows: dict[str | None, list[Score]] = {}
    for each in scores:
        rows.setdefault(each.setting.mechanism, []).append(each)
    for own in rows.values():
        first = own[0]
        epsilon = first.setting.epsilon
        table.add_row(
            escape(without_epsilon(first)),
            "-" if epsilon is None else f"{epsilon:g}",
            "-" if first.unchanged is None else f"{first.unchanged:.0%}",
            *(_cell(each) for each in own),
        )
    return table


def _cell(score: Score) -> str:
    if score.loss is None or score.loss_interval is None:
        return f"{score.value:.3f}"
    low, high = score.loss_interval
    return f"{score.value:.3f} {0.0 - 100 * score.loss:+.1f}±{50 * (high - low):.1f}"


def _between(interval: tuple[float, float]) -> str:
    return f"({interval[0]:.3f}–{interval[1]:.3f})"


def _notes(scores: Sequence[Score], task: Task) -> list[str]:
    from sottovoce.evaluation.downstream import Questions

    first, seeds = scores[0], len(scores[0].by_seed)
    what = "questions" if isinstance(task, Questions) else "texts"
    notes = [
        f"Means over {seeds} seed(s), {first.items} different test {what}. Behind each score: "
        "points gained or lost against clean data, ± half of the 95 % t interval over test items "
        "and seeds. unchanged: share of the protected words (comet: of the texts) that came back."
    ]
    if seeds < FEW_SEEDS:
        notes.append("Fewer than three seeds tell little of how much chance is in this.")
    if isinstance(task, Questions) and task.left_out:
        notes.append(
            f"{task.left_out} question(s) were left out: all candidates right, or all wrong."
        )
    return notes
