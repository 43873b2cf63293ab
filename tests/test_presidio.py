"""The operator in the real engine of Presidio: it replaces, or nothing comes out."""

from __future__ import annotations

import pickle

import pytest
from integration_data import SECRET, WORDS, Hostile, obfuscator

from sottovoce import Obfuscator
from sottovoce.errors import SottovoceError, UsageError

presidio = pytest.importorskip("presidio_anonymizer")

from presidio_anonymizer.entities import (  # noqa: E402
    InvalidParamError,
    OperatorConfig,
    RecognizerResult,
)
from presidio_anonymizer.operators import OperatorType  # noqa: E402

from sottovoce.integrations.presidio import SottovoceOperator, operator_config  # noqa: E402

TEXT = f"wordaa {SECRET} met {SECRET} and wordbb {SECRET} again"


@pytest.fixture
def engine():
    engine = presidio.AnonymizerEngine()
    engine.add_anonymizer(SottovoceOperator)
    return engine


def entities(text: str, *words: str) -> list[RecognizerResult]:
    """Every place where one of the words stands."""
    places, at = [], 0
    for token in text.split(" "):
        if token in words:
            places.append(RecognizerResult("PERSON", at, at + len(token), 0.9))
        at += len(token) + 1
    return places


def anonymize(engine, config, text=TEXT, words=(SECRET,)) -> list[str]:
    result = engine.anonymize(text, entities(text, *words), {"PERSON": config})
    assert {item.operator for item in result.items} == {"sottovoce"}
    return result.text.split(" ")


def test_what_was_found_is_replaced_and_the_rest_stays(engine):
    words = anonymize(engine, operator_config(obfuscator()))
    assert SECRET not in words
    assert [words[place] for place in (0, 2, 4, 5, 7)] == [
        "wordaa",
        "met",
        "and",
        "wordbb",
        "again",
    ]
    assert {words[place] for place in (1, 3, 6)} <= set(WORDS)


def test_words_are_drawn_anew_unless_a_document_is_to_be_consistent(engine):
    text = " / ".join(["wordaa"] * 40)
    afresh = anonymize(engine, operator_config(obfuscator()), text, ("wordaa",))
    assert len(set(afresh) - {"/"}) > 1
    one, another = operator_config(obfuscator(), consistent=True), None
    same = anonymize(engine, one, text, ("wordaa",))
    assert len(set(same) - {"/"}) == 1
    assert anonymize(engine, one, text, ("wordaa",)) == same
    another = {
        tuple(anonymize(engine, operator_config(obfuscator(), consistent=True), text, ("wordaa",)))
        for _ in range(12)
    }
    assert len(another) > 1, "documents are linked"


def test_a_seed_gives_the_same_again_but_not_for_every_entity(engine):
    text = " / ".join(["wordaa"] * 20)
    drawn = [
        anonymize(engine, operator_config(obfuscator(rng=1)), text, ("wordaa",)) for _ in range(2)
    ]
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) > 2


def test_denied_words_never_come_out(engine):
    config = operator_config(obfuscator(), deny=WORDS[1:])
    assert {word for word in anonymize(engine, config) if word in WORDS[1:]} == {"wordbb"}


def test_a_failure_ends_the_call_and_tells_nothing(engine):
    config = operator_config(Obfuscator(Hostile()))
    with pytest.raises(SottovoceError, match="hostile failed") as caught:
        engine.anonymize(TEXT, entities(TEXT, SECRET), {"PERSON": config})
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    batch = presidio.BatchAnonymizerEngine(engine)
    with pytest.raises(SottovoceError, match="hostile failed"):
        batch.anonymize_list([TEXT], [entities(TEXT, SECRET)], operators={"PERSON": config})


def test_other_parameters_are_refused(engine):
    for params in ({}, {"replace_with": str.upper}):
        with pytest.raises(InvalidParamError, match="operator_config"):
            anonymize(engine, OperatorConfig("sottovoce", params))
    with pytest.raises(InvalidParamError, match="operator_config"):
        SottovoceOperator().operate(SECRET)
    with pytest.raises(UsageError, match="one variant"):
        operator_config(obfuscator(2))


def test_it_is_an_operator_as_presidio_wants_it(engine):
    assert "sottovoce" in engine.get_anonymizers()
    assert SottovoceOperator().operator_type() is OperatorType.Anonymize
    engine.remove_anonymizer(SottovoceOperator)
    assert "sottovoce" not in engine.get_anonymizers()
    config = operator_config(obfuscator(), consistent=True)
    (secret,) = [config.params["replace_with"]._sanitizer.linkable]
    assert repr(secret) not in repr(config)
    assert pickle.loads(pickle.dumps(config.params["replace_with"]))("wordaa") in WORDS
