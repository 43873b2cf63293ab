"""Mechanisms as people name them on the command line, with what they work on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sottovoce.errors import UsageError

if TYPE_CHECKING:
    from sottovoce.mechanisms import Mechanism


def build_mechanism(
    spec: str,
    parameters: dict[str, Any],
    space: str | None,
    output_vocabulary: str,
    corpus: Path | None,
    pool: str | None = None,
    encoder: str = "auto",
) -> Mechanism:
    """The mechanism asked for, with what it works on."""
    from sottovoce.cli.progress import progress_bar
    from sottovoce.mechanisms.build import build

    settings = {
        "space": space,
        "output_vocabulary": output_vocabulary,
        "corpus": corpus,
        "pool": pool,
        "encoder": encoder,
    }
    with progress_bar("reading the pool") as progress:
        return build(spec, parameters, settings, progress=progress)


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
