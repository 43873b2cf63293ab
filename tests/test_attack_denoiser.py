"""The trained denoiser: the same network in numpy and torch, kept in files, used where it fits."""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.random import PCG64, Generator
from typer.testing import CliRunner

from sottovoce import Obfuscator, mechanism
from sottovoce.cli import app
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.mechanisms.base import WordMechanism
from sottovoce.privacy import QueryLog, Released, attack
from sottovoce.privacy.attacks import denoiser_training
from sottovoce.privacy.attacks.denoiser import (
    EVIDENCE,
    LAYOUT,
    REACH,
    TARGET,
    Denoiser,
    MadeFor,
    Seen,
    Tokens,
    context_scores,
    kept_denoiser,
    read_context,
)
from sottovoce.privacy.attacks.denoiser_training import (
    Clock,
    best_trust,
    denoiser_for,
    main_directions,
    new_weights,
    train_denoiser,
)
from sottovoce.privacy.attacks.priors import Prior
from sottovoce.privacy.attacks.self_made import SelfMade
from sottovoce.resources.local import load_space
from sottovoce.spaces import SpaceWriter
from sottovoce.spaces.space import WordSpace
from sottovoce.text import TextPipeline

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="training needs torch: pip install 'sottovoce[gpu]'",
)

PAIRS = 12
TEXTS = [
    f"left{a} right{a} left{b} right{b}" for a, b in product(range(PAIRS), range(PAIRS)) if a != b
]
"""Who knows one word of a pair knows the other."""
ATTACKED = TEXTS[::6]


@pytest.fixture(scope="module")
def paired() -> WordSpace:
    words = [f"{side}{number}" for side in ("left", "right") for number in range(PAIRS)]
    vectors = np.random.default_rng(3).standard_normal((len(words), 8))
    return WordSpace.from_arrays(words, vectors, name="paired")


@pytest.fixture(scope="module")
def santext(paired: WordSpace) -> WordMechanism:
    built = mechanism("santext:epsilon=1", space=paired)
    assert isinstance(built, WordMechanism)
    return built


@pytest.fixture(scope="module")
def log() -> QueryLog:
    return QueryLog(TEXTS)


@pytest.fixture(scope="module")
def releases(santext: WordMechanism) -> list[Released]:
    results = Obfuscator(santext, n=3, rng=8).obfuscate(ATTACKED)
    return [Released(str(at), result.text, result.variants) for at, result in enumerate(results)]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path))
    return tmp_path


def made_for(santext: WordMechanism, log: QueryLog, **changed: object) -> MadeFor:
    cut = log.cut(santext.space, TextPipeline(protect=santext.protects)).without(ATTACKED)
    return replace(MadeFor.of(santext, "independent", 3, cut), **changed)


@pytest.fixture
def by_hand(santext: WordMechanism, log: QueryLog) -> Denoiser:
    """A network that learned nothing, but knows its log's words."""
    vectors = main_directions(santext.space)
    cut = log.cut(santext.space, TextPipeline(protect=santext.protects)).without(ATTACKED)
    weights = {**new_weights(Generator(PCG64(1)), vectors), "vectors": vectors}
    return Denoiser(made_for(santext, log), 7, 0.4, weights, Prior.from_log(cut).log_weights)


def some_rows(places: int, words: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 3, (places, words)).astype(np.float32)


# The network


@needs_torch
def test_numpy_and_torch_answer_alike(by_hand: Denoiser) -> None:
    import torch

    rng = np.random.default_rng(2)
    lengths = np.array([1, 3, 30, 12])
    tokens = Tokens.of(lengths, np.array([0, 2, 15, 0]))
    inputs = rng.standard_normal((*tokens.kinds.shape, len(by_hand.weights["see"])))
    inputs = inputs.astype(np.float32)
    tensors = {name: torch.from_numpy(array) for name, array in by_hand.weights.items()}
    by_torch = read_context(tensors, tokens, torch.from_numpy(inputs), torch).numpy()
    by_numpy = read_context(by_hand.weights, tokens, inputs)
    assert np.abs(by_numpy).max() > 1e-3
    np.testing.assert_allclose(by_numpy, by_torch, rtol=1e-3, atol=1e-5)


def test_a_window_ends_with_the_text_and_masks_one_place() -> None:
    tokens = Tokens.of(np.array([2, 40, 40]), np.array([1, 0, 20]))
    assert ((tokens.kinds == TARGET).sum(axis=1) == 1).all()
    windows = zip(tokens.places, tokens.kinds, strict=True)
    seen = [places[kinds == EVIDENCE].tolist() for places, kinds in windows]
    around = [place for place in range(20 - REACH, 20 + REACH + 1) if place != 20]
    assert seen == [[0], list(range(1, REACH + 1)), around]


def test_what_is_seen_at_a_place_adds_nothing_to_its_own_context(by_hand: Denoiser) -> None:
    rows = some_rows(4, len(by_hand.prior))
    changed = rows.copy()
    changed[2] = rows[2, ::-1]
    vectors, lengths = by_hand.weights["vectors"], np.array([4])

    def of_all_words(some: np.ndarray) -> np.ndarray:
        seen = Seen.of(some, by_hand.prior, vectors)
        scores, by_word = context_scores(by_hand.weights, seen, lengths), np.empty(some.shape)
        np.put_along_axis(by_word, seen.words, scores, axis=1)
        return by_word

    before, after = of_all_words(rows), of_all_words(changed)
    np.testing.assert_allclose(before[2], after[2], atol=1e-6)
    assert np.abs(before[[0, 1, 3]] - after[[0, 1, 3]]).max() > 1e-5


def test_texts_side_by_side_are_read_as_alone(by_hand: Denoiser) -> None:
    rows = some_rows(25, len(by_hand.prior))
    vectors = by_hand.weights["vectors"]
    both = Seen.of(rows, by_hand.prior, vectors)
    together = context_scores(by_hand.weights, both, np.array([5, 20]))
    for part in (slice(0, 5), slice(5, 25)):
        seen = Seen.of(rows[part], by_hand.prior, vectors)
        alone = context_scores(by_hand.weights, seen, np.array([len(seen.words)]))
        np.testing.assert_allclose(together[part], alone, atol=1e-5)


def test_answers_are_probabilities_between_network_and_trigrams(by_hand: Denoiser) -> None:
    rows = some_rows(6, len(by_hand.prior))
    rows[1] = -np.inf  # A place that the mechanism cannot have made.
    trigrams = Prior("of the log", by_hand.prior)
    alone, beside = by_hand.marginals(rows), by_hand.beside(trigrams).marginals(rows)
    for answer in (alone, beside):
        np.testing.assert_allclose(answer.sum(axis=1), 1, atol=1e-5)
        assert (answer >= 0).all()
    np.testing.assert_allclose(beside, 0.4 * alone + 0.6 * trigrams.marginals(rows))
    untrusted = replace(by_hand, trust=0.0).beside(trigrams)
    np.testing.assert_array_equal(untrusted.marginals(rows), trigrams.marginals(rows))
    assert "left out" in untrusted.name
    assert by_hand.marginals(rows[:0]).shape == (0, rows.shape[1])


def test_a_network_that_misleads_is_not_trusted(by_hand: Denoiser) -> None:
    rows = some_rows(30, len(by_hand.prior))
    seen = Seen.of(rows, by_hand.prior, by_hand.weights["vectors"])
    network = seen.scores + context_scores(by_hand.weights, seen, np.array([30]))
    # What is true is what the network takes for least likely, or for likeliest.
    for pick, expected in ((network.argmin, 0.0), (network[:, :].argmax, None)):
        columns = pick(axis=1)
        truth = np.take_along_axis(seen.words, columns[:, None], axis=1)[:, 0]
        held_out = SelfMade(seen, truth, np.array([30]))
        right = np.zeros(seen.scores.shape)
        right[np.arange(30), columns] = 1
        wrong = np.roll(right, 1, axis=1)
        trust = best_trust(held_out, by_hand.weights, right if expected == 0 else wrong)
        assert trust == expected if expected is not None else trust > 0.5


# Files


def test_a_denoiser_is_the_same_after_it_was_saved(by_hand: Denoiser, tmp_path: Path) -> None:
    file = tmp_path / "folder" / "network.npz"
    by_hand.save(file)
    loaded = Denoiser.load(file)
    assert (loaded.made_for, loaded.releases, loaded.trust) == (by_hand.made_for, 7, 0.4)
    assert loaded.name == by_hand.name
    rows = some_rows(5, len(by_hand.prior))
    np.testing.assert_allclose(loaded.marginals(rows), by_hand.marginals(rows), atol=2e-3)
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_files_that_hold_no_denoiser_are_refused(by_hand: Denoiser, tmp_path: Path) -> None:
    file = tmp_path / "network.npz"
    with pytest.raises(UsageError, match="no such denoiser"):
        Denoiser.load(file)
    by_hand.save(file)
    whole = file.read_bytes()
    for content in (b"", b"no archive", whole[: len(whole) // 2]):
        file.write_bytes(content)
        with pytest.raises(SottovoceError, match="no denoiser"):
            Denoiser.load(file)
    settings = json.dumps({"layout": LAYOUT + 1})
    np.savez(file, settings=settings)
    with pytest.raises(UsageError, match="another version"):
        Denoiser.load(file)


def test_the_name_of_a_file_says_what_it_was_made_for(
    santext: WordMechanism, log: QueryLog, home: Path
) -> None:
    first = made_for(santext, log)
    assert made_for(santext, QueryLog(TEXTS)).file == first.file
    assert first.file.parent == home / "denoisers"
    other_mechanism = mechanism("santext:epsilon=2", space=santext.space)
    assert isinstance(other_mechanism, WordMechanism)
    different = [
        made_for(other_mechanism, log),
        made_for(santext, QueryLog(TEXTS[:-1])),
        made_for(santext, log, n=4),
        made_for(santext, log, release="once"),
        made_for(santext, log, made_with="another space"),
    ]
    assert len({first.file, *(one.file for one in different)}) == 6


# Attacks


def test_a_kept_denoiser_is_one_more_attack_without_torch(
    by_hand: Denoiser,
    santext: WordMechanism,
    log: QueryLog,
    releases: list[Released],
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # Importing it fails.
    assert denoiser_for(releases, santext, "independent", log) is None
    by_hand.save(by_hand.made_for.file)
    kept = denoiser_for(releases, santext, "independent", log)
    assert kept is not None
    report = attack(releases, mechanism=santext, log=log, denoiser=kept, counts=[1, 3])
    tried = {(n, recovery.attack): recovery for n, recovery in report.recoveries}
    assert (3, "denoiser") in tried
    assert "7 self-made releases" in tried[3, "denoiser"].knows
    assert "log of" in tried[3, "denoiser"].knows
    assert (1, "denoiser") not in tried
    assert report.not_tried == {"denoiser, 1 variants": "it was trained for 3"}
    without = attack(releases, mechanism=santext, log=log, counts=[1, 3])
    others = [(n, r) for n, r in report.recoveries if r.attack != "denoiser"]
    assert others == list(without.recoveries)
    with pytest.raises(SottovoceError, match=r"needs torch: pip install 'sottovoce\[gpu\]'"):
        train_denoiser(santext, "independent", 3, log)


def test_one_that_was_made_for_something_else_is_refused(
    by_hand: Denoiser, santext: WordMechanism, log: QueryLog, releases: list[Released]
) -> None:
    wrong = {
        "mechanism": attack_with(by_hand, mechanism("santext:epsilon=2", space=santext.space)),
        "n": attack_with(by_hand, santext, n=2),
        "log": attack_with(by_hand, santext, texts=TEXTS[:-1]),
        "release": attack_with(
            replace(by_hand, made_for=replace(by_hand.made_for, release="once")), santext
        ),
    }
    for what, refused in wrong.items():
        with pytest.raises(UsageError, match=f"another {what}"):
            refused(releases)
    # Queries that it may have learned from are not attacked with it.
    with pytest.raises(UsageError, match="another log"):
        attack_with(by_hand, santext)(releases[1:])


def attack_with(denoiser, mech, n=3, texts=TEXTS):
    """An attack on the first ``n`` variants of releases."""

    def run(releases):
        seen = [replace(released, variants=released.variants[:n]) for released in releases]
        return attack(
            seen,
            mechanism=mech,
            log=QueryLog(texts),
            add_originals=True,
            denoiser=denoiser,
            counts=[n],
        )

    return run


def test_attacks_that_cannot_use_it_say_so(
    by_hand: Denoiser, santext: WordMechanism, log: QueryLog, releases: list[Released]
) -> None:
    uniform = attack(releases, mechanism=santext, log=log, prior="uniform", denoiser=by_hand)
    unlogged = attack(releases, mechanism=santext, denoiser=by_hand)
    shuffled = attack(
        releases,
        mechanism=santext,
        log=log,
        pipeline=TextPipeline(protect=santext.protects).laid_out(shuffle=True),
        denoiser=by_hand,
    )
    for report, reason in ((uniform, "uniform"), (unlogged, "log"), (shuffled, "random order")):
        assert reason in report.not_tried["denoiser"]
        assert "denoiser" not in {recovery.attack for _, recovery in report.recoveries}


class Steps(Clock):
    """A clock by which every step takes as long, so that training can be repeated."""

    steps = 250

    def done(self) -> float:
        taken = self.__dict__.setdefault("taken", [])
        taken.append(1)
        if self.progress is not None:
            self.progress(len(taken), self.steps)
        return len(taken) / self.steps


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A narrow network, few releases, a number of steps instead of time."""
    for name, value in {"Clock": Steps, "WIDTH": 32, "RATE": 0.01, "MOST_PLACES": 300}.items():
        monkeypatch.setattr(denoiser_training, name, value)


@needs_torch
@pytest.mark.usefixtures("quick")
def test_a_briefly_trained_one_knows_what_is_said_together(
    santext: WordMechanism, log: QueryLog, releases: list[Released]
) -> None:
    ticks: list[tuple[int, int]] = []

    def train() -> Denoiser:
        return train_denoiser(
            santext,
            "independent",
            3,
            log,
            attacked=ATTACKED,
            rng=4,
            progress=lambda done, total: ticks.append((done, total)),
        )

    trained = train()
    assert trained.made_for == made_for(santext, log)
    assert ticks == [(at, Steps.steps) for at in range(1, Steps.steps + 1)]
    # The network alone, not the trigrams beside it.
    alone = replace(trained, trust=1.0)
    report = attack(releases, mechanism=santext, log=log, denoiser=alone, counts=[3])
    words = {recovery.attack: recovery.words.value for _, recovery in report.recoveries}
    assert words["denoiser"] > words["prior"] + 0.1


def test_a_clock_tells_the_time_that_is_over() -> None:
    ticks: list[tuple[int, int]] = []
    clock = Clock(60.0, lambda done, total: ticks.append((done, total)), time.monotonic() - 30)
    assert clock.done() == pytest.approx(0.5, abs=0.2)
    late = Clock(60.0, lambda done, total: ticks.append((done, total)), time.monotonic() - 90)
    assert late.done() >= 1.5
    assert ticks[1] == (60, 60)
    assert 30 <= ticks[0][0] < 60


@needs_torch
def test_what_cannot_be_trained_is_refused(santext: WordMechanism, log: QueryLog) -> None:
    with pytest.raises(UsageError, match="above 0"):
        train_denoiser(santext, "independent", 3, log, minutes=0)
    with pytest.raises(UsageError, match="queries or more"):
        train_denoiser(santext, "independent", 3, QueryLog(TEXTS[:20]))
    shuffled = TextPipeline().laid_out(shuffle=True)
    with pytest.raises(UsageError, match="order"):
        train_denoiser(santext, "independent", 3, log, pipeline=shuffled)


# The command


def run(*arguments: object):
    runner = CliRunner(env={"COLUMNS": "240", "NO_COLOR": "1"})
    return runner.invoke(app, [str(argument) for argument in arguments], catch_exceptions=True)


@needs_torch
@pytest.mark.usefixtures("quick")
def test_the_command_trains_once_and_uses_what_is_kept(
    paired: WordSpace,
    tmp_path: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with SpaceWriter(tmp_path / "paired", name="paired", dimension=8) as writer:
        writer.append(paired.words(np.arange(paired.size)), np.asarray(paired.vectors))
        writer.commit()
    santext = mechanism("santext:epsilon=1", space=load_space(str(tmp_path / "paired")))
    assert isinstance(santext, WordMechanism)
    (tmp_path / "log.txt").write_text("\n".join(TEXTS))
    rows = Obfuscator(santext, n=3, rng=8).obfuscate(ATTACKED)
    (tmp_path / "file.jsonl").write_text("\n".join(json.dumps(row.to_dict()) for row in rows))
    arguments = (
        "attack",
        tmp_path / "file.jsonl",
        "--space",
        tmp_path / "paired",
        "--log",
        tmp_path / "log.txt",
        "--encoder",
        "light",
        "-n",
        3,
        "--json",
    )

    def tried(*more: object) -> set[str]:
        result = run(*arguments, *more)
        assert result.exit_code == 0, result.exception
        return {recovery["attack"] for recovery in json.loads(result.stdout)["recoveries"]}

    assert "denoiser" not in tried()
    assert "denoiser" in tried("--train", 0.02)
    assert kept_denoiser(made_for(santext, QueryLog(TEXTS))) is not None
    monkeypatch.setattr(denoiser_training, "train_denoiser", None)  # Nothing is trained again.
    assert "denoiser" in tried("--train", 0.02)
    assert "denoiser" in tried()


def test_training_needs_a_log(tmp_path: Path, releases: list[Released]) -> None:
    file = tmp_path / "file.csv"
    file.write_text("id,text,obfuscatedText\n1,left1,right2\n")
    result = run("attack", file, "--train", 1)
    assert isinstance(result.exception, UsageError)
    assert "give a --log" in str(result.exception)
