"""``sottovoce doctor``: what is here, what is missing, what is broken; it changes nothing."""

from __future__ import annotations

import json

from command_line import as_text, run_command

from sottovoce import extras
from sottovoce.doctor import examine
from sottovoce.extras import EXTRAS, Extra
from sottovoce.ledger import Ledger
from sottovoce.paths import ledger_folder, pools_folder, spaces_folder


def findings(area):
    return {finding.name: finding for finding in examine() if finding.area == area}


def test_an_empty_home_is_sound_and_says_what_to_get(home):
    shown = as_text(run_command("doctor", home=home, columns=100))
    assert shown.returncode == 0, shown.stderr
    assert "sottovoce spaces add default" in shown.stdout
    assert "none yet" in shown.stdout
    assert not list(home.iterdir()), "looking must not write"
    data = json.loads(as_text(run_command("doctor", "--json", home=home)).stdout)
    assert data["sound"]
    default = next(each for each in data["findings"] if each["name"] == "default")
    assert default["state"] == "missing"
    assert default["command"] == "sottovoce spaces add default"


def test_a_missing_package_is_named_with_what_it_would_bring(home, monkeypatch):
    required = ["numpy>=2", 'fastapi>=1; extra == "app"', 'not-there>=1; extra == "lab"']
    monkeypatch.setattr(extras.metadata, "requires", lambda _: required)
    assert findings("extras")["app"].state == "here"
    lab = findings("extras")["lab"]
    assert (lab.state, lab.about) == ("missing", EXTRAS["lab"])
    assert lab.command == "pip install 'sottovoce[lab]'"
    monkeypatch.setattr(extras.metadata, "requires", lambda _: ["not-there-either>=3"])
    assert "not-there-either" in findings("base")["packages"].about
    assert findings("base")["packages"].state == "broken"


def test_an_extra_knows_the_versions_of_its_packages():
    extra = Extra("app", "the app", {"fastapi": "0.115", "uvicorn": None})
    assert extra.missing == ("uvicorn",)


def test_what_is_damaged_is_found(home):
    space, pool = spaces_folder() / "mine", pools_folder() / "asked"
    for folder, file in ((space, "space.json"), (pool, "pool.json")):
        folder.mkdir(parents=True)
        (folder / file).write_text("{")
    assert findings("spaces")["mine"].state == "broken"
    assert findings("pools")["asked"].state == "broken"
    Ledger.open()
    assert findings("ledger")["ledger"].state == "here"
    database = next(path for path in ledger_folder().iterdir() if path.stat().st_size > 1000)
    database.write_bytes(b"no ledger" * 1000)
    assert findings("ledger")["ledger"].state == "broken"
    shown = as_text(run_command("doctor", home=home))
    assert shown.returncode == 1
    assert "3 broken" in shown.stdout
