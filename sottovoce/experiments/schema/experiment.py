"""What an experiment is: the tables and keys of its file, and what they become.

These are plain dataclasses. Their types also say what pydantic accepts of a file (:mod:`reading`);
made in Python, they are not checked.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, make_dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, get_args

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Strict

from sottovoce.choices import (
    POOLINGS,
    RELEASES,
    Order,
    Pooling,
    Release,
    UnknownPolicy,
    Unprotected,
)
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.evaluation.downstream.classification import REGIMES
from sottovoce.evaluation.downstream.models import MODELS
from sottovoce.evaluation.search_quality import effectiveness
from sottovoce.experiments.schema.values import (
    AtLeastOne,
    Count,
    Different,
    Epsilon,
    Folder,
    Number,
    Seed,
    Text,
    one_of,
    resolved_by,
)
from sottovoce.experiments.tables import COLUMNS
from sottovoce.mechanisms import Mechanism, parse
from sottovoce.mechanisms.build import RESOURCE_KINDS, resource_kind
from sottovoce.privacy.attacks.run_state import ATTACKS, Attack
from sottovoce.privacy.text_similarity import MEASURES
from sottovoce.text.pipeline import MOST_PADDING
from sottovoce.text.protection import protected_tags

FROM_COLLECTION = ("engine",)
"""Kinds of resources that mechanisms get from the collection they work on: nobody chooses them."""

Value: TypeAlias = str | float | int
"""What columns of tables hold."""


# Types of keys


def _file_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name):
        raise UsageError("it names files: use letters, digits, '.', '_' and '-' only, 100 at most")
    return name


def _measurable(measure: str) -> str:
    """Refuse what cannot be measured, found by trying it on one document."""
    try:
        effectiveness({"1": ["1"]}, {"1": {"1": 1}}, [measure])
    except SottovoceError as error:
        raise UsageError(str(error)) from None
    except Exception:
        raise UsageError(
            f"'{measure}' cannot be measured query by query here: use another one, as nDCG@10"
        ) from None
    return measure


def _protection(protect: str) -> str:
    protected_tags(protect)
    return protect


Summary: TypeAlias = Literal["mean", "least", "greatest"]
Bound: TypeAlias = Literal["at least", "at most"]
Encoder: TypeAlias = Annotated[Text, resolved_by(Folder.encoder)]
Releases: TypeAlias = AtLeastOne[Annotated[Release, one_of(RELEASES)]]
Files: TypeAlias = Annotated[
    tuple[Text, ...],
    BeforeValidator(lambda files: [files] if isinstance(files, str) else files),
    MinLen(1),
]


# Tables of the file that stay as they are


@dataclass(frozen=True)
class Searching:
    """How variants are searched, and answers pooled."""

    depth: Count = 100
    pooling: Annotated[Pooling, one_of(POOLINGS)] = "union"
    kept: Count = 100
    """Documents of a re-ranked pool that stay in the run."""


@dataclass(frozen=True)
class Utility:
    """How good answers are. ``thresholds`` are the least grades that pooled recall counts."""

    measures: Different[Annotated[Text, AfterValidator(_measurable)]] = ("nDCG@10", "P@10")
    thresholds: AtLeastOne[Count] = (1,)


@dataclass(frozen=True)
class Privacy:
    """What variants give away. An empty tuple, or None, leaves a step out."""

    similarity: Different[Annotated[str, one_of(MEASURES)]] = ("jaccard", "semantic")
    similarity_encoder: Encoder = "auto"
    log: Annotated[Text, resolved_by(Folder.log)] | None = None
    """The attacker's query log: ``demo`` or a file. None: no query inference, and priors by
    wordfreq."""
    inference_encoders: Different[Encoder] = ("light",)
    attacks: Different[Annotated[Attack, one_of(ATTACKS)]] = ATTACKS
    attacked: Count | None = None
    """Queries that these attacks, but for ``means``, are run on, spread over the collection; None:
    all."""


@dataclass(frozen=True)
class Deniability:
    """Words on which N_w and S_w are measured, and draws for each where there is no law."""

    words: Count = 200
    draws: Count = 1000


@dataclass(frozen=True)
class Downstream:
    """Tasks (files with text,label or question,answer,label), and models to learn them.

    A task may be the folder of a judged collection: documents of grade 2 or more are right answers,
    any others wrong ones.
    """

    tasks: AtLeastOne[Annotated[Text, resolved_by(Folder.task)]]
    models: AtLeastOne[Annotated[str, one_of(MODELS)]] = ("tfidf",)
    limit: Count | None = None
    encoder: Encoder = "auto"
    test: Annotated[Text, resolved_by(Folder.task)] | None = None
    """Texts to test on; None: a quarter of each task."""
    regimes: AtLeastOne[Annotated[str, one_of(REGIMES)]] = REGIMES
    """Which texts of a classification are obfuscated."""
    similarity: Different[Annotated[str, one_of(MEASURES)]] = ()
    """How much obfuscated texts of a classification resemble the original ones."""
    similarity_encoder: Encoder = "auto"


@dataclass(frozen=True)
class SampledWords:
    """Words of which some releases are shown, at the epsilons where the mean N_w is each level."""

    words: AtLeastOne[Text]
    levels: AtLeastOne[Annotated[Number, Gt(0), Lt(1)]] = (0.05, 0.1, 0.2, 0.3)
    count: Count = 4
    """Different words that are shown of each."""
    over: Count = 100
    """Words over which N_w is averaged."""
    draws: Count = 200


@dataclass(frozen=True)
class Membership:
    """Whose releases a text model learnt from: the users of a log, and how they are split."""

    log: Annotated[Text, resolved_by(Folder.log)]
    """A file with user and query; or, with ``made_up_users``, with a query a line."""
    made_up_users: Count | None = None
    """Deal the queries of a log without users out to so many, at random."""
    queries_each: Count = 150
    members: Count = 100
    shadows: Count = 4
    repeats: Count = 3
    min_queries: Count = 150
    max_queries: Count = 500
    collection: Annotated[Text, resolved_by(Folder.collection)] | None = None
    """Documents for mechanisms that ask a local engine; without it these are left out."""


@dataclass(frozen=True)
class Published:
    """Releases that somebody else made: files with id, text, obfuscatedText (and epsilon)."""

    label: Text
    files: Files
    """One a parameter, most private first. In the file perhaps a pattern with ``{epsilon}``."""
    epsilons: AtLeastOne[Epsilon | None] = ()
    """One a file."""
    spec: Text | None = None
    """The mechanism to assume in attacks, without epsilon; None: the attacker knows none."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """A figure of a paper, and how near ours should be.

    ``where`` selects rows of a table by column, ``measure`` among them; ``of`` says what of them is
    compared: their mean, or the least or greatest of all items. OK within ``tolerance``, OKish
    within three times that, FAIL beyond; where the figure is a bound, only its wrong side counts.
    ``table`` is ``queries``, ``words``, ``tasks``, ``audits`` or ``quipu``, whose ``measure`` is a
    risk, such as ``motivated[strong]``.
    """

    name: Text
    table: Annotated[str, one_of(COLUMNS)] = "queries"
    measure: Text
    where: dict[str, Any] = field(default_factory=dict)
    value: Number
    of: Annotated[Summary, one_of(get_args(Summary))] = "mean"
    bound: Annotated[Bound, one_of(get_args(Bound))] | None = None
    """Whether the figure is a bound that ours must keep, not a value that it should be near."""
    tolerance: Annotated[Number, Ge(0)]
    source: Text = ""


@dataclass(frozen=True, kw_only=True)
class ExpectedOrder:
    """What a paper says comes before what, in the mean that :class:`Expected` would compare.

    ``order`` names values of the column ``by``, with ``>``, ``<``, ``~`` or ``,`` between them.
    Values joined by ``~`` make a group, whose means lie within ``tolerance``; those joined by ``,``
    make one of which nothing is said; every value of a group lies beyond every value of the next.
    Not so by ``tolerance`` at most is OKish, by more FAIL.
    """

    name: Text
    table: Annotated[str, one_of(COLUMNS)] = "queries"
    measure: Text
    where: dict[str, Any] = field(default_factory=dict)
    by: Text = "mechanism"
    order: tuple[Any, ...]
    tolerance: Annotated[Number, Ge(0)]
    source: Text = ""


# Tables of the file that are put together


@dataclass(frozen=True)
class GridTable:
    """``[grid]``: what is multiplied out."""

    collections: Different[Annotated[Text, resolved_by(Folder.collection)]] = ()
    engines: Different[Annotated[Text, resolved_by(Folder.engine)]] = ()
    rerankers: Different[Annotated[Text, resolved_by(Folder.reranker)]] = ("light",)
    mechanisms: Different[Text] = ()
    epsilons: AtLeastOne[Epsilon] | None = None
    releases: Releases = ("independent",)
    n: AtLeastOne[Count] = (20,)
    seeds: AtLeastOne[Seed] = (0,)


@dataclass(frozen=True, kw_only=True)
class TextsTable:
    """``[texts]``; :func:`file_tables` adds the settings that choose resources."""

    unknown: Annotated[UnknownPolicy, one_of(get_args(UnknownPolicy))] | None = None
    protect: Annotated[Text, AfterValidator(_protection)] | None = None
    order: Annotated[Order, one_of(get_args(Order))] | None = None
    pad_to: Annotated[int, Strict(), Ge(0), Le(MOST_PADDING)] | None = None
    unprotected: Annotated[Unprotected, one_of(get_args(Unprotected))] | None = None
    phrases: Annotated[bool, Strict()] | None = None


@dataclass(frozen=True, kw_only=True)
class MechanismTable(TextsTable):
    """``[[mechanism]]``: what it does not say is taken from ``[grid]`` and ``[texts]``."""

    spec: Text
    label: Text | None = None
    epsilons: AtLeastOne[Epsilon] | None = None
    parameter: Text | None = None
    values: AtLeastOne[Number] | None = None
    releases: Releases | None = None


@dataclass(frozen=True, kw_only=True)
class FigureTable(Expected):
    """``[[expected]]``: a figure, or one an epsilon."""

    value: Number | None = None  # type: ignore[assignment]
    values: tuple[Number, ...] | None = None
    epsilons: tuple[Number, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class ExpectationTables:
    """What a file expects; the only tables that ``check`` reads."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    expected: tuple[FigureTable, ...] = ()
    expected_order: tuple[ExpectedOrder, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FileTables(ExpectationTables):
    """The whole file."""

    name: Annotated[Text, AfterValidator(_file_name)]
    description: Text = ""
    notes: Different[Text] = ()
    grid: GridTable = field(default_factory=GridTable)
    texts: TextsTable = field(default_factory=TextsTable)
    mechanism: tuple[MechanismTable, ...] = ()
    published: tuple[Published, ...] = ()
    search: Searching = field(default_factory=Searching)
    utility: Utility = field(default_factory=Utility)
    privacy: Privacy = field(default_factory=Privacy)
    deniability: Deniability | None = None
    downstream: Downstream | None = None
    membership: Membership | None = None
    samples: SampledWords | None = None
    plotted_words: Different[Text] = ()


def chosen_settings() -> dict[str, Any]:
    """The settings that choose what mechanisms work on, with their defaults."""
    return {
        name: default
        for kind in RESOURCE_KINDS.values()
        if kind.name not in FROM_COLLECTION
        for name, default in kind.settings.items()
    }


def file_tables() -> type[FileTables]:
    """The tables of a file, with a key for each setting that some kind of resource has."""
    types: dict[type, Any] = {
        bool: Annotated[bool, Strict()],
        int: Annotated[int, Strict()],
        float: Number,
    }
    keys = [
        (
            name,
            Annotated[types.get(type(default), Text), resolved_by(Folder.resource)] | None,
            field(default=None),
        )
        for name, default in chosen_settings().items()
    ]
    options: dict[str, Any] = {"frozen": True, "kw_only": True}
    texts = make_dataclass("TextsTable", keys, bases=(TextsTable,), **options)
    mechanism = make_dataclass("MechanismTable", keys, bases=(MechanismTable,), **options)
    added: list[Any] = [
        ("texts", texts, field(default_factory=texts)),
        ("mechanism", tuple[mechanism, ...], field(default=())),  # type: ignore[valid-type]
    ]
    return make_dataclass("FileTables", added, bases=(FileTables,), **options)


# What the tables become


CUT = ("unknown", "protect", "order", "pad_to", "unprotected", "phrases")
"""The settings that say how texts are cut."""


@dataclass(frozen=True)
class Texts:
    """What mechanisms work on, and how texts are cut.

    ``resources`` are settings of :mod:`sottovoce.mechanisms.build` that are not their defaults, by
    name. :meth:`of` takes them as keywords.
    """

    resources: tuple[tuple[str, Any], ...] = ()
    unknown: UnknownPolicy = "encode"
    protect: str | None = None
    """None: what the mechanism's paper protects."""
    order: Order = "kept"
    """``shuffled``: the words of each variant in random order, without punctuation."""
    pad_to: int = 0
    unprotected: Unprotected = "keep"
    phrases: bool = False

    @classmethod
    def of(
        cls,
        unknown: UnknownPolicy = "encode",
        protect: str | None = None,
        order: Order = "kept",
        pad_to: int = 0,
        unprotected: Unprotected = "keep",
        phrases: bool = False,
        **settings: Any,
    ) -> Texts:
        """Settings that are None, or their default, say nothing."""
        defaults = chosen_settings()
        resources = (
            (name, value)
            for name, value in sorted(settings.items())
            if value is not None and value != defaults[name]
        )
        return cls(tuple(resources), unknown, protect, order, pad_to, unprotected, phrases)

    def settings(self, kind: str) -> dict[str, Any]:
        """All settings of a kind of resource."""
        return resource_kind(kind).complete(dict(self.resources))

    def only(self, kind: str) -> Texts:
        """The settings of one kind of resource, and nothing else."""
        return Texts.of(**self.settings(kind))

    def to_dict(self) -> dict[str, Any]:
        """For the manifest: all settings, also the defaults."""
        resources = chosen_settings() | dict(self.resources)
        return {**resources, **{name: getattr(self, name) for name in CUT}}


@dataclass(frozen=True)
class System:
    """A mechanism with the settings that it is run with.

    ``spec`` lacks epsilon; it is also the name in tables, unless ``label`` gives another one.
    """

    spec: str
    label: str
    epsilons: tuple[float | None, ...]
    """The smallest first; ``(None,)`` for a mechanism that has none. Values of ``parameter``."""
    releases: tuple[Release, ...]
    texts: Texts = field(default_factory=Texts)
    parameter: str = "epsilon"
    """What its curves run over. Tables have its values in their column ``epsilon``."""
    set_sizes: tuple[int, ...] = ()
    """Of a mechanism that decides itself how many queries leave: how many, at each of
    ``epsilons``. Empty for all others, whose number is the grid's ``n``."""

    @property
    def kind(self) -> type[Mechanism]:
        return parse(self.spec)[0]

    def spec_at(self, value: float | None) -> str:
        """The spec of one point of its curve; epsilon itself is never part of it."""
        if self.parameter == "epsilon" or value is None:
            return self.spec
        return f"{self.spec}{',' if ':' in self.spec else ':'}{self.parameter}={value:g}"

    def numbers_at(self, value: float | None, n: tuple[int, ...]) -> tuple[int, ...]:
        """How many variants one point of its curve has: each of ``n``, or its own number."""
        return (self.set_sizes[self.epsilons.index(value)],) if self.set_sizes else n


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
    membership: Membership | None = None
    samples: SampledWords | None = None
    plotted_words: tuple[str, ...] = ()
    """Words drawn with their synonyms and hyponyms, by distance and angle."""
    expected: tuple[Expected, ...] = ()
    expected_orders: tuple[ExpectedOrder, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        systems = [{**asdict(system), "texts": system.texts.to_dict()} for system in self.systems]
        return {**asdict(self), "systems": systems, "texts": self.texts.to_dict()}
