"""Attacks that know the mechanism: which words can be read off a release, position by position."""

from sottovoce.privacy.attacks.priors import by_rank, counted
from sottovoce.privacy.attacks.recovery import Guessed, Recovery, strongest
from sottovoce.privacy.attacks.run import ATTACKS, reconstruct

__all__ = ["ATTACKS", "Guessed", "Recovery", "by_rank", "counted", "reconstruct", "strongest"]
