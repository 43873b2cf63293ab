"""A new mechanism with a new kind of resource works everywhere, and no other file knows of it."""

from __future__ import annotations

import importlib
import json
import pickle
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from sottovoce import Obfuscator, WordSpace, mechanism, obfuscate
from sottovoce.cli import app
from sottovoce.errors import UsageError
from sottovoce.ledger import Entry, Ledger
from sottovoce.mechanisms import kind, names
from sottovoce.mechanisms.build import RESOURCE_KINDS, _registry, build, load_resource, stand_ins
from sottovoce.sanitizing import Sanitizer
from sottovoce.spaces import SpaceWriter
from sottovoce.testing import check_mechanism

NAME = "glossary-response"
WORDS = ["skin", "cancer", "lamp", "table", "river", "stone", "apple", "house"]


@pytest.fixture(scope="module", autouse=True)
def made_up():
    """The one line that an author adds: the import of the file."""
    module = importlib.import_module("made_up_mechanism")
    yield module
    del _registry[NAME], RESOURCE_KINDS["glossary"], sys.modules["made_up_mechanism"]


@pytest.fixture(scope="module")
def space():
    vectors = np.random.default_rng(1).standard_normal((len(WORDS), 3))
    return WordSpace.from_arrays(WORDS, vectors, name="eight")


@pytest.fixture
def glossary(tmp_path):
    (tmp_path / "glossary.txt").write_text("lamp\nriver\nstone\napple\n")
    return tmp_path / "glossary.txt"


@pytest.fixture
def folder(tmp_path, space, monkeypatch):
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path / "home"))
    with SpaceWriter(tmp_path / "space", name="eight", dimension=3) as writer:
        writer.append(WORDS, np.asarray(space.vectors))
        writer.commit()
    return tmp_path / "space"


def test_it_is_built_by_its_name_with_a_resource_or_with_a_setting(space, glossary, made_up):
    resource = made_up.Glossary.of(["lamp", "stone"])
    given = mechanism(f"{NAME}:epsilon=2", space=space, glossary=resource)
    assert given.spec == f"{NAME}:epsilon=2"
    assert set(obfuscate("skin cancer", given, n=20)) <= {
        f"{one} {two}" for one in resource.words for two in resource.words
    }
    settings = {"glossary": str(glossary)}
    chosen = build(NAME, {"epsilon": 2}, settings, provided={"space": lambda: space})
    assert chosen.glossary.words == ("apple", "lamp", "river", "stone")
    assert load_resource("glossary", settings) == chosen.glossary
    assert chosen != given
    assert chosen.made_with != given.made_with
    with pytest.raises(UsageError, match="--with glossary=FILE"):
        build(NAME, provided={"space": lambda: space})
    with pytest.raises(UsageError, match="--glossary does nothing with cmp"):
        build("cmp", settings=settings, provided={"space": lambda: space})


def test_it_keeps_the_contract(space, made_up):
    check_mechanism(mechanism(NAME, space=space, glossary=made_up.Glossary.of(WORDS[:5])))


def test_the_contract_would_notice_a_wrong_law(space, made_up):
    class Partial(made_up.GlossaryResponse):
        def draw(self, ids, draws):
            return np.where(ids == self._released[0], ids, super().draw(ids, draws))

    with pytest.raises(AssertionError, match="draws follow the stated law"):
        check_mechanism(Partial(space, 1.0, glossary=made_up.Glossary.of(WORDS[:5])))


def test_it_travels_with_its_resource(space, made_up):
    chosen = mechanism(NAME, space=space, glossary=made_up.Glossary.of(WORDS[2:]))
    copy = pickle.loads(pickle.dumps(chosen))
    assert copy == chosen
    assert copy.glossary == chosen.glossary


def test_it_is_listed_and_described_without_reading_anything():
    assert NAME in names()
    described = kind(NAME)(**stand_ins(kind(NAME))).describe()
    assert described["guarantee"]["notion"] == "local"
    assert [parameter["name"] for parameter in described["parameters"]] == ["epsilon"]
    shown = run("mechanisms", NAME, "--json")
    assert json.loads(shown.stdout)["summary"] == described["summary"]


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.filterwarnings("ignore::sottovoce.PrivacyWarning")
def test_the_command_line_takes_its_resource_and_counts_what_it_releases(folder, glossary):
    chosen = ("-m", f"{NAME}:epsilon=2", "--space", folder, "--with", f"glossary={glossary}")
    result = run("obfuscate", "skin cancer", *chosen, "-n", 5, "-o", "jsonl", "--ledger")
    line = json.loads(result.stdout)
    words = {word for variant in line["variants"] for word in variant.split()}
    assert words <= {"lamp", "river", "stone", "apple"}
    assert (line["spent"], line["guarantee"]["notion"]) == (10, "local")
    (record,) = Ledger.open().entries()
    assert (record.mechanism, record.spent, record.protected) == (f"{NAME}:epsilon=2", 10, 2)
    with pytest.raises(UsageError, match="--with glossary=FILE"):
        run("obfuscate", "skin cancer", "-m", NAME, "--space", folder)
    with pytest.raises(UsageError, match="glosary"):
        run("obfuscate", "skin cancer", "-m", NAME, "--space", folder, "--with", "glosary=x")


def test_the_ledger_remembers_words_of_the_same_resource_alone(space, tmp_path, made_up):
    ledger = Ledger.open(tmp_path / "ledger")
    few, many = (
        Obfuscator(
            mechanism(NAME, space=space, glossary=made_up.Glossary.of(words)),
            n=3,
            memory_key=ledger.memory_key(),
        )
        for words in (WORDS[:3], WORDS)
    )
    results = [next(obfuscator.obfuscate(["skin cancer"])) for obfuscator in (few, few, many)]
    receipts = [
        ledger.charge(Entry.of(result, obfuscator, "test"))
        for result, obfuscator in zip(results, (few, few, many), strict=True)
    ]
    assert [receipt.recalled for receipt in receipts] == [False, True, False]
    assert results[0].variants == results[1].variants
    (spent,) = ledger.spent()
    assert (spent.notion, spent.nats) == ("local", 60)


def test_whole_data_sets_are_sanitized_with_it(space, made_up):
    chosen = mechanism(NAME, space=space, glossary=made_up.Glossary.of(WORDS[:4]))
    sanitizer = Sanitizer(Obfuscator(chosen, rng=1), ("text",), deny=frozenset({"lamp"}))
    texts, counts = sanitizer.texts("text", ["skin lamp river", None], 0)
    assert counts.denied == 1
    assert texts[1] is None
    assert "lamp" not in texts[0]
    assert set(texts[0].split()) <= {"skin", "cancer", "table", "river", "stone", "apple", "house"}
