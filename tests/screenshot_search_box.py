"""Take the pictures of docs/browser.md: python tests/screenshot_search_box.py docs/figures."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from browser import QUERY, chromium, home, serving
from playwright.sync_api import sync_playwright

SIZE = {"width": 1000, "height": 820}


def main(out: Path) -> None:
    """Switch the search box on, give it to Chromium, and search as its address bar does."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        here = home(Path(folder) / "home")
        with serving(here, "--rerank", "light") as service:
            context = playwright.chromium.launch_persistent_context(
                f"{folder}/profile",
                executable_path=chromium(),
                args=["--no-sandbox"],
                viewport=SIZE,
            )
            context.set_default_timeout(120_000)
            page = context.new_page()
            page.goto(service.address)
            page.wait_for_selector("#plane > *")
            page.check("#box-on", force=True)
            page.wait_for_selector("#box", state="visible")
            address = page.input_value("#box-address")
            page.locator("section:has(> #box-title)").screenshot(path=out / "search-box-page.png")
            settings = context.new_page()
            settings.goto("chrome://settings/searchEngines")
            settings.get_by_role("button", name="Add").first.click()
            fields = settings.locator("settings-search-engine-edit-dialog cr-input")
            for at, value in enumerate(("sottovoce", "sv", address)):
                fields.nth(at).locator("input").fill(value)
            settings.locator("settings-search-engine-edit-dialog dialog").screenshot(
                path=out / "search-box-chromium.png"
            )
            page.goto(address.replace("%s", QUERY.replace(" ", "%20")))
            page.wait_for_selector("#came .hit")
            page.locator("#outcome").evaluate("(outcome) => outcome.scrollIntoView()")
            page.screenshot(path=out / "search-box-found.png")
            context.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
