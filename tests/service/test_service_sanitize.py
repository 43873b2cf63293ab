"""Texts and tables that the service sanitizes."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi")

from service_client import events

from sottovoce import Obfuscator, mechanism
from sottovoce.app.sanitizing import changes
from sottovoce.sanitizing import Sanitizer


def test_sanitized_texts_say_where_they_changed(client):
    texts = ["The treatment, for skin cancer!", "", "divorce lawyer"]
    told = client.post("/v1/sanitize", json={"texts": texts, "epsilon": 3, "seed": 1}).json()
    assert [row["original"] for row in told["rows"]] == texts
    assert told["csv"] is None
    assert told["report"]["rows"] == 3
    assert told["report"]["seeded"] is True
    assert told["report"]["words"]["changed"] == sum(len(row["changed"]) for row in told["rows"])
    first = told["rows"][0]
    assert first["sanitized"].endswith("!")
    for (start, end), (was_start, was_end) in zip(
        first["changed"], first["changed_from"], strict=True
    ):
        assert first["sanitized"][start:end] != first["original"][was_start:was_end]


def test_a_csv_file_keeps_everything_but_its_column(client):
    table = 'id,text,note\r\n1,"skin, cancer ""x""",keep me\r\n2,divorce lawyer,\r\n'
    body = {"csv": table, "column": "text", "epsilon": 1, "seed": 1, "originals": False}
    told = client.post("/v1/sanitize", json=body).json()
    lines = told["csv"].split("\r\n")
    assert lines[0] == "id,text,note"
    assert lines[1].startswith('1,"')
    assert lines[1].endswith(",keep me")
    assert lines[2].startswith("2,")
    assert told["csv"] != table
    assert all("original" not in row for row in told["rows"])
    assert len(told["rows"]) == 2


def test_a_table_for_a_spreadsheet_holds_no_formulas(client):
    table = "id,text,note\n=1+1,skin cancer,-5\n2,=cmd|' /C calc'!A0,@x\n"
    body = {"csv": table, "column": "text", "epsilon": 1, "seed": 1}
    plain = client.post("/v1/sanitize", json=body).json()["csv"]
    assert plain.split("\n")[1].startswith("=1+1,")
    safe = client.post("/v1/sanitize", json={**body, "spreadsheet": True}).json()["csv"]
    assert safe.split("\n")[1].startswith("'=1+1,")
    assert safe.split("\n")[1].endswith(",-5")
    assert safe.split("\n")[2].endswith(",'@x")
    assert not [line for line in safe.split("\n") if ",=" in line or line.startswith("=")]


def test_sanitizing_streams_its_progress(client):
    told = events(client, "/v1/sanitize", {"texts": ["skin cancer"] * 600})
    assert told[0] == {"step": "sanitizing", "done": 256, "of": 600}
    assert len(told[-1]["result"]["rows"]) == 600


def test_a_seed_gives_what_the_library_gives_however_the_rows_are_cut(client, everyday_words):
    texts = [f"skin cancer {number}" for number in range(600)]
    told = client.post("/v1/sanitize", json={"texts": texts, "seed": 4}).json()
    cmp = mechanism("cmp", space=everyday_words)
    whole, _ = Sanitizer(Obfuscator(cmp, rng=4), ("text",)).texts("text", texts, 0)
    assert [row["sanitized"] for row in told["rows"]] == whole


@pytest.mark.parametrize(
    ("old", "new", "marked"),
    [
        ("a b c", "a x c", [[2, 3]]),
        ("Skin cancer!", "skin tumour!", [[5, 11]]),
        ("(skin)", "(oily)", [[1, 5]]),
        ("a b", "whole other text", [[0, 5], [6, 11], [12, 16]]),
        ("!!", "??", [[0, 2]]),
        ("", "", []),
    ],
)
def test_changes_are_marked_word_by_word_without_punctuation(old, new, marked):
    assert changes(old, new)[1] == marked
