"""Likeness: the learned ratio of densities, against a ratio that is known, and what it may see."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from decoy_sources import released
from scipy import stats

from sottovoce import mechanism
from sottovoce.errors import UsageError
from sottovoce.likeness import LOOKS, Looks, _standing_for, fit_likeness
from sottovoce.pools import Pool, load_pool
from sottovoce.privacy import Knowledge, attack_company
from sottovoce.text.german import FUNCTION_WORDS as GERMAN


@pytest.fixture(scope="module")
def demo():
    return load_pool("demo", "light")


def test_texts_of_a_kind_are_told_from_the_pool(demo):
    """Long queries: learned from one half of them, found in the other."""
    long = [string for string in demo.strings if len(string.split()) >= 5]
    likeness = fit_likeness(long[::2], demo)
    ratios = likeness.log_ratio(demo.strings, demo.vectors)
    held_out = np.isin(demo.strings, long[1::2])
    others = ~np.isin(demo.strings, long)
    assert stats.mannwhitneyu(ratios[held_out], ratios[others]).pvalue < 1e-6
    assert (ratios[held_out][:, None] > ratios[others]).mean() > 0.95


def test_the_ratio_is_one_of_densities(demo):
    """The mean of the ratio over the pool is 1, and where it is known, it comes out."""
    short = [string for string in demo.strings if len(string.split()) <= 2]
    others = [string for string in demo.strings if len(string.split()) > 2]
    rng = np.random.default_rng(1)
    # Short strings are four times as likely in the reference, and nothing else tells.
    reference = [*rng.choice(short, 2000), *rng.choice(others, 500 * len(others) // len(short))]
    ratios = fit_likeness(reference, demo).log_ratio(demo.strings, demo.vectors)
    is_short = np.isin(demo.strings, short)
    found = np.exp(ratios[is_short]).mean() / np.exp(ratios[~is_short]).mean()
    assert found == pytest.approx(4, rel=0.15)
    assert np.exp(ratios).mean() == pytest.approx(1, abs=0.1)


def test_a_sample_of_the_pool_is_like_the_pool(demo):
    """Nothing is found where there is nothing, on strings that were not learned from."""
    order = np.random.default_rng(2).permutation(len(demo))
    likeness = fit_likeness([demo.strings[at] for at in order[:300]], demo)
    rest = order[300:]
    ratios = likeness.log_ratio([demo.strings[at] for at in rest], demo.vectors[rest])
    assert ratios.std() < 0.25


def test_being_in_the_pool_does_not_show(demo):
    """A string does not count itself: a word of its own is as rare as one that nobody has."""
    pool = Pool(["zyx remedy", "cough remedy", "cough syrup"], "light")
    looks = Looks(pool)
    member, stranger = looks.of(["zyx remedy", "wvu remedy"])
    assert member[-1] == stranger[-1] == 0
    assert looks.of(["cough remedy"])[0, -1] == -np.log(2)


def test_words_that_only_the_other_spelling_has_are_rare_and_no_less():
    """The same text, by a word that the pool does not have in these letters."""
    pool = Pool(["finance aid", "cough syrup"], "light")
    assert pool.place("\ufb01nance aid") == 0
    (row,) = Looks(pool).of(["\ufb01nance aid"])
    assert row[-1] == 0


class Scattered:
    """An encoder whose vectors tell nothing: each text has a random direction of its own."""

    name, dimension, fingerprint, exact_batches = "scattered", 8, "scattered", True

    def encode(self, texts):
        seeds = [hashlib.sha256(text.encode()).digest()[:8] for text in texts]
        rows = [
            np.random.default_rng(int.from_bytes(seed)).normal(size=self.dimension)
            for seed in seeds
        ]
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / lengths, dtype=np.float32)


def two_kinds(first, second, size=400):
    """Strings that differ in their first word alone, half of them in that of each kind."""
    rng = np.random.default_rng(1)
    rest = ["".join(rng.choice([*"bcdfgklmnprst"], 5)) for _ in range(300)]

    def strings(begins):
        return [f"{begins[at % len(begins)]} {' '.join(rng.choice(rest, 2))}" for at in range(size)]

    return strings(first), strings(second)


FEW_GERMAN = sorted(word for word in GERMAN if word.isascii() and len(word) == 3)[:20]
_FEW_ENGLISH = "new old big red raw dry wet hot low odd bad fit fat icy shy sad sly tan wry zip"
_FEW_RUSSIAN = "дом сад лес год час кот пёс нос рот лёд мёд суп сыр чай дым шум мир бег сон дар"


@pytest.mark.parametrize(
    "kind", [FEW_GERMAN, _FEW_RUSSIAN.split()], ids=["German", "another script"]
)
def test_the_language_of_a_kind_shows_and_popular_decoys_come_in_it(kind):
    """Whoever knows that a kind asks in one language then gains nothing of it."""
    same, other = two_kinds(kind, _FEW_ENGLISH.split())
    plain = Pool([*same, *other], Scattered())
    asked, like, known = same[:100], same[100:250], same[250:]
    ratios = fit_likeness(like, plain).log_ratio(plain.strings, plain.vectors)
    popular = Pool(plain.strings, plain.encoder, weights=np.exp(ratios))
    covers = {
        "uniform": mechanism("cover:k=10", pool=plain),
        "popular": mechanism("cover:k=10,decoys=popular", pool=popular),
    }
    in_language, named = {}, {}
    for decoys, cover in covers.items():
        sets = released(cover, asked)
        others = [
            string
            for row, text in zip(sets, asked, strict=True)
            for string in row
            if string != text
        ]
        in_language[decoys] = np.mean([string.split()[0] in kind for string in others])
        report = attack_company(cover, sets, asked, knowledge=Knowledge(known))
        named[decoys] = report.naming("classifier").mean
    assert in_language["uniform"] == pytest.approx(0.5, abs=0.1)
    assert in_language["popular"] > 0.75
    assert named["uniform"] > 0.15
    assert named["popular"] <= min(named["uniform"] - 0.03, 0.15)


def test_a_text_stands_for_itself_or_for_the_nearest_string(demo, monkeypatch):
    """What the pool has is not encoded again."""
    foreign = ["skin cancer of dogs", "divorce without a lawyer"]
    nearest = demo.best(demo.encoder.encode(foreign), 1)[:, 0].tolist()
    encoded, encode = [], demo.encoder.encode
    monkeypatch.setattr(
        demo.encoder, "encode", lambda texts: encoded.extend(texts) or encode(texts)
    )
    texts = [foreign[0], demo.strings[7].upper(), foreign[1], demo.strings[3]]
    assert _standing_for(texts, demo).tolist() == [nearest[0], 7, nearest[1], 3]
    assert encoded == foreign
    assert _standing_for(demo.strings[:3], demo).tolist() == [0, 1, 2]
    assert encoded == foreign


def test_rows_that_are_kept_are_those_that_are_made(demo, monkeypatch):
    monkeypatch.setattr("sottovoce.likeness.ROWS_KEPT", 2)
    looks, texts = Looks(demo), ["skin cancer", "Divorce?", "lawyers in 1984", "skin cancer"]
    rows = looks.of(texts)
    assert looks.of(texts[::-1]).tolist() == rows[::-1].tolist()
    assert [Looks(demo).of([text])[0].tolist() for text in texts] == rows.tolist()


def test_the_same_ratio_each_time(demo):
    reference = demo.strings[:60]
    first, second = (
        fit_likeness(reference, demo).log_ratio(demo.strings[:500], demo.vectors[:500])
        for _ in range(2)
    )
    assert first.tolist() == second.tolist()


def test_too_few_texts_are_refused(demo):
    with pytest.raises(UsageError, match="at least 6 texts"):
        fit_likeness(["skin cancer"] * 5, demo)
    with pytest.raises(UsageError, match="at least 6 texts"):
        fit_likeness("skin cancer treatment", demo)
    likeness = fit_likeness(demo.strings[:6], demo)
    with pytest.raises(UsageError, match="give one for each"):
        likeness.log_ratio(demo.strings[:3], demo.vectors[:2])


def test_what_shows_comes_first_in_a_row(demo):
    """The penalty goes by it."""
    assert Looks(demo).of(["skin cancer", ""]).shape == (2, LOOKS)


def test_an_odd_string_is_not_all_that_is_popular(demo):
    """Scores grow with what is odd without end; the ratio ends where the reference does."""
    long = [string for string in demo.strings if len(string.split()) >= 6]
    odd = "how " * 300 + "?????"
    likeness = fit_likeness(long[::2], Pool([*demo.strings, odd], "light"))
    texts = [*demo.strings, odd]
    ratios = likeness.log_ratio(texts, demo.encoder.encode(texts))
    shares = np.exp(ratios) / np.exp(ratios).sum()
    assert shares[-1] < 20 / len(texts)
    # What is held out has as much of the popularity as it has of the kind.
    top = ratios >= np.median(ratios[np.isin(texts, long[1::2])])
    assert shares[top].sum() == pytest.approx(
        np.isin(texts, long[1::2])[top].sum() / len(long[1::2]), abs=0.1
    )
