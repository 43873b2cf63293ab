"""The service as tests start and ask it."""

from __future__ import annotations

import json
from typing import Any

from starlette.testclient import TestClient

from sottovoce.app.settings import Settings

QUERY = "treatment for skin cancer"
SPACE = "glove-840b-34k"
"""Smaller than the default space; the service that all tests share has fewer words still."""
SETTINGS = Settings(reranker="light", space=SPACE, token="0123456789abcdef-token")


def as_user(app: Any, settings: Settings = SETTINGS) -> TestClient:
    return TestClient(
        app,
        base_url=f"http://127.0.0.1:{settings.port}",
        headers={"X-Sottovoce-Token": settings.token},
    )


def events(client: TestClient, path: str, body: Any) -> list[dict[str, Any]]:
    answer = client.post(path, json=body, headers={"Accept": "application/x-ndjson"})
    assert answer.status_code == 200
    return [json.loads(line) for line in answer.text.splitlines()]
