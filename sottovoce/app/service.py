"""The service: each address, and what it is for. The work itself is done elsewhere."""

from __future__ import annotations

import secrets
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI, Request, Security
from fastapi.security import APIKeyHeader
from starlette.responses import RedirectResponse, Response, StreamingResponse

from sottovoce import __version__
from sottovoce.app import answers, describing, failures
from sottovoce.app.batching import Batches
from sottovoce.app.docs_page import render as render_docs
from sottovoce.app.failures import Json
from sottovoce.app.health import health_of
from sottovoce.app.history import History
from sottovoce.app.ledgering import ledger_of, limit
from sottovoce.app.previews import Previews
from sottovoce.app.queueing import Lane
from sottovoce.app.risk import risk_of
from sottovoce.app.sanitising import sanitize
from sottovoce.app.schemas import (
    BudgetBody,
    Chosen,
    HistoryBody,
    ObfuscateBody,
    PreviewBody,
    RiskBody,
    SanitizeBody,
    SearchBody,
)
from sottovoce.app.searching import draw_preview, run_search
from sottovoce.app.security import Guard, needs_token
from sottovoce.app.settings import Settings
from sottovoce.app.state import Workbench
from sottovoce.app.streaming import NDJSON, Tell, silent, stream
from sottovoce.errors import SottovoceError
from sottovoce.threads import available_cores, single_threaded_blas

PAGE = Path(__file__).with_name("page")
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
LOADING_ENDS = 5.0
DOCS_STYLE = Path(__file__).with_name("docs.css")
NO_PAGE = (
    b"<!doctype html><title>sottovoce</title><p>The page is missing: see <a href=/docs>/docs</a>."
)


class Service:
    """What the routes share: the workbench, and lanes so that slow work does not block quick."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.bench = Workbench(settings)
        self.previews = Previews()
        self.history = History()
        cores = available_cores()
        self.quick = Lane("obfuscate", threads=cores, waiting=settings.waiting, timeout=120)
        self.batches = Batches(self.bench, self.quick, settings.waiting)
        self.slow = Lane("search and sanitise", threads=4, waiting=64, timeout=600)
        self._opening: str | None = None
        self.drawing = Lane("preview", threads=2, waiting=64, timeout=120)
        self.describing = Lane("settings", threads=2, waiting=256, timeout=30)
        self.light = Lane("accounts", threads=2, waiting=256, timeout=30)
        self.looking = Lane("health", threads=1, waiting=256, timeout=30)

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """All of them."""
        quick = (self.quick, self.drawing, self.describing, self.light, self.looking)
        return (*quick, self.slow)

    def opening(self) -> str:
        """An address that brings one browser, once, to the page with its token.

        It is what the browser is started with: other users may see that, so it is good for once.
        """
        self._opening = secrets.token_urlsafe(18)
        return self.settings.address.replace(
            f"#token={self.settings.token}", f"open/{self._opening}"
        )

    def opens(self, code: str) -> bool:
        """Whether this is the address's code; the right one is used up."""
        wanted = self._opening
        if wanted is None or not secrets.compare_digest(code.encode(), wanted.encode()):
            return False
        self._opening = None
        return True

    async def describe(self, work: Callable[[Workbench], dict[str, Any]]) -> Json:
        """What is known of settings, once it can be known."""
        self.bench.require_prepared()
        return Json(await self.describing.do(partial(work, self.bench)))

    @asynccontextmanager
    async def lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        """Load in the background; hold BLAS to one thread, so that no request changes another."""
        with single_threaded_blas():
            loading = threading.Thread(target=self.bench.prepare, name="loading", daemon=True)
            loading.start()
            try:
                yield
            finally:
                for lane in self.lanes:
                    lane.close()
                loading.join(LOADING_ENDS)  # Native code dislikes to be left in the middle.


def create_app(settings: Settings | None = None, service: Service | None = None) -> FastAPI:
    """The whole service."""
    chosen = settings or (service.settings if service else Settings())
    service = service or Service(chosen)
    app = FastAPI(
        title="sottovoce",
        version=__version__,
        description=answers.DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=service.lifespan,
        default_response_class=Json,
    )
    failures.install(app)
    _open_routes(app, service)
    _token_routes(app, service)
    app.add_middleware(Guard, settings=chosen)
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
        return _file("index.html") or Response(NO_PAGE, media_type="text/html")

    @app.get("/open/{code}", include_in_schema=False)
    async def open_page(code: str) -> Response:
        token = f"#token={service.settings.token}" if service.opens(code) else ""
        return RedirectResponse(f"/{token}", 303)

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        return _file(name) or Json({"error": failures.WORDS[404], "kind": "usage"}, 404)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return Response(render_docs(app.openapi()), media_type="text/html")

    @app.get("/docs.css", include_in_schema=False)
    async def docs_style() -> Response:
        return Response(DOCS_STYLE.read_bytes(), media_type=TYPES[".css"])

    @app.get("/health", **answers.of(answers.Health))
    async def health() -> Response:
        """Whether everything that a search needs is there, and what to do if not."""
        bench = service.bench
        if not bench.prepared:
            return Json(health_of(bench, []))
        return Json(health_of(bench, await service.looking.do(bench.problems)))

    @app.get("/v1/mechanisms", **answers.of(answers.Mechanisms))
    async def mechanisms() -> Response:
        """What each mechanism does and promises, its paper, and the audit's verdict."""
        return await service.describe(describing.all_mechanisms)

    @app.get("/v1/voices", **answers.of(answers.Voices))
    async def voices() -> Response:
        """The privacy settings in words, with what was measured of each on this collection."""
        return await service.describe(describing.all_voices)

    @app.get("/v1/plane", **answers.of(answers.Plane))
    async def plane() -> Response:
        """Risk and utility of all settings measured on this collection."""
        return await service.describe(describing.plane)

    @app.get("/v1/ledger", **answers.of(answers.LedgerView))
    async def ledger(request: Request) -> Response:
        """What was spent and what is left; single records only for whoever has the token."""
        return Json(await service.light.do(partial(ledger_of, records=request.state.trusted)))


def _token_routes(app: FastAPI, service: Service) -> None:
    """What changes something, or shows what somebody typed."""
    bench, history, previews = service.bench, service.history, service.previews
    token = [Depends(_trusted)]

    @app.post("/v1/obfuscate", dependencies=token, **answers.of(answers.Obfuscated))
    async def obfuscate(body: ObfuscateBody) -> Response:
        """Variants of a text; nothing is sent, nothing is counted."""
        return Json((await service.batches.obfuscate(body)).to_dict())

    @app.post("/v1/setting", dependencies=token, **answers.of(answers.Described))
    async def setting(body: Chosen) -> Response:
        """What a setting promises and costs, and what was measured of it."""
        return await service.describe(partial(describing.describe_setting, body))

    @app.post("/v1/preview", dependencies=token, **answers.of(answers.Previewed))
    async def preview(body: PreviewBody) -> Response:
        """Draw variants without sending them. They are counted now; a redraw costs again."""
        return Json(await service.drawing.do(partial(draw_preview, bench, previews, body)))

    @app.post("/v1/search", dependencies=token, **answers.of(answers.Found, streams=True))
    async def search(body: SearchBody, request: Request) -> Response:
        """Search: only variants leave. With Accept: application/x-ndjson, step by step."""

        def work(tell: Tell) -> dict[str, Any]:
            found = run_search(bench, previews, body, tell)
            with suppress(SottovoceError):  # The search is done, and stands.
                history.add(body.query, found["mechanism"], found["release"])
            return found

        return await _long(request, service.slow, work)

    @app.post("/v1/risk", dependencies=token, **answers.of(answers.Risk))
    async def risk(body: RiskBody) -> Response:
        """Attack the variants of one query, as a stranger who knows everything else would."""

        def work() -> dict[str, Any]:
            choice, variants = bench.choice(body), body.variants
            if body.preview is not None:
                preview = previews.get(body.preview, body.query, choice.key)
                variants = list(preview.release.variants)
            return risk_of(bench, choice, body.query, variants or [])

        return Json(await service.slow.do(work))

    @app.post("/v1/sanitize", dependencies=token, **answers.of(answers.Sanitised, streams=True))
    async def sanitise(body: SanitizeBody, request: Request) -> Response:
        """Replace texts, or a column of a CSV file; in memory, nothing is counted or kept."""
        return await _long(request, service.slow, partial(sanitize, bench, body))

    @app.put("/v1/ledger/budget", dependencies=token, **answers.of(answers.LedgerView))
    async def budget(body: BudgetBody) -> Response:
        """Limit what may be spent, under each promise, in nats per unit of distance."""
        return Json(await service.light.do(partial(limit, body.per_text, body.total)))

    def shown() -> dict[str, Any]:
        return {"on": history.on, "searches": history.entries()}

    def changed(change: Callable[[], None]) -> dict[str, Any]:
        change()
        return shown()

    @app.get("/v1/history", dependencies=token, **answers.of(answers.HistoryView))
    async def read_history() -> Response:
        """What was searched for, if that is written down."""
        return Json(await service.light.do(shown))

    @app.put("/v1/history", dependencies=token, **answers.of(answers.HistoryView))
    async def switch_history(body: HistoryBody) -> Response:
        """Write searches down on this machine, or stop and wipe them."""
        return Json(await service.light.do(partial(changed, partial(history.switch, body.on))))

    @app.delete("/v1/history", dependencies=token, **answers.of(answers.HistoryView))
    async def wipe_history() -> Response:
        """Forget all searches."""
        return Json(await service.light.do(partial(changed, history.wipe)))


async def _long(request: Request, lane: Lane, work: Callable[[Tell], dict[str, Any]]) -> Response:
    """The result of long work; as a stream of its steps for whoever accepts that."""
    if NDJSON in request.headers.get("accept", ""):
        return StreamingResponse(stream(lane, work), media_type=NDJSON)
    return Json(await lane.do(partial(work, silent)))


def _file(name: str) -> Response | None:
    """A file of the page; only names that are there, so that no path leads elsewhere."""
    if not PAGE.is_dir() or name not in {each.name for each in PAGE.iterdir() if each.is_file()}:
        return None
    file = PAGE / name
    return Response(file.read_bytes(), media_type=TYPES.get(file.suffix, "text/plain"))
