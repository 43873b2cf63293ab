"""Why WBB's texts are less like the query here than in its paper: one factor at a time.

    python benchmarks/wbb_similarity.py DATA

000 prints a similarity of .430 for WBB (4,50), the releases published with 001 have .46 for (2,15).
Starting from what sottovoce does, each line changes one thing: the word space, what happens to
unknown words, which words are replaced (those that the authors' tagger chose, read off the places
that change in their releases), and the law. Similarity is the cosine of the strong encoder, Jaccard
is over words; means over the 43 queries of TREC DL 2019, 20 variants each, one seed. DATA is as in
replication/README.md.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sottovoce.encoders import load_encoder
from sottovoce.mechanisms import mechanism
from sottovoce.mechanisms.wbb import WBB
from sottovoce.privacy.attacks.releases import read_releases
from sottovoce.resources.local import load_space
from sottovoce.text import TextPipeline
from sottovoce.text.protection import NOUNS_AND_ADJECTIVES
from sottovoce.text.words import words

VARIANTS = 20
BOXES = ((4, 50), (2, 15))
Places = dict[str, set[int]]
"""By query, which of its words are replaced."""


@dataclass(frozen=True)
class Factors:
    """What decides a release, apart from chance."""

    label: str
    space: str = "glove-840b-34k"
    places: str = "ours"
    unknown: str = "uniform"
    compat: str = "repo"


SERIES = (
    Factors("as in 000-wbb.toml"),
    Factors("space: glove-open (108,307 words)", space="glove-open"),
    Factors("space: glove-6b-100d (341,479 words)", space="glove-6b-100d"),
    Factors("law: Eq. 6 instead of the code's", compat="none"),
    Factors("unknown words stay", unknown="keep"),
    Factors("a query with an unknown word stays whole", unknown="whole query"),
    Factors("the same, space glove-6b-100d", "glove-6b-100d", unknown="whole query"),
    Factors("places: the authors', whole queries apart", places="authors' where any"),
    Factors("places: the authors'", places="authors'"),
    Factors("the same, space glove-6b-100d", "glove-6b-100d", "authors'"),
)


def main(data: Path) -> None:
    """Print one line a factor."""
    releases = list(read_releases(data / "reference/msmarco-dl19/WBB/obfuscatedText_WBB_10.csv.gz"))
    published = {release.text: release.variants for release in releases}
    queries = list(published)
    places = {
        "ours": {query: tagged_places(query) for query in queries},
        "authors'": {
            query: tagged_places(query) if changed is None else changed
            for query in queries
            for changed in [changed_places(query, published[query])]
        },
    }
    places["authors' where any"] = {
        query: changed or places["ours"][query] for query, changed in places["authors'"].items()
    }
    count = sum(len(words(query)) for query in queries)
    print(f"{count} words; replaced by us {total(places['ours'])}, by the authors", end=" ")
    whole = sum(not changed for changed in places["authors'"].values())
    print(total(places["authors'"]), f"; queries that they release as they are: {whole}")
    print(f"{'':46}" + "".join(f"  ({k},{n}): similarity, Jaccard" for k, n in BOXES))
    show("published with 001 (k=2, n=15)", [None, alike(published)])
    for factors in SERIES:
        figures = [alike(released(queries, places[factors.places], factors, box)) for box in BOXES]
        show(factors.label, figures)


def show(label: str, figures: list[tuple[float, float] | None]) -> None:
    """Print a line: similarity and Jaccard for each box."""
    cells = ("" if pair is None else f"{pair[0]:.3f}, {pair[1]:.3f}" for pair in figures)
    print(f"{label:46}" + "".join(f"{cell:>30}" for cell in cells), flush=True)


def total(places: Places) -> int:
    """How many words are replaced."""
    return sum(map(len, places.values()))


class Everything:
    """A lexicon that has every word."""

    def id(self, word: str, /) -> int:
        """One number for all: only places matter."""
        return len(word) * 0


def tagged_places(query: str) -> set[int]:
    """The places of the words that our tagger protects."""
    prepared = TextPipeline(protect=NOUNS_AND_ADJECTIVES).prepare(query, Everything())
    starts = {int(start) for start, _ in prepared.spans.tolist()}
    at, found = 0, set()
    for place, word in enumerate(words(query)):
        at = query.lower().index(word, at)
        if at in starts:
            found.add(place)
        at += len(word)
    return found


def changed_places(query: str, variants: tuple[str, ...]) -> set[int] | None:
    """The places at which a variant of equally many words has another word; None: no such one."""
    original = words(query)
    split = [words(variant) for variant in variants]
    aligned = [variant for variant in split if len(variant) == len(original)]
    if not aligned:
        return None
    return {
        place
        for place, word in enumerate(original)
        if any(variant[place] != word for variant in aligned)
    }


def released(
    queries: list[str], places: Places, factors: Factors, box: tuple[int, int]
) -> dict[str, tuple[str, ...]]:
    """Variants of each query by the law of WBB at the given places."""
    k, n = box
    wbb = mechanism(
        f"wbb:k={k},n={n},compat={factors.compat}", epsilon=10, space=load_space(factors.space)
    )
    assert isinstance(wbb, WBB)
    rng = np.random.default_rng(0)
    return {query: variants_of(query, places[query], factors, wbb, rng) for query in queries}


def variants_of(
    query: str, places: set[int], factors: Factors, wbb: WBB, rng: np.random.Generator
) -> tuple[str, ...]:
    """One query's variants; words at other places stay."""
    columns: list[list[str]] = []
    for place, word in enumerate(words(query)):
        number = wbb.space.id(word)
        if place not in places or (number < 0 and factors.unknown == "keep"):
            columns.append([word] * VARIANTS)
        elif number < 0 and factors.unknown == "whole query":
            return (query,) * VARIANTS
        elif number < 0:
            drawn = rng.choice(wbb.space.output.ids, VARIANTS)
            columns.append([wbb.space.word(int(substitute)) for substitute in drawn])
        else:
            ((candidates, law),) = wbb.laws(np.array([number]))
            drawn = rng.choice(candidates, VARIANTS, p=np.exp(law) / np.exp(law).sum())
            columns.append([wbb.space.word(int(substitute)) for substitute in drawn])
    return tuple(" ".join(column) for column in zip(*columns, strict=True))


def alike(variants: dict[str, tuple[str, ...]]) -> tuple[float, float]:
    """Mean cosine and mean Jaccard of queries and variants."""
    encoder = load_encoder("strong")
    texts = list(dict.fromkeys([*variants, *(v for many in variants.values() for v in many)]))
    vectors = dict(zip(texts, encoder.encode(texts), strict=True))
    cosines, jaccards = [], []
    for query, many in variants.items():
        own = set(words(query))
        cosines.append(np.mean([vectors[query] @ vectors[variant] for variant in many]))
        shares = [len(own & set(words(v))) / len(own | set(words(v))) for v in many]
        jaccards.append(np.mean(shares))
    return float(np.mean(cosines)), float(np.mean(jaccards))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]))
