"""``sottovoce doctor``: what is installed, what is missing, what is broken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from sottovoce.cli.options import AsJson
from sottovoce.cli.output import escape, new_console, new_table, print_json

if TYPE_CHECKING:
    from sottovoce.doctor import Finding

TITLES = {
    "base": "Installed",
    "folders": "Folders",
    "extras": "Optional packages",
    "spaces": "Word spaces and other resources",
    "pools": "Pools",
    "ledger": "Ledger",
}
MARKS = {"here": "[green]ok[/green]", "missing": "-", "broken": "[red]broken[/red]"}


def doctor(as_json: AsJson = False) -> None:
    """Say what is installed, what is missing, what that would bring, and how to get it.

    It looks at packages, folders, word spaces, pools and the ledger; it changes, fetches and sends
    nothing. The exit code is 1 if something is broken. What is merely missing is optional.

    [bold]Examples[/bold]

      sottovoce doctor

      sottovoce doctor --json
    """
    from sottovoce.doctor import examine

    findings = examine()
    broken = [finding for finding in findings if finding.state == "broken"]
    if as_json:
        print_json({"sound": not broken, "findings": [finding.to_dict() for finding in findings]})
    else:
        _print(findings)
    if broken:
        raise typer.Exit(1)


def _print(findings: list[Finding]) -> None:
    console = new_console()
    for area, title in TITLES.items():
        table = new_table("", "", "")
        table.show_header = False
        for finding in findings:
            if finding.area == area:
                about = escape(finding.about.replace("`", ""))
                command = f"\n[dim]{escape(finding.command)}[/dim]" if finding.command else ""
                table.add_row(MARKS[finding.state], finding.name, about + command)
        if table.rows:
            console.print(f"[bold]{title}[/bold]")
            console.print(table)
            console.print()
    states = [finding.state for finding in findings]
    console.print(
        f"{states.count('broken')} broken, {states.count('missing')} not installed; the command "
        "beneath each gets it. To search, the word space 'default' is needed; the rest is optional."
    )
