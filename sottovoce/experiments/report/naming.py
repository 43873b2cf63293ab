"""How a report calls things: collections without their folders, settings by what varies."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sottovoce.experiments.results import Setting


def last_part(name: str) -> str:
    """The last part of a collection's, task's or file's name, without the folder it lies in."""
    return re.split(r"[/\\]", name.rstrip("/\\"))[-1] or name


def slug(*parts: str) -> str:
    """A name for a file."""
    joined = "-".join(last_part(each) for each in parts if each)
    return re.sub(r"[^a-z0-9.]+", "-", joined.lower()).strip("-.") or "table"


def counted(number: int, what: str, many: str | None = None) -> str:
    """As in ``1 query`` and ``43 queries``."""
    return f"{number:,} {what if number == 1 else many or what + 's'}"


class RowNames:
    """What tells the settings of a table apart, epsilon aside; what they share is said once."""

    def __init__(self, settings: Iterable[Setting]) -> None:
        found = list(settings)
        self._release = len({each.release for each in found}) > 1
        self._n = len({each.n for each in found}) > 1
        release = {each.release for each in found}
        n = {each.n for each in found}
        parts = [f"release {release.pop()}"] if len(release) == 1 else []
        parts += [f"{counted(n.pop(), 'variant')} of each query"] if len(n) == 1 else []
        self.shared = "; " + ", ".join(parts) if parts else ""
        """To be put behind a caption's numbers."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The headings."""
        return ("mechanism", *(["release"] if self._release else []), *(["n"] if self._n else []))

    def of(self, setting: Setting) -> tuple[str, ...]:
        """The cells of one row."""
        return self.labelled(setting.mechanism, setting.release, str(setting.n))

    def labelled(self, mechanism: str, release: str = "", n: str = "") -> tuple[str, ...]:
        """The cells of a row that is no setting."""
        return (mechanism, *([release] if self._release else []), *([n] if self._n else []))
