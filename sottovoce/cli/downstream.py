"""``sottovoce downstream``: what models still get right on obfuscated texts."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce import defaults
from sottovoce.cli.option_groups import grouped
from sottovoce.cli.option_values import listed_epsilons
from sottovoce.cli.options import AsJson, Epsilons, ResourceOptions, build_mechanisms, figure_option
from sottovoce.cli.output import new_console, new_table, print_json, progress_bar, say_seeded
from sottovoce.errors import SottovoceError, UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from sottovoce.evaluation import Score
    from sottovoce.evaluation.downstream.data import Task

FEW_SEEDS = 3


@dataclass(frozen=True)
class TaskResources(ResourceOptions):
    """What mechanisms work on, and models."""

    encoder: Annotated[
        str, typer.Option(help="Encoder of embeddings and of comet: auto, light, strong, a folder.")
    ] = "auto"


@grouped
def downstream(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-",
            help="CSV or JSON lines (may be gzipped) with text,label, or question,answer,label.",
        ),
    ],
    resources: TaskResources,
    mechanisms: Annotated[
        list[str] | None,
        typer.Option("-m", "--mechanism", help="Name or spec; give several. Default: cmp."),
    ] = None,
    epsilons: Epsilons = None,
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
    as_json: AsJson = False,
    csv_file: Annotated[
        Path | None, typer.Option("--csv", metavar="OUT.csv", help="Write all scores to a file.")
    ] = None,
    figure: Annotated[Path | None, figure_option("Draw scores against epsilon.")] = None,
) -> None:
    """Measure what models still get right when texts are obfuscated.

    Obfuscated are the texts that a model learns from, those that it is tested on, or both. Texts
    with labels are classified; candidate answers of questions are ranked (MAP, MRR).

    [bold]Examples[/bold]

      sottovoce downstream reviews.csv -m cmp -e 5,10,20

      sottovoce downstream tweets.jsonl.gz -m cmp -m santext -e 2,10 --model embeddings

      sottovoce downstream train.csv --test test.csv -m comet-cmp --pool public.txt -e 1,5 --json

      sottovoce downstream questions.csv -m cmp -e 10,15,20 --model embeddings --figure qa.svg
    """
    if seeds < 1:
        raise UsageError("at least one seed is needed")
    if csv_file is not None and (csv_file.is_dir() or not csv_file.parent.is_dir()):
        raise UsageError("the CSV file cannot be written there: give a file in an existing folder")
    numbers = listed_epsilons(epsilons)
    from sottovoce.evaluation import evaluate
    from sottovoce.resources import load_space

    specs, models = mechanisms or [defaults.MECHANISM], models or ["tfidf"]
    task = _read(file, limit)
    test_task = None if test is None else _read(test, limit, "the test file: ")
    used_by_models = {"embeddings": "encoder", "bilstm": "space"}
    used = [used_by_models[model] for model in models if model in used_by_models]
    built = build_mechanisms(specs, numbers, resources, used)
    with progress_bar("obfuscating and training") as progress:
        scores = evaluate(
            task,
            built,
            models,
            test=test_task,
            seeds=range(seeds),
            encoder=resources.encoder,
            space=load_space(resources.space) if "bilstm" in models else None,
            progress=progress,
        )
    if figure is not None:
        from sottovoce.evaluation.downstream.scores import downstream_figure
        from sottovoce.plotting import save_figure

        save_figure(downstream_figure(scores), figure)
    if csv_file is not None:
        _write_csv(scores, csv_file)
    if as_json:
        print_json([score.to_dict() for score in scores])
    else:
        _print(scores, task)


def _read(file: str, limit: int | None, which: str = "") -> Task:
    from sottovoce.evaluation import read_task

    try:
        task = read_task(file)
        return task if limit is None else task.sample(limit)
    except SottovoceError as error:
        raise error.with_message(f"{which}{error}") from None


def _write_csv(scores: Sequence[Score], file: Path) -> None:
    from sottovoce.files import whole_file

    rows = [score.to_dict() for score in scores]
    try:
        with whole_file(file) as part, part.open("w", encoding="utf-8", newline="") as out:
            writer = csv.DictWriter(out, list(rows[0]))
            writer.writeheader()
            for row in rows:
                by_seed = " ".join(f"{value:.6g}" for value in row["by_seed"])
                writer.writerow({**row, "by_seed": by_seed})
    except OSError as error:
        raise SottovoceError(f"the CSV file cannot be written ({type(error).__name__})") from None


def _print(scores: Sequence[Score], task: Task) -> None:
    console = new_console()
    obfuscated: dict[tuple[str, str], list[Score]] = {}
    for score in scores:
        if score.setting.mechanism is not None:
            key = score.setting.model, score.setting.measure
            obfuscated.setdefault(key, []).append(score)
    for (model, measure), rows in obfuscated.items():
        console.print(f"[bold]{measure}[/bold] of {model}: {_references(scores, model, measure)}")
        console.print(_table(rows))
        console.print()
    for note in _notes(scores, task):
        console.print(note, style="dim", markup=False)
    say_seeded()


def _references(scores: Sequence[Score], model: str, measure: str) -> str:
    """The clean score and the baseline, to compare with."""
    from sottovoce.evaluation.downstream.scores import BASELINES

    references = []
    for score in scores:
        if score.setting.mechanism is None and score.setting.measure == measure:
            name = "clean" if score.setting.model == model else score.setting.model
            if name in ("clean", *BASELINES):
                low, high = score.interval
                references.append(f"{name} {score.value:.3f} ({low:.3f}–{high:.3f})")
    return ", ".join(reversed(references))


def _table(scores: Sequence[Score]) -> Table:
    """A row for each mechanism and epsilon, a column for each regime."""
    from sottovoce.cli.output import escape
    from sottovoce.evaluation.downstream.scores import without_epsilon

    table = new_table()
    table.add_column("mechanism", no_wrap=True)
    table.add_column("epsilon", justify="right", no_wrap=True)
    table.add_column("un-\nchanged", justify="right", no_wrap=True)
    for regime in dict.fromkeys(score.hidden for score in scores):
        table.add_column(f"{regime}\nobfuscated", justify="right")
    rows: dict[str | None, list[Score]] = {}
    for score in scores:
        rows.setdefault(score.setting.mechanism, []).append(score)
    for row in rows.values():
        first = row[0]
        epsilon = first.setting.epsilon
        table.add_row(
            escape(without_epsilon(first)),
            "-" if epsilon is None else f"{epsilon:g}",
            "-" if first.unchanged is None else f"{first.unchanged:.0%}",
            *map(_cell, row),
        )
    return table


def _cell(score: Score) -> str:
    if score.loss is None or score.loss_interval is None:
        return f"{score.value:.3f}"
    low, high = score.loss_interval
    return f"{score.value:.3f} {0.0 - 100 * score.loss:+.1f}±{50 * (high - low):.1f}"


def _notes(scores: Sequence[Score], task: Task) -> list[str]:
    from sottovoce.evaluation import Questions

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
