"""``sottovoce vectors``: how deep to ask a store, and who would name the query, by epsilon."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sottovoce import defaults
from sottovoce.cli.option_values import listed_epsilons
from sottovoce.cli.options import AsJson, Epsilons, Seed
from sottovoce.cli.output import new_console, new_table, print_json, progress_bar, say_seeded
from sottovoce.errors import UsageError

if TYPE_CHECKING:
    from sottovoce.search import DepthPromise

SHOWN_DEPTHS = (100, 1000)


def vectors(
    engine: Annotated[
        str,
        typer.Argument(
            metavar="STORE",
            help="vectors[:ENCODER], pgvector:FILE.toml, qdrant:FILE.toml or knn:FILE.toml.",
        ),
    ],
    public: Annotated[
        str,
        typer.Option(
            help="Public queries like yours: a log, one query a line, or demo. Some of them are "
            "sent to the store as they are."
        ),
    ],
    epsilon: Epsilons = None,
    collection: Annotated[
        str, typer.Option(help="The documents of 'vectors': demo, a folder, ir_datasets:ID.")
    ] = defaults.COLLECTION,
    queries: Annotated[
        int, typer.Option("-n", "--queries", min=1, help="How many of them to try, at random.")
    ] = 100,
    k: Annotated[int, typer.Option("--top", min=1, help="The true top K that is to be inside.")] = (
        defaults.TOP
    ),
    deepest: Annotated[int, typer.Option(min=1, help="The greatest depth to try.")] = 1000,
    share: Annotated[float, typer.Option(help="For which share of queries to promise it.")] = 0.9,
    out: Annotated[
        Path | None,
        typer.Option(help="Keep the promise here, for 'search --promise'; one epsilon only."),
    ] = None,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Try a store out with public queries: how deep to ask, and what an observer would learn.

    For each epsilon: the depth at which the true top ten is inside for at least --share of the
    queries (95 % confidence), and how many of the public queries an observer names who knows the
    encoder, epsilon, and the whole log.

    [bold]Examples[/bold]

      sottovoce vectors vectors:light --public demo -e 40,80,160

      sottovoce vectors qdrant:store.toml --public queries.txt -e 80 --out promise.json
    """
    from sottovoce.search.vector_depth import order_statistic

    epsilons = listed_epsilons(epsilon) or [_usual()]
    if out is not None and len(epsilons) > 1:
        raise UsageError("--out keeps one promise: give one epsilon")
    order_statistic(queries, share, 0.95)  # Refuses before anything is sent.
    tried = _tried(engine, public, epsilons, collection, queries, k, deepest, seed)
    if out is not None:
        tried[0][0].write(out)
    if as_json:
        print_json([_row(promise, named, share) for promise, named in tried])
        return
    if seed is not None:
        say_seeded()
    _show(tried, share)


def _usual() -> float:
    from sottovoce.obfuscation.vectors import EPSILON

    return EPSILON


def _tried(
    spec: str,
    public: str,
    epsilons: list[float],
    collection: str,
    count: int,
    k: int,
    deepest: int,
    seed: int | None,
) -> list[tuple[DepthPromise, Any]]:
    """For each epsilon the promise, and what inversion names."""
    from sottovoce.cli.vector_search import documents_for
    from sottovoce.encoders import load_encoder
    from sottovoce.engines import choose_vector_store
    from sottovoce.obfuscation.vectors import noisy_vector
    from sottovoce.privacy import QueryLog, SeenVector, invert, read_log
    from sottovoce.randomness import as_generator
    from sottovoce.search import VectorNoise, promise_depth
    from sottovoce.search.vector_depth import store_name

    log = QueryLog(read_log(public))
    if len(log) < count:
        raise UsageError(f"there are {len(log)} public queries: give more, or try fewer (-n)")
    places = as_generator(seed).permutation(len(log))[:count].tolist()
    asked = [log.queries[place] for place in places]
    store = choose_vector_store(spec, documents_for(spec, collection))
    encoder = load_encoder(store.made_by)
    tried = []
    for epsilon in epsilons:
        mechanism = VectorNoise(encoder, epsilon)
        with progress_bar(f"asking, epsilon {epsilon:g}") as progress:
            promise = promise_depth(
                store,
                mechanism,
                asked,
                name=store_name(spec),
                k=k,
                deepest=deepest,
                rng=seed,
                progress=progress,
            )
        rng = as_generator(seed)
        seen = [
            SeenVector(str(number), text, noisy_vector(text, mechanism, rng=rng).vector)
            for number, text in enumerate(asked)
        ]
        tried.append((promise, invert(seen, log, mechanism).headline))
    return tried


def _row(promise: DepthPromise, named: Any, share: float) -> dict[str, Any]:
    inside = {str(depth): promise.inside(depth) for depth in SHOWN_DEPTHS}
    return {
        "mechanism": promise.mechanism,
        "top": promise.k,
        "share": share,
        "depth": promise.depth(share),
        "deepest": promise.deepest,
        "inside_at_least": inside,
        "named": named.to_dict(),
    }


def _show(tried: list[tuple[DepthPromise, Any]], share: float) -> None:
    console = new_console()
    columns = ["", "depth", *(f"inside at {depth}" for depth in SHOWN_DEPTHS), "named", "95 %"]
    table = new_table(*columns, numbers=columns[1:])
    for promise, named in tried:
        depth = promise.depth(share)
        table.add_row(
            promise.mechanism,
            f"over {promise.deepest:,}" if depth is None else f"{depth:,}",
            *(f"≥ {promise.inside(at):.0%}" for at in SHOWN_DEPTHS),
            f"{named.share:.0%}",
            f"{named.low:.0%}–{named.high:.0%}",
        )
    console.print(table)
    first = tried[0][0]
    console.print(
        f"\ndepth: what to ask for, so that the whole true top {first.k} is inside for at least "
        f"{share:.0%} of queries like the {len(first.reaches)} tried (95 % confidence); inside at: "
        "the share for which it is, at least. "
        f"named: by an observer who knows {tried[0][1].knows}.",
        style="dim",
    )
