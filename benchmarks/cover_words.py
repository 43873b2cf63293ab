"""Mechanisms that stand beside cover in ``cover.py``: of words, of whole texts, in a chorus."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import spaces
from cover_bench import DEPTHS, KNOWS_KIND, KNOWS_LOG, SHORT_LIST, CoverBench
from numpy.random import Generator
from spaces import Bench
from untrained_attacker import MeanOfWords
from word_attacks import WordAttack

from sottovoce import Obfuscator, load_space, mechanism
from sottovoce.choices import Release
from sottovoce.mechanisms import kind as mechanism_kind
from sottovoce.mechanisms.base import PoolMechanism, Rewriting, TextMechanism, WordMechanism
from sottovoce.obfuscation import Chorus
from sottovoce.obfuscation.result import Obfuscation
from sottovoce.privacy import Knowledge, Released, attack, attack_chorus, infer
from sottovoce.privacy.attacks.word_means import infer_by_words
from sottovoce.search import laid_out_for
from sottovoce.spaces.space import WordSpace
from sottovoce.text import TextPipeline
from sottovoce.types import IntArray

COUNTS = (20, 50, 100)
"""Queries a search."""
CHOIR, CHORUS_EPSILON = 5, 7.5
"""Groups of a chorus, and the epsilon of cmp in it."""

WORDS: tuple[tuple[str, Release, tuple[float, ...]], ...] = (
    ("santext", "independent", (1, 1.5, 2)),
    ("cmp", "once", (5, 7.5, 10)),
    ("custext", "independent", (1,)),
    ("tem", "independent", (1, 1.5, 2)),
    ("wbb", "independent", (10,)),
    ("mahalanobis", "once", (7.5, 10)),
    ("vickrey-cmp", "once", (7.5, 10)),
    ("vickrey-mahalanobis", "once", (7.5, 10)),
    ("cmp", "independent", (2, 2.5, 5)),
    ("mahalanobis", "independent", (5,)),
    ("vickrey-cmp", "independent", (5,)),
    ("vickrey-mahalanobis", "independent", (5,)),
)
"""Published mechanisms that replace words, at epsilons from hardly any risk to half where there
are such. All of them replace all words, wbb too."""
TEXTS: tuple[tuple[str, tuple[float | None, ...]], ...] = (
    ("comet-cmp", (5, 10)),
    ("aea", (None,)),
    ("fea", (None,)),
)
"""Published mechanisms that replace whole texts: by strings of a pool, or by rules."""

Cells = Iterator[tuple[str, dict[str, Any]]]
"""Names and contents of what a job measures, one for each number of queries."""


def beside_cover(engines: Collection[str]) -> Iterator[WordsJob | TextsJob | ChorusJob]:
    """All of them, those with 50 queries a search first; fresh draws have all numbers at once."""
    for counts in ((50,), (100,), (20,)):
        for engine in engines:
            for spec, release, epsilons in WORDS:
                for epsilon in epsilons:
                    if release == "once":
                        yield WordsJob(spec, epsilon, release, engine, counts)
                    elif 50 in counts:
                        yield WordsJob(spec, epsilon, release, engine, COUNTS)
            for spec, epsilons in TEXTS:
                for epsilon in epsilons:
                    yield TextsJob(spec, epsilon, engine, counts)
            yield ChorusJob(CHORUS_EPSILON, engine, counts)


def searched(bench: CoverBench, engine: str, results: Sequence[Obfuscation]) -> list[IntArray]:
    """What every variant finds, (variants, documents) for each query."""
    return [bench.answers[engine].search(result.variants) for result in results]


def found(
    bench: CoverBench, engine: str, answers: Sequence[IntArray], n: int
) -> dict[str, dict[str, float]]:
    """nDCG@10 by depth, of the first n variants."""
    return {
        f"{engine} {depth}": bench.ndcg(
            {row: answered[:n, :depth] for row, answered in enumerate(answers)}
        )
        for depth in DEPTHS
    }


def releases(
    bench: CoverBench, results: Sequence[Obfuscation], n: int | None = None
) -> list[Released]:
    """What an attacker sees."""
    return [
        Released(key, result.text, result.variants[:n])
        for key, result in zip(bench.keys, results, strict=True)
    ]


def named_by_words(
    bench: CoverBench, results: Sequence[Obfuscation], n: int, name: str, space: WordSpace
) -> dict[str, float]:
    """What the best of the attacks that compare words names: it matters where order is random."""
    log = bench.query_log(name)
    seen = releases(bench, results, n)
    inferences = infer_by_words(seen, log, space, add_originals=True, is_own=True)
    hits = [
        {query.id: float(query.rank == 1) for query in inference.queries}
        for inference in inferences
    ]
    return max(hits, key=total)


def named_by_answers(
    bench: CoverBench, results: Sequence[Obfuscation], n: int, name: str, engine: str
) -> dict[str, float]:
    """What an engine names by what it found."""
    inference = bench.engine_as_attacker(engine, name).infer(releases(bench, results, n))
    return {query.id: float(query.rank == 1) for query in inference.queries}


def total(hits: Mapping[str, float]) -> float:
    """How many queries are named."""
    return sum(hits.values())


@dataclass(frozen=True)
class WordsJob:
    """One setting of a mechanism that replaces words, at all numbers of variants.

    cmp has the space, vocabulary and prior of a search by BM25; others have all words of a space of
    34,000, and unknown ones are replaced uniformly. Words go in random order to BM25. Of fresh
    draws the first ones are taken where fewer are sent.
    """

    mechanism: str
    epsilon: float
    release: Release
    engine: str
    counts: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"words {self.mechanism} {self.epsilon:g} {self.release} {self.engine}"

    def cells(self, bench: CoverBench, seed: int) -> Cells:
        """What is found, and named in the log and in a short list."""
        base = copy(bench.base)
        base.engine = bench.answers[self.engine].engine
        made, pipeline = self._built(base)
        logs = bench.cut_logs(f"{made.space.name} {self.engine}", made, pipeline)
        of_kind = (KNOWS_KIND, KNOWS_LOG, bench.likelier())
        attacker = WordAttack(made, self.release, pipeline, logs, seed, of_kind)
        draws: Mapping[int, Sequence[int]]
        draws = {max(self.counts): self.counts}
        if self.release == "once":
            draws = {n: [n] for n in self.counts}
        for most, counts in draws.items():
            obfuscator = Obfuscator(made, n=most, release=self.release, pipeline=pipeline, rng=seed)
            results = list(obfuscator.obfuscate(bench.texts))
            named = attacker.named(releases(bench, results), counts)
            answers = searched(bench, self.engine, results)
            for n in counts:
                by_texts = {
                    name: max(
                        named_by_words(bench, results, n, name, made.space),
                        named_by_answers(bench, results, n, name, self.engine),
                        key=total,
                    )
                    for name in bench.attack_logs()
                }
                by_texts[KNOWS_KIND] = max(by_texts[KNOWS_LOG], named[n][KNOWS_LOG], key=total)
                strongest = {
                    name: max(hits, by_texts[name], key=total) for name, hits in named[n].items()
                }
                ndcg = found(bench, self.engine, answers, n)
                yield f"{self.name} {n}", {"sent": n, "ndcg": ndcg, "named": strongest}

    def _built(self, base: Bench) -> tuple[WordMechanism, TextPipeline]:
        if self.mechanism == "cmp":
            return spaces.built(base, spaces.SETTINGS["new"], self.epsilon)
        space = load_space(spaces.SETTINGS["old"].space)
        made = mechanism(self.mechanism, space=space, epsilon=self.epsilon)
        assert isinstance(made, WordMechanism)
        return made, laid_out_for(base.engine, TextPipeline(unknown="uniform"), made)


@dataclass(frozen=True)
class TextsJob:
    """A mechanism that replaces a text by strings of the log, or by rules (no epsilon).

    From the log come the strings nearest to one noisy point. Rules have all documents of the
    collection, which is the best for them, and may find fewer variants than are asked for, or none:
    such a query finds nothing and is not named. The attackers read the noise as it is, and
    compare by the pool's encoder, by words and by what is found; the strongest counts. What rules
    send does not depend on who is asked: who attacks them asks BM25, whatever engine is searched.
    """

    mechanism: str
    epsilon: float | None
    engine: str
    counts: tuple[int, ...]

    @property
    def name(self) -> str:
        strength = "-" if self.epsilon is None else f"{self.epsilon:g}"
        return f"texts {self.mechanism} {strength} {self.engine}"

    def cells(self, bench: CoverBench, seed: int) -> Cells:
        """What is found, and named in the log and in a short list."""
        made = self._built(bench)
        release: Release = "independent" if self.epsilon is None else "once"
        for n in self.counts:
            results = list(Obfuscator(made, n=n, release=release, rng=seed).obfuscate(bench.texts))
            seen = [released for released in releases(bench, results) if released.variants]
            attacked_by = self.engine if self.epsilon is not None else "bm25"
            key = (bench.name, self.mechanism, self.epsilon, attacked_by, n, seed)
            if key not in _named:
                _named[key] = {
                    name: dict.fromkeys(bench.keys, 0.0)
                    | self._named_in(bench, name, seen, made, release, attacked_by, n, seed)
                    for name in bench.attack_logs()
                }
            named = _named[key]
            ndcg = found(bench, self.engine, searched(bench, self.engine, results), n)
            yield f"{self.name} {n}", {"sent": n, "ndcg": ndcg, "named": named}

    def _named_in(
        self,
        bench: CoverBench,
        name: str,
        seen: Sequence[Released],
        made: PoolMechanism | TextMechanism,
        release: Release,
        engine: str,
        n: int,
        seed: int,
    ) -> dict[str, float]:
        """What the strongest attack names in one log."""
        log = bench.query_log(name)
        report = attack(
            seen,
            mechanism=made,
            release=release,
            log=log,
            encoders=[bench.encoder],
            engine=bench.answers[engine].engine,
            add_originals=True,
            counts=[n],
            rng=seed,
        )
        words = MeanOfWords("GloVe vectors", load_space("default"))
        attempts = [inference for _, inference in report.inferences]
        attempts.append(infer(seen, log, words, add_originals=True))
        hits = [
            {query.id: float(query.rank == 1) for query in inference.queries}
            for inference in attempts
        ]
        return max(hits, key=total)

    def _built(self, bench: CoverBench) -> PoolMechanism | TextMechanism:
        if self.epsilon is not None:
            pool = bench.ready("log")[0].plain
            made = mechanism(self.mechanism, pool=pool, epsilon=self.epsilon)
        else:
            asks = "engine" in mechanism_kind(self.mechanism).resources()
            resources = {"engine": bench.base.engine} if asks else {}
            made = rules_of(bench.name, self.mechanism, resources)
        assert isinstance(made, PoolMechanism | TextMechanism)
        return made


_named: dict[tuple[Any, ...], dict[str, dict[str, float]]] = {}
"""What attacks on whole texts named, for the next engine."""
_rules: dict[tuple[str, str], TextMechanism] = {}


def rules_of(collection: str, name: str, resources: Mapping[str, Any]) -> TextMechanism:
    """A mechanism of rules that remembers what it made of a text.

    Attackers let it rewrite the same queries again and again. Fewer variants are the first ones.
    Of too many combinations it draws some, so a text in another stream is another one.
    """
    if (collection, name) not in _rules:
        made = mechanism(name, **resources)
        assert isinstance(made, TextMechanism)
        assert not made.may_repeat
        rewrite, known = made.rewrite, dict[tuple[str, str], Rewriting]()

        def remembered(text: str, n: int, pipeline: TextPipeline, rng: Generator) -> Rewriting:
            key = text, repr(rng.bit_generator.state)
            if key not in known:
                known[key] = rewrite(text, max(COUNTS), pipeline, rng)
            return Rewriting(known[key].variants[:n])

        object.__setattr__(made, "rewrite", remembered)
        _rules[collection, name] = made
    return _rules[collection, name]


@dataclass(frozen=True)
class ChorusJob:
    """cmp in a chorus of strings of the log, so many queries in all."""

    epsilon: float
    engine: str
    counts: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"chorus {CHOIR} cmp {self.epsilon:g} {self.engine}"

    def cells(self, bench: CoverBench, seed: int) -> Cells:
        """What is found, and named by who knows the log, and by who has a short list."""
        base = copy(bench.base)
        base.engine = bench.answers[self.engine].engine
        made, pipeline = spaces.built(base, spaces.SETTINGS["new"], self.epsilon)
        ready = bench.ready("log")[0]
        known = {SHORT_LIST: bench.attack_logs()[SHORT_LIST]}
        for sent in self.counts:
            choir = Chorus(
                mechanism=made,
                n=sent // CHOIR,
                release="once",
                pipeline=pipeline,
                rng=seed,
                pool=ready.plain,
                k=CHOIR,
            )
            results = list(choir.obfuscate(bench.texts))
            named = {}
            for name in bench.attack_logs():
                report = attack_chorus(
                    choir,
                    results,
                    bench.query_log(name),
                    knowledge=Knowledge(known.get(name, ready.fold.learned)),
                    rng=seed,
                )
                both = max(naming.query.value or 0.0 for naming in report.namings)
                named[name] = {"share": both}
            ndcg = found(bench, self.engine, searched(bench, self.engine, results), sent)
            yield f"{self.name} {sent}", {"sent": sent, "ndcg": ndcg, "named": named}
