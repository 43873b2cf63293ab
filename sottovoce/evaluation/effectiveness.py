"""How well rankings and pools answer judged queries, query by query.

Everything here takes lists of document ids and judgments; it knows nothing of mechanisms. The
measures are those of trec_eval, through ir_measures.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sottovoce.errors import UsageError, need
from sottovoce.statistics import FINE_SAMPLES, LEVEL, bootstrap_mean

if TYPE_CHECKING:
    from ir_measures.measures import Measure

MEASURES = ("nDCG@10", "P@10", "R@100")

Answer: TypeAlias = Sequence[str] | Mapping[str, float]
"""Document ids, best first; or scores by document id, where ties keep their order."""
Judgments: TypeAlias = Mapping[str, Mapping[str, int]]
"""Grades by query and document; what nobody judged counts as not relevant."""


@dataclass(frozen=True)
class Measured:
    """A measure's value for each query."""

    measure: str
    values: Mapping[str, float]

    @property
    def mean(self) -> float:
        """The mean over the queries; not a number where there is none."""
        return float(np.mean(list(self.values.values()))) if self.values else float("nan")

    def interval(
        self, level: float = LEVEL, samples: int = FINE_SAMPLES, seed: int = 0
    ) -> tuple[float, float]:
        """A bootstrap interval of the mean: what other queries of this kind might have given."""
        return bootstrap_mean(np.array(list(self.values.values())), level, samples, seed)


def effectiveness(
    run: Mapping[str, Answer],
    judgments: Judgments,
    measures: Sequence[str] = MEASURES,
    threshold: int = 1,
) -> dict[str, Measured]:
    """Measure the answers to the judged queries; a query without an answer counts as 0.

    ``threshold`` is the least grade that P and R take for relevant. A query of which no judged
    document is relevant cannot be answered at all, and is left out.
    """
    ir_measures = _ir_measures()
    wanted = {name: _measure(name, threshold) for name in measures}
    scores = {query: _descending(answer) for query, answer in run.items()}
    found = ir_measures.iter_calc(list(wanted.values()), judgments, scores)
    values = {(each.measure, each.query_id): float(each.value) for each in found}
    return {
        name: Measured(
            name,
            {
                query: values[measure, query]
                for query in _answerable(judgments, measure.params.get("rel", 1))
            },
        )
        for name, measure in wanted.items()
    }


def pooled_recall(
    pools: Mapping[str, Collection[str]], judgments: Judgments, threshold: int = 1
) -> Measured:
    """The share of the relevant documents that the pool of each query holds.

    A pool of N answers of K documents may hold N times as many as one answer: compare it with
    :func:`sottovoce.evaluation.depth_matched`, not only with the original query at depth K.
    """
    values = {}
    for query, relevant in _answerable(judgments, threshold).items():
        values[query] = len(relevant.intersection(pools.get(query, ()))) / len(relevant)
    return Measured("pooled recall", values)


def _answerable(judgments: Judgments, threshold: int) -> dict[str, set[str]]:
    """The relevant documents of each query that has some."""
    if threshold < 1:
        raise UsageError(f"grade 0 is not relevant: the threshold is at least 1, got {threshold}")
    relevant = {
        query: {document for document, grade in grades.items() if grade >= threshold}
        for query, grades in judgments.items()
    }
    return {query: documents for query, documents in relevant.items() if documents}


def _descending(answer: Answer) -> dict[str, float]:
    """Scores that fall from place to place: trec_eval would order ties by document id."""
    order: Sequence[str]
    if isinstance(answer, Mapping):
        order = sorted(answer, key=lambda document: -answer[document])
    else:
        order = list(dict.fromkeys(answer))
    return {document: float(-place) for place, document in enumerate(order)}


def _measure(name: str, threshold: int) -> Measure:
    try:
        measure: Measure = _ir_measures().parse_measure(name)
    except (NameError, ValueError):
        raise UsageError(
            f"no measure '{name}': write one as ir_measures does, such as {', '.join(MEASURES)}"
        ) from None
    takes_threshold = "rel" in measure.SUPPORTED_PARAMS and "rel" not in measure.params
    return measure(rel=threshold) if takes_threshold else measure


def cutoff(measure: str) -> int | None:
    """How many documents a measure looks at; None: all."""
    found = _measure(measure, 1).params.get("cutoff")
    return None if found is None else int(found)


def _ir_measures() -> Any:
    return need("ir_measures", "evaluation", "measuring effectiveness needs an extra")
