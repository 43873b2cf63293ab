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
        Pipelines by name. One that does not begin with an :class:`Obfuscate` sends the query.
    log
        The attacker's query log; the queries of the topics are put beside it. Without one, only
        attacks on single words are tried.
    encoders
        What query inference compares with, besides words: see
        :func:`sottovoce.privacy.attacker_encoders`.
    rng
        A seed for the attacks.
    options
        Those of ``pt.Experiment``.
    """
    first = [first_step(system) for system in systems.values()]
    private = [obfuscate for obfuscate in first if obfuscate is not None]
    if len(set(map(id, private))) < len(private):
        raise UsageError("give each system an Obfuscate of its own: releases are told apart by it")
    for obfuscate in private:
        obfuscate.forget()
    table = pt.Experiment(dict(systems), topics, qrels, list(eval_metrics), **options)
    if not isinstance(table, pd.DataFrame) or list(table.get("name", ())) != list(systems):
        raise UsageError("a table of means is needed: leave perquery, dataframe and highlight out")
    known = None if log is None else QueryLog([*log])
    columns = [_columns(obfuscate, known, encoders, rng) for obfuscate in first]
    return table.assign(**{name: [row[name] for row in columns] for name in columns[0]})


def first_step(system: pt.Transformer) -> Obfuscate | None:
    """The Obfuscate that a private pipeline begins with; None if it sends the query itself.

    Refuses one that stands anywhere else: what comes before it, or beside it, gets the query.
    """
    step = system[0] if isinstance(system, pt.Compose) else system
    if isinstance(step, Obfuscate):
        return step
    if any(isinstance(part, Obfuscate) for part in _parts(system)):
        raise UsageError(
            "a private pipeline begins with its Obfuscate: whatever stands before it, or beside "
            "it, gets the query itself"
        )
    return None


def _parts(system: pt.Transformer) -> Iterator[pt.Transformer]:
    """A transformer, and all that are inside it."""
    yield system
    for inside in pt.inspect.subtransformers(system).values():
        for part in inside if isinstance(inside, list) else [inside]:
            yield from _parts(part)


def _columns(
    obfuscate: Obfuscate | None,
    log: QueryLog | None,
    encoders: Sequence[Encoder],
    rng: Randomness,
) -> dict[str, Any]:
    """The columns of privacy for one system."""
    spent, headline = math.inf, IN_CLEAR
    if obfuscate is not None:
        spent = _spent(obfuscate)
        headline = _strongest_attack(obfuscate, log, encoders, rng)
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
    obfuscate: Obfuscate, log: QueryLog | None, encoders: Sequence[Encoder], rng: Randomness
) -> Headline:
    """The most that any attack got on what was released."""
    results = [query.release.result for query in obfuscate.kept.all()]
    report = attack(
        [Released(str(i), result.text, result.variants) for i, result in enumerate(results)],
        mechanism=obfuscate.obfuscator.mechanism,
        release=obfuscate.obfuscator.release,
        pipeline=obfuscate.obfuscator.pipeline,
        log=log,
        encoders=encoders,
        add_originals=True,
        counts=(obfuscate.obfuscator.n,),
        rng=rng,
    )
    headlines = (report.words, report.queries, report.groups)
    best = strongest(headline for headline in headlines if headline is not None)
    if best is None:
        raise UsageError("no attack here applies to this mechanism: give a log")
    return best
