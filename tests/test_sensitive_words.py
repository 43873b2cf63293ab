"""Words that people would rather not say aloud: a space must know them, and their neighbours.

``sensitive_words.json`` has ordinary words and phrases of eight subjects, written for these tests.
The subjects follow the GDPR's special categories (article 9: health, religion, political opinions,
sex life and orientation, trade unions) and its criminal records (article 10). The words follow
public subject headings: chapters of the ICD and names of common medicines for health, topics of
legal and of debt advice for law and money, the world's religions, political currents and offences,
glossaries of labor organizations for work, and of refugee and migration agencies for migration.

``subject_rule.py`` states when a neighbour counts as being about the subject.
"""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from subject_rule import SubjectRule

from sottovoce.encoders.word_spaces import word_vectors
from sottovoce.errors import SottovoceError
from sottovoce.resources.local import load_space
from sottovoce.spaces.space import WordSpace

SPACE = "default"
"""The word space whose neighbours are judged."""
JUDGE = "large"
"""The word space that judges: GloVe, as most of the default is, so that it is a kind judge."""
NEIGHBOURS = 20
LEAST_ON_SUBJECT = 0.90
"""Of all neighbours; measured: 0.938 (strong-words: 0.748)."""
LEAST_MOSTLY_ON_SUBJECT = 0.95
"""Of the words, those with more than half of their neighbours on it; measured: 0.970."""
SUBJECTS = json.loads((Path(__file__).parent / "sensitive_words.json").read_text())
WORDS = list(chain.from_iterable(SUBJECTS.values()))


def space_or_skip(name):
    try:
        return load_space(name)
    except SottovoceError:
        pytest.skip(f"the word space '{name}' is not here: sottovoce spaces add {name}")


def vectors_in(space, words):
    """The vectors of words in a space, those it lacks by its encoder; and which words have one."""
    ids = space.ids(words)
    vectors, known = np.array(space.vectors[ids]), ids >= 0
    if space.encoder is not None and not known.all():
        lacking = np.flatnonzero(~known)
        vectors[lacking], known[lacking] = word_vectors(space, [words[row] for row in lacking])
    return vectors, known


def nearest_words(space, words):
    """For each word the nearest words that may be released, itself left out."""
    vectors, known = vectors_in(space, words)
    assert known.all()
    positions, _ = space.nearest_output.top(vectors, NEIGHBOURS + 1)
    lists = [space.words(space.output.ids[row]) for row in positions]
    return [
        [neighbour for neighbour in neighbours if neighbour != word][:NEIGHBOURS]
        for word, neighbours in zip(words, lists, strict=True)
    ]


@pytest.fixture(scope="module")
def space():
    return space_or_skip(SPACE)


@pytest.fixture(scope="module")
def judge():
    return space_or_skip(JUDGE)


@pytest.fixture(scope="module")
def rule(judge):
    return SubjectRule(judge, SUBJECTS)


# The list


def test_eight_subjects_of_40_to_60_words():
    assert set(SUBJECTS) == {
        *("health", "law", "money", "religion", "politics", "sexuality", "work", "migration")
    }
    assert all(40 <= len(listed) <= 60 for listed in SUBJECTS.values())
    assert len(WORDS) >= 400


def test_each_word_is_listed_once_as_one_or_two_words_of_letters():
    assert len(set(WORDS)) == len(WORDS)
    for word in WORDS:
        parts = word.split(" ")
        assert len(parts) <= 2
        assert all(part.isascii() and part.isalpha() and part.islower() for part in parts)
    assert sum(" " in word for word in WORDS) >= 40


# The rule, on a judge small enough to know the answers


@pytest.fixture(scope="module")
def small_rule():
    """A judge of 2,000 made-up words in all directions, and two subjects in two directions."""
    draws = np.random.default_rng(7)
    dimension = 20
    noise = draws.standard_normal((2000, dimension))
    made_up = ["q" + "".join(draws.choice(list("bcdfgh"), 9)) for _ in range(2000)]
    medical, money = np.eye(dimension)[:2] * 12
    listed = {"melanoma": medical, "eczema": medical, "mortgage": money, "debt": money}
    others = {"tumor": medical, "dermatology": medical, "loan": money, "bank": money}
    planted = {**listed, **others}
    vectors = np.stack(list(planted.values())) + draws.standard_normal((8, dimension))
    words = [*dict.fromkeys(made_up), *planted]
    judge = WordSpace.from_arrays(words, np.concatenate([noise[: len(words) - 8], vectors]))
    return SubjectRule(
        judge, {"health": ["melanoma", "eczema", "covid"], "money": ["mortgage", "debt"]}
    )


def test_neighbours_of_the_subject_are_accepted_and_others_not(small_rule):
    neighbours = ["tumor", "dermatology", "loan", "bank"]
    assert small_rule.accepts("melanoma", neighbours).tolist() == [True, True, False, False]
    assert small_rule.accepts("debt", neighbours).tolist() == [False, False, True, True]


def test_forms_of_the_word_are_accepted_though_the_judge_lacks_them(small_rule):
    neighbours = ["melanomas", "micromelanoma", "melancholy", "mela"]
    assert small_rule.accepts("melanoma", neighbours).tolist() == [True, True, False, False]
    # Four letters inside another word say nothing.
    assert small_rule.accepts("debt", ["debts", "doubtdebtor"]).tolist() == [True, False]


def test_a_word_the_judge_lacks_is_judged_by_its_subject(small_rule):
    assert small_rule.accepts("covid", ["tumor", "bank", "ovid"]).tolist() == [True, False, False]


# The rule, on the real judge


@pytest.mark.slow
def test_few_random_words_are_accepted(rule, judge):
    draws = np.random.default_rng(0)
    words = judge.words(draws.choice(100_000, (len(WORDS), NEIGHBOURS)).ravel())
    drawn = np.array(words).reshape(len(WORDS), NEIGHBOURS)
    accepted = [rule.accepts(word, row.tolist()) for word, row in zip(WORDS, drawn, strict=True)]
    assert np.mean(accepted) < 0.1


@pytest.mark.slow
def test_listed_words_that_the_rule_has_not_seen_are_accepted(judge):
    """The rule learns a subject from half of its words and meets the other half."""
    seen = {name: listed[::2] for name, listed in SUBJECTS.items()}
    unseen = [(word, name) for name, listed in SUBJECTS.items() for word in listed[1::2]]
    unseen_words = [word for word, _ in unseen]
    half_rule = SubjectRule(judge, seen)
    same, different = [], []
    for name, listed in seen.items():
        of_the_subject = np.array([subject == name for _, subject in unseen])
        accepted = np.array([half_rule.accepts(word, unseen_words) for word in listed])
        same.append(accepted[:, of_the_subject].mean())
        different.append(accepted[:, ~of_the_subject].mean())
    assert np.mean(same) > 0.9
    # The subjects overlap: smugglers are law and migration, pensions are money and work.
    assert np.mean(different) < 0.4


# The space


@pytest.mark.slow
def test_no_sensitive_word_is_unknown(space):
    vectors, known = vectors_in(space, WORDS)
    assert [word for word, is_known in zip(WORDS, known, strict=True) if not is_known] == []
    # An encoder that cannot read words gives them all the same vector.
    assert len(np.unique(vectors.round(5), axis=0)) == len(WORDS)


@pytest.mark.slow
def test_neighbours_are_about_the_same_subject(space, rule):
    neighbours = nearest_words(space, WORDS)
    accepted = np.array(
        [rule.accepts(word, listed) for word, listed in zip(WORDS, neighbours, strict=True)]
    )
    assert accepted.mean() >= LEAST_ON_SUBJECT
    assert (accepted.mean(axis=1) > 0.5).mean() >= LEAST_MOSTLY_ON_SUBJECT
