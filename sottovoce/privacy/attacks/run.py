"""Every attack on a set of releases, for several numbers of variants seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal, TypeAlias, get_args

import numpy as np

from sottovoce.choices import Release
from sottovoce.encoders import Encoder
from sottovoce.errors import UsageError
from sottovoce.mechanisms.base import Mechanism, PoolMechanism, SetMechanism, WordMechanism
from sottovoce.privacy.attacks.company.report import CompanyReport
from sottovoce.privacy.attacks.company.run import attack_released_sets
from sottovoce.privacy.attacks.cosine import infer
from sottovoce.privacy.attacks.denoiser import Denoiser, MadeFor
from sottovoce.privacy.attacks.evidence import Evidence
from sottovoce.privacy.attacks.evidence_kinds import evidence_for
from sottovoce.privacy.attacks.language import TextModel, Trigrams
from sottovoce.privacy.attacks.open_words import knowing_words
from sottovoce.privacy.attacks.places import Place, PlacedText, Reading, line_up
from sottovoce.privacy.attacks.priors import Prior
from sottovoce.privacy.attacks.queries import AlignedLog, Scorer, rank_queries
from sottovoce.privacy.attacks.query_log import QueryLog, require_in_log
from sottovoce.privacy.attacks.ranked import DEPTH, Attacked, Inference
from sottovoce.privacy.attacks.releases import Released
from sottovoce.privacy.attacks.report import RiskReport
from sottovoce.privacy.attacks.sentences import infer_sentences
from sottovoce.privacy.attacks.unordered import UnorderedScorer, find_places
from sottovoce.privacy.attacks.words import (
    TextWords,
    WordRecovery,
    evidence_rows,
    guess,
    guessed_words,
    judge,
    shown_words,
)
from sottovoce.randomness import Randomness, is_seeded
from sottovoce.text import TextPipeline, folded_text
from sottovoce.types import IntArray, Progress

COUNTS = (1, 5, 20, 50)
"""How many variants of a text the attacker sees, as far as there are so many."""

PriorName: TypeAlias = Literal["log", "wordfreq", "uniform"]
Attack: TypeAlias = Literal["mode", "uniform", "prior", "context", "aligned"]
ATTACKS: tuple[Attack, ...] = get_args(Attack)
"""mode: the word that most variants show. uniform, prior, context: the likeliest word by the
mechanism's own law, with all words alike beforehand, as frequent as in a log or a language, or in
texts like those of a log. aligned: the likeliest query of a log by that law, place by place, and
for fresh draws in random order also variant by variant (``any order``)."""

KNOWN_MECHANISM = "the mechanism with its parameters"
DENOISER = "denoiser"
"""Like ``context``, with a network that was trained for it; tried if one is given."""
BELIEFS: dict[str, str] = {
    "uniform": "what words are likely: ",
    "prior": "how often words are said: ",
    "context": "what is said together: ",
    DENOISER: "what is said together: ",
}
UNIFORM_PRIOR = "a uniform prior was asked for"
NO_MECHANISM = "it needs to know the mechanism: name it"
NO_LOG = "it needs a query log: give one"
NO_ORDER = "the words of the variants are in random order, and the mechanism is not known"
RANDOM_ORDER = "the words of the variants are in random order"
WHOLE_TEXTS = "the mechanism replaces whole texts: there are no words to line up"
BY_GROUP = "a query is never named more often than what stands for it in the set"
REWRITTEN = "no attack here knows how this mechanism rewrites a text"
ANOTHER_LAW = (
    "this mechanism cannot have made these releases: name its parameters, its space and its output "
    "vocabulary as they were"
)
LEAST_POSSIBLE = 0.5
"""Some word can have been meant wherever the law is the right one; at fewer places, it is not."""
UNIT_VECTORS = "it reads noise around vectors of length 1 by one tower, and these are others"
WHOLE_RELEASE = "a release 'once' is read as a whole: fewer variants are a random part of it"


def attack(
    releases: Sequence[Released],
    *,
    mechanism: Mechanism | None = None,
    release: Release = "independent",
    pipeline: TextPipeline | None = None,
    log: QueryLog | None = None,
    encoders: Sequence[Encoder] = (),
    add_originals: bool = False,
    prior: PriorName | None = None,
    counts: Sequence[int] | None = None,
    attacks: Sequence[Attack] | None = None,
    denoiser: Denoiser | None = None,
    session: bool = False,
    rng: Randomness = None,
    progress: Progress | None = None,
) -> RiskReport:
    """Run every attack on the releases.

    mechanism
        What made them: with it the attacker knows more. Without, there are only the mode and
        query inference by encoders.
    pipeline
        How texts were cut into words. Where that is not known, as the mechanism's paper has it,
        and that a release shows no punctuation rules out no query.
    log
        The attacker's query log: for query inference, and for what words and texts are likely.
        What is attacked is taken out of it before anything is counted.
    encoders
        What query inference by cosine compares with: see :func:`attacker_encoders`.
    add_originals
        Put originals that the log lacks beside it: query inference is about an attacker who has
        the very query in a list.
    prior
        How likely words are beforehand: as in the log (the default if there is one), in English
        (``wordfreq``), or all alike.
    counts
        How many variants the attacker sees, one number after the other, and all of them in the
        end; 1, 5, 20 and 50 by default.
    attacks
        Some of ``ATTACKS``; all by default.
    denoiser
        A network for one more attack on words. It must have been trained for this mechanism,
        release, number of variants, and log without what is attacked (``train_denoiser``).
    session
        Whether the releases are one person's, for attacks on sets; else everybody asks once.
    """
    if prior == "log" and log is None:
        raise UsageError("a prior from the log needs a log: give one")
    if prior not in (None, *get_args(PriorName)):
        raise UsageError(f"there is no such prior: use one of {', '.join(get_args(PriorName))}")
    if attacks is not None and set(attacks) - set(ATTACKS):
        raise UsageError(f"there is no such attack: use some of {', '.join(ATTACKS)}")
    most = max((len(released.variants) for released in releases), default=0)
    if not most:
        raise UsageError("there is nothing to attack: no text has a variant")
    run = _Run(
        releases=releases,
        mechanism=mechanism,
        release=release,
        pipeline=pipeline or TextPipeline(protect=mechanism.protects if mechanism else "all"),
        cut_is_known=pipeline is not None,
        log=log,
        add_originals=add_originals,
        prior=prior or ("wordfreq" if log is None else "log"),
        attacks=ATTACKS if attacks is None else tuple(attacks),
        denoiser=denoiser,
        seen=numbers_of_variants(COUNTS if counts is None else counts, most),
        rng=rng,
        progress=progress,
    )
    if log is None:
        run.not_tried["query inference"] = NO_LOG
    else:
        for encoder in encoders:
            run.by_encoder(log, encoder)
    if not run.attacks and denoiser is None:
        pass  # Only encoders were asked for.
    elif mechanism is None or isinstance(mechanism, WordMechanism):
        run.by_place(mechanism)
    else:
        run.not_tried["words"] = WHOLE_TEXTS
        if isinstance(mechanism, SetMechanism):
            run.by_company(mechanism, session)
        elif not isinstance(mechanism, PoolMechanism):
            run.not_tried["aligned"] = REWRITTEN
        elif log is not None and "aligned" in run.attacks:
            run.by_sentence(log, mechanism)
    return RiskReport(
        releases=len(releases),
        mechanism=mechanism.spec if mechanism else None,
        release=release,
        recoveries=tuple(run.recoveries),
        inferences=tuple(run.inferences),
        not_tried=run.not_tried,
        left_out=run.left_out,
        seeded=is_seeded(rng),
        company=run.company,
    )


def numbers_of_variants(counts: Sequence[int], most: int) -> list[int]:
    """How many variants are looked at: the numbers asked for, and all; none above what there is."""
    if not counts or min(counts) < 1:
        raise UsageError("numbers of variants are whole numbers, 1 or more")
    return sorted({*(min(int(n), most) for n in counts), most})


@dataclass
class _Run:
    """One run of all attacks: what is attacked, what the attacker has, and what came of it."""

    releases: Sequence[Released]
    mechanism: Mechanism | None
    release: Release
    pipeline: TextPipeline
    cut_is_known: bool
    log: QueryLog | None
    add_originals: bool
    prior: PriorName
    attacks: tuple[Attack, ...]
    denoiser: Denoiser | None
    seen: list[int]
    rng: Randomness
    progress: Progress | None
    recoveries: list[tuple[int, WordRecovery]] = field(default_factory=list)
    inferences: list[tuple[int, Inference]] = field(default_factory=list)
    not_tried: dict[str, str] = field(default_factory=dict)
    left_out: int = 0
    company: CompanyReport | None = None

    def by_encoder(self, log: QueryLog, encoder: Encoder) -> None:
        """Query inference by cosine, as published."""
        for n in self.seen:
            inference = infer(
                self.releases,
                log,
                encoder,
                variants=n,
                add_originals=self.add_originals,
                progress=self.progress,
            )
            self.inferences.append((n, inference))

    def by_sentence(self, log: QueryLog, mechanism: PoolMechanism) -> None:
        """Query inference by the noise of a mechanism that replaces whole texts."""
        if not (mechanism.pool.unit_length and mechanism.pool.one_tower):
            self.not_tried["aligned"] = UNIT_VECTORS
            return
        for n in self.seen:
            if self.release == "once" and n < self.seen[-1]:
                self.not_tried[f"aligned, {n} variants"] = WHOLE_RELEASE
                continue
            inference = infer_sentences(
                self.releases,
                log,
                mechanism,
                self.release,
                variants=n,
                add_originals=self.add_originals,
                progress=self.progress,
            )
            self.inferences.append((n, inference))

    def by_company(self, mechanism: SetMechanism, session: bool) -> None:
        """Which string of a set was meant."""
        self.company = attack_released_sets(mechanism, self.releases, self.log, session)
        self.not_tried |= {"aligned": BY_GROUP, **self.company.not_tried}

    def by_place(self, mechanism: WordMechanism | None) -> None:
        """Attacks that line up the words of the variants."""
        if mechanism is not None:
            originals = [released.text for released in self.releases]
            mechanism = knowing_words(mechanism, self.pipeline, self.log, originals, self.progress)
        space = mechanism.space if mechanism else None
        try:
            placed = [
                line_up(
                    self.releases,
                    space,
                    release=self.release,
                    pipeline=self.pipeline,
                    variants=n,
                )
                for n in self.seen
            ]
        except UsageError as error:
            self.not_tried["words"] = str(error)
            return
        if self.pipeline.order == "shuffled":
            if mechanism is None:
                self.not_tried["words"] = NO_ORDER
                return
            placed = [
                (find_places(texts, mechanism.space, self.release), left) for texts, left in placed
            ]
        self.left_out = placed[-1][1]
        if "mode" in self.attacks:
            self.recoveries += [
                (n, _mode(texts)) for n, (texts, _) in zip(self.seen, placed, strict=True)
            ]
        if mechanism is None:
            self.not_tried["attacks that know the mechanism"] = NO_MECHANISM
            return
        if self.attacks == ("mode",) and self.denoiser is None:
            return
        attacker = _Attacker.of(self, mechanism)
        for n, (texts, _) in zip(self.seen, placed, strict=True):
            if attacker.evidence.reads_all_variants and n < self.seen[-1]:
                self.not_tried[f"{n} variants, by the mechanism"] = WHOLE_RELEASE
                continue
            try:
                recoveries, inferences = attacker.attack(texts, n, self.progress)
            except _AnotherLawError:
                self.not_tried[f"{n} variants, by the mechanism"] = ANOTHER_LAW
                continue
            self.recoveries += [(n, recovery) for recovery in recoveries]
            self.inferences += [(n, inference) for inference in inferences]


class _AnotherLawError(Exception):
    """The mechanism that was named cannot have made the releases."""


def _mode(texts: Sequence[PlacedText]) -> WordRecovery:
    by_text = tuple(judge(text, shown_words(text)) for text in texts)
    return WordRecovery("mode", "the variants alone, not what made them", by_text)


@dataclass(frozen=True)
class _Attacker:
    """One who knows the mechanism: its evidence, beliefs about texts, a log with the queries."""

    evidence: Evidence
    models: dict[str, TextModel]
    denoisers: dict[int, Denoiser]
    """By the number of variants that they were trained for."""
    log: AlignedLog | None
    score: Scorer | None
    any_order: UnorderedScorer | None
    """Where variants are drawn by themselves and in random order: reads each as it stands."""
    shape_shows: bool
    cut_is_known: bool
    added: int

    @classmethod
    def of(cls, run: _Run, mechanism: WordMechanism) -> _Attacker:
        """What an attacker prepares before looking at a release."""
        space, originals = mechanism.space, [released.text for released in run.releases]
        models: dict[str, TextModel] = {"uniform": Prior.uniform(space)}
        aligned, added = None, 0
        layout = run.pipeline
        shuffled, padded = layout.order == "shuffled", layout.pad_to > 0
        # The attacker's log is cut into the same words, and stays as it is.
        pipeline = replace(layout, order="kept", pad_to=0)
        cut = None if run.log is None else run.log.cut(space, pipeline, run.progress)
        if cut is not None and "aligned" in run.attacks:
            whole = cut.with_texts(originals, space, pipeline)
            added = len(whole) - len(cut)
            require_in_log(added, len(set(map(folded_text, originals))), run.add_originals)
            aligned = AlignedLog.of(whole)
        if run.prior == "wordfreq":
            models["prior"] = Prior.from_wordfreq(space)
        elif run.prior == "log" and cut is not None:
            models["prior"] = Prior.from_log(cut.without(originals))
        if run.prior != "uniform" and cut is not None and not shuffled:
            models["context"] = Trigrams.of(cut.without(originals))
        elif "context" in run.attacks:
            reason = RANDOM_ORDER if shuffled else UNIFORM_PRIOR
            run.not_tried["context"] = NO_LOG if cut is None else reason
        denoisers = {}
        if run.denoiser is not None and "context" in models and cut is not None:
            trained_for = MadeFor.of(mechanism, run.release, run.seen[-1], cut.without(originals))
            run.denoiser.check(trained_for)
            denoisers[trained_for.n] = run.denoiser.beside(models["context"])
            for n in run.seen[:-1]:
                run.not_tried[f"{DENOISER}, {n} variants"] = f"it was trained for {trained_for.n}"
        elif run.denoiser is not None:
            reason = RANDOM_ORDER if shuffled else UNIFORM_PRIOR
            run.not_tried[DENOISER] = NO_LOG if cut is None else reason
        used = {name: model for name, model in models.items() if name in set[str](run.attacks)}
        score: UnorderedScorer | None = None
        if aligned is not None and (shuffled or padded):
            score = UnorderedScorer(aligned, ordered=not shuffled, padded=padded)
        by_itself = shuffled and run.release == "independent"
        return cls(
            evidence=_evidence(mechanism, run.release, run.rng),
            models=used,
            denoisers=denoisers,
            log=aligned,
            score=score,
            any_order=score if by_itself else None,
            shape_shows=score is None,
            cut_is_known=run.cut_is_known,
            added=added,
        )

    def attack(
        self, texts: Sequence[PlacedText], n: int, progress: Progress | None
    ) -> tuple[list[WordRecovery], list[Inference]]:
        """One pass over texts of ``n`` variants: words by each model, ranks in the log."""
        space = self.evidence.mechanism.space
        models = dict(self.models)
        if n in self.denoisers:
            models[DENOISER] = self.denoisers[n]
        words: dict[str, list[TextWords]] = {name: [] for name in models}
        ranked: list[Attacked] = []
        places = possible = 0
        for text, rows in evidence_rows(self.evidence, texts, progress):
            places += len(rows)
            possible += int(np.isfinite(rows).any(axis=1).sum())
            for name, model in models.items():
                words[name].append(judge(text, guessed_words(text, guess(model, rows), space)))
            if self.log is not None:
                ranked += rank_queries(
                    [(text, rows)],
                    self.log,
                    shape_shows=self.shape_shows and (self.cut_is_known or any(text.shape)),
                    score=self.score,
                )
        wrong_law = possible < LEAST_POSSIBLE * places
        if wrong_law and self.any_order is None:
            raise _AnotherLawError
        recoveries = [
            WordRecovery(
                name, f"{KNOWN_MECHANISM}; {BELIEFS[name]}{model.name}", tuple(words[name])
            )
            for name, model in models.items()
            if not wrong_law
        ]
        if self.log is None:
            return recoveries, []
        # Places that no word explains were found wrongly, or the law is another one.
        inferences = [] if wrong_law else [self._inference(self.log, "aligned", ranked)]
        if self.any_order is not None:
            ranked = [self._in_any_order(text, self.log, self.any_order) for text in texts]
            inferences.append(self._inference(self.log, "any order", ranked))
        return recoveries, inferences

    def _in_any_order(self, text: PlacedText, log: AlignedLog, scorer: UnorderedScorer) -> Attacked:
        """Rank the log by each variant as it stands, whichever of its words is which."""
        shown = [[word.id for word in text.places[at].shown] for at in text.replaced]
        released = np.array(shown, dtype=np.int64).reshape(len(shown), -1).T
        words, where = np.unique(released, return_inverse=True)
        (rows,) = [rows for _, rows in evidence_rows(self.evidence, [_each_alone(text, words)])]
        if np.isfinite(rows).any(axis=1).sum() < LEAST_POSSIBLE * len(rows):
            raise _AnotherLawError
        variants = (rows[places] for places in where.reshape(released.shape))
        scored = scorer.of_variants(variants, released.shape[1])
        (ranked,) = rank_queries([(text, rows)], log, shape_shows=False, score=lambda *_: scored)
        return ranked

    def _inference(self, log: AlignedLog, attack: str, ranked: list[Attacked]) -> Inference:
        return Inference(
            attack=attack,
            knows=f"{KNOWN_MECHANISM}; a {log.name} with the true one in it",
            log=len(log.log),
            added=self.added,
            unreleased=0,
            depth=DEPTH,
            queries=tuple(ranked),
        )


def _each_alone(text: PlacedText, words: IntArray) -> PlacedText:
    """A text whose places show one of these words each."""
    places = tuple(Place((Reading("", int(word)),), False) for word in words)
    return replace(text, places=places)


@lru_cache(maxsize=4)
def _cached_evidence(mechanism: WordMechanism, release: Release, seed: int | None) -> Evidence:
    return evidence_for(mechanism, release, rng=seed)


def _evidence(mechanism: WordMechanism, release: Release, rng: Randomness) -> Evidence:
    """The evidence; kept for the next release of the same mechanism."""
    if rng is None or isinstance(rng, int):
        return _cached_evidence(mechanism, release, rng)
    return evidence_for(mechanism, release, rng=rng)
