"""N_w and S_w: exact where there is a law, counted with honest bounds where there is none."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from sottovoce import mechanism
from sottovoce.errors import UsageError
from sottovoce.mechanisms import WordMechanism
from sottovoce.privacy import word_samples
from sottovoce.privacy.plausible_deniability import (
    counted_support,
    deniability,
    exact_support,
    neighbour_distances,
    unproven,
)
from sottovoce.privacy.word_draws import Sampler
from sottovoce.privacy.word_samples import choose_words, nearest_others, sample_words
from sottovoce.spaces.space import OutputVocabulary, WordSpace
from sottovoce.testing import toy_space

chances = st.lists(st.floats(0, 1), min_size=1, max_size=30).filter(lambda row: sum(row) > 0.1)


def test_santext_on_the_toy_space_has_the_known_values(toy):
    found = deniability(mechanism("santext", space=toy, epsilon=2), np.array([0]), eta=0.1)
    assert found.exact
    assert not found.seeded
    assert found.unchanged == pytest.approx([0.44872], abs=1e-5)
    assert found.support.tolist() == [4]
    law = np.array([0.44872, 0.23840, 0.10909, 0.05710, 0.14670])
    expected = (1 - (1 - law) ** 3).sum()
    few = deniability(found.mechanism, np.array([0]), draws=3)
    assert few.distinct == pytest.approx([expected], abs=1e-4)
    away = np.sqrt(((toy.vectors - toy.vectors[0]) ** 2).sum(axis=1))
    assert few.moved == pytest.approx([law @ away], abs=1e-4)


@given(chances, st.floats(0.001, 0.5), st.floats(0.001, 0.49))
def test_support_lies_between_one_and_all_and_falls_with_eta(row, eta, more):
    law = np.array([row]) / sum(row)
    here, there = exact_support(law, eta)[0], exact_support(law, min(eta + more, 0.99))[0]
    assert 1 <= there <= here <= (law > 0).sum()
    largest = np.sort(law[0])[::-1]
    assert largest[:here].sum() >= 1 - eta - 1e-9
    assert largest[: here - 1].sum() < 1 - eta + 1e-9


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.floats(0.001, 0.9))
def test_counted_support_is_that_of_the_counted_shares(counts, eta):
    law = np.array([counts]) / sum(counts)
    assert counted_support(np.array(counts), eta) == exact_support(law, eta)[0]


def test_counting_agrees_with_the_law(small_space):
    santext = mechanism("santext", space=small_space, epsilon=1.5)
    ids = sample_words(small_space, 20)
    exact = deniability(santext, ids)

    class Lawless(type(santext)):
        def log_probabilities(self, ids):
            return None

    drawn = deniability(Lawless(small_space, 1.5), ids, draws=2000, rng=3)
    assert not drawn.exact
    assert drawn.seeded
    low, high = drawn.unchanged_interval
    assert ((low <= exact.unchanged) & (exact.unchanged <= high)).mean() >= 0.8
    assert (exact.unchanged <= drawn.unchanged_bound).all()
    assert (drawn.unchanged_bound >= high - 1e-12).all()
    assert (drawn.support_bound <= exact.support).all()
    assert (drawn.support <= drawn.distinct).all()
    assert drawn.moved == pytest.approx(exact.moved, rel=0.1)
    assert drawn.distinct == pytest.approx(deniability(santext, ids, draws=2000).distinct, rel=0.1)


def test_missing_mass_is_the_share_of_words_seen_once(toy):
    class Known(WordMechanism):
        name = "known"
        guarantee = None

        def draw(self, ids, draws):
            return np.array([0, 0, 0, 1, 1, 2, 3, 0, 0, 0])

    found = deniability(Known(toy, 1.0), np.array([0]), draws=10, eta=0.15, rng=1)
    assert found.unchanged.tolist() == [0.6]
    assert found.distinct.tolist() == [4]
    assert found.missing.tolist() == [0.2]
    assert found.support.tolist() == [3]


@given(st.integers(1, 40), st.floats(0.005, 0.2), st.floats(0.001, 0.2))
def test_different_words_prove_a_support_only_beyond_luck(support, eta, risk):
    """The bound is wrong if more draws than that fall outside the support."""
    draws = 100
    assert binom.sf(unproven(draws, eta, risk), draws, eta) <= risk + 1e-12
    assert unproven(draws, eta, risk) >= unproven(draws, eta, min(2 * risk, 0.5))


def test_the_support_bound_holds_as_often_as_it_says(toy):
    """s words share 1 - eta, a thousand others the rest: the hardest case."""
    rng, support, eta, draws = np.random.default_rng(1), 20, 0.05, 200
    law = np.concatenate([np.full(support, (1 - eta) / support), np.full(1000, eta / 1000)])
    wrong = 0
    for _ in range(400):
        distinct = len(np.unique(rng.choice(len(law), draws, p=law / law.sum())))
        wrong += distinct - unproven(draws, eta, 0.05) > support
    assert wrong / 400 <= 0.05 + 0.03


def test_the_bound_for_the_worst_word_covers_all_words_at_once(toy):
    cmp = mechanism("cmp", space=toy, epsilon=2)
    many = deniability(cmp, np.zeros(50, dtype=np.int64), draws=200, rng=1)
    alone = deniability(cmp, np.zeros(1, dtype=np.int64), draws=200, rng=1)
    assert many.unchanged[0] == alone.unchanged[0]
    assert many.unchanged_bound[0] > alone.unchanged_bound[0] > alone.unchanged[0]


def test_the_same_noise_serves_every_epsilon(small_space):
    """A draw that returns the word does so at every larger epsilon: its cell is convex."""
    ids = sample_words(small_space, 8)
    cmp = mechanism("cmp", space=small_space, epsilon=1)
    places = np.arange(8)
    returns = [
        Sampler("cmp", ids, 5).all(replace(cmp, epsilon=e), places, 300) == ids[:, None]
        for e in (1, 2, 4, 8)
    ]
    for less, more in pairwise(returns):
        assert (more | ~less).all()
    assert returns[-1].sum() > returns[0].sum()


def test_draws_of_a_word_do_not_depend_on_the_other_words(small_space):
    cmp = mechanism("cmp", space=small_space, epsilon=3)
    ids = sample_words(small_space, 12)
    sampler = Sampler("cmp", ids, 5)
    together = sampler.all(cmp, np.arange(12), 200)
    assert np.array_equal(together[3:5], sampler.all(cmp, np.array([3, 4]), 200))
    assert np.array_equal(together[:, :128], sampler.all(cmp, np.arange(12), 128))
    twice = Sampler("cmp", ids[[0, 0]], 5).all(cmp, np.arange(2), 200)
    assert not np.array_equal(*twice)


def test_mean_unchanged_on_the_default_space_is_the_known_one(default_space):
    ids = sample_words(default_space, 600)
    for name, known in (("cmp", 0.247), ("vickrey-cmp", 0.11)):
        found = deniability(mechanism(name, space=default_space, epsilon=10), ids, draws=3, rng=1)
        assert found.unchanged.mean() == pytest.approx(known, abs=0.03)


def test_wbb_never_returns_a_word_and_has_no_more_than_its_box(small_space):
    found = deniability(mechanism("wbb", space=small_space, n=15), sample_words(small_space, 30))
    assert found.unchanged.max() == 0
    assert 1 <= found.support.min() <= found.support.max() <= 15


# The sample


@settings(max_examples=20)
@given(st.one_of(st.integers(1, 60), st.integers(1900, 2000)), st.integers(0, 5))
def test_a_sample_has_as_many_different_words_as_asked(small_space, count, seed):
    ids = sample_words(small_space, count, seed)
    assert len(np.unique(ids)) == count
    assert (np.diff(ids) > 0).all()
    assert ids.min() >= 0
    assert ids.max() < small_space.size


def test_a_sample_takes_frequent_and_rare_words_in_crowds_and_alone(small_space):
    ids = sample_words(small_space, 200)
    assert np.array_equal(ids, sample_words(small_space, 200))
    assert not np.array_equal(ids, sample_words(small_space, 200, rng=1))
    quarters = np.bincount(ids * 4 // small_space.size)
    assert quarters.tolist() == pytest.approx([50] * 4, abs=8)
    everyone = nearest_others(small_space, np.arange(small_space.size), [1])[1][:, 0]
    cuts = np.quantile(everyone, [0.25, 0.5, 0.75])
    quarters = [
        np.bincount(np.digitize(everyone[sample_words(small_space, 200, seed)], cuts))
        for seed in range(10)
    ]
    assert np.abs(np.array(quarters) - 50).mean() < 3.2  # 3.85 without regard to neighbours.


def test_neighbours_are_those_of_a_plain_search(small_space):
    ids = np.array([0, 7, 1999])
    found, far = nearest_others(small_space, ids, [1, 3, 10])
    vectors = small_space.vectors.astype(np.float64)
    for row, word in enumerate(ids):
        plain = np.sqrt(((vectors - vectors[word]) ** 2).sum(axis=1))
        order = np.argsort(plain)[1:]
        assert found[row].tolist() == order[[0, 2, 9]].tolist()
        assert far[row] == pytest.approx(plain[order[[0, 2, 9]]])


@pytest.mark.parametrize("few", [0, 1000], ids=["by distances", "by a search"])
def test_neighbours_are_the_same_however_they_are_found(monkeypatch, small_space, few):
    monkeypatch.setattr(word_samples, "FEW_RANKS", few)
    vectors = small_space.vectors[:40].copy()
    vectors[[3, 9, 11]] = vectors[0]  # Words that share a place.
    space = WordSpace.from_arrays([f"w{number}" for number in range(40)], vectors)
    narrow = space.with_output(OutputVocabulary("some", np.arange(0, 40, 3)))
    for each in (space, narrow):
        ranks = range(1, len(each.output) + 1)
        found, far = nearest_others(each, np.arange(40), ranks)
        plain = np.linalg.norm(vectors[:, None].astype(np.float64) - vectors[found], axis=2)
        np.testing.assert_allclose(far, np.where(found == np.arange(40)[:, None], np.inf, plain))
        assert (np.diff(far[:, :-1]) >= -1e-9).all()
        assert all(sorted(row) == each.output.ids.tolist() for row in found)


def test_neighbours_are_among_the_words_that_may_be_released(toy):
    narrow = toy.with_output(OutputVocabulary("two", np.array([0, 3])))
    found, far = nearest_others(narrow, np.array([0, 1]), [1, 2])
    assert found[0, 0] == 3
    assert np.isinf(far[0, 1])
    assert found[1].tolist() == [0, 3]
    assert list(neighbour_distances(narrow, np.array([1]))) == [1]


def test_neighbour_distances_reach_as_far_as_the_space(toy, small_space):
    assert list(neighbour_distances(toy, np.array([0]))) == [1]
    assert list(neighbour_distances(small_space, np.array([0]))) == [1, 10, 100, 1000]


def test_words_may_come_from_a_file(toy, tmp_path):
    file = tmp_path / "words.txt"
    file.write_text("c\n\na\nzzz\na\n")
    ids, missing = choose_words(toy, file)
    assert (ids.tolist(), missing) == ([0, 2], 1)
    file.write_text("zzz\n")
    with pytest.raises(UsageError) as caught:
        choose_words(toy, file)
    assert "zzz" not in str(caught.value)
    file.write_text("\n")
    with pytest.raises(UsageError, match="empty"):
        choose_words(toy, file)


@pytest.mark.parametrize(
    "wrong", [{"eta": 0}, {"eta": 1}, {"eta": float("nan")}, {"draws": 0}, {"draws": -1}]
)
def test_nonsense_is_refused(toy, wrong):
    with pytest.raises(UsageError):
        deniability(mechanism("cmp", space=toy), np.array([0]), **wrong)


def test_no_words_and_unknown_words_are_refused(toy):
    for words in (np.array([], dtype=np.int64), np.array([-1]), np.array([5])):
        with pytest.raises(UsageError):
            deniability(mechanism("cmp", space=toy), words)


def test_mechanisms_that_rewrite_texts_have_no_words_to_deny(wordnet):
    with pytest.raises(UsageError, match="word by word"):
        deniability(mechanism("aea", wordnet=wordnet))


# The command


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    from sottovoce.spaces.store import SpaceWriter

    folder = tmp_path_factory.mktemp("home")
    toy = toy_space()
    with SpaceWriter(folder / "spaces" / "glove-840b-34k", name="toy", dimension=2) as writer:
        writer.append(toy.words(range(5)), toy.vectors)
        writer.commit()
    return folder


@pytest.fixture
def run(home, monkeypatch, capsys):
    """The command line in this process."""
    from sottovoce import cli

    def call(*arguments):
        monkeypatch.setenv("SOTTOVOCE_HOME", str(home))
        monkeypatch.setattr(sys, "argv", ["sottovoce", *arguments])
        try:
            cli.main()
            code = 0
        except SystemExit as done:
            code = done.code or 0
        return (code, *capsys.readouterr())

    return call


def test_the_command_compares_epsilons(run, tmp_path):
    picture = tmp_path / "picture.svg"
    code, out, _ = run("deniability", "santext", "-e", "1", "-e", "2", "--eta", "0.1", "--json",
                       "--figure", str(picture))  # fmt: skip
    assert code == 0
    said = json.loads(out)
    assert [each["epsilon"] for each in said["results"]] == [1, 2]
    first = said["results"][1]["words"][0]
    assert (first["word"], first["support"]) == ("a", 4)
    assert first["unchanged"] == pytest.approx(0.44872, abs=1e-5)
    assert said["results"][1]["how"] == "exact"
    assert said["results"][1]["draws"] is None
    assert "<svg" in picture.read_text()


def test_the_table_says_how_it_was_measured(run):
    code, out, _ = run("deniability", "cmp", "-e", "2", "--draws", "50", "--seed", "1")
    assert code == 0
    assert "sampled, 50 draws a word, seeded" in out
    assert "95 % confidence" in out
    assert "exact" in run("deniability", "tem")[1]


@pytest.mark.parametrize(
    "arguments",
    [
        ("aea",),
        ("fea",),
        ("none",),
        ("nosuch",),
        ("cmp", "-e", "0"),
        ("cmp", "-e", "-1"),
        ("cmp", "-e", "nan"),
        ("cmp", "--eta", "2"),
        ("cmp", "--words", "0"),
        ("cmp", "--words", "no-such-file"),
        ("cmp", "--draws", "0"),
        ("cmp", "--figure", "picture.pdf"),
        ("cmp", "--seed", "-1"),
        (),
    ],
)
def test_wrong_use_has_exit_code_2_and_leaves_nothing(run, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("deniability", *arguments)
    assert code == 2
    assert out == ""
    assert err
    assert "Traceback" not in err
    assert not list(tmp_path.iterdir())


def test_the_command_line_starts_without_scipy_and_matplotlib():
    code = (
        "import sys\n"
        "from sottovoce.cli.commands import PANELS, load_command\n"
        "for name in PANELS:\n    load_command(name)\n"
        "sys.exit(not {'scipy', 'matplotlib'}.isdisjoint(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
