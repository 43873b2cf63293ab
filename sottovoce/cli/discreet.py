"""Commands whose error messages do not repeat what was typed: it may be the text itself."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand, TyperGroup

from sottovoce.errors import did_you_mean


def _redact(error: Exception, typed: list[str]) -> None:
    """Replace every argument in the message that is neither an option nor a number."""
    message = getattr(error, "message", None)
    if not isinstance(message, str):
        return
    if "unexpected extra argument" in message:
        message = "more was given than this command takes: put a text of several words in quotes"
    for argument in sorted(typed, key=len, reverse=True):
        if re.search(r"[^\W\d_]", argument) and not argument.startswith("-"):
            message = message.replace(argument, "…")
    error.message = message  # type: ignore[attr-defined]


class DiscreetCommand(TyperCommand):
    """A command whose error messages hold no argument."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as usual; errors do not repeat arguments."""
        typed = list(args)
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            _redact(error, typed)
            raise


class DiscreetGroup(TyperGroup):
    """A group of commands that does not repeat a command it does not know."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command, or say which ones there are."""
        commands = self.list_commands(ctx)
        if args and args[0] not in commands:
            hint = did_you_mean(args[0], commands, f"there are {', '.join(commands)}.")
            ctx.fail(f"no such command: {hint} A text goes behind 'sottovoce obfuscate'.")
        return super().resolve_command(ctx, args)
