"""Chance is secure by default, reproducible on request, and never global."""

from __future__ import annotations

import pickle
import secrets

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sottovoce import randomness
from sottovoce.errors import UsageError
from sottovoce.randomness import UNIT, Draws, Streams, is_seeded, secure_generator


def test_the_secure_generator_is_aes_in_counter_mode_under_an_operating_system_key(monkeypatch):
    """Checked bit for bit against an independent implementation of AES."""
    key = secrets.token_bytes(16)
    asked = []
    monkeypatch.setattr(secrets, "token_bytes", lambda count: asked.append(count) or key)
    raw = secure_generator().bit_generator.random_raw(64)
    cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    stream = b"".join(cipher.update(block.to_bytes(16, "little")) for block in range(32))
    assert np.array_equal(raw, np.frombuffer(stream, dtype="<u8"))
    assert asked == [16]


def test_secure_generators_never_repeat_each_other():
    first, second = (secure_generator().random(50) for _ in range(2))
    assert not np.array_equal(first, second)


def test_secure_normals_are_normal():
    sample = Draws([(secure_generator(), 5000)]).normal(4).ravel()
    assert stats.kstest(sample, "norm").pvalue > 1e-6


def test_only_none_is_secure():
    assert not is_seeded(None)
    assert is_seeded(0)
    assert is_seeded(np.random.default_rng(1))


def test_a_number_and_its_seed_sequence_are_the_same_seed():
    one, other = Streams(5, "m"), Streams(np.random.SeedSequence(5), "m")
    assert one.generator(0, 0, 0, 0).random() == other.generator(0, 0, 0, 0).random()


@pytest.mark.parametrize("seed", [-1, True, 1.5, "1"])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(UsageError, match="whole number"):
        Streams(seed, "cmp")


def draw_all(units):
    draws = Draws([(np.random.default_rng(seed), count) for seed, count in units])
    return [
        draws.normal(3),
        draws.gamma(2.5),
        draws.uniform(),
        draws.below(1000),
        draws.orders(4),
        draws.times(np.arange(draws.size * 2.0).reshape(-1, 2) % 7, np.array([[0.1], [0.7]])),
    ]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=1, max_size=6))
def test_a_token_draws_the_same_whatever_shares_its_batch(units):
    together = draw_all(units)
    start = 0
    for seed, count in units:
        alone = draw_all([(seed, count)])
        for shared, own in zip(together[:5], alone[:5], strict=True):
            assert np.array_equal(shared[start : start + count], own)
        start += count


@pytest.mark.parametrize("count", [0, 1, 2, 3, 9])
def test_parts_of_draws_give_every_row_the_numbers_it_would_have_got(count):
    def units():
        return [(np.random.default_rng(seed), rows) for seed, rows in enumerate([256, 256, 7, 90])]

    whole = Draws(units())
    expected = np.column_stack([whole.normal(3), whole.gamma(2.0), whole.uniform()])
    parts = Draws(units()).parts(count)
    assert 1 <= len(parts) <= max(count, 1)
    assert [rows.start for rows, _ in parts] == [0, *(rows.stop for rows, _ in parts[:-1])]
    assert parts[-1][0].stop == len(expected)
    for rows, part in parts:
        drawn = np.column_stack([part.normal(3), part.gamma(2.0), part.uniform()])
        assert np.array_equal(drawn, expected[rows])


def test_a_generator_is_never_in_two_parts_unless_it_is_secure():
    seeded, secure = np.random.default_rng(1), secure_generator()
    assert [rows for rows, _ in Draws([(seeded, 5), (seeded, 5)]).parts(2)] == [slice(0, 10)]
    parts = Draws([(secure, 10)]).parts(2)
    assert [rows for rows, _ in parts] == [slice(0, 5), slice(5, 10)]
    assert all(part.secure for _, part in parts)
    numbers = [part.uniform() for _, part in parts]
    assert not np.array_equal(*numbers)
    assert Draws([(seeded, 0)]).parts(2)[0][0] == slice(0, 0)


def test_orders_are_permutations():
    orders = Draws([(np.random.default_rng(1), 500)]).orders(6)
    assert (np.sort(orders, axis=1) == np.arange(6)).all()
    assert stats.chisquare(np.bincount(orders[:, 0])).pvalue > 1e-4


def test_streams_differ_by_text_variant_purpose_unit_and_mechanism():
    places = [(0, 0, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)]
    firsts = [Streams(1, label).generator(*place).random() for place in places for label in "ab"]
    firsts.append(Streams(2, "a").generator(0, 0, 0, 0).random())
    assert len(set(firsts)) == len(firsts)


def test_a_generator_seeds_streams_reproducibly():
    one, other = (Streams(np.random.default_rng(4), "m").draws(3, 1, 0, 9) for _ in range(2))
    assert np.array_equal(one.uniform(), other.uniform())


def test_draws_of_a_text_come_in_units():
    draws = Streams(1, "m").draws(0, 0, 0, 2 * UNIT + 5)
    assert [count for _, count in draws.units] == [UNIT, UNIT, 5]


def test_streams_travel_without_their_secure_state():
    seeded = pickle.loads(pickle.dumps(Streams(7, "m")))
    assert seeded.generator(1, 2, 0, 0).random() == Streams(7, "m").generator(1, 2, 0, 0).random()
    secure = Streams(None, "m")
    copy = pickle.loads(pickle.dumps(secure))
    assert not copy.reproducible
    assert copy.generator(0, 0, 0, 0).random() != secure.generator(0, 0, 0, 0).random()


def test_nothing_uses_the_global_generator():
    """A search of the source: the contract test checks the behaviour."""
    import ast
    from pathlib import Path

    for path in Path(randomness.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called.startswith(("np.random.", "numpy.random.", "random.")):
                    assert path.parent.name == "testing", f"{path.name} calls {called}"
                    assert called == "np.random.get_state"
