"""The side report: what was done, what it promises, what stayed in clear. Numbers, no words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sottovoce import __version__
from sottovoce.guarantees import MANY_RELEASES, WORD_BY_WORD, Guarantee
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.obfuscation import SEEDED
from sottovoce.sanitizing.linking import linkable_guarantee
from sottovoce.sanitizing.sanitizer import DatasetCounts, Sanitizer
from sottovoce.text import Counts
from sottovoce.text.prepared import STOOD_IN, caveats

EACH_TIME = (
    "each word is released once for each time it stands in the data: texts of one person, or one "
    "text in several rows, add up"
)
OTHER_COLUMNS = "rows, their order and all other columns are released as they are"


@dataclass(frozen=True)
class Report:
    """Counts and guarantee of a sanitized data set; holds no word of it."""

    sanitizer: Sanitizer
    counts: DatasetCounts

    @property
    def guarantee(self) -> Guarantee:
        """The mechanism's promise, with everything here that limits it."""
        obfuscator = self.sanitizer.obfuscator
        promise = obfuscator.mechanism.guarantee
        # There is one variant of each text; EACH_TIME says more.
        promise = promise.without_caveat(MANY_RELEASES)
        if isinstance(obfuscator.mechanism, WordMechanism):
            promise = promise.with_caveats(*self._caveats(WORD_BY_WORD in promise.caveats))
        if self.counts.denied:
            promise = promise.with_caveats(
                f"words of the deny-list: {self.counts.denied}, {STOOD_IN}"
            )
        if self.sanitizer.linkable is not None:
            promise = linkable_guarantee(promise)
        else:
            promise = promise.with_caveats(EACH_TIME)
        promise = promise.with_caveats(OTHER_COLUMNS)
        return promise.with_caveats(SEEDED) if self.seeded else promise

    @property
    def seeded(self) -> bool:
        """Whether anybody could draw the same again."""
        return self.sanitizer.obfuscator.rng is not None

    def _caveats(self, layout_is_said: bool) -> tuple[str, ...]:
        """The caveats of a text that held all words of the data set."""
        counts, pipeline = self.counts, self.sanitizer.obfuscator.pipeline
        return caveats(
            Counts(
                encoded=counts.encoded,
                uniform=counts.uniform,
                dropped=counts.dropped,
                dropped_unprotected=counts.dropped_unprotected,
                kept_unknown=counts.kept_unknown,
                kept_listed=counts.kept_listed,
                kept_unprotected=counts.kept_unprotected,
            ),
            restores_case=pipeline.restore_case,
            releases_punctuation=pipeline.punctuation == "keep",
            layout_is_said=layout_is_said,
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        counts, obfuscator = self.counts, self.sanitizer.obfuscator
        mechanism = self.sanitizer.mechanism
        by_word = isinstance(mechanism, WordMechanism)
        report: dict[str, Any] = {
            "sottovoce": __version__,
            "rows": counts.rows,
            "columns": len(self.sanitizer.columns),
            "texts": {
                "all": counts.texts,
                "empty": counts.empty,
                "rewritten": counts.texts - counts.empty if by_word else counts.rewritten,
                "withheld": counts.withheld,
            },
            "words": {
                "all": counts.words,
                "changed": counts.changed,
                "returned": counts.returned,
                "denied": counts.denied,
            }
            if by_word
            else None,
            "unknown": {
                "policy": obfuscator.pipeline.unknown,
                "encoded": counts.encoded,
                "uniform": counts.uniform,
                "dropped": counts.dropped,
                "kept": counts.kept_unknown,
            },
            "in_clear": {
                "all": counts.kept,
                "unknown": counts.kept_unknown,
                "keep_list": counts.kept_listed,
                "not_protected": counts.kept_unprotected,
            },
            "left_out": {
                "unknown": counts.dropped,
                "not_protected": counts.dropped_unprotected,
            },
            "mechanism": mechanism.spec,
            "epsilon": getattr(mechanism, "epsilon", None),
            "guarantee": self.guarantee.to_dict(),
            "linkable": self.sanitizer.linkable is not None,
            "seeded": self.seeded,
        }
        if isinstance(mechanism, WordMechanism):
            space = mechanism.space
            report["space"] = {
                "name": space.name,
                "sha256": space.sha256,
                "output_vocabulary": len(space.output),
            }
        return report
