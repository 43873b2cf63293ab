"""Searches as SearXNG answers them in JSON, for programs that can ask nobody else.

They send the query in the address, or in a form. It is obfuscated and counted like any other
search: whoever asks gets hits, and cannot choose how low the voice is.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlsplit

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from sottovoce.app.failures import Json
from sottovoce.app.schemas import SearchBody
from sottovoce.app.searching import run_search
from sottovoce.app.security import needs_token
from sottovoce.app.streaming import silent
from sottovoce.errors import UsageError

if TYPE_CHECKING:
    from fastapi import FastAPI

    from sottovoce.app.state import Service

PER_PAGE, MOST_PAGES = 10, 10
FORM = "application/x-www-form-urlencoded"


def add_routes(app: FastAPI, service: Service) -> None:
    """``/search``, as SearXNG has it; other parameters than these three change nothing."""

    @app.api_route("/search", methods=["GET", "POST"], include_in_schema=False)
    async def search(request: Request) -> Response:
        if not request.state.trusted:
            raise needs_token()
        fields = await _fields(request)
        if fields.get("format") != "json":
            problem = {"error": "this answers JSON alone: say format=json", "kind": "usage"}
            return Json(problem, 403)
        page, body = _asked(fields)
        if page > MOST_PAGES:
            return Json(_answer(body.query, [], None, 0))
        work = partial(run_search, service.parts, service.previews, body, silent)
        result = await service.long_work.do(work)
        return Json(_answer(body.query, result["hits"], result, page))


async def _fields(request: Request) -> dict[str, str]:
    """What was asked for: in the address, or in the form that is the body."""
    fields = parse_qsl(request.scope["query_string"].decode("latin-1"))
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() == FORM:
        try:
            fields += parse_qsl((await request.body()).decode("utf-8"), max_num_fields=50)
        except ValueError:
            raise UsageError("the form cannot be read") from None
    return dict(fields)


def _asked(fields: dict[str, str]) -> tuple[int, SearchBody]:
    """The page that is wanted, from 1, and the search that reaches it."""
    number = fields.get("pageno", "1")
    page = int(number) if number.isascii() and number.isdigit() and len(number) < 6 else 0
    if page < 1:
        raise UsageError("pageno counts from 1")
    try:
        top = min(page, MOST_PAGES) * PER_PAGE
        return page, SearchBody(query=fields.get("q", ""), top=top, measure=False)
    except ValidationError:
        raise UsageError("q: give something to search for, of at most 2000 characters") from None


def _answer(
    query: str, hits: list[dict[str, Any]], result: dict[str, Any] | None, page: int
) -> dict[str, Any]:
    """The fields that SearXNG answers; those that we have nothing for are empty."""
    shown = hits[(page - 1) * PER_PAGE :] if page else []
    engine = result["engine"] if result else ""
    problem = result["problem"] if result else None
    return {
        "query": query,
        "number_of_results": result["pool"] if result else 0,
        "results": [_result(hit, engine) for hit in shown],
        "answers": [],
        "corrections": [],
        "infoboxes": [],
        "suggestions": [],
        "unresponsive_engines": [[engine, problem]] if problem else [],
    }


def _result(hit: dict[str, Any], engine: str) -> dict[str, Any]:
    """A hit; its score falls with its rank, since some programs sort by it."""
    url = hit["doc_id"]
    if urlsplit(url).scheme not in ("http", "https"):
        url = f"urn:sottovoce:{quote(url, safe='')}"
    return {
        "url": url,
        "parsed_url": list(urlsplit(url))[:5],
        "title": hit["title"] or hit["doc_id"],
        "content": hit["snippet"],
        "engine": engine,
        "engines": [engine],
        "positions": [hit["rank"]],
        "score": 1 / hit["rank"],
        "category": "general",
        "template": "default.html",
        "publishedDate": None,
        "thumbnail": "",
        "img_src": "",
        "priority": "",
    }
