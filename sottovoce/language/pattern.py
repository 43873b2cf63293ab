"""A quick tagger: a lexicon of English words, guesses by form, a few rules about neighbours.

The lexicon, some 93,000 words with the tag each has most often, is a file of the package
``textblob``, which is read but never imported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from sottovoce.errors import SottovoceError
from sottovoce.language.penn import PARTS_OF_SPEECH, TAGS

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
        """Give each token, punctuation among them, its Penn Treebank tag."""
        known = self._lexicon.get
        found: list[str] = []
        tag = "."
        for token in tokens:
            tag = known(token) or self._tag(token, begins=tag == ".")
            found.append(tag)
        return _in_context(tokens, found)

    def knows(self, word: str) -> bool:
        """Whether the lexicon has the word, without an ending such as 's, or has it as a name."""
        if word in self._lexicon:
            return True
        stem = _ENDING.sub("", word)
        return any(each in self._lexicon for each in (stem, stem.capitalize(), stem.upper()))

    def _tag(self, token: str, begins: bool) -> str:
        """Look a word up in other spellings: without an ending, as a name, in lower case."""
        stem = _ENDING.sub("", token) or token
        others = [stem]
        if stem.islower():
            others += [stem.capitalize(), stem.upper()]
        elif begins or stem.isupper():
            others.append(stem.lower())
        return next(filter(None, map(self._lexicon.get, others)), None) or _guess(stem)


def _guess(word: str) -> str:
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


def load_pattern() -> PatternTagger:
    """Read the lexicon."""
    package = find_spec("textblob")
    folders = (package.submodule_search_locations if package else None) or []
    for folder in folders:
        path = Path(folder, "en", "en-lexicon.txt")
        if path.is_file():
            return PatternTagger(_read(path))
    raise SottovoceError(
        "telling parts of speech needs the word list of an extra: "
        "pip install 'sottovoce[language]' (or protect 'all' words, or 'content' words)"
    )


def _read(path: Path) -> dict[str, str]:
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
