"""``sottovoce serve``: the local app."""

from __future__ import annotations

import os
import re
import secrets
import sys
import threading
import webbrowser
from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce.cli.option_groups import grouped
from sottovoce.cli.options import AllowedHosts, EngineOptions, Host, LayoutOptions, Port, Space
from sottovoce.cli.public_options import PublicOptions
from sottovoce.errors import SottovoceError, UsageError, need

if TYPE_CHECKING:
    from sottovoce.app.opening import Opening


@grouped
def serve(
    searched: EngineOptions,
    layout: LayoutOptions,
    public: PublicOptions,
    port: Port = 8765,
    host: Host = "127.0.0.1",
    allow_host: AllowedHosts = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in your browser.")
    ] = True,
    searxng_json: Annotated[
        bool,
        typer.Option("--searxng-json", help="Answer programs that search with SearXNG, too."),
    ] = False,
    space: Space = None,
) -> None:
    """Open the local app: search in a low voice, in the browser.

    It listens on this machine alone. The printed address holds a token, which protects everything
    that changes something; programs find it in $SOTTOVOCE_TOKEN, if you set it, or in serve.json
    in the data folder.

    [bold]Examples[/bold]

      sottovoce serve

      sottovoce serve --collection my-articles --engine dense --rerank strong

      sottovoce serve --engine http:searxng.toml --port 0 --no-browser

      sottovoce serve --engine http:searxng.toml --pool medical

      sottovoce serve --searxng-json
    """
    for package in ("fastapi", "uvicorn"):
        need(package, "app", "the local app needs an extra")
    from sottovoce.app.server import bind, run
    from sottovoce.app.service import create_app
    from sottovoce.app.settings import Settings
    from sottovoce.app.state import Service

    listening = bind(host, port)
    try:
        settings = Settings(
            host=host,
            port=listening.getsockname()[1],
            allowed_hosts=allowed_names(host, allow_host),
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
            searxng_json=searxng_json,
        )
        service = Service(settings)
        public.load(service.parts)
        run(
            create_app(service=service),
            settings,
            listening,
            lambda: _announce(settings.address, host, service.opening if browser else None),
        )
    finally:
        listening.close()
    typer.echo("stopped", err=True)
    sys.stdout.flush()
    os._exit(0)  # Everything is put away; a thread may still wait for an engine, in native code.


def allowed_names(host: str, allowed: list[str] | None) -> tuple[str, ...]:
    """Names to answer to: those allowed, and the address itself unless it stands for all."""
    names = list(allowed or ())
    if host not in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        names.insert(0, f"[{host}]" if ":" in host else host)
    return tuple(dict.fromkeys(names))


def service_token() -> str:
    """The token that keeps others out: $SOTTOVOCE_TOKEN if it is set, else a random one."""
    token = os.environ.get("SOTTOVOCE_TOKEN")
    if token is None:
        return secrets.token_urlsafe(24)
    if re.fullmatch(r"[A-Za-z0-9_-]{16,200}", token) is None:
        raise UsageError(
            "$SOTTOVOCE_TOKEN must have at least 16 letters, digits, - or _: it is all that keeps "
            "other programs out. Leave it unset to get a random one"
        )
    return token


def _announce(address: str, host: str, opening: Opening | None) -> None:
    """Say where it is, and open the browser in a thread: some browsers return only when closed."""
    from sottovoce.app.settings import LOOPBACK

    typer.echo(f"sottovoce is at  {address}")
    if host in (*LOOPBACK, "::1"):
        typer.echo("Only this machine can reach it. Stop it with Ctrl-C.", err=True)
    else:
        typer.secho(
            "WARNING: the service can be reached from other machines, unencrypted: whoever "
            "listens on the way reads what you search for, and the token. Leave --host out, and "
            "reach it through a tunnel (ssh -L).",
            fg="red",
            bold=True,
            err=True,
        )
    if opening is not None:
        try:
            file = opening.write_file()
        except SottovoceError as error:
            typer.echo(f"sottovoce: {error}", err=True)
        else:
            threading.Thread(target=webbrowser.open, args=(file,), daemon=True).start()
