"""Failures as answers: a status and one sentence, which never holds what was sent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from sottovoce.app import schemas
from sottovoce.app.loaded import LoadingError
from sottovoce.app.previews import NoPreviewError, OtherPreviewError
from sottovoce.app.queues import FullError, TooLongError
from sottovoce.engines.base import EngineError
from sottovoce.errors import SottovoceError, SpaceError, UsageError
from sottovoce.ledger import BudgetError, LedgerError, OtherCompanyError

if TYPE_CHECKING:
    from fastapi import FastAPI
    from fastapi.exceptions import RequestValidationError
    from starlette.requests import Request

KINDS: tuple[tuple[type[Exception], int, str], ...] = (
    (NoPreviewError, 404, "preview"),
    (OtherPreviewError, 409, "preview"),
    (BudgetError, 409, "budget"),
    (OtherCompanyError, 409, "company"),
    (FullError, 503, "full"),
    (LoadingError, 503, "loading"),
    (TooLongError, 504, "timeout"),
    (EngineError, 502, "engine"),
    (SpaceError, 503, "setup"),
    (LedgerError, 503, "ledger"),
    (UsageError, 422, "usage"),
    (SottovoceError, 503, "unavailable"),
)
WORDS = {404: "there is nothing at this address", 405: "this address does not take this method"}


class Json(JSONResponse):
    """JSON in ASCII: a text that is no valid Unicode cannot make an answer fail."""

    def render(self, content: Any) -> bytes:
        """As bytes; what JSON has no number for is an error, and so a plain 500."""
        return dumps(content)


def dumps(content: Any) -> bytes:
    """One line of JSON."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def failure(error: Exception) -> tuple[int, dict[str, Any]]:
    """The status and the body for an exception. One that nobody foresaw gives its kind only."""
    for kind, status, name in KINDS:
        if isinstance(error, kind):
            body: dict[str, Any] = {"error": str(error), "kind": name}
            if isinstance(error, BudgetError):
                body |= {"cost": error.cost, "spent": error.spent, "left": error.left}
            return status, body
    sentence = f"unexpected {type(error).__name__}; nothing is known to have been released"
    return 500, {"error": sentence, "kind": "unexpected"}


def answer(error: Exception) -> Json:
    """The response for an exception."""
    status, body = failure(error)
    later = error.retry_after if isinstance(error, FullError | LoadingError) else None
    return Json(body, status, headers=None if later is None else {"Retry-After": str(later)})


FIELDS = {
    name
    for body in vars(schemas).values()
    if isinstance(body, type) and issubclass(body, schemas.Body)
    for name in body.model_fields
}
"""The names of all fields that a request may have: these may be repeated."""


def problems(error: RequestValidationError) -> str:
    """What is wrong with a body: fields of ours by name, and nothing that was typed."""
    sentences = []
    for problem in error.errors():
        field = next((str(part) for part in problem["loc"][1:] if part in FIELDS), "")
        if problem["type"] == "extra_forbidden":
            sentence = "there is a field that is not known here: leave it out"
        elif problem["type"] == "string_pattern_mismatch":
            sentence = "give more than blanks"
        elif problem["type"] == "json_invalid":
            sentence = "the body is not JSON"
        else:
            sentence = str(problem["msg"]).removeprefix("Value error, ")
        sentences.append(f"{field}: {sentence}" if field else sentence)
    return "; ".join(dict.fromkeys(sentences[:5])) or "the request cannot be read"


def install(app: FastAPI) -> None:
    """Replace the framework's own answers, which repeat what was sent."""
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException

    async def unreadable(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for it alone
        return Json({"error": problems(error), "kind": "usage"}, 422)

    async def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 - registered for it alone
        sentence = WORDS.get(error.status_code, "the request cannot be read")
        body = {"error": sentence, "kind": "usage"}
        return Json(body, error.status_code, headers=dict(error.headers or {}))

    async def failed(_: Request, error: Exception) -> Response:
        return answer(error)

    app.add_exception_handler(RequestValidationError, unreadable)
    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(SottovoceError, failed)
