"""Failures as answers: a status, one sentence, and never what was asked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from sottovoce.app.previews import NoPreviewError, OtherPreviewError
from sottovoce.app.queueing import FullError, TooLongError
from sottovoce.app.state import LoadingError
from sottovoce.engines.base import EngineError
from sottovoce.errors import SottovoceError, SpaceError, UsageError
from sottovoce.ledger import BudgetError, LedgerError

if TYPE_CHECKING:
    from fastapi import FastAPI
    from fastapi.exceptions import RequestValidationError
    from starlette.requests import Request

KINDS: tuple[tuple[type[Exception], int, str], ...] = (
    (NoPreviewError, 404, "preview"),
    (OtherPreviewError, 409, "preview"),
    (BudgetError, 409, "budget"),
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
    said = f"unexpected {type(error).__name__}; nothing is known to have been released"
    return 500, {"error": said, "kind": "unexpected"}


def answer(error: Exception) -> Json:
    """The response for an exception."""
    status, body = failure(error)
    later = error.retry_after if isinstance(error, FullError | LoadingError) else None
    return Json(body, status, headers=None if later is None else {"Retry-After": str(later)})


def problems(error: RequestValidationError) -> str:
    """What is wrong with a body: fields of ours by name, and nothing that was typed."""
    from sottovoce.app import schemas

    known = {
        name
        for each in vars(schemas).values()
        if isinstance(each, type) and issubclass(each, schemas.Body)
        for name in each.model_fields
    }
    said = []
    for each in error.errors():
        field = next((str(part) for part in each["loc"][1:] if part in known), "")
        if each["type"] == "extra_forbidden":
            what = "there is a field that is not known here: leave it out"
        elif each["type"] == "string_pattern_mismatch":
            what = "give more than blanks"
        elif each["type"] == "json_invalid":
            what = "the body is not JSON"
        else:
            what = str(each["msg"]).removeprefix("Value error, ")
        said.append(f"{field}: {what}" if field else what)
    return "; ".join(dict.fromkeys(said[:5])) or "the request cannot be read"


def install(app: FastAPI) -> None:
    """Replace the framework's own answers, which repeat what was sent."""
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException

    async def unreadable(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for it alone
        return Json({"error": problems(error), "kind": "usage"}, 422)

    async def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 - registered for it alone
        said = WORDS.get(error.status_code, "the request cannot be read")
        body = {"error": said, "kind": "usage"}
        return Json(body, error.status_code, headers=dict(error.headers or {}))

    async def failed(_: Request, error: Exception) -> Response:
        return answer(error)

    app.add_exception_handler(RequestValidationError, unreadable)
    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(SottovoceError, failed)
