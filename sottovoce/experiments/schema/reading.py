"""Reads the file of an experiment; every problem of it is told at once, before anything runs."""

from __future__ import annotations

import importlib.util
import os
import tomllib
from pathlib import Path
from typing import Any

from sottovoce.evaluation.search_quality import cutoff
from sottovoce.experiments.naming import collection_name, task_name, without_path
from sottovoce.experiments.schema.expectations import read_expectations, unmeasured
from sottovoce.experiments.schema.experiment import Experiment, FileTables, file_tables
from sottovoce.experiments.schema.problems import Document, ExperimentError, Place
from sottovoce.experiments.schema.systems import SystemReader
from sottovoce.experiments.schema.values import DATA_VARIABLE, Folder


def read_experiment(file: Path | str, data: Path | str | None = None) -> Experiment:
    """Read and check a file; ``data`` is the folder that ``{data}`` in its paths stands for.

    Raises one :class:`ExperimentError` that lists all that is wrong: first what pydantic finds in
    single tables, then what does not go together.
    """
    document = Document(_content(Path(file)))
    folder = Folder(Path(file).absolute().parent, data or os.environ.get(DATA_VARIABLE))
    tables = document.validated(file_tables(), folder)
    experiment = _put_together(document, folder, tables)
    _check_packages(document, experiment)
    _check_names(document, experiment)
    _check_measures(document, experiment)
    _check_purpose(document, experiment)
    for name, problem in unmeasured(experiment, partial=document.is_partial("grid.collections")):
        document.problem(f"expected '{name}'", f"it can never be measured: {problem}")
    document.check()
    return experiment


def _content(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        problem = "there is no such file: check the path"
    except UnicodeDecodeError:
        problem = "it is not UTF-8 text: save it as such"
    except tomllib.TOMLDecodeError as error:
        problem = f"it is not TOML: {error}"
    except (ValueError, RecursionError):
        problem = "it is not TOML: a number is too long, or lists are nested too deeply"
    except OSError as error:
        problem = f"it cannot be read ({type(error).__name__}): check the path"
    raise ExperimentError([problem])


def _put_together(document: Document, folder: Folder, tables: FileTables) -> Experiment:
    """What the file describes, as far as it can be understood."""
    grid, reader = tables.grid, SystemReader(document, folder, tables)
    systems = reader.systems()
    expected, orders = read_expectations(document, tables)
    return Experiment(
        name=tables.name,
        description=tables.description,
        notes=tables.notes,
        collections=grid.collections,
        engines=grid.engines,
        rerankers=grid.rerankers,
        systems=systems,
        published=reader.published(systems),
        n=grid.n,
        seeds=grid.seeds,
        texts=reader.texts,
        searching=tables.search,
        utility=tables.utility,
        privacy=tables.privacy,
        deniability=tables.deniability,
        downstream=tables.downstream,
        membership=tables.membership,
        samples=tables.samples,
        plotted_words=tables.plotted_words,
        expected=expected,
        expected_orders=orders,
    )


# What no table shows by itself


def _check_packages(document: Document, experiment: Experiment) -> None:
    """Packages of extras that the experiment needs."""
    needed = [("", "pyarrow", "experiments", "an experiment")]
    if experiment.engines:
        needed.append(("grid.engines", "ir_measures", "experiments", "searching"))
    if not {"bleu", "meteor"}.isdisjoint(experiment.privacy.similarity):
        needed.append(("privacy.similarity", "nltk", "lab", "BLEU and METEOR"))
    if experiment.downstream is not None:
        if not {"bleu", "meteor"}.isdisjoint(experiment.downstream.similarity):
            needed.append(("downstream.similarity", "nltk", "lab", "BLEU and METEOR"))
        needed.append(("downstream.models", "sklearn", "lab", "a task"))
        if "bilstm" in experiment.downstream.models:
            needed.append(("downstream.models", "torch", "gpu", "the model bilstm"))
    if experiment.membership is not None:
        needed.append(("membership", "sklearn", "lab", "a membership audit"))
    for place, package, extra, what in needed:
        if importlib.util.find_spec(package) is None:
            problem = f"{what} needs an extra: pip install 'sottovoce[{extra}]'"
            document.problem(place, problem)


def _check_names(document: Document, experiment: Experiment) -> None:
    """Different things that tables would name alike."""
    names: dict[Place, list[str]] = {
        ("grid", "collections"): [*map(collection_name, experiment.collections)],
        ("grid", "engines"): [*map(without_path, experiment.engines)],
        ("grid", "rerankers"): [*map(without_path, experiment.rerankers)],
        ("privacy", "inference_encoders"): [
            *map(without_path, experiment.privacy.inference_encoders)
        ],
    }
    if experiment.downstream is not None:
        names["downstream", "tasks"] = [*map(task_name, experiment.downstream.tasks)]
    for place, all_names in names.items():
        for number, name in enumerate(all_names):
            if name in all_names[:number]:
                problem = f"'{name}' is there already: leave one out, or rename it"
                document.problem((*place, number), problem)


def _check_measures(document: Document, experiment: Experiment) -> None:
    """Measures that look at more documents than are kept."""
    if importlib.util.find_spec("ir_measures") is None:
        return  # That is said already, where anything is searched.
    kept = experiment.searching.kept
    for number, measure in enumerate(experiment.utility.measures):
        deepest = cutoff(measure)
        if deepest is not None and deepest > kept:
            document.problem(
                ("utility", "measures", number),
                f"'{measure}' looks at {deepest} documents, and {kept} of a re-ranked pool "
                "are kept: raise search.kept",
            )


def _check_purpose(document: Document, experiment: Experiment) -> None:
    """Whether there is something to do, and all that it needs."""
    of_words = experiment.deniability or experiment.samples or experiment.plotted_words
    tables = ("grid", "mechanism", "published", "deniability", "samples", "downstream")
    if document.is_partial(*tables, "membership"):
        return  # What seems to be missing may be there, and wrong.
    if experiment.collections:
        if not (experiment.engines or experiment.systems or experiment.published):
            alone = "collections alone are no experiment: add engines or mechanisms"
            document.problem("", alone)
    elif experiment.engines:
        document.problem(
            "grid.collections", "engines need documents: name at least one, such as demo"
        )
    elif experiment.published:
        document.problem(
            "grid.collections", "published releases need the collection that they are about"
        )
    elif not (of_words or experiment.downstream or experiment.membership):
        document.problem(
            "",
            "nothing is to be done: give [grid] collections and mechanisms (with engines to "
            "search, without them for privacy alone), [deniability], [samples], [downstream] or "
            "[membership]",
        )
    for section in ("deniability", "samples"):
        if getattr(experiment, section) is not None and not experiment.systems:
            document.problem(section, "it is about mechanisms: name some, or leave the section out")
