"""Whose releases a text model learnt from: the membership audit, of clean text or a mechanism."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from sottovoce.experiments.grid import Audit
from sottovoce.experiments.measures import (
    ACCURACY,
    AUC,
    AUDITORS,
    EITHER_WAY,
    FOUND,
    PRECISION,
    RECALL,
)
from sottovoce.experiments.naming import log_name
from sottovoce.experiments.resource_cache import ResourceCache, pipeline
from sottovoce.experiments.schema.experiment import Membership
from sottovoce.experiments.store import CellResult
from sottovoce.experiments.tables import make_table
from sottovoce.privacy.attacks.query_log import read_log
from sottovoce.privacy.membership_audit import (
    Outcome,
    UserLog,
    deal_out,
    membership,
    read_user_log,
)
from sottovoce.privacy.membership_audit.outcomes import Interval


def audit(job: Audit, cache: ResourceCache) -> CellResult:
    """Every figure of the auditors who know the mechanism, or learnt from clean text."""
    asked, mechanisms, cut = job.membership, [], None
    if job.spec is not None:
        chosen = cache.mechanism(job.spec, job.epsilon, job.texts, asked.collection)
        mechanisms, cut = [chosen], pipeline(job.texts, chosen)
    report = membership(
        _users(asked, job.seed),
        mechanisms,
        members=asked.members,
        shadows=asked.shadows,
        repeats=asked.repeats,
        min_queries=asked.min_queries,
        max_queries=asked.max_queries,
        pipeline=cut,
        rng=job.seed,
    )
    # Clean text comes first in every report; it has a cell of its own.
    outcomes = report.outcomes[1:] if mechanisms else report.outcomes
    setting = (log_name(asked.log), job.mechanism, job.epsilon, job.seed)
    rows = [
        (*setting, AUDITORS[outcome.setting.shadows], measure, value, *interval)
        for outcome in outcomes
        for measure, value, interval in _figures(outcome)
    ]
    facts = {"remarks": list(report.remarks)} if report.remarks else {}
    return CellResult("audits", make_table("audits", rows), facts=facts)


def _figures(outcome: Outcome) -> Iterator[tuple[str, float, Interval]]:
    yield EITHER_WAY, outcome.risk, outcome.risk_interval
    yield AUC, outcome.auc, outcome.auc_interval
    yield PRECISION, outcome.precision, outcome.precision_interval
    yield RECALL, outcome.recall, outcome.recall_interval
    yield ACCURACY, outcome.accuracy, outcome.accuracy_interval
    yield FOUND, outcome.tpr, outcome.tpr_interval


@lru_cache(1)
def _users(asked: Membership, seed: int) -> UserLog:
    if asked.made_up_users is None:
        return read_user_log(asked.log)
    return deal_out(read_log(asked.log), asked.made_up_users, asked.queries_each, seed)
