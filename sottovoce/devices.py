"""Which device searches for nearest words: a GPU where there is one, unless told otherwise."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Literal, get_args

from sottovoce.errors import UsageError

Device = Literal["cpu", "cuda"]
Choice = Literal["auto", "cpu", "cuda"]

DRIVERS = ("/dev/nvidiactl", "/dev/dxg")
"""Files that a driver makes, on Linux and on Linux under Windows."""

_choice: Choice = "auto"


def set_device(choice: Choice) -> None:
    """Make searches for this device from now on; ``auto`` takes a GPU where there is one."""
    global _choice
    if choice not in get_args(Choice):
        raise UsageError(f"the device is one of {', '.join(get_args(Choice))}")
    if choice == "cuda" and not _usable():
        raise UsageError(_what_is_missing())
    _choice = choice


def device_choice() -> Choice:
    """What was asked for."""
    return _choice


def device() -> Device:
    """The device in use."""
    if _choice == "auto":
        return "cuda" if gpu_present() else "cpu"
    return _choice


def gpu_present() -> bool:
    """Whether a CUDA device can be used; torch is imported only where a driver shows one."""
    return any(Path(driver).exists() for driver in DRIVERS) and _usable()


def _usable() -> bool:
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def _what_is_missing() -> str:
    if importlib.util.find_spec("torch") is None:
        return "device 'cuda' needs torch: pip install 'sottovoce[gpu]', or use device 'cpu'"
    return (
        "device 'cuda' was asked for, but torch finds no CUDA device here: see that nvidia-smi "
        "lists one and that torch was installed with CUDA, or use device 'cpu'"
    )
