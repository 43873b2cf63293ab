"""Take the picture of the page for the README: python tests/screenshot.py docs/figures/app.png."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from browser import QUERY, browser, home, serving

from sottovoce.paths import data_folder


def main(out: str) -> None:
    """Search as a new user would, and take what stands above the fold."""
    with tempfile.TemporaryDirectory() as folder, browser() as chrome:
        here = home(Path(folder) / "home")
        if (data_folder() / "experiments").is_dir():
            (here / "experiments").symlink_to(data_folder() / "experiments")
        with serving(here, "--rerank", "light") as service:
            page = chrome.new_page(viewport={"width": 1200, "height": 1120})
            page.set_default_timeout(120_000)
            page.goto(service.address)
            page.wait_for_selector("#plane > *")
            page.fill("#query", QUERY)
            page.click("#go")
            page.wait_for_selector("#risk strong")
            page.screenshot(path=out)


if __name__ == "__main__":
    main(sys.argv[1])
