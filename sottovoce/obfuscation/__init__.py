"""Texts in, variants of each out: batches, release strategies, and what was done to each word."""

from sottovoce.obfuscation.chorus import Chorus
from sottovoce.obfuscation.obfuscator import SEEDED, Obfuscator, obfuscate, release_for
from sottovoce.obfuscation.result import Obfuscation
from sottovoce.obfuscation.words import WordRelease

__all__ = ["SEEDED", "Chorus", "Obfuscation", "Obfuscator", "WordRelease", "obfuscate"]
__all__ += ["release_for"]
