"""The pages of the documentation: their code blocks, commands, headings and links.

A block runs unless the comment ``<!-- not run: WHY -->`` stands in the line before it. One that has
a title, as in ``csv title="visits.csv"``, is the content of that file.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "replication").glob("*.md")),
]
LED_BY_HAND = ("docs/index.md", "docs/install.md", "docs/start.md", "docs/tutorial/", "docs/howto/")
"""Pages for newcomers: there, commands are run, too. Elsewhere they are read by the real parser."""

_FENCE = re.compile(r"^( *)```(\w*)(?: +title=\"([^\"]+)\")? *$")
_NOT_RUN = re.compile(r"^ *<!-- not run: (.+) -->$")
_HEADING = re.compile(r"^#{1,6} +(.+?)(?: *\{ *#([\w-]+)[^}]*\})?$")
_LINK = re.compile(r"\]\(([^()\s]+(?:\([^()\s]*\)[^()\s]*)?)(?: +\"[^\"]*\")?\)")
_SEPARATORS = ("|", ";", "&&")


@dataclass(frozen=True)
class Command:
    """One program as it is typed, and the files that its input and output are."""

    arguments: tuple[str, ...]
    stdin: str | None = None
    stdout: str | None = None
    piped: bool = False
    """Whether the command before gives it its input."""


@dataclass(frozen=True)
class Block:
    """A block of code: the line it begins at, its language, the file that it is, if any."""

    line: int
    language: str
    title: str | None
    code: str
    not_run: str | None = None

    @property
    def commands(self) -> list[Command]:
        """What is typed in a block of the language ``console``."""
        lines = self.code.replace("\\\n", " ").splitlines()
        typed = [line[2:] for line in lines if line.startswith("$ ")]
        return [command for line in typed for command in _commands(line)]


@dataclass(frozen=True)
class Page:
    """A page in Markdown."""

    path: Path
    text: str = field(repr=False)

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def leads_by_the_hand(self) -> bool:
        return self.name.startswith(LED_BY_HAND)

    @cached_property
    def blocks(self) -> list[Block]:
        return list(_blocks(self.text.splitlines()))

    @cached_property
    def prose(self) -> str:
        """The page without its blocks and without code in its lines: where links are."""
        lines, inside = [], False
        for line in self.text.splitlines():
            if line.lstrip().startswith("```"):
                inside = not inside
            elif not inside:
                lines.append(re.sub(r"(`+).+?\1", "", line))
        return "\n".join(lines)

    @property
    def headings(self) -> list[tuple[str, str | None]]:
        """Each heading, and the anchor that it sets itself, if any."""
        lines, inside = [], False
        for line in self.text.splitlines():
            inside ^= line.lstrip().startswith("```")
            heading = None if inside else _HEADING.match(line)
            if heading:
                lines.append((heading[1], heading[2]))
        return lines

    @property
    def links(self) -> list[str]:
        """Where its links and pictures lead, other sites left out."""
        return [link for link in _LINK.findall(self.prose) if "://" not in link]


def read_pages() -> list[Page]:
    """All pages."""
    return [Page(path, path.read_text(encoding="utf-8")) for path in PAGES]


def anchors(page: Page) -> set[str]:
    """The anchors of a page: those that the site and a code host's view of the file agree on."""
    sites: list[str] = []
    hosts: list[str] = []
    for heading, given in page.headings:
        plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        words = re.sub(r"[^\w\s-]", "", plain)
        sites.append(given or _numbered(re.sub(r"[-\s]+", "-", words).strip("-"), sites, "_"))
        hosts.append(given or _numbered(words.replace(" ", "-"), hosts, "-"))
    return set(sites) & set(hosts)


def _numbered(anchor: str, taken: list[str], sign: str) -> str:
    """The anchor, with a number where an earlier heading has it already."""
    count = sum(
        re.fullmatch(rf"{re.escape(anchor)}({sign}\d+)?", other) is not None for other in taken
    )
    return f"{anchor}{sign}{count}" if count else anchor


def _blocks(lines: list[str]) -> Iterator[Block]:
    place = 0
    reason: str | None = None
    while place < len(lines):
        fence = _FENCE.match(lines[place])
        if fence:
            indent, language, title = fence.groups()
            end = next(i for i in range(place + 1, len(lines)) if lines[i].strip() == "```")
            inside = [line.removeprefix(indent) for line in lines[place + 1 : end]]
            yield Block(place + 1, language, title, "\n".join(inside) + "\n", reason)
            place = end
        marker = _NOT_RUN.match(lines[place])
        if marker or lines[place].strip():
            reason = marker[1] if marker else None
        place += 1


def _commands(line: str) -> Iterator[Command]:
    """The programs of a line: no more of a shell than the documentation uses."""
    shell = shlex.shlex(re.sub(r"\s#\s.*$", "", line), posix=True, punctuation_chars=";<>|&")
    shell.whitespace_split, shell.commenters = True, ""
    arguments: list[str] = []
    files: dict[str, str] = {}
    piped = False
    for token in [*shell, ";"]:
        if token in _SEPARATORS:
            if arguments:
                yield Command(tuple(arguments), files.get("<"), files.get(">"), piped)
            arguments, files, piped = [], {}, token == "|"
        elif token in ("<", ">") or (arguments and arguments[-1] in ("<", ">")):
            if token in ("<", ">"):
                arguments.append(token)
            else:
                files[arguments.pop()] = token
        else:
            arguments.append(token)
