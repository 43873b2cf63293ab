"""The service for language-model requests: each address, and what it is for.

An OpenAI-compatible proxy, LiteLLM's generic guardrail, and a look at what would be sent. The work
itself is done in ``sottovoce.prompts``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any

from fastapi import Depends, FastAPI, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sottovoce import __version__
from sottovoce.app import failures
from sottovoce.app.failures import Json, dumps
from sottovoce.app.queues import FullError, TooLongError, WorkQueue
from sottovoce.app.security import Guard, needs_token
from sottovoce.app.settings import Settings
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.files import parse_json
from sottovoce.prompts import (
    AnswerStream,
    ChatRequest,
    Guardrail,
    PromptProtection,
    ProtectedPrompt,
    Upstream,
    UpstreamError,
    read_chat,
    restored_answer,
)
from sottovoce.prompts.guardrail import blocked
from sottovoce.threads import single_threaded_blas

GUARDRAIL = "/beta/litellm_basic_guardrail_api"
EVENTS = "text/event-stream"
REPORT = "sottovoce"
"""The field of an answer that says what was sent."""
NO_UPSTREAM = "there is no upstream: start with --upstream https://api.example.org/v1"


@dataclass
class PromptService:
    """What the routes share. ``show`` is told, in one line without text, what leaves for where."""

    settings: Settings
    protection: PromptProtection
    upstream: Upstream | None = None
    show: Callable[[str], None] = print

    def __post_init__(self) -> None:
        timeout = 60.0 + (self.upstream.timeout if self.upstream else 0.0)
        self.asking = WorkQueue("prompts", threads=16, waiting=64, timeout=timeout)
        self.guarding = WorkQueue("guardrail", threads=4, waiting=256, timeout=60)
        self.guardrail = Guardrail(self.protection, show=partial(self._say, "litellm"))

    def _say(self, destination: str, prompt: ProtectedPrompt) -> None:
        self.show(f"{destination}: {prompt.sentence}")

    def preview(self, body: bytes) -> dict[str, Any]:
        """What would be sent; nothing is, and nothing is counted."""
        request = read_chat(_json(body))
        return _report(request, self.protection.protect(request.messages))

    def complete(self, request: ChatRequest) -> dict[str, Any]:
        """The answer to a protected request, with its values, and what was sent."""
        upstream, prompt = self._counted(request)
        answer = upstream.complete(request.body_with(prompt.texts))
        return {**restored_answer(answer, prompt.table), REPORT: _report(request, prompt)}

    def stream(self, request: ChatRequest) -> Iterator[bytes]:
        """The same in pieces; the first of them says what was sent."""
        upstream, prompt = self._counted(request)
        answer = AnswerStream(prompt.table)
        report: dict[str, Any] = {REPORT: _report(request, prompt)}
        for event in upstream.stream(request.body_with(prompt.texts)):
            yield _event({**answer.piece(event), **report})
            report = {}
        if (rest := answer.rest()) is not None:
            yield _event(rest)
        yield b"data: [DONE]\n\n"

    def models(self) -> Any:
        """The upstream's models."""
        if self.upstream is None:
            raise UsageError(NO_UPSTREAM)
        return self.upstream.models()

    def _counted(self, request: ChatRequest) -> tuple[Upstream, ProtectedPrompt]:
        """A request as it may be sent, counted."""
        if self.upstream is None:
            raise UsageError(NO_UPSTREAM)
        prompt = self.protection.protect(request.messages)
        prompt = self.protection.count(prompt, self.upstream.name)
        self._say(self.upstream.name, prompt)
        return self.upstream, prompt

    @asynccontextmanager
    async def lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        """Hold BLAS to one thread, so that no request changes another."""
        with single_threaded_blas():
            try:
                yield
            finally:
                self.asking.close()
                self.guarding.close()


def create_app(service: PromptService) -> FastAPI:
    """The whole service."""
    app = FastAPI(
        title="sottovoce proxy",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=service.lifespan,
        default_response_class=Json,
    )
    failures.install(app)

    async def failed(_: Request, error: Exception) -> Response:
        return _failure(error)

    app.add_exception_handler(SottovoceError, failed)
    _routes(app, service)
    app.add_middleware(Guard, settings=service.settings)
    app.add_middleware(BlockingAnswers)
    return app


async def _trusted(request: Request) -> None:
    if not request.state.trusted:
        raise needs_token()


def _routes(app: FastAPI, service: PromptService) -> None:
    token = [Depends(_trusted)]

    @app.get("/health")
    async def health() -> Response:
        upstream = service.upstream and service.upstream.name
        return Json({"status": "ready", "version": __version__, "upstream": upstream})

    @app.get("/v1/models", dependencies=token)
    async def models() -> Response:
        return Json(await service.asking.do(service.models))

    @app.post("/v1/chat/completions", dependencies=token)
    async def complete(request: Request) -> Response:
        chat = read_chat(_json(await request.body()))
        if not chat.stream:
            return Json(await service.asking.do(partial(service.complete, chat)))
        pieces = await begun(service.asking, partial(service.stream, chat))
        return StreamingResponse(pieces, media_type=EVENTS)

    @app.post("/v1/prompts/preview", dependencies=token)
    async def preview(request: Request) -> Response:
        return Json(await service.asking.do(partial(service.preview, await request.body())))

    @app.post(GUARDRAIL, dependencies=token)
    async def guardrail(request: Request) -> Response:
        body = await request.body()
        return Json(await service.guarding.do(lambda: service.guardrail.answer(_json(body))))


async def begun(threads: WorkQueue, pieces: Callable[[], Iterator[bytes]]) -> AsyncIterator[bytes]:
    """Pieces that a thread makes, once the first is there: until then, an error is a status.

    After that it is a last event, which clients raise; what has been shown stands.
    """
    loop, made, gone = (
        asyncio.get_running_loop(),
        asyncio.Queue[bytes | Exception | None](),
        Event(),
    )

    def post(piece: bytes | Exception | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(made.put_nowait, piece)

    def run() -> None:
        try:
            for piece in pieces():
                if gone.is_set():
                    return
                post(piece)
            post(None)
        except Exception as error:
            post(error)

    end = loop.time() + threads.timeout
    future = threads.submit(run)

    async def next_piece() -> bytes | Exception | None:
        try:
            return await asyncio.wait_for(made.get(), max(0.0, end - loop.time()))
        except TimeoutError:
            return TooLongError(threads.timeout)

    async def rest(piece: bytes | Exception | None) -> AsyncIterator[bytes]:
        try:
            while piece is not None:
                if isinstance(piece, Exception):
                    yield _event(_openai_error(piece)[1])
                    return
                yield piece
                piece = await next_piece()
        finally:
            gone.set()
            future.cancel()

    try:
        first = await next_piece()
    except BaseException:
        gone.set()
        raise
    if isinstance(first, Exception):
        gone.set()
        raise first
    return rest(first)


class BlockingAnswers:
    """ASGI middleware: for the guardrail, whatever is no good answer says ``BLOCKED``.

    LiteLLM can be told to go on after a failed request. It cannot be told to go on after this.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; replace what failed."""
        if scope["type"] != "http" or scope["path"].rstrip("/") != GUARDRAIL:
            await self.app(scope, receive, send)
            return
        begun_well, body = False, b""

        async def sending(message: Message) -> None:
            nonlocal begun_well, body
            if message["type"] == "http.response.start" and message["status"] == 200:
                begun_well = True
            if begun_well:
                await send(message)
            else:
                body += message.get("body", b"")

        await self.app(scope, receive, sending)
        if not begun_well:
            await Json(blocked(_sentence(body)))(scope, receive, send)


def _sentence(body: bytes) -> str:
    """What one of our own failures says."""
    try:
        error = parse_json(body)["error"]
        return str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, KeyError, TypeError):
        return "the request failed"


def _report(request: ChatRequest, prompt: ProtectedPrompt) -> dict[str, Any]:
    messages = request.messages_with(prompt.texts)
    return {**prompt.report(), "sent": messages, "left_out": list(request.left_out)}


def _json(body: bytes) -> Any:
    try:
        return parse_json(body)
    except ValueError:
        raise UsageError("the body is not JSON") from None


def _event(content: dict[str, Any]) -> bytes:
    return b"data: " + dumps(content) + b"\n\n"


def _openai_error(error: Exception) -> tuple[int, dict[str, Any]]:
    """A failure as OpenAI's clients read it: a status, and a sentence that holds no text."""
    status, body = failures.failure(error)
    if isinstance(error, UpstreamError):
        status, body = error.status, {**body, "kind": "upstream"}
    return status, {"error": {"message": body["error"], "type": body["kind"], "code": body["kind"]}}


def _failure(error: Exception) -> Response:
    """The same as an answer; clients that try again by themselves do so where it helps."""
    status, body = _openai_error(error)
    again = isinstance(error, FullError | UpstreamError | TooLongError)
    return Json(body, status, headers={"x-should-retry": "true" if again else "false"})
