"""What models score on a task: on clean texts, or with a mechanism's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from sottovoce.evaluation.downstream.classification import Classification, Compare
from sottovoce.evaluation.downstream.tasks import Ranking, experiment
from sottovoce.experiments.grid import Learn
from sottovoce.experiments.naming import task_name
from sottovoce.experiments.resource_cache import ResourceCache, pipeline
from sottovoce.experiments.schema.experiment import Downstream, Texts
from sottovoce.experiments.store import CellResult
from sottovoce.experiments.tables import make_table
from sottovoce.privacy.attacks.releases import Released
from sottovoce.privacy.text_similarity import SimilarityMeter
from sottovoce.types import Float64Array


class Lessons:
    """All tasks of a process; what was learnt from clean texts is kept for the last one."""

    def __init__(self, cache: ResourceCache) -> None:
        self._cache = cache
        self._lesson = lru_cache(1)(self._prepared)

    def learn(self, job: Learn) -> CellResult:
        """A value for each test item, model and side that was obfuscated."""
        lesson = self._lesson(job.task, job.downstream, job.texts.settings("space")["space"])
        if job.spec is None:
            outcomes = lesson.clean(job.seed)
        else:
            mechanism = self._cache.mechanism(job.spec, job.epsilon, job.texts)
            cut = pipeline(job.texts, mechanism)
            outcomes = lesson.obfuscated(mechanism, job.seed, pipeline=cut)
        rows = [
            (
                *(task_name(job.task), outcome.setting.model, outcome.setting.hidden),
                *(job.mechanism, job.epsilon, job.seed),
                *(int(item), outcome.setting.measure, float(value)),
            )
            for outcome in outcomes
            for item, value in zip(outcome.items, outcome.values, strict=True)
        ]
        return CellResult("tasks", make_table("tasks", rows))

    def _prepared(
        self, task: str, downstream: Downstream, space: str | None
    ) -> Classification | Ranking:
        texts = self._cache.task(task, downstream.limit)
        words = self._cache.space(Texts.of(space=space)) if "bilstm" in downstream.models else None
        return experiment(
            texts,
            downstream.models,
            test=None if downstream.test is None else self._cache.task(downstream.test, None),
            encoder=downstream.encoder,
            space=words,
            regimes=downstream.regimes,
            compare=_comparison(downstream) if downstream.similarity else None,
        )


def _comparison(downstream: Downstream) -> Compare:
    """How much texts resemble what was released for them, by all measures of the experiment."""
    encoder = downstream.similarity_encoder if "semantic" in downstream.similarity else None
    meter = SimilarityMeter(downstream.similarity, encoder)

    def compare(texts: Sequence[str], released: Sequence[str]) -> dict[str, Float64Array]:
        pairs = enumerate(zip(texts, released, strict=True))
        rows = [Released(str(row), text, (variant,)) for row, (text, variant) in pairs]
        return {str(name): values for name, values in meter.measure(rows).values.items()}

    return compare
