"""QuIPU scores of an experiment: a curve for each mechanism, release and n."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sottovoce.experiments.report.naming import RowNames, last_part, slug
from sottovoce.experiments.report.places import MAIN_MEASURE, Place, main_measure, sizes
from sottovoce.experiments.report.risk_tables import ATTACKERS
from sottovoce.experiments.report.spread import BOOTSTRAP_SAID
from sottovoce.experiments.report.strongest import STRONGEST, measures_like, strongest
from sottovoce.experiments.report.table import Number, Table, with_best
from sottovoce.experiments.results import Results, Setting, curves
from sottovoce.experiments.tables import NO_PRIVACY
from sottovoce.privacy import QuipuScore, quipu
from sottovoce.privacy.quipu_score import MEANING, Flag

LETTERS: dict[Flag, str] = {
    "degenerate": "d",
    "stable": "s",
    "backtracks": "b",
    "outside": "o",
    "clipped": "c",
}
PLAIN = "The score depends on how far epsilon was varied."
ANCHORED = (
    "All curves begin at nothing said and nothing found, and end at the query itself: risk 1, and "
    "the utility without privacy."
)


def quipu_scores(
    results: Results,
    *,
    collection: str,
    engine: str,
    reranker: str,
    risk: str,
    utility: str = MAIN_MEASURE,
) -> dict[Setting, QuipuScore]:
    """The score of each curve that has at least two epsilons, by its ``Setting.curve``.

    risk
        A measure, as ``motivated[light]`` or ``words[mode]``; or ``strongest``: at each epsilon the
        attack that gets most there.

    Over queries that have both values at every epsilon; the anchored score ends at the utility of
    those queries without privacy.
    """
    where = {"collection": collection, "engine": engine, "reranker": reranker}
    utilities = results.values(utility, **where)
    risks = risks_by_query(results, collection, risk)
    itself = next(iter(results.values(utility, **where, system=NO_PRIVACY).values()), {})
    scores: dict[Setting, QuipuScore] = {}
    for curve, points in curves(each for each in utilities if each in risks).items():
        measured = [utilities[each] for each in points] + [risks[each] for each in points]
        queries = [each for each in measured[0] if all(each in values for values in measured)]
        if len(points) < 2 or not queries:
            continue
        best = [itself[each] for each in queries if each in itself]
        scores[curve] = quipu(
            [[risks[point][query] for query in queries] for point in points],
            [[utilities[point][query] for query in queries] for point in points],
            best=best if len(best) == len(queries) else None,
        )
    return scores


def risks_by_query(results: Results, collection: str, risk: str) -> dict[Setting, dict[str, float]]:
    """A risk by setting and query; ``strongest`` takes the strongest attack on each setting."""
    if risk == STRONGEST:
        return {each: found.by_query for each, found in strongest(results, collection).items()}
    return results.values(risk, collection=collection)


def quipu_tables(results: Results, place: Place) -> Iterator[Table]:
    """The scores of a place's curves against each risk (QuIPU Table 2), and the anchored ones."""
    utility = main_measure(results, place)
    risks = measures_like(results, place.collection, *(f"{each}[" for each in ATTACKERS))
    if utility is None or not bounded(results, place, utility):
        return
    every = [*risks, STRONGEST]
    scores = {
        risk: quipu_scores(results, **place._asdict(), risk=risk, utility=utility) for risk in every
    }
    scores = {risk: found for risk, found in scores.items() if found}
    curves_ = list(dict.fromkeys(curve for found in scores.values() for curve in found))
    if not curves_:
        return
    names = RowNames(curves_)
    seeds = results.grid(utility, **place._asdict()).seeds
    size = sizes((each.queries or 0 for found in scores.values() for each in found.values()), seeds)
    flags = {flag for found in scores.values() for each in found.values() for flag in each.flags}
    explained = tuple(
        f"{LETTERS[flag]} {flag}: {MEANING[flag]}." for flag in MEANING if flag in flags
    )
    where = f"{last_part(place.collection)}, {place.engine}, re-ranked by {place.reranker}"
    for anchored in (False, True):
        columns = {
            risk: with_best({curve: _number(score, anchored) for curve, score in found.items()})
            for risk, found in scores.items()
        }
        yield Table(
            name=slug("quipu-anchored" if anchored else "quipu", *place),
            title=f"{'Anchored QuIPU' if anchored else 'QuIPU'} score, {where}",
            caption=f"Utility {utility} against each risk, over epsilon: above 0 the person gains "
            f"more than the attacker. {ANCHORED if anchored else PLAIN} {size}{names.shared}; "
            f"{BOOTSTRAP_SAID}. Bold: the greatest.",
            columns=(*names.columns, "epsilons", *columns),
            rows=tuple(
                (
                    *names.of(curve),
                    max(found[curve].points for found in scores.values() if curve in found),
                    *(column.get(curve) for column in columns.values()),
                )
                for curve in curves_
            ),
            notes=() if anchored else explained,
        )


def bounded(results: Results, place: Place, utility: str) -> bool:
    """Whether the score takes this measure: it lies between 0 and 1 without privacy."""
    values = results.grid(utility, **place._asdict(), system=NO_PRIVACY).values
    return bool(values.size and values.min() >= 0 and values.max() <= 1)


def _number(score: QuipuScore, anchored: bool) -> Number:
    if anchored:
        value = np.nan if score.anchored is None else score.anchored
        return Number(float(value), score.anchored_interval)
    return Number(score.value, score.interval, marks="".join(LETTERS[each] for each in score.flags))
