"""An attacker who knows the mechanism: guesses words by its law, names queries place by place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from sottovoce.choices import Release
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.privacy.attacks.denoiser import Denoiser, MadeFor
from sottovoce.privacy.attacks.evidence import Evidence
from sottovoce.privacy.attacks.evidence_kinds import evidence_for
from sottovoce.privacy.attacks.language import TextModel, Trigrams
from sottovoce.privacy.attacks.places import Place, PlacedText, Reading
from sottovoce.privacy.attacks.priors import Prior
from sottovoce.privacy.attacks.queries import AlignedLog, Scorer, rank_queries
from sottovoce.privacy.attacks.query_log import require_in_log
from sottovoce.privacy.attacks.ranked import DEPTH, Attacked, Inference
from sottovoce.privacy.attacks.reasons import NO_LOG, RANDOM_ORDER, UNIFORM_PRIOR
from sottovoce.privacy.attacks.run_state import RunState
from sottovoce.privacy.attacks.sorted_by_points import sort_by_points
from sottovoce.privacy.attacks.unordered import UnorderedScorer
from sottovoce.privacy.attacks.words import (
    TextWords,
    WordRecovery,
    evidence_rows,
    guess,
    guessed_words,
    judge,
)
from sottovoce.randomness import Randomness
from sottovoce.text import folded_text
from sottovoce.types import IntArray, Progress

KNOWN_MECHANISM = "the mechanism with its parameters"
DENOISER = "denoiser"
"""Like ``context``, with a network that was trained for it; tried if one is given."""
BELIEFS: dict[str, str] = {
    "uniform": "what words are likely: ",
    "prior": "how often words are said: ",
    "context": "what is said together: ",
    DENOISER: "what is said together: ",
}
LEAST_POSSIBLE = 0.5
"""Some word can have been meant wherever the law is the right one; at fewer places, it is not."""


class AnotherLawError(Exception):
    """The mechanism that was named cannot have made the releases."""


@dataclass(frozen=True)
class KnowingAttacker:
    """One who knows the mechanism: its evidence, beliefs about texts, a log with the queries."""

    evidence: Evidence
    models: dict[str, TextModel]
    denoisers: dict[int, Denoiser]
    """By the number of variants that they were trained for."""
    log: AlignedLog | None
    score: Scorer | None
    any_order: UnorderedScorer | None
    """Where variants are in random order: reads each fresh draw as it stands."""
    release: Release
    shape_shows: bool
    cut_is_known: bool
    added: int

    @classmethod
    def of(cls, run: RunState, mechanism: WordMechanism) -> KnowingAttacker:
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
        return cls(
            evidence=_evidence(mechanism, run.release, run.rng),
            models=used,
            denoisers=denoisers,
            log=aligned,
            score=score,
            any_order=score if shuffled else None,
            release=run.release,
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
        if self.any_order is not None:
            texts = sort_by_points(texts, self.evidence, progress=progress)
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
        one_by_one = self.any_order is not None and self.release == "independent"
        if wrong_law and not one_by_one:
            raise AnotherLawError
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
        if one_by_one and self.any_order is not None:
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
            raise AnotherLawError
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
