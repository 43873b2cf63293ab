"""What a server answered: hits, or the reason why there are none; errors repeat nothing of it."""

from __future__ import annotations

import html
import json
import math
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Any

from sottovoce.engines.address import sendable
from sottovoce.engines.base import EngineError, Hit
from sottovoce.engines.documents import beginning

LONGEST_WAIT = 30.0
"""An engine that asks to be left alone for longer, in seconds, is."""

_BUSY = {502, 503, 504}
_CAPTCHA = re.compile(
    rb"captcha|not a robot|(?:are you|you are|you're) (?:a )?(?:human|robot)|unusual traffic"
    rb"|cf-challenge|challenge-platform",
    re.IGNORECASE,
)
_INLINE = re.compile(r"</?(?:a|b|code|em|font|i|mark|small|span|strong|sub|sup|u)\b[^<>]*>", re.I)
_TAG = re.compile(r"<[a-z/!][^<>]*>", re.I)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class MayPass(EngineError):
    """A failure worth another try, after ``wait`` seconds where the engine said so."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


def read_json(host: str, status: int, headers: Message, data: bytes) -> Any:
    """The JSON of a good answer; an error that says what to do about any other."""
    page = headers.get_content_type() == "text/html" or data.lstrip()[:1] == b"<"
    if page and _CAPTCHA.search(data):
        raise EngineError(
            f"{host} wants to see a person: open it in a browser, then search more slowly (a "
            "longer pause, fewer queries)"
        )
    if status == 429 or status in _BUSY:
        raise _busy(host, status, headers)
    if not 200 <= status < 300:
        raise EngineError(f"{host} {_advice(status)}")
    if page:
        raise EngineError(
            f"{host} answered with a web page instead of JSON: check the url, and whether the "
            "server offers JSON at all"
        )
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise EngineError(f"{host} did not answer in JSON: check the url") from None


def _busy(host: str, status: int, headers: Message) -> EngineError:
    wait = _seconds(headers.get("Retry-After"))
    message = (
        f"{host} got too many requests (status 429): raise the pause, or lower the number of "
        "variants"
        if status == 429
        else f"{host} is not available now (status {status}): try later"
    )
    if wait is not None and wait > LONGEST_WAIT:
        return EngineError(f"{message}; it asks to be left alone for {wait:.0f} s")
    return MayPass(message, wait)


def _seconds(retry_after: str | None) -> float | None:
    """What a Retry-After header says, as a number of seconds or as a date."""
    if retry_after is None:
        return None
    if re.fullmatch(r"[0-9]{1,9}", retry_after.strip()):
        return float(retry_after)
    try:
        until = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    return max(0.0, (until.astimezone(UTC) - datetime.now(UTC)).total_seconds())


def _advice(status: int) -> str:
    match status:
        case 401 | 403:
            return f"refused (status {status}): it blocks you, or needs a key in the headers"
        case 404:
            return "has nothing there (status 404): check the path of the url"
        case 405:
            return "does not take this method (status 405): try the other of GET and POST"
        case _ if 300 <= status < 400:
            return (
                f"sends queries on to another address (status {status}), which is not followed: "
                "if you trust that address, make it the url"
            )
        case _ if 400 <= status < 500:
            return f"did not understand the request (status {status}): check url and body"
    return f"failed (status {status}): try later"


@dataclass(frozen=True)
class Fields:
    """Where in a result its parts are, as dotted paths; '' for none.

    A number in a path counts the items of a list, from 0.
    """

    id: str
    title: str = ""
    snippet: str = ""
    score: str = ""


def read_hits(host: str, rows: Any, fields: Fields, depth: int) -> list[Hit]:
    """The first ``depth`` results of a list, in its order; a repeated id counts once.

    Where there is no field for a score, it is 1 / rank.
    """
    hits: dict[str, Hit] = {}
    for row in rows:
        if len(hits) == depth:
            break
        doc_id = pick(row, fields.id)
        if not isinstance(doc_id, str | int) or isinstance(doc_id, bool) or doc_id == "":
            raise EngineError(f"{host}: a result has no id at '{fields.id}'")
        known = _CONTROL.sub("\ufffd", sendable(str(doc_id)))
        if known in hits:
            continue
        hits[known] = Hit(
            doc_id=known,
            score=_score(host, row, fields.score) if fields.score else 1 / (len(hits) + 1),
            title=plain_text(pick(row, fields.title)) if fields.title else "",
            snippet=beginning(plain_text(pick(row, fields.snippet))) if fields.snippet else "",
        )
    return list(hits.values())


def _score(host: str, row: Any, path: str) -> float:
    value = pick(row, path)
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf:
        with suppress(OverflowError):
            return float(value)
    raise EngineError(f"{host}: a result has no number at '{path}'")


def pick(value: Any, path: str) -> Any:
    """What stands at a dotted path; None where nothing does; all for ''."""
    for part in path.split(".") if path else ():
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def plain_text(value: Any) -> str:
    """A text, or texts of a list, without tags, entities, control characters and long blanks."""
    if isinstance(value, list):
        value = " ".join(item for item in value if isinstance(item, str))
    if not isinstance(value, str):
        return ""
    text = sendable(html.unescape(_TAG.sub(" ", _INLINE.sub("", value))))
    return " ".join(_CONTROL.sub(" ", text).split())
