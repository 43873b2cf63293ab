"""The whole experiment: every mechanism, seed and model, and both regimes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sottovoce.encoders.base import Encoder
from sottovoce.errors import UsageError
from sottovoce.evaluation.downstream.classification import Classification
from sottovoce.evaluation.downstream.data import LabelledTexts, Questions, Task
from sottovoce.evaluation.downstream.models import load_model
from sottovoce.evaluation.downstream.ranking import Ranking
from sottovoce.evaluation.downstream.scores import Outcome, Score, summarise
from sottovoce.mechanisms.base import Mechanism
from sottovoce.spaces.space import WordSpace

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
    progress: Callable[[int, int], None] | None = None,
) -> list[Score]:
    """What each model scores with train and test (or answers and questions) clean or obfuscated.

    A seed decides the split, the training and the obfuscation, which is drawn once for each
    mechanism and seed and shared by all models and regimes. Seeds are for experiments: what is
    drawn here protects nobody.
    """
    if not seeds or len(set(seeds)) < len(seeds):
        raise UsageError("give at least one seed, each of them once")
    chosen = experiment(task, models, test=test, encoder=encoder, space=space)
    distinct = list(dict.fromkeys(mechanisms))
    counted = _counter(progress, len(seeds) * len(distinct) * len(chosen.texts))
    found: list[Outcome] = []
    for seed in seeds:
        found += chosen.clean(seed)
        for mechanism in distinct:
            found += chosen.obfuscated(mechanism, seed, counted)
    return summarise(found)


def _counter(
    progress: Callable[[int, int], None] | None, total: int
) -> Callable[[int], None] | None:
    if progress is None:
        return None
    show, done = progress, 0

    def count(more: int) -> None:
        nonlocal done
        done += more
        show(done, total)

    return count
