"""The whole experiment: every mechanism, seed and model, and both regimes."""

from __future__ import annotations

from collections.abc import Sequence

from sottovoce.encoders import Encoder
from sottovoce.errors import UsageError
from sottovoce.evaluation.downstream.data import LabelledTexts, Questions, Task
from sottovoce.evaluation.downstream.models import load_model
from sottovoce.evaluation.downstream.scores import Outcome, Score, summarize
from sottovoce.evaluation.downstream.tasks import Classification, Ranking
from sottovoce.mechanisms.base import Mechanism
from sottovoce.spaces.space import WordSpace
from sottovoce.types import Progress, count_up

SEEDS = (0, 1, 2)


def experiment(
    task: Task,
    models: Sequence[str] = ("tfidf",),
    *,
    test: Task | None = None,
    encoder: str | Encoder = "auto",
    space: WordSpace | None = None,
) -> Classification | Ranking:
    """The experiment that fits the task, to be run seed by seed and mechanism by mechanism."""
    names = list(dict.fromkeys(models))
    if not names:
        raise UsageError("name at least one model")
    if isinstance(task, Questions):
        if test is not None:
            raise UsageError("ranking learns nothing: leave the test file out")
        return Ranking(task, names, encoder)
    if test is not None and not isinstance(test, LabelledTexts):
        raise UsageError("the test file needs text and label, as the other one")
    return Classification(task, [load_model(name, encoder, space) for name in names], test)


def evaluate(
    task: Task,
    mechanisms: Sequence[Mechanism],
    models: Sequence[str] = ("tfidf",),
    *,
    test: Task | None = None,
    seeds: Sequence[int] = SEEDS,
    encoder: str | Encoder = "auto",
    space: WordSpace | None = None,
    progress: Progress | None = None,
) -> list[Score]:
    """What each model scores with train and test (or answers and questions) clean or obfuscated.

    A seed decides the split, the training and the obfuscation, which is drawn once for each
    mechanism and seed and shared by all models and regimes. Seeds are for experiments: what is
    drawn here protects nobody.
    """
    if not seeds or len(set(seeds)) < len(seeds):
        raise UsageError("give at least one seed, each of them once")
    regimes = experiment(task, models, test=test, encoder=encoder, space=space)
    distinct = list(dict.fromkeys(mechanisms))
    count = count_up(progress, len(seeds) * len(distinct) * len(regimes.texts))
    outcomes: list[Outcome] = []
    for seed in seeds:
        outcomes += regimes.clean(seed)
        for mechanism in distinct:
            outcomes += regimes.obfuscated(mechanism, seed, count)
    return summarize(outcomes)
