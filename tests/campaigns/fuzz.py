"""Hostile inputs: files that are nearly valid, for every reader, and texts for the pipeline.

Only declared errors come out, none of which repeats the content; no input takes long or much
memory; and of a text that is obfuscated nothing is left but words that were released.

A trial is a batch of inputs for one target. The mutations are our own: they depend on the number of
the trial alone, so that each can be repeated, which coverage-guided fuzzers do not promise.
"""

from __future__ import annotations

import re
import resource
import shutil
import sys
import tempfile
import time
import traceback
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from campaigns.frame import Outcome
from campaigns.fuzz_targets import CANARY, Target, all_targets
from campaigns.mutation import mutated
from sottovoce import Obfuscator, mechanism
from sottovoce.errors import SottovoceError
from sottovoce.spaces.space import WordSpace
from sottovoce.text import TextPipeline

PLANTS = {
    "index-error": "a reader of runs takes the fields of a line by their places",
    "repeats-content": "an error about a line of JSON repeats the line",
    "keeps-words": "words that the space does not list stay as they are",
}
BATCH = 500
TEXTS_TOGETHER = 50
TEXTS_TURN = -1
SLOWEST = 2.0
"""Seconds of processor time for one input."""
MOST_MEMORY = 1 << 30
"""Bytes by which the process may grow while it reads an input."""
VOCABULARY = [
    "skin",
    "cancer",
    "doctor",
    "tax",
    "return",
    "divorce",
    "lawyer",
    "quiet",
    "river",
    "stone",
    "well-known",
    "co-op",
    "don't",
    "U.S.",
    "naïve",
    "école",
    "straße",
    "東京",
    "new_york",
    "3d",
]
TEXTS = [
    f"Treatment for {CANARY} and skin cancer, near me?",
    f"the {CANARY.upper()}'s DOCTOR—tax return (2024) e-mail: {CANARY}@example.org #{CANARY}",
    f"{CANARY}-cancer New York, co-op; don't! http://{CANARY}.com/a?b={CANARY} naïve école 東京",
    f"{'. '.join(CANARY)} 12{CANARY}34 ½ {CANARY}\u0301 {CANARY[:7]}\u200b{CANARY[7:]} straße",
]
_LETTERS = re.compile(r"[^\W\d_]+")


class Fuzz:
    """Targets in turn, by their weights."""

    unit = "inputs"

    def __init__(self, folder: Path) -> None:
        self.targets = all_targets(folder)
        self.turns = [
            place for place, target in enumerate(self.targets) for _ in range(target.weight)
        ]
        # One input in three is a text.
        self.turns += [TEXTS_TURN] * (len(self.turns) // 2)
        vectors = np.random.default_rng(5).standard_normal((len(VOCABULARY), 5))
        self.space = WordSpace.from_arrays(VOCABULARY, vectors, name="fuzzed")
        self.released = {part for word in VOCABULARY for part in _letters(word)}
        drop = TextPipeline(punctuation="drop")
        self.pipelines = [
            TextPipeline(),
            TextPipeline(unknown="drop"),
            TextPipeline(restore_case=False),
            TextPipeline(phrases=False),
            drop,
            replace(drop, order="shuffled"),
            replace(drop, order="shuffled", pad_to=4),
        ]
        self.mechanisms = [mechanism(name, space=self.space) for name in ("cmp", "santext", "tem")]

    def only(self, name: str) -> None:
        """Leave all other targets out; ``texts`` is the pipeline."""
        places = [place for place, target in enumerate(self.targets) if target.name == name]
        self.turns = places or [TEXTS_TURN]

    def trial(self, number: int, rng: np.random.Generator, batch: int = BATCH) -> Outcome:
        """A batch of inputs for one target."""
        random = Random(int(rng.integers(1 << 62)))
        turn = self.turns[int(rng.integers(len(self.turns)))]
        counts: Counter[str] = Counter({self.unit: batch})
        findings: dict[str, str] = {}
        before = _memory()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if turn == TEXTS_TURN:
                counts["inputs: texts"] = batch
                self._texts(random, batch, counts, findings)
            else:
                target = self.targets[turn]
                batch = max(1, batch // target.cost)
                counts[self.unit] = batch
                counts[f"inputs: {target.name}"] = batch
                self._files(random, target, batch, counts, findings)
        if _memory() - before > MOST_MEMORY:
            findings["memory"] = f"target {turn}: a gigabyte more than before"
        return Outcome(counts, tuple(findings.values()))

    def _files(
        self,
        random: Random,
        target: Target,
        batch: int,
        counts: Counter[str],
        findings: dict[str, str],
    ) -> None:
        for place in range(batch):
            target.restore()
            target.file.write_bytes(mutated(random, target.seeds))
            begun = time.process_time()
            try:
                target.read(target.file)
                counts["accepted"] += 1
            except SottovoceError as error:
                counts["refused"] += 1
                if CANARY in str(error):
                    findings.setdefault(
                        "repeats", f"{target.name}, input {place}: the error repeats it"
                    )
            except Exception as error:
                where = _where(error)
                findings.setdefault(
                    where, f"{target.name}, input {place}: {type(error).__name__} at {where}"
                )
            if time.process_time() - begun > SLOWEST:
                findings.setdefault(
                    "slow", f"{target.name}, input {place}: more than {SLOWEST:g} s"
                )
        target.file.write_bytes(target.seeds[0])

    def _texts(
        self, random: Random, batch: int, counts: Counter[str], findings: dict[str, str]
    ) -> None:
        seeds = [text.encode() for text in TEXTS]
        for start in range(0, batch, TEXTS_TOGETHER):
            texts = [
                mutated(random, seeds, 2000).decode("utf-8", "replace")
                for _ in range(min(TEXTS_TOGETHER, batch - start))
            ]
            obfuscator = Obfuscator(
                random.choice(self.mechanisms),
                n=random.choice((1, 2)),
                pipeline=random.choice(self.pipelines),
                rng=random.randrange(1 << 60),
            )
            begun = time.process_time()
            try:
                for place, result in enumerate(obfuscator.obfuscate(texts), start):
                    counts["accepted"] += 1
                    for variant in result.variants:
                        left = set(_letters(variant)) - self.released
                        if left:
                            findings.setdefault(
                                "left", f"texts, input {place}: {len(left)} words were left in it"
                            )
            except SottovoceError as error:
                counts["refused"] += 1
                if CANARY in str(error) or "failed (" in str(error):
                    findings.setdefault("text error", f"texts from input {start}: {_kind(error)}")
            except Exception as error:
                where = _where(error)
                findings.setdefault(where, f"texts from {start}: {type(error).__name__} at {where}")
            if time.process_time() - begun > SLOWEST:
                findings.setdefault("slow", f"texts from input {start}: more than {SLOWEST:g} s")


def _letters(text: str) -> list[str]:
    """Runs of letters, whatever their case and form."""
    return _LETTERS.findall(unicodedata.normalize("NFKC", text).casefold())


def _kind(error: Exception) -> str:
    found = re.search(r"failed \((\w+)\)", str(error))
    return found[1] if found else "the error repeats it"


def _where(error: BaseException) -> str:
    """The last line of ours that an exception passed."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "sottovoce" in frame.filename
    ]
    last = frames[-1] if frames else traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name}:{last.lineno}"


def _memory() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10


@contextmanager
def opened(folder: Path, plant: str | None) -> Iterator[Fuzz]:
    """All targets, on a disk in memory where there is one."""
    with ExitStack() as stack:
        if Path("/dev/shm").is_dir() and shutil.disk_usage("/dev/shm").free > 1 << 28:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        if plant is not None:
            _plant(patch, plant)
        yield Fuzz(folder)


def _plant(patch: pytest.MonkeyPatch, plant: str) -> None:
    if plant == "index-error":
        from campaigns import fuzz_targets

        patch.setattr(
            fuzz_targets,
            "read_run",
            lambda path: [
                line.split()[5] for line in path.read_text("utf-8", "replace").splitlines()
            ],
        )
    elif plant == "repeats-content":
        from sottovoce import files

        def repeating(line: str) -> object:
            try:
                return loads(line)
            except (ValueError, RecursionError):
                raise SottovoceError(f"this is not JSON: {line}") from None

        loads = files.json.loads
        patch.setattr(files, "json", type("json", (), {"loads": staticmethod(repeating)}))
    elif plant == "keeps-words":
        from sottovoce.text import fragments

        patch.setattr(fragments.Rules, "unlisted", lambda self, surface, position: "kept_unknown")
