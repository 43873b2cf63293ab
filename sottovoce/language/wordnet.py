"""WordNet: the senses of a word, what they are kinds and parts of, and how near two of them are.

Reads Princeton's own files by binary search, as their format intends: opening them takes under a
millisecond, and processes share the memory.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from sottovoce.errors import SottovoceError
from sottovoce.resources.catalogue import WORDNET

Pos: TypeAlias = Literal["n", "v", "a", "r"]
"""Noun, verb, adjective, adverb."""

_FILES: Final[Mapping[Pos, str]] = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
# What each part of speech may end in, and what its base form ends in then.
_ENDINGS: Final[Mapping[Pos, str]] = {
    "n": "s/ ses/s ves/f xes/x zes/z ches/ch shes/sh men/man ies/y",
    "v": "s/ ies/y es/e es/ ed/e ed/ ing/e ing/",
    "a": "er/ est/ er/e est/e",
    "r": "",
}
_HYPERNYM = ("@", "@i")
_HYPONYM = ("~", "~i")
_HOLONYM = ("#m", "#p", "#s")
_RELATIONS = frozenset((*_HYPERNYM, *_HYPONYM, *_HOLONYM))
_REMEMBERED_WORDS = 1 << 16
_LONGEST_WORD = 128


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sense:
    """One meaning and the words that have it; each is one object, so it is compared by identity."""

    lemmas: tuple[str, ...]
    """The words, as WordNet spells them, with blanks for underscores."""
    pos: Pos
    """Satellite adjectives count as adjectives."""
    _offset: int
    _pointers: tuple[tuple[str, Pos, int], ...]
    _wordnet: WordNet

    def hypernyms(self) -> tuple[Sense, ...]:
        """What this is a kind or an instance of, one step up."""
        return self._related(_HYPERNYM)

    def hyponyms(self) -> tuple[Sense, ...]:
        """Kinds and instances of this, one step down."""
        return self._related(_HYPONYM)

    def holonyms(self) -> tuple[Sense, ...]:
        """What this is a member, a part or the substance of."""
        return self._related(_HOLONYM)

    def _related(self, symbols: tuple[str, ...]) -> tuple[Sense, ...]:
        sense = self._wordnet._sense
        return tuple(sense(pos, at) for symbol, pos, at in self._pointers if symbol in symbols)

    def __repr__(self) -> str:
        """Name no word: the sense may be one of a private text."""
        return f"Sense({self.pos})"

    def __reduce__(self) -> tuple[Any, ...]:
        return WordNet._sense, (self._wordnet, self.pos, self._offset)


@dataclass(frozen=True, slots=True)
class _Ancestry:
    """A sense's ancestors, itself among them, with the fewest steps to each; and its own depth."""

    steps: dict[Sense, int]
    farthest: int
    min_depth: int
    max_depth: int


class WordNet:
    """A folder of WordNet files. Opened twice, it is the same object; it pickles as its path."""

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> WordNet:
        """Open a folder of WordNet's files ``data.*``, ``index.*`` and ``*.exc``."""
        return _open(Path(folder).resolve())

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._data = {pos: _mapped(folder / f"data.{name}") for pos, name in _FILES.items()}
        self._index = {pos: _mapped(folder / f"index.{name}") for pos, name in _FILES.items()}
        self._irregular = {pos: _mapped(folder / f"{name}.exc") for pos, name in _FILES.items()}
        self._met: dict[tuple[Pos, int], Sense] = {}
        self._ancestries: dict[Sense, _Ancestry] = {}
        self._offsets = lru_cache(_REMEMBERED_WORDS)(self._look_up)
        self._senses_of = lru_cache(_REMEMBERED_WORDS)(self._find)

    def senses(self, word: str, pos: Pos | None = None) -> tuple[Sense, ...]:
        """The senses of a word or of its base forms, the most frequent first.

        Without ``pos``: those as a noun, then as a verb, an adjective, an adverb.
        """
        if len(word) > _LONGEST_WORD:
            return ()
        form = word.lower().replace(" ", "_")
        if pos is not None:
            return self._senses_of(form, pos)
        return tuple(sense for any_pos in _FILES for sense in self._senses_of(form, any_pos))

    def __contains__(self, word: str) -> bool:
        """Whether the word, or a base form of it, has a sense."""
        return bool(self.senses(word))

    def wu_palmer(self, a: Sense, b: Sense) -> float:
        """How near two senses are, from 0 to 1: how deep they part, against how deep they lie.

        They part at the common ancestor whose shortest way to the root is longest; of several, at
        ``a`` itself, or else the first by name. It is another one than ``a`` even for ``a`` and
        itself, where a way past ``a`` is longer: then the result is below 1. Other than nouns,
        senses without a common ancestor part at a root added above all.
        """
        up_a, up_b = self._ancestry(a), self._ancestry(b)
        shared = up_a.steps.keys() & up_b.steps.keys()
        depth = max((self._ancestry(sense).min_depth for sense in shared), default=0)
        if not (a.pos == b.pos == "n") and depth == 0 and a not in shared:
            return 2 / (up_a.farthest + up_b.farthest + 4)
        if not shared:
            return 0.0
        lowest = [sense for sense in shared if self._ancestry(sense).min_depth == depth]
        parting = self._ancestry(a if a in lowest else min(lowest, key=self._name))
        way = sum(
            min(up.steps[sense] + steps for sense, steps in parting.steps.items())
            for up in (up_a, up_b)
        )
        nodes = 2 * (parting.max_depth + 1)
        return nodes / (way + nodes)

    def __repr__(self) -> str:
        return f"WordNet({str(self.folder)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return WordNet.open, (self.folder,)

    def _find(self, form: str, pos: Pos) -> tuple[Sense, ...]:
        try:
            offsets = [at for base in self.forms(form, pos) for at in self._offsets(base, pos)]
        except (ValueError, IndexError):
            raise _damaged(self.folder) from None
        return tuple(self._sense(pos, at) for at in dict.fromkeys(offsets))

    def forms(self, form: str, pos: Pos) -> Iterator[str]:
        """Yield the form itself and what it may be inflected from; few of these are words."""
        yield form
        if irregular := _line(self._irregular[pos], form):
            yield from irregular[1:]
            return
        for pair in _ENDINGS[pos].split():
            ending, base = pair.split("/")
            if form.endswith(ending):
                yield form.removesuffix(ending) + base

    def _look_up(self, form: str, pos: Pos) -> tuple[int, ...]:
        fields = _line(self._index[pos], form)
        return tuple(map(int, fields[-int(fields[2]) :])) if fields else ()

    def _sense(self, pos: Pos, offset: int) -> Sense:
        met = self._met.get((pos, offset))
        return met or self._met.setdefault((pos, offset), self._read(pos, offset))

    def _read(self, pos: Pos, offset: int) -> Sense:
        """Read the entry at an offset: its words, then its pointers, both after their number."""
        data = self._data[pos]
        try:
            fields = data[offset : data.find(b"|", offset)].decode("ascii").split()
            end = 4 + 2 * int(fields[3], 16)
            if int(fields[0]) != offset:
                raise ValueError
            count = int(fields[end])
            pointers = tuple(
                (fields[at], _as_pos(fields[at + 2]), int(fields[at + 1]))
                for at in range(end + 1, end + 1 + 4 * count, 4)
                if fields[at] in _RELATIONS
            )
        except (ValueError, IndexError):
            raise _damaged(self.folder) from None
        lemmas = (word.partition("(")[0].replace("_", " ") for word in fields[4:end:2])
        return Sense(tuple(lemmas), pos, offset, pointers, self)

    def _name(self, sense: Sense) -> str:
        """What orders senses of equal depth: the first word, and which of its senses this is."""
        word = sense.lemmas[0].lower().replace(" ", "_")
        number = self._offsets(word, sense.pos).index(sense._offset) + 1
        return f"{word}.{sense.pos}.{number:02}"

    def _ancestry(self, sense: Sense) -> _Ancestry:
        if remembered := self._ancestries.get(sense):
            return remembered
        parents = [self._ancestry(parent) for parent in sense.hypernyms()]
        steps = {sense: 0}
        for parent in parents:
            for ancestor, way in parent.steps.items():
                steps[ancestor] = min(way + 1, steps.get(ancestor, way + 1))
        ancestry = _Ancestry(
            steps,
            farthest=max(steps.values()),
            min_depth=min((parent.min_depth + 1 for parent in parents), default=0),
            max_depth=max((parent.max_depth + 1 for parent in parents), default=0),
        )
        return self._ancestries.setdefault(sense, ancestry)


def load_wordnet() -> WordNet:
    """Open the WordNet that ``sottovoce spaces add wordnet`` put into the cache folder."""
    return WordNet.open(wordnet_folder())


def wordnet_folder() -> Path:
    """Where WordNet lives once added."""
    return WORDNET.folder


@lru_cache(maxsize=8)
def _open(folder: Path) -> WordNet:
    return WordNet(folder)


def _mapped(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        raise SottovoceError(
            "WordNet is not on this machine yet: get it once with 'sottovoce spaces add wordnet'"
        ) from None
    except (OSError, ValueError):
        raise _damaged(path.parent) from None


def _damaged(folder: Path) -> SottovoceError:
    return SottovoceError(
        f"the WordNet files in {folder} are damaged: 'sottovoce spaces add wordnet' replaces them"
    )


def _line(file: mmap.mmap, first: str) -> list[str]:
    """Find the line that starts with this word in a sorted file; no line has no fields."""
    sought = first.encode("utf-8", "surrogatepass")
    low, high = 0, len(file)
    while low < high:
        middle = file.rfind(b"\n", low, (low + high) // 2) + 1 or low
        end = file.find(b"\n", middle)
        end = high if end < 0 else end
        word = file[middle:end].partition(b" ")[0]
        if word == sought and word:
            return file[middle:end].decode("ascii").split()
        if word < sought:
            low = end + 1
        else:
            high = middle
    return []


def _as_pos(letter: str) -> Pos:
    match letter:
        case "n" | "v" | "a" | "r":
            return letter
        case "s":
            return "a"
    raise ValueError
