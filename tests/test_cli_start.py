"""The command line starts without what it does not need."""

import os
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


def loaded_by(*arguments, home=None):
    """The modules that a command has imported when it is done, and what it printed."""
    program = (
        "import sys\n"
        "from sottovoce.cli import main\n"
        f"sys.argv = ['sottovoce', *{arguments!r}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "print('\\f', *sorted(sys.modules), file=sys.stderr)"
    )
    environment = os.environ if home is None else {**os.environ, "XDG_DATA_HOME": str(home)}
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env=environment,
    )
    return set(run.stderr.rpartition("\f")[2].split()), run.stdout


def test_help_imports_no_command_no_arrays_and_nothing_to_draw_with():
    loaded, printed = loaded_by("--help")
    assert "obfuscate" in printed
    assert "Privacy lab" in printed
    assert "sottovoce.cli.commands" in loaded
    commands = {f"sottovoce.cli.{name}" for name in PANELS}
    assert not loaded & {"numpy", "rich.console", "pydantic", *commands}


def test_a_search_imports_no_training_no_statistics_and_no_other_command(default_space, tmp_path):
    del default_space  # Skips where there is none.
    loaded, printed = loaded_by("search", "skin cancer", home=tmp_path)
    assert "Sent" in printed
    others = {f"sottovoce.cli.{name}" for name in set(PANELS) - {"search"}}
    heavy = {"onnx", "scipy.stats", "scipy", "torch", "sklearn", "fastapi", "matplotlib", "pyarrow"}
    assert not loaded & {*heavy, *others, "sottovoce.privacy", "sottovoce.experiments"}


def test_deniability_imports_nothing_to_draw_with(everyday_words):
    space = str(everyday_words.folder)
    loaded, printed = loaded_by(
        "deniability", "cmp", "--space", space, "--words", "3", "--draws", "9"
    )
    assert "comes back" in printed
    assert not loaded & {"matplotlib", "sottovoce.plotting", "scipy.stats", "numba"}
