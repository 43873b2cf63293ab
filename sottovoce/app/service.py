"""The service: each address, and what it is for. The work itself is done elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI, Request, Security
from fastapi.security import APIKeyHeader
from starlette.responses import RedirectResponse, Response, StreamingResponse

from sottovoce import __version__
from sottovoce.app import descriptions, failures, openapi, search_box_routes, searxng
from sottovoce.app.descriptions import Health, LedgerState, Mechanisms, Plane, Voices
from sottovoce.app.failures import Json
from sottovoce.app.history import HistoryState
from sottovoce.app.openapi import documented
from sottovoce.app.queues import WorkQueue
from sottovoce.app.risk import Risk, risk_of
from sottovoce.app.sanitizing import Sanitized
from sottovoce.app.sanitizing import sanitize as sanitize_in_memory
from sottovoce.app.schemas import (
    BudgetBody,
    HistoryBody,
    ObfuscateBody,
    PreviewBody,
    ProtectionBody,
    RiskBody,
    SanitizeBody,
    SearchBody,
)
from sottovoce.app.searching import OBFUSCATED, PREVIEWED, SEARCHED, draw_preview, run_search
from sottovoce.app.security import Guard, needs_token
from sottovoce.app.settings import Settings
from sottovoce.app.state import Service
from sottovoce.app.streaming import NDJSON, Tell, Work, silent, stream
from sottovoce.errors import SottovoceError

PAGE = Path(__file__).with_name("page")
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
DOCS_STYLE = Path(__file__).with_name("docs.css")


def create_app(settings: Settings | None = None, service: Service | None = None) -> FastAPI:
    """The whole service."""
    service = service or Service(settings or Settings())
    app = FastAPI(
        title="sottovoce",
        version=__version__,
        description=openapi.DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=service.lifespan,
        default_response_class=Json,
    )
    failures.install(app)
    _open_routes(app, service)
    _token_routes(app, service)
    page = (PAGE / "index.html").read_bytes()
    search_box_routes.add_routes(app, service, page, [Depends(_trusted)])
    if service.settings.searxng_json:
        searxng.add_routes(app, service)
    app.add_middleware(Guard, settings=service.settings, also_opens=service.search_box.opens)
    app.state.service = service
    return app


async def _trusted(
    request: Request,
    _: str | None = Security(
        APIKeyHeader(
            name="X-Sottovoce-Token",
            auto_error=False,
            description="The token of the running service; it stands in the printed address.",
        )
    ),
) -> None:
    """Let only those pass who have the token, whatever the method."""
    if not request.state.trusted:
        raise needs_token()


def _open_routes(app: FastAPI, service: Service) -> None:
    """What anybody on this machine may read: nothing of it is anybody's text."""

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return Response((PAGE / "index.html").read_bytes(), media_type=TYPES[".html"])

    @app.get("/open/{code}", include_in_schema=False)
    async def open_page(code: str) -> Response:
        token = f"#token={service.settings.token}" if service.opening.use(code) else ""
        return RedirectResponse(f"/{token}", 303)

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        return _file(name) or Json({"error": failures.WORDS[404], "kind": "usage"}, 404)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return Response(openapi.render(app.openapi()), media_type="text/html")

    @app.get("/docs.css", include_in_schema=False)
    async def docs_style() -> Response:
        return Response(DOCS_STYLE.read_bytes(), media_type=TYPES[".css"])

    @app.get("/health", **documented(Health))
    async def health() -> Response:
        """Whether everything that a search needs is there, and what to do if not."""
        parts = service.parts
        problems = await service.checking.do(parts.problems) if parts.ready else []
        return Json(descriptions.health_of(parts, problems))

    @app.get("/v1/mechanisms", **documented(Mechanisms))
    async def mechanisms() -> Response:
        """What each mechanism does and promises, its paper, and the audit's verdict."""
        return await service.describe(descriptions.all_mechanisms)

    @app.get("/v1/voices", **documented(Voices))
    async def voices(request: Request) -> Response:
        """The privacy settings in words, with what was measured of each on this collection."""
        told = partial(descriptions.all_voices, trusted=request.state.trusted)
        return await service.describe(told)

    @app.get("/v1/plane", **documented(Plane))
    async def plane() -> Response:
        """Risk and utility of all settings measured on this collection."""
        return await service.describe(descriptions.plane)


def _token_routes(app: FastAPI, service: Service) -> None:
    """What changes something, or shows what somebody typed."""
    parts, history, previews = service.parts, service.history, service.previews
    token = [Depends(_trusted)]

    @app.post("/v1/obfuscate", dependencies=token, **documented(OBFUSCATED))
    async def obfuscate(body: ObfuscateBody) -> Response:
        """Variants of a text; nothing is sent, nothing is counted."""
        return Json((await service.batches.obfuscate(body)).to_dict())

    @app.post("/v1/setting", dependencies=token, **documented(descriptions.DescribedSetting))
    async def setting(body: ProtectionBody) -> Response:
        """What a setting promises and costs, and what was measured of it."""
        return await service.describe(partial(descriptions.describe_setting, body))

    @app.post("/v1/preview", dependencies=token, **documented(PREVIEWED))
    async def preview(body: PreviewBody) -> Response:
        """Draw variants without sending them. They are counted now.

        Words that were sent before get the same substitutes, at no cost; with ``fresh`` all are
        drawn anew, and counted.

        Choosing among draws by looking at them voids the promise.
        """
        return Json(await service.drawing.do(partial(draw_preview, parts, previews, body)))

    @app.post("/v1/search", dependencies=token, **documented(SEARCHED, streams=True))
    async def search(body: SearchBody, request: Request) -> Response:
        """Search: only variants leave. With Accept: application/x-ndjson, step by step."""

        def work(tell: Tell) -> dict[str, Any]:
            answer = run_search(parts, previews, body, tell)
            with suppress(SottovoceError):  # The search is done, and stands.
                history.add(body.query, answer["mechanism"], answer["release"])
            return answer

        return await _long(request, service.long_work, work)

    @app.post("/v1/risk", dependencies=token, **documented(Risk))
    async def risk(body: RiskBody) -> Response:
        """Attack the variants of one query, as a stranger who knows everything else would."""

        def work() -> Risk:
            protection, variants = parts.protection(body), body.variants
            if body.preview is not None:
                preview = previews.get(body.preview, body.query, protection)
                variants = list(preview.release.result.variants)
            return risk_of(parts, protection, body.query, variants or [])

        return Json(await service.long_work.do(work))

    @app.post("/v1/sanitize", dependencies=token, **documented(Sanitized, streams=True))
    async def sanitize(body: SanitizeBody, request: Request) -> Response:
        """Replace texts, or a column of a CSV file; in memory, nothing is counted or kept."""
        work = partial(sanitize_in_memory, parts, body)
        return await _long(request, service.long_work, work)

    @app.get("/v1/ledger", dependencies=token, **documented(LedgerState))
    async def ledger() -> Response:
        """What was spent, what is left, and the latest records."""
        return Json(await service.accounting.do(descriptions.ledger_state))

    @app.put("/v1/ledger/budget", dependencies=token, **documented(LedgerState))
    async def budget(body: BudgetBody) -> Response:
        """Limit what may be spent, under each promise, in nats per unit of distance."""
        work = partial(descriptions.set_budget, body.per_text, body.total)
        return Json(await service.accounting.do(work))

    @app.get("/v1/history", dependencies=token, **documented(HistoryState))
    async def read_history() -> Response:
        """What was searched for, if that is written down."""
        return Json(await service.accounting.do(history.state))

    def changed(change: Callable[[], None]) -> HistoryState:
        change()
        return history.state()

    @app.put("/v1/history", dependencies=token, **documented(HistoryState))
    async def switch_history(body: HistoryBody) -> Response:
        """Write searches down on this machine, or stop and wipe them."""
        work = partial(changed, partial(history.switch, body.on))
        return Json(await service.accounting.do(work))

    @app.delete("/v1/history", dependencies=token, **documented(HistoryState))
    async def wipe_history() -> Response:
        """Forget all searches."""
        return Json(await service.accounting.do(partial(changed, history.wipe)))


async def _long(request: Request, threads: WorkQueue, work: Work) -> Response:
    """The result of long work; as a stream of its steps for whoever accepts that."""
    if NDJSON in request.headers.get("accept", ""):
        return StreamingResponse(stream(threads, work), media_type=NDJSON)
    return Json(await threads.do(partial(work, silent)))


def _file(name: str) -> Response | None:
    """A file of the page; only names that are there, so that no path leads elsewhere."""
    files = {file.name: file for file in PAGE.iterdir() if file.is_file()}
    if name not in files:
        return None
    content_type = TYPES.get(files[name].suffix, "text/plain")
    return Response(files[name].read_bytes(), media_type=content_type)
