"""``sottovoce search`` with a store of vectors: one noisy vector leaves, no word."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from sottovoce import defaults
from sottovoce.cli.output import new_console, print_json, progress_bar
from sottovoce.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from sottovoce.collections import Document
    from sottovoce.search import DepthPromise, PrivateVectorSearch, VectorSearchResult

NUMBERS_SHOWN = 6


@dataclass(frozen=True)
class VectorOptions:
    """What is only for stores of vectors."""

    panel: ClassVar[str] = "Stores of vectors"

    promise: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Ask as deep as the promise says that 'sottovoce vectors --out' wrote.",
            show_default=False,
        ),
    ] = None
    share: Annotated[
        float | None,
        typer.Option(
            help="The share of queries that the promise is to hold for; 0.9 if not given.",
            show_default=False,
        ),
    ] = None

    def check(self, used: bool) -> None:
        """Refuse what would do nothing."""
        if not used and (self.promise is not None or self.share is not None):
            raise UsageError("--promise and --share are for stores of vectors: leave them out")
        if self.promise is None and self.share is not None:
            raise UsageError("--share goes with --promise: make one with 'sottovoce vectors'")


@dataclass(frozen=True)
class StoreSearch:
    """What ``search`` was asked for, as far as a store of vectors goes."""

    engine: str
    collection: str
    rerank: str
    depth: int | None
    epsilon: float | None
    top: int
    ledger: bool
    fresh: bool
    seed: int | None
    vectors: VectorOptions

    def run(self, query: str, *, as_json: bool) -> None:
        """Search, and show the result."""
        search, promise = self.prepared()
        result = search.search(query, self.top)
        sentence = None if promise is None else promise.sentence(*self._promised)
        if as_json:
            print_json({**result.to_dict(), "promise": sentence})
        else:
            show(result, search, sentence)

    @property
    def _promised(self) -> tuple[float]:
        from sottovoce.search.vector_depth import SHARE

        return (self.vectors.share or SHARE,)

    def prepared(self) -> tuple[PrivateVectorSearch, DepthPromise | None]:
        """Everything that a search needs, loaded."""
        from sottovoce.encoders import load_encoder
        from sottovoce.engines import choose_vector_store
        from sottovoce.ledger import Ledger
        from sottovoce.obfuscation.vectors import EPSILON
        from sottovoce.search import PrivateVectorSearch, VectorNoise, load_reranker

        with progress_bar("reading the collection"):
            engine = choose_vector_store(self.engine, documents_for(self.engine, self.collection))
        epsilon = EPSILON if self.epsilon is None else self.epsilon
        mechanism = VectorNoise(load_encoder(engine.made_by), epsilon)
        small = is_local(self.engine) and self.collection == defaults.COLLECTION
        usual = defaults.DEPTH if small else defaults.STORE_DEPTH
        depth, promise = self.depth or usual, None
        if self.vectors.promise is not None:
            if self.depth is not None:
                raise UsageError("--depth and --promise both say how deep to ask: leave one out")
            depth, promise = self._depth(mechanism)
        search = PrivateVectorSearch(
            mechanism,
            engine,
            reranker=None if self.rerank == defaults.RERANKER else load_reranker(self.rerank),
            ledger=Ledger.open() if self.ledger else None,
            fresh=self.fresh,
            depth=depth,
            rng=self.seed,
        )
        return search, promise

    def _depth(self, mechanism: object) -> tuple[int, DepthPromise]:
        from sottovoce.search import DepthPromise, VectorNoise
        from sottovoce.search.vector_depth import store_name

        assert self.vectors.promise is not None  # noqa: S101 - asked before
        assert isinstance(mechanism, VectorNoise)  # noqa: S101 - made above
        promise = DepthPromise.read(self.vectors.promise)
        promise.check(store_name(self.engine), mechanism)
        depth = promise.depth(*self._promised)
        if depth is None:
            raise UsageError(
                f"at this epsilon no depth up to {promise.deepest} keeps such a promise: raise "
                "epsilon, or promise less (--share)"
            )
        return depth, promise


def is_local(engine: str) -> bool:
    """Whether a store is made of documents on this machine."""
    return engine.strip().partition(":")[0] == "vectors"


def documents_for(engine: str, collection: str) -> list[Document] | None:
    """The documents that a store on this machine is made of; others have their own."""
    from sottovoce.collections import load_collection

    if not is_local(engine):
        return None
    return list(load_collection(collection).documents)


def show(
    result: VectorSearchResult,
    search: PrivateVectorSearch,
    promise: str | None,
    console: Console | None = None,
) -> None:
    """The result for people."""
    from rich.markup import escape
    from rich.padding import Padding

    console = console or new_console()
    console.print(f"\n[bold]Stayed here[/bold]  {escape(result.query)}")
    again = ", drawn and counted before," if result.recalled else ""
    where = "" if search.engine.remote else ", which plays the stranger on this machine"
    console.print(f"\n[bold]Sent[/bold]  one vector{again} to {result.engine}{where}:")
    numbers = ", ".join(f"{number:.3f}" for number in result.sent[:NUMBERS_SHOWN])
    console.print(f"  {numbers}, … ({len(result.sent)} numbers)", style="dim")
    if result.noise_to_signal is not None:
        console.print(
            f"  The noise in it is {result.noise_to_signal:.1f} times as long as your vector.",
            style="dim",
        )
    console.print(
        f"\n[bold]Found[/bold]  {result.fetched} documents; in the order of what you really asked "
        f"(here, by {result.reranker}):\n"
    )
    for hit in result.hits:
        title = escape(hit.title or hit.doc_id)
        console.print(f" [bold]{hit.rank:>2}  {title}[/bold]  [dim]{hit.score:.2f}[/dim]")
        console.print(Padding(escape(hit.snippet), (0, 0, 0, 5)))
    if not result.hits:
        console.print("  Nothing: the store is empty.")
    console.print(
        f"\n[bold]Cost[/bold]  {result.spent:g} nats per unit of {result.guarantee.metric} "
        f"distance, {result.mechanism}."
    )
    unknown = (
        f"How likely the true top ten is among these {result.fetched} was not tried out: "
        "'sottovoce vectors' does that, and --promise uses it."
    )
    console.print(f"[bold]Depth[/bold]  {promise or unknown}")
    console.print(f"[bold]Promise[/bold]  {result.guarantee.sentence}")
    for caveat in result.guarantee.caveats:
        console.print(f"  - {caveat}", style="dim")
    if result.seeded:
        console.print("Seeded: reproducible, for experiments only.", style="yellow")
