"""Identifiers by Presidio's analyzer, which also finds names of people and places."""

from __future__ import annotations

import re
from typing import Any

from sottovoce.errors import SottovoceError, need
from sottovoce.prompts.identifiers import Identifier

WHY = "names of people and places are found by presidio-analyzer and a spaCy model"
NO_MODEL = (
    "Presidio cannot be started ({kind}): it needs the spaCy model '{model}' on this machine. "
    "Install one (python -m spacy download en_core_web_md, or a package that carries it), and name "
    "it or its folder"
)
KIND = re.compile(r"[A-Z][A-Z0-9_]{0,29}")


class Presidio:
    """What Presidio finds in a text, with at least this score.

    model
        A spaCy model that is installed, or its folder. It is never fetched.
    analyzer
        An analyzer that is set up already, instead.
    """

    name = "presidio"

    def __init__(
        self,
        model: str = "en_core_web_md",
        language: str = "en",
        least_score: float = 0.3,
        analyzer: Any = None,
    ) -> None:
        self.language, self.least_score = language, least_score
        self._analyzer = _analyzer(model, language) if analyzer is None else analyzer

    def __repr__(self) -> str:
        return f"Presidio({self.language})"

    def find(self, text: str) -> list[Identifier]:
        """All that the analyzer reports; an analyzer that fails is an error without the text."""
        try:
            results = self._analyzer.analyze(
                text=text, language=self.language, score_threshold=self.least_score
            )
        except Exception as error:
            raise SottovoceError(
                f"Presidio failed ({type(error).__name__}); nothing was sent"
            ) from None
        return [
            Identifier(result.start, result.end, _kind(result.entity_type))
            for result in results
            if result.start < result.end
        ]


def _kind(entity: str) -> str:
    """The kind as it may stand in a placeholder."""
    simple = re.sub(r"[^A-Z0-9_]", "_", str(entity).upper())
    return simple if KIND.fullmatch(simple) else "IDENTIFIER"


def _analyzer(model: str, language: str) -> Any:
    presidio = need("presidio_analyzer", "presidio", WHY)
    spacy = need("spacy", "presidio", WHY)
    providing = need("presidio_analyzer.nlp_engine", "presidio", WHY)
    try:
        spacy.load(model)  # First: Presidio would fetch what is not there.
        engine = providing.NlpEngineProvider(
            nlp_configuration={
                "nlp_engine_name": "spacy",
                "models": [{"lang_code": language, "model_name": model}],
            }
        ).create_engine()
        return presidio.AnalyzerEngine(nlp_engine=engine, supported_languages=[language])
    except Exception as error:
        kind = type(error).__name__
        raise SottovoceError(NO_MODEL.format(kind=kind, model=model)) from None
