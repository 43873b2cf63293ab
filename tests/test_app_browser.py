"""The page in a real browser, with a real service and a real stranger."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.error import HTTPError
from urllib.parse import parse_qs, quote, unquote_plus, urlsplit

import browser
import servers
from browser import (
    QUERY,
    TITLE,
    TOKEN,
    engine_file,
    forget,
    home,
    notice,
    opened,
    search,
    sent,
    serving,
    spent,
)

from sottovoce.collections import demo_log
from sottovoce.defaults import SEARCH_EPSILON
from sottovoce.guarantees import Guarantee
from sottovoce.ledger import Entry, Ledger
from sottovoce.mechanisms import names
from sottovoce.text import folded_text

chrome, service, page = browser.chrome, browser.service, browser.page
stranger, outside, page_outside = browser.stranger, browser.outside, browser.page_outside
page_as_it_opens = browser.page_as_it_opens

HOSTILE = "<script>window.caught = 1</script> melanoma"


# Searching


def test_a_search_shows_what_stayed_what_left_and_what_came_back(chrome, service):
    forget(service)
    with opened(chrome, service, risk=True) as page:
        search(page)
        assert page.inner_text("#typed blockquote") == QUERY
        assert len(sent(page)) == 20
        assert "20 queries to bm25" in page.inner_text("#left-title")
        hits = page.locator("#came .hit")
        assert hits.count() == 10
        assert re.search(r"Found by \d+ of 20 queries", hits.first.inner_text())
        assert hits.first.locator("h4").inner_text()
        own = {"treatment", "skin", "cancer"}
        assert {each.lower() for each in page.locator("#left mark").all_inner_texts()} <= own
        page.wait_for_selector("#risk strong")
        said = page.inner_text("#risk")
        assert "log of 5,142 queries" in said
        assert "of its 3 words" in said
        assert not page.traffic.complaints


def test_words_of_the_query_are_marked_among_what_left(page):
    page.check("#voice-normal-voice", force=True)
    search(page)
    marks = {each.lower() for each in page.locator("#left mark").all_inner_texts()}
    words = {word for line in sent(page) for word in re.findall(r"\w+", line.lower())}
    assert marks == words & set(QUERY.split())
    said = int(re.match(r"(\d+) of its 4 words", page.locator("#typed p").first.inner_text())[1])
    assert said == len(marks)


def test_the_browser_asks_nobody_but_its_own_service(page, service):
    search(page)
    page.click("#tab-sanitize")
    page.fill("#text", "a melanoma")
    page.click("#s-go")
    page.wait_for_selector("#s-rows td")
    page.click("#tab-mechanisms")
    page.click("#theme")
    assert len(page.traffic.requests) > 15
    assert [each for each in page.traffic.requests if not each.startswith(f"{service.url}/")] == []
    # The page's own policy would have refused more, and said so.
    assert [each for each in page.traffic.complaints if "503" not in each] == []


def test_the_query_is_in_no_address_title_history_or_storage(page, service):
    page.click("#history-on")
    search(page, "treatment for melanoma xqzzy")
    page.click("#preview")
    page.wait_for_selector("#send")
    everything = [
        *page.traffic.requests,
        page.url,
        page.title(),
        page.evaluate("JSON.stringify([history.state, history.length])"),
        page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"),
        service.log.read_text(),
    ]
    assert page.evaluate("history.length") <= 2
    for text in everything:
        assert not re.search("melanoma|xqzzy", text)
    assert TOKEN not in " ".join([page.url, *page.traffic.requests])
    box = page.locator("#query")
    assert box.get_attribute("autocomplete") == "off"
    assert box.get_attribute("spellcheck") == "false"
    assert box.get_attribute("name") is None
    assert page.locator("form").count() == 0


def test_what_the_stranger_receives_is_what_was_shown_and_nothing_else(
    chrome, outside, stranger, page_outside
):
    page, query = page_outside, "xqzzyium treatment for Zebulonitis near 1978-03-14-quartermaine"
    before = len(stranger.seen.requests)
    search(page, query)
    shown = sent(page)
    requests = stranger.seen.requests[before:]
    received = [parse_qs(urlsplit(each.target).query)["q"][0] for each in requests]
    assert sorted(received) == sorted(shown)
    assert len(received) == 20
    shapes = set()
    for each, said in zip(requests, received, strict=True):
        everything = repr((each.method, each.target, each.headers, each.body)).lower()
        for text in (everything, unquote_plus(everything)):
            assert not re.search("xqzzy|zebulon|quartermaine|1978-03", text)
        shapes.add((each.method, each.target.replace(quote(said, safe=""), ""), str(each.headers)))
    assert len(shapes) == 1  # Nothing but the variant differs.


# Previews and the budget


def test_a_preview_costs_and_sends_nothing_and_there_is_no_redraw(page_outside, outside, stranger):
    page, before = page_outside, len(stranger.seen.requests)
    page.fill("#query", QUERY)
    page.click("#preview")
    page.wait_for_selector("#send")
    first = sent(page)
    assert len(first) == 20
    assert len(stranger.seen.requests) == before
    assert spent(outside) == SEARCH_EPSILON
    assert page.locator("#redraw").count() == 0
    assert "the promise no longer holds" in page.inner_text("#left")
    page.click("#send")
    page.wait_for_selector("#came .hit")
    assert sent(page) == first
    received = [
        parse_qs(urlsplit(each.target).query)["q"][0] for each in stranger.seen.requests[before:]
    ]
    assert sorted(received) == sorted(first)
    assert spent(outside) == SEARCH_EPSILON
    assert "7.5 nats, in 1 release" in page.inner_text("#budget")


def test_a_refused_preview_leaves_what_was_drawn_and_paid_for(page, service):
    service.ask("PUT", "/v1/ledger/budget", {"per_text": None, "total": 12.5})
    page.fill("#query", QUERY)
    page.click("#preview")
    page.wait_for_selector("#send")
    first = sent(page)
    page.fill("#query", "divorce lawyer")
    for button in ("#preview", "#go"):
        page.click(button)
        assert "would cost 7.5 nats" in notice(page)
        assert sent(page) == first
    page.click("#send")
    page.wait_for_selector("#came .hit")
    assert sorted(sent(page)) == sorted(set(first))
    assert spent(service) == SEARCH_EPSILON


def test_words_sent_before_are_drawn_again_for_nothing(page, service):
    page.fill("#query", QUERY)
    page.click("#preview")
    page.wait_for_selector("#send")
    first = sent(page)
    page.click("#preview")
    page.wait_for_selector("#left :text('Drawing these cost 0 nats')")
    assert sent(page) == first
    assert spent(service) == SEARCH_EPSILON


def test_a_limit_that_is_not_saved_is_not_lost_and_saving_leaves_the_focus(page):
    page.click("#limits summary")
    page.fill("#limit-total", "40")
    page.check("#voice-whisper", force=True)
    search(page)
    page.wait_for_selector("#budget-words:text('Spent so far: 5 nats')")
    assert page.input_value("#limit-total") == "40"
    page.focus("#limit-save")
    page.keyboard.press("Enter")
    page.wait_for_selector("#budget-words:text('Left: 35 of 40 nats')")
    assert page.evaluate("document.activeElement.id") == "limit-save"
    assert page.get_attribute("#budget-words", "role") == "status"
    page.locator("#limit-total").press_sequentially("e")
    page.click("#limit-save")
    assert "number of nats" in notice(page)
    assert "of 40 nats" in page.inner_text("#budget-words")


def test_only_the_account_of_the_settings_own_space_is_shown(page, service):
    """The same notion and metric on another space: the ledger does not add them up."""

    def elsewhere(route):
        told = route.fetch().json()
        told["spent"] = [{**each, "space_sha256": "0" * 64} for each in told["spent"]]
        route.fulfill(json=told)

    page.route("**/v1/ledger", elsewhere)
    search(page)
    page.wait_for_selector("#said:text('Done')")
    assert spent(service) == SEARCH_EPSILON
    assert "Nothing is spent yet" in page.inner_text("#budget-words")
    page.unroute("**/v1/ledger")
    search(page)  # Words that were sent before cost nothing.
    page.wait_for_selector("#budget-words:text('7.5 nats')")


def test_a_spent_budget_refuses_and_says_what_to_do(page, service):
    page.click("#limits summary")
    page.fill("#limit-total", "12.5")
    page.click("#limit-save")
    page.wait_for_selector("#budget progress")
    assert "Left: 12.5 of 12.5 nats" in page.inner_text("#budget")
    search(page)
    page.wait_for_selector("#budget :text('Left: 5 of 12.5 nats')")
    page.fill("#query", "divorce lawyer")
    page.click("#go")
    said = notice(page)
    assert "would cost 7.5 nats" in said
    assert "Choose a lower voice" in said
    assert "divorce" not in said
    assert page.locator("#outcome").is_hidden()
    assert spent(service) == SEARCH_EPSILON
    page.check("#voice-whisper", force=True)
    search(page, "divorce lawyer")
    assert page.locator("#came .hit").count() > 0
    assert spent(service) == SEARCH_EPSILON + 5


def test_voices_and_details_say_what_was_measured_and_what_is_promised(page):
    assert page.locator("#voice-murmur").is_checked()
    assert "5 in 100" in page.inner_text("#meaning")
    assert "6 of 100 words (2–12; 8 queries tried)" in page.inner_text("#meaning")
    assert "−22 %" in page.inner_text("#meaning")
    page.check("#voice-whisper", force=True)
    assert "0 in 100" in page.inner_text("#meaning")
    assert "costs 5 nats" in page.inner_text("#budget")
    page.click("#details summary")
    page.fill("#epsilon", "7")
    page.keyboard.press("Tab")
    page.wait_for_selector("#meaning :text('Not measured')")
    assert page.locator("#voices :checked").count() == 0
    assert "in 100" not in page.inner_text("#meaning")
    page.select_option("#release", "independent")
    page.wait_for_selector("#budget :text('costs 140 nats')")
    page.select_option("#mechanism", "aea")
    page.wait_for_selector("#epsilon:disabled")
    page.select_option("#mechanism", "wbb")
    page.wait_for_selector("#epsilon:enabled")
    assert "promises nothing" in page.inner_text("#meaning")
    assert "Nothing bounds" in page.inner_text("#budget")


def test_the_usual_voice_is_in_company_where_its_queries_fit(page_as_it_opens):
    page = page_as_it_opens
    assert page.locator("#voice-in-company").is_checked()
    assert "In company is chosen" in page.inner_text("#voice-why")
    assert not page.locator("#own-queries").is_visible()
    search(page)
    assert {folded_text(line) for line in sent(page)} <= set(map(folded_text, demo_log()))
    assert len(sent(page)) == 20


def test_a_preview_in_company_says_what_it_is_worth(page_as_it_opens):
    page = page_as_it_opens
    page.fill("#query", QUERY)
    page.click("#preview")
    page.wait_for_selector("#send")
    typed = page.inner_text("#typed")
    assert "20 queries, drawn from 5,141 public ones" in typed
    assert "them" in page.locator("#typed p").first.inner_text()
    assert "was sent" not in typed


def test_a_history_of_one_s_own_is_warned_about_on_the_page(chrome, tmp_path):
    folder, history = home(tmp_path / "home"), tmp_path / "history.txt"
    own = [f"My own query number {number}" for number in range(30)]
    history.write_text("\n".join(own), encoding="utf-8")
    ledger = Ledger.open(folder / "ledger")
    for text in own[:5]:
        promise = Guarantee("metric", 1.0, "euclidean")
        ledger.charge(Entry(text, ("a",), "cmp:epsilon=1", "once", promise, 1, "bm25"))
    said = "5 of the 30 strings of this pool are texts that you have hidden before"
    with serving(folder, "--rerank", "light", "--log", str(history)) as service:
        assert said in " ".join(service.log.read_text().split())
        with opened(chrome, service, voice=None) as page:
            assert page.locator("#voice-in-company").is_checked()
            assert page.locator("#own-queries").is_visible()
            assert said in page.inner_text("#own-queries")


def test_a_worn_out_subject_is_said_before_sending_and_after(page_as_it_opens):
    page = page_as_it_opens
    for query in (QUERY, "melanoma survival rate"):
        search(page, query)
        assert "worn out" not in page.inner_text("#typed")
    page.fill("#query", "is a changing mole cancer")
    page.click("#preview")
    page.wait_for_selector("#send")
    assert "This subject is worn out" in page.inner_text("#left")
    page.click("#send")
    page.wait_for_selector("#came .hit")
    assert "queries on it have had 3 different companies" in page.inner_text("#typed")


def test_in_front_of_an_engine_with_its_own_documents_the_usual_voice_murmurs(chrome, outside):
    forget(outside)
    with opened(chrome, outside, voice=None) as page:
        assert page.locator("#voice-murmur").is_checked()
        assert "--log" in page.inner_text("#voice-why")


def test_the_plane_shows_where_the_setting_sits(page):
    chosen = page.locator(".plane .chosen .name")
    assert chosen.all_text_contents() == ["murmur (chosen)"]
    assert page.locator(".plane circle").count() == 8
    page.check("#voice-whisper", force=True)
    assert chosen.all_text_contents() == ["whisper (chosen)"]
    assert page.inner_text("#plane-tip").startswith(
        "cmp:prior=0.5,epsilon=5.0, once, 20 variants, "
    )
    named = page.locator(".plane g", has_text="normal voice")
    named.focus()
    assert page.inner_text("#plane-tip").startswith("cmp:prior=0.5,epsilon=15.0,")
    page.locator(".plane g", has_text="speak low").locator("circle").hover()
    assert page.inner_text("#plane-tip").startswith("cmp:prior=0.5,epsilon=10.0,")
    here = named.locator("circle").get_attribute("cx")
    page.select_option("#plane-risk", "words")
    assert named.locator("circle").get_attribute("cx") != here
    page.click("#plane summary")
    assert page.locator("#plane tbody tr").count() == 8
    assert "31 % (27 %–37 %)" in page.inner_text("#plane tbody")
    assert "Measured on 2026-01-02 with 65 queries" in page.inner_text("#plane")


def test_where_nothing_was_measured_the_page_says_what_to_run(page_outside):
    for place in ("#plane", "#meaning"):
        assert "sottovoce experiment run" in page_outside.inner_text(place)
        assert "in 100" not in page_outside.inner_text(place)


# When something is wrong


def test_an_engine_that_is_down_is_said_in_plain_words(chrome, default_space, tmp_path):
    folder = home(tmp_path / "home")
    options = engine_file(folder, servers.free_port())
    with serving(folder, *options, "--rerank", "none") as down, opened(chrome, down) as page:
        search(page)
        said = notice(page)
        assert "refused the connection" in said
        assert "See that the search engine runs" in said
        assert "cancer" not in said
        assert page.locator("#outcome").is_hidden()
        down.stop()
        page.click("#go")
        page.wait_for_selector("#notice :text('does not answer')")
        assert "sottovoce serve" in page.inner_text("#notice")


def test_while_the_service_loads_the_page_waits_and_then_shows_the_voices(chrome, service):
    forget(service)
    context = chrome.new_context()
    page = context.new_page()
    asked = []

    def loading(route):
        asked.append(1)
        told = route.fetch().json()
        route.fulfill(json={**told, "status": "loading"} if len(asked) < 3 else told)

    page.route("**/health", loading)
    page.goto(service.address)
    page.wait_for_selector("#voice-words:text('Loading')")
    page.wait_for_selector("#plane > *")
    assert len(asked) == 3
    assert page.locator("#notice").is_hidden()
    context.close()


def test_without_a_setting_that_is_shown_nothing_is_sent(chrome, service):
    forget(service)
    context = chrome.new_context()
    page = context.new_page()
    page.route("**/v1/voices", lambda route: route.fulfill(status=504, json={"kind": "timeout"}))
    page.goto(service.address)
    assert "service failed" in notice(page)
    for button in ("#go", "#preview"):
        page.evaluate("document.getElementById('notice').hidden = true")
        page.fill("#query", QUERY)
        page.click(button)
        assert "service failed" in notice(page)
    assert spent(service) == 0
    context.close()


def test_a_setting_that_is_refused_is_not_searched_with(page, service):
    page.click("#details summary")
    page.fill("#epsilon", "0")
    page.keyboard.press("Tab")
    assert "Epsilon: Input should be greater" in notice(page)
    page.fill("#query", QUERY)
    page.click("#go")
    page.wait_for_selector("#stop", state="hidden")
    assert "Epsilon: Input should be greater" in notice(page)
    assert spent(service) == 0
    page.check("#voice-whisper", force=True)
    search(page)
    assert spent(service) == 5


def test_without_a_word_space_the_page_opens_and_says_what_to_run(chrome, tmp_path):
    with serving(tmp_path, "--rerank", "none") as bare:
        page = chrome.new_page()
        page.goto(bare.address)
        assert "sottovoce spaces add default" in notice(page)
        page.click("#tab-mechanisms")
        assert page.locator("#cards article").count() == len(names())
        page.click("#tab-search")
        page.fill("#query", QUERY)
        page.click("#go")
        page.wait_for_selector("#said:text-is('')", state="attached")
        assert "sottovoce spaces add default" in notice(page)
        page.close()


def test_a_full_service_is_said_and_escape_stops_a_search(page_outside, outside, stranger):
    page, stranger_busy = page_outside, stranger.answering

    def ask(_):
        try:
            outside.ask("POST", "/v1/search", {"query": "warm bread", "n": 1, "mechanism": "cmp"})
        except HTTPError as refused:
            return refused.code
        return 200

    stranger_busy.clear()
    with ThreadPoolExecutor(100) as pool:
        try:
            asked = [pool.submit(ask, number) for number in range(100)]
            until = time.monotonic() + 30
            while not any(each.done() for each in asked) and time.monotonic() < until:
                time.sleep(0.05)
            page.fill("#query", QUERY)
            page.click("#go")
            said = notice(page)
        finally:
            stranger_busy.set()
    assert "its queue is full" in said
    assert "Wait a moment" in said
    assert {each.result() for each in asked} == {200, 503}

    stranger_busy.clear()
    try:
        page.click("#go")
        page.wait_for_selector("#steps li.now:text('Sending')")
        assert page.locator("#stop").is_visible()
        page.keyboard.press("Escape")
        page.wait_for_selector("#said:text('Stopped')")
        assert page.locator("#stop").is_hidden()
        assert page.locator("#notice").is_hidden()
    finally:
        stranger_busy.set()
    search(page)
    assert page.locator("#came .hit").count() == 3


def test_a_page_without_its_token_says_which_address_to_open(chrome, service):
    context = chrome.new_context()
    page = context.new_page()
    page.goto(f"{service.url}/")
    assert "address that the terminal printed" in notice(page)
    page.goto(f"{service.url}/#token=wrong")
    page.wait_for_selector("#notice :text('token is missing or wrong')")
    assert "wrong" not in page.url
    page.goto(service.address)
    page.wait_for_selector("#plane > *")
    assert page.locator("#notice").is_hidden()
    context.close()


def test_markup_in_queries_and_hits_is_shown_as_text(page_outside):
    page = page_outside
    dialogs = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.dismiss()))
    scripts = page.evaluate("document.scripts.length")
    page.click("#history-on")
    search(page, HOSTILE)
    assert page.inner_text("#typed blockquote") == HOSTILE
    assert page.locator("#came h4").all_inner_texts() == [TITLE] * 3
    assert page.locator("#came .hit p").first.inner_text() == "<b>so</b>"
    assert page.locator("#came b, #came img, #came script").count() == 0
    page.wait_for_selector("#history li")
    assert page.inner_text("#history button") == HOSTILE
    page.click("#tab-sanitize")
    page.fill("#text", HOSTILE)
    page.click("#s-go")
    page.wait_for_selector("#s-rows td")
    assert page.locator("#s-rows td").first.inner_text() == HOSTILE
    assert page.evaluate("window.caught") is None
    assert page.evaluate("document.scripts.length") == scripts
    assert not dialogs


# History


def test_history_is_off_until_switched_on_and_can_be_wiped(page, service):
    file = service.home / "history.json"
    assert not page.locator("#history-on").is_checked()
    search(page)
    assert page.locator("#history li").count() == 0
    assert not file.exists()
    page.click("#history-on")
    page.wait_for_selector("#history-wipe", state="visible")
    search(page, "divorce lawyer")
    page.wait_for_selector("#history li")
    assert page.locator("#history button").all_inner_texts() == ["divorce lawyer"]
    assert file.stat().st_mode & 0o777 == 0o600
    page.fill("#query", "")
    page.click("#history button")
    assert page.input_value("#query") == "divorce lawyer"
    page.click("#history-wipe")
    page.wait_for_selector("#history-words:text('Nothing is kept yet')")
    assert b"divorce" not in file.read_bytes()
    page.click("#history-on")
    page.wait_for_selector("#history-words:text('Off')")
    assert not file.exists()


def test_a_damaged_history_can_be_wiped_and_stops_nothing(chrome, service):
    forget(service)
    file = service.home / "history.json"
    file.write_text('{"searches": [')
    with opened(chrome, service) as page:
        assert page.locator("#voice-murmur").is_checked()
        assert "cannot be read" in page.inner_text("#history-words")
        page.click("#history-wipe")
        page.wait_for_selector("#history-words:text('Nothing is kept yet')")
    forget(service)


def test_a_page_that_is_left_keeps_nothing_of_what_was_typed(page, service):
    page.click("#history-on")
    search(page, "treatment for melanoma")
    page.wait_for_selector("#history li")
    page.click("#preview")
    page.wait_for_selector("#send")
    page.click("#tab-sanitize")
    page.fill("#text", "a melanoma")
    page.click("#s-go")
    page.wait_for_selector("#s-rows td")
    held = """() => document.documentElement.outerHTML
      + [...document.querySelectorAll("input, textarea")].map(each => each.value).join()"""
    assert "melanoma" in page.evaluate(held)
    page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))")
    assert "melanoma" not in page.evaluate(held)
    assert page.locator("#send").count() == 0
    page.evaluate("window.before = true")
    page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    page.wait_for_function("window.before === undefined")
    page.wait_for_selector("#plane > *")
