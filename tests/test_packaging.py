"""What people install: a wheel and an sdist, whole, that work outside the checkout."""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

import sottovoce
from sottovoce.extras import EXTRAS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BUILT_FROM = ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in", "CITATION.cff")
VECTORS = "skin 1 0 0\ncancer 0 1 0\ntumour 0 1 1\nbread 1 1 0\n"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from the sdist, which is built from a copy of the checkout."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in (*BUILT_FROM, "CHANGELOG.md"):
        shutil.copy(ROOT / name, source)
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "sottovoce", source / "sottovoce", ignore=without)
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", out, source]
    done = subprocess.run(build, capture_output=True, text=True, env=outside(), timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    (sdist,), (path,) = out.glob("*.tar.gz"), out.glob("*.whl")
    assert sdist.name == f"sottovoce-{sottovoce.__version__}.tar.gz"
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A new environment with the wheel; packages that it needs are those of this one."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "packages_of_the_tests.pth").write_text("\n".join(site.getsitepackages()))
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python"]
    install = [*pip, "install", "--quiet", "--no-deps", "--no-index", "--no-warn-script-location"]
    subprocess.run([*install, wheel], check=True, env=outside(), timeout=300)
    return folder / "bin"


def outside(**more: str) -> dict[str, str]:
    """The environment without what would lead back to the checkout."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "NO_COLOR": "1", **more}


def test_the_wheel_holds_every_file_of_the_package(wheel):
    with ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("sottovoce/")}
    files = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "sottovoce").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packed == files


def test_it_works_outside_the_checkout(installed, tmp_path):
    environment = outside(SOTTOVOCE_HOME=str(tmp_path / "home"))

    def run(*arguments: str, **more: str) -> str:
        command = [str(installed / arguments[0]), *arguments[1:]]
        around = {"cwd": tmp_path, "env": {**environment, **more}, "timeout": 120}
        done = subprocess.run(command, capture_output=True, text=True, **around)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run("sottovoce", "--version") == f"sottovoce {sottovoce.__version__}\n"
    completing = {"_SOTTOVOCE_COMPLETE": "complete_bash", "COMP_WORDS": "sottovoce se"}
    assert run("sottovoce", **completing, COMP_CWORD="1").split() == ["search", "serve"]
    where = run("python", "-c", "import sottovoce; print(sottovoce.__file__)")
    assert Path(where).is_relative_to(installed.parent)
    assert "cmp" in {each["name"] for each in json.loads(run("sottovoce", "mechanisms", "--json"))}
    (tmp_path / "vectors.txt").write_text(VECTORS)
    run("sottovoce", "spaces", "import", "vectors.txt", "--name", "tiny")
    released = run("sottovoce", "obfuscate", "skin cancer", "--space", "tiny", "-n", "3", "-e", "2")
    words = {line.split()[0] for line in VECTORS.splitlines()}
    assert len(released.splitlines()) == 3
    assert set(released.split()) <= words
    findings = json.loads(run("sottovoce", "doctor", "--json"))["findings"]
    assert {f["name"] for f in findings if f["area"] == "extras"} == set(EXTRAS)
    found = run("sottovoce", "search", "bread", "--space", "tiny", "-n", "2", "--rerank", "light")
    assert "Stayed here  bread" in found


def test_every_extra_says_what_it_brings():
    assert set(EXTRAS) == set(PROJECT["optional-dependencies"])


def test_versions_agree():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {sottovoce.__version__}\n" in citation
    assert PROJECT["version"] == sottovoce.__version__


def test_the_image_is_made_of_files_that_are_here():
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    copied = [name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]]
    assert copied
    assert all((ROOT / name).exists() for name in copied)
