"""The service says when a subject is worn out: before something is sent, and with the answer."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi")

from service_client import QUERY, as_user

from sottovoce.app.service import create_app

OTHERS_ON_IT = ["melanoma survival rate", "is a changing mole cancer"]


def asked(client, query, path="search", voice="in-company", **more):
    answer = client.post(f"/v1/{path}", json={"query": query, "voice": voice, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_worn_out_subject_is_said_before_and_after_sending(client):
    assert asked(client, QUERY)["worn_out"] is None
    assert asked(client, OTHERS_ON_IT[0], "preview")["worn_out"] is None
    drawn = asked(client, OTHERS_ON_IT[1], "preview")
    assert "3 different companies" in drawn["worn_out"]
    answered = asked(client, OTHERS_ON_IT[1], preview=drawn["preview"])
    assert answered["worn_out"] == drawn["worn_out"]
    assert asked(client, "debt advice")["worn_out"] is None
    assert asked(client, QUERY, voice="whisper")["worn_out"] is None


def test_a_restart_forgets_nothing(client):
    for query in (QUERY, OTHERS_ON_IT[0]):
        asked(client, query)
    with as_user(create_app(client.app.state.service.settings)) as restarted:
        assert "3 different companies" in asked(restarted, OTHERS_ON_IT[1])["worn_out"]
