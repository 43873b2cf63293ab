"""Build the documentation site into a folder: python tools/build_site.py site.

The pages lie in docs/ and replication/, and link to each other and to files as they lie there. For
the site they are copied to one tree, links follow, and what is linked to is copied, too. Every link
and anchor of the finished site is checked: one that leads nowhere is an error.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "build" / "site-source"
LINK = re.compile(r"(\]\()([^()\s#:]+)((?:#[^()\s]*)?(?: +\"[^\"]*\")?\))")
PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")


def main(out: str) -> None:
    """Copy, build, check."""
    prepare()
    shutil.rmtree(ROOT / "site", ignore_errors=True)
    zensical = Path(sys.executable).with_name("zensical")
    subprocess.run([zensical, "build", "--clean", "--strict"], cwd=ROOT, check=True)
    if Path(out).resolve() != ROOT / "site":
        shutil.move(ROOT / "site", out)
    problems = broken_links(Path(out))
    for problem in problems:
        print(problem)
    pages = len(list(Path(out).rglob("*.html")))
    print(f"{pages} pages in {out}, {len(problems)} broken links")
    sys.exit(1 if problems else 0)


def prepare() -> None:
    """Copy pages to one tree: docs/ is its root, the rest keeps its path."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    waiting = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "replication").glob("*.md")]
    waiting += [ROOT / name for name in PAGES]
    seen = set(waiting)
    while waiting:
        path = waiting.pop()
        place = _place(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix != ".md":
            shutil.copyfile(path, place)
            continue
        text = path.read_text(encoding="utf-8")
        for _, link, _ in LINK.findall(text):
            target = (path.parent / unquote(link)).resolve()
            if target.is_file() and target not in seen:
                seen.add(target)
                waiting.append(target)
        place.write_text(_relinked(text, path), encoding="utf-8")


def _place(path: Path) -> Path:
    """Where a file of the repository lies in the tree of the site."""
    inside = path.relative_to(ROOT)
    return SOURCE / (inside.relative_to("docs") if inside.parts[0] == "docs" else inside)


def _relinked(text: str, page: Path) -> str:
    """The text of a page with its links as the tree of the site has them."""

    def moved(link: re.Match[str]) -> str:
        target = (page.parent / unquote(link[2])).resolve()
        if not target.is_file():
            return link[0]
        return f"{link[1]}{os.path.relpath(_place(target), _place(page).parent)}{link[3]}"

    return LINK.sub(moved, text)


class _Page(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def broken_links(site: Path) -> list[str]:
    """Every link of a site to a file or anchor that it lacks."""
    pages: dict[Path, _Page] = {}
    for path in sorted(site.resolve().rglob("*.html")):
        pages[path] = _Page()
        pages[path].feed(path.read_text(encoding="utf-8"))
    problems = []
    for path, page in pages.items():
        if path.name == "404.html":
            continue  # It is shown at any depth, and its links begin at the root.
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            if not target.exists():
                problems.append(f"{path.name}: {link} leads nowhere")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                problems.append(f"{path.name}: {link}: no such anchor")
    return problems


if __name__ == "__main__":
    main(*sys.argv[1:])
