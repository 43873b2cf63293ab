"""What requests may hold: every field known, every text and number bounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sottovoce import defaults
from sottovoce.choices import Release, VoiceId
from sottovoce.search.boundary import LONGEST_QUERY

LONGEST_TEXT = 10_000
MOST_VARIANTS = 100
MOST_CHARACTERS = 200_000
"""Characters times variants that one request may ask for."""
MOST_TEXTS = 20_000
SET_WITH_ONE_IN = frozenset({"decoys"})
"""What may be set of a cover that ``one_in`` chooses: all else would undo what it says."""
LARGEST_TABLE = 8_000_000

Query = Annotated[
    str,
    Field(
        min_length=1,
        max_length=LONGEST_QUERY,
        pattern=r"\S",
        description="What to search for; it stays on this machine.",
    ),
]
MechanismName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=200,
        description="A name, or a spec as cmp:epsilon=12.5; see /v1/mechanisms.",
    ),
]
Epsilon = Annotated[
    float,
    Field(ge=1e-4, le=1e5, allow_inf_nan=False, description="Budget for each word and release."),
]
Variants = Annotated[int, Field(ge=1, le=MOST_VARIANTS, description="Variants of the text.")]
ParameterName = Annotated[str, Field(min_length=1, max_length=40)]
ParameterValue = (
    bool | int | Annotated[float, Field(allow_inf_nan=False)] | Annotated[str, Field(max_length=60)]
)
Parameters = Annotated[
    dict[ParameterName, ParameterValue],
    Field(max_length=8, description="Further parameters of the mechanism, by name."),
]
Seed = Annotated[int, Field(ge=0, lt=1 << 63)]
SEED_HELP = "Reproducible draws, for experiments only: they protect nobody."
Nats = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
PreviewId = Annotated[
    str, Field(min_length=1, max_length=64, description="As /v1/preview gave it.")
]


@dataclass(frozen=True)
class Voice:
    """A privacy setting in words: the usual mechanism at this epsilon; without one, a cover."""

    id: VoiceId
    name: str
    epsilon: float | None
    line: str

    @property
    def in_company(self) -> bool:
        """Whether public queries leave, and no word is rewritten."""
        return self.epsilon is None


VOICES = (
    Voice("whisper", "whisper", 5.0, "What is sent gives away least here, and finds least."),
    Voice("murmur", "murmur", defaults.SEARCH_EPSILON, "Hides most words, and finds what it can."),
    Voice("speak-low", "speak low", 10.0, "Finds more; a list with your query often names it."),
    Voice(
        "normal-voice",
        "normal voice",
        15.0,
        "Says most words; a list with your query names it.",
    ),
    Voice(
        "in-company",
        "in company",
        None,
        "Nothing is rewritten: a public query close to yours leaves among others.",
    ),
)
SEARCH_VOICE: VoiceId = defaults.VOICE
"""The same as a search on the command line without options; a test compares them."""


class Body(BaseModel):
    """The body of a request: a field that is not known is refused, not ignored."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ObfuscateBody(Body):
    """A text to obfuscate; nothing is sent anywhere."""

    text: Annotated[str, Field(max_length=LONGEST_TEXT)]
    mechanism: MechanismName = defaults.MECHANISM
    epsilon: Epsilon | None = None
    n: Variants = 1
    release: Release = "independent"
    seed: Seed | None = Field(None, description=SEED_HELP)
    set: Parameters = Field(default_factory=dict)

    @model_validator(mode="after")
    def _not_too_much(self) -> Self:
        if len(self.text) * self.n > MOST_CHARACTERS:
            raise ValueError(
                f"text and variants together make over {MOST_CHARACTERS:,} characters: ask for "
                "fewer variants, or cut the text"
            )
        return self


class ProtectionBody(Body):
    """How to protect a query: a voice, or all details; neither: the default of /v1/voices."""

    voice: VoiceId | None = None
    mechanism: MechanismName | None = None
    epsilon: Epsilon | None = None
    n: Variants | None = None
    release: Annotated[
        Release | None,
        Field(description="Once if the mechanism can, else independent, where not given."),
    ] = None
    set: Parameters = Field(
        default_factory=dict,
        description="Further parameters of the mechanism, by name; with one_in, decoys alone.",
    )
    one_in: Annotated[
        int | None,
        Field(
            ge=2,
            le=MOST_VARIANTS,
            description="Hide among so many public queries: a cover, in place of a mechanism.",
        ),
    ] = None
    most_queries: Annotated[
        int | None,
        Field(ge=2, le=MOST_VARIANTS, description="With one_in: the most queries to send."),
    ] = None
    fresh: Annotated[
        bool,
        Field(description="Draw words anew that were sent before: it tells more, and is counted."),
    ] = False

    @property
    def has_details(self) -> bool:
        """Whether anything is said that a voice says, too."""
        details = (self.mechanism, self.epsilon, self.n, self.release, self.one_in)
        return bool(self.set) or any(detail is not None for detail in details)

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if self.voice is not None and self.has_details:
            raise ValueError("a voice says everything: give either a voice or the details")
        others = (self.mechanism, self.epsilon, self.n, self.release)
        if self.one_in is not None and any(other is not None for other in others):
            raise ValueError("one_in chooses the mechanism: give either it or the details")
        if self.one_in is not None and not SET_WITH_ONE_IN.issuperset(self.set):
            raise ValueError(
                "one_in chooses k, m and p, and of set takes decoys alone: leave the others out, "
                "or name the mechanism by its spec in place of one_in, as cover:k=20,p=0.8"
            )
        if self.most_queries is not None and self.one_in is None:
            raise ValueError("most_queries goes with one_in: say among how many to hide")
        return self


class PreviewBody(ProtectionBody):
    """Variants to look at before they are sent. They are counted now."""

    query: Query


class SearchBody(ProtectionBody):
    """A search. With ``preview`` exactly those variants are sent, and not counted again."""

    query: Query
    top: Annotated[int, Field(ge=1, le=100)] = defaults.TOP
    preview: PreviewId | None = None
    measure: bool = Field(False, description="Attack what was sent, too, as /v1/risk does.")


class RiskBody(ProtectionBody):
    """Variants to attack: those given, or those of a preview."""

    query: Query
    variants: (
        Annotated[
            list[Annotated[str, Field(max_length=LONGEST_QUERY)]],
            Field(min_length=1, max_length=MOST_VARIANTS),
        ]
        | None
    ) = None
    preview: PreviewId | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.variants is None) == (self.preview is None):
            raise ValueError("give either the variants or the id of a preview")
        return self


class SanitizeBody(Body):
    """Texts, or a CSV file and the column of it that holds text."""

    texts: (
        Annotated[
            list[Annotated[str, Field(max_length=LARGEST_TABLE)]], Field(max_length=MOST_TEXTS)
        ]
        | None
    ) = None
    csv: Annotated[str, Field(max_length=LARGEST_TABLE)] | None = None
    column: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","
    mechanism: MechanismName = defaults.MECHANISM
    epsilon: Epsilon | None = None
    set: Parameters = Field(default_factory=dict)
    seed: Seed | None = Field(None, description=SEED_HELP)
    originals: bool = Field(True, description="Give the original cells back, to show both.")
    spreadsheet: bool = Field(
        False, description="Put ' before cells of the CSV that a spreadsheet would run as formulas."
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.texts is None) == (self.csv is None):
            raise ValueError("give either texts or csv")
        if (self.csv is None) != (self.column is None):
            raise ValueError("csv and column belong together: name the column that holds text")
        return self


class BudgetBody(Body):
    """The most that may be spent under each promise, in nats per unit; null for no limit."""

    per_text: Nats | None
    total: Nats | None


class HistoryBody(Body):
    """Whether searches are written down on this machine; switching it off wipes them."""

    on: bool


class SearchBoxBody(Body):
    """Whether the browser's own search box may search here."""

    on: bool


def given_parameters(body: ObfuscateBody | ProtectionBody | SanitizeBody) -> dict[str, Any]:
    """What a body says of its mechanism, epsilon among it."""
    return body.set if body.epsilon is None else {**body.set, "epsilon": body.epsilon}
