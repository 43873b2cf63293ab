"""The command line: parse, call the library, print. Machine output goes to stdout."""

from __future__ import annotations

import sys
import warnings
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from sottovoce import __version__
from sottovoce.cli.commands import LazyGroup
from sottovoce.errors import PrivacyWarning, SottovoceError, UsageError

app = typer.Typer(
    name="sottovoce",
    cls=LazyGroup,
    help="Search, and release text, without saying what you really mean out loud.",
    epilog="Start with: sottovoce spaces add default, then sottovoce search 'skin cancer'",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"sottovoce {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Search, and release text, without saying what you really mean out loud."""


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    label = "privacy warning" if issubclass(category, PrivacyWarning) else "warning"
    typer.secho(f"{label}: {message}", fg="yellow", err=True)


def _without_core_dumps() -> None:
    """A crash must not write the memory, and so what was typed, to a file."""
    if sys.platform == "win32":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))


def main() -> None:
    """Run the command line: exit code 0 done, 1 failed, 2 wrong use."""
    _without_core_dumps()
    warnings.simplefilter("always", PrivacyWarning)
    warnings.showwarning = _show_warning
    if isinstance(sys.stdout, TextIOWrapper):  # A character the terminal lacks is no error.
        sys.stdout.reconfigure(errors="backslashreplace")
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
