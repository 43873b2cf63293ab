"""The other tabs of the page, and the page for everybody: keyboard, phone, dark, contrast."""

from __future__ import annotations

import re
import time
from itertools import pairwise
from pathlib import Path

import browser
import pytest
from browser import CONTRASTS, NAMELESS, QUERY, forget, home, notice, opened, search, serving

from sottovoce.mechanisms import names

chrome, service, page = browser.chrome, browser.service, browser.page
page_as_it_opens = browser.page_as_it_opens


# Sanitise


def test_pasted_text_comes_out_side_by_side_and_can_be_downloaded(page):
    page.click("#tab-sanitize")
    page.fill("#text", "My doctor found a melanoma.\n\U0001f648 Call Anna, please.")
    page.fill("#s-epsilon", "1")
    page.click("#s-go")
    page.wait_for_selector("#s-rows tr")
    cells = page.locator("#s-rows td").all_inner_texts()
    assert cells[::2] == ["My doctor found a melanoma.", "\U0001f648 Call Anna, please."]
    rows = page.locator("#s-rows tr")
    marks = [rows.nth(at).locator("td").nth(1).locator("mark").all_inner_texts() for at in (0, 1)]
    for cell, marked, end in zip(cells[1::2], marks, (".", "."), strict=True):
        assert marked
        assert cell.endswith(end)
        assert all(re.fullmatch(r"[^\s.,]+(\S*[^\s.,]+)?", word) for word in marked)
    with page.expect_download() as download:
        page.click("#s-download")
    assert download.value.suggested_filename == "sanitised.txt"
    assert Path(download.value.path()).read_text() == "\n".join(cells[1::2])
    assert "Nothing left this machine" in page.inner_text("#s-status")


def test_one_column_of_a_csv_file_is_sanitised_and_the_rest_stays(page, tmp_path):
    file = tmp_path / "notes.csv"
    file.write_text('id;who;note\n1;Anna;"skin cancer; again"\n2;Ben;debt advice\n')
    page.click("#tab-sanitize")
    page.set_input_files("#file", file)
    page.wait_for_selector("#column option", state="attached")
    assert page.locator("#column option").all_inner_texts() == ["id", "who", "note"]
    page.select_option("#column", "note")
    page.fill("#s-epsilon", "0.5")
    page.click("#s-go")
    page.wait_for_selector("#s-rows tr")
    assert page.locator("#s-rows td").all_inner_texts()[::2] == [
        "skin cancer; again",
        "debt advice",
    ]
    with page.expect_download() as download:
        page.click("#s-download")
    assert download.value.suggested_filename == "sanitised.csv"
    lines = Path(download.value.path()).read_text().splitlines()
    assert lines[0] == "id;who;note"
    assert [line.rsplit(";", 2 if '"' in line else 1)[0].split(";")[:2] for line in lines[1:]] == [
        ["1", "Anna"],
        ["2", "Ben"],
    ]
    page.click("#file-clear")
    assert page.locator("#column-field").is_hidden()


def test_a_dropped_file_is_read_and_nothing_to_do_is_said(page):
    page.click("#tab-sanitize")
    page.click("#s-go")
    assert "nothing to sanitise" in notice(page)
    page.evaluate(
        """() => {
          const data = new DataTransfer();
          data.items.add(new File(["note\\nskin cancer\\n"], "a.csv"));
          document.getElementById("drop").dispatchEvent(
            new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
        }"""
    )
    page.wait_for_selector("#column option", state="attached")
    assert page.locator("#column option").all_inner_texts() == ["note"]


def test_a_file_that_is_no_utf8_is_refused_in_plain_words(page, tmp_path):
    file = tmp_path / "latin.csv"
    file.write_bytes("note\nMünchen\n".encode("latin-1"))
    page.click("#tab-sanitize")
    page.set_input_files("#file", file)
    assert "cannot be read as UTF-8" in notice(page)
    assert page.locator("#column-field").is_hidden()
    assert page.locator("#text").is_enabled()
    file.write_bytes("\ufeffnote\nMünchen\n".encode())
    page.set_input_files("#file", file)
    page.wait_for_selector("#column option", state="attached")
    assert page.locator("#column option").all_inner_texts() == ["note"]


def test_each_mechanism_begins_with_its_own_epsilon_and_says_what_is_wrong_with_it(page):
    page.click("#tab-sanitize")
    page.fill("#text", "skin cancer")
    assert page.locator("#s-warning").is_hidden()
    for name, epsilon in (("cmp", "10"), ("santext", "2"), ("comet-cmp", "5")):
        page.select_option("#s-mechanism", name)
        assert page.input_value("#s-epsilon") == epsilon
    page.click("#s-go")
    page.wait_for_selector("#s-promise:text('for each text')")
    assert re.search(r"epsilon [\d,]+(\.\d)? for each text", page.inner_text("#s-promise"))
    page.select_option("#s-mechanism", "aea")
    assert page.locator("#s-epsilon").is_disabled()
    assert page.input_value("#s-epsilon") == ""
    assert "promises nothing" in page.inner_text("#s-warning")
    page.select_option("#s-mechanism", "wbb")
    assert "counterexample" in page.inner_text("#s-warning")


def test_a_stream_that_is_cut_short_is_said(page):
    page.route(
        "**/v1/sanitize",
        lambda route: route.fulfill(
            content_type="application/x-ndjson", body='{"step": "sanitizing", "done": 1}\n'
        ),
    )
    page.click("#tab-sanitize")
    page.fill("#text", "skin cancer")
    page.click("#s-go")
    assert "stopped in the middle" in notice(page)
    assert page.locator("#s-outcome").is_hidden()


# For everybody


def focused(page):
    return page.evaluate("document.activeElement.id")


def tab_to(page, wanted):
    for _ in range(60):
        if focused(page) == wanted:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not lead to {wanted}")


def test_everything_can_be_done_with_the_keyboard_alone(page_as_it_opens):
    page = page_as_it_opens
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    tab_to(page, "query")
    page.keyboard.type(QUERY)
    tab_to(page, "voice-in-company")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert page.locator("#voice-speak-low").is_checked()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert page.locator("#voice-whisper").is_checked()
    page.locator("#query").focus()
    tab_to(page, "preview")
    page.keyboard.press("Enter")
    page.wait_for_selector("#send")
    assert focused(page) == "send"
    page.keyboard.press("Enter")
    page.wait_for_selector("#came .hit")
    assert focused(page) == "came-title"
    tab_to(page, "history-on")
    page.keyboard.press("Space")
    page.wait_for_selector("#history-wipe", state="visible")
    page.locator("#tab-search").focus()
    page.keyboard.press("ArrowRight")
    assert focused(page) == "tab-sanitize"
    assert page.locator("#sanitize").is_visible()
    assert page.locator("#search").is_hidden()
    tab_to(page, "text")
    page.keyboard.type("a melanoma")
    tab_to(page, "s-go")
    page.keyboard.press("Enter")
    page.wait_for_selector("#s-rows tr")
    page.locator("#tab-sanitize").focus()
    page.keyboard.press("End")
    assert page.locator("#mechanisms").is_visible()
    assert page.locator("#cards article").count() == len(names())
    page.keyboard.press("ArrowRight")
    assert focused(page) == "tab-search"


def test_focus_can_be_seen(page):
    seen = """() => {
      const { activeElement: now } = document;
      return getComputedStyle(now.closest(".voice") ?? now).outlineStyle;
    }"""
    for _ in range(12):
        page.keyboard.press("Tab")
        assert page.evaluate(seen) == "solid", focused(page)


def test_a_phone_shows_one_column_that_nothing_sticks_out_of(chrome, service):
    forget(service)
    size = {"width": 375, "height": 667}
    with opened(chrome, service, viewport=size, has_touch=True, is_mobile=True) as page:
        search(page)
        lefts = page.evaluate(
            "['typed', 'left', 'came'].map(id => "
            "document.getElementById(id).getBoundingClientRect().left)"
        )
        assert len(set(lefts)) == 1
        for summary in page.locator("#search summary").all():
            summary.click()
        page.click("#tab-search")
        for tab in ("search", "sanitize", "mechanisms"):
            page.tap(f"#tab-{tab}")
            assert page.evaluate("document.documentElement.scrollWidth") == 375
            small = page.evaluate(
                """tab => [...document.querySelectorAll(`#${tab} :is(button, select, summary,
                    input:not([type=radio]):not(.unseen), .voice)`)]
                  .filter(each => each.checkVisibility())
                  .map(each => [each.id || each.textContent, each.getBoundingClientRect()])
                  .filter(([, { left, right, height }]) => left < 0 || right > 375 || height < 19)
                  .map(([name]) => name)""",
                tab,
            )
            assert small == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_names_ids_and_headings_are_right(chrome, service, scheme):
    forget(service)
    with opened(chrome, service, color_scheme=scheme, reduced_motion="reduce") as page:
        search(page)
        page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
        for tab in ("search", "sanitize", "mechanisms"):
            page.click(f"#tab-{tab}")
            if tab == "sanitize":
                page.fill("#text", "a melanoma")
                page.click("#s-go")
                page.wait_for_selector("#s-rows tr")
                page.fill("#text", "")
            contrasts = page.evaluate(CONTRASTS)
            assert len(contrasts) > 20
            assert [each for each in contrasts if each[0] < 4.5] == []
        page.click("#tab-sanitize")
        page.click("#s-go")
        assert notice(page)
        assert [each for each in page.evaluate(CONTRASTS) if each[0] < 4.5] == []
        assert page.evaluate(NAMELESS) == []
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map(each => each.id)")
        assert len(ids) == len(set(ids))
        assert page.locator("h1").count() == 1
        for landmark in ("header", "main", "footer"):
            assert page.locator(landmark).count() == 1
        levels = page.evaluate(
            "[...document.querySelectorAll('h1,h2,h3,h4')].map(each => +each.tagName[1])"
        )
        assert all(b - a <= 1 for a, b in pairwise(levels))
        assert page.get_attribute("html", "lang") == "en"
        assert page.get_attribute("html", "translate") == "no"


def test_dark_and_light_follow_the_system_and_can_be_chosen(chrome, service):
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    with opened(chrome, service, color_scheme="dark") as page:
        dark = page.evaluate(ground)
        page.emulate_media(color_scheme="light")
        light = page.evaluate(ground)
        assert sum(map(int, re.findall(r"\d+", dark))) < 150
        assert sum(map(int, re.findall(r"\d+", light))) > 600
        page.click("#theme")
        assert page.evaluate(ground) == dark
        page.reload()
        page.wait_for_selector("#plane > *")
        assert page.evaluate(ground) == dark


def test_mechanisms_tell_promise_paper_and_verdict(page, service):
    page.click("#tab-mechanisms")
    told = {each["name"]: each for each in service.ask("GET", "/v1/mechanisms")["mechanisms"]}
    for name, each in told.items():
        card = page.locator(f"article[aria-labelledby='card-{name}']").inner_text()
        for said in (each["paper"], each["audit"]["verdict"], each["guarantee"]["sentence"][1:]):
            assert said in card
        assert (each["warning"] or "") in card
        assert card.count("REFUTED") >= sum(
            "REFUTED" in c["verdict"] for c in each["audit"]["claims"]
        )
        assert (each["published"]["sentence"][1:] if each["published"] else "") in card


def test_the_page_is_plain_files_without_inline_code():
    folder = Path(__file__).parents[1] / "sottovoce" / "app" / "page"
    markup = (folder / "index.html").read_text()
    assert not re.search(r"\bstyle=|\bon\w+=|<script>|<style", markup)
    for file in folder.iterdir():
        text = file.read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
        assert not re.search(r"(?<!\")https?://(?!www\.w3\.org)", text.replace("https?:", ""))


def test_the_file_that_the_browser_is_started_with_opens_the_page_once(chrome, tmp_path):
    """What `sottovoce serve` gives the browser is a file; the address in it works once."""
    started = tmp_path / "started"
    program = tmp_path / "browser.sh"
    program.write_text(f'#!/bin/sh\nprintf %s "$1" > {started}.part\nmv {started}.part {started}\n')
    program.chmod(0o700)
    environment = {"BROWSER": f"{program} %s"}
    with serving(home(tmp_path / "home"), "--browser", environment=environment) as served:
        while not started.exists():
            time.sleep(0.05)
        address = started.read_text()
        assert address.startswith("file:///")
        page = chrome.new_page()
        page.goto(address)
        page.wait_for_url(f"{served.url}/")
        page.wait_for_selector("#voice-murmur", state="attached")
        assert "without its token" not in page.inner_text("body")
        assert not list((tmp_path / "home").glob(".opening-*"))
        page.close()


def test_a_download_for_a_spreadsheet_holds_no_formula_unless_asked_for(page, tmp_path):
    file = tmp_path / "notes.csv"
    file.write_text("=id,note\n=1+1,skin cancer\n-5,debt advice\n")
    page.click("#tab-sanitize")
    page.set_input_files("#file", file)
    page.select_option("#column", "note")
    downloads = []
    for uncheck in (False, True):
        if uncheck:
            page.uncheck("#s-spreadsheet")
        page.click("#s-go")
        page.wait_for_selector("#s-stop", state="hidden")
        page.wait_for_selector("#s-rows tr")
        with page.expect_download() as download:
            page.click("#s-download")
        downloads.append(Path(download.value.path()).read_text().splitlines())
    safe, plain = ([line.split(",")[0] for line in lines] for lines in downloads)
    assert safe == ["'=id", "'=1+1", "-5"]
    assert plain == ["=id", "=1+1", "-5"]
