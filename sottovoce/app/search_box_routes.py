"""The addresses of the browser's search box."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sottovoce.app.failures import WORDS, Json
from sottovoce.app.openapi import documented
from sottovoce.app.schemas import SearchBoxBody
from sottovoce.app.search_box import DESCRIPTION_TYPE, Kind, SearchBoxState
from sottovoce.search.boundary import LONGEST_QUERY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastapi import FastAPI
    from fastapi.params import Depends

    from sottovoce.app.state import Service

NOTHING_HERE = {"error": WORDS[404], "kind": "usage"}


def add_routes(app: FastAPI, service: Service, page: bytes, token: Sequence[Depends]) -> None:
    """To switch it on and off with the token; to describe it and to ask with its key."""
    box, without_icon = service.search_box, page.replace(b"/static/icon.svg", b"data:,")

    @app.get("/v1/search-box", dependencies=token, **documented(SearchBoxState))
    async def read_search_box() -> Response:
        """Whether browsers may search here, and the address to give them."""
        return Json(await service.accounting.do(box.state))

    @app.put("/v1/search-box", dependencies=token, **documented(SearchBoxState))
    async def switch_search_box(body: SearchBoxBody) -> Response:
        """Let browsers search here, or stop it; then the address they have is good for nothing."""
        await service.accounting.do(partial(box.switch, body.on))
        return Json(await service.accounting.do(box.state))

    @app.get("/opensearch/{key}/{kind}.xml", include_in_schema=False)
    async def description(key: str, kind: Kind) -> Response:
        if not box.opens(key):
            return Json(NOTHING_HERE, 404)
        return Response(box.description(key, kind), media_type=DESCRIPTION_TYPE)

    @app.get("/ask", include_in_schema=False)
    async def ask_by_fragment() -> Response:
        """The page, said not to be here, and without an icon.

        So Chromium does not show the address in its history, and keeps no icon for it.
        """
        return Response(without_icon, 404, media_type="text/html; charset=utf-8")

    @app.post("/ask/{key}", include_in_schema=False)
    async def ask(request: Request) -> Response:
        """From the address bar alone: the guard has seen to that."""
        fields = parse_qs((await request.body()).decode("utf-8", "replace"), max_num_fields=20)
        query = fields.get("q", [""])[0][:LONGEST_QUERY]
        return RedirectResponse(f"/#asked={box.keep(query)}", 303)

    @app.get("/asked/{code}", include_in_schema=False)
    async def asked(code: str) -> Response:
        query = box.take(code)
        if query is None:
            return Json(NOTHING_HERE, 404)
        return Json({"query": query, "token": service.settings.token})
