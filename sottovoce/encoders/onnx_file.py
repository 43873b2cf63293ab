"""Networks in the format ONNX: as much of it as encoders need, written without the package onnx.

The format is protobuf: a message is a run of fields, and a field its number and kind, then a whole
number, a float or bytes. Large constants are only named here: the session gets their arrays from
whoever makes it, and copies none of them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

FLOAT, UINT8 = 1, 2
"""Types of numbers, as ONNX counts them."""
_TYPES = {"float32": FLOAT, "uint8": UINT8, "int8": 3, "int64": 7}
IR_VERSION = 8
_BYTES_IN_THE_FILE = 64
"""Constants of so few bytes are written into the file: operators look at them when it is read."""
_FLOAT_SETTING, _INT_SETTING = 1, 2
_ELSEWHERE = 1


class OnnxFile:
    """A network that grows node by node."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        """The constants that the file only names."""
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []

    def constant(self, name: str, array: NDArray[Any]) -> str:
        """Add an array under a name; answers the name."""
        array = np.ascontiguousarray(array)
        described = [
            *(_number(1, size) for size in array.shape),
            _number(2, _TYPES[array.dtype.name]),
            _text(8, name),
        ]
        if array.nbytes <= _BYTES_IN_THE_FILE:
            described.append(_bytes(9, array.tobytes()))
        else:
            self.arrays[name] = array
            place = _text(1, "location") + _text(2, "memory")
            described += [_bytes(13, place), _number(14, _ELSEWHERE)]
        self._constants.append(b"".join(described))
        return name

    def node(
        self, kind: str, inputs: Sequence[str], outputs: Sequence[str], domain: str, **settings: Any
    ) -> None:
        """Add an operator; its settings are whole numbers and floats."""
        described = [_text(1, name) for name in inputs] + [_text(2, name) for name in outputs]
        described += [_text(4, kind), _text(7, domain)]
        described += [_bytes(5, _setting(name, value)) for name, value in settings.items()]
        self._nodes.append(b"".join(described))

    def finished(
        self,
        inputs: dict[str, Sequence[str | int]],
        outputs: dict[str, Sequence[str | int]],
        versions: dict[str, int],
    ) -> bytes:
        """The file: inputs and outputs are floats of these shapes, versions those of domains."""
        graph = _run(1, self._nodes) + _text(2, "network") + _run(5, self._constants)
        graph += _run(11, (_tensor(name, shape) for name, shape in inputs.items()))
        graph += _run(12, (_tensor(name, shape) for name, shape in outputs.items()))
        domains = (_text(1, name) + _number(2, version) for name, version in versions.items())
        return _number(1, IR_VERSION) + _bytes(7, graph) + _run(8, domains)


def _setting(name: str, value: float) -> bytes:
    if isinstance(value, float):
        kept = _key(2, 5) + struct.pack("<f", value) + _number(20, _FLOAT_SETTING)
    else:
        kept = _number(3, value) + _number(20, _INT_SETTING)
    return _text(1, name) + kept


def _tensor(name: str, shape: Sequence[str | int]) -> bytes:
    sizes = (_text(2, size) if isinstance(size, str) else _number(1, size) for size in shape)
    tensor = _number(1, FLOAT) + _bytes(2, _run(1, sizes))
    return _text(1, name) + _bytes(2, _bytes(1, tensor))


# Fields


def _key(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _number(field: int, value: int) -> bytes:
    return _key(field, 0) + _varint(value)


def _bytes(field: int, data: bytes) -> bytes:
    return _key(field, 2) + _varint(len(data)) + data


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode())


def _run(field: int, messages: Iterable[bytes]) -> bytes:
    return b"".join(_bytes(field, message) for message in messages)


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; negative numbers as 64 bits."""
    value &= (1 << 64) - 1
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)
