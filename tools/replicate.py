"""Run the experiments of ``replication/`` again: run, check and report, one file after the other.

    python tools/replicate.py DATA [--out results] [--workers 2] [--only 003 …] [--smoke]

What is done is not done again: stop it at any time and type the same. A file that needs what is not
on this machine is told and left out. ``--smoke`` tries whether everything works, in a minute or
two, and measures nothing: three queries, two epsilons, three variants, the light encoder.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from sottovoce.collections import load_collection
from sottovoce.experiments import Results, read_experiment, run_experiment, write_report
from sottovoce.experiments.check import VERDICTS, check
from sottovoce.experiments.schema.experiment import Experiment
from sottovoce.experiments.schema.problems import ExperimentError

FILES = Path(__file__).resolve().parents[1] / "replication"
QUERIES, DOCUMENTS, VARIANTS = 3, 200, 3


def main() -> int:
    """Replicate; the exit code is 1 where a file was left out."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--only",
        nargs="*",
        default=[""],
        help="how names of files begin, such as 003 or 001-quipu.toml",
    )
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    left_out = 0
    for file in sorted(FILES.glob("*.toml")):
        if file.name.startswith(tuple(options.only)):
            left_out += not replicate(file, options)
    return int(left_out > 0)


def replicate(file: Path, options: argparse.Namespace) -> bool:
    """Run, check and report one file; whether that was possible."""
    started, used = time.perf_counter(), processor_seconds()
    try:
        experiment = read_experiment(file, options.data)
    except ExperimentError as error:
        print(f"{file.stem}: left out, {error.problems[0]}", flush=True)
        return False
    folder = options.out / file.stem
    if options.smoke:
        experiment = small(experiment, options.out / "collections")
    run_experiment(experiment, folder, file=file, workers=options.workers)
    expected = check(Results(folder), experiment.expected, experiment.expected_orders)
    verdicts = Counter(checked.verdict for checked in expected)
    page = write_report(folder, figures=not options.smoke)
    told = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in VERDICTS if verdicts[verdict])
    clock, processors = time.perf_counter() - started, processor_seconds() - used
    took = f"{clock:.0f} s, {processors:.0f} s of processors"
    print(f"{file.stem}: {told}; {took}; {page}", flush=True)
    return True


def processor_seconds() -> float:
    """What this process and its finished workers have used of all processors."""
    return sum(os.times()[:4])


def small(experiment: Experiment, folder: Path) -> Experiment:
    """The same in little, without strings of a pool and models that take long."""
    systems = [
        replace(system, epsilons=tuple(dict.fromkeys((system.epsilons[0], system.epsilons[-1]))))
        for system in experiment.systems
        if "pool" not in dict(system.texts.resources)
    ]
    published = [
        replace(releases, files=releases.files[:2], epsilons=releases.epsilons[:2])
        for releases in experiment.published
    ]
    downstream = experiment.downstream
    light = {engine.replace("dense:strong", "dense:light"): None for engine in experiment.engines}
    return replace(
        experiment,
        collections=tuple(small_collection(name, folder) for name in experiment.collections[:1]),
        engines=tuple(light),
        rerankers=("light",),
        systems=tuple(systems),
        published=tuple(published),
        n=(VARIANTS,),
        seeds=experiment.seeds[:1],
        privacy=replace(
            experiment.privacy, similarity_encoder="light", inference_encoders=("light",)
        ),
        deniability=experiment.deniability and replace(experiment.deniability, words=5, draws=50),
        downstream=downstream and replace(downstream, models=("tfidf",), limit=100),
        plotted_words=(),
    )


def small_collection(name: str, folder: Path) -> str:
    """A few queries of a collection, what was judged for them and some more, under its name."""
    whole = load_collection(name)
    target = folder / whole.name
    target.mkdir(parents=True, exist_ok=True)
    queries = [query for query in whole.queries if query in whole.judgments][:QUERIES]
    judged = {document for query in queries for document in whole.judgments[query]}
    documents = [each for each in whole.documents if each.doc_id in judged]
    documents = [*documents, *whole.documents[:DOCUMENTS]]
    corpus = {each.doc_id: {"doc_id": each.doc_id, "text": each.text} for each in documents}
    lines = {
        "corpus.jsonl": map(json.dumps, corpus.values()),
        "queries.jsonl": (
            json.dumps({"query_id": query, "text": whole.queries[query]}) for query in queries
        ),
        "qrels.txt": (
            f"{query} 0 {document} {grade}"
            for query in queries
            for document, grade in whole.judgments[query].items()
        ),
    }
    for file, content in lines.items():
        (target / file).write_text("".join(f"{line}\n" for line in content), encoding="utf-8")
    return str(target.resolve())


if __name__ == "__main__":
    sys.exit(main())
