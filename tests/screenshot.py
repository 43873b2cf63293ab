"""Take the pictures of the page.

For the README: python tests/screenshot.py docs/figures/app.png. For docs/start.md, of a service
that runs, best from a new installation: python tests/screenshot.py docs/figures ADDRESS
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from browser import QUERY, browser, home, serving

from sottovoce.paths import data_folder


def main(out: str, address: str | None = None) -> None:
    """The one picture of the README, or those of a new user's first steps."""
    if address is not None:
        with browser() as chrome:
            take_first_steps(chrome, address, Path(out))
        return
    with tempfile.TemporaryDirectory() as folder, browser() as chrome:
        here = home(Path(folder) / "home")
        if (data_folder() / "experiments").is_dir():
            (here / "experiments").symlink_to(data_folder() / "experiments")
        with serving(here, "--rerank", "light") as service:
            take_search(chrome, service.address, Path(out))


def take_search(chrome: Any, address: str, out: Path) -> None:
    """Search as a new user would, and take what stands above the fold."""
    page = opened(chrome, address, 1200, 1120)
    page.fill("#query", QUERY)
    page.click("#go")
    page.wait_for_selector("#risk strong")
    page.screenshot(path=out)


def take_first_steps(chrome: Any, address: str, folder: Path) -> None:
    """The page as it opens, what a voice means, and what a search shows."""
    page = opened(chrome, address, 1000, 760)
    page.screenshot(path=folder / "start-page.png")
    page.check("#voice-whisper", force=True)
    page.wait_for_timeout(1000)
    page.locator("#voices").screenshot(path=folder / "start-voices.png")
    page.check("#voice-murmur", force=True)
    page.fill("#query", QUERY)
    page.click("#go")
    page.wait_for_selector("#risk strong")
    page.evaluate("document.querySelector('#outcome').scrollIntoView()")
    page.screenshot(path=folder / "start-search.png")


def opened(chrome: Any, address: str, width: int, height: int) -> Any:
    """The page, loaded."""
    page = chrome.new_page(viewport={"width": width, "height": height})
    page.set_default_timeout(120_000)
    page.goto(address)
    page.wait_for_selector("#plane > *")
    return page


if __name__ == "__main__":
    main(*sys.argv[1:])
