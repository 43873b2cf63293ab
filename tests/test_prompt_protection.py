"""Conversations as they leave: what is replaced, what is counted, what is refused."""

from __future__ import annotations

import json
import runpy
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce import Obfuscator
from sottovoce.errors import SottovoceError, UsageError
from sottovoce.ledger import BudgetError, Ledger
from sottovoce.mechanisms.cmp import CMP
from sottovoce.prompts import Listed, Message, Patterns, PromptProtection, Upstream, read_chat
from sottovoce.text import TextPipeline

SECRETS = ["zebulon", "chlamydia", "zebulon@mail.example", "4111111111111111", "лечение", "🙈"]


class Failing(CMP):
    """Fails with the words in its message."""

    def draw(self, *arguments, **named):
        raise RuntimeError("zebulon has chlamydia")


@pytest.fixture(scope="module")
def obfuscator(small_space) -> Obfuscator:
    mechanism = CMP(space=small_space, epsilon=10.0)
    return Obfuscator(mechanism, pipeline=TextPipeline(protect="all"))


@pytest.fixture
def ledger(memory_disk) -> Ledger:
    return Ledger.open(memory_disk / "ledger")


def user(text: str) -> list[Message]:
    return [Message("user", text)]


def test_identifiers_and_passages_are_replaced_and_the_rest_is_told(obfuscator):
    prompt = PromptProtection(obfuscator=obfuscator).protect(
        user("Dear doctor, ⟦my chlamydia is back⟧, write to zebulon@mail.example!")
    )
    (sent,) = prompt.texts
    assert sent.startswith("Dear doctor, word")
    assert sent.endswith(", write to [EMAIL_1]!")
    report = prompt.report()
    assert report["in_clear"] == 4
    assert report["words_obfuscated"] == 4
    assert report["placeholders"] == {"EMAIL": 1}
    assert report["spent"] == 10.0
    assert report["guarantee"]["notion"] == "metric"
    assert "4 words leave in clear" in report["sentence"]
    assert "zebulon" not in json.dumps(report) + repr(prompt)


def test_without_identifiers_and_passages_all_leaves_in_clear_and_says_so():
    prompt = PromptProtection().protect(user("what is a mole?"))
    assert prompt.unchanged
    assert prompt.sentence.startswith("placeholders: none; 4 words leave in clear")


@pytest.mark.parametrize(
    ("passages", "in_clear"), [("user", [True, False, True]), ("all", [False] * 3)]
)
def test_whole_messages_go_through_the_mechanism(obfuscator, passages, in_clear):
    messages = [
        Message("system", "be brief"),
        Message("user", "my ⟦sister⟧ is ill"),
        Message("assistant", "how sad"),
    ]
    prompt = PromptProtection(obfuscator=obfuscator, passages=passages).protect(messages)
    kept = [text == message.text for text, message in zip(prompt.texts, messages, strict=True)]
    assert kept == in_clear
    assert "⟦" not in "".join(prompt.texts)
    assert prompt.in_clear == (4 if passages == "user" else 0)


@pytest.mark.parametrize("text", ["⟦a", "a⟧", "⟦a⟦b⟧⟧", "⟦a⟧ b⟧", "⟧a⟦"])
def test_marks_that_do_not_match_are_refused(obfuscator, text):
    with pytest.raises(UsageError, match="do not match"):
        PromptProtection(obfuscator=obfuscator).protect(user(text))


def test_a_passage_without_a_mechanism_is_refused():
    with pytest.raises(UsageError, match="no mechanism"):
        PromptProtection().protect(user("⟦chlamydia⟧"))
    with pytest.raises(UsageError, match="obfuscator"):
        PromptProtection(passages="all")


def test_only_one_variant_of_a_word_mechanism_stands_for_a_passage(obfuscator):
    with pytest.raises(UsageError, match="one variant"):
        PromptProtection(obfuscator=replace(obfuscator, n=2))


def test_a_mechanism_that_fails_says_nothing_of_the_text(small_space):
    failing = Obfuscator(Failing(space=small_space, epsilon=10.0))
    with pytest.raises(SottovoceError, match="failed") as failure:
        PromptProtection(obfuscator=failing).protect(user("⟦zebulon⟧"))
    assert "zebulon" not in str(failure.value)


def test_a_finder_that_fails_stops_the_prompt():
    class Broken:
        name = "broken"

        def find(self, text):
            raise ValueError(text)

    with pytest.raises(SottovoceError, match="ValueError") as failure:
        PromptProtection(finders=(Broken(),)).protect(user("zebulon"))
    assert "zebulon" not in str(failure.value)


def test_it_is_counted_once_however_often_a_conversation_is_sent(obfuscator, ledger):
    protection = PromptProtection(obfuscator=obfuscator, ledger=ledger)
    messages = user("hello, ⟦chlamydia again⟧, a@mail.example")
    first = protection.count(protection.protect(messages), "model.example")
    more = [*messages, Message("assistant", "oh"), Message("user", "⟦still chlamydia⟧")]
    second = protection.count(protection.protect(messages), "model.example")
    third = protection.count(protection.protect(more), "model.example")
    assert (first.spent, second.spent, third.spent) == (10.0, 0.0, 10.0)
    assert first.texts == second.texts == third.texts[:1]
    records = ledger.entries(10)
    assert {record.destination for record in records} == {"model.example"}
    assert [record.mechanism for record in records].count("placeholders") == 3
    assert sum(record.in_clear for record in records) == 4
    assert records[-1].protected == 1


def test_a_budget_refuses_words_in_clear(obfuscator, ledger):
    ledger.set_budget(None, 15.0)
    protection = PromptProtection(obfuscator=obfuscator, ledger=ledger)
    with pytest.raises(BudgetError, match="--passages all"):
        protection.count(protection.protect(user("hello ⟦there⟧")), "x")
    assert ledger.entries(10) == []
    whole = replace(protection, passages="all")
    assert whole.count(whole.protect(user("hello there")), "x").spent == 10.0
    with pytest.raises(BudgetError, match="5 are left"):
        whole.count(whole.protect(user("something else")), "x")


@given(st.text(max_size=80), st.sampled_from(SECRETS), st.text(max_size=80))
def test_no_secret_leaves_from_inside_a_passage_or_a_pattern(obfuscator, before, secret, after):
    finders = (Patterns(), Listed(["zebulon", "chlamydia"]))
    marks = str.maketrans("", "", "⟦⟧")
    before, after = before.translate(marks), after.translate(marks)
    protection = PromptProtection(finders, obfuscator)
    for text in (f"{before} ⟦{secret}⟧ {after}", f"⟦{before} {secret} {after}⟧"):
        outside = (before + after).casefold()
        if secret not in outside:
            assert secret not in protection.protect(user(text)).texts[0].casefold()
    if secret.isascii():
        sent = protection.protect(user(f"{before} {secret} {after}")).texts[0]
        assert secret in (before + after).casefold() or secret not in sent.casefold()


def test_the_example_runs(default_space, capsys):
    example = Path(__file__).parents[1] / "examples" / "prompts.py"
    runpy.run_path(str(example), run_name="__main__")
    printed = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert printed["leaves"].startswith("I am [NAME_1], [EMAIL_1], born [DATE_1], and ")
    assert "Zebulon Quartermaine; write to zebulon@mail.example." in printed["is"]


# Requests as clients write them


def chat(**more):
    return {"model": "m", "messages": [{"role": "user", "content": "zebulon"}], **more}


def test_settings_without_text_are_passed_on():
    body = chat(
        temperature=0,
        max_tokens=5,
        stream=True,
        stream_options={"include_usage": True},
        response_format={"type": "json_object"},
        tools=[],
        user="zebulon",
        logprobs=False,
    )
    request = read_chat(body)
    assert json.loads(request.body_with(["x"])) == {
        "model": "m",
        "messages": [{"role": "user", "content": "x"}],
        "temperature": 0,
        "max_tokens": 5,
        "stream": True,
        "stream_options": {"include_usage": True},
        "response_format": {"type": "json_object"},
    }
    assert request.left_out == ("user",)


def test_parts_of_text_come_back_as_parts():
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    request = read_chat({"model": "m", "messages": [{"role": "user", "content": parts}]})
    assert [message.text for message in request.messages] == ["a", "b"]
    body = json.loads(request.body_with(["x", "\ud800y"]))
    assert body["messages"][0]["content"][1] == {"type": "text", "text": "\ufffdy"}


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,zebulon"}}


@pytest.mark.parametrize(
    "body",
    [
        "zebulon",
        chat(tools=[{"type": "function", "function": {"name": "zebulon"}}]),
        chat(functions=[{"name": "zebulon"}]),
        chat(zebulon="zebulon"),
        chat(stop=["zebulon"]),
        chat(model="zebulon quartermaine"),
        chat(temperature="zebulon"),
        chat(seed=4111111111111111),
        chat(temperature=float("nan")),
        chat(response_format={"type": "json_schema", "json_schema": {"name": "zebulon"}}),
        chat(messages=[]),
        chat(messages="zebulon"),
        chat(messages=[{"role": "tool", "content": "zebulon"}]),
        chat(messages=[{"role": "user", "content": "x", "name": "zebulon"}]),
        chat(messages=[{"role": "user", "content": [IMAGE]}]),
        chat(messages=[{"role": "user", "content": [{"type": "text", "text": "x", "zebulon": 1}]}]),
        chat(messages=[{"role": "user", "content": {"zebulon": 1}}]),
        chat(messages=[{"role": "assistant", "content": "x", "tool_calls": [{"id": "zebulon"}]}]),
        chat(messages=[{"role": "user", "content": "zebulon" * 60_000}]),
    ],
)
def test_whatever_may_hold_a_text_is_refused_in_words_without_it(body):
    with pytest.raises(UsageError) as refusal:
        read_chat(body)
    assert "zebulon" not in str(refusal.value)


def test_an_upstream_is_a_base_url_and_its_key_never_travels_in_clear():
    assert Upstream("https://api.example.org/v1", key="k").name == "api.example.org"
    assert "secret" not in repr(Upstream("https://api.example.org/v1", key="secret"))
    for url in ("api.example.org", "https://api.example.org/v1?key=x", "http://api.example.org/v1"):
        with pytest.raises(UsageError):
            Upstream(url, key="secret")
