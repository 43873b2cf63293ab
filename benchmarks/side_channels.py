"""What the traffic of a search tells whoever sees sizes and times, and not what is in it.

    python benchmarks/side_channels.py              the table of docs/threats.md
    python benchmarks/side_channels.py --searches 40 --only unknown

An engine on this machine notes how many requests each search has, how large they are, and when they
come. Two kinds of queries are compared by what an eavesdropper on an encrypted connection has of
them. An AUC of .5 is a coin; 1 tells every search of one kind from every search of the other.
``sizes`` are those of all requests, sorted, their number and sum; ``times`` are the gaps between
them and the time from the first to the last. The classifier is a random forest, out of fold.
"""

from __future__ import annotations

import argparse
import json
import socketserver
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sottovoce import Obfuscator, load_space, mechanism
from sottovoce.defaults import SEARCH_EPSILON
from sottovoce.engines.json_http import JsonHttp
from sottovoce.errors import need
from sottovoce.ledger import Ledger
from sottovoce.pools import load_pool
from sottovoce.search import PrivateSearch, load_reranker
from sottovoce.sensitive import sensitivity
from sottovoce.text import TextPipeline
from sottovoce.types import Float64Array

PAUSE = 0.004
"""Seconds between two requests; a second is usual, and takes long."""
FOLDS = 5
ANSWER = json.dumps({"results": [{"id": "d1"}]}).encode()


class Seen(NamedTuple):
    """A request, as somebody on the way sees it."""

    when: float
    size: int


@dataclass
class Eavesdropper:
    """An engine that notes sizes and times, and nothing else."""

    port: int
    seen: list[Seen] = field(default_factory=list)

    def take(self) -> list[Seen]:
        """The requests since the last time."""
        seen, self.seen = self.seen, []
        return seen


@contextmanager
def eavesdropping() -> Iterator[Eavesdropper]:
    """An engine on a free port of this machine."""

    class Handler(socketserver.StreamRequestHandler):
        disable_nagle_algorithm = True

        def handle(self) -> None:
            size = 0
            while line := self.rfile.readline():
                size += len(line)
                if line == b"\r\n":
                    ear.seen.append(Seen(time.perf_counter(), size))
                    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(ANSWER)}\r\n\r\n"
                    self.wfile.write(head.encode() + ANSWER)
                    size = 0

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        ear = Eavesdropper(server.server_address[1])
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield ear
        server.shutdown()


def engine_at(port: int, pause: float = PAUSE) -> JsonHttp:
    """An engine that is asked one query after the other."""
    url = f"http://127.0.0.1:{port}/search?q={{query}}"
    return JsonHttp({"name": "ear", "url": url, "results": "results", "id": "id", "pause": pause})


def observed(
    search: PrivateSearch, ear: Eavesdropper, queries: Sequence[str]
) -> tuple[Float64Array, Float64Array]:
    """Sizes and times of each search, a row each, filled up with zeros."""
    sizes, times = [], []
    ear.take()
    for query in queries:
        search.search(query)
        seen = ear.take()
        bytes_sent = sorted(request.size for request in seen)
        moments = [request.when for request in seen]
        sizes.append([len(seen), sum(bytes_sent), *bytes_sent])
        times.append([moments[-1] - moments[0], *np.diff(moments)] if moments else [0.0])
    return _filled_up(sizes), _filled_up(times)


def _filled_up(rows: Sequence[Sequence[float]]) -> Float64Array:
    width = max(map(len, rows))
    return np.array([[*row, *[0.0] * (width - len(row))] for row in rows], dtype=np.float64)


def separation(ones: Float64Array, twos: Float64Array, seed: int = 0, trees: int = 100) -> float:
    """How well a classifier tells two kinds of rows apart: its AUC, out of fold."""
    need("sklearn", "experiments", "the classifier needs an extra")
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    width = max(ones.shape[1], twos.shape[1])
    rows = np.concatenate(
        [np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in (ones, twos)]
    )
    kinds = np.repeat([0, 1], [len(ones), len(twos)])
    forest = RandomForestClassifier(trees, min_samples_leaf=5, random_state=seed)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    chances = cross_val_predict(forest, rows, kinds, cv=folds, method="predict_proba")
    return float(roc_auc_score(kinds, chances[:, 1]))


# What is compared.


class Pair(NamedTuple):
    """Two kinds of queries, and by what they are sent."""

    name: str
    ones: Callable[[int], list[str]]
    twos: Callable[[int], list[str]]
    sender: str = "words"


def two_words(words: Sequence[str], seed: int) -> Callable[[int], list[str]]:
    """Queries of two of these words."""
    return lambda count: _of_words(words, seed, count, 2)


def _of_words(words: Sequence[str], seed: int, count: int, length: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(list(words), length, replace=False)) for _ in range(count)]


def pairs() -> list[Pair]:
    """All comparisons."""
    listed = [w for w in load_space().words(range(34000)) if w.isascii() and w.isalpha()]
    plain = [w for w in listed[200:20000] if w.islower()]
    middle = [w for w in plain if 5 <= len(w) <= 7]
    consonants = list("bdfgklmnprstvz")
    unknown = ["".join(np.random.default_rng(at).choice(consonants, 6)) for at in range(900)]
    pool = load_pool("demo", "light")
    order = np.argsort(sensitivity(pool.strings, pool.vectors, pool.encoder)).tolist()
    harmless = [pool.strings[place] for place in order[: len(order) // 2]]
    hidden = [pool.strings[place] for place in order[-len(order) // 5 :]]

    def some(texts: Sequence[str], seed: int) -> Callable[[int], list[str]]:
        return lambda count: list(np.random.default_rng(seed).choice(list(texts), count))

    def long(count: int) -> list[str]:
        return _of_words(middle, 4, count, 5)

    return [
        Pair("the same kind twice", two_words(middle, 1), two_words(middle, 2)),
        Pair(
            "short or long words",
            two_words([w for w in plain if len(w) <= 4], 1),
            two_words([w for w in plain if len(w) >= 10], 2),
        ),
        Pair(
            "frequent or rare words",
            two_words(middle[:600], 1),
            two_words(middle[-600:], 2),
        ),
        Pair("known or unknown words", two_words(middle, 1), two_words(unknown, 2)),
        Pair("two or five words", two_words(middle, 1), long),
        Pair("two or five words, --pad 8", two_words(middle, 1), long, "padded"),
        Pair("on a hidden subject or not, by cover", some(hidden, 1), some(harmless, 2), "cover"),
    ]


def senders(port: int, folder: Path) -> dict[str, PrivateSearch]:
    """What sends: words by cmp as a search does it, the same padded, and public queries."""
    cmp = mechanism("cmp", epsilon=SEARCH_EPSILON)
    engine, order = engine_at(port), load_reranker("none")
    padded = TextPipeline(protect="all").laid_out(shuffle=True, pad_to=8)
    once: dict[str, Any] = {"n": 5, "release": "once"}
    cover = mechanism("cover", k=5, pool=load_pool("demo", "light"))
    return {
        "words": PrivateSearch(Obfuscator(cmp, **once), engine, order),
        "padded": PrivateSearch(Obfuscator(cmp, **once, pipeline=padded), engine, order),
        "cover": PrivateSearch(Obfuscator(cover), engine, order, Ledger.open(folder / "ledger")),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--searches", type=int, default=250, help="of each kind")
    parser.add_argument("--only", default="", help="comparisons whose name holds this")
    options = parser.parse_args()
    print(f"{options.searches} searches of each kind, 5 requests each, pauses from {PAUSE:g} s\n")
    print("| two kinds of queries | sizes | times | both |\n|---|---|---|---|")
    with eavesdropping() as ear, tempfile.TemporaryDirectory() as folder:
        searches = senders(ear.port, Path(folder))
        for pair in pairs():
            if options.only not in pair.name:
                continue
            search = searches[pair.sender]
            # In turns, so that a machine that gets busier does not look like a difference.
            parts = max(1, options.searches // 50)
            ones, twos = pair.ones(options.searches), pair.twos(options.searches)
            turns = [
                (observed(search, ear, ones[at::parts]), observed(search, ear, twos[at::parts]))
                for at in range(parts)
            ]
            sizes, times = (
                [_stacked([turn[kind][what] for turn in turns]) for kind in range(2)]
                for what in range(2)
            )
            both = [np.concatenate(columns, axis=1) for columns in zip(sizes, times, strict=True)]
            areas = [separation(*rows) for rows in (sizes, times, both)]
            print(f"| {pair.name} | {' | '.join(f'{area:.2f}' for area in areas)} |", flush=True)


def _stacked(parts: Sequence[Float64Array]) -> Float64Array:
    return _filled_up([list(row) for part in parts for row in part])


if __name__ == "__main__":
    main()
