"""Every attack on a set of releases, for several numbers of variants seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from sottovoce.choices import Release
from sottovoce.encoders import Encoder
from sottovoce.engines import SearchEngine
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.mechanisms.base import (
    Mechanism,
    PoolMechanism,
    SetMechanism,
    TextMechanism,
    WordMechanism,
)
from sottovoce.privacy.attacks.by_answers import AnswersAttacker
from sottovoce.privacy.attacks.company.run import attack_released_sets
from sottovoce.privacy.attacks.cosine import infer, originals_in
from sottovoce.privacy.attacks.denoiser import Denoiser
from sottovoce.privacy.attacks.knowing_attacker import AnotherLawError, KnowingAttacker
from sottovoce.privacy.attacks.open_words import knowing_words
from sottovoce.privacy.attacks.places import PlacedText, line_up
from sottovoce.privacy.attacks.query_log import QueryLog
from sottovoce.privacy.attacks.reasons import (
    ANOTHER_LAW,
    BY_GROUP,
    COMPUTED,
    DRAWN,
    NO_LOG,
    NO_MECHANISM,
    NO_ORDER,
    NOT_ON_LOG,
    REWRITTEN,
    UNIT_VECTORS,
    WHOLE_RELEASE,
    WHOLE_TEXTS,
)
from sottovoce.privacy.attacks.releases import Released
from sottovoce.privacy.attacks.remade import LIKELY, infer_by_remaking
from sottovoce.privacy.attacks.report import RiskReport
from sottovoce.privacy.attacks.run_state import ATTACKS, BY_TEXTS, Attack, PriorName, RunState
from sottovoce.privacy.attacks.sentences import infer_sentences
from sottovoce.privacy.attacks.unordered import find_places
from sottovoce.privacy.attacks.word_means import infer_by_words, likely_by_words, space_for
from sottovoce.privacy.attacks.words import WordRecovery, judge, shown_words
from sottovoce.randomness import Randomness, is_seeded
from sottovoce.spaces.space import WordSpace
from sottovoce.text import TextPipeline, folded_text
from sottovoce.types import Progress

COUNTS = (1, 5, 20, 50)
"""How many variants of a text the attacker sees, as far as there are so many."""


def attack(
    releases: Sequence[Released],
    *,
    mechanism: Mechanism | None = None,
    release: Release = "independent",
    pipeline: TextPipeline | None = None,
    log: QueryLog | None = None,
    encoders: Sequence[Encoder] = (),
    engine: SearchEngine | None = None,
    space: WordSpace | None = None,
    add_originals: bool = False,
    prior: PriorName | None = None,
    counts: Sequence[int] | None = None,
    attacks: Sequence[Attack] | None = None,
    denoiser: Denoiser | None = None,
    session: bool = False,
    history: Sequence[str] = (),
    rng: Randomness = None,
    progress: Progress | None = None,
) -> RiskReport:
    """Run every attack on the releases.

    mechanism
        What made them: with it the attacker knows more. Without, there are only the mode and
        query inference by encoders and by words.
    pipeline
        How texts were cut into words. Where that is not known, as the mechanism's paper has it,
        and that a release shows no punctuation rules out no query.
    log
        The attacker's query log: for query inference, and for what words and texts are likely.
        What is attacked is taken out of it before anything is counted.
    encoders
        What query inference by cosine compares with: see :func:`attacker_encoders`.
    engine
        One on this machine like the one that was asked, for ``answers``: it is an attacker, too.
        The mechanism's own is another, if it has one.
    space
        Where ``means`` looks words up if the mechanism has no word space; else the default one.
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
        Some of ``ATTACKS``; all by default. A set is attacked by all that applies to sets,
        whichever of them are named; without any, nothing is tried beside query inference.
    denoiser
        A network for one more attack on words. It must have been trained for this mechanism,
        release, number of variants, and log without what is attacked (``train_denoiser``).
    session
        Whether the releases are one person's, for attacks on sets; else everybody asks once.
    history
        What this person asked before, in a session; what is attacked is taken out of it.
    """
    if history and not (session and isinstance(mechanism, SetMechanism)):
        raise UsageError(
            "a history is one person's, and for attacks on sets: attack sets of cover, and say "
            "that they are one person's (--session)"
        )
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
    elif isinstance(mechanism, SetMechanism) and not (add_originals or log.holds(run.attacked)):
        run.not_tried["query inference"] = NOT_ON_LOG
    else:
        for encoder in encoders:
            run.by_encoder(log, encoder)
        if "means" in run.attacks:
            run.by_words(log, space)
        if "answers" in run.attacks:
            for asked in dict.fromkeys((engine, getattr(mechanism, "engine", None))):
                if asked is not None:
                    run.by_answers(log, asked)
        if "remade" in run.attacks and isinstance(mechanism, TextMechanism):
            run.by_remaking(log, mechanism, space)
    if isinstance(mechanism, SetMechanism):
        run.not_tried["words"] = WHOLE_TEXTS
        if run.attacks:
            run.by_company(mechanism, session, history)
    elif set(run.attacks) <= BY_TEXTS and denoiser is None:
        pass  # Only ways to compare texts were asked for.
    elif mechanism is None or isinstance(mechanism, WordMechanism):
        run.by_place(mechanism)
    else:
        run.not_tried["words"] = WHOLE_TEXTS
        if not isinstance(mechanism, PoolMechanism):
            computes = isinstance(mechanism, TextMechanism) and not mechanism.may_repeat
            run.not_tried["aligned"] = COMPUTED if computes else REWRITTEN
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


class _Run(RunState):
    """The attacks, one kind after the other."""

    @property
    def attacked(self) -> list[str]:
        """The texts behind the releases, as they are compared."""
        return [folded_text(released.text) for released in self.releases if released.variants]

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

    def by_words(self, log: QueryLog, space: WordSpace | None) -> None:
        """Query inference by the words of texts."""
        if isinstance(self.mechanism, SetMechanism):
            self.not_tried["means"] = BY_GROUP
            return
        space = self._space(space)
        for n in self.seen:
            inferences = infer_by_words(
                self.releases,
                log,
                space,
                variants=n,
                add_originals=self.add_originals,
                is_own=space is not None and space is getattr(self.mechanism, "space", None),
                progress=self.progress,
            )
            self.inferences += [(n, inference) for inference in inferences]

    def _space(self, space: WordSpace | None) -> WordSpace | None:
        """Where words have vectors; None where no space is there, and that is told."""
        try:
            return space_for(self.mechanism, space)
        except SottovoceError as error:
            self.not_tried["means"] = str(error)
            return None

    def by_answers(self, log: QueryLog, engine: SearchEngine) -> None:
        """Query inference by what is found."""
        if isinstance(self.mechanism, SetMechanism):
            self.not_tried["answers"] = BY_GROUP
            return
        texts = [release.text for release in self.releases if release.variants]
        _, beside = originals_in(log, texts, self.add_originals)
        attacker = AnswersAttacker(engine, log, beside, progress=self.progress)
        self.inferences += [(n, attacker.infer(self.releases, n)) for n in self.seen]
        if isinstance(self.mechanism, TextMechanism):
            self.likely.append(attacker.likely(self.releases, LIKELY))

    def by_remaking(self, log: QueryLog, mechanism: TextMechanism, space: WordSpace | None) -> None:
        """Query inference by letting the mechanism rewrite likely queries."""
        if mechanism.may_repeat:
            self.not_tried["remade"] = DRAWN
            return
        likely = [*self.likely]
        likely.append(
            likely_by_words(
                self.releases,
                log,
                self._space(space),
                LIKELY,
                add_originals=self.add_originals,
            )
        )
        inference = infer_by_remaking(
            self.releases,
            log,
            mechanism,
            self.pipeline,
            list(zip(*likely, strict=True)),
            add_originals=self.add_originals,
            rng=self.rng,
            progress=self.progress,
        )
        self.inferences.append((self.seen[-1], inference))

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

    def by_company(self, mechanism: SetMechanism, session: bool, history: Sequence[str]) -> None:
        """Which string of a set was meant."""
        self.company = attack_released_sets(
            mechanism,
            self.releases,
            self.log,
            session,
            history,
            add_originals=self.add_originals,
        )
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
        if set(self.attacks) <= {"mode", *BY_TEXTS} and self.denoiser is None:
            return
        attacker = KnowingAttacker.of(self, mechanism)
        for n, (texts, _) in zip(self.seen, placed, strict=True):
            if attacker.evidence.reads_all_variants and n < self.seen[-1]:
                self.not_tried[f"{n} variants, by the mechanism"] = WHOLE_RELEASE
                continue
            try:
                recoveries, inferences = attacker.attack(texts, n, self.progress)
            except AnotherLawError:
                self.not_tried[f"{n} variants, by the mechanism"] = ANOTHER_LAW
                continue
            self.recoveries += [(n, recovery) for recovery in recoveries]
            self.inferences += [(n, inference) for inference in inferences]


def _mode(texts: Sequence[PlacedText]) -> WordRecovery:
    by_text = tuple(judge(text, shown_words(text)) for text in texts)
    return WordRecovery("mode", "the variants alone, not what made them", by_text)
