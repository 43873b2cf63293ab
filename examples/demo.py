"""The demo of `make demo`: one private search, then what privacy costs over all demo queries."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

import sottovoce
from sottovoce import defaults
from sottovoce.cli.search import show
from sottovoce.collections import demo_log, load_collection
from sottovoce.engines import BM25
from sottovoce.evaluation import Quality, with_privacy, with_unrelated_queries, without_privacy
from sottovoce.output_vocabularies import of_search
from sottovoce.search import fitted_to, laid_out_for, load_reranker
from sottovoce.text import TextPipeline

QUERY = "treatment for skin cancer"
N, DEPTH = defaults.VARIANTS, defaults.DEMO_DEPTH
EPSILONS = (15.0, 10.0, defaults.SEARCH_EPSILON, 5.0)


def main() -> None:
    """Search once, then measure."""
    console = Console(highlight=False)
    collection = load_collection("demo")
    engine, reranker = BM25(collection.documents), load_reranker("light")
    space = sottovoce.load_space("default")
    fitted = space.with_output(of_search(space, collection.documents, collection.name))

    def search_at(epsilon: float) -> sottovoce.PrivateSearch:
        """A search as the command line and the page do it."""
        cmp = sottovoce.mechanism("cmp", space=space, epsilon=epsilon)
        cmp = fitted_to(engine, cmp, lambda: fitted)
        pipeline = laid_out_for(engine, TextPipeline(), cmp, drop_function_words=True)
        obfuscator = sottovoce.Obfuscator(cmp, n=N, release="once", pipeline=pipeline)
        return sottovoce.PrivateSearch(obfuscator, engine, reranker, depth=DEPTH)

    search = search_at(defaults.SEARCH_EPSILON)
    show(search.search(QUERY), search, console)

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in ("what is sent", "nDCG@10", "P@10", "relevant found", "words said aloud"):
        table.add_column(column, justify="left" if column == "what is sent" else "right")
    plain = without_privacy(collection, engine, reranker, depth=DEPTH)
    table.add_row("the query itself", *figures(plain), "100%")
    for epsilon in EPSILONS:
        aloud: list[float] = []
        private = with_privacy(
            collection,
            search_at(epsilon),
            lambda result, aloud=aloud: aloud.append(result.said_aloud / result.words),
        )
        usual = " (default)" if epsilon == defaults.SEARCH_EPSILON else ""
        label = f"cmp, epsilon {epsilon:g}, once{usual}"
        table.add_row(label, *figures(private), f"{sum(aloud) / len(aloud):.0%}")
    unrelated = with_unrelated_queries(collection, engine, reranker, demo_log(), N, DEPTH)
    table.add_row("unrelated queries", *figures(unrelated), "")
    console.print(
        f"\n[bold]What privacy costs[/bold]: the {len(collection.queries)} judged queries of the "
        f"demo collection, {N} queries sent for each, the {DEPTH} best documents of each answer "
        f"pooled and re-ranked ({reranker.name})\n"
    )
    console.print(table)
    console.print(
        "\nWords said aloud: how many of a query's words stand somewhere in what was sent. What "
        "attackers get is more, and is measured next, by attacking; epsilon bounds it, and does "
        "not measure it. The last line shows what a small collection gives away for nothing.",
        style="dim",
    )
    console.print("\nNext: sottovoce search --help, sottovoce mechanisms, sottovoce ledger show\n")


def figures(quality: Quality) -> tuple[str, str, str]:
    """A row of the table."""
    measured = (quality.ndcg.mean, quality.precision.mean, quality.recall.mean)
    return f"{measured[0]:.3f}", f"{measured[1]:.3f}", f"{measured[2]:.0%}"


if __name__ == "__main__":
    main()
