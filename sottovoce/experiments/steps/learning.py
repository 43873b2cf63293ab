"""What models score on a task: on clean texts, or with a mechanism's."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from sottovoce.evaluation.downstream.run import experiment
from sottovoce.evaluation.downstream.tasks import Classification, Ranking
from sottovoce.experiments.description import Downstream
from sottovoce.experiments.jobs import Learn
from sottovoce.experiments.product import Product
from sottovoce.experiments.shelf import Shelf, pipeline
from sottovoce.experiments.tables import make_table


class Lessons:
    """All tasks of a process; what was learnt from clean texts is kept for the last one."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self._lesson = lru_cache(1)(self._prepared)

    def learn(self, job: Learn) -> Product:
        """A value for each test item, model and side that was obfuscated."""
        lesson = self._lesson(job.task, job.downstream, job.texts.space)
        if job.spec is None:
            outcomes = lesson.clean(job.seed)
        else:
            mechanism = self.shelf.mechanism(job.spec, job.epsilon, job.texts)
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
        return Product("tasks", make_table("tasks", rows))

    def _prepared(
        self, task: str, downstream: Downstream, space: str | None
    ) -> Classification | Ranking:
        return experiment(
            self.shelf.task(task, downstream.limit),
            downstream.models,
            encoder=downstream.encoder,
            space=self.shelf.space(space, "all") if "bilstm" in downstream.models else None,
        )


def task_name(file: str) -> str:
    """A task as tables name it: its file without folder and endings."""
    return Path(file).name.split(".")[0]
