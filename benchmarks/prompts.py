"""What a protected prompt is still good for: a small task put to a language model on this machine.

Short tweets, half of them positive and half negative; the model is asked for the sentiment. What
it gets is the tweet itself, the tweet with placeholders, or the tweet through cmp. Beside it: what
the strongest attack gets back of what was sent.

    python benchmarks/prompts.py --model model.gguf --data tweeteval_sentiment.jsonl.gz
    python benchmarks/prompts.py --model model.gguf --data tweets.jsonl --quick
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from sottovoce import Obfuscator, load_space
from sottovoce.files import json_lines, numbered_lines, read_text
from sottovoce.language.causal_model import CausalModel
from sottovoce.mechanisms.cmp import CMP
from sottovoce.privacy import QueryLog, Released, attack
from sottovoce.prompts import Message, Patterns, PromptProtection
from sottovoce.prompts.protection import CLOSE, OPEN
from sottovoce.statistics import clopper_pearson
from sottovoce.text import TextPipeline

PROMPT = "Tweet: {}\nSentiment:"
ANSWERS = (" positive", " negative")
EPSILONS = (5.0, 10.0, 15.0, 20.0)
SHORTEST, LONGEST = 40, 140
HOW = "give JSON lines with text and label"
OTHERS = 2000
"""Further tweets in the attacker's list."""


def main() -> None:
    """Measure and print a table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", required=True, help="a causal model: a folder or a GGUF file")
    options.add_argument("--data", required=True, help="JSON lines with text and label")
    options.add_argument("--tweets", type=int, default=100)
    options.add_argument("--space", default=None)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--quick", action="store_true", help="20 tweets, two epsilons, no attack")
    asked = options.parse_args()
    tweets, others = sample(Path(asked.data), 20 if asked.quick else asked.tweets, asked.seed)
    texts, labels = [tweet["text"] for tweet in tweets], [tweet["label"] for tweet in tweets]
    model, space = CausalModel(asked.model), load_space(asked.space)
    log = QueryLog([tweet["text"] for tweet in others])
    print("| what the model gets | right | words recovered | tweets named |")
    print("|---|--:|--:|--:|")
    print(f"| the tweet itself | {right(model, texts, labels)} | all | all |", flush=True)
    placeholders = protected(PromptProtection(), texts)
    changed = sum(sent != text for sent, text in zip(placeholders, texts, strict=True))
    row = f"| placeholders ({changed} of {len(texts)} tweets have some) "
    print(f"{row}| {right(model, placeholders, labels)} | all others | |", flush=True)
    for epsilon in EPSILONS[1:3] if asked.quick else EPSILONS:
        mechanism = CMP(space=space, epsilon=epsilon)
        pipeline = TextPipeline(protect="all")
        obfuscator = Obfuscator(mechanism, pipeline=pipeline, rng=asked.seed)
        protection = PromptProtection((Patterns(),), obfuscator)
        sent = protected(protection, [f"{OPEN}{text}{CLOSE}" for text in texts])
        row = f"| cmp, epsilon {epsilon:g} | {right(model, sent, labels)} "
        if asked.quick:
            print(f"{row}| | |", flush=True)
            continue
        risk = attack(
            [
                Released(str(number), text, (variant,), pipeline=pipeline)
                for number, (text, variant) in enumerate(zip(texts, sent, strict=True))
            ],
            mechanism=mechanism,
            pipeline=replace(pipeline),
            log=log,
            add_originals=True,
            rng=asked.seed,
        )
        words, named = risk.words, risk.queries
        got = [f"{one.share:.0%} ({one.attack})" if one else "" for one in (words, named)]
        print(f"{row}| {got[0]} | {got[1]} |", flush=True)
        if epsilon == EPSILONS[-1]:
            for one in filter(None, (words, named)):
                print(f"\n{one.sentence}")


def sample(file: Path, size: int, seed: int) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """As many positive as negative tweets, and others for the attacker's list."""
    rows = [row for _, row in json_lines(numbered_lines(read_text(file)), how=HOW)]
    rows = [row for row in rows if SHORTEST < len(row["text"]) < LONGEST]
    order = np.random.default_rng(seed).permutation(len(rows))
    shuffled = [rows[place] for place in order]
    tweets = []
    for label in ("positive", "negative"):
        tweets += [row for row in shuffled if row["label"] == label][: size // 2]
    taken = {tweet["text"] for tweet in tweets}
    return tweets, [row for row in shuffled if row["text"] not in taken][:OTHERS]


def protected(protection: PromptProtection, texts: list[str]) -> list[str]:
    """What would be sent, together."""
    return list(protection.protect([Message("user", text) for text in texts]).texts)


def right(model: CausalModel, texts: list[str], labels: list[str]) -> str:
    """How often the likelier of the two answers is right."""
    positive, negative = (model.tokens(answer)[0] for answer in ANSWERS)
    hits = 0
    for text, label in zip(texts, labels, strict=True):
        logits = model.logits(model.tokens(PROMPT.format(text)))
        hits += (logits[positive] > logits[negative]) == (label == "positive")
    low, high = map(float, clopper_pearson(hits, len(texts)))
    return f"{hits / len(texts):.0%} ({low:.0%}–{high:.0%})"


if __name__ == "__main__":
    main()
