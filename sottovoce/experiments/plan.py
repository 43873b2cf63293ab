"""From an experiment to its cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from sottovoce.experiments.description import Deniability, Experiment, Privacy, System, Texts
from sottovoce.experiments.jobs import (
    Baseline,
    Deny,
    Draw,
    Job,
    Leak,
    Learn,
    Neighbours,
    Search,
    Source,
)
from sottovoce.mechanisms import parse
from sottovoce.mechanisms.base import WordMechanism


def plan(experiment: Experiment) -> list[list[Job]]:
    """The cells in two stages, each once: variants, then all that is made of them or without them.

    Cells that use the same collection, engine and re-ranker stand together, so that a worker who
    takes them in order loads each of these once.
    """
    drawn = [Draw(source) for source in _sources(experiment)]
    rest = [
        *_searches(experiment),
        *_leaks(experiment),
        *_words(experiment),
        *_lessons(experiment),
    ]
    return [list(dict.fromkeys(drawn)), list(dict.fromkeys(rest))]


def _sources(experiment: Experiment) -> Iterator[Source]:
    for collection in experiment.collections:
        for system in experiment.systems:
            settings = product(system.epsilons, system.releases, experiment.n, experiment.seeds)
            for epsilon, release, n, seed in settings:
                yield Source(
                    collection=collection,
                    mechanism=system.label,
                    epsilon=epsilon,
                    release=release,
                    n=n,
                    seed=seed,
                    spec=system.spec,
                    file=None,
                    texts=system.texts,
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
    """Each kind of measure apart: whoever adds one does not repeat the others."""
    asked, nothing = experiment.privacy, Privacy(similarity=(), inference_encoders=(), attacks=())
    parts = []
    if asked.similarity:
        encoder = asked.similarity_encoder if "semantic" in asked.similarity else "auto"
        parts.append(replace(nothing, similarity=asked.similarity, similarity_encoder=encoder))
    if asked.log is not None:
        parts += [
            replace(nothing, log=asked.log, inference_encoders=(encoder,))
            for encoder in asked.inference_encoders
        ]
    if asked.attacks:
        parts.append(replace(nothing, attacks=asked.attacks, attacked=asked.attacked))
    for part in parts:
        for source in _sources(experiment):
            yield Leak(source, part)


def _words(experiment: Experiment) -> Iterator[Job]:
    """What is measured on words: mechanisms that replace them one by one, and their spaces."""
    systems = [each for each in experiment.systems if word_by_word(each)]
    wanted = experiment.deniability
    if wanted is not None:
        for system, epsilon in ((each, eps) for each in systems for eps in each.epsilons):
            seed = experiment.seeds[0]
            yield Deny(system.label, system.spec, epsilon, seed, system.texts, wanted)
    if wanted is not None or experiment.plotted_words:
        words = (wanted or Deniability()).words
        vocabularies: dict[str | None, str] = {}
        for texts in [each.texts for each in systems] or [experiment.texts]:
            vocabularies.setdefault(texts.space, texts.output_vocabulary)
        for space, vocabulary in vocabularies.items():
            texts = Texts(space=space, output_vocabulary=vocabulary)
            yield Neighbours(texts, words, experiment.plotted_words)


def _lessons(experiment: Experiment) -> Iterator[Job]:
    """Tasks, on clean texts and on those of each mechanism that needs no collection."""
    if experiment.downstream is None:
        return
    systems = [each for each in experiment.systems if not _needs_corpus(each)]
    for task in experiment.downstream.tasks:
        one = replace(experiment.downstream, tasks=(task,))
        for seed in experiment.seeds:
            texts = Texts(experiment.texts.space, experiment.texts.output_vocabulary)
            yield Learn(task, "", None, None, seed, texts, one)
        for system in systems:
            for epsilon, seed in product(system.epsilons, experiment.seeds):
                yield Learn(task, system.label, system.spec, epsilon, seed, system.texts, one)


def word_by_word(system: System) -> bool:
    """Whether its mechanism replaces words one by one."""
    return issubclass(parse(system.spec)[0], WordMechanism)


def _needs_corpus(system: System) -> bool:
    return "engine" in parse(system.spec)[0].resources()
