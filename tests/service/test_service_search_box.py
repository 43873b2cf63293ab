"""Who may search by the browser's search box, and what comes of a key that is not the right one."""

from __future__ import annotations

import stat
from xml.etree import ElementTree

import pytest

pytest.importorskip("fastapi")

from service_client import QUERY, SETTINGS, as_user

from sottovoce.app.search_box import LIFETIME, MOST, SearchBox

FROM_BAR = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
NAMES = {"": "http://a9.com/-/spec/opensearch/1.1/"}


@pytest.fixture
def box(client, tmp_path, monkeypatch):
    """The box of the service, off, with a file of its own."""
    box = client.app.state.service.search_box
    monkeypatch.setattr(box, "file", tmp_path / "home" / "search-box.key")
    return box


@pytest.fixture
def key(client, box):
    client.put("/v1/search-box", json={"on": True})
    return box.key()


@pytest.fixture
def stranger(client):
    """A browser, or a program, without the token."""
    asking = as_user(client.app)
    del asking.headers["X-Sottovoce-Token"]
    asking.follow_redirects = False
    return asking


def ask(client, key, **headers):
    return client.post(f"/ask/{key}", data={"q": QUERY}, headers={**FROM_BAR, **headers})


def test_it_is_off_until_switched_on_and_its_key_lasts(client, box, stranger):
    assert client.get("/v1/search-box").json()["on"] is False
    assert box.key() is None
    assert stranger.put("/v1/search-box", json={"on": True}).status_code == 401
    assert client.put("/v1/search-box", json={"on": True}).json()["on"] is True
    key = box.key()
    assert stat.S_IMODE(box.file.stat().st_mode) == 0o600
    assert client.put("/v1/search-box", json={"on": True}).json()["address"].count(key) == 1
    assert SearchBox(box.base, box.file).key() == key
    assert client.put("/v1/search-box", json={"on": False}).json()["address"] is None
    assert not box.file.exists()
    assert ask(stranger, key).status_code == 401
    client.put("/v1/search-box", json={"on": True})
    assert box.key() != key


def test_descriptions_offer_one_address_and_no_suggestions(stranger, key):
    base = f"http://127.0.0.1:{SETTINGS.port}"
    expected = {
        "form": ("post", f"{base}/ask/{key}", [{"name": "q", "value": "{searchTerms}"}]),
        "fragment": ("get", f"{base}/ask#key={key}&q={{searchTerms}}", []),
    }
    for kind, (method, template, parameters) in expected.items():
        # Firefox asks for it as if another site did.
        headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
        answer = stranger.get(f"/opensearch/{key}/{kind}.xml", headers=headers)
        assert answer.headers["content-type"].startswith("application/opensearchdescription+xml")
        (url,) = ElementTree.fromstring(answer.text).findall("Url", NAMES)
        assert (url.get("type"), url.get("method")) == ("text/html", method)
        assert url.get("template") == template
        assert [element.attrib for element in url] == parameters


def test_nobody_without_the_key_reads_a_description(stranger, key):
    for path in ("/opensearch/wrong/form.xml", f"/opensearch/{key[:-1]}/fragment.xml"):
        assert stranger.get(path).status_code == 404
        assert stranger.get(path, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    right = f"/opensearch/{key}/form.xml"
    assert stranger.post(right, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403


def test_the_form_of_the_address_bar_leads_to_a_code_that_is_good_for_once(stranger, key):
    led = ask(stranger, key)
    assert led.status_code == 303
    where = led.headers["location"]
    assert where.startswith("/#asked=")
    assert "skin" not in where
    code = where.removeprefix("/#asked=")
    told = stranger.get(f"/asked/{code}")
    assert told.json() == {"query": QUERY, "token": SETTINGS.token}
    assert told.headers["cache-control"] == "no-store"
    assert stranger.get(f"/asked/{code}").status_code == 404


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 401),
        ({"Sec-Fetch-Mode": "cors"}, 401),
        ({"Sec-Fetch-Dest": "iframe"}, 401),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Host": "evil.example"}, 421),
    ],
)
def test_a_form_of_a_page_is_refused_even_with_the_key(stranger, key, headers, status):
    assert ask(stranger, key, **headers).status_code == status


def test_a_form_without_the_key_or_from_a_browser_that_does_not_say_is_refused(stranger, key):
    assert ask(stranger, "wrong").status_code == 401
    assert stranger.post(f"/ask/{key}", data={"q": QUERY}).status_code == 401
    assert stranger.get(f"/ask/{key}", params={"q": QUERY}, headers=FROM_BAR).status_code == 405


def test_the_key_opens_what_the_token_opens(stranger, key):
    trusted = {"X-Sottovoce-Token": key}
    assert stranger.get("/v1/history").status_code == 401
    assert stranger.get("/v1/history", headers=trusted).status_code == 200


def test_what_waits_for_its_page_is_bounded_and_forgotten(tmp_path):
    now = [0.0]
    box = SearchBox("http://127.0.0.1:1", tmp_path / "key", lambda: now[0])
    codes = [box.keep(f"query {number}") for number in range(MOST + 1)]
    assert box.take(codes[0]) is None
    assert box.take(codes[1]) == "query 1"
    now[0] = LIFETIME
    assert box.take(codes[2]) is None


def test_the_page_for_fragments_is_said_not_to_be_here(stranger):
    answer = stranger.get("/ask")
    assert answer.status_code == 404
    assert "data:," in answer.text
    assert stranger.get("/").text == answer.text.replace("data:,", "/static/icon.svg")
