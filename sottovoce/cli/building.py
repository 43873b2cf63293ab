"""Mechanisms as people name them on the command line, with what they work on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sottovoce.errors import UsageError

if TYPE_CHECKING:
    from sottovoce.mechanisms import Mechanism
    from sottovoce.spaces.space import WordSpace


NEEDED_BY = {
    "--space": "space",
    "--output-vocabulary": "space",
    "--corpus": "engine",
    "--pool": "pool",
    "--encoder": "pool",
}
"""The resource of a mechanism that an option is about."""


def build_mechanism(
    spec: str,
    settings: dict[str, Any],
    space: str | None,
    output_vocabulary: str,
    corpus: Path | None,
    pool: str | None = None,
    encoder: str = "auto",
) -> Mechanism:
    """The mechanism asked for, with what it works on."""
    from sottovoce.mechanisms import mechanism, parse

    kind, _ = parse(spec, **settings)
    given = {"--space": space, "--corpus": corpus, "--pool": pool}
    given |= {"--output-vocabulary": output_vocabulary if output_vocabulary != "all" else None}
    given |= {"--encoder": encoder if encoder != "auto" else None}
    for option, value in given.items():
        if value is not None and NEEDED_BY[option] not in kind.resources():
            raise UsageError(f"{option} does nothing with {kind.name}: leave it out")
    resources: dict[str, Any] = {}
    if "space" in kind.resources():
        resources["space"] = _space(space, output_vocabulary)
    if "engine" in kind.resources() and corpus is not None:
        from sottovoce.collections import read_corpus
        from sottovoce.engines.bm25 import BM25

        resources["engine"] = BM25(read_corpus(corpus))
    if "pool" in kind.resources() and pool is not None:
        from sottovoce.cli.progress import progress_bar
        from sottovoce.encoders.pool import load_pool

        with progress_bar("reading the pool") as progress:
            resources["pool"] = load_pool(pool, encoder, progress)
    return mechanism(spec, **resources, **settings)


def _space(name: str | None, output_vocabulary: str) -> WordSpace:
    from sottovoce.spaces.sources import resolve
    from sottovoce.spaces.vocabularies import choose_output

    space = resolve(name)
    if output_vocabulary == "all":
        return space
    return space.with_output(choose_output(space, output_vocabulary))


def parsed_settings(pairs: list[str] | None, epsilon: float | None) -> dict[str, Any]:
    """What ``--set`` and ``--epsilon`` say."""
    settings: dict[str, Any] = {}
    for pair in pairs or ():
        key, sign, value = pair.partition("=")
        if not sign:
            raise UsageError("--set takes key=value, as in --set t=0.5")
        settings[key.strip()] = value.strip()
    if epsilon is not None:
        settings["epsilon"] = epsilon
    return settings


def refuse_word_options(mechanism: Mechanism, given: dict[str, bool]) -> None:
    """Refuse options about words where texts are replaced as a whole: they would do nothing."""
    from sottovoce.mechanisms.base import PoolMechanism

    for option, used in given.items():
        if used and isinstance(mechanism, PoolMechanism):
            raise UsageError(
                f"{option} is about words, and {mechanism.name} replaces whole texts: leave it out"
            )
