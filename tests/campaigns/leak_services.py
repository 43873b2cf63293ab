"""The same searches through all that stands before them: command, local app, agents, proxy."""

from __future__ import annotations

import http.client
import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from wires import MOODS

from campaigns.leak_failures import LEDGER, on
from campaigns.leak_parts import DIMENSION, EVERYDAY, PUBLIC, TIMEOUT, Engines, Parts
from sottovoce import Obfuscator
from sottovoce.ledger import Ledger
from sottovoce.spaces.store import SpaceWriter
from sottovoce.text import TextPipeline

TOKEN = "0123456789abcdef-token"
VOICES = ("whisper", "murmur", "speak-low", "normal-voice", "in-company")
IDENTIFIERS = (
    "{word}@{word}.example",
    "+49 30 {digits}",
    "4111 1111 1111 1111",
    "DE89 3704 0044 0532 0130 00",
    "192.168.{part}.23",
    "https://clinic.example/{word}",
    "14.03.1978",
)


class Services:
    """Started when first asked for; each search counts in the ledger of their home."""

    KINDS = ("command", "rest", "agents", "proxy")

    def __init__(self, folder: Path, home: Path, over: Engines, stack: ExitStack) -> None:
        self.folder, self.home, self.engines, self._stack = folder, home, over, stack
        self._connections: dict[int, http.client.HTTPConnection] = {}
        stack.callback(lambda: [connection.close() for connection in self._connections.values()])

    def ask(self, batch: Any) -> None:
        """All queries of a batch, in one of the ways; some of it fails."""
        batch.fail_by(["nothing fails", "it is asked wrongly", *MOODS, *LEDGER])
        slow = batch.failure in ("is silent", "drips")
        if batch.failure in MOODS:
            self.engines.wire.behave(batch.failure, 40 if slow else int(batch.rng.integers(1, 4)))
        batch.label = batch.kind
        asking: Callable[..., None] = getattr(self, f"_{batch.kind}")
        ledger = Ledger.open()
        try:
            with on(batch, ledger) as step:
                if batch.kind != "proxy":
                    batch.counts[f"engine: get through {batch.kind}"] += len(batch.asked)
                asking(batch, step)
        finally:
            shutil.rmtree(ledger.folder, ignore_errors=True)

    @cached_property
    def _space(self) -> str:
        """A folder with the words that may be released; no secret is among them."""
        folder = self.folder / "everyday"
        vectors = np.random.default_rng(5).standard_normal((len(EVERYDAY), DIMENSION))
        with SpaceWriter(folder, name="everyday", dimension=DIMENSION) as writer:
            writer.append(EVERYDAY, vectors.astype(np.float32))
            writer.commit()
        return str(folder)

    @cached_property
    def _log(self) -> str:
        file = self.folder / "log.txt"
        file.write_text("\n".join(PUBLIC))
        return str(file)

    # sottovoce search -

    def _command(self, batch: Any, step: Callable[[], None]) -> None:
        from command_line import run_command

        options = ["--engine", self.engines.file(), "--space", self._space, "--rerank", "none"]
        wrong = ["--depth", batch.secrets[-1]] if batch.failure == "it is asked wrongly" else []
        for text in batch.asked:
            step()
            done = batch.attempt(
                partial(
                    run_command,
                    *("search", "-", *options, "-n", "2", *wrong),
                    home=self.home,
                    stdin=text.encode("utf-8", "surrogatepass"),
                )
            )
            batch.counts["answered"] += done.returncode == 0
            batch.heard.write(done.stderr.decode("utf-8", "replace"))
            if done.returncode:
                batch.heard.write(done.stdout.decode("utf-8", "replace"))

    # The local app

    @cached_property
    def _app_port(self) -> int:
        from serving import served

        from sottovoce.app.server import bind
        from sottovoce.app.service import create_app

        listening = bind("127.0.0.1", 0)
        port: int = listening.getsockname()[1]
        app = create_app(self._settings(port))
        self._stack.enter_context(served(app, listening))
        app.state.service.parts.load_all()
        return port

    def _settings(self, port: int = 8765) -> Any:
        from sottovoce.app.settings import Settings

        return Settings(
            port=port,
            engine=self.engines.file(),
            reranker="none",
            space=self._space,
            log=self._log,
            token=TOKEN,
        )

    def _rest(self, batch: Any, step: Callable[[], None]) -> None:
        port = self._app_port
        for text in batch.asked:
            step()
            body: dict[str, Any] = {"query": text, "voice": batch.choose(VOICES), "top": 3}
            path = batch.choose(("/v1/search", "/v1/search", "/v1/preview"))
            if path == "/v1/preview":
                del body["top"]
            if batch.failure == "it is asked wrongly":
                path, body = self._asked_wrongly(batch, path, body)
            batch.attempt(lambda path=path, body=body: self._post(batch, port, path, body))

    def _asked_wrongly(self, batch: Any, path: str, body: Any) -> tuple[str, Any]:
        secret = batch.secrets[-1]
        return [
            (path, {**body, secret: 1}),
            (path, {**body, "voice": secret}),
            (path, {**body, "query": [secret]}),
            (path, [secret]),
            (f"/v1/{secret}", body),
            (f"{path}?q={secret}", secret),
            (path, {**body, "mechanism": secret}),
            (path, {**body, "preview": secret}),
        ][int(batch.rng.integers(8))]

    def _post(self, batch: Any, port: int, path: str, body: Any) -> None:
        """Ask a service over its socket; what it says of a failure must tell nothing."""
        connection = self._connections.setdefault(
            port, http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        )
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
        try:
            connection.request("POST", path, json.dumps(body), headers)
            response = connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            batch.counts["refused or failed"] += 1
            return
        if response.status == 200:
            batch.counts["answered"] += 1
        else:
            batch.counts["refused or failed"] += 1
            batch.heard.write(f"{response.status} {response.reason} {response.headers}\n")
            batch.heard.write(answer.decode("utf-8", "replace"))

    # Tools for agents

    @cached_property
    def _tools(self) -> Any:
        from sottovoce.agents.tools import AgentTools
        from sottovoce.app.loaded import LoadedParts

        parts = LoadedParts(self._settings())
        parts.load_named()
        return AgentTools(parts, "murmur")

    def _agents(self, batch: Any, step: Callable[[], None]) -> None:
        import anyio
        from mcp.client.client import Client

        from sottovoce.agents.server import create_server

        server = create_server(self._tools)

        async def work() -> None:
            async with Client(server) as client:
                for text in batch.asked:
                    step()
                    name, arguments = self._call(batch, text)
                    result = await client.call_tool(name, arguments)
                    batch.counts["refused or failed" if result.is_error else "answered"] += 1
                    if result.is_error:
                        batch.heard.write(" ".join(part.text for part in result.content))

        batch.attempt(lambda: anyio.run(work), len(batch.asked))

    def _call(self, batch: Any, text: str) -> tuple[str, dict[str, Any]]:
        text = text.encode("utf-8", "replace").decode()
        if batch.failure == "it is asked wrongly":
            return "private_search", {"query": [text], "top": batch.secrets[-1]}
        return (
            ("private_search", {"query": text, "top": 3}),
            ("obfuscate", {"text": text, "n": 2}),
            ("sanitize", {"texts": [text, text]}),
        )[int(batch.rng.integers(3))]

    # The proxy for language models

    @cached_property
    def _proxy_port(self) -> int:
        from serving import served

        from sottovoce.app.proxy import PromptService, create_app
        from sottovoce.app.server import bind
        from sottovoce.app.settings import Settings
        from sottovoce.mechanisms.cmp import CMP
        from sottovoce.prompts import Listed, Patterns, PromptProtection, Upstream

        pipeline = TextPipeline(protect="all")
        protection = PromptProtection(
            (Patterns(), Listed(["Zebulon Quartermaine"])),
            Obfuscator(CMP(space=Parts().space, epsilon=5.0), pipeline=pipeline),
            ledger=Ledger(self.home / "ledger", 0.02),
        )
        listening = bind("127.0.0.1", 0)
        port: int = listening.getsockname()[1]
        url = f"http://127.0.0.1:{self.engines.wire.port}/v1"
        service = PromptService(
            Settings(port=port, token=TOKEN), protection, Upstream(url, timeout=4 * TIMEOUT)
        )
        self._stack.enter_context(served(create_app(service), listening))
        return port

    def _proxy(self, batch: Any, step: Callable[[], None]) -> None:
        """Identifiers become placeholders, marked passages go through the mechanism."""
        port = self._proxy_port
        batch.counts["engine: language model"] += len(batch.asked)
        for text in batch.asked:
            step()
            identifiers = self._identifiers(batch)
            content = f"⟦{text}⟧ {' '.join(identifiers)} ⟦{batch.secrets[-1]}⟧"
            message: dict[str, Any] = {"role": "user", "content": content}
            body: Any = {
                "model": "m",
                "messages": [message],
                "stream": bool(batch.rng.random() < 0.4),
            }
            if batch.failure == "it is asked wrongly":
                wrong = ({**body, batch.secrets[-1]: 1}, {"messages": content}, [content])
                body = wrong[int(batch.rng.integers(3))]
            batch.attempt(lambda body=body: self._post(batch, port, "/v1/chat/completions", body))

    def _identifiers(self, batch: Any) -> Sequence[str]:
        digits = str(batch.rng.integers(10**6, 10**7))
        made = [
            identifier.format(word=batch.secrets[-2], digits=digits, part=digits[:2])
            for identifier in IDENTIFIERS
        ]
        batch.secrets += [one for one in made if one not in batch.secrets][:3]
        return [made[at] for at in batch.rng.permutation(len(made))[:3]]
