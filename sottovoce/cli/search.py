"""``sottovoce search``: what stays, what is sent, what is found, what it costs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sottovoce.cli.progress import progress_bar
from sottovoce.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from sottovoce.collections import Document
    from sottovoce.search import PrivateSearch, SearchResult, Step
    from sottovoce.types import Progress

Release = Literal["once", "independent", "remembered"]
Pooling = Literal["union", "rrf", "combsum"]
Original = Literal["allow", "refuse"]

SENT_SHOWN = 20


def search(
    query: Annotated[
        str, typer.Argument(metavar="QUERY|-", help="It stays here; - reads it from stdin.")
    ],
    collection: Annotated[
        str, typer.Option("--collection", help="demo, a folder, or ir_datasets:ID.")
    ] = "demo",
    engine: Annotated[
        str,
        typer.Option(
            help="bm25, tfidf, dense, http:FILE.toml, opensearch:URL/INDEX, postgres:DSN#TABLE."
        ),
    ] = "bm25",
    mechanism: Annotated[
        str, typer.Option("-m", "--mechanism", help="Name or spec, as cmp:epsilon=12.5.")
    ] = "cmp",
    epsilon: Annotated[
        float | None, typer.Option("-e", "--epsilon", help="Else the mechanism's (cmp: 10).")
    ] = None,
    n: Annotated[int, typer.Option("-n", "--variants", help="Queries to send.")] = 20,
    release: Annotated[
        Release | None,
        typer.Option(help="How they are drawn; once if the mechanism can, else independent."),
    ] = None,
    space: Annotated[str | None, typer.Option(help="Word space: a name or a folder.")] = None,
    protect: Annotated[
        str | None, typer.Option(metavar="WHICH", help="Words to protect, as for obfuscate.")
    ] = None,
    pooling: Annotated[Pooling, typer.Option(help="How answers are put together.")] = "union",
    rerank: Annotated[
        str, typer.Option(help="auto, light, strong, bm25, none: what orders the answers here.")
    ] = "auto",
    depth: Annotated[int, typer.Option(help="Documents taken from each answer.")] = 100,
    top: Annotated[int, typer.Option(help="Hits to show.")] = 10,
    original: Annotated[
        Original, typer.Option(help="If a variant is the query itself: send it, or nothing.")
    ] = "allow",
    ledger: Annotated[
        bool, typer.Option("--ledger/--no-ledger", help="Count this search in the ledger.")
    ] = True,
    corpus: Annotated[
        Path | None, typer.Option(help="Documents of yours that fea reads its words off.")
    ] = None,
    pool: Annotated[
        str | None, typer.Option(help="Public strings that comet sends, as for obfuscate.")
    ] = None,
    encoder: Annotated[str, typer.Option(help="Sentence encoder of comet.")] = "auto",
    seed: Annotated[int | None, typer.Option(help="Reproducible, for experiments only.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Search without saying what for: only obfuscated queries leave.

    [bold]Examples[/bold]

      sottovoce search "treatment for skin cancer"

      sottovoce search "divorce lawyer" --collection my-articles --engine dense -e 12.5

      sottovoce search "debt advice" --engine http:searxng.toml -n 5 --release remembered
    """
    if query == "-":
        query = sys.stdin.readline()
    if not query.strip():
        raise UsageError("give something to search for, or - to read it from standard input")
    prepared = _prepare(
        collection=collection,
        engine=engine,
        mechanism=mechanism,
        epsilon=epsilon,
        n=n,
        release=release,
        space=space,
        protect=protect,
        pooling=pooling,
        rerank=rerank,
        depth=depth,
        original=original,
        ledger=ledger,
        corpus=corpus,
        pool=pool,
        encoder=encoder,
        seed=seed,
    )
    with progress_bar("asking, one query after the other") as progress:
        result = prepared.search(query, top, on_step=_shown_while_sending(progress))
    if as_json:
        typer.echo(json.dumps(result.to_dict(), ensure_ascii=False, indent=2))
    else:
        show(result, prepared)


def _prepare(
    *,
    collection: str,
    engine: str,
    mechanism: str,
    epsilon: float | None,
    n: int,
    release: Release | None,
    space: str | None,
    protect: str | None,
    pooling: Pooling,
    rerank: str,
    depth: int,
    original: Original,
    ledger: bool,
    corpus: Path | None,
    pool: str | None,
    encoder: str,
    seed: int | None,
) -> PrivateSearch:
    """Everything that a search needs, loaded."""
    from sottovoce.cli.building import build_mechanism
    from sottovoce.engines.base import LocalEngine
    from sottovoce.engines.choose import choose_engine
    from sottovoce.ledger import Ledger
    from sottovoce.obfuscation import Obfuscator, release_for
    from sottovoce.search import PrivateSearch, load_reranker
    from sottovoce.search.reranking import EncoderReranker
    from sottovoce.text import TextPipeline

    settings = {} if epsilon is None else {"epsilon": epsilon}
    chosen = build_mechanism(mechanism, settings, space, "all", corpus, pool, encoder)
    obfuscator = Obfuscator(
        chosen,
        n=n,
        release=release_for(chosen, release),
        pipeline=TextPipeline(protect=protect or chosen.protects),
        rng=seed,
    )
    documents: list[Document] = []
    there = choose_engine(engine, _documents(collection, documents))
    reranker = load_reranker(rerank)
    if documents and isinstance(reranker, EncoderReranker) and isinstance(there, LocalEngine):
        with progress_bar("reading the collection") as progress:
            reranker.prepare([there.text(each.doc_id) for each in documents], progress)
    return PrivateSearch(
        obfuscator,
        engine=there,
        reranker=reranker,
        ledger=Ledger.open() if ledger else None,
        remember=release == "remembered",
        pooling=pooling,
        depth=depth,
        original=original,
    )


def _shown_while_sending(progress: Progress | None) -> Callable[[Step], None]:
    """Draw the bar while an engine is asked one query after the other."""

    def show_step(step: Step) -> None:
        if progress is not None and step.name == "sending" and step.done:
            progress(step.done, step.of)

    return show_step


def _documents(collection: str, read: list[Document]) -> Iterator[Document]:
    """Read only when an engine asks for them, and note which ones."""
    from sottovoce.collections import load_collection

    read += load_collection(collection).documents
    yield from read


def show(result: SearchResult, search: PrivateSearch, console: Console | None = None) -> None:
    """The result for people."""
    from rich.console import Console
    from rich.markup import escape
    from rich.padding import Padding

    console = console or Console(highlight=False)
    console.print(f"\n[bold]Stayed here[/bold]  {escape(result.query)}")
    again = " once more, as before" if result.recalled else ""
    where = "" if search.engine.remote else ", which plays the stranger on this machine"
    console.print(
        f"\n[bold]Sent[/bold]  {len(result.sent)} queries{again} to {result.engine}{where}:"
    )
    for line in result.sent[:SENT_SHOWN]:
        console.print(Padding(escape(line), (0, 0, 0, 2)), style="dim")
    if len(result.sent) > SENT_SHOWN:
        console.print(f"  … and {len(result.sent) - SENT_SHOWN} more", style="dim")
    order = f"in the order of what you really asked (re-ranked here, {result.reranker})"
    if result.reranker == "none":
        order = "in the engine's order (not re-ranked)"
    console.print(f"\n[bold]Found[/bold]  {result.pool} documents; {order}:\n")
    for hit in result.hits:
        title = escape(hit.title or hit.doc_id)
        console.print(
            f" [bold]{hit.rank:>2}  {title}[/bold]  [dim]{hit.score:.2f}, found by "
            f"{len(hit.found_by)} of {len(result.sent)}[/dim]"
        )
        console.print(Padding(escape(hit.snippet), (0, 0, 0, 5)))
    if not result.hits:
        console.print("  Nothing. Try more variants (-n), a larger epsilon, or another engine.")
    _show_cost(result, search, console)


def _show_cost(result: SearchResult, search: PrivateSearch, console: Console) -> None:
    from sottovoce.ledger.entries import unit

    per = unit(result.guarantee.notion, result.guarantee.metric)
    cost = "nothing bounds it" if result.spent is None else f"{result.spent:g} nats {per}"
    console.print(f"\n[bold]Cost[/bold]  {cost}, {result.mechanism}, {result.release}", end="")
    if search.ledger is not None:
        totals = [each for each in search.ledger.spent(result.query) if each.unit == per]
        for each in totals:
            so_far = "without bound" if each.nats is None else f"{each.nats:g} nats"
            console.print(f"; on this query so far {so_far}", end="")
    console.print(".")
    console.print(
        f"[bold]Said aloud[/bold]  {result.said_aloud} of the {result.words} words of your query "
        "stand in what was sent, among the others. If you can read off the subject, so can a "
        "stranger: then use a smaller epsilon (-e)."
    )
    if result.problem:
        console.print(result.problem, style="bold yellow", markup=False)
    if result.query_sent:
        how = (
            "Nothing in it is a word to protect"
            if result.spent == 0 and not result.recalled
            else "By chance"
        )
        console.print(f"The query itself was sent. {how}.", style="bold yellow")
    console.print(f"[bold]Promise[/bold]  {result.guarantee.sentence}")
    for caveat in result.guarantee.caveats:
        console.print(f"  - {caveat}", style="dim")
    if result.seeded:
        console.print("Seeded: reproducible, for experiments only.", style="yellow")
