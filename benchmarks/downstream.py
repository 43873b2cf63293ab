"""What a classifier still learns from obfuscated texts, and gets right about them.

    python benchmarks/downstream.py reviews.jsonl.gz tweets.jsonl.gz --figures FOLDER
    python benchmarks/downstream.py reviews.jsonl.gz --limit 300 --only cmp     a first look
    python benchmarks/downstream.py demo --only cmp                             ranking of answers

Files have a text and a label a line; a folder, or demo, is a collection with judgments. Each
release of a data set is scored by all models in all regimes and kept in --cache, so that a run that
was stopped goes on where it was, and a table can be printed again at once. The pool of the comet
mechanisms are the texts of the file that --limit leaves over: the part of the data that plays the
public one. Where nothing is left over, and for collections, it is the demo log.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from pathlib import Path

import numpy as np

from sottovoce import load_space, mechanism
from sottovoce.collections import demo_log, load_collection
from sottovoce.evaluation import LabelledTexts, Score, read_task
from sottovoce.evaluation.downstream.data import chosen_rows, judged_questions
from sottovoce.evaluation.downstream.scores import (
    BASELINES,
    Outcome,
    Setting,
    downstream_figure,
    summarize,
    without_epsilon,
)
from sottovoce.evaluation.downstream.tasks import experiment
from sottovoce.mechanisms import Mechanism
from sottovoce.paths import cache_folder
from sottovoce.plotting import save_figure
from sottovoce.pools import Pool

EPSILONS = {
    "cmp": (10, 15, 20, 50),
    "mahalanobis": (10, 15, 20, 50),
    "vickrey-cmp": (10, 15, 20, 50),
    "vickrey-mahalanobis": (10, 15, 20, 50),
    "santext": (1, 2, 5, 10),
    "custext": (1, 5, 10, 20),
    "comet-cmp": (1, 5, 10, 50),
    "comet-mahalanobis": (1, 5, 10, 50),
}
"""Each where it goes from losing all to losing little; the epsilons mean different things."""


class Bench:
    """One data set with its models, its pool, and the results so far."""

    def __init__(self, file: str, options: argparse.Namespace) -> None:
        self.name = Path(file).name.partition(".")[0]
        collected = file == "demo" or Path(file).is_dir()
        everything = judged_questions(load_collection(file)) if collected else read_task(file)
        self.data = everything.sample(options.limit)
        public = demo_log()
        if isinstance(everything, LabelledTexts):
            rows = chosen_rows(len(everything), options.limit)
            others = np.setdiff1d(np.arange(len(everything)), rows)
            public = [everything.texts[row] for row in others] or public
        self.pool = Pool(public, options.encoder, name="others")
        self.space = load_space("glove-840b-34k")
        self.options = options
        self.experiment = experiment(
            self.data, options.models, encoder=options.encoder, space=self.space
        )
        self.folder = options.cache / self.name

    def mechanisms(self) -> Iterator[Mechanism]:
        """All that are asked for, the quick ones first."""
        wanted = self.options.only or list(EPSILONS)
        for name in sorted(wanted, key=lambda each: "comet" not in each and "text" not in each):
            for epsilon in self.options.epsilons or EPSILONS[name]:
                held = {"pool": self.pool} if name.startswith("comet") else {"space": self.space}
                yield mechanism(name, epsilon=float(epsilon), **held)

    def outcomes(self) -> list[Outcome]:
        """Every result, measured now or kept from before."""
        found = []
        seeds = range(self.options.seeds)
        for chosen in [None, *self.mechanisms()]:
            if self.options.kept and not all(self.file(chosen, seed).exists() for seed in seeds):
                continue
            for seed in seeds:
                found += self.cell(chosen, seed)
        return found

    def cell(self, chosen: Mechanism | None, seed: int) -> list[Outcome]:
        """One release of the data set."""
        file = self.file(chosen, seed)
        if file.exists():
            return [_read(each) for each in json.loads(file.read_text())]
        start = time.perf_counter()
        if chosen is None:
            found = self.experiment.clean(seed)
        else:
            found = self.experiment.obfuscated(chosen, seed)
        self.folder.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        part.write_text(json.dumps([_written(each) for each in found]))
        part.replace(file)
        spec = "clean" if chosen is None else chosen.spec
        taken = time.perf_counter() - start
        print(f"{self.name}, {spec}, seed {seed}: {taken:.0f} s", file=sys.stderr, flush=True)
        return found

    def file(self, chosen: Mechanism | None, seed: int) -> Path:
        """Where a result is kept; its name is made of all that decides it."""
        models = [*self.options.models, self.pool.encoder.fingerprint]
        texts = hashlib.sha256("\0".join(self.experiment.texts).encode()).hexdigest()
        held = None
        if chosen is not None:
            held = self.pool.sha256 if "pool" in chosen.resources() else self.space.sha256
        parts = [texts, models, None if chosen is None else chosen.spec, held, seed]
        key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:20]
        return self.folder / f"{key}.json"


def _written(outcome: Outcome) -> list[object]:
    setting, seed, items, values, unchanged = (
        astuple(outcome.setting),
        outcome.seed,
        outcome.items.tolist(),
        outcome.values.tolist(),
        outcome.unchanged,
    )
    return [setting, seed, items, values, unchanged]


def _read(fields: list[object]) -> Outcome:
    (model, measure, spec, epsilon, sides), seed, items, values, unchanged = fields  # type: ignore
    setting = Setting(model, measure, spec, epsilon, tuple(map(tuple, sides)))
    return Outcome(setting, seed, np.array(items), np.array(values, dtype=float), unchanged)


def table(scores: Sequence[Score], bench: Bench) -> None:
    """Markdown: a row for each mechanism and epsilon, a column for each regime."""
    obfuscated = [each for each in scores if each.setting.mechanism is not None]
    for model, measure in dict.fromkeys(
        (each.setting.model, each.setting.measure) for each in obfuscated
    ):
        lines = [
            f"{'clean' if each.setting.model == model else each.setting.model} {each.value:.3f} "
            f"({each.interval[0]:.3f} to {each.interval[1]:.3f})"
            for each in scores
            if each.setting.mechanism is None
            and each.setting.model in (model, *BASELINES)
            and each.setting.measure == measure
        ]
        print(f"\n### {bench.name}, {model}, {measure}\n")
        print(f"{bench.data!r}, {bench.options.seeds} seeds; {', '.join(lines)}.\n")
        own = [
            each
            for each in obfuscated
            if (each.setting.model, each.setting.measure) == (model, measure)
        ]
        regimes = [f"{each} obfuscated" for each in dict.fromkeys(each.hidden for each in own)]
        print(f"| mechanism | epsilon | unchanged | {' | '.join(regimes)} |")
        print("|---|--:|--:|" + "--:|" * len(regimes))
        rows: dict[str | None, list[Score]] = {}
        for each in own:
            rows.setdefault(each.setting.mechanism, []).append(each)
        for cells in rows.values():
            first = cells[0]
            shown = " | ".join(_cell(each) for each in cells)
            print(
                f"| `{without_epsilon(first)}` | {first.setting.epsilon:g} "
                f"| {first.unchanged:.0%} | {shown} |"
            )


def _cell(score: Score) -> str:
    assert score.loss is not None
    assert score.loss_interval is not None
    low, high = score.loss_interval
    return f"{score.value:.3f} ({0.0 - 100 * score.loss:+.1f} ± {50 * (high - low):.1f})"


def main(arguments: list[str] | None = None) -> int:
    """Measure what is missing, print tables, draw figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+")
    parser.add_argument("--limit", type=int, default=1500, help="texts, or questions, of each file")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--models", nargs="+", default=["tfidf", "embeddings"])
    parser.add_argument("--encoder", default="light", help="of embeddings and comet")
    parser.add_argument("--only", nargs="+", choices=list(EPSILONS), help="mechanisms")
    parser.add_argument("--epsilons", nargs="+", type=float, help="the same for all mechanisms")
    parser.add_argument(
        "--kept", action="store_true", help="show what was measured; measure no more"
    )
    parser.add_argument("--figures", type=Path, help="a folder for NAME.svg")
    parser.add_argument("--cache", type=Path, default=cache_folder() / "benchmarks" / "downstream")
    options = parser.parse_args(arguments)
    for file in options.files:
        bench = Bench(file, options)
        scores = summarize(bench.outcomes())
        table(scores, bench)
        if options.figures is not None:
            options.figures.mkdir(parents=True, exist_ok=True)
            save_figure(downstream_figure(scores), options.figures / f"{bench.name}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
