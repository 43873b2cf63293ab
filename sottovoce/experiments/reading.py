"""Reads the file of an experiment; every problem of it is told at once, before anything runs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from sottovoce.choices import POOLINGS
from sottovoce.collections import DEMO
from sottovoce.errors import SottovoceError
from sottovoce.evaluation import effectiveness
from sottovoce.evaluation.downstream.models import MODELS
from sottovoce.evaluation.search_quality import cutoff
from sottovoce.experiments.description import (
    Deniability,
    Downstream,
    Experiment,
    Privacy,
    Searching,
    Texts,
    Utility,
)
from sottovoce.experiments.expectations import read_expectations
from sottovoce.experiments.named import Named, collection_name, each_of, missing_extra
from sottovoce.experiments.naming import without_path
from sottovoce.experiments.problems import ExperimentError, Problems, Section
from sottovoce.experiments.selection import unmeasured
from sottovoce.experiments.steps.learning import task_name
from sottovoce.experiments.systems import read_published, read_systems, read_texts
from sottovoce.privacy.attacks.run import ATTACKS
from sottovoce.privacy.text_similarity import MEASURES

RERANKERS = ("light",)
"""What a search is re-ranked with where the file does not say."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def read_experiment(file: Path | str, data: Path | str | None = None) -> Experiment:
    """Read and check a file; ``data`` is the folder that ``{data}`` in its paths stands for.

    Raises one :class:`ExperimentError` that lists all that is wrong.
    """
    problems = Problems()
    content = _content(Path(file))
    experiment = _read(Section(content, "", problems), Named(Path(file).absolute().parent, data))
    for name, problem in unmeasured(experiment):
        problems.add(f"expected '{name}'", f"it can never be measured: {problem}")
    problems.check()
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


def _read(top: Section, named: Named) -> Experiment:
    grid = top.section("grid")
    texts_section = top.section("texts")
    texts = read_texts(texts_section, named, Texts())
    texts_section.finish()
    n, seeds = grid.wholes("n", (20,)), grid.wholes("seeds", (0,), least=0)
    systems = read_systems(top.sections("mechanism"), grid, named, texts, max(n, default=1))
    collections = grid.texts("collections")
    searching = _searching(top.section("search"))
    expected, orders = read_expectations(top)
    experiment = Experiment(
        name=_name(top),
        description=top.text("description"),
        notes=top.texts("notes"),
        collections=each_of(grid, "collections", collections, named.collection),
        engines=each_of(grid, "engines", grid.texts("engines"), named.engine),
        rerankers=each_of(grid, "rerankers", grid.texts("rerankers", RERANKERS), named.reranker),
        systems=systems,
        published=read_published(top.sections("published"), named, systems, texts),
        n=n,
        seeds=seeds,
        texts=texts,
        searching=searching,
        utility=_utility(top.section("utility"), searching.kept),
        privacy=_privacy(top.section("privacy"), named),
        deniability=_deniability(top.section("deniability")) if top.has("deniability") else None,
        downstream=_downstream(top.section("downstream"), named) if top.has("downstream") else None,
        plotted_words=top.texts("plotted_words"),
        expected=expected,
        expected_orders=orders,
    )
    _check_whole(top, grid, experiment)
    grid.finish()
    top.finish()
    return experiment


def _name(top: Section) -> str:
    name = top.text("name", required=True)
    if name and not _NAME.fullmatch(name):
        top.problem(
            "name", "it names files: use letters, digits, '.', '_' and '-' only, 100 at most"
        )
    return name


def _searching(section: Section) -> Searching:
    default = Searching()
    found = Searching(
        depth=section.whole("depth", default.depth),
        pooling=section.choice("pooling", default.pooling, POOLINGS),
        kept=section.whole("kept", default.kept),
    )
    section.finish()
    return found


def _utility(section: Section, kept: int) -> Utility:
    default = Utility()
    measures = section.texts("measures", default.measures)
    for at, measure in enumerate(measures, start=1):
        if problem := _measure_problem(measure, kept):
            section.problem("measures", problem, at)
    found = Utility(measures, section.wholes("thresholds", default.thresholds))
    section.finish()
    return found


def _measure_problem(measure: str, kept: int) -> str | None:
    """Why a measure cannot be measured, found by trying it on one document."""
    try:
        effectiveness({"1": ["1"]}, {"1": {"1": 1}}, [measure])
        if (deepest := cutoff(measure)) is not None and deepest > kept:
            return (
                f"'{measure}' looks at {deepest} documents, and {kept} of a re-ranked pool are "
                "kept: raise search.kept"
            )
    except SottovoceError as error:
        return str(error)
    except Exception:
        return f"'{measure}' cannot be measured query by query here: use another one, as nDCG@10"
    return None


def _privacy(section: Section, named: Named) -> Privacy:
    default = Privacy()
    similarity = section.choices("similarity", default.similarity, MEASURES)
    if {"bleu", "meteor"} & {*similarity} and (
        problem := missing_extra("nltk", "lab", "BLEU and METEOR")
    ):
        section.problem("similarity", problem)
    encoder, log = section.text("similarity_encoder", default.similarity_encoder), None
    if section.has("log") and (name := section.text("log")):
        log = DEMO if name == DEMO else named.file(section, "log", name)
    names = section.texts("inference_encoders", default.inference_encoders)
    found = Privacy(
        similarity=similarity,
        similarity_encoder=named.encoder(section, "similarity_encoder", encoder),
        log=log,
        inference_encoders=each_of(section, "inference_encoders", names, named.encoder),
        attacks=section.choices("attacks", default.attacks, ATTACKS),
        attacked=section.whole("attacked", 1) if section.has("attacked") else None,
    )
    section.finish()
    return found


def _deniability(section: Section) -> Deniability:
    default = Deniability()
    found = Deniability(
        section.whole("words", default.words), section.whole("draws", default.draws)
    )
    section.finish()
    return found


def _downstream(section: Section, named: Named) -> Downstream:
    tasks = section.texts("tasks")
    if not tasks:
        section.problem("tasks", "name at least one file with text and label")
    models = section.choices("models", ("tfidf",), MODELS)
    if section.values.get("models") == []:
        section.problem("models", f"name at least one of {', '.join(MODELS)}")
    needed = {"sklearn": ("lab", "a task")}
    needed |= {"torch": ("gpu", "the model bilstm")} if "bilstm" in models else {}
    for module, (extra, what) in needed.items():
        if problem := missing_extra(module, extra, what):
            section.problem("models", problem)
    found = Downstream(
        tasks=each_of(section, "tasks", tasks, named.task),
        models=models,
        limit=section.whole("limit", 1) if section.has("limit") else None,
        encoder=named.encoder(section, "encoder", section.text("encoder", "auto")),
    )
    section.finish()
    return found


def _check_whole(top: Section, grid: Section, experiment: Experiment) -> None:
    """What no key shows by itself: parts that need others, and names that would be mixed up."""
    if problem := missing_extra("pyarrow", "experiments", "an experiment"):
        top.problems.add("", problem)
    if experiment.engines and (problem := missing_extra("ir_measures", "experiments", "searching")):
        grid.problem("engines", problem)
    named_twice = {
        ("grid", "collections"): [collection_name(each) for each in experiment.collections],
        ("grid", "engines"): [without_path(each) for each in experiment.engines],
        ("grid", "rerankers"): [without_path(each) for each in experiment.rerankers],
        ("privacy", "inference_encoders"): [
            without_path(each) for each in experiment.privacy.inference_encoders
        ],
    }
    for (section, key), names in named_twice.items():
        for at, name in enumerate(names, start=1):
            if name in names[: at - 1]:
                top.problems.add(
                    f"{section}.{key}, value {at}",
                    f"'{name}' is there already: leave one out, or rename its folder",
                )
    if experiment.downstream is not None:
        tasks = [task_name(task) for task in experiment.downstream.tasks]
        for at, task in enumerate(tasks, start=1):
            if task in tasks[: at - 1]:
                top.problems.add(
                    f"downstream.tasks, value {at}", f"a file '{task}' is there already: rename one"
                )
    if experiment.collections:
        if not (experiment.engines or experiment.systems or experiment.published):
            top.problems.add("", "collections alone are no experiment: add engines or mechanisms")
    elif experiment.engines:
        grid.problem("collections", "engines need documents: name at least one, such as demo")
    elif experiment.published:
        grid.problem("collections", "published releases need the collection that they are about")
    elif not (experiment.deniability or experiment.downstream or experiment.plotted_words):
        top.problems.add(
            "",
            "nothing is to be done: give [grid] collections and mechanisms (with engines to "
            "search, without them for privacy alone), [deniability] or [downstream]",
        )
    if experiment.deniability is not None and not experiment.systems:
        top.problem("deniability", "it is about mechanisms: name some, or leave the section out")
