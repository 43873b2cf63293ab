"""Words that a space does not list: encoded when they are met, and drawn for like every other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import PCG64, Generator
from scipy import stats

from sottovoce import Obfuscator, mechanism
from sottovoce.encoders import load_encoder
from sottovoce.encoders.word_spaces import word_vectors
from sottovoce.errors import SpaceError
from sottovoce.mechanisms import WordMechanism, kind, names
from sottovoce.mechanisms.cmp import CMP
from sottovoce.privacy import audit
from sottovoce.privacy.auditing.outside_words import with_outside_words
from sottovoce.randomness import Draws
from sottovoce.sanitizing import Sanitizer
from sottovoce.spaces.extended_space import with_words
from sottovoce.spaces.space import SpaceEncoder, WordSpace
from sottovoce.text import TextPipeline
from sottovoce.text.resolve import can_be_encoded

WORDS = """
melanoma cancer tumor skin doctor hospital treatment survival rate stage heart lung kidney pain
lawyer court divorce eviction tenant landlord judge prison asylum visa passport border refugee
bank loan debt mortgage bankruptcy bitcoin money tax salary pension church mosque prayer faith
vote party election senate protest union strike boss job office resign fired cat dog horse bird
river mountain sea cloud rain snow garden kitchen bread cheese wine music guitar piano film book
"""
LISTED = WORDS.split()
NOT_LISTED = ("carcinoma", "oncologist", "evicted", "cryptocurrency", "guitarist")
BY_WORD = [name for name in names() if issubclass(kind(name), WordMechanism)]
KEY = b"k" * 32


@pytest.fixture(scope="module")
def open_space() -> WordSpace:
    """A hundred words with the vectors that the light encoder gives them."""
    encoder = load_encoder("light")
    made_by = SpaceEncoder(encoder.name, encoder.fingerprint, encoder.dimension)
    return WordSpace.from_arrays(LISTED, encoder.encode(LISTED), name="open", encoder=made_by)


@pytest.fixture(scope="module")
def cmp(open_space):
    return mechanism("cmp", space=open_space, epsilon=120.0)


def only(results):
    (result,) = results
    return result


def variants(chosen, texts, **options):
    return [result.variants for result in Obfuscator(chosen, **options).obfuscate(texts)]


def test_a_word_that_is_not_listed_is_encoded_and_released_as_a_listed_one(cmp):
    result = only(Obfuscator(cmp, n=8, release="once", rng=1).obfuscate(["Carcinoma treatment"]))
    assert result.counts.encoded == result.counts.known == 1
    assert result.unknown == ()
    assert not any("unknown" in caveat for caveat in result.guarantee.caveats)
    first = [variant.split()[0] for variant in result.variants]
    assert set(first) <= set(LISTED)
    # Its neighbours, not any word: at this epsilon they are about illness.
    assert len({"melanoma", "cancer", "tumor"} & set(first)) >= 2


@pytest.mark.parametrize("name", BY_WORD)
def test_every_mechanism_draws_for_a_vector_as_for_a_word_that_has_it(name, open_space):
    chosen = mechanism(name, space=open_space)
    vectors, readable = word_vectors(open_space, NOT_LISTED)
    assert readable.all()
    extended = replace(chosen, space=with_words(open_space, NOT_LISTED, vectors))
    rows = 400

    def draws():
        return Draws([(Generator(PCG64(7)), rows)])

    ids = np.arange(rows) % len(NOT_LISTED)
    drawn = chosen.draw_at(vectors[ids], draws())
    assert np.array_equal(drawn, extended.draw(open_space.size + ids, draws()))
    assert drawn.max() < open_space.size


@settings(deadline=None, max_examples=25)
@given(
    st.lists(
        st.lists(st.sampled_from([*LISTED[:9], *NOT_LISTED, "a@b.org"]), min_size=1, max_size=6),
        min_size=1,
        max_size=5,
    ),
    st.integers(1, 4),
    st.sampled_from(["once", "independent"]),
)
def test_neither_batches_nor_neighbours_change_a_seeded_result(cmp, texts, batch, release):
    texts = [" ".join(words) for words in texts]
    options = {"n": 3, "release": release, "rng": 5}
    assert variants(cmp, texts, **options) == variants(cmp, texts, batch_size=batch, **options)


@pytest.mark.parametrize(
    "token",
    [
        *("jane.doe@example.org", "https://example.org/melanoma", "example.org", "555-012-3456"),
        *("123456", "DE89370400440532013000", "🙂", "€€", "#melanoma@home", "x" * 65),
    ],
)
def test_what_cannot_be_a_word_gets_a_uniform_stand_in(cmp, token):
    result = only(Obfuscator(cmp, rng=1).obfuscate([token]))
    assert result.counts.encoded == 0
    assert result.counts.uniform >= 1


@pytest.mark.parametrize("token", ["covid-19", "2019", "b12", "naïve", "o'brien", "Übergröße"])
def test_what_can_be_a_word_is_encoded(cmp, token):
    assert can_be_encoded(token)
    assert only(Obfuscator(cmp, rng=1).obfuscate([token])).counts.encoded == 1


def test_a_misspelled_word_lands_near_the_word(open_space):
    chosen = mechanism("cmp", space=open_space, epsilon=200.0)
    for wrong, right in (("melanomma", "melanoma"), ("bankrupcy", "bankruptcy")):
        rows = variants(chosen, [wrong], n=5, release="once", rng=3)
        assert right in rows[0], wrong


def test_words_are_remembered_whatever_their_case(cmp):
    obfuscator = Obfuscator(cmp, n=4, release="once", memory_key=KEY)
    texts = ["carcinoma doctor", "Carcinoma DOCTOR", "carcinoma"]
    first, again, alone = obfuscator.obfuscate(texts)
    assert first.variants == again.variants
    assert first.word_hashes == again.word_hashes
    assert set(alone.word_hashes) < set(first.word_hashes)
    assert set(alone.variants) == {variant.split()[0] for variant in first.variants}


def test_data_sets_and_linkable_substitutes(cmp):
    texts = ["carcinoma treatment", "a carcinoma"]
    for linkable in (None, KEY):
        sanitizer = Sanitizer(Obfuscator(cmp), ("text",), linkable=linkable)
        (released,), counts = sanitizer.rows([texts], 0)
        assert counts.encoded == 3  # "a" is not listed either.
        assert "carcinoma" not in " ".join(released)
    assert released[0].split()[0] == released[1].split()[1]


def test_an_encoder_of_another_fingerprint_is_refused_and_nothing_released(open_space):
    forged = SpaceEncoder("light", "0" * 64, open_space.dimension)
    space = WordSpace.from_arrays(LISTED, np.array(open_space.vectors), encoder=forged)
    chosen = mechanism("cmp", space=space)
    with pytest.raises(SpaceError, match="not the one that made") as error:
        list(Obfuscator(chosen).obfuscate(["carcinoma"]))
    assert "carcinoma" not in str(error.value)
    assert list(Obfuscator(chosen).obfuscate(["melanoma"]))  # Listed words need no encoder.


def test_other_policies_are_as_they_were(cmp):
    for policy, counts in (("uniform", (0, 1, 0)), ("drop", (0, 0, 1))):
        pipeline = TextPipeline(unknown=policy)
        result = only(Obfuscator(cmp, pipeline=pipeline).obfuscate(["carcinoma skin"]))
        fates = result.counts
        assert (fates.encoded, fates.uniform, fates.dropped) == counts


def test_the_density_audit_holds_for_words_outside_the_list(open_space):
    chosen = mechanism("cmp", space=open_space, epsilon=10.0)
    extended, outside = with_outside_words(chosen, 4, Generator(PCG64(1)))
    assert len(outside) == 4
    assert not set(extended.space.words(outside)) & set(LISTED)
    for name in ("cmp", "santext"):
        judged = audit(mechanism(name, space=open_space), rng=1, quick=True)
        assert judged.verdict in ("CONSISTENT", "NOT REFUTED"), name


class NoNoiseOutside(CMP):
    """It adds noise to listed words alone: what an audit must find."""

    name = "no-noise-outside"

    def perturb(self, ids, draws):
        points = super().perturb(ids, draws)
        outside = ids >= len(self.space.output)
        points[outside] = self.space.vectors[ids[outside]]
        return points


def test_the_audit_finds_a_mechanism_that_spares_words_outside_the_list(open_space):
    judged = audit(NoNoiseOutside(open_space, 10.0), rng=1, quick=True)
    assert judged.verdict == "REFUTED"


def test_the_noise_around_an_encoded_word_has_the_stated_law(cmp, open_space):
    """|z - v| is Gamma with the dimension as shape and epsilon as rate."""
    vectors, _ = word_vectors(open_space, ["carcinoma"])
    rows = 3000
    points = cmp.move(np.repeat(vectors, rows, axis=0), Draws([(Generator(PCG64(3)), rows)]))
    radii = np.linalg.norm(points.astype(np.float64) - vectors, axis=1)
    law = stats.gamma(open_space.dimension, scale=1 / cmp.epsilon)
    assert stats.kstest(radii, law.cdf).pvalue > 1e-3
