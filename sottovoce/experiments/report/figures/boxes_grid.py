"""Which mechanisms of a report are WBB, and with which boxes."""

from __future__ import annotations

from typing import Any, NamedTuple

from sottovoce.errors import SottovoceError
from sottovoce.experiments.results import Results


class Box(NamedTuple):
    """A safe box of ``k`` words, a candidate box of ``n``, and the rest of the settings."""

    k: int
    n: int
    measure: str
    rest: tuple[tuple[str, str], ...]


def box_of(results: Results, mechanism: str) -> Box | None:
    """The boxes of a mechanism, by the spec that its name stands for; None if it has none."""
    from sottovoce.mechanisms import parse

    try:
        kind, given = parse(_specs(results).get(mechanism, mechanism))
    except SottovoceError:
        return None
    if kind.name != "wbb":
        return None
    values: dict[str, Any] = {each.name: each.default for each in kind.parameters()} | given
    values.pop("epsilon", None)
    k, n, measure = (values.pop(name) for name in ("k", "n", "measure"))
    return Box(k, n, measure, tuple((name, str(value)) for name, value in values.items()))


def _specs(results: Results) -> dict[str, str]:
    """The spec of each name, as far as the manifest says it."""
    systems = results.manifest.get("experiment", {}).get("systems", ())
    return {each["label"]: each["spec"] for each in systems}
