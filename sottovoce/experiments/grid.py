"""From an experiment to its cells: every collection, engine, mechanism, epsilon, … multiplied out.

Each cell is computed by itself, from what the fields of its job name. A job is small, immutable and
picklable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeAlias

from sottovoce.choices import Release
from sottovoce.experiments.naming import collection_name, log_name, task_name, without_paths
from sottovoce.experiments.schema.experiment import (
    FROM_COLLECTION,
    Deniability,
    Downstream,
    Experiment,
    Membership,
    Privacy,
    SampledWords,
    Searching,
    System,
    Texts,
    Utility,
)
from sottovoce.experiments.schema.values import judged_queries
from sottovoce.mechanisms.base import SetMechanism
from sottovoce.mechanisms.build import kind, names
from sottovoce.privacy.attacks.run_state import ATTACKS

NEIGHBOUR_RANKS = (1, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Neighbours whose distances are measured: those of Feyisetan et al. (WSDM 2020), figure 1."""


AS_SETS = tuple(attack for attack in ATTACKS if attack != "means")
"""What sets are attacked with, whatever the file names: all that applies to sets."""


# Jobs


@dataclass(frozen=True)
class Source:
    """Where the variants of a collection's judged queries come from.

    A mechanism (``spec``, with its epsilon) draws them, or ``file`` holds them.
    """

    collection: str
    mechanism: str
    """As tables name it."""
    epsilon: float | None
    release: Release
    n: int
    seed: int
    spec: str | None
    file: str | None
    texts: Texts
    parameter: str = "epsilon"
    """What ``epsilon`` is a value of, for messages and names of files."""

    @property
    def are_sets(self) -> bool:
        """Whether the variants of a query are a set, in which one stands for it.

        A plan is also made of a file with a wrong spec, to tell what else is wrong: that is none.
        """
        name = (self.spec or "").partition(":")[0].strip()
        return name in names() and issubclass(kind(name), SetMechanism)


@dataclass(frozen=True)
class Draw:
    """Draw (or read) the variants of all queries: ``variants/KEY.parquet``."""

    source: Source


@dataclass(frozen=True)
class Search:
    """Search, pool, re-rank and measure: private, and the original query as deep as the pools."""

    source: Source
    engine: str
    reranker: str
    searching: Searching
    utility: Utility


@dataclass(frozen=True)
class Baseline:
    """The original queries themselves, at the depth of one answer."""

    collection: str
    engine: str
    reranker: str
    searching: Searching
    utility: Utility


@dataclass(frozen=True)
class Leak:
    """What the variants give away: similarity, query inference, mechanism-aware recovery."""

    source: Source
    privacy: Privacy


@dataclass(frozen=True)
class Deny:
    """N_w and S_w of a mechanism, word by word."""

    mechanism: str
    spec: str
    epsilon: float | None
    seed: int
    texts: Texts
    deniability: Deniability


@dataclass(frozen=True)
class Neighbours:
    """How far words are from their neighbours, and where the plotted words' relatives lie."""

    texts: Texts
    words: int
    plotted: tuple[str, ...]
    ranks: tuple[int, ...] = NEIGHBOUR_RANKS


@dataclass(frozen=True)
class Learn:
    """What models score on one task; without a mechanism on clean texts."""

    task: str
    mechanism: str
    spec: str | None
    epsilon: float | None
    seed: int
    texts: Texts
    downstream: Downstream


@dataclass(frozen=True)
class Audit:
    """Whose releases a text model learnt from; without a mechanism on clean texts."""

    mechanism: str
    spec: str | None
    epsilon: float | None
    seed: int
    texts: Texts
    membership: Membership


@dataclass(frozen=True)
class Samples:
    """Words released for some words, at the epsilons where the mean N_w is each level."""

    mechanism: str
    spec: str
    seed: int
    texts: Texts
    samples: SampledWords


Job: TypeAlias = Draw | Search | Baseline | Leak | Deny | Neighbours | Learn | Audit | Samples

TOLD = ("collection", "task", "engine", "reranker", "mechanism", "epsilon", "release", "n", "seed")
"""Fields of jobs, in the order in which they are told."""


def kind_of(job: Job) -> str:
    """How cells of this kind are called in messages and tables of time."""
    return type(job).__name__.lower()


def described(job: Job) -> str:
    """Which cell it is, in words of the experiment's file."""
    return f"the {kind_of(job)} cell of " + ", ".join(parts_of(job))


def parts_of(job: Job) -> list[str]:
    """What tells a job from the others of its kind, without paths."""
    fields = {**vars(getattr(job, "source", job)), **vars(job)}
    told = {"epsilon": fields.get("parameter", "epsilon"), "n": "n", "seed": "seed"}
    numbers = {
        name: f"{as_told}={value:g}" if isinstance(value, float) else f"{as_told}={value}"
        for name, as_told in told.items()
        if (value := fields.get(name)) is not None
    }
    parts = [numbers.get(name) or without_paths(fields.get(name)) for name in TOLD]
    return [part for part in parts if part]


# The plan


def plan(experiment: Experiment) -> list[list[Job]]:
    """The cells in two stages, each once: variants, then all that is made of them or without them.

    Cells that use the same collection, engine and re-ranker stand together, so that a worker who
    takes them in order loads each of these once.
    """
    draws = [Draw(source) for source in _sources(experiment)]
    rest = [*_searches(experiment), *_leaks(experiment), *_words(experiment)]
    rest += [*_samples(experiment), *_lessons(experiment), *_audits(experiment)]
    return [list(dict.fromkeys(draws)), list(dict.fromkeys(rest))]


def _sources(experiment: Experiment) -> Iterator[Source]:
    for collection in experiment.collections:
        for system in experiment.systems:
            settings = (
                (epsilon, *others)
                for epsilon in system.epsilons
                for others in product(
                    system.releases, system.numbers_at(epsilon, experiment.n), experiment.seeds
                )
            )
            for epsilon, release, n, seed in settings:
                yield Source(
                    collection=collection,
                    mechanism=system.label,
                    epsilon=epsilon,
                    release=release,
                    n=n,
                    seed=seed,
                    spec=system.spec_at(epsilon),
                    file=None,
                    texts=system.texts,
                    parameter=system.parameter,
                )
        for published in experiment.published:
            files = zip(published.files, published.epsilons, strict=True)
            for (file, epsilon), n in product(files, experiment.n):
                yield Source(
                    collection=collection,
                    mechanism=published.label,
                    epsilon=epsilon,
                    release="independent",
                    n=n,
                    seed=0,
                    spec=published.spec,
                    file=file,
                    texts=experiment.texts,
                )


def _searches(experiment: Experiment) -> Iterator[Job]:
    searching, utility = experiment.searching, experiment.utility
    sources = list(_sources(experiment))
    settings = product(experiment.collections, experiment.engines, experiment.rerankers)
    for collection, engine, reranker in settings:
        yield Baseline(collection, engine, reranker, searching, utility)
        for source in sources:
            if source.collection == collection:
                yield Search(source, engine, reranker, searching, utility)


def _leaks(experiment: Experiment) -> Iterator[Job]:
    """Each kind of measure apart: whoever adds one does not repeat the others.

    Sets are attacked as sets wherever anything is attacked, and all of them: few attackers of words
    say little of a set, and few queries little of what attackers learn from all.
    """
    asked, nothing = experiment.privacy, Privacy(similarity=(), inference_encoders=(), attacks=())
    sources = list(_sources(experiment))
    sets = [source for source in sources if source.are_sets]
    others = [source for source in sources if not source.are_sets]
    parts: list[tuple[Privacy, list[Source]]] = []
    if asked.similarity:
        encoder = asked.similarity_encoder if "semantic" in asked.similarity else "auto"
        similar = replace(nothing, similarity=asked.similarity, similarity_encoder=encoder)
        parts.append((similar, sources))
    if asked.log is not None:
        parts += [
            (replace(nothing, log=asked.log, inference_encoders=(encoder,)), sources)
            for encoder in asked.inference_encoders
        ]
    if "means" in asked.attacks and asked.log is not None:
        parts.append((replace(nothing, log=asked.log, attacks=("means",)), others))
    if attacks := tuple(attack for attack in asked.attacks if attack != "means"):
        words = replace(nothing, log=asked.log, attacks=attacks, attacked=asked.attacked)
        parts.append((words, others))
    if asked.attacks or (asked.log is not None and asked.inference_encoders):
        parts.append((replace(nothing, log=asked.log, attacks=AS_SETS), sets))
    for part, attacked in parts:
        for source in attacked:
            yield Leak(source, part)


def _words(experiment: Experiment) -> Iterator[Job]:
    """What is measured on words: mechanisms that replace them one by one, and their spaces."""
    systems = [system for system in experiment.systems if system.kind.by_word]
    deniability = experiment.deniability
    if deniability is not None:
        for system in systems:
            for epsilon in system.epsilons:
                seed = experiment.seeds[0]
                spec = system.spec_at(epsilon)
                yield Deny(system.label, spec, epsilon, seed, system.texts, deniability)
    if deniability is not None or experiment.plotted_words:
        words = (deniability or Deniability()).words
        spaces: dict[str | None, Texts] = {}
        for texts in [system.texts for system in systems] or [experiment.texts]:
            spaces.setdefault(texts.settings("space")["space"], texts.only("space"))
        for texts in spaces.values():
            yield Neighbours(texts, words, experiment.plotted_words)


def _lessons(experiment: Experiment) -> Iterator[Job]:
    """Tasks, on clean texts and on those of each mechanism that needs no collection."""
    if experiment.downstream is None:
        return
    systems = [system for system in experiment.systems if not _needs_collection(system)]
    for task in experiment.downstream.tasks:
        downstream = replace(experiment.downstream, tasks=(task,))
        for seed in experiment.seeds:
            yield Learn(task, "", None, None, seed, experiment.texts.only("space"), downstream)
        for system in systems:
            for epsilon, seed in product(system.epsilons, experiment.seeds):
                spec = system.spec_at(epsilon)
                yield Learn(task, system.label, spec, epsilon, seed, system.texts, downstream)


def _samples(experiment: Experiment) -> Iterator[Job]:
    """Examples of releases, of mechanisms with an epsilon that replace words one by one."""
    if experiment.samples is None:
        return
    seed = experiment.seeds[0]
    for system in experiment.systems:
        if system.kind.by_word:
            yield Samples(system.label, system.spec, seed, system.texts, experiment.samples)


def _audits(experiment: Experiment) -> Iterator[Job]:
    """Membership, on clean texts and on those of each mechanism that has what it needs."""
    membership, seed = experiment.membership, experiment.seeds[0]
    if membership is None:
        return
    yield Audit("", None, None, seed, experiment.texts, membership)
    for system in experiment.systems:
        if membership.collection is not None or not _needs_collection(system):
            for epsilon in system.epsilons:
                yield Audit(system.label, system.spec, epsilon, seed, system.texts, membership)


def _needs_collection(system: System) -> bool:
    return not set(FROM_COLLECTION).isdisjoint(system.kind.resources())


# The size of a plan

KINDS: dict[type, str] = {
    Draw: "draw",
    Baseline: "search",
    Search: "search",
    Leak: "privacy",
    Deny: "words",
    Neighbours: "words",
    Learn: "tasks",
    Samples: "words",
    Audit: "audits",
}
"""Kinds of cells, as ``--dry-run`` counts them."""
COUNTED = (*dict.fromkeys(KINDS.values()), "variants", "queries", "done")


@dataclass(frozen=True)
class Size:
    """A plan in numbers: counts by what cells are on (a collection, a task, words) and mechanism.

    ``variants`` are those to be drawn, ``queries`` those sent to engines; they are upper limits:
    a mechanism may find fewer variants, and equal ones are sent once.
    """

    name: str
    lines: dict[tuple[str, str], Counter[str]]

    def total(self, count: str) -> int:
        return sum(counts[count] for counts in self.lines.values())

    def to_dict(self) -> dict[str, Any]:
        totals = {count: self.total(count) for count in ("cells", "done", "variants", "queries")}
        lines = [
            {"on": on, "mechanism": mechanism}
            | {count: counts[count] for count in (*COUNTED, "cells")}
            for (on, mechanism), counts in self.lines.items()
        ]
        return {"name": self.name, **totals, "lines": lines}


def size_of(experiment: Experiment, done: Collection[Job] = ()) -> Size:
    """Count the cells of an experiment, and those of them that are done."""
    queries = {collection: judged_queries(collection) for collection in experiment.collections}
    lines: dict[tuple[str, str], Counter[str]] = {}
    for job in (job for stage in plan(experiment) for job in stage):
        counts = lines.setdefault(_line_of(job), Counter())
        counts.update({KINDS[type(job)]: 1, "cells": 1, "done": int(job in done)})
        match job:
            case Baseline():
                counts["queries"] += queries[job.collection]
            case Search(source):
                counts["queries"] += queries[source.collection] * source.n
            case Draw(source) if source.file is None:
                counts["variants"] += queries[source.collection] * source.n
    return Size(experiment.name, lines)


def _line_of(job: Job) -> tuple[str, str]:
    """What a job is on, and with which mechanism."""
    match job:
        case Draw(source) | Search(source) | Leak(source):
            return collection_name(source.collection), source.mechanism
        case Baseline():
            return collection_name(job.collection), ""
        case Learn():
            return task_name(job.task), job.mechanism
        case Deny() | Samples():
            return "words", job.mechanism
        case Audit():
            return log_name(job.membership.log), job.mechanism
        case Neighbours():
            return "words", ""
