"""``sottovoce index``: the index of a collection, on disk, for collections of any size."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from sottovoce.cli.options import AsJson
from sottovoce.cli.output import print_json, progress_bar, say


def index(
    collection: Annotated[
        str,
        typer.Argument(
            help="demo, a folder with corpus.jsonl, a file of JSON lines (.jsonl, .gz), "
            "ir_datasets:ID; documents are read one after the other."
        ),
    ],
    folder: Annotated[Path, typer.Argument(help="Where the index is written.")],
    encoder: Annotated[
        str | None,
        typer.Option(help="Also write vectors, for dense search: light, strong, a folder."),
    ] = None,
    language: Annotated[str, typer.Option(help="Of the documents: en, de.")] = "en",
    as_json: AsJson = False,
) -> None:
    """Write the index of a collection once; memory stays bounded, however large it is.

    Then --engine stored:FOLDER searches it with BM25, --engine stored-dense:FOLDER by vectors.
    """
    from dataclasses import asdict

    from sottovoce.collections import read_documents
    from sottovoce.engines.stored import make_index

    start = time.monotonic()
    with progress_bar("encoding") as progress:
        facts = make_index(
            read_documents(collection),
            folder,
            encoder=encoder,
            language=language,
            progress=progress,
        )
    size = sum(file.stat().st_size for file in folder.expanduser().iterdir())
    if as_json:
        print_json({**asdict(facts), "disk_bytes": size})
        return
    say(
        f"{facts.documents:,} documents, {size / 1e6:,.1f} MB, made in "
        f"{time.monotonic() - start:.1f} s; search it with --engine stored:{folder}"
        + (f" or stored-dense:{folder}" if encoder else "")
    )
