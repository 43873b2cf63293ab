"""Train a denoiser in bounded time: make releases, learn from them, measure on others.

What is seen of a word does not depend on the words around it, so a release of a word serves in
every query of the log that has this word. Words that were never released are no candidates in
training: what is learned is how likely the true word is given that it is one of the others, and by
Bayes' rule that teaches the same prior.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from sottovoce.choices import Release
from sottovoce.errors import UsageError, need
from sottovoce.mechanisms.base import Mechanism, WordMechanism
from sottovoce.obfuscation import Obfuscator
from sottovoce.privacy.attacks.cut_log import CutLog
from sottovoce.privacy.attacks.denoiser import (
    EVIDENCE,
    LAYERS,
    NOTHING,
    REACH,
    Denoiser,
    MadeFor,
    Seen,
    Tokens,
    Weights,
    context_scores,
    kept_denoiser,
    mixed,
    read_context,
    softmax,
)
from sottovoce.privacy.attacks.evidence_kinds import evidence_for
from sottovoce.privacy.attacks.language import Trigrams
from sottovoce.privacy.attacks.priors import Prior
from sottovoce.privacy.attacks.query_log import QueryLog
from sottovoce.privacy.attacks.releases import Released
from sottovoce.privacy.attacks.self_made import Maker, SelfMade, drawn_queries, in_blocks
from sottovoce.randomness import Randomness, as_generator, is_seeded
from sottovoce.spaces.space import WordSpace
from sottovoce.text import TextPipeline
from sottovoce.types import Float32Array, Float64Array, IntArray, Progress

DIRECTIONS, LEARNED = 192, 32
"""Coordinates of a word: main directions of its vector, and learned ones."""
WIDTH = 128
HELD_OUT = 300
"""Queries that are released to measure on, at most a fifth of the log."""
FEWEST = 50
"""Queries of a log from which anything can be learned."""
MOST_PLACES = 50_000
"""Places that are kept at most: 160 MB."""
SIMULATING, MEASURING = 0.5, 0.15
"""Shares of the time; the part for measuring is taken from that for simulating."""
BATCH, BATCHES_AT_A_TIME = 256, 48
RATE, DECAY, WARM_UP = 2e-3, 0.01, 50
LEFT_OUT = 0.1
"""So many places are not shown in training, lest single releases be learned by heart."""
SLOWEST = 0.02
"""The rate at the end, of that at the beginning."""
CHECKS = 10
"""How often the network is measured on the held-out releases while it learns."""
IMPOSSIBLE = -1e9
RIVALS = 63
"""Wrong candidates of a place that are drawn for each step; those drawn change every time."""
TRUSTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
NEEDS_TORCH = "training a denoiser needs torch"


@dataclass(frozen=True)
class Clock:
    """How much of the time is over."""

    seconds: float
    progress: Progress | None
    start: float = field(default_factory=time.monotonic)

    def done(self) -> float:
        """The share of the time, told to ``progress`` in seconds."""
        passed = time.monotonic() - self.start
        if self.progress is not None:
            self.progress(min(int(passed), int(self.seconds)), int(self.seconds))
        return passed / self.seconds


def main_directions(space: WordSpace, most: int = DIRECTIONS) -> Float32Array:
    """The words' vectors along the directions in which they vary most, and zeros for unknown."""
    centered = space.vectors - space.vectors.mean(axis=0)
    _, directions = np.linalg.eigh(np.asarray(centered.T @ centered, dtype=np.float64))
    vectors = centered @ directions[:, ::-1][:, :most].astype(np.float32)
    vectors /= np.sqrt((vectors**2).mean())
    return np.pad(vectors, ((0, 1), (0, 0)))


def new_weights(rng: Generator, vectors: Float32Array) -> Weights:
    """Small random weights; the answer and the learned coordinates begin near zero."""
    words, directions = vectors.shape

    def matrix(rows: int, columns: int, scale: float = 1.0) -> Float32Array:
        drawn = rng.standard_normal((rows, columns)) * scale / np.sqrt(rows)
        return np.asarray(drawn, dtype=np.float32)

    weights = {"see": matrix(directions + 3, WIDTH)}
    weights |= {"kind": matrix(5, WIDTH), "offset": matrix(2 * REACH + 1, WIDTH)}
    for layer in range(LAYERS):
        weights |= {
            f"query{layer}": matrix(WIDTH, WIDTH),
            f"key{layer}": matrix(WIDTH, WIDTH),
            f"value{layer}": matrix(WIDTH, WIDTH),
            f"gather{layer}": matrix(WIDTH, WIDTH, 0.5),
            f"widen{layer}": matrix(WIDTH, 4 * WIDTH),
            f"widen_bias{layer}": np.zeros(4 * WIDTH, dtype=np.float32),
            f"narrow{layer}": matrix(4 * WIDTH, WIDTH, 0.5),
        }
    weights["answer"] = matrix(WIDTH, directions + LEARNED, 0.01)
    weights["answer_bias"] = np.zeros(directions + LEARNED, dtype=np.float32)
    weights["learned"] = np.asarray(rng.standard_normal((words, LEARNED)) * 0.1, dtype=np.float32)
    return weights


@dataclass(frozen=True)
class Lessons:
    """Masked places of a log's queries, with a release of each word around them."""

    log: CutLog
    bank: SelfMade

    def batches(self, rng: Generator) -> Iterator[tuple[Tokens, IntArray, IntArray]]:
        """Tokens, the released place that each shows (-1 for none), and that of the masked one."""
        log, bank = self.log, self.bank
        by_word = np.argsort(bank.truth, kind="stable")
        amounts = np.bincount(bank.truth, minlength=log.size + 1)
        firsts = np.cumsum(amounts) - amounts

        def release_of(words: NDArray[np.integer[Any]]) -> IntArray:
            """Any release of each word."""
            at = firsts[words] + (rng.random(words.shape) * amounts[words]).astype(np.int64)
            return np.where(amounts[words] > 0, by_word[np.minimum(at, len(by_word) - 1)], -1)

        text_of = np.repeat(np.arange(len(log)), log.lengths)
        usable = np.bincount(bank.truth[bank.right >= 0], minlength=log.size + 1) > 0
        targets = np.flatnonzero(usable[log.words])
        while len(targets):
            order = rng.permutation(targets)
            for start in range(0, len(order), BATCH * BATCHES_AT_A_TIME):
                # Texts of about one length share a batch.
                block = order[start : start + BATCH * BATCHES_AT_A_TIME]
                block = block[np.argsort(log.lengths[text_of[block]], kind="stable")]
                for at in rng.permutation(np.arange(0, len(block), BATCH)).tolist():
                    masked = block[at : at + BATCH]
                    answers = release_of(log.words[masked])
                    inside = bank.right[answers] >= 0
                    masked, answers = masked[inside], answers[inside]
                    if not len(masked):
                        continue
                    texts = text_of[masked]
                    begins = log.starts[texts]
                    tokens = Tokens.of(log.lengths[texts], masked - begins)
                    seen = tokens.kinds == EVIDENCE
                    words = log.words[np.where(seen, begins[:, None] + tokens.places, 0)]
                    hidden = ~seen | (rng.random(seen.shape) < LEFT_OUT)
                    rows = np.where(hidden, -1, release_of(words))
                    tokens.kinds[seen & (rows < 0)] = NOTHING
                    yield tokens, rows, answers


def learn(
    log: CutLog,
    bank: SelfMade,
    held_out: SelfMade,
    vectors: Float32Array,
    clock: Clock,
    rng: Generator,
) -> Weights:
    """The weights that did best on the held-out releases before the time was over."""
    torch = need("torch", "gpu", NEEDS_TORCH)
    weights = {
        name: torch.from_numpy(array).requires_grad_()
        for name, array in new_weights(rng, vectors).items()
    }
    optimizer = torch.optim.AdamW(list(weights.values()), lr=RATE, weight_decay=DECAY)
    # Words that were never released are no candidates.
    released = np.bincount(bank.truth, minlength=len(vectors)) > 0
    possible = np.where(released[bank.seen.words], bank.seen.scores, np.float32(IMPOSSIBLE))
    fixed, words, scores, inputs = map(
        torch.from_numpy, (vectors, bank.seen.words, possible, bank.seen.inputs)
    )
    best = {name: tensor.detach().numpy().copy() for name, tensor in weights.items()}
    begin, checks, best_loss = clock.done(), 0, np.inf
    for step, (tokens, rows, answers) in enumerate(Lessons(log, bank).batches(rng)):
        done = min(1.0, (clock.done() - begin) / max(1 - begin, 1e-9))
        if int(done * CHECKS) > checks:
            checks = int(done * CHECKS)
            arrays = {name: tensor.detach().numpy() for name, tensor in weights.items()}
            loss = held_out_loss(held_out, {**arrays, "vectors": vectors})
            if loss < best_loss:
                best, best_loss = {name: array.copy() for name, array in arrays.items()}, loss
        if done >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1, (step + 1) / WARM_UP) * max(SLOWEST, 1 - done)
        # The true word and some rivals: which of these it is.
        drawn = rng.random((len(answers), words.shape[1] - 1)).argsort(axis=1)[:, :RIVALS]
        truth = bank.right[answers][:, None]
        columns = torch.from_numpy(np.concatenate([truth, drawn + (drawn >= truth)], axis=1))
        candidates = words[answers].gather(1, columns)
        query = read_context(weights, tokens, inputs[torch.from_numpy(rows)], torch)[..., None]
        along = fixed[candidates] @ query[:, : fixed.shape[1]]
        along = along + weights["learned"][candidates] @ query[:, fixed.shape[1] :]
        guesses = scores[answers].gather(1, columns) + along[..., 0]
        loss = -torch.log_softmax(guesses, 1)[:, 0].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {**best, "vectors": vectors}


def held_out_loss(held_out: SelfMade, weights: Weights) -> float:
    """The mean of -log P(true word), where it is among the candidates."""
    inside = np.flatnonzero(held_out.right >= 0)
    network = context_scores(weights, held_out.seen, held_out.lengths)
    shares = softmax((held_out.seen.scores + network)[inside])
    true_shares = shares[np.arange(len(inside)), held_out.right[inside]]
    return float(-np.log(np.maximum(true_shares, 1e-30)).mean())


def best_trust(held_out: SelfMade, weights: Weights, trigrams: Float64Array) -> float:
    """How much the network counts where most held-out words are right; the least of several.

    trigrams
        Their answer for each candidate of each place.
    """
    network = softmax(
        held_out.seen.scores + context_scores(weights, held_out.seen, held_out.lengths)
    )
    unknown = held_out.seen.words == len(weights["vectors"]) - 1
    right = []
    for trust in TRUSTS:
        shares = np.where(unknown, -1.0, mixed(network, trigrams, trust))
        right.append(int((shares.argmax(axis=1) == held_out.right).sum()))
    return TRUSTS[int(np.argmax(right))]


def train_denoiser(
    mechanism: WordMechanism,
    release: Release,
    n: int,
    log: QueryLog,
    *,
    attacked: Iterable[str] = (),
    pipeline: TextPipeline | None = None,
    minutes: float = 10,
    rng: Randomness = None,
    progress: Progress | None = None,
) -> Denoiser:
    """Train a denoiser, half of the time on making releases, half on learning from them.

    attacked
        Queries that it must not learn from.
    pipeline
        How texts are cut into words; by default as the mechanism's paper has it.
    rng
        A seed repeats what is drawn; how much is done in the time depends on the machine.
    progress
        Told the seconds that are over, and of how many.
    """
    torch = need("torch", "gpu", NEEDS_TORCH)
    if not minutes > 0:
        raise UsageError("training takes some time: give minutes above 0")
    clock = Clock(60 * minutes, progress)
    cutter = pipeline or TextPipeline(protect=mechanism.protects)
    if cutter.order == "shuffled":
        raise UsageError("a denoiser reads words in their order: it cannot be trained without")
    generator = as_generator(rng)
    learned_from = log.cut(mechanism.space, replace(cutter, pad_to=0)).without(attacked)
    if len(learned_from) < FEWEST:
        raise UsageError(f"a denoiser learns from a log: give one of {FEWEST} queries or more")
    numbers = generator.choice(
        len(learned_from), min(HELD_OUT, len(learned_from) // 5), replace=False
    )
    held_out_queries = [learned_from.queries[number] for number in numbers]
    rest = learned_from.without(held_out_queries)
    trigrams, prior = Trigrams.of(rest), Prior.from_log(rest).log_weights
    vectors = main_directions(mechanism.space)
    setup = Obfuscator(mechanism, n=n, release=release, pipeline=cutter)
    evidence = evidence_for(mechanism, release, rng=generator)
    maker = Maker(evidence, setup, generator if is_seeded(rng) else None)

    # Releases to measure on, with what trigrams say of them.
    parts, answers = [], []
    for queries in in_blocks(held_out_queries):
        for truth, rows in maker.make(queries):
            seen = Seen.of(rows, prior, vectors)
            parts.append((truth, seen))
            answers.append(np.take_along_axis(trigrams.marginals(rows), seen.words, axis=1))
        if parts and clock.done() > MEASURING:
            break
    held_out = SelfMade.of(parts)
    # Releases to learn from.
    parts = []
    for queries in in_blocks(drawn_queries(rest, generator)):
        parts += [(truth, Seen.of(rows, prior, vectors)) for truth, rows in maker.make(queries)]
        places = sum(len(truth) for truth, _ in parts)
        if parts and (clock.done() > SIMULATING or places > MOST_PLACES):
            break
    bank = SelfMade.of(parts)
    # The products are small: on a busy machine more threads would only wait for each other.
    threads_before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        weights = learn(rest, bank, held_out, vectors, clock, generator)
    finally:
        torch.set_num_threads(threads_before)
    return Denoiser(
        made_for=MadeFor.of(mechanism, release, n, learned_from),
        releases=len(bank.lengths),
        trust=best_trust(held_out, weights, np.concatenate(answers)),
        weights=weights,
        prior=prior,
    )


def denoiser_for(
    releases: Sequence[Released],
    mechanism: Mechanism | None,
    release: Release,
    log: QueryLog,
    pipeline: TextPipeline | None = None,
    minutes: float | None = None,
    *,
    rng: Randomness = None,
    progress: Progress | None = None,
) -> Denoiser | None:
    """The denoiser that is kept for such releases; else one is trained if minutes are given."""
    cutter = pipeline or TextPipeline(protect=mechanism.protects if mechanism else "all")
    if not isinstance(mechanism, WordMechanism) or cutter.order == "shuffled":
        if minutes is None:
            return None
        raise UsageError(
            "a denoiser is trained for a known mechanism that replaces words one by one, in their "
            "order: name it with -m, or leave out --train"
        )
    n = max((len(released.variants) for released in releases), default=0)
    attacked = [released.text for released in releases]
    cut = log.cut(mechanism.space, replace(cutter, pad_to=0)).without(attacked)
    made_for = MadeFor.of(mechanism, release, n, cut)
    kept = kept_denoiser(made_for)
    if kept is not None or minutes is None:
        return kept
    trained = train_denoiser(
        mechanism,
        release,
        n,
        log,
        attacked=attacked,
        pipeline=cutter,
        minutes=minutes,
        rng=rng,
        progress=progress,
    )
    trained.save(made_for.file)
    return trained
