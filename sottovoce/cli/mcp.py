"""``sottovoce mcp``: private search as tools for language-model agents."""

from __future__ import annotations

import os
import socket
import sys
import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce import defaults
from sottovoce.choices import IN_COMPANY, VoiceId
from sottovoce.cli.option_groups import grouped
from sottovoce.cli.options import EngineOptions, LayoutOptions, Space
from sottovoce.cli.public_options import PublicOptions
from sottovoce.cli.serve import service_token
from sottovoce.errors import UsageError, need

if TYPE_CHECKING:
    from sottovoce.agents.server import DiscreetServer
    from sottovoce.app.loaded import LoadedParts
    from sottovoce.app.settings import Settings


@grouped
def mcp(
    searched: EngineOptions,
    layout: LayoutOptions,
    public: PublicOptions,
    voice: Annotated[
        VoiceId, typer.Option(help="How low the agent speaks; it cannot change that.")
    ] = defaults.VOICE,
    http: Annotated[
        bool, typer.Option("--http", help="Serve over HTTP on this machine, with a token.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where to listen with --http; 0 for any free.")
    ] = 8767,
    unlimited: Annotated[
        bool, typer.Option("--unlimited", help="Serve even if the ledger has no budget.")
    ] = False,
    space: Space = None,
) -> None:
    """Give agents private search, obfuscation and their risk as tools (MCP).

    Programs start it and speak to it over standard input and output. The ledger's budget holds:
    without one it does not start, unless you say --unlimited.

    [bold]Examples[/bold]

      sottovoce ledger budget --total 150

      sottovoce mcp

      sottovoce mcp --engine http:searxng.toml --voice whisper

      sottovoce mcp --http --port 8767
    """
    need("mcp.server.mcpserver", "mcp", "tools for agents need an extra")
    from sottovoce.agents.server import create_server
    from sottovoce.agents.tools import AgentTools, require_budget
    from sottovoce.app.loaded import LoadedParts
    from sottovoce.app.server import bind
    from sottovoce.app.settings import Settings
    from sottovoce.threads import single_threaded_blas

    if public.pool is not None and voice != IN_COMPANY:
        raise UsageError(
            f"--pool has public queries for the voice in company, and the voice is {voice}: add "
            "--voice in-company, or leave --pool out"
        )
    require_budget(unlimited=unlimited)
    listening = bind("127.0.0.1", port) if http else None
    settings = Settings(
        port=listening.getsockname()[1] if listening else port,
        collection=searched.collection,
        engine=searched.engine,
        reranker=searched.rerank,
        depth=searched.depth,
        space=space,
        log=public.log,
        pool=public.pool,
        shuffle=layout.shuffle,
        pad_to=layout.pad,
        token=service_token(),
    )
    with nullcontext() if listening is None else listening:
        parts = LoadedParts(settings)
        public.load(parts)
        if voice == IN_COMPANY:
            _say_company(parts)
        threading.Thread(target=parts.load_all, name="loading", daemon=True).start()
        server = create_server(AgentTools(parts, voice))
        with single_threaded_blas():
            if listening is None:
                server.run("stdio")
            else:
                _serve(server, settings, listening)
    sys.stderr.flush()
    os._exit(0)  # Everything is put away; a thread may still wait for an engine, in native code.


def _say_company(parts: LoadedParts) -> None:
    """Refuse to start where no query can leave in company; say if few leave in one."""
    parts.require_company("name other public queries with --pool, or another --voice")
    if company := parts.small_company:
        typer.secho(company, fg="yellow", err=True)


def _serve(server: DiscreetServer, settings: Settings, listening: socket.socket) -> None:
    """Over HTTP; where it is and its token are in mcp.json in the data folder."""
    from sottovoce.agents.server import PATH, http_app
    from sottovoce.app.server import run

    def announce() -> None:
        typer.echo(f"tools are at  http://127.0.0.1:{settings.port}{PATH}")
        typer.echo(
            f"Only this machine can reach it, with 'Authorization: Bearer {settings.token}'. Stop "
            "it with Ctrl-C.",
            err=True,
        )

    run(http_app(server, settings), settings, listening, announce, "mcp")
