"""The command line starts without what it does not need."""

import subprocess
import sys
from pathlib import Path

import pytest

import sottovoce.cli
from sottovoce.cli.commands import COMMANDS, PANELS, load_command

ALL = [(name, line) for lines in COMMANDS.values() for name, line in lines.items()]


@pytest.mark.parametrize(("name", "line"), ALL)
def test_the_line_in_the_list_is_the_one_that_the_command_says(name, line):
    said = " ".join(load_command(name).help.split("\n\n")[0].split())
    assert said == line


def test_every_module_with_a_command_is_in_the_table():
    folder = Path(sottovoce.cli.__file__).parent
    sources = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.py")}
    defining = {
        name
        for name, text in sources.items()
        if f"\ndef {name}(" in text or "\napp = command_group(" in text
    }
    assert defining == set(PANELS)


def test_help_imports_no_command_and_no_arrays():
    program = (
        "import sys\n"
        "from sottovoce.cli import main\n"
        "sys.argv = ['sottovoce', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    assert "obfuscate" in run.stdout
    loaded = set(run.stderr.split())
    assert "sottovoce.cli.commands" in loaded
    assert not loaded & {"numpy", *(f"sottovoce.cli.{name}" for name in PANELS)}
