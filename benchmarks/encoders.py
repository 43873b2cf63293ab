"""How fast the encoders are, and what re-ranking with them buys: the tables of docs/encoders.md.

    python benchmarks/encoders.py                     # speed, on the demo collection
    python benchmarks/encoders.py demo FOLDER ...     # nDCG@10 of the original queries

Times are the best of several turns: what the machine can do when nothing else is in the way.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

from sottovoce.collections import Collection, demo_log, load_collection
from sottovoce.encoders import Encoder, load_encoder
from sottovoce.encoders.light import LightEncoder
from sottovoce.encoders.strong import StrongEncoder
from sottovoce.engines import choose_engine
from sottovoce.engines.base import LocalEngine, whole_text
from sottovoce.evaluation import effectiveness, no_privacy
from sottovoce.search.reranking import BM25Reranker, EncoderReranker, load_reranker
from sottovoce.threads import available_cores, set_threads

TURNS = 10
QUERIES, PASSAGES, POOL = 500, 64, 700
QUERY = "treatment for skin cancer"


def seconds(work: Callable[[], object], turns: int = TURNS) -> float:
    """The shortest of several turns."""
    taken = []
    for _ in range(turns):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def encoding(names: Sequence[str], queries: list[str], passages: list[str]) -> None:
    """Texts a second, by encoder and threads."""
    print(f"\n| encoder | threads | {QUERIES} queries | {PASSAGES} passages |\n|---|---|---|---|")
    for name in names:
        encode = load_encoder(name).encode
        for count in sorted({1, min(2, available_cores())}):
            set_threads(count)
            rates = [len(texts) / seconds(partial(encode, texts)) for texts in (queries, passages)]
            print(f"| `{name}` | {count} | {rates[0]:,.0f}/s | {rates[1]:,.0f}/s |", flush=True)
    set_threads(None)


def reranking(names: Sequence[str], passages: list[str]) -> None:
    """Milliseconds for one query and a pool of passages.

    The light encoder remembers how words are cut, so a second pool of other passages is quicker.
    """
    print("\n| re-ranker | first pool | next pools | the same pool again |\n|---|---|---|---|")
    fresh: dict[str, Callable[[], Encoder]] = {"light": LightEncoder, "strong": StrongEncoder}
    for name in names:
        encoders = [fresh[name]() for _ in range(2)]
        first = min(seconds(partial(scored, each, passages), 1) for each in encoders)
        then = seconds(partial(scored, encoders[0], passages), 2)
        warm = EncoderReranker(encoders[0])
        warm.scores(QUERY, passages)
        again = seconds(partial(warm.scores, QUERY, passages))
        cells = (f"{value * 1000:,.0f} ms" for value in (first, then, again))
        print(f"| `{name}` | {' | '.join(cells)} |", flush=True)
    words = seconds(partial(BM25Reranker().scores, QUERY, passages))
    print(f"| `bm25` | {' | '.join([f'{words * 1000:,.0f} ms'] * 3)} |")


def scored(encoder: Encoder, passages: list[str]) -> None:
    """Re-rank with nothing kept from before."""
    EncoderReranker(encoder).scores(QUERY, passages)


def buys(names: Sequence[str], collection: Collection) -> None:
    """nDCG@10 of the original queries, the top 100 re-ranked."""
    texts = [whole_text(document) for document in collection.documents]
    rerankers = {name: load_reranker(name) for name in ("none", *names, "bm25")}
    for reranker in rerankers.values():
        if isinstance(reranker, EncoderReranker):
            reranker.prepare(texts)
    print(f"\n| {collection.name} | {' | '.join(rerankers)} |\n|---{'|---' * len(rerankers)}|")
    for spec in ("bm25", "tfidf", *(f"dense:{name}" for name in names)):
        engine = choose_engine(spec, collection.documents)
        if not isinstance(engine, LocalEngine):
            raise TypeError(spec)
        runs = [no_privacy(engine, collection.queries, each) for each in rerankers.values()]
        means = [
            effectiveness(run, collection.judgments, ["nDCG@10"])["nDCG@10"].mean for run in runs
        ]
        print(f"| `{spec}` | {' | '.join(f'{mean:.3f}' for mean in means)} |", flush=True)


def main() -> None:
    """Measure what is installed."""
    names = ["light", "strong"] if StrongEncoder.installed() else ["light"]
    for name in sys.argv[1:]:
        buys(names, load_collection(name))
    if len(sys.argv) == 1:
        speed(names)


def speed(names: Sequence[str]) -> None:
    """Both tables of times."""
    passages = [whole_text(document) for document in load_collection("demo").documents]
    words = sum(len(text.split()) for text in passages) / len(passages)
    print(f"{len(passages)} passages of {words:.0f} words on average")
    encoding(names, demo_log()[:QUERIES], passages[:PASSAGES])
    reranking(names, passages[:POOL])


if __name__ == "__main__":
    main()
