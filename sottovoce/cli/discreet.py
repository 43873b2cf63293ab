"""Commands that complain without repeating what was typed: it may be the text itself."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand, TyperGroup

from sottovoce.errors import did_you_mean


def _redact(error: Exception, typed: list[str]) -> None:
    """Blot out every argument that is neither an option nor a number."""
    message = getattr(error, "message", None)
    if not isinstance(message, str):
        return
    if "unexpected extra argument" in message:
        message = "more was given than this command takes: put a text of several words in quotes"
    words = [each for each in typed if re.search(r"[^\W\d_]", each) and not each.startswith("-")]
    for word in sorted(words, key=len, reverse=True):
        message = message.replace(word, "…")
    error.message = message  # type: ignore[attr-defined]


class DiscreetCommand(TyperCommand):
    """A command whose complaints hold no argument."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as usual; arguments do not come back in errors."""
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
        known = self.list_commands(ctx)
        if args and args[0] not in known:
            hint = did_you_mean(args[0], known, f"there are {', '.join(known)}.")
            ctx.fail(f"no such command: {hint} A text goes behind 'sottovoce obfuscate'.")
        return super().resolve_command(ctx, args)
