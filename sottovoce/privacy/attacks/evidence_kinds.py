"""Which evidence there is: it follows from what a mechanism can do.

A law, boxes, noise around one point, or draws alone.
"""

from __future__ import annotations

from sottovoce.choices import Release
from sottovoce.errors import UsageError
from sottovoce.mechanisms.base import Mechanism, WordMechanism
from sottovoce.mechanisms.noise import NoiseMechanism
from sottovoce.mechanisms.sampling import BoxMechanism
from sottovoce.privacy.attacks.evidence import Evidence
from sottovoce.privacy.attacks.exact_laws import Boxes, ExactLaw
from sottovoce.privacy.attacks.one_point import OnePoint
from sottovoce.privacy.attacks.simulated_law import SimulatedLaw
from sottovoce.randomness import Randomness, as_generator
from sottovoce.types import Progress


def evidence_for(
    mechanism: WordMechanism,
    release: Release,
    *,
    rng: Randomness = None,
    progress: Progress | None = None,
) -> Evidence:
    """The strongest kind there is for this mechanism and release.

    rng
        For simulated draws; exact kinds draw nothing.
    """
    _require_words(mechanism)
    if release == "once":
        if not isinstance(mechanism, NoiseMechanism):
            raise UsageError(
                f"release 'once' reads words off one noisy point, but '{mechanism.name}' draws no "
                "noise: use release 'independent'"
            )
        return OnePoint.of(mechanism, rng=as_generator(rng))
    if release != "independent":
        raise UsageError("a release is 'independent' or 'once'")
    if isinstance(mechanism, BoxMechanism):
        return Boxes(mechanism, progress)
    if mechanism.has_law:
        return ExactLaw(mechanism, progress)
    return SimulatedLaw.of(mechanism, rng=as_generator(rng), progress=progress)


def _require_words(mechanism: Mechanism) -> None:
    """Refuse mechanisms that rewrite whole texts: nothing stands at a place of theirs."""
    if not isinstance(mechanism, WordMechanism):
        raise UsageError(
            f"'{mechanism.name}' rewrites whole texts, so there is no evidence about single words: "
            "attack it by searching a log of queries"
        )
