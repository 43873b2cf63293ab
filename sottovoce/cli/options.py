"""Options that several commands share, declared once.

A group is a dataclass whose fields are options. A command decorated with :func:`grouped` takes a
group as one argument; on the command line its fields are options like all others, shown together
under the group's ``panel``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias, get_type_hints

import typer

from sottovoce.choices import UnknownPolicy
from sottovoce.errors import UsageError

if TYPE_CHECKING:
    from sottovoce.mechanisms import Mechanism
    from sottovoce.text import TextPipeline

FROM_FILE = "file:"

# Single options

Seed: TypeAlias = Annotated[
    int | None, typer.Option("--seed", help="Reproducible draws, for experiments only.")
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="For programs.")]
Workers: TypeAlias = Annotated[int, typer.Option("--workers", help="Worker processes.")]


# Groups


@dataclass(frozen=True)
class ResourceOptions:
    """What a mechanism works on."""

    panel: ClassVar[str] = "What the mechanism works on"

    space: Annotated[str | None, typer.Option(help="Word space: a name or a folder.")] = None
    output_vocabulary: Annotated[
        str, typer.Option(help="Words that may be released: all, clean, dictionary, file:PATH …")
    ] = "all"
    corpus: Annotated[
        Path | None,
        typer.Option(help="Documents of yours (JSON lines or text) that fea reads its words off."),
    ] = None
    pool: Annotated[
        str | None,
        typer.Option(help="Public strings that comet releases: demo, a file, a collection."),
    ] = None
    encoder: Annotated[
        str, typer.Option(help="Sentence encoder of comet: auto, light, strong, a model's folder.")
    ] = "auto"
    more: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="KEY=VALUE", help="What else a mechanism works on."),
    ] = None

    @property
    def settings(self) -> dict[str, Any]:
        """What :func:`sottovoce.mechanisms.build.build` takes."""
        named = {
            "space": self.space,
            "output_vocabulary": self.output_vocabulary,
            "corpus": self.corpus,
            "pool": self.pool,
            "encoder": self.encoder,
        }
        return {**named, **key_values(self.more, "--with")}


@dataclass(frozen=True)
class MechanismOptions:
    """Which mechanism, with which parameters."""

    panel: ClassVar[str] = "Mechanism"

    mechanism: Annotated[
        str, typer.Option("-m", "--mechanism", help="Name or spec, as cmp:epsilon=12.5.")
    ] = "cmp"
    epsilon: Annotated[
        float | None, typer.Option("-e", "--epsilon", help="Budget for each word and release.")
    ] = None
    set: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Mechanism parameter.")
    ] = None

    @property
    def parameters(self) -> dict[str, Any]:
        """What ``--set`` and ``--epsilon`` say."""
        given: dict[str, Any] = dict(key_values(self.set, "--set"))
        return given if self.epsilon is None else {**given, "epsilon": self.epsilon}

    def build(self, resources: ResourceOptions) -> Mechanism:
        """The mechanism asked for."""
        from sottovoce.cli.progress import progress_bar
        from sottovoce.mechanisms.build import build

        with progress_bar("reading the pool") as progress:
            return build(self.mechanism, self.parameters, resources.settings, progress=progress)


@dataclass(frozen=True)
class TextOptions:
    """Which words of a text are protected, and what becomes of the rest."""

    panel: ClassVar[str] = "Words"

    unknown: Annotated[UnknownPolicy, typer.Option(help="Words the space lacks.")] = "uniform"
    protect: Annotated[
        str | None,
        typer.Option(
            metavar="WHICH",
            help="Words to protect: all, content, or parts of speech as noun,adjective. "
            "As in the mechanism's paper if not given.",
        ),
    ] = None
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="WORD|file:PATH", help="Release this word in clear."),
    ] = None
    drop_punctuation: Annotated[
        bool, typer.Option("--drop-punctuation", help="Leave punctuation out.")
    ] = False

    def pipeline(self, mechanism: Mechanism, *, restore_case: bool = False) -> TextPipeline:
        """How texts are cut for this mechanism; refuses what would do nothing."""
        from sottovoce.text import TextPipeline

        if not mechanism.cuts_texts:
            self._refuse_for(mechanism, restore_case)
        return TextPipeline(
            unknown=self.unknown,
            protect=self.protect or mechanism.protects,
            keep=listed_words(self.keep),
            punctuation="drop" if self.drop_punctuation else "keep",
            restore_case=restore_case,
        )

    def _refuse_for(self, mechanism: Mechanism, restore_case: bool) -> None:
        """Options about words do nothing where texts are replaced as a whole."""
        used = {
            "--keep": bool(self.keep),
            "--unknown": self.unknown != "uniform",
            "--protect": self.protect is not None,
            "--restore-case": restore_case,
            "--drop-punctuation": self.drop_punctuation,
        }
        for option, is_used in used.items():
            if is_used:
                raise UsageError(
                    f"{option} is about words, and {mechanism.name} replaces whole texts: leave it "
                    "out"
                )


# Reading what options say


def key_values(pairs: list[str] | None, option: str) -> dict[str, str]:
    """Pairs as typed, ``key=value``, of an option that may be repeated."""
    values = {}
    for pair in pairs or ():
        key, sign, value = pair.partition("=")
        if not sign:
            raise UsageError(f"{option} takes key=value, as in {option} t=0.5")
        values[key.strip()] = value.strip()
    return values


def listed_words(entries: list[str] | None) -> frozenset[str]:
    """Words as typed, and those of files (``file:PATH``), one a line."""
    words: set[str] = set()
    for entry in entries or ():
        if not entry.startswith(FROM_FILE):
            words.add(entry)
            continue
        try:
            lines = Path(entry.removeprefix(FROM_FILE)).read_text("utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"a list of words cannot be read ({type(error).__name__}): give file:PATH of a "
                "UTF-8 text file with one word a line"
            ) from None
        words.update(filter(None, map(str.strip, lines)))
    return frozenset(words)


# Taking groups apart for typer, and putting them together again


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command for typer: each parameter that is a group becomes the options of the group.

    Options appear in ``--help`` in the order of the parameters, and of the fields of a group.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type[Any]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        kind = hints[parameter.name]
        if not (isinstance(kind, type) and is_dataclass(kind)):
            parameters.append(_keyword(parameter.name, parameter.default, kind))
            continue
        groups[parameter.name] = kind
        parameters += _options_of(kind)

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        command(**given)

    by_name = {parameter.name: parameter for parameter in parameters}
    if len(by_name) < len(parameters):
        raise TypeError(f"{command.__name__} has an option twice")
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {name: one.annotation for name, one in by_name.items()}
    return run


def _options_of(group: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        (option,) = hints[field.name].__metadata__
        option.rich_help_panel = getattr(group, "panel", None)
    return [_keyword(field.name, field.default, hints[field.name]) for field in fields(group)]


def _keyword(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    # Keyword-only, so that parameters with and without a default may come in any order.
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )
