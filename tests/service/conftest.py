"""One service for all tests of this folder, in this process, on the demo collection."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sottovoce.paths import cache_folder

if TYPE_CHECKING:
    from starlette.testclient import TestClient


@pytest.fixture(scope="session")
def loaded(everyday_words: Any) -> Iterator[Any]:
    """Its ledger and history are wherever $SOTTOVOCE_HOME says then."""
    from service_client import SETTINGS, as_user

    from sottovoce.app.service import create_app

    with as_user(create_app(replace(SETTINGS, space=str(everyday_words.folder)))) as client:
        while client.get("/health").json()["status"] == "loading":
            time.sleep(0.05)
        yield client


@pytest.fixture
def client(loaded: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    home = tmp_path / "home"
    home.mkdir()
    for name in ("spaces", "embeddings", "strong", "wordnet"):
        if (cache_folder() / name).exists():
            (home / name).symlink_to(cache_folder() / name)
    monkeypatch.setenv("SOTTOVOCE_HOME", str(home))
    service = loaded.app.state.service  # type: ignore[attr-defined]
    monkeypatch.setattr(service.history, "file", home / "history.json")
    return loaded


@pytest.fixture
def in_order(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    """As if the service had been started with --in-order."""
    parts = client.app.state.service.parts  # type: ignore[attr-defined]
    monkeypatch.setattr(parts, "settings", replace(parts.settings, shuffle=False))
    return client
