"""All commands, as data: each module is imported when its command is used, not before.

So ``sottovoce --help``, and every command, starts without the options of all others.
``tests/test_cli_start.py`` holds the lines of this table to what the commands say themselves.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer

from sottovoce.cli.output import DiscreetCommand, DiscreetGroup

RELEASE = "Search and release"
LAB = "Privacy lab (what could be learnt)"
SETUP = "Set-up and accounts"

COMMANDS: dict[str, dict[str, str]] = {
    RELEASE: {
        "search": "Search without saying what for: only obfuscated queries, or public ones, leave.",
        "obfuscate": "Obfuscate texts into variants that say less.",
        "sanitize": "Replace the words in columns of a data set; all else stays as it is.",
        "serve": "Open the local app: search in a low voice, in the browser.",
        "proxy": "Protect requests to a language model: an OpenAI-compatible proxy, and LiteLLM's "
        "guardrail.",
        "mcp": "Give agents private search, obfuscation and their risk as tools (MCP).",
    },
    LAB: {
        "attack": "Attack releases: show which words and queries can still be read off them.",
        "audit": "Audit a mechanism: try to refute what is stated, and published, about it.",
        "deniability": "Measure plausible deniability: how often words come back, how many stand "
        "in for each.",
        "calibrate": "Find the largest epsilon at which every word keeps your targets, and say "
        "what it costs.",
        "similarity": "Compare texts with what was released instead: words, phrases, meaning.",
        "quipu": "Score systems by risk and utility over their parameter: above 0 the person "
        "gains more.",
        "membership": "Try to tell whose releases a text model learnt from.",
        "downstream": "Measure what models still get right when texts are obfuscated.",
        "vectors": "Try a store out with public queries: how deep to ask, and what an observer "
        "would learn.",
        "experiment": "Experiments: one file in, tables, figures and one report out.",
    },
    SETUP: {
        "doctor": "Say what is installed, what is missing, what that would bring, and how to get "
        "it.",
        "mechanisms": "Show the mechanisms: parameters, guarantee, paper.",
        "index": "Write the index of a collection once; memory stays bounded, however large it is.",
        "spaces": "Word spaces: the words and vectors that mechanisms work on.",
        "pools": "Pools: public strings among which a query is hidden.",
        "ledger": "The ledger: what was released, what it cost, what is left.",
    },
}
"""Panel, name and one line of every command; ``sottovoce.cli.NAME`` has the rest."""

PANELS = {name: panel for panel, lines in COMMANDS.items() for name in lines}


class LazyGroup(DiscreetGroup):
    """The commands of the table; a list of them shows their lines and imports none."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(PANELS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return load_command(cmd_name) if cmd_name in PANELS else None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """In plain text: the package rich would take as long as all the rest of the start."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        self.format_options(ctx, formatter)
        self.format_epilog(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, PANELS))
        for panel, lines in COMMANDS.items():
            with formatter.section(panel):
                formatter.write_dl([(name.ljust(width), line) for name, line in lines.items()])


def load_command(name: str) -> Any:
    """The command of the module of its name: its group ``app``, or its function of that name."""
    module = import_module(f"sottovoce.cli.{name}")
    if hasattr(module, "app"):
        group = typer.main.get_command(module.app)
        group.name = name
        return group
    single = typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich"
    )
    single.command(name, cls=DiscreetCommand)(getattr(module, name))
    return typer.main.get_command(single)
