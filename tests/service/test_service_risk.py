"""The risk of one query, as the service measures it, and the voice in company."""

from __future__ import annotations

from collections import OrderedDict

import pytest
from service_client import QUERY, events

from sottovoce.collections import demo_log
from sottovoce.ledger import Ledger
from sottovoce.mechanisms.company import UNIFORM, Company
from sottovoce.pools import Pool
from sottovoce.text.comparing import folded_text


def test_the_risk_of_a_query_is_measured_on_its_own_variants(in_order):
    told = in_order.post(
        "/v1/risk",
        json={
            "query": QUERY,
            "variants": [QUERY] * 5,
            "mechanism": "cmp",
            "epsilon": 10,
            "release": "independent",
        },
    ).json()
    assert told["query"]["rank"] == 1
    assert told["query"]["log"] > 500
    assert (told["words"]["recovered"], told["words"]["of"]) == (4, 4)
    assert "at the first guess" in told["sentence"]
    assert "reads 4 of its 4 words" in told["sentence"]
    for risk in (told["query"], told["words"]):
        assert f"({risk['by']})" in risk["sentence"]
        assert risk["knows"] in risk["sentence"]
        assert (
            "log of" in risk["knows"] or "uniform" in risk["knows"] or "variants" in risk["knows"]
        )
        assert risk["sentence"] in told["sentence"]
    assert f"a log of {told['query']['log']:,} queries with the true one in it" in told["sentence"]


def test_the_risk_of_unrelated_variants_is_small(in_order):
    body = {"query": QUERY, "variants": ["football world cup final"] * 3, "mechanism": "cmp"}
    told = in_order.post("/v1/risk", json={**body, "epsilon": 10, "release": "independent"}).json()
    assert told["query"]["rank"] > 10
    assert told["words"]["recovered"] == 0


def test_words_in_random_order_are_attacked_without_it(client):
    """Place by place, attacks would find little, and reassure wrongly."""
    orders = ["cancer skin for treatment", "skin treatment for cancer", "for cancer treatment skin"]
    body = {"query": QUERY, "variants": orders, "release": "independent"}
    told = client.post("/v1/risk", json=body).json()
    assert told["query"]["rank"] == 1
    assert (told["words"]["recovered"], told["words"]["of"]) == (4, 4)


def test_the_risk_of_a_preview_needs_no_variants(in_order):
    drawn = in_order.post("/v1/preview", json={"query": QUERY, "n": 2}).json()
    body = {"query": QUERY, "n": 2, "preview": drawn["preview"]}
    assert in_order.post("/v1/risk", json=body).json()["words"]["of"] == 3
    other = in_order.post("/v1/risk", json={**body, "query": "divorce lawyer"})
    assert other.status_code == 409


def test_a_mechanism_without_words_says_that_they_were_not_measured(client):
    body = {"query": QUERY, "n": 2, "mechanism": "comet-cmp"}
    drawn = client.post("/v1/preview", json=body).json()
    told = client.post("/v1/risk", json={**body, "preview": drawn["preview"]}).json()
    assert told["words"] is None
    assert "not measured" in told["sentence"]
    assert "a log of" in told["query"]["knows"]  # Whichever attack is the strongest this time.
    other = client.post("/v1/risk", json={**body, "variants": ["football"]})
    assert other.status_code == 422
    assert "no string of this pool" in other.json()["error"]


def test_a_voice_in_company_sends_public_queries_and_says_what_that_is_worth(client):
    body = {"query": QUERY, "voice": "in-company", "top": 3, "measure": True}
    first = client.post("/v1/search", json=body).json()
    again = client.post("/v1/search", json=body).json()
    log = set(map(folded_text, demo_log()))
    assert len(first["sent"]) == 20
    assert all(folded_text(sent) in log for sent in first["sent"])
    assert sorted(first["sent"]) == sorted(again["sent"])
    assert again["recalled"]
    assert first["company"]["sentence"]
    assert first["company"]["whether_sent"]
    assert "names the one that stands for yours" in first["risk"]["sentence"]
    assert first["risk"]["query"]["knows"]


def test_a_preview_in_company_says_what_that_is_worth_before_anything_is_sent(client):
    drawn = client.post("/v1/preview", json={"query": QUERY, "voice": "in-company"}).json()
    told = drawn["company"]
    assert (told["sent"], told["query_sent"]) == (False, False)
    assert "among them" in told["whether_sent"] or "one of them" in told["whether_sent"]
    assert "sent" not in told["whether_sent"]
    body = {"query": QUERY, "voice": "in-company", "preview": drawn["preview"]}
    left = client.post("/v1/search", json=body).json()["company"]
    for same in ("sentence", "representative", "is_text", "drawn", "guesses"):
        assert told[same] == left[same]
    assert told["drawn"] == left["sent"]


@pytest.mark.parametrize(
    ("is_text", "drawn", "sent", "says"),
    [
        (True, True, True, "The query itself is public, and {}."),
        (False, True, True, "Not the query itself, but the nearest public one {}."),
        (False, False, True, "Not the query itself, but the nearest public one {}. Its own group"),
        (True, False, True, "The query itself is public, and {}. Its own group was left out"),
        (False, False, False, "Neither the query nor what stands for it"),
        (True, False, False, "Neither the query nor what stands for it"),
    ],
)
def test_what_a_preview_says_of_what_stands_for_the_query(is_text, drawn, sent, says):
    """The same as after the search, but for when."""
    company = Company(
        queries=20,
        groups=20,
        group_size=1,
        pool=100,
        representative="a public query",
        is_text=is_text,
        drawn=drawn,
        sent=sent,
        inclusion=0.9,
        epsilon=5.0,
        guesses={UNIFORM: 0.05},
    )
    told = company.unsent()
    assert says.format("is one of them") in told["whether_sent"]
    assert says.format("was sent as one of them") in company.whether_sent
    assert "sent" not in told["whether_sent"]
    assert ("left out by chance" in told["whether_sent"]) == (not drawn)
    assert told["sentence"] == company.sentence
    assert not told["sent"]


@pytest.mark.parametrize("voices", [("in-company", "murmur"), ("murmur", "in-company")])
def test_a_query_is_asked_elsewhere_in_one_voice_and_the_service_says_so(
    client, monkeypatch, voices
):
    """By its words it could be named among its company."""
    parts = client.app.state.service.parts
    monkeypatch.setattr(parts.engine(), "remote", True)
    first, other = ({"query": QUERY, "voice": voice} for voice in voices)
    assert client.post("/v1/search", json=first).status_code == 200
    for path, body in (
        ("/v1/search", {**other, "query": QUERY.upper()}),
        ("/v1/search", {**other, "measure": True}),
        ("/v1/preview", other),
    ):
        refused = client.post(path, json=body)
        assert (refused.status_code, refused.json()["kind"]) == (409, "company")
        assert "same way as before" in refused.json()["error"]
        assert "cancer" not in refused.text.lower()
    told = events(client, "/v1/search", other)[-1]
    assert (told["step"], told["status"], told["kind"]) == ("failed", 409, "company")
    assert len(Ledger.open().entries()) == 1
    assert client.post("/v1/search", json=first).json()["spent"] == 0


def test_without_a_pool_to_hide_in_there_is_no_voice_in_company(client, monkeypatch):
    parts = client.app.state.service.parts
    monkeypatch.setattr(parts, "pool", lambda: Pool(["one", "two"], "light"))
    monkeypatch.setattr(parts, "_mechanisms", OrderedDict())
    told = client.get("/v1/voices").json()
    assert [each["id"] for each in told["voices"]][-1] == "normal-voice"
    refused = client.post("/v1/search", json={"query": QUERY, "voice": "in-company"})
    assert refused.status_code == 422
    assert QUERY not in refused.text
