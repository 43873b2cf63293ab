"""The command line: parse, call the library, print. Machine output goes to stdout."""

from __future__ import annotations

import difflib
import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sottovoce import __version__
from sottovoce.cli import mechanisms, obfuscate, spaces
from sottovoce.errors import PrivacyWarning, SottovoceError, UsageError


class _Commands(TyperGroup):
    """Commands that do not repeat what they did not understand: it may be the text itself."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        known = self.list_commands(ctx)
        if args and args[0] not in known:
            close = difflib.get_close_matches(args[0], known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}."
            ctx.fail(f"no such command: {hint} A text goes behind 'sottovoce obfuscate'.")
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="sottovoce",
    cls=_Commands,
    help="Search, and release text, without saying what you really mean out loud.",
    epilog="Start with: sottovoce spaces add default, then sottovoce obfuscate 'skin cancer'",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sottovoce {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Say it.")
    ] = False,
) -> None:
    """Search, and release text, without saying what you really mean out loud."""


app.command("obfuscate")(obfuscate.obfuscate)
app.command("mechanisms")(mechanisms.mechanisms)
app.add_typer(spaces.app, name="spaces")


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    label = "privacy warning" if issubclass(category, PrivacyWarning) else "warning"
    typer.secho(f"{label}: {message}", fg="yellow", err=True)


def main() -> None:
    """Run the command line: exit code 0 done, 1 failed, 2 wrong use."""
    warnings.simplefilter("always", PrivacyWarning)
    warnings.showwarning = _show_warning
    try:
        app()
    except UsageError as error:
        _fail(error, 2)
    except SottovoceError as error:
        _fail(error, 1)
    except KeyboardInterrupt:
        typer.secho("stopped", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # The reader went away (| head): no error, but nothing more may be flushed either.
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:
        # A traceback could show what people typed: name the kind of error only.
        _fail(f"unexpected {type(error).__name__}; please report how to get there", 1)


def _fail(error: object, code: int) -> None:
    typer.secho(f"sottovoce: {error}", fg="red", err=True)
    sys.exit(code)
