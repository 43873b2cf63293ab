"""Other platforms, as far as one machine shows: no fcntl, blanks in paths, a read-only home."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sottovoce.spaces.store import SpaceWriter

ROOT = Path(__file__).parents[1]
WORDS = [f"word{chr(97 + i)}" for i in range(20)]
posix = pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX systems")


def python(*arguments, cwd=None, **environment):
    """Run Python in a process of its own."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


def command(*arguments, **options):
    done = python("-m", "sottovoce", *arguments, **options)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def make_space(folder):
    with SpaceWriter(folder, name=folder.name, dimension=5) as writer:
        writer.append(WORDS, np.random.default_rng(1).standard_normal((20, 5)))
        writer.commit()
    return folder


# No fcntl, as on Windows or in a browser.

WITHOUT_FCNTL = """
import sys, warnings
sys.modules["fcntl"] = None
warnings.filterwarnings("ignore", "only soft file lock")
"""

LOCKS = """
import os, signal
from pathlib import Path
from sottovoce.errors import UsageError
from sottovoce.files import locked

file = Path(sys.argv[1])
child = os.fork()
if not child:
    with locked(file, wait=False):
        os.kill(os.getpid(), signal.SIGKILL)
os.waitpid(child, 0)
assert file.exists(), "another lock is used than fcntl's: this one is the file itself"
with locked(file, wait=False):
    if not os.fork():
        try:
            with locked(file, wait=False, busy="busy"):
                os._exit(1)
        except UsageError:
            os._exit(0)
    print(os.WEXITSTATUS(os.wait()[1]))
"""

LEDGER = """
from pathlib import Path
from sottovoce.guarantees import Guarantee
from sottovoce.ledger import Entry, Ledger

ledger = Ledger.open(Path(sys.argv[1]))
promise = Guarantee("metric", 1.0, "euclidean")
ledger.charge(Entry("text", ("a",), "cmp:epsilon=1", "independent", promise, 1, "bm25"))
print(ledger.check())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_without_fcntl_there_is_another_lock_which_a_killed_process_gives_up(tmp_path):
    done = python("-c", WITHOUT_FCNTL + LOCKS, tmp_path / "lock")
    assert done.stdout == "0\n", done.stderr


def test_without_fcntl_the_ledger_counts(tmp_path):
    done = python("-c", WITHOUT_FCNTL + LEDGER, tmp_path / "ledger")
    assert done.stdout == "1\n", done.stderr


# Paths with blanks, and letters of other languages.


def test_paths_may_hold_blanks_and_any_letters(tmp_path):
    place = tmp_path / "my files, Üç (1) & 'more'"
    place.mkdir()
    home = {"SOTTOVOCE_HOME": str(place / "my home")}
    vectors = place / "my vectors.txt"
    vectors.write_text("".join(f"{word} {i} {i * i} 1\n" for i, word in enumerate(WORDS)))
    data = place / "my data.csv"
    data.write_text("id,text\n1,worda wordb\n2,wordc\n")
    done = command("spaces", "import", vectors, "--name", "mine", **home)
    assert done.returncode == 0, done.stderr
    out = place / "my output.csv"
    sanitized = command(
        *("sanitize", data, out, "--column", "text", "--space", "mine", "--seed", "1"),
        cwd=place,
        **home,
    )
    assert sanitized.returncode == 0, sanitized.stderr
    assert len(out.read_text().splitlines()) == 3
    index = command("index", "demo", place / "my index", **home)
    assert index.returncode == 0, index.stderr
    assert "5 nats in total" in command("ledger", "budget", "--total", "5", **home).stdout


# A home that cannot be written.


@pytest.fixture
def read_only_home(tmp_path):
    """Root may write anywhere, but on a disk that is mounted to be read."""
    make_space(tmp_path / "space")
    (tmp_path / "vectors.txt").write_text("worda 1 2\nwordb 2 1\n")
    home = tmp_path / "home"
    home.mkdir()
    if os.geteuid() == 0:
        mount = shutil.which("mount") or "false"
        options = ["-t", "tmpfs", "-o", "ro,size=64k", "none", str(home)]
        if subprocess.run([mount, *options], capture_output=True, check=False).returncode:
            pytest.skip("no disk can be mounted here")
        yield home
        subprocess.run(["umount", str(home)], check=True)
        return
    home.chmod(0o555)
    yield home
    home.chmod(0o755)


def elsewhere_in(home):
    """The variables by which a user's folders are found, all of them in a read-only home."""
    names = ("CACHE", "DATA", "STATE", "CONFIG")
    folders = {f"XDG_{name}_HOME": str(home / f".{name.lower()}") for name in names}
    return {"HOME": str(home), "SOTTOVOCE_HOME": "", "PYTHONDONTWRITEBYTECODE": "1", **folders}


@posix
def test_in_a_read_only_home_what_needs_no_file_works(read_only_home):
    space = read_only_home.parent / "space"
    done = command(
        *("obfuscate", "worda wordb", "-m", "cmp:epsilon=2", "--space", space, "-n", "2"),
        **elsewhere_in(read_only_home),
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 2


@posix
@pytest.mark.parametrize(
    "arguments",
    [
        ("ledger", "budget", "--total", "5"),
        ("obfuscate", "worda", "-m", "cmp:epsilon=2", "--ledger"),
        ("spaces", "import", "vectors.txt", "--name", "mine"),
    ],
)
def test_in_a_read_only_home_the_rest_is_refused_and_says_what_to_do(read_only_home, arguments):
    folder = read_only_home.parent
    extra = ("--space", folder / "space") if "obfuscate" in arguments else ()
    done = command(*arguments, *extra, cwd=folder, **elsewhere_in(read_only_home))
    assert done.returncode != 0
    assert "SOTTOVOCE_HOME" in done.stderr
    assert "worda" not in done.stdout + done.stderr
    assert list(read_only_home.iterdir()) == []


# The versions of Python.


def test_the_versions_that_are_promised_are_those_that_are_tried():
    """Those of the project's description are in the file for continuous integration elsewhere."""
    promised = set(re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text()))
    workflow = (ROOT / ".github" / "workflows" / "platforms.yml").read_text()
    assert promised <= set(re.findall(r'"(3\.\d+)"', workflow))
    for system in ("macos", "windows", "ubuntu"):
        assert f"{system}-latest" in workflow
    assert "workflow_dispatch" in workflow
