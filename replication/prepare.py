"""Makes the folder of data for the files of paper 004 out of the one for the others.

    python replication/prepare.py DIR NEW [--mpnet FOLDER]

NEW gets links to all that is in DIR and to the encoder all-mpnet-base-v2, if given (encoders/; only
004-comet.toml needs it), and made/:
the queries of MS MARCO among the public ones; NFCorpus with every sixth of its queries, so that it
has as many as Medline'04; and tweets in three parts: a thousand to be obfuscated (those that
``--limit 1000`` takes), 4,000 to train models on, the others for DP-COMET to take its strings from.
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

from sottovoce.evaluation.downstream.data import chosen_rows

TWEETS = "classification/tweeteval_sentiment.jsonl.gz"
LOG = "querylog/pool_distinct.tsv.gz"
NFCORPUS = "ir/nfcorpus"
EVERY, MEDLINE_QUERIES = 6, 50
TESTED, LEARNT = 1000, 4000


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, metavar="DIR")
    parser.add_argument("new", type=Path, metavar="NEW")
    parser.add_argument("--mpnet", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    prepare(options.data.resolve(), options.new, options.mpnet and options.mpnet.resolve())


def prepare(data: Path, new: Path, mpnet: Path | None = None) -> None:
    """Link and write all that is not there."""
    made, encoders = new / "made", new / "encoders"
    for folder in (made, encoders):
        folder.mkdir(parents=True, exist_ok=True)
    links = {new / path.name: path for path in data.iterdir()}
    if mpnet is not None:
        links[encoders / "all-mpnet-base-v2"] = mpnet
    for link, target in links.items():
        _link(link, target)
    _write(made / "msmarco-queries.txt", _msmarco(data / LOG))
    _fewer_queries(data / NFCORPUS, made / "nfcorpus-50")
    tested, others = _split(_lines(data / TWEETS), TESTED)
    learnt, public = _split(others, LEARNT)
    _write(made / "tweets.jsonl", tested)
    _write(made / "learnt-tweets.jsonl", learnt)
    _write(made / "public-tweets.jsonl", public)


def _split(lines: list[str], count: int) -> tuple[list[str], list[str]]:
    chosen = set(chosen_rows(len(lines), count))
    return (
        [line for row, line in enumerate(lines) if row in chosen],
        [line for row, line in enumerate(lines) if row not in chosen],
    )


def _msmarco(log: Path) -> list[str]:
    rows = (line.split("\t") for line in _lines(log))
    return [query for source, query in rows if source == "msmarco"]


def _fewer_queries(collection: Path, new: Path) -> None:
    new.mkdir(exist_ok=True)
    for file in ("corpus.jsonl.gz", "qrels.txt"):
        _link(new / file, collection / file)
    queries = (collection / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    _write(new / "queries.jsonl", queries[::EVERY][:MEDLINE_QUERIES])


def _link(link: Path, target: Path) -> None:
    if not link.is_symlink():
        link.symlink_to(target)


def _lines(file: Path) -> list[str]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return lines.read().splitlines()


def _write(file: Path, lines: list[str]) -> None:
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
