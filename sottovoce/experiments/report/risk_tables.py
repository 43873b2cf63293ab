"""What attackers get back, what it is traded for, and QuIPU scores, which weigh both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from sottovoce.experiments.estimates import (
    Strongest,
    not_attacked_as_sets,
    quipu_scores,
    shown_on_sets,
    strongest,
)
from sottovoce.experiments.measures import (
    CHANCE,
    INFERENCE,
    SENT,
    STRONGEST,
    Measure,
    MeasureKind,
)
from sottovoce.experiments.naming import last_part, slug
from sottovoce.experiments.report.table import (
    MEAN_INTERVALS,
    MOST_ROWS,
    NOTHING,
    SHARE_INTERVALS,
    UNRECORDED,
    Cell,
    Number,
    Row,
    RowNames,
    Table,
    interval_kind,
    numbers,
    place_name,
    point_column,
    setting_names,
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
ON_SETS: dict[MeasureKind, str] = {
    "lazy": "how often the first guess is right",
    "active": "how often one of the first ten guesses is right",
    "motivated": "the mean of one over the rank of the right one",
}
SETS_RISK = (
    "The risk of a set is how often an attacker names which of the queries that left stands for "
    "the one asked; chance: how often a blind guess does."
)
NO_PROOF = "These are the attacks that were run: a better one may get more."
NO_CHANCE = "How often a blind guess at a set is right was not recorded: run the experiment again."
SHOWN_ON_SETS = (
    "Of attacks on sets here are the strongest, and the one that knows nothing of what people ask, "
    "at the first guess."
)
FLAG_LETTERS: dict[Flag, str] = {
    "degenerate": "d",
    "stable": "s",
    "backtracks": "b",
    "outside": "o",
    "clipped": "c",
}
PLAIN = "The score depends on how far the curve's parameter was varied."
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
    names = RowNames(results, place.collection, utility)
    columns, rows = _both(results, place, names, trades, risk, utility)
    is_recorded = results.means(SENT, Place(place.collection)) or UNRECORDED in names.shared
    return Table(
        name=slug("trades", *place),
        title=f"The best trades, {place_name(place)}",
        caption=f"{len(trades)} of {len(utility)} settings: no other one has both no more risk and "
        f"no less {measure.label}. Risk: the share of words that the strongest attack gets back. "
        f"{sized(*grids)}{names.shared}; {MEAN_INTERVALS}, lazy: {SHARE_INTERVALS}.",
        columns=columns,
        rows=rows,
        notes=(
            *(() if is_recorded else (f"{UNRECORDED.capitalize()}.",)),
            *_on_sets(results, place.collection, risk),
            "Means decide who is here: with overlapping intervals another sample of queries may "
            "choose others.",
            *_knowledge(results, place.collection, attackers),
        ),
    )


def by_queries(results: Results, place: Place) -> Table | None:
    """Risk and utility of all settings, by how many queries they send; None where one is missing.

    What each costs an engine is the same where this number is.
    """
    measure = results.main_measure(place)
    sent = results.means(SENT, Place(place.collection))
    attacks = strongest(results, place.collection)
    if measure is None or not sent or not attacks:
        return None
    grid = results.grid(measure, place)
    risk, utility = _attack_numbers(results, place.collection, attacks), numbers(grid, measure)
    both = curves(setting for setting in utility if setting in risk and setting in sent)
    settings = [setting for points in both.values() for setting in points]
    settings.sort(key=lambda setting: round(sent[setting], 1))
    names = RowNames(results, place.collection, settings)
    attackers = dict.fromkeys(attacks[setting].attack for setting in settings)
    columns, rows = _both(results, place, names, settings, risk, utility)
    return Table(
        name=slug("by-queries", *place),
        title=f"By queries sent, {place_name(place)}",
        caption="Every setting, the fewest queries first: settings with as many cost an "
        "engine the same. The query itself comes last. Queries: how many different ones leave for "
        f"one that is asked, the mean. Risk: the strongest attack, as above. {sized(grid)}"
        f"{names.shared}; {MEAN_INTERVALS}, lazy: {SHARE_INTERVALS}.",
        columns=columns,
        rows=rows,
        notes=(
            NO_PROOF,
            *_on_sets(results, place.collection, risk),
            *_knowledge(results, place.collection, attackers),
        ),
        folded=len(rows) > MOST_ROWS,
    )


def _both(
    results: Results,
    place: Place,
    names: RowNames,
    settings: Sequence[Setting],
    risk: Mapping[Setting, Number],
    utility: Mapping[Setting, Number],
) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:
    """Columns, and rows of settings with risk and utility; the query itself comes last."""
    measure = results.main_measure(place)
    assert measure is not None  # noqa: S101 - asked before
    chance = results.means(CHANCE, Place(place.collection))
    head, points = point_column([setting.point for setting in settings])
    told = ("queries", "risk", *(("chance",) if chance else ()), measure.label)
    rows: list[tuple[Cell, ...]] = []
    for setting, point in zip(settings, points, strict=True):
        blind = (Number(chance[setting]) if setting in chance else None,) if chance else ()
        asked = (*names.asked(setting), point, names.queries(setting))
        rows.append((*asked, risk[setting], *blind, utility[setting]))
    for itself in numbers(results.grid(measure, place, NO_PRIVACY), measure).values():
        all_known = Number(1.0, by="the query is sent")
        unknown = ("",) * (len(names.heads) - 1)
        nothing = (None,) if chance else ()
        rows.append((NO_PRIVACY, *unknown, NOTHING, 1, all_known, *nothing, itself))
    return (*names.heads, head, *told), tuple(rows)


# Attacks, by epsilon: the strongest first, then each


def risk_tables(results: Results, collection: str) -> Iterator[Table]:
    """The strongest attack; query inference by encoder; words and queries recovered by attack."""
    if attacks := strongest(results, collection):
        yield _strongest(results, collection, attacks)
    inference = results.measures(Place(collection), *INFERENCE)
    on_sets = [measure for measure in inference if results.is_on_sets(measure.detail)]
    for kind, of in ON_SETS.items():
        if measures := [measure for measure in on_sets if measure.kind == kind]:
            yield _on_sets_listed(results, collection, kind, of, measures)
    on_logs = [measure for measure in inference if measure not in on_sets]
    for attacker in dict.fromkeys(measure.detail for measure in on_logs):
        yield _listed(
            results,
            collection,
            {measure: ATTACKERS[measure.kind] for measure in on_logs if measure.detail == attacker},
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


def _on_sets_listed(
    results: Results, collection: str, kind: MeasureKind, of: str, measures: Sequence[Measure]
) -> Table:
    """How often each attacker names what stands for the query among what left, and chance."""
    chance = {CHANCE: "a blind guess"} if kind == "lazy" else {}
    return _listed(
        results,
        collection,
        {measure: measure.detail for measure in measures} | chance,
        name=slug("sets", kind, collection),
        title=f"Sets, {ATTACKERS[kind]}, {last_part(collection)}",
        caption="The attacker sees the queries that leave for one, and says which of them stands "
        f"for it: {of}. What each attacker knows besides stands below",
        head="attack",
        intervals=interval_kind(measures[0]),
    )


def _on_sets(results: Results, collection: str, risk: Mapping[Setting, Number]) -> Iterator[str]:
    """What the risk of a set is and is compared with, and what was not tried on it."""
    yield from _unattacked(results, collection)
    on_sets = [setting for setting in risk if setting.axis.is_set]
    if not on_sets:
        return
    yield SETS_RISK
    chance = results.means(CHANCE, Place(collection))
    if not all(setting in chance for setting in on_sets):
        yield NO_CHANCE
    below = [setting for setting in on_sets if risk[setting].value < chance.get(setting, 0)]
    if below:
        names = ", ".join(setting_names(below).values())
        yield (
            f"The strongest attack on {names} got less than a blind guess would: "
            "that is chance, or an attacker on the wrong track, and no protection. The risk is at "
            "least that of a blind guess."
        )
    yield from _untried(results, collection)


def _unattacked(results: Results, collection: str) -> Iterator[str]:
    """What sends sets, and was not attacked as that."""
    if settings := not_attacked_as_sets(results, collection):
        names = ", ".join(dict.fromkeys(setting.mechanism for setting in settings))
        yield f"No attack on sets was run on {names}: the risk of its sets was not measured."


def _untried(results: Results, collection: str) -> Iterator[str]:
    """Which attacks on sets were not tried, and why: a sentence a reason."""
    for (mechanisms, why), attacks in results.untried_on_sets(collection).items():
        reason, _, remedy = why.partition(": ")
        why = reason if "--" in remedy else why  # Options of another command.
        yield f"Not tried on {', '.join(mechanisms)}: {', '.join(attacks)} ({why})."


def _knowledge(results: Results, collection: str, attacks: Iterable[Measure]) -> list[str]:
    """What each attacker knew: no risk is shown without it."""
    names = dict.fromkeys(measure.detail for measure in attacks if measure != CHANCE)
    return [f"{name}: the attacker knows {results.knowledge(name, collection)}." for name in names]


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
    names = RowNames(results, collection, attacks)
    risk = _attack_numbers(results, collection, attacks)
    attackers = dict.fromkeys(strongest.attack for strongest in attacks.values())
    grids = [results.grid(attack, Place(collection)) for attack in attackers]
    chance = results.means(CHANCE, Place(collection))
    blind = {setting: Number(value) for setting, value in chance.items() if setting in risk}
    return Table.over_points(
        names.columns,
        [
            *names.rows(risk),
            *(
                (names.blind(curve), {point.point: blind[point] for point in points})
                for curve, points in curves(blind).items()
            ),
        ],
        name=slug("strongest-attack", collection),
        title=f"The strongest attack, {last_part(collection)}",
        caption="Share of the words that the strongest attack gets back, and which it is: a query "
        "that query inference names at the first guess counts as all its words. "
        f"{sized(*grids)}{names.shared}; words: {MEAN_INTERVALS}, lazy: {SHARE_INTERVALS}.",
        notes=(
            NO_PROOF,
            *_on_sets(results, collection, risk),
            "The strongest is chosen by the same means that are shown, which errs on the side of "
            "the attacker.",
            *_knowledge(results, collection, attackers),
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
    names = RowNames(results, collection, settings)

    def rows() -> Iterator[Row]:
        for curve, points in curves(settings).items():
            for measure, label in labels.items():
                cells = {
                    setting.point: means[measure][setting]
                    for setting in points
                    if setting in means[measure]
                }
                if cells:
                    yield (*names.of(curve), label), cells

    return Table.over_points(
        (*names.columns, head),
        rows(),
        name=name,
        title=title,
        caption=f"{caption}. {sized(*grids.values())}{names.shared}; {intervals}.",
        notes=(
            NO_PROOF,
            *_unattacked(results, collection),
            *_knowledge(results, collection, labels),
        ),
    )


# QuIPU scores: a curve for each mechanism, release and n


def quipu_tables(results: Results, place: Place) -> Iterator[Table]:
    """The scores of a place's curves against each risk (QuIPU Table 2), and the anchored ones."""
    utility = results.main_measure(place)
    if utility is None or not _is_bounded(results, place, utility):
        return
    scores: dict[str, dict[Setting, QuipuScore]] = {}
    inference = results.measures(Place(place.collection), *INFERENCE)
    on_logs = [measure for measure in inference if not results.is_on_sets(measure.detail)]
    on_sets = shown_on_sets(results, place.collection)
    for risk in (*on_logs, *on_sets, STRONGEST):
        if by_curve := quipu_scores(results, place, risk, utility):
            scores[risk.label] = by_curve
    scored_curves = list(dict.fromkeys(curve for by_curve in scores.values() for curve in by_curve))
    if not scored_curves:
        return
    names = RowNames(results, place.collection, scored_curves)
    attackers = [Measure.read(label) for label in scores if label != STRONGEST.label]
    if STRONGEST.label in scores:
        by_setting = strongest(results, place.collection)
        attackers += [attack.attack for attack in by_setting.values()]
    knowledge = _knowledge(results, place.collection, attackers)
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
            caption=f"Utility {utility.label} against each risk, along a curve: above 0 the person "
            f"gains more than the attacker. {ANCHORED if anchored else PLAIN} "
            f"{f'{SHOWN_ON_SETS} ' if on_sets else ''}{size}{names.shared}; {MEAN_INTERVALS}. "
            "Bold: the greatest.",
            columns=(*names.columns, "points", *columns),
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
