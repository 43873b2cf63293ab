"""Requests made from the OpenAPI document, right and wrong: never a 500, never another answer."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Iterator
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sottovoce.paths import cache_folder

pytest.importorskip("fastapi")
pytest.importorskip("schemathesis")

import schemathesis
from schemathesis import Case
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.testclient import TestClient

from sottovoce.app.service import create_app
from sottovoce.app.settings import Settings
from sottovoce.mechanisms import names

SETTINGS = Settings(reranker="light", token="0123456789abcdef-token")
AS_USER = {"X-Sottovoce-Token": SETTINGS.token}
URL = f"http://127.0.0.1:{SETTINGS.port}"
CHECKS = [
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
    negative_data_rejection,
]
APP = create_app(SETTINGS)


def document() -> dict[str, Any]:
    """The document as one with the token reads it: others are test_app_security's."""
    told = copy.deepcopy(APP.openapi())
    for methods in told["paths"].values():
        for operation in methods.values():
            operation.pop("security", None)
    return told


schema = schemathesis.openapi.from_dict(document())
EXAMPLES = int(os.environ.get("SOTTOVOCE_EXAMPLES", "15"))
"""For each operation; docs/reliability.md says what a run with more found."""
FEW = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[*HealthCheck],
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, default_space: Any) -> Iterator[TestClient]:
    home = tmp_path_factory.mktemp("home")
    for name in ("spaces", "embeddings", "strong", "wordnet"):
        if (cache_folder() / name).exists():
            (home / name).symlink_to(cache_folder() / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOTTOVOCE_HOME", str(home))
        with TestClient(APP, base_url=URL, headers=AS_USER) as opened:
            while opened.get("/health").json()["status"] == "loading":
                time.sleep(0.05)
            yield opened


def answered(client: TestClient, case: Case) -> Any:
    """The service's answer to a case, in this process."""
    asked = case.as_transport_kwargs(base_url=URL)
    headers = {key: value for key, value in asked["headers"].items() if key.lower() != "host"}
    data = {"json": asked["json"]} if asked.get("json") is not None else {}
    if asked.get("data") is not None:
        data = {"content": asked["data"]}
    return client.request(
        asked["method"], asked["url"], params=asked.get("params"), headers=headers, **data
    )


@schema.parametrize()
@FEW
def test_the_service_keeps_to_its_document(case: Case, client: TestClient) -> None:
    answer = answered(client, case)
    assert answer.status_code != 500
    case.validate_response(answer, checks=CHECKS)


@FEW
@given(
    text=st.text(max_size=60),
    name=st.sampled_from([name for name in names() if name != "aea"]),
    epsilon=st.none() | st.floats(1e-3, 1e3),
    n=st.integers(1, 5),
    release=st.sampled_from(["once", "independent"]),
    seed=st.none() | st.integers(0, 2**63 - 1),
)
def test_any_text_goes_through_any_mechanism_or_is_refused(client: TestClient, **body: Any) -> None:
    body["mechanism"] = body.pop("name")
    answer = client.post("/v1/obfuscate", json=body)
    assert answer.status_code in (200, 422)
    if answer.status_code == 200:
        told = answer.json()
        # Texts of words come back in one Unicode form, as from the command.
        assert normalize("NFC", told["text"]) == normalize("NFC", body["text"])
        decides_itself = body["mechanism"] in (
            *("fea", "versatile", "incognito"),
            *("cover", "cover-subjects"),
        )
        assert len(told["variants"]) == body["n"] or decides_itself
        assert told["seeded"] == (body["seed"] is not None)


@FEW
@given(st.text(max_size=40), st.sampled_from(["whisper", "normal-voice"]))
def test_any_query_is_searched_or_refused(client: TestClient, query: str, voice: str) -> None:
    client.put("/v1/ledger/budget", json={"per_text": None, "total": None})
    answer = client.post("/v1/search", json={"query": query, "voice": voice, "top": 2})
    assert answer.status_code == (200 if query.strip() else 422)


@FEW
@given(st.lists(st.text(max_size=30), max_size=4), st.text(max_size=40))
def test_any_texts_and_tables_are_sanitized_or_refused(
    client: TestClient, texts: list[str], table: str
) -> None:
    told = client.post("/v1/sanitize", json={"texts": texts}).json()
    assert [row["original"] for row in told["rows"]] == texts
    for row in told["rows"]:
        assert all(0 <= start < end <= len(row["sanitized"]) for start, end in row["changed"])
    answer = client.post("/v1/sanitize", json={"csv": f"text,b\n{table}", "column": "text"})
    assert answer.status_code in (200, 422)
