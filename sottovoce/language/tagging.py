"""Taggers: what tells the part of speech of each word of a text.

``pattern`` is quick: a lexicon of English words, guesses by form, a few rules about neighbours. Its
lexicon, 93,000 words with the tag that each has most often, is a file of the package ``textblob``,
which is read but never imported. A spaCy model is slower, and right a little more often.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from sottovoce.errors import SottovoceError, UsageError, need

DEFAULT = "pattern"

# The Penn Treebank's tags: parts of speech as taggers name them.

PARTS_OF_SPEECH: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "noun": ("NN", "NNS", "NNP", "NNPS"),
        "adjective": ("JJ", "JJR", "JJS"),
        "verb": ("VB", "VBD", "VBG", "VBN", "VBP", "VBZ"),
        "adverb": ("RB", "RBR", "RBS"),
        "number": ("CD",),
    }
)
"""Names for people, and the tags they stand for."""

_GRAMMAR = "CC DT EX IN MD PDT POS PRP PRP$ RP TO UH WDT WP WP$ WRB"
TAGS = frozenset(_GRAMMAR.split()).union(*PARTS_OF_SPEECH.values())
"""The tags of words that a tagger understood: not those of foreign words, symbols, list marks."""


class Tagger(Protocol):
    """Tells parts of speech; the same tokens always get the same tags."""

    @property
    def name(self) -> str: ...

    def tags(self, tokens: Sequence[str]) -> list[str]:
        """Give each token its Penn Treebank tag; ``.``, ``?`` and ``!`` end sentences."""

    def knows(self, word: str) -> bool:
        """Whether the tag of this word is more than a guess by its form."""


def load_tagger(name: str = "auto") -> Tagger:
    """Load a tagger by name: ``pattern``, the default, or ``spacy:MODEL``, an installed model."""
    return _load(DEFAULT if name == "auto" else check_tagger(name))


def check_tagger(name: str) -> str:
    """Refuse what cannot be the name of a tagger, without loading it."""
    kind, _, model = name.partition(":")
    if name in ("auto", DEFAULT) or (kind == "spacy" and model):
        return name
    raise UsageError(
        "unknown tagger: use 'pattern', or 'spacy:MODEL' with the name or folder of an installed "
        "spaCy model, such as 'spacy:en_core_web_md'"
    )


@lru_cache(maxsize=4)
def _load(name: str) -> Tagger:
    return _load_pattern() if name == DEFAULT else _load_spacy(name)


# The tagger ``pattern``.

_FOREIGN = "FW"
_PUNCTUATION = dict.fromkeys(".?!", ".") | dict.fromkeys(",;:", ",")
_FIGURES = "0123456789.,:/%$-"
_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_ENDING = re.compile(r"(?i)(?:n['’]t|['’](?:s|re|ve|ll|d|m)?)$")
_ADJECTIVES = ("able", "al", "ful", "ible", "ient", "ish", "ive", "less", "ous", "tic")

_VERBS = frozenset({*PARTS_OF_SPEECH["verb"], "MD"})
_DECIDED_BY_CONTEXT = _VERBS | {"NN", "RB"}
_NOUNS = frozenset(PARTS_OF_SPEECH["noun"])
_NOUN_OR_VERB = frozenset({"NN", "VB", "VBP"})
_BEFORE_NOUN = frozenset({"DT", "PRP$", "IN"})
_BEFORE_SUBJECT = frozenset({"MD", "VBD", "VBP", "VBZ"})
_SUBJECTS = frozenset({"i", "you", "we", "they"})
_OBJECT_BEGINS = frozenset({"DT", "PRP", "PRP$"})


class PatternTagger:
    """Tags words as the lexicon does, unless the words beside them say otherwise."""

    name = "pattern"

    def __init__(self, lexicon: Mapping[str, str]) -> None:
        self._lexicon = {**lexicon, **_PUNCTUATION}

    def tags(self, tokens: Sequence[str]) -> list[str]:
        look_up = self._lexicon.get
        tags: list[str] = []
        tag = "."
        for token in tokens:
            tag = look_up(token) or self._tag(token, begins=tag == ".")
            tags.append(tag)
        return _in_context(tokens, tags)

    def knows(self, word: str) -> bool:
        """Whether the lexicon has the word, without an ending such as 's, or has it as a name."""
        if word in self._lexicon:
            return True
        stem = _ENDING.sub("", word)
        spellings = (stem, stem.capitalize(), stem.upper())
        return any(spelling in self._lexicon for spelling in spellings)

    def _tag(self, token: str, begins: bool) -> str:
        """Look a word up in other spellings: without an ending, as a name, in lower case."""
        stem = _ENDING.sub("", token) or token
        spellings = [stem]
        if stem.islower():
            spellings += [stem.capitalize(), stem.upper()]
        elif begins or stem.isupper():
            spellings.append(stem.lower())
        return next(filter(None, map(self._lexicon.get, spellings)), None) or _guess(stem)


def _guess(word: str) -> str:
    """The tag of a word that the lexicon lacks, by its form."""
    if not word.strip(_FIGURES):
        return "CD"
    if word[0].isupper():
        return "NNP"
    if "-" in word or word.endswith(_ADJECTIVES):
        return "JJ"
    if word.endswith("ly"):
        return "RB"
    if word.endswith("ing"):
        return "VBG"
    if word.endswith("ed"):
        return "VBN"
    if word.endswith("s") and not word.endswith(("is", "ss", "us")):
        return "NNS"
    return "NN"


def _in_context(tokens: Sequence[str], tags: list[str]) -> list[str]:
    """Decide between noun, name and verb, and adverb and adjective, by the words beside."""
    end = len(tags) - 1
    for at in range(1, len(tags)):
        tag = tags[at]
        if tag not in _DECIDED_BY_CONTEXT:
            continue
        before, after = tags[at - 1], tags[at + 1] if at < end else "."
        if tag in _VERBS and before != "." and tokens[at][0].isupper():
            tags[at] = "NNP"
        elif tag == "RB":
            if before in _BEFORE_NOUN and after in _NOUNS:
                tags[at] = "JJ"
        elif tag not in _NOUN_OR_VERB:
            continue
        elif before == "DT":
            tags[at] = "NN"
        elif before == "PRP" and tokens[at - 1].lower() in _SUBJECTS:
            tags[at] = "VB" if at > 1 and tags[at - 2] in _BEFORE_SUBJECT else "VBP"
        elif before == "TO" and after in _OBJECT_BEGINS:
            tags[at] = "VB"
    return tags


def _load_pattern() -> PatternTagger:
    """The tagger with its lexicon, wherever textblob is installed."""
    package = find_spec("textblob")
    folders = (package.submodule_search_locations if package else None) or []
    for folder in folders:
        path = Path(folder, "en", "en-lexicon.txt")
        if path.is_file():
            return PatternTagger(_read_lexicon(path))
    raise SottovoceError(
        "telling parts of speech needs the word list of an extra: "
        "pip install 'sottovoce[language]' (or protect 'all' words, or 'content' words)"
    )


def _read_lexicon(path: Path) -> dict[str, str]:
    """Keep the plain words: the file has marks, figures and compounds of several tags, too."""
    pairs = (line.split() for line in path.read_text(encoding="utf-8").splitlines())
    return {
        pair[0]: pair[1]
        for pair in pairs
        if len(pair) == 2
        and (pair[1] in TAGS or pair[1] == _FOREIGN)
        and _WORD.fullmatch(pair[0])
        and not _ENDING.search(pair[0])
    }


# Models of spaCy.

_NOT_FOR_TAGGING = ["parser", "senter", "attribute_ruler", "lemmatizer", "ner", "textcat"]


class SpacyTagger:
    """A spaCy pipeline, less what tagging does not need."""

    def __init__(self, name: str, pipeline: Any) -> None:
        self.name = name
        self._pipeline = pipeline
        # The words of its training; spaCy adds every word that it meets later.
        self._vocabulary = frozenset(pipeline.vocab.strings)

    def tags(self, tokens: Sequence[str]) -> list[str]:
        document = import_module("spacy.tokens").Doc(self._pipeline.vocab, words=list(tokens))
        return [token.tag_ for token in self._pipeline(document)]

    def knows(self, word: str) -> bool:
        """Whether the model met this word in training, in this or in lower case."""
        return word in self._vocabulary or word.lower() in self._vocabulary


def _load_spacy(name: str) -> SpacyTagger:
    """Load ``spacy:MODEL``; nothing is downloaded."""
    model = name.partition(":")[2]
    why = "this tagger needs spaCy and an English model of it"
    spacy = need("spacy", None, why, " (or use the tagger 'pattern')")
    try:
        pipeline = spacy.load(model, exclude=_NOT_FOR_TAGGING)
    except OSError:
        raise SottovoceError(
            f"spaCy finds no model '{model}': install one, for example with "
            "'python -m spacy download en_core_web_md', or use the tagger 'pattern'"
        ) from None
    if pipeline.lang != "en" or "tagger" not in pipeline.pipe_names:
        raise UsageError(f"the spaCy model '{model}' is not an English one with a tagger")
    return SpacyTagger(name, pipeline)
