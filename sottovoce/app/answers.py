"""What answers hold, for the OpenAPI document; a test compares them with real answers."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

DESCRIPTION = (
    "Search, and release text, without saying what you really mean out loud. The service runs on "
    "your own machine. Texts travel in bodies only, never in addresses. Calls that change "
    "something, or show what was typed, need the token that the start printed, in the header "
    "X-Sottovoce-Token or as Authorization: Bearer."
)


class Answer(BaseModel):
    """An answer may hold more than is written here."""

    model_config = ConfigDict(extra="allow")


class Failure(Answer):
    """What went wrong, and what to do; it never holds what was sent."""

    error: str
    kind: str


class Health(Answer):
    """``status`` is loading, ready or incomplete; ``problems`` say what to do.

    What is not loaded yet, or not there, is null.
    """

    status: str
    problems: list[str]
    version: str
    collection: str | None
    engine: str | None
    remote: bool | None
    reranker: str | None
    space: str | None
    log: int | None


class Figure(Answer):
    """A measured share, its interval, of how many queries, and the attack or encoder it is of."""

    value: float
    low: float
    high: float
    queries: int


class Promise(Answer):
    """A guarantee, as data and in one sentence."""

    notion: str
    epsilon: float | None
    metric: str | None
    scope: str
    caveats: list[str]
    sentence: str


class Guarantee(Answer):
    """A guarantee, as data."""

    notion: str
    epsilon: float | None
    metric: str | None
    scope: str
    caveats: list[str]


class Audit(Answer):
    """The verdict on a mechanism with its usual parameters: by whom, when, on which space."""

    verdict: str
    meaning: str
    claims: list[dict[str, Any]]
    why: str | None


class Account(Answer):
    """What the ledger counts a setting's releases with: equal in all three, or another account."""

    notion: str
    metric: str | None
    space_sha256: str | None


class Described(Answer):
    """A setting; ``cost`` in nats per unit of distance, null where nothing bounds it.

    ``account`` is that of the ledger, ``point`` the id of its point in the plane, if it has one.
    """

    mechanism: str
    spec: str
    epsilon: float | None
    n: int
    release: str
    guarantee: Promise
    account: Account
    cost: float | None
    warning: str | None
    point: str | None
    risk: dict[str, Figure | None]
    utility: Figure | None
    baseline: float | None
    sentences: dict[str, str | None]
    not_measured: str | None


class VoiceView(Described):
    """A setting with a name."""

    id: str
    name: str
    line: str


class Voices(Answer):
    """The voices, and where their figures come from."""

    default: str
    measured: dict[str, Any] | None
    not_measured: str | None
    voices: list[VoiceView]


class Point(Answer):
    """A setting in the plane of risk and utility; ``spec`` is null where others made releases."""

    id: str
    spec: str | None
    release: str
    n: int
    title: str
    utility: Figure | None
    risk: dict[str, Figure | None]
    tooltip: str


class Plane(Answer):
    """All measured settings of this collection."""

    measured: dict[str, Any] | None
    not_measured: str | None
    points: list[Point]


class MechanismView(Answer):
    """A mechanism with its usual parameters; ``published`` is what its paper claims beyond."""

    name: str
    summary: str
    paper: str
    spec: str
    parameters: list[dict[str, Any]]
    guarantee: Promise
    published: Promise | None
    protects: str
    warning: str | None
    audit: Audit


class Mechanisms(Answer):
    """All mechanisms."""

    mechanisms: list[MechanismView]


class Obfuscated(Answer):
    """The JSON line of ``sottovoce obfuscate``."""

    text: str
    variants: list[str]
    mechanism: str
    epsilon: float | None
    release: str
    guarantee: Guarantee
    spent: float | None
    unchanged: float | None
    unknown: list[str]
    kept: list[str]
    seeded: bool


class Previewed(Obfuscated):
    """Variants that are counted and not sent yet; ``left`` is null without a budget."""

    preview: str
    expires_in: float
    left: float | None
    recalled: bool
    to: str


class HitView(Answer):
    """A document, in the order of the true query; ``found_by`` are the variants that found it."""

    doc_id: str
    rank: int
    score: float
    title: str
    snippet: str
    found_by: list[int]


class Found(Answer):
    """The JSON of ``sottovoce search``, and what is left of the budget.

    ``protected`` is false where the query has no word that could be replaced.
    """

    query: str
    sent: list[str]
    hits: list[HitView]
    pool: int
    mechanism: str
    release: str
    guarantee: Guarantee
    spent: float | None
    left: float | None
    protected: bool
    said_aloud: int
    words: int
    problem: str | None
    seeded: bool


class Risk(Answer):
    """What attacks on one query gave; ``words`` is null where no attack on words applies."""

    query: dict[str, Any]
    words: dict[str, Any] | None
    sentence: str


class SanitisedRow(Answer):
    """A cell; ``changed`` are the places [start, end] in ``sanitised`` that differ."""

    sanitised: str
    changed: list[list[int]]


class Sanitised(Answer):
    """Cells side by side, the CSV file if one was given, and the report."""

    rows: list[SanitisedRow]
    csv: str | None
    report: dict[str, Any]


class LedgerView(Answer):
    """Limits, what was spent under each promise, and records for whoever has the token."""

    budget: dict[str, float | None]
    spent: list[dict[str, Any]]
    records: list[dict[str, Any]] | None


class HistoryView(Answer):
    """Whether searches are written down, and which, newest first."""

    on: bool
    searches: list[dict[str, Any]]


FAILURES = {
    400: "The request cannot be read.",
    401: "The token is missing or wrong.",
    403: "The request comes from another site.",
    404: "There is no such preview any more.",
    408: "The body came too slowly.",
    409: "The budget is spent, or the preview is another one.",
    413: "The body is too large.",
    421: "The service does not answer to this host name.",
    422: "A field is missing, unknown or out of bounds.",
    429: "Too many requests.",
    502: "The search engine failed.",
    503: "Too much is waiting, or something has to be set up first.",
    504: "No answer in time.",
}


def of(model: type[Answer], *, streams: bool = False) -> dict[str, Any]:
    """The documentation of a route that answers like this."""
    responses: dict[int | str, dict[str, Any]] = {
        status: {"model": Failure, "description": said} for status, said in FAILURES.items()
    }
    responses[200] = {"model": model, "description": (model.__doc__ or "").strip()}
    if streams:
        responses[200]["content"] = {
            "application/x-ndjson": {
                "schema": {
                    "type": "string",
                    "description": "One JSON event a line; the last has step done or failed.",
                }
            }
        }
    return {"responses": responses}
