"""What models score on a task: on clean texts, or with a mechanism's."""

from __future__ import annotations

from functools import lru_cache

from sottovoce.evaluation.downstream.tasks import Classification, Ranking, experiment
from sottovoce.experiments.grid import Learn
from sottovoce.experiments.naming import task_name
from sottovoce.experiments.resource_cache import ResourceCache, pipeline
from sottovoce.experiments.schema.experiment import Downstream, Texts
from sottovoce.experiments.store import CellResult
from sottovoce.experiments.tables import make_table


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
        return experiment(texts, downstream.models, encoder=downstream.encoder, space=words)
