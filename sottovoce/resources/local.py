"""What is on this machine: open a word space by its name, list everything that was added."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from sottovoce.errors import SpaceError, UsageError, did_you_mean
from sottovoce.paths import spaces_folder
from sottovoce.resources import catalogue
from sottovoce.resources.catalogue import WORD_SPACE, Resource, find
from sottovoce.resources.install import SPACE_NAME
from sottovoce.spaces import store
from sottovoce.spaces.space import WordSpace, open_cached
from sottovoce.spaces.space_facts import disk_bytes

DEFAULT_SPACE = "default"


@dataclass(frozen=True)
class Listed:
    """A word space or other resource that is on this machine, or could be added to it."""

    name: str
    alias: str | None
    about: str
    words: int
    dimension: int | None
    installed: bool
    disk_bytes: int | None = None
    problem: str | None = None
    """Why an installed one cannot be opened, and what to do about it."""
    kind: str = WORD_SPACE


def load_space(name_or_path: str | None = None) -> WordSpace:
    """Open a word space by alias, name or folder; none given means the default one."""
    wish = DEFAULT_SPACE if name_or_path is None else name_or_path
    resource = find(wish)
    if wish == DEFAULT_SPACE and not _is_here(catalogue.DEFAULT.name):
        # Without the encoder, the words that it would be opened from serve as well.
        resource = catalogue.GLOVE_840B if _is_here(catalogue.GLOVE_840B.name) else resource
    name = resource.name if resource else wish
    if _is_here(name):
        return open_cached((spaces_folder() / name).resolve())
    if resource is not None and resource.kind == WORD_SPACE:
        raise SpaceError(
            f"the word space '{name}' is not on this machine yet: get it once with "
            f"'sottovoce spaces add {resource.alias or resource.name}'"
        )
    if resource is not None:
        raise UsageError(
            f"{resource.name} is a {resource.kind}, not a word space: give the name of one, such "
            "as 'default'"
        )
    folder = Path(wish).expanduser()
    if folder.is_dir():
        return open_cached(folder.resolve())
    hint = did_you_mean(wish, _space_names())
    raise UsageError(
        f"no word space '{wish}'{hint and f' ({hint})'}: it is neither a name that "
        "'sottovoce spaces list' shows nor a folder; get the default one with "
        "'sottovoce spaces add default'"
    )


def _is_here(name: str) -> bool:
    """Whether a word space of this name is on this machine."""
    return (
        bool(SPACE_NAME.fullmatch(name)) and (spaces_folder() / name / store.DESCRIPTION).exists()
    )


def _space_names() -> list[str]:
    """The word spaces that are here, then those that could be, with their aliases."""
    offered = [resource for resource in catalogue.CATALOGUE if resource.kind == WORD_SPACE]
    installed_names = [space.name for space in installed() if space.kind == WORD_SPACE]
    return [*installed_names, *(name for resource in offered for name in resource.names)]


def installed() -> list[Listed]:
    """List what is on this machine, damaged or not."""
    return [resource for resource in listed() if resource.installed]


def listed() -> list[Listed]:
    """List the word spaces of the catalogue, added or not, those imported, then the rest."""
    folders = sorted(file.parent for file in spaces_folder().glob(f"[!.]*/{store.DESCRIPTION}"))
    imports = {folder.name: folder for folder in folders}
    spaces = [
        _look_at_space(imports.pop(resource.name), resource)
        if resource.name in imports
        else _offer(resource)
        for resource in catalogue.CATALOGUE
        if resource.kind == WORD_SPACE
    ]
    imported = [_look_at_space(folder) for folder in imports.values()]
    kept_as_is = [
        look_at_files(resource) for resource in catalogue.CATALOGUE if resource.kind != WORD_SPACE
    ]
    return [*spaces, *imported, *kept_as_is]


def _offer(resource: Resource) -> Listed:
    return Listed(
        name=resource.name,
        alias=resource.alias,
        about=resource.about,
        words=resource.words,
        dimension=resource.dimension,
        installed=False,
        kind=resource.kind,
    )


def _look_at_space(folder: Path, resource: Resource | None = None) -> Listed:
    alias = resource.alias if resource else None
    used = disk_bytes(folder)
    try:
        space = WordSpace.open(folder)
    except SpaceError as error:
        return Listed(folder.name, alias, "damaged", 0, 0, True, used, problem=str(error))
    about = resource.about if resource else _origin(space)
    return Listed(folder.name, alias, about, space.size, space.dimension, True, used)


def _origin(space: WordSpace) -> str:
    """Where a space of one's own comes from, in a few words."""
    if space.encoder is not None:
        return f"made with {space.encoder.name} from {space.source.get('words from', 'a list')}"
    return f"imported from {space.source.get('file', 'a file')}"


def look_at_files(resource: Resource) -> Listed:
    """Say whether a resource is here that is kept as it came; files are looked at, not read."""
    if not resource.folder.is_dir():
        return _offer(resource)
    files = [resource.folder / file.name for file in resource.files]
    present = [file for file in files if file.is_file()]
    problem = f"incomplete: 'sottovoce spaces add {resource.name}' puts it right"
    return replace(
        _offer(resource),
        installed=True,
        disk_bytes=sum(file.stat().st_size for file in present),
        problem=problem if len(present) < len(files) else None,
    )
