"""``sottovoce proxy``: requests to language models, protected on their way."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from sottovoce.cli.option_groups import grouped
from sottovoce.cli.option_values import listed_words
from sottovoce.cli.options import AllowedHosts, Host, MechanismOptions, Port, SpaceOptions
from sottovoce.cli.output import say
from sottovoce.cli.serve import allowed_names, service_token
from sottovoce.errors import SpaceError, UsageError, need

if TYPE_CHECKING:
    from sottovoce.obfuscation import Obfuscator
    from sottovoce.prompts import Finder

KEY = "SOTTOVOCE_UPSTREAM_KEY"


@grouped
def proxy(
    mechanism: MechanismOptions,
    resources: SpaceOptions,
    upstream: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The language model's server, as its clients take it: https://api.example.org/v1. "
            "Its key is read from $SOTTOVOCE_UPSTREAM_KEY.",
        ),
    ] = None,
    passages: Annotated[
        str,
        typer.Option(
            metavar="WHICH",
            help="What goes through the mechanism: marked (what stands between ⟦ and ⟧), user "
            "(all that the user says), all (every message). Other words leave in clear.",
        ),
    ] = "marked",
    find: Annotated[
        str | None,
        typer.Option(
            metavar="KIND,…", help="Identifiers that become placeholders; all kinds if not given."
        ),
    ] = None,
    hide: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|file:PATH",
            help="Names and words that become placeholders, too: no pattern knows a name.",
        ),
    ] = None,
    presidio: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Find names by Presidio with this spaCy model, which must be installed.",
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=1, help="Seconds that an answer of the upstream may take.")
    ] = 300.0,
    port: Port = 8766,
    host: Host = "127.0.0.1",
    allow_host: AllowedHosts = None,
) -> None:
    """Protect requests to a language model: an OpenAI-compatible proxy, and LiteLLM's guardrail.

    Identifiers become placeholders, which are put back in the answer; passages that you mark go
    through a mechanism. [bold]All other words leave in clear[/bold]: each request says how many.

    [bold]Examples[/bold]

      sottovoce proxy --upstream https://api.example.org/v1

      sottovoce proxy --upstream http://127.0.0.1:11434/v1 --hide "Zebulon Quartermaine"

      sottovoce proxy --upstream https://api.example.org/v1 --passages user -m cmp -e 15

      sottovoce proxy --presidio en_core_web_md      (LiteLLM's guardrail alone)
    """
    for package in ("fastapi", "uvicorn"):
        need(package, "app", "the proxy needs an extra")
    from sottovoce.app.proxy import PromptService, create_app
    from sottovoce.app.server import bind, run
    from sottovoce.app.settings import Settings
    from sottovoce.ledger import Ledger
    from sottovoce.prompts import PromptProtection, Upstream
    from sottovoce.prompts.protection import PASSAGES

    if passages not in PASSAGES:
        raise UsageError(f"--passages is one of {', '.join(PASSAGES)}")
    protection = PromptProtection(
        finders=_finders(find, hide, presidio),
        obfuscator=_obfuscator(mechanism, resources, required=passages != "marked"),
        passages=passages,
        ledger=Ledger.open(),
    )
    key = os.environ.get(KEY) or None
    to = None if upstream is None else Upstream(upstream, key, timeout)
    listening = bind(host, port)
    try:
        settings = Settings(
            host=host,
            port=listening.getsockname()[1],
            allowed_hosts=allowed_names(host, allow_host),
            token=service_token(),
        )
        service = PromptService(settings, protection, to, show=say)
        run(
            create_app(service),
            settings,
            listening,
            lambda: _announce(settings.address, settings.token, to.name if to else None),
            name="proxy",
        )
    finally:
        listening.close()
    typer.echo("stopped", err=True)
    sys.stdout.flush()
    os._exit(0)  # Everything is put away; a thread may still wait for the upstream.


def _finders(find: str | None, hide: list[str] | None, model: str | None) -> tuple[Finder, ...]:
    from sottovoce.prompts import KINDS, Listed, Patterns

    kinds = KINDS if find is None else tuple(kind.strip().upper() for kind in find.split(","))
    finders: list[Finder] = [Patterns(kinds)]
    if hide:
        finders.append(Listed(listed_words(hide)))
    if model is not None:
        from sottovoce.prompts.presidio import Presidio

        finders.append(Presidio(model))
    return tuple(finders)


def _obfuscator(
    mechanism: MechanismOptions, resources: SpaceOptions, *, required: bool
) -> Obfuscator | None:
    """What passages go through, every word of them; None, and a word about it, without a space."""
    from sottovoce.obfuscation import Obfuscator
    from sottovoce.text import TextPipeline

    try:
        return Obfuscator(mechanism.build(resources), pipeline=TextPipeline(protect="all"))
    except SpaceError as error:
        if required:
            raise
        say(f"marked passages will be refused: {error}")
        return None


def _announce(address: str, token: str, upstream: str | None) -> None:
    base = address.partition("#")[0]
    typer.echo(f"base_url  {base}v1")
    typer.echo(f"api_key   {token}")
    guardrail = f"LiteLLM's guardrail: api_base {base.rstrip('/')}, api_key as above."
    say(guardrail if upstream is None else f"Requests go to {upstream}. {guardrail}")
    say("Words that are neither found nor marked leave in clear. Stop it with Ctrl-C.")
