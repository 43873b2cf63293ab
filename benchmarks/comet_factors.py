"""Why figures come out as they do in replication/004-*.toml, one factor at a time.

    python benchmarks/comet_factors.py DIR chance pools words noise

DIR is the folder that replication/prepare.py made. Printed are the accuracy of replacements that
know nothing of a tweet; the similarity of tweets and what DP-COMET makes of them at epsilon 50, by
pool and encoder; the Jaccard of Mahalanobis by lambda, code and space; and the similarity of
queries and what DP-COMET's Mahalanobis noise makes of them at epsilon 10, by lambda and code.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.random import PCG64, Generator

from sottovoce import load_space, mechanism
from sottovoce.collections import load_judged_queries
from sottovoce.evaluation import LabelledTexts, read_task
from sottovoce.evaluation.downstream.classification import release
from sottovoce.evaluation.downstream.models import load_model
from sottovoce.mechanisms import Mechanism
from sottovoce.pools import Pool, load_pool
from sottovoce.privacy.attacks.releases import Released
from sottovoce.privacy.text_similarity import SimilarityMeter

SPACES = ("glove-840b-34k", "large")


def chance(learnt: LabelledTexts, tested: LabelledTexts, public: list[str]) -> None:
    """The accuracy on random public tweets, and on random words, in place of the tweets."""
    rng, space = Generator(PCG64(0)), load_space(SPACES[0])
    names, labels = np.unique(learnt.labels, return_inverse=True)
    truth = np.searchsorted(names, tested.labels)
    said = {
        "random public tweets": rng.choice(public, len(tested)).tolist(),
        "random words": [
            " ".join(space.words(rng.integers(space.size, size=len(text.split()))))
            for text in tested.texts
        ],
    }
    for model in (load_model("tfidf"), load_model("embeddings", "light")):
        predict = model.fit(model.features(learnt.texts), labels, 0)
        for kind, texts in said.items():
            given = predict(model.features(texts))
            shares = ", ".join(
                f"{name} {share:.2f}"
                for name, share in zip(names, np.bincount(given) / len(given), strict=False)
            )
            accuracy = float(np.mean(given == truth))
            print(f"{model.name}, {kind}: accuracy {accuracy:.3f}, says {shares}", flush=True)


def similar(meter: SimilarityMeter, texts: list[str], by: Mechanism, what: str) -> None:
    """The similarity of texts and one variant of each."""
    variants, _ = release(texts, by, 0)
    rows = [
        Released(str(row), text, (variant,))
        for row, (text, variant) in enumerate(zip(texts, variants, strict=True))
    ]
    found = meter.measure(rows)
    means = ", ".join(f"{name} {found.mean(name):.3f}" for name in found.values)
    print(f"{what}: {means}", flush=True)


def by_pool(meter: SimilarityMeter, texts: list[str], public: list[str], made: Path) -> None:
    """DP-COMET without noise to speak of: what pool and encoder decide."""
    pools = {
        "9,284 tweets, light": Pool(public, "light"),
        "a quarter of them, light": Pool(public[::4], "light"),
        "queries of MS MARCO, light": load_pool(made / "msmarco-queries.txt", "light"),
        "a quarter of the tweets, strong": Pool(public[::4], "strong"),
    }
    for name, pool in pools.items():
        similar(meter, texts, mechanism("comet-cmp", pool=pool, epsilon=50), f"comet-cmp, {name}")


def by_space(texts: list[str]) -> None:
    """The word mechanism: what lambda, the published code and the space decide."""
    meter = SimilarityMeter(["jaccard"], None)
    for setting in ("lambda=1,compat=pypantera", "lambda=1", "lambda=0.5", "lambda=0"):
        for space in SPACES:
            by = mechanism(f"mahalanobis:{setting}", space=load_space(space), epsilon=20)
            similar(meter, texts, by, f"mahalanobis, epsilon 20, {setting}, {space}")


def by_noise(meter: SimilarityMeter, data: Path) -> None:
    """Mahalanobis noise on queries: what lambda and the published code decide."""
    made = data / "made"
    pool = load_pool(made / "msmarco-queries.txt", str(data / "encoders" / "all-mpnet-base-v2"))
    queries = list(load_judged_queries(made / "nfcorpus-50").values())
    for setting in ("", "lambda=0.5", "lambda=0", "compat=authors"):
        by = mechanism(f"comet-mahalanobis:{setting}", pool=pool, epsilon=10)
        similar(
            meter, queries * 4, by, f"comet-mahalanobis, epsilon 10, {setting or 'lambda=0.75'}"
        )


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, metavar="DIR")
    parser.add_argument("parts", nargs="+", choices=["chance", "pools", "words", "noise"])
    parser.add_argument("--tweets", type=int, default=150)
    options = parser.parse_args()
    made = options.data.absolute() / "made"
    learnt, tested = read_task(made / "learnt-tweets.jsonl"), read_task(made / "tweets.jsonl")
    public = list(read_task(made / "public-tweets.jsonl").texts)
    texts = list(tested.sample(options.tweets).texts)
    meter = SimilarityMeter(["jaccard", "semantic"], "strong")
    if "chance" in options.parts:
        chance(learnt, tested, public)
    if "pools" in options.parts:
        by_pool(meter, texts, public, made)
    if "words" in options.parts:
        by_space(texts)
    if "noise" in options.parts:
        by_noise(meter, options.data.absolute())


if __name__ == "__main__":
    main()
