"""What attackers get back, what it is traded for, and QuIPU scores, which weigh both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from sottovoce.experiments.estimates import Strongest, quipu_scores, strongest
from sottovoce.experiments.measures import INFERENCE, STRONGEST, Measure, MeasureKind
from sottovoce.experiments.naming import last_part, slug
from sottovoce.experiments.report.table import (
    MEAN_INTERVALS,
    NO_EPSILON,
    SHARE_INTERVALS,
    Cell,
    Number,
    Row,
    RowNames,
    Table,
    interval_kind,
    numbers,
    place_name,
    shown_epsilon,
    sized,
    sizes,
    with_best,
)
from sottovoce.experiments.results import Place, Results, Setting, curves
from sottovoce.experiments.tables import NO_PRIVACY
from sottovoce.privacy.quipu_score import MEANING, Flag, QuipuScore

ATTACKERS: dict[MeasureKind, str] = {
    "lazy": "lazy: first guess",
    "active": "active: first ten",
    "motivated": "motivated: 1 / rank",
}
RECOVERED: dict[MeasureKind, str] = {
    "words": "words",
    "content": "content words",
    "query": "whole queries",
}
NO_PROOF = "These are the attacks that were run: a better one may get more."
FLAG_LETTERS: dict[Flag, str] = {
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


# The best trades


def front(risk: Mapping[Setting, float], utility: Mapping[Setting, float]) -> list[Setting]:
    """The Pareto front, the least risk first: no other setting is at least as good in both.

    Of settings that are equal in both, all are on it or none.
    """
    unbeaten: list[Setting] = []
    both = (setting for setting in utility if setting in risk)
    for setting in sorted(both, key=lambda setting: (risk[setting], -utility[setting])):
        last = unbeaten[-1] if unbeaten else None
        if (
            last is None
            or utility[setting] > utility[last]
            or (risk[setting], utility[setting]) == (risk[last], utility[last])
        ):
            unbeaten.append(setting)
    return unbeaten


def best_trades(results: Results, place: Place) -> Table | None:
    """The front of a place; None where there is no risk or no utility."""
    measure = results.main_measure(place)
    if measure is None:
        return None
    attacks = strongest(results, place.collection)
    risk = _attack_numbers(results, place.collection, attacks)
    grid = results.grid(measure, place)
    utility = numbers(grid, measure)
    trades = front(
        {setting: number.value for setting, number in risk.items()},
        {setting: number.value for setting, number in utility.items()},
    )
    if not trades:
        return None
    attackers = dict.fromkeys(attacks[setting].attack for setting in trades)
    grids = [grid, *(results.grid(attack, Place(place.collection)) for attack in attackers)]
    baseline = results.grid(measure, place, NO_PRIVACY)
    names = RowNames(utility)
    rows: list[tuple[Cell, ...]] = [
        (*names.of(setting), shown_epsilon(setting.epsilon), risk[setting], utility[setting])
        for setting in trades
    ]
    for itself in numbers(baseline, measure).values():
        all_known = Number(1.0, by="the query is sent")
        rows.append((*names.labelled(NO_PRIVACY), NO_EPSILON, all_known, itself))
    return Table(
        name=slug("trades", *place),
        title=f"The best trades, {place_name(place)}",
        caption=f"{len(trades)} of {len(utility)} settings: no other one has both no more risk and "
        f"no less {measure.label}. Risk: the share of words that the strongest attack gets back. "
        f"{sized(*grids)}{names.shared}; {MEAN_INTERVALS}, lazy: {SHARE_INTERVALS}.",
        columns=(*names.columns, "ε", "risk", measure.label),
        rows=tuple(rows),
        notes=(
            "Means decide who is here: with overlapping intervals another sample of queries may "
            "choose others.",
            *_knowledge(results, attackers),
        ),
    )


# Attacks, by epsilon: the strongest first, then each


def risk_tables(results: Results, collection: str) -> Iterator[Table]:
    """The strongest attack; query inference by encoder; words and queries recovered by attack."""
    if attacks := strongest(results, collection):
        yield _strongest(results, collection, attacks)
    inference = results.measures(Place(collection), *INFERENCE)
    for attacker in dict.fromkeys(measure.detail for measure in inference):
        yield _listed(
            results,
            collection,
            {
                measure: ATTACKERS[measure.kind]
                for measure in inference
                if measure.detail == attacker
            },
            name=slug("query-inference", attacker, collection),
            title=f"Query inference, {attacker}, {last_part(collection)}",
            caption="The attacker ranks a query log, which holds the original too: how often the "
            "original is first or among the first ten, and the mean of one over its rank",
            head="attacker",
            intervals=f"{SHARE_INTERVALS} (motivated: {MEAN_INTERVALS})",
        )
    for kind, what in RECOVERED.items():
        recovered = results.measures(Place(collection), kind)
        if recovered:
            yield _listed(
                results,
                collection,
                {measure: measure.detail for measure in recovered},
                name=slug("recovered", kind, collection),
                title=f"{what.capitalize()} recovered, {last_part(collection)}",
                caption=f"Share of the {what} that attacks on the mechanism get back",
                head="attack",
                intervals=interval_kind(recovered[0]),
            )


def _knowledge(results: Results, attacks: Iterable[Measure]) -> list[str]:
    """What each attacker knew: no risk is shown without it."""
    names = dict.fromkeys(measure.detail for measure in attacks)
    return [f"{name}: the attacker knows {results.knowledge(name)}." for name in names]


def _attack_numbers(
    results: Results, collection: str, attacks: Mapping[Setting, Strongest]
) -> dict[Setting, Number]:
    """The strongest attack on each setting, with the interval of its measure, and its name."""
    by_attack = {
        attack: numbers(results.grid(attack, Place(collection)), attack)
        for attack in {strongest.attack for strongest in attacks.values()}
    }
    return {
        setting: replace(by_attack[strongest.attack][setting], by=strongest.attack.label)
        for setting, strongest in attacks.items()
    }


def _strongest(results: Results, collection: str, attacks: Mapping[Setting, Strongest]) -> Table:
    names = RowNames(attacks)
    risk = _attack_numbers(results, collection, attacks)
    attackers = dict.fromkeys(strongest.attack for strongest in attacks.values())
    grids = [results.grid(attack, Place(collection)) for attack in attackers]
    return Table.over_epsilon(
        names.columns,
        names.rows(risk),
        name=slug("strongest-attack", collection),
        title=f"The strongest attack, {last_part(collection)}",
        caption="Share of the words that the strongest attack gets back, and which it is: a query "
        "that query inference names at the first guess counts as all its words. "
        f"{sized(*grids)}{names.shared}; words: {MEAN_INTERVALS}, lazy: {SHARE_INTERVALS}.",
        notes=(
            NO_PROOF,
            "The strongest is chosen by the same means that are shown, which errs on the side of "
            "the attacker.",
            *_knowledge(results, attackers),
        ),
    )


def _listed(
    results: Results,
    collection: str,
    labels: dict[Measure, str],
    *,
    name: str,
    title: str,
    caption: str,
    head: str,
    intervals: str,
) -> Table:
    """Rows of several measures together, mechanism by mechanism."""
    grids = {measure: results.grid(measure, Place(collection)) for measure in labels}
    means = {measure: numbers(grid, measure) for measure, grid in grids.items()}
    settings = list(dict.fromkeys(setting for grid in grids.values() for setting in grid.settings))
    names = RowNames(settings)

    def rows() -> Iterator[Row]:
        for curve, points in curves(settings).items():
            for measure, label in labels.items():
                cells = {
                    setting.epsilon: means[measure][setting]
                    for setting in points
                    if setting in means[measure]
                }
                if cells:
                    yield (*names.of(curve), label), cells

    return Table.over_epsilon(
        (*names.columns, head),
        rows(),
        name=name,
        title=title,
        caption=f"{caption}. {sized(*grids.values())}{names.shared}; {intervals}.",
        notes=(NO_PROOF, *_knowledge(results, labels)),
    )


# QuIPU scores: a curve for each mechanism, release and n


def quipu_tables(results: Results, place: Place) -> Iterator[Table]:
    """The scores of a place's curves against each risk (QuIPU Table 2), and the anchored ones."""
    utility = results.main_measure(place)
    if utility is None or not _is_bounded(results, place, utility):
        return
    scores: dict[str, dict[Setting, QuipuScore]] = {}
    for risk in (*results.measures(Place(place.collection), *INFERENCE), STRONGEST):
        if by_curve := quipu_scores(results, place, risk, utility):
            scores[risk.label] = by_curve
    scored_curves = list(dict.fromkeys(curve for by_curve in scores.values() for curve in by_curve))
    if not scored_curves:
        return
    names = RowNames(scored_curves)
    attackers = [Measure.read(label) for label in scores if label != STRONGEST.label]
    if STRONGEST.label in scores:
        by_setting = strongest(results, place.collection)
        attackers += [attack.attack for attack in by_setting.values()]
    knowledge = _knowledge(results, attackers)
    all_scores = [score for by_curve in scores.values() for score in by_curve.values()]
    seeds = results.grid(utility, place).seeds
    size = sizes((score.queries or 0 for score in all_scores), seeds)
    flags = {flag for score in all_scores for flag in score.flags}
    for anchored in (False, True):
        columns = {
            risk: with_best({curve: _score(score, anchored) for curve, score in by_curve.items()})
            for risk, by_curve in scores.items()
        }
        yield Table(
            name=slug("quipu-anchored" if anchored else "quipu", *place),
            title=f"{'Anchored QuIPU' if anchored else 'QuIPU'} score, {place_name(place)}",
            caption=f"Utility {utility.label} against each risk, over epsilon: above 0 the person "
            f"gains more than the attacker. {ANCHORED if anchored else PLAIN} {size}{names.shared};"
            f" {MEAN_INTERVALS}. Bold: the greatest.",
            columns=(*names.columns, "epsilons", *columns),
            rows=tuple(
                (
                    *names.of(curve),
                    max(s[curve].points for s in scores.values() if curve in s),
                    *(column.get(curve) for column in columns.values()),
                )
                for curve in scored_curves
            ),
            notes=(
                *(
                    f"{FLAG_LETTERS[flag]} {flag}: {MEANING[flag]}."
                    for flag in MEANING
                    if flag in flags and not anchored
                ),
                *knowledge,
            ),
        )


def _is_bounded(results: Results, place: Place, utility: Measure) -> bool:
    """Whether the score takes this measure: it lies between 0 and 1 without privacy."""
    values = results.grid(utility, place, NO_PRIVACY).values
    return bool(values.size and values.min() >= 0 and values.max() <= 1)


def _score(score: QuipuScore, anchored: bool) -> Number:
    if anchored:
        value = np.nan if score.anchored is None else score.anchored
        return Number(float(value), score.anchored_interval)
    marks = "".join(FLAG_LETTERS[flag] for flag in score.flags)
    return Number(score.value, score.interval, marks=marks)
