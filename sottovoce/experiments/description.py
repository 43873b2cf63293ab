"""What an experiment is, as its file describes it; :mod:`reading` reads and checks the file."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Texts:
    """What all mechanisms of an experiment work on, and how texts are cut."""

    space: str | None = None
    output_vocabulary: str = "all"
    pool: str | None = None
    """Public strings that comet releases."""
    encoder: str = "auto"
    """The encoder of that pool."""
    unknown: str = "uniform"
    protect: str | None = None
    """None: what the mechanism's paper protects."""


@dataclass(frozen=True)
class System:
    """A mechanism with the settings that it is run with.

    ``spec`` lacks epsilon; it is also the name in tables, unless ``label`` gives another one.
    """

    spec: str
    label: str
    epsilons: tuple[float | None, ...]
    """Most private first; ``(None,)`` for a mechanism that has none."""
    releases: tuple[str, ...]
    texts: Texts = field(default_factory=Texts)


@dataclass(frozen=True)
class Published:
    """Releases that somebody else made: files with id, text, obfuscatedText (and epsilon)."""

    label: str
    files: tuple[str, ...]
    """One a parameter, most private first."""
    epsilons: tuple[float | None, ...]
    """One a file."""
    spec: str | None = None
    """The mechanism to assume in attacks, without epsilon; None: the attacker knows none."""


@dataclass(frozen=True)
class Searching:
    """How variants are searched, and answers pooled."""

    depth: int = 100
    pooling: str = "union"
    kept: int = 100
    """Documents of a re-ranked pool that stay in the run."""


@dataclass(frozen=True)
class Utility:
    """How good answers are. ``thresholds`` are the least grades that pooled recall counts."""

    measures: tuple[str, ...] = ("nDCG@10", "P@10")
    thresholds: tuple[int, ...] = (1,)


@dataclass(frozen=True)
class Privacy:
    """What variants give away. An empty tuple, or None, leaves a step out."""

    similarity: tuple[str, ...] = ("jaccard", "semantic")
    similarity_encoder: str = "auto"
    log: str | None = None
    """The attacker's query log: ``demo`` or a file. None: no query inference."""
    inference_encoders: tuple[str, ...] = ("light",)
    attacks: tuple[str, ...] = ("mode", "centroid", "likelihood", "intersection", "cell")
    attacked: int | None = None
    """Queries whose words are recovered, spread over the collection; None: all."""


@dataclass(frozen=True)
class Deniability:
    """Words on which N_w and S_w are measured, and draws for each where there is no law."""

    words: int = 200
    draws: int = 1000


@dataclass(frozen=True)
class Downstream:
    """Tasks (files with text,label or question,answer,label), and models to learn them."""

    tasks: tuple[str, ...]
    models: tuple[str, ...] = ("tfidf",)
    limit: int | None = None
    encoder: str = "auto"


@dataclass(frozen=True)
class Expected:
    """A figure of a paper, and how near ours should be.

    ``where`` selects rows of a table by column, ``measure`` among them; their mean is compared:
    OK within ``tolerance``, OKish within three times that, FAIL beyond. ``table`` is ``queries``,
    ``words``, ``tasks`` or ``quipu``, whose ``measure`` is a risk, such as ``motivated[strong]``.
    """

    name: str
    table: str
    measure: str
    where: dict[str, str | float | int]
    value: float
    tolerance: float
    source: str = ""


@dataclass(frozen=True)
class ExpectedOrder:
    """What a paper says comes before what, in the mean that :class:`Expected` would compare.

    ``order`` names values of the column ``by``, with ``>``, ``<`` or ``~`` between them. Values
    joined by ``~`` make a group, whose means lie within ``tolerance``; every value of a group lies
    beyond every value of the next. Not so by ``tolerance`` at most is OKish, by more FAIL.
    """

    name: str
    table: str
    measure: str
    where: dict[str, str | float | int]
    by: str
    order: tuple[str | float | int, ...]
    tolerance: float
    source: str = ""


@dataclass(frozen=True)
class Experiment:
    """One file. Names of collections, files and encoders are as in the file, paths absolute."""

    name: str
    description: str
    notes: tuple[str, ...]
    collections: tuple[str, ...]
    engines: tuple[str, ...]
    rerankers: tuple[str, ...]
    systems: tuple[System, ...]
    published: tuple[Published, ...]
    n: tuple[int, ...]
    seeds: tuple[int, ...]
    texts: Texts = field(default_factory=Texts)
    """What systems have that say nothing else, and what published releases are attacked with."""
    searching: Searching = field(default_factory=Searching)
    utility: Utility = field(default_factory=Utility)
    privacy: Privacy = field(default_factory=Privacy)
    deniability: Deniability | None = None
    downstream: Downstream | None = None
    plotted_words: tuple[str, ...] = ()
    """Words drawn with their synonyms and hyponyms, by distance and angle."""
    expected: tuple[Expected, ...] = ()
    expected_orders: tuple[ExpectedOrder, ...] = ()
