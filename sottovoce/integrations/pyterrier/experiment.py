"""One table: how good the answers are, what they cost, and what the strongest attack gets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sottovoce.encoders import Encoder
from sottovoce.errors import UsageError
from sottovoce.integrations.pyterrier.obfuscating import Obfuscate
from sottovoce.integrations.pyterrier.package import pd, pt
from sottovoce.privacy import Headline, QueryLog, Released, attack
from sottovoce.privacy.attacks.headline import strongest
from sottovoce.randomness import Randomness

IN_CLEAR = Headline(
    "queries", "reading", 1, 1.0, 1.0, 1.0, "what is sent, which is the query itself"
)
"""What is known of a system that sends the query: nobody has to attack it."""


def private_experiment(
    systems: Mapping[str, pt.Transformer],
    topics: pd.DataFrame,
    qrels: pd.DataFrame,
    eval_metrics: Sequence[Any],
    *,
    log: Sequence[str] | None = None,
    encoders: Sequence[Encoder] = (),
    rng: Randomness = None,
    **options: Any,
) -> pd.DataFrame:
    """The table of ``pt.Experiment`` with what each system gave away.

    spent
        The most that one query cost: nats per unit of distance (per word for notion ``local``);
        ``inf``: nothing bounds it.
    risk, risk_low, risk_high, risk_of
        What the strongest of the attacks tried got on the very releases of this experiment, with
        its 95 % interval; of the words, the queries, or the sets (``groups``).
    attack, attacker_knows
        Which attack that was, and what its attacker knows.

    systems
        Pipelines by name. One without an :class:`Obfuscate` sends the query itself.
    log
        The attacker's query log; the queries of the topics are put beside it. Without one, only
        attacks on single words are tried.
    encoders
        What query inference compares with: see :func:`sottovoce.privacy.attacker_encoders`.
    rng
        A seed for the attacks.
    options
        Those of ``pt.Experiment``.
    """
    inside = {name: list(dict.fromkeys(obfuscates(system))) for name, system in systems.items()}
    every = [obfuscate for group in inside.values() for obfuscate in group]
    if len(set(map(id, every))) < len(every):
        raise UsageError("give each system an Obfuscate of its own: releases are told apart by it")
    for obfuscate in every:
        obfuscate.forget()
    table = pt.Experiment(dict(systems), topics, qrels, list(eval_metrics), **options)
    if not isinstance(table, pd.DataFrame) or list(table.get("name", ())) != list(systems):
        raise UsageError("a table of means is needed: leave perquery, dataframe and highlight out")
    known = None if log is None else QueryLog([*log])
    columns = [_columns(group, known, encoders, rng) for group in inside.values()]
    return table.assign(**{name: [row[name] for row in columns] for name in columns[0]})


def obfuscates(system: pt.Transformer) -> Iterator[Obfuscate]:
    """The Obfuscates inside a pipeline."""
    if isinstance(system, Obfuscate):
        yield system
        return
    parts = pt.inspect.subtransformers(system)
    for part in parts.values():
        for transformer in part if isinstance(part, list) else [part]:
            yield from obfuscates(transformer)


def _columns(
    group: Sequence[Obfuscate], log: QueryLog | None, encoders: Sequence[Encoder], rng: Randomness
) -> dict[str, Any]:
    """The columns of privacy for one system."""
    spent, headline = math.inf, IN_CLEAR
    if group:
        spent = max(map(_spent, group))
        headline = _strongest_attack(group, log, encoders, rng)
    return {
        "spent": spent,
        "risk": headline.share,
        "risk_low": headline.low,
        "risk_high": headline.high,
        "risk_of": headline.what,
        "attack": headline.attack,
        "attacker_knows": headline.knows,
    }


def _spent(obfuscate: Obfuscate) -> float:
    spent = [query.release.spent for query in obfuscate.kept.all()]
    return math.inf if None in spent else max((cost for cost in spent if cost), default=0.0)


def _strongest_attack(
    group: Sequence[Obfuscate], log: QueryLog | None, encoders: Sequence[Encoder], rng: Randomness
) -> Headline:
    reports = [
        attack(
            [
                Released(str(number), query.release.result.text, query.release.result.variants)
                for number, query in enumerate(obfuscate.kept.all())
            ],
            mechanism=obfuscate.obfuscator.mechanism,
            release=obfuscate.obfuscator.release,
            pipeline=obfuscate.obfuscator.pipeline,
            log=log,
            encoders=encoders,
            add_originals=True,
            counts=(obfuscate.obfuscator.n,),
            rng=rng,
        )
        for obfuscate in group
    ]
    best = strongest(
        headline
        for report in reports
        for headline in (report.words, report.queries, report.groups)
        if headline is not None
    )
    if best is None:
        raise UsageError("no attack here applies to this mechanism: give a log, and encoders")
    return best
