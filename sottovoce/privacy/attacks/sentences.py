"""Query inference by the noise of a mechanism that replaces whole texts by strings of a pool."""

from __future__ import annotations

from collections.abc import Sequence

from sottovoce.choices import Release
from sottovoce.mechanisms.base import PoolMechanism
from sottovoce.privacy.attacks.query_log import QueryLog
from sottovoce.privacy.attacks.ranked import Inference
from sottovoce.privacy.attacks.releases import Released
from sottovoce.types import Progress


def infer_sentences(
    releases: Sequence[Released],
    log: QueryLog,
    mechanism: PoolMechanism,
    release: Release,
    *,
    variants: int | None = None,
    add_originals: bool = False,
    progress: Progress | None = None,
) -> Inference:
    raise NotImplementedError
