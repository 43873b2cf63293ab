"""What is typed after an option, read: pairs, words, numbers."""

from __future__ import annotations

from typing import Any

from sottovoce.errors import SottovoceError, UsageError

FROM_FILE = "file:"


def key_values(pairs: list[str] | None, option: str) -> dict[str, str]:
    """Pairs as typed, ``key=value``, of an option that may be repeated."""
    values = {}
    for pair in pairs or ():
        key, sign, value = pair.partition("=")
        if not sign:
            raise UsageError(f"{option} takes key=value, as in {option} t=0.5")
        values[key.strip()] = value.strip()
    return values


def given_parameters(pairs: list[str] | None, epsilon: float | None) -> dict[str, Any]:
    """What ``--set`` and ``--epsilon`` say."""
    parameters: dict[str, Any] = dict(key_values(pairs, "--set"))
    return parameters if epsilon is None else {**parameters, "epsilon": epsilon}


def listed_words(entries: list[str] | None) -> frozenset[str]:
    """Words as typed, and those of files (``file:PATH``), one a line."""
    from sottovoce.files import read_words

    words: set[str] = set()
    for entry in entries or ():
        if not entry.startswith(FROM_FILE):
            words.add(entry)
            continue
        try:
            words |= read_words(entry.removeprefix(FROM_FILE))
        except SottovoceError as error:
            raise UsageError(
                f"a list of words cannot be read ({error}): give file:PATH of a UTF-8 text file "
                "with one word a line"
            ) from None
    return frozenset(words)


def listed_epsilons(entries: list[str] | None) -> list[float]:
    """Numbers as typed, ``5`` or ``5,10``, each once."""
    try:
        numbers = [float(part) for entry in entries or () for part in entry.split(",")]
    except ValueError:
        raise UsageError("an epsilon is a number: write -e 10, or -e 5,10,15") from None
    return list(dict.fromkeys(numbers))
