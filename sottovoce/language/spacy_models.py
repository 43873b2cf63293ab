"""Tags by a spaCy model that the user has installed: slower, and right a little more often."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from sottovoce.errors import SottovoceError, UsageError, need

_NOT_NEEDED = ["parser", "senter", "attribute_ruler", "lemmatizer", "ner", "textcat"]


class SpacyTagger:
    """A spaCy pipeline, less what tagging does not need."""

    def __init__(self, name: str, pipeline: Any) -> None:
        self.name = name
        self._pipeline = pipeline
        # spaCy adds every word that it meets; what counts is what it has met in training.
        self._known = frozenset(pipeline.vocab.strings)

    def tags(self, tokens: Sequence[str]) -> list[str]:
        """Give each token its tag, with the whole text for context."""
        document = import_module("spacy.tokens").Doc(self._pipeline.vocab, words=list(tokens))
        return [token.tag_ for token in self._pipeline(document)]

    def knows(self, word: str) -> bool:
        """Whether the model met this word in training, in this or in lower case."""
        return word in self._known or word.lower() in self._known


def load_spacy(name: str) -> SpacyTagger:
    """Load ``spacy:MODEL``; nothing is downloaded."""
    model = name.partition(":")[2]
    why = "this tagger needs spaCy and an English model of it"
    spacy = need("spacy", None, why, " (or use the tagger 'pattern')")
    try:
        pipeline = spacy.load(model, exclude=_NOT_NEEDED)
    except OSError:
        raise SottovoceError(
            f"spaCy finds no model '{model}': install one, for example with "
            "'python -m spacy download en_core_web_md', or use the tagger 'pattern'"
        ) from None
    if pipeline.lang != "en" or "tagger" not in pipeline.pipe_names:
        raise UsageError(f"the spaCy model '{model}' is not an English one with a tagger")
    return SpacyTagger(name, pipeline)
