"""Presidio: an operator that puts what a mechanism draws in the place of what was found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sottovoce.errors import need
from sottovoce.obfuscation import Obfuscator
from sottovoce.sanitizing import Sanitizer
from sottovoce.sanitizing.linking import new_secret

need("presidio_anonymizer", "presidio", "the operator needs Presidio")

from presidio_anonymizer.entities import InvalidParamError, OperatorConfig  # noqa: E402
from presidio_anonymizer.operators import Operator, OperatorType  # noqa: E402

NAME = "sottovoce"
PARAMETER = "replace_with"
COLUMN = "entity"


class Replacing:
    """Replaces one entity after the other; what it was given, it does not keep."""

    def __init__(self, sanitizer: Sanitizer) -> None:
        self._sanitizer, self._entities = sanitizer, 0

    def __call__(self, text: str) -> str:
        """What is released instead of a text; raises if nothing can be."""
        (released,), _ = self._sanitizer.texts(COLUMN, [text], self._entities)
        self._entities += 1
        return released or ""

    def __repr__(self) -> str:
        return f"Replacing({self._sanitizer!r})"


class SottovoceOperator(Operator):
    """For ``AnonymizerEngine.add_anonymizer``; :func:`operator_config` says how to replace.

    An error ends the whole call of the engine: it never leaves the original where it was.
    """

    def operate(self, text: str, params: dict[str, Any] | None = None) -> str:
        """What is released instead of an entity."""
        self.validate(params)
        replaced: str = (params or {})[PARAMETER](text)
        return replaced

    def validate(self, params: dict[str, Any] | None = None) -> None:
        """Refuse parameters that :func:`operator_config` did not make."""
        if not isinstance((params or {}).get(PARAMETER), Replacing):
            raise InvalidParamError(
                "use operator_config(obfuscator) of sottovoce.integrations.presidio as the "
                "configuration of this operator"
            )

    def operator_name(self) -> str:
        """The name by which Presidio knows it."""
        return NAME

    def operator_type(self) -> OperatorType:
        """It anonymizes, and nothing undoes it."""
        return OperatorType.Anonymize


def operator_config(
    obfuscator: Obfuscator, *, consistent: bool = False, deny: Iterable[str] = ()
) -> OperatorConfig:
    """How entities are replaced; one for each kind of entity, or as ``DEFAULT`` for all.

    consistent
        The same word gets the same substitute wherever this very configuration is used: make one
        for each document. Weaker: which entities are equal then shows. The secret that decides
        is made for it, and in memory only.
    deny
        Words that are never released.
    """
    sanitizer = Sanitizer(
        obfuscator,
        columns=(COLUMN,),
        linkable=new_secret() if consistent else None,
        deny=frozenset(deny),
    )
    return OperatorConfig(NAME, {PARAMETER: Replacing(sanitizer)})
