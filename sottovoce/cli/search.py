"""``sottovoce search``: what stays here, what is sent, what is found, what it costs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sottovoce import defaults
from sottovoce.choices import Pooling, Release
from sottovoce.cli.cover_options import CoverOptions
from sottovoce.cli.option_groups import grouped
from sottovoce.cli.options import (
    AsJson,
    EngineOptions,
    LayoutOptions,
    MechanismOptions,
    ResourceOptions,
    Seed,
    TextOptions,
)
from sottovoce.cli.output import new_console, print_json, progress_bar
from sottovoce.cli.own_pools import say_if_own
from sottovoce.cli.vector_search import StoreSearch, VectorOptions
from sottovoce.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from sottovoce.collections import Document
    from sottovoce.mechanisms import Mechanism
    from sottovoce.mechanisms.company import Company
    from sottovoce.obfuscation import Obfuscator
    from sottovoce.search import PrivateSearch, SearchResult, Step
    from sottovoce.spaces.space import WordSpace
    from sottovoce.types import Progress

SENT_SHOWN = 20


@dataclass(frozen=True)
class SearchOptions(EngineOptions):
    """Where to search, how often, and what becomes of the answers."""

    n: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--variants",
            help=f"Queries to send; {defaults.VARIANTS} unless --cover decides.",
            show_default=False,
        ),
    ] = None
    release: Annotated[
        Release | None,
        typer.Option(help="How queries are drawn; once if the mechanism can, else independent."),
    ] = None
    pooling: Annotated[Pooling, typer.Option(help="How answers are put together.")] = "union"
    top: Annotated[int, typer.Option(min=1, help="Hits to show.")] = defaults.TOP
    ledger: Annotated[
        bool,
        typer.Option(
            "--ledger/--no-ledger",
            help="Count this search in the ledger, and remember the draws of its words.",
        ),
    ] = True
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            help="Draw words anew that were sent before: it tells more of them, and is counted.",
        ),
    ] = False
    fit: Annotated[
        bool,
        typer.Option(
            "--fit/--no-fit",
            help="Prefer frequent words, and those that the documents on this machine hold. It "
            "costs no privacy; it is for noise mechanisms, unless you choose prior or vocabulary.",
        ),
    ] = True


@grouped
def search(
    query: Annotated[
        str, typer.Argument(metavar="QUERY|-", help="What to search for; - reads it from stdin.")
    ],
    how: SearchOptions,
    cover: CoverOptions,
    mechanism: MechanismOptions,
    resources: ResourceOptions,
    texts: TextOptions,
    layout: LayoutOptions,
    vectors: VectorOptions,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Search without saying what for: only obfuscated queries, or public ones, leave.

    [bold]Examples[/bold]

      sottovoce search "treatment for skin cancer"

      sottovoce search "divorce lawyer" --collection my-articles --engine dense -e 12.5

      sottovoce search "debt advice" --engine http:searxng.toml -n 5

      sottovoce search "treatment for skin cancer" --cover 20 --pool demo

      sottovoce search "debt advice" --one-in 20 --most-queries 60 --pool demo

      sottovoce search "debt advice" --engine qdrant:store.toml -e 60 --depth 500
    """
    from sottovoce.engines import is_vector_store
    from sottovoce.search import worn_out

    if query == "-":
        query = sys.stdin.readline()
    if not query.strip():
        raise UsageError("give something to search for, or - to read it from standard input")
    vectors.check(is_vector_store(how.engine))
    if is_vector_store(how.engine):
        used = (cover, replace(mechanism, epsilon=None), resources, texts, layout)
        _refuse_for_stores(how, used)
        store = StoreSearch(
            engine=how.engine,
            collection=how.collection,
            rerank=how.rerank,
            depth=how.depth,
            epsilon=mechanism.epsilon,
            top=how.top,
            ledger=how.ledger,
            fresh=how.fresh,
            seed=seed,
            vectors=vectors,
        )
        store.run(query, as_json=as_json)
        return
    obfuscator = _obfuscator(how, cover, mechanism, resources, texts, seed)
    obfuscator = cover.in_chorus(obfuscator, resources)
    pool = getattr(obfuscator, "pool", None) or getattr(obfuscator.mechanism, "pool", None)
    if pool is not None:
        say_if_own(pool.strings)
    layout.check(obfuscator.mechanism)
    chosen = texts.protect is not None or texts.unprotected is not None
    private_search = _prepare(how, obfuscator, layout, drop_function_words=not chosen)
    release = private_search.count(query)
    worn = worn_out(private_search, release.result.company)
    if worn:  # Who ends the command here has sent nothing, but nobody is asked.
        typer.secho(worn, fg="yellow", err=True)
    with progress_bar("asking, one query after the other") as progress:
        result = private_search.send(release, how.top, on_step=_shown_while_sending(progress))
    if as_json:
        print_json({**result.to_dict(), "worn_out": worn})
        return
    show(result, private_search)


def _refuse_for_stores(how: SearchOptions, groups: Sequence[Any]) -> None:
    """Refuse options about queries made of words: a store of vectors gets none."""
    usual, names = SearchOptions(), ("n", "release", "pooling", "fit")
    changed = [name for name in names if getattr(how, name) != getattr(usual, name)]
    changed += [
        field.name
        for group in groups
        for field in fields(group)
        if getattr(group, field.name) != field.default
    ]
    if changed:
        typed = {"n": "-n", "mechanism": "-m", "fit": "--no-fit", "more": "--with"}
        option = typed.get(changed[0], f"--{changed[0].replace('_', '-')}")
        raise UsageError(
            f"{option} is about queries in words, and this store gets one vector: leave it out"
        )


def _obfuscator(
    how: SearchOptions,
    cover: CoverOptions,
    mechanism: MechanismOptions,
    resources: ResourceOptions,
    texts: TextOptions,
    seed: int | None,
) -> Obfuscator:
    from sottovoce.mechanisms.base import SetMechanism
    from sottovoce.obfuscation import Obfuscator, release_for

    mechanism = cover.mechanism(mechanism, how.n, how.release)
    if mechanism == MechanismOptions():
        mechanism = MechanismOptions(epsilon=defaults.SEARCH_EPSILON)
    built = cover.with_decoys(mechanism.build(cover.without_pool(resources)))
    usual = 1 if isinstance(built, SetMechanism) else defaults.VARIANTS
    return Obfuscator(
        built,
        n=usual if how.n is None else how.n,
        release=release_for(built, how.release),
        pipeline=texts.pipeline(built, restore_case=False),
        rng=seed,
    )


def _prepare(
    how: SearchOptions, obfuscator: Obfuscator, layout: LayoutOptions, *, drop_function_words: bool
) -> PrivateSearch:
    """Everything else that a search needs, loaded; the engine decides how words are laid out."""
    from sottovoce.engines import choose_engine
    from sottovoce.engines.base import LocalEngine, language_of
    from sottovoce.ledger import Ledger
    from sottovoce.search import PrivateSearch, fitted_to, laid_out_for, load_reranker
    from sottovoce.search.reranking import EncoderReranker

    documents: list[Document] = []
    engine = choose_engine(how.engine, _documents(how.collection, documents))
    reranker = load_reranker(how.rerank)
    if documents and isinstance(reranker, EncoderReranker) and isinstance(engine, LocalEngine):
        with progress_bar("reading the collection") as progress:
            reranker.prepare([engine.text(document.doc_id) for document in documents], progress)
    pipeline = laid_out_for(
        engine,
        obfuscator.pipeline,
        obfuscator.mechanism,
        shuffle=layout.shuffle,
        pad_to=layout.pad,
        drop_function_words=drop_function_words,
    )
    mechanism = obfuscator.mechanism
    if how.fit:
        language = language_of(engine)
        mechanism = fitted_to(
            engine, mechanism, lambda: _fitted_space(mechanism, how, documents, language)
        )
    return PrivateSearch(
        replace(obfuscator, mechanism=mechanism, pipeline=pipeline),
        engine=engine,
        reranker=reranker,
        ledger=Ledger.open() if how.ledger else None,
        fresh=how.fresh,
        pooling=how.pooling,
        depth=how.depth or defaults.usual_depth(how.collection, remote=engine.remote),
    )


def _fitted_space(
    mechanism: Mechanism, how: SearchOptions, documents: Sequence[Document], language: str
) -> WordSpace:
    from sottovoce.mechanisms.base import WordMechanism
    from sottovoce.output_vocabularies import of_search

    assert isinstance(mechanism, WordMechanism)  # noqa: S101 - only these are fitted
    output = of_search(mechanism.space, documents, how.collection, language)
    return mechanism.space.with_output(output)


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
    from rich.markup import escape
    from rich.padding import Padding

    console = console or new_console()
    console.print(f"\n[bold]Stayed here[/bold]  {escape(result.query)}")
    again = ""
    if result.recalled:
        again = ", of words drawn and counted before,"
        if result.company is not None:
            again = ", drawn and counted before,"
            if result.company.subjects is not None:
                again = ", on subjects drawn and counted before,"
    queries = "query" if len(result.sent) == 1 else "queries"
    where = "" if search.engine.remote else ", which plays the stranger on this machine"
    console.print(
        f"\n[bold]Sent[/bold]  {len(result.sent)} {queries}{again} to {result.engine}{where}:"
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
        more = "more variants (-n), a larger epsilon"
        if result.company is not None:
            more = "a larger pool (--pool), larger groups (--group)"
        console.print(f"  Nothing. Try {more}, or another engine.")
    _show_cost(result, search, console)


def _show_cost(result: SearchResult, search: PrivateSearch, console: Console) -> None:
    from sottovoce.ledger import Promise

    per = Promise.of(result.guarantee, None).unit
    cost = "nothing bounds it" if result.spent is None else f"{result.spent:g} nats"
    if result.spent is not None and result.guarantee.notion != "none":
        cost = f"{cost} {per}"
    console.print(f"\n[bold]Cost[/bold]  {cost}, {result.mechanism}, {result.release}", end="")
    if search.ledger is not None:
        for total in search.ledger.spent(result.query):
            if total.unit == per:
                so_far = "without bound" if total.nats is None else f"{total.nats:g} nats"
                console.print(f"; on this query so far {so_far}", end="")
    console.print(".")
    if result.company is None:
        _show_what_was_said(result, console)
    else:
        _show_company(result.company, console)
    if result.problem:
        console.print(result.problem, style="bold yellow", markup=False)
    console.print(f"[bold]Promise[/bold]  {result.guarantee.sentence}")
    for caveat in result.guarantee.caveats:
        console.print(f"  - {caveat}", style="dim")
    if result.seeded:
        console.print("Seeded: reproducible, for experiments only.", style="yellow")


def _show_company(company: Company, console: Console) -> None:
    from rich.markup import escape

    console.print(f"[bold]Company[/bold]  {company.sentence}")
    style = "bold yellow" if company.query_sent else None
    console.print(f"[bold]Your query[/bold]  {company.whether_sent}", style=style)
    if not company.is_text:
        console.print(f"  The public query that stands for it: {escape(company.representative)}")


def _show_what_was_said(result: SearchResult, console: Console) -> None:
    console.print(
        f"[bold]Said aloud[/bold]  {result.said_aloud} of the {result.words} words of your query "
        "stand in what was sent, among the others. If you can read off the subject, so can a "
        "stranger: then use a smaller epsilon (-e)."
    )
    if result.query_sent:
        how = (
            "Nothing in it is a word to protect"
            if result.spent == 0 and not result.recalled
            else "By chance"
        )
        console.print(f"The query itself was sent. {how}.", style="bold yellow")
