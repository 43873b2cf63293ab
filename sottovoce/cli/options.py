"""Options that several commands share, declared once.

A group is a dataclass whose fields are options. A command decorated with :func:`grouped` takes a
group as one argument; on the command line its fields are options like all others, shown together
under the group's ``panel``.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

import typer

from sottovoce import defaults
from sottovoce.choices import Release, UnknownPolicy, Unprotected
from sottovoce.cli.option_values import given_parameters, key_values, listed_words
from sottovoce.devices import Device, set_device
from sottovoce.errors import UsageError

if TYPE_CHECKING:
    from sottovoce.mechanisms import Mechanism, WordMechanism
    from sottovoce.spaces.space import WordSpace
    from sottovoce.text import TextPipeline
    from sottovoce.types import IntArray

# Single options

AllowedHosts: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host", metavar="NAME[:PORT]", help="A further name by which it may be addressed."
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Epsilon: TypeAlias = Annotated[
    float | None, typer.Option("-e", "--epsilon", help="Budget for each word and release.")
]
Epsilons: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("-e", "--epsilon", metavar="E[,E…]", help="One or more epsilons."),
]
Host: TypeAlias = Annotated[
    str, typer.Option(help="Address to listen on; any but 127.0.0.1 lets other machines in!")
]
HowReleased: TypeAlias = Annotated[
    Release, typer.Option("--release", help="N fresh draws, or N readings of one draw.")
]
Parameters: TypeAlias = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Mechanism parameter.")
]
PoolSource: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--pool",
        help="Public strings that leave instead of yours (cover, company, comet): demo, a pool's "
        "name, a file …",
    ),
]
Port: TypeAlias = Annotated[
    int, typer.Option(min=0, max=65535, help="Where to listen; 0 for any free port.")
]
Seed: TypeAlias = Annotated[
    int | None, typer.Option("--seed", help="Reproducible draws, for experiments only.")
]
Space: TypeAlias = Annotated[
    str | None, typer.Option("--space", help="Word space: a name or a folder.")
]
Spec: TypeAlias = Annotated[
    str, typer.Argument(metavar="SPEC", help="A mechanism by name or spec, as cmp:epsilon=10.")
]
Workers: TypeAlias = Annotated[
    int, typer.Option("--workers", help="Worker processes on this machine.")
]


def figure_option(shows: str) -> Any:
    """``--figure``: whether the file can be written is checked before the long work."""
    return typer.Option("--figure", metavar="OUT.png|svg", help=shows, callback=_checked_figure)


def _checked_figure(path: Path | None) -> Path | None:
    if path is None:
        return None
    from sottovoce.plotting import check_figure_path

    return check_figure_path(path)


# Groups


Corpus = Annotated[
    Path | None,
    typer.Option(
        help="Documents (JSON lines or text) from which fea takes its words; to attack, the "
        "engine's: what is found there is compared, too."
    ),
]


@dataclass(frozen=True)
class SpaceOptions:
    """What a mechanism works on that replaces words."""

    panel: ClassVar[str] = "What the mechanism works on"

    space: Space = None
    output_vocabulary: Annotated[
        str, typer.Option(help="Words that may be released: all, clean, dictionary, file:PATH …")
    ] = "all"

    @property
    def settings(self) -> dict[str, Any]:
        """What :func:`sottovoce.mechanisms.build.build` takes."""
        return {"space": self.space, "output_vocabulary": self.output_vocabulary}


@dataclass(frozen=True)
class ResourceOptions(SpaceOptions):
    """What any mechanism works on."""

    corpus: Corpus = None
    pool: PoolSource = None
    encoder: Annotated[
        str,
        typer.Option(help="Sentence encoder of the pool: auto, light, strong, a model's folder."),
    ] = "auto"
    more: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="KEY=VALUE", help="What else a mechanism works on."),
    ] = None

    @property
    def settings(self) -> dict[str, Any]:
        named = {"corpus": self.corpus, "pool": self.pool, "encoder": self.encoder}
        return {**super().settings, **named, **key_values(self.more, "--with")}


@dataclass(frozen=True)
class DeviceOptions:
    """Which device searches for nearest words."""

    panel: ClassVar[str] = "Machines"

    device: Annotated[
        Device | None,
        typer.Option(
            help="Search for nearest words on the processor or on a GPU; on a GPU if there is one.",
            show_default=False,
        ),
    ] = None

    def use(self) -> None:
        """Search there from now on; refuses a GPU that is not there."""
        set_device(self.device or "auto")


@dataclass(frozen=True)
class MechanismOptions:
    """Which mechanism, with which parameters."""

    panel: ClassVar[str] = "Mechanism"

    mechanism: Annotated[
        str, typer.Option("-m", "--mechanism", help="Name or spec, as cmp:epsilon=12.5.")
    ] = defaults.MECHANISM
    epsilon: Epsilon = None
    set: Parameters = None

    def build(self, resources: SpaceOptions) -> Mechanism:
        parameters = given_parameters(self.set, self.epsilon)
        return build_mechanism(self.mechanism, parameters, resources.settings)


@dataclass(frozen=True)
class EngineOptions:
    """What is searched, and how much of each answer is taken."""

    collection: Annotated[
        str, typer.Option("--collection", help="demo, a folder, or ir_datasets:ID.")
    ] = defaults.COLLECTION
    engine: Annotated[
        str,
        typer.Option(
            help="bm25, tfidf (German: bm25:de, tfidf:de), dense, http:FILE.toml, "
            "opensearch:URL/INDEX, postgres:DSN#TABLE (elsewhere: before these: a tunnel or "
            "proxy on this machine); stores of vectors: vectors, "
            "pgvector:FILE.toml, qdrant:FILE.toml, knn:FILE.toml."
        ),
    ] = defaults.ENGINE
    rerank: Annotated[
        str,
        typer.Option(
            help="auto, light, strong, strong-int8, bm25, none: what orders the answers here."
        ),
    ] = defaults.RERANKER
    depth: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"Documents taken from each answer; {defaults.DEMO_DEPTH} of the demo collection, "
            f"{defaults.STORE_DEPTH} of a store of vectors, else {defaults.DEPTH}.",
        ),
    ] = None


@dataclass(frozen=True)
class SampleOptions:
    """Which words are measured one by one, and how closely."""

    panel: ClassVar[str] = "Words measured"

    words: Annotated[
        str, typer.Option(metavar="N|FILE", help="How many words, or a file of words, one a line.")
    ] = "200"
    draws: Annotated[
        int, typer.Option(help="Draws for each word, where there is no exact law.")
    ] = 1000
    eta: Annotated[float, typer.Option(help="Share of a word's releases that S_w leaves out.")] = (
        0.01
    )

    def word_ids(self, space: WordSpace) -> tuple[IntArray, int]:
        """The ids of the words asked for, and how many words of a file the space lacks."""
        from sottovoce.privacy.word_samples import choose_words

        is_count = self.words.isascii() and self.words.isdigit()
        return choose_words(space, int(self.words) if is_count else Path(self.words))


@dataclass(frozen=True)
class TextOptions:
    """Which words of a text are protected, and what becomes of the rest."""

    panel: ClassVar[str] = "Words"

    unknown: Annotated[
        UnknownPolicy,
        typer.Option(
            help="What becomes of words that the space does not list. encode: its encoder gives "
            "them a vector, and they are drawn for like the others; a space without encoder does "
            "as with uniform: any word stands in."
        ),
    ] = "encode"
    protect: Annotated[
        str | None,
        typer.Option(
            metavar="WHICH",
            help="Words to protect: all, content (in German content:de), or parts of "
            "speech as noun,adjective. As in the mechanism's paper if not given.",
        ),
    ] = None
    unprotected: Annotated[
        Unprotected | None,
        typer.Option(
            help="What becomes of words that are not protected: keep them in clear, or drop them.",
            show_default=False,
        ),
    ] = None
    phrases: Annotated[
        bool | None,
        typer.Option(
            "--phrases/--single-words",
            help="Replace words together that the space lists as one, as 'skin cancer', or singly.",
            show_default=False,
        ),
    ] = None
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD|file:PATH",
            help="Release these words as they are; refused while there is a budget.",
        ),
    ] = None
    drop_punctuation: Annotated[
        bool, typer.Option("--drop-punctuation", help="Leave punctuation out.")
    ] = False

    def pipeline(self, mechanism: Mechanism, *, restore_case: bool) -> TextPipeline:
        """How texts are cut for this mechanism; refuses what would do nothing."""
        from sottovoce.text import TextPipeline

        used = {
            "--keep": bool(self.keep),
            "--unknown": self.unknown != "encode",
            "--protect": self.protect is not None,
            "--unprotected": self.unprotected is not None,
            "--phrases": self.phrases is not None,
            "--drop-punctuation": self.drop_punctuation,
        }
        for option in used:
            if used[option]:
                refuse_for_whole_texts(mechanism, option)
        return TextPipeline(
            unknown=self.unknown,
            protect=self.protect or mechanism.protects,
            unprotected=self.unprotected or "keep",
            phrases=bool(self.phrases),
            keep=listed_words(self.keep),
            punctuation="drop" if self.drop_punctuation else "keep",
            restore_case=restore_case,
        )


@dataclass(frozen=True)
class LayoutOptions:
    """In which order the words of a variant come out, and how many there are."""

    panel: ClassVar[str] = "Order and number of words"

    shuffle: Annotated[
        bool | None,
        typer.Option(
            "--shuffle/--in-order",
            help="Words of each variant in random order, without punctuation, or as they stand. A "
            "search shuffles them for engines that do not look at the order.",
            show_default=False,
        ),
    ] = None
    pad: Annotated[
        int,
        typer.Option(
            metavar="K",
            min=0,
            help="Pad shorter texts to K words: uniform ones, obfuscated like the others.",
            show_default=False,
        ),
    ] = 0

    def check(self, mechanism: Mechanism) -> None:
        """Refuse what would do nothing."""
        if not mechanism.by_word and (self.shuffle or self.pad):
            option = "--shuffle" if self.shuffle else "--pad"
            raise UsageError(
                f"{option} is for mechanisms that replace word by word, and {mechanism.name} "
                "replaces whole texts: leave it out"
            )


def refuse_for_whole_texts(mechanism: Mechanism, option: str) -> None:
    """Refuse an option about words where texts are replaced as a whole: it would do nothing."""
    if not mechanism.cuts_texts:
        raise UsageError(
            f"{option} is about words, and {mechanism.name} replaces whole texts: leave it out"
        )


# Building what options ask for


def build_mechanism(spec: str, parameters: dict[str, Any], settings: dict[str, Any]) -> Mechanism:
    """A mechanism with what it works on; a bar shows what takes long."""
    from sottovoce.cli.output import progress_bar
    from sottovoce.mechanisms.build import build

    with progress_bar("reading the pool") as progress:
        return build(spec, parameters, settings, progress=progress)


def build_word_mechanism(
    spec: str, parameters: dict[str, Any], resources: SpaceOptions
) -> WordMechanism:
    """The same for commands that measure single words; refuses what does not replace words."""
    from sottovoce.mechanisms import WordMechanism, parse

    if spec.strip() == "none":
        raise UsageError(
            "none protects nothing: every word comes back. Name a mechanism that replaces words, "
            "such as cmp"
        )
    kind, _ = parse(spec, **parameters)
    if not kind.by_word:
        raise UsageError(
            f"{kind.name} rewrites whole texts; this is about mechanisms that replace word by "
            "word, such as cmp: see 'sottovoce mechanisms'"
        )
    mechanism = build_mechanism(spec, parameters, resources.settings)
    assert isinstance(mechanism, WordMechanism)  # noqa: S101 - its class was asked before
    return mechanism


def build_mechanisms(
    specs: Collection[str],
    epsilons: Collection[float],
    resources: ResourceOptions,
    used_elsewhere: Collection[str] = (),
) -> list[Mechanism]:
    """Each mechanism with each epsilon; one that has no epsilon, once.

    A resource need not be for all of the mechanisms: one is enough, or something else that the
    command does (``used_elsewhere`` names such settings). One that nothing uses is refused.
    """
    from sottovoce.mechanisms import parse
    from sottovoce.mechanisms.build import settings_of

    settings_by_spec = {spec: settings_of(parse(spec)[0]) for spec in specs}
    used = set(used_elsewhere).union(*settings_by_spec.values())
    mechanisms: list[Mechanism] = []
    for spec, names in settings_by_spec.items():
        settings = {
            name: value
            for name, value in resources.settings.items()
            if name in names or name not in used
        }
        mechanism = build_mechanism(spec, {}, settings)
        if epsilons and hasattr(mechanism, "epsilon"):
            changes: list[dict[str, Any]] = [{"epsilon": epsilon} for epsilon in epsilons]
            mechanisms += [replace(mechanism, **change) for change in changes]
        else:
            mechanisms.append(mechanism)
    if epsilons and not any(hasattr(mechanism, "epsilon") for mechanism in mechanisms):
        raise UsageError(f"-e does nothing with {' and '.join(settings_by_spec)}: leave it out")
    return mechanisms
