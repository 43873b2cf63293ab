"""Valid files made invalid: bits flipped, pieces cut, doubled, moved, and nasty ones put in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

NASTY = (
    *(b"", b"\0", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\r", b"\n", b"\r\n", b"\t", b" " * 40),
    *(b'"', b'""', b"'", b"\\", b",", b";", b"{", b"}", b"[", b"]", b"[" * 2000, b'{"a":' * 500),
    *(b"nan", b"NaN", b"-inf", b"Infinity", b"1e999", b"-1", b"0", b"-0.0", b"1e-320", b"9" * 400),
    *(
        b"18446744073709551616",
        b"2147483648",
        b"-9223372036854775809",
        b"0x10",
        b"1_0",
        b"1" * 5000,
    ),
    *(b"null", b"true", b"false", b"None", b"%s", b"%n", b"{0}", b"${HOME}", b"../../etc/passwd"),
    *(
        b"\xed\xa0\x80",
        b"\xc0\x80",
        b"\xf4\x90\x80\x80",
        b"\xe2\x80\xa8",
        b"\xe2\x80\x8b",
        b"\xcc\x81" * 60,
    ),
    *("ﬁİǅ\u0345".encode(), "\u202eabc".encode(), "👩‍👩‍👧".encode(), "Å".encode(), "Å".encode()),
    *(b"\x1f\x8b\x08\0", b"PK\x03\x04", b"PAR1", b"SQLite format 3\0", b"\x93NUMPY\x01\0"),
    *(
        b"\xff" * 8,
        b"\x7f\xff\xff\xff",
        b"\0" * 64,
        b"=cmd|' /C calc'!A0",
        b"__class__",
        b"#",
        b"=",
    ),
)
Operation = Callable[[Random, bytearray, Sequence[bytes]], None]


def _flip(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def _set(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        data[random.randrange(len(data))] = random.choice(
            (0, 255, 32, 10, 34, random.randrange(256))
        )


def _cut(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    del data[random.randrange(len(data) + 1) :]


def _remove(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    start, end = _piece(random, data)
    del data[start:end]


def _double(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    start, end = _piece(random, data)
    data[end:end] = data[start:end] * random.choice((1, 1, 2, 20))


def _insert(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = random.randrange(len(data) + 1)
    data[at:at] = random.choice(NASTY)


def _replace(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    start, end = _piece(random, data)
    data[start:end] = random.choice(NASTY)


def _splice(random: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    other = random.choice(seeds)
    start, end = _piece(random, other)
    at, until = _piece(random, data)
    data[at:until] = other[start:end]


def _number(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    """Another number where one stands."""
    digits = [place for place, value in enumerate(data) if 48 <= value <= 57]
    if digits:
        at = random.choice(digits)
        data[at : at + 1] = random.choice(
            (b"-1", b"0", b"99999999999", b"1e308", b".", b"", b"nan")
        )


OPERATIONS: tuple[Operation, ...] = (
    *(_flip, _flip, _set, _cut, _remove, _double, _insert, _insert, _replace, _splice, _number),
)


def mutated(random: Random, seeds: Sequence[bytes], most: int = 20_000) -> bytes:
    """A seed, changed in one to six places; one in thirty stays as it is."""
    data = bytearray(random.choice(seeds))
    for _ in range(0 if random.random() < 0.03 else random.choice((1, 1, 2, 3, 6))):
        random.choice(OPERATIONS)(random, data, seeds)
    return bytes(data[:most])


def _piece(random: Random, data: bytes | bytearray) -> tuple[int, int]:
    start = random.randrange(len(data) + 1)
    return start, min(len(data), start + random.choice((1, 1, 2, 4, 16, 200)))
