"""Voices and settings with the figures that were measured of exactly them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("fastapi")

from service_client import QUERY, SETTINGS
from starlette.testclient import TestClient

from sottovoce import defaults
from sottovoce.app import measured
from sottovoce.app.loaded import LoadedParts
from sottovoce.app.schemas import (
    VOICES,
    ProtectionBody,
)
from sottovoce.collections import demo_log, load_collection
from sottovoce.encoders.strong import StrongEncoder
from sottovoce.engines import BM25
from sottovoce.experiments.summary import LAYOUT, among, remember
from sottovoce.mechanisms import cover_for, mechanism, parse, usual_decoys
from sottovoce.output_vocabularies import choose_output
from sottovoce.pools import Pool, load_pool, read_pool
from sottovoce.privacy.attacks.query_log import QueryLog

ALIGNED = {"by": "aligned", "knows": "the mechanism; a log of 524 queries with the true one in it"}

TEXTS_OF_A_SEARCH = {
    "order": "shuffled",
    "protect": "content",
    "unprotected": "drop",
    "output_vocabulary": "demo",
}

CONTEXT = {"by": "context", "knows": "the mechanism; what is said together: trigrams, a log"}


@pytest.fixture(autouse=True)
def as_by_default(loaded, monkeypatch):
    """As if no space had been chosen: figures are of the default one."""
    parts = loaded.app.state.service.parts
    monkeypatch.setattr(parts, "settings", replace(SETTINGS, space=None))


def summary(client: TestClient, **changed: Any) -> dict[str, Any]:
    setting = {
        "mechanism": "cmp",
        "spec": "cmp:prior=0.5,epsilon=7.5",
        "epsilon": 7.5,
        "release": "once",
        "n": 20,
        "nDCG@10": {"value": 0.32, "low": 0.25, "high": 0.4, "queries": 65},
        "lazy": {"value": 0.05, "low": 0.0, "high": 0.12, "queries": 64, **ALIGNED},
        "words": {"value": 0.0625, "low": 0.03, "high": 0.1, "queries": 8, **CONTEXT},
        "texts": TEXTS_OF_A_SEARCH,
    }
    parts = client.app.state.service.parts  # type: ignore[attr-defined]
    return {
        "layout": LAYOUT,
        "collection": "demo",
        "fingerprint": parts.engine().fingerprint,
        "log_sha256": parts.log_sha256(),
        "made": "2026-01-02T03:04:05+00:00",
        "queries": 65,
        "log": 524,
        "engine": "bm25",
        "reranker": "light",
        "depth": 10,
        "baseline": {"nDCG@10": 0.64},
        "settings": [setting],
        **changed,
    }


def test_voices_show_what_was_measured_of_exactly_their_setting(client, tmp_path, monkeypatch):
    monkeypatch.setattr(measured, "packaged", tuple)
    remember([summary(client)])
    told = client.get("/v1/voices").json()
    assert told["default"] == "in-company"
    assert [each["id"] for each in told["voices"]] == [
        *("whisper", "murmur", "speak-low", "normal-voice", "in-company"),
    ]
    assert "2026-01-02" in told["measured"]["sentence"]
    whisper, murmur = told["voices"][:2]
    assert murmur["sentences"] == {
        "query": "The strongest of the attacks tried (aligned) names your query at the first guess "
        "in 5 of 100 cases (0–12; 64 queries tried). The attacker knows the mechanism; a log of "
        "524 queries with the true one in it.",
        "words": "The strongest of the attacks tried (context) recovers 6 of 100 words (3–10; 8 "
        "queries tried). The attacker knows the mechanism; what is said together: trigrams, a log.",
        "utility": "You find 50% of what you would find without privacy (nDCG@10, 65 queries "
        "tried).",
    }
    assert murmur["risk"]["words"]["value"] == 0.0625
    assert murmur["cost"] == 7.5
    assert whisper["sentences"] == {"query": None, "words": None, "utility": None}
    assert "experiment run" in whisper["not_measured"]
    points = client.get("/v1/plane").json()["points"]
    assert [each["spec"] for each in points] == ["cmp:prior=0.5,epsilon=7.5"]
    assert "6 of 100 words" in points[0]["tooltip"]
    assert murmur["not_measured"] is None
    assert (murmur["point"], whisper["point"]) == (points[0]["id"], None)
    again = {"voice": "murmur", "fresh": True}
    for same in ({"epsilon": 7.5}, again, {"mechanism": "cmp:epsilon=7.5"}):
        described = client.post("/v1/setting", json=same).json()
        assert (described["risk"], described["point"]) == (murmur["risk"], murmur["point"])
    for other in (
        {"epsilon": 8.0},
        {"epsilon": 7.5, "n": 19},
        {"epsilon": 7.5, "release": "independent"},
        {"epsilon": 7.5, "set": {"prior": 0.25}},
    ):
        assert client.post("/v1/setting", json=other).json()["utility"] is None


def test_the_package_has_figures_of_every_voice():
    from sottovoce.experiments.fingerprints import digest

    assert measured.PACKAGED.exists(), "see tools/measured_figures.py"
    engine, log = BM25(load_collection("demo").documents), QueryLog(demo_log())
    pool = load_pool("demo", "light")
    company = mechanism(cover_for(defaults.VARIANTS).spec, pool=pool, decoys=usual_decoys(pool))
    for reranker in ("light", "strong"):
        place = (engine.fingerprint, "bm25", reranker, defaults.DEMO_DEPTH)
        found = among(measured.packaged(), *place)
        assert found is not None, reranker
        assert found["log_sha256"] == digest(log.queries)
        assert found["baseline"][measured.MAIN] > 0
        for voice in VOICES:
            if voice.epsilon is None:
                spec, texts = parse(company.spec), {"pool": "demo", "encoder": "strong"}
            else:
                spec, texts = parse("cmp:prior=0.5", epsilon=voice.epsilon), TEXTS_OF_A_SEARCH
            wanted = (spec, "once", defaults.VARIANTS)
            (own,) = (
                each
                for each in found["settings"]
                if each["spec"] and (parse(each["spec"]), each["release"], each["n"]) == wanted
            )
            assert texts.items() <= own["texts"].items()
            assert (own["pool_sha256"] is None) == (voice.epsilon is not None)
            if voice.epsilon is None and StrongEncoder.installed():
                assert own["pool_sha256"] == read_pool("demo", "strong").sha256
            assert (own["words"] is None) == (voice.epsilon is None)
            for figure in ("lazy", measured.MAIN, *(() if own["words"] is None else ("words",))):
                assert own[figure]["queries"] > 0
                assert figure == measured.MAIN or (own[figure]["by"] and own[figure]["knows"])
                assert own[figure]["low"] <= own[figure]["value"] <= own[figure]["high"]


def test_figures_of_weaker_attacks_are_no_longer_shown(client, tmp_path, monkeypatch):
    """Earlier experiments did not record what attackers knew."""
    old = summary(client, layout=1)
    monkeypatch.setattr(measured, "packaged", lambda: (old,))
    remember([old])
    told = client.post("/v1/setting", json={"voice": "murmur"}).json()
    assert told["sentences"] == {"query": None, "words": None, "utility": None}
    assert "experiment run" in told["not_measured"]


def test_figures_of_another_pool_are_not_shown_whatever_it_is_called(client, monkeypatch):
    """Nor those of other vectors, which decide what stands for a query."""
    parts = client.app.state.service.parts
    company = parts.protection(ProtectionBody(voice="in-company"))
    mechanism = company.obfuscator.mechanism
    pool = mechanism.pool
    found = summary(client)
    (own,) = found["settings"]
    own |= {
        "mechanism": mechanism.spec,
        "spec": mechanism.spec,
        "n": company.obfuscator.n,
        "texts": {"pool": pool.name, "encoder": pool.encoder.name},
    }
    other = Pool(["another string", *pool.strings], pool.encoder, name=pool.name)
    without = {name: value for name, value in own.items() if name != "pool_sha256"}
    for measured_of, shown in (
        ({**own, "pool_sha256": pool.sha256}, True),
        ({**own, "pool_sha256": other.sha256}, False),
        ({**own, "pool_sha256": None}, False),
        (without, False),
    ):
        told = measured.figures_of(parts, {**found, "settings": [measured_of]}, company)
        assert (told is not None) == shown
    popular = Pool(pool.strings, pool.encoder, name=pool.name, weights=range(1, len(pool) + 1))
    drawing = replace(company.obfuscator, mechanism=replace(mechanism, pool=popular))
    found["settings"] = [{**own, "pool_sha256": popular.sha256}]
    assert measured.figures_of(parts, found, replace(company, obfuscator=drawing)) is None


def test_figures_of_another_query_log_are_not_shown(client, tmp_path, monkeypatch):
    monkeypatch.setattr(measured, "packaged", tuple)
    remember([summary(client, log_sha256="0" * 64)])
    told = client.post("/v1/setting", json={"voice": "murmur"}).json()
    assert told["risk"]["query"] is None
    assert told["sentences"]["query"] is None
    assert "not measured with this query log" in told["not_measured"]
    assert "6 of 100 words" in told["sentences"]["words"]
    plane = client.get("/v1/plane").json()
    assert plane["points"][0]["risk"]["query"] is None
    assert plane["measured"]["log"] is None


def test_figures_of_another_depth_hide_none_that_fit(client, tmp_path, monkeypatch):
    deep, fitting = summary(client, depth=100, made="2026-02-02"), summary(client)
    monkeypatch.setattr(measured, "packaged", lambda: (deep, fitting))
    remember([deep])
    assert client.get("/v1/voices").json()["measured"]["made"] == fitting["made"]
    remember([summary(client, made="2026-03-03")])
    assert client.get("/v1/voices").json()["measured"]["made"] == "2026-03-03"


def test_a_setting_sits_only_where_texts_were_treated_alike(client, tmp_path, monkeypatch):
    """Two points of the same spec: one protects nouns alone, which no voice does."""
    monkeypatch.setattr(measured, "packaged", tuple)
    found = summary(client)
    (own,) = found["settings"]
    nouns = {**TEXTS_OF_A_SEARCH, "protect": "noun"}
    found["settings"] = [{**own, "texts": nouns}, own]
    remember([found])
    points = client.get("/v1/plane").json()["points"]
    assert points[0]["id"] != points[1]["id"]
    described = client.post("/v1/setting", json={"voice": "murmur"}).json()
    assert described["point"] == points[1]["id"]


@pytest.mark.parametrize(
    ("texts", "shown"),
    [
        ({"space": None, "unknown": "encode", "phrases": False}, True),
        ({"space": "default", "pad_to": 0}, True),
        ({"protect": None}, False),
        ({"protect": "all"}, False),
        ({"unprotected": "keep"}, False),
        ({"output_vocabulary": "all"}, False),
        ({"unknown": "uniform"}, False),
        ({"protect": "noun"}, False),
        ({"space": "other"}, False),
        ({"output_vocabulary": "clean"}, False),
        ({"unknown": "drop"}, False),
        ({"order": "kept"}, False),
        ({"pad_to": 8}, False),
    ],
)
def test_figures_of_texts_that_were_treated_otherwise_are_not_shown(
    client, tmp_path, monkeypatch, texts, shown
):
    monkeypatch.setattr(measured, "packaged", tuple)
    found = summary(client)
    found["settings"][0]["texts"] = {**TEXTS_OF_A_SEARCH, **texts}
    remember([found])
    told = client.post("/v1/setting", json={"voice": "murmur"}).json()
    assert (told["utility"] is not None) == shown


def test_figures_of_a_folder_are_those_of_the_words_of_its_documents(client, tmp_path):
    folder = tmp_path / "articles"
    folder.mkdir()
    document = {"doc_id": "1", "title": "Queries", "text": " ".join(demo_log()[:3000])}
    (folder / "corpus.jsonl").write_text(json.dumps(document))
    parts = LoadedParts(replace(SETTINGS, collection=str(folder), reranker="none"))
    protection = parts.protection(ProtectionBody())
    experiment = choose_output(parts.space(), f"corpus:{folder}")
    released = protection.obfuscator.mechanism.space.output
    assert (released.name, [*released.ids]) == (experiment.name, [*experiment.ids])
    found = summary(client)
    (own,) = found["settings"]
    for vocabulary, shown in ((experiment.name, True), ("demo", False), ("all", False)):
        own["texts"] = {
            **TEXTS_OF_A_SEARCH,
            "space": SETTINGS.space,
            "output_vocabulary": vocabulary,
        }
        assert (measured.figures_of(parts, found, protection) is own) == shown


@pytest.mark.parametrize(
    "other",
    [{"fingerprint": "0" * 64}, {"engine": "tfidf"}, {"reranker": "strong"}, {"depth": 100}],
)
def test_figures_of_another_collection_engine_or_reranker_are_never_shown(
    client, tmp_path, monkeypatch, other
):
    monkeypatch.setattr(measured, "packaged", lambda: (summary(client, **other),))
    remember([summary(client, **other)])
    told = client.get("/v1/voices").json()
    assert told["measured"] is None
    assert all(each["utility"] is None for each in told["voices"])
    assert client.get("/v1/plane").json()["points"] == []
    assert "experiment run" in told["not_measured"]


def test_a_setting_names_the_account_that_the_ledger_keeps_for_it(client):
    for name in ("cmp", "wbb", "comet-cmp"):
        client.post("/v1/preview", json={"query": QUERY, "mechanism": name, "n": 2})
    spent = client.get("/v1/ledger").json()["spent"]
    assert len(spent) == 3
    for name, each in zip(("cmp", "wbb", "comet-cmp"), spent, strict=True):
        told = client.post("/v1/setting", json={"mechanism": name}).json()
        assert told["account"] == {key: each[key] for key in told["account"]}
        assert (told["account"]["space_sha256"] is None) == (name == "wbb")


def test_a_mechanism_is_described_with_the_encoder_that_it_would_use(client):
    described = {each["name"]: each for each in client.get("/v1/mechanisms").json()["mechanisms"]}
    for name in ("comet-cmp", "cmp", "wbb"):
        epsilon = {"epsilon": 10.0} if name == "cmp" else {}  # A search has another default.
        own = client.post("/v1/setting", json={"mechanism": name, **epsilon}).json()["guarantee"]
        assert described[name]["guarantee"] == own


def test_a_setting_without_a_promise_says_so(client):
    told = client.post("/v1/setting", json={"mechanism": "wbb"}).json()
    assert "promises nothing" in told["warning"]
    assert "counterexample" in told["warning"]
    assert told["cost"] is None
