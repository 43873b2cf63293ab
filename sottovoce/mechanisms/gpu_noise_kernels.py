"""Noise on a GPU: the keystream of ChaCha20 (RFC 8439), and spherical noise made of it.

Every word of a call has a nonce of its own, its row; the key is new for each call. A block of the
keystream (16 words of 32 bits) makes three pairs of normal variates and three exponential ones; its
last word is left over, and those of the first two blocks make one uniform variate of the row.

Uniform variates behind a logarithm have 64 bits and are computed in float64, so that the tails are
there: a normal variate can be as large as 9.4 in absolute value (a float of 32 random bits would
stop at 6.6). Angles are 2^32 equal steps.
"""

from __future__ import annotations

import triton
import triton.language as tl

HALF_PI = tl.constexpr(1.5707963267948966)


@triton.jit
def _rotated(x, bits: tl.constexpr):
    return (x << bits) | (x >> (32 - bits))


@triton.jit
def _quarter(a, b, c, d):
    a += b
    d = _rotated(d ^ a, 16)
    c += d
    b = _rotated(b ^ c, 12)
    a += b
    d = _rotated(d ^ a, 8)
    c += d
    b = _rotated(b ^ c, 7)
    return a, b, c, d


@triton.jit
def _key_word(key, index: tl.constexpr, zero):
    return zero + tl.load(key + index).to(tl.uint32, bitcast=True)


@triton.jit
def keystream(key, counter, nonce_0, nonce_1, nonce_2):
    """The 16 words of blocks number ``counter`` of ChaCha20, twenty rounds."""
    zero = counter ^ counter
    i0, i1 = zero + 0x61707865, zero + 0x3320646E
    i2, i3 = zero + 0x79622D32, zero + 0x6B206574
    i4, i5 = _key_word(key, 0, zero), _key_word(key, 1, zero)
    i6, i7 = _key_word(key, 2, zero), _key_word(key, 3, zero)
    i8, i9 = _key_word(key, 4, zero), _key_word(key, 5, zero)
    i10, i11 = _key_word(key, 6, zero), _key_word(key, 7, zero)
    i13, i14, i15 = zero + nonce_0, zero + nonce_1, zero + nonce_2
    x0, x1, x2, x3, x4, x5, x6, x7 = i0, i1, i2, i3, i4, i5, i6, i7
    x8, x9, x10, x11, x12, x13, x14, x15 = i8, i9, i10, i11, counter, i13, i14, i15
    for _ in range(10):
        x0, x4, x8, x12 = _quarter(x0, x4, x8, x12)
        x1, x5, x9, x13 = _quarter(x1, x5, x9, x13)
        x2, x6, x10, x14 = _quarter(x2, x6, x10, x14)
        x3, x7, x11, x15 = _quarter(x3, x7, x11, x15)
        x0, x5, x10, x15 = _quarter(x0, x5, x10, x15)
        x1, x6, x11, x12 = _quarter(x1, x6, x11, x12)
        x2, x7, x8, x13 = _quarter(x2, x7, x8, x13)
        x3, x4, x9, x14 = _quarter(x3, x4, x9, x14)
    low = (x0 + i0, x1 + i1, x2 + i2, x3 + i3, x4 + i4, x5 + i5, x6 + i6, x7 + i7)
    high = (x8 + i8, x9 + i9, x10 + i10, x11 + i11, x12 + counter, x13 + i13, x14 + i14, x15 + i15)
    return low + high


@triton.jit
def keystream_blocks(key, out, nonce_0, nonce_1, nonce_2, BLOCKS: tl.constexpr):
    """The keystream itself, (blocks, 16): what tests compare with another implementation."""
    counter = tl.arange(0, BLOCKS).to(tl.uint32)
    words = keystream(
        key, counter, nonce_0.to(tl.uint32), nonce_1.to(tl.uint32), nonce_2.to(tl.uint32)
    )
    for index in tl.static_range(16):
        at = out + tl.arange(0, BLOCKS) * 16 + index
        tl.store(at, words[index].to(tl.int32, bitcast=True))


@triton.jit
def _exponential(high, low):
    """-ln u of a uniform u with 64 random bits; float64."""
    uniform = (high.to(tl.float64) * 4294967296.0 + low.to(tl.float64) + 0.5) * 2.0**-64
    return -tl.log(uniform)


@triton.jit
def _turned(bits):
    """Cosine and sine of an angle: two bits say the quadrant, thirty where in it."""
    quadrant = (bits >> 30).to(tl.int32)
    angle = ((bits & 0x3FFFFFFF).to(tl.float64) + 0.5) * 2.0**-30 - 0.5
    x = (angle * HALF_PI).to(tl.float32)
    y = x * x
    sine = x * (1 - y / 6 * (1 - y / 20 * (1 - y / 42 * (1 - y / 72))))
    cosine = 1 - y / 2 * (1 - y / 12 * (1 - y / 30 * (1 - y / 56 * (1 - y / 90))))
    odd = (quadrant & 1) == 1
    across, up = tl.where(odd, sine, cosine), tl.where(odd, cosine, sine)
    across = tl.where((quadrant == 1) | (quadrant == 2), -across, across)
    return across, tl.where(quadrant >= 2, -up, up)


@triton.jit
def spherical_noise(
    key,
    noise,
    uniforms,
    epsilon,
    DIMENSION: tl.constexpr,
    BLOCKS: tl.constexpr,
):
    """A row of noise of density proportional to exp(-epsilon |x|), and one uniform variate.

    The direction is that of a normal vector g, made of pairs (Box and Muller): the two have the
    half square e = (a^2 + b^2) / 2, exponential, and a uniform angle. The radius is Gamma(d): a sum
    of d exponential variates. As the length of g is independent of its direction, half of them are
    those of the pairs, used again. Nothing is rejected, so the time does not depend on the numbers.
    """
    row = tl.program_id(0)
    block = tl.arange(0, BLOCKS)
    nonce = row.to(tl.uint32)
    words = keystream(key, block.to(tl.uint32), nonce, nonce ^ nonce, nonce ^ nonce)
    pairs: tl.constexpr = (DIMENSION + 1) // 2
    radius = tl.zeros([BLOCKS], tl.float64)
    squares = tl.zeros([BLOCKS], tl.float32)
    normals = ()
    for i in tl.static_range(3):
        half_square = _exponential(words[3 * i], words[3 * i + 1])
        radius += tl.where(3 * block + i < pairs, half_square, 0.0)
        length = tl.sqrt(2 * half_square).to(tl.float32)
        across, up = _turned(words[3 * i + 2])
        a, b = length * across, length * up
        column = 6 * block + 2 * i
        squares += tl.where(column < DIMENSION, a * a, 0.0)
        squares += tl.where(column + 1 < DIMENSION, b * b, 0.0)
        normals = normals + (a, b)  # type: ignore[assignment]
    for i in tl.static_range(3):
        more = _exponential(words[9 + 2 * i], words[10 + 2 * i])
        radius += tl.where(3 * block + i < DIMENSION - pairs, more, 0.0)
    stretch = (tl.sum(radius, axis=0) / epsilon).to(tl.float32)
    stretch = stretch / tl.sqrt(tl.sum(squares, axis=0))
    start = noise + row.to(tl.int64) * DIMENSION
    for i in tl.static_range(6):
        column = 6 * block + i
        tl.store(start + column, normals[i] * stretch, mask=column < DIMENSION)
    high = tl.sum(tl.where(block == 0, words[15], 0).to(tl.float64), axis=0)
    low = tl.sum(tl.where(block == 1, words[15] >> 11, 0).to(tl.float64), axis=0)
    tl.store(uniforms + row, (high * 2097152.0 + low) * 2.0**-53)
