"""LiteLLM's generic guardrail: its contract, and its own client against the real service."""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import servers

pytest.importorskip("uvicorn", reason="pip install 'sottovoce[app]'")

from serving import served

from sottovoce import Obfuscator
from sottovoce.app.proxy import GUARDRAIL, PromptService, create_app
from sottovoce.app.server import bind
from sottovoce.app.settings import Settings
from sottovoce.ledger import Ledger
from sottovoce.mechanisms.cmp import CMP
from sottovoce.prompts import Guardrail, Listed, Patterns, PromptProtection
from sottovoce.prompts.guardrail import Tables
from sottovoce.prompts.placeholders import Table
from sottovoce.text import TextPipeline

TOKEN = "0123456789abcdef-token"
TEXT = "I am Zebulon, zebulon@mail.example"


@pytest.fixture(scope="module")
def protection(small_space, tmp_path_factory) -> PromptProtection:
    mechanism = CMP(space=small_space, epsilon=10.0)
    return PromptProtection(
        (Patterns(), Listed(["Zebulon"])),
        Obfuscator(mechanism, pipeline=TextPipeline(protect="all")),
        ledger=Ledger.open(tmp_path_factory.mktemp("ledger")),
    )


def request(*texts: str, call: str | None = "c1", **more) -> dict:
    return {
        "input_type": "request",
        "litellm_call_id": call,
        "texts": list(texts),
        "request_data": {},
        **more,
    }


def response(*texts: str, call: str | None = "c1") -> dict:
    return {**request(*texts, call=call), "input_type": "response"}


def test_a_call_is_changed_before_and_put_back_after(protection):
    guardrail = Guardrail(protection)
    assert guardrail.answer(request("hello", TEXT)) == {
        "action": "GUARDRAIL_INTERVENED",
        "texts": ["hello", "I am [NAME_1], [EMAIL_1]"],
    }
    assert guardrail.answer(response("Dear [NAME_1], [EMA")) == {
        "action": "GUARDRAIL_INTERVENED",
        "texts": ["Dear Zebulon, [EMA"],
        "stream_holdback_chars": [4],
    }
    assert guardrail.answer(request("hello", call="c2")) == {"action": "NONE"}
    assert guardrail.answer(response("[NAME_1]", call="c2")) == {"action": "NONE"}


def test_one_call_gets_no_value_of_another(protection):
    guardrail = Guardrail(protection)
    guardrail.answer(request(TEXT, call="mine"))
    guardrail.answer(request("I am other@mail.example", call="yours"))
    assert guardrail.answer(response("[EMAIL_1] [NAME_1]", call="yours"))["texts"] == [
        "other@mail.example [NAME_1]"
    ]
    assert guardrail.answer(response("[NAME_1]", call=None)) == {"action": "NONE"}


def test_tables_are_forgotten():
    now = [0.0]
    tables = Tables(most=2, lifetime=10, clock=lambda: now[0])
    for call in "abc":
        tables.keep(call, Table())
    assert [tables.get(call) is not None for call in "abc"] == [False, True, True]
    now[0] = 11.0
    assert tables.get("c") is None
    tables.keep("d", Table())
    assert len(tables._tables) == 1


SYSTEM = {"role": "system", "content": "be brief"}


@pytest.mark.parametrize(
    "body",
    [
        None,
        {},
        [TEXT],
        {"input_type": "other", "texts": [TEXT]},
        request(TEXT, images=["data:zebulon"]),
        request(TEXT, tools=[{"type": "function", "function": {"name": "zebulon"}}]),
        request(TEXT, tool_calls=[{"id": "zebulon"}]),
        {**request(), "texts": TEXT},
        {**request(), "texts": [TEXT, 3]},
        {**response(), "texts": {"zebulon": 1}},
        request("⟦zebulon"),
        request(TEXT, structured_messages=[{"role": "user", "content": "zebulon, another"}]),
        request("be brief", structured_messages=[SYSTEM, {"role": "tool", "content": TEXT}]),
        request("be brief", structured_messages=[{**SYSTEM, "name": "zebulon"}]),
    ],
)
def test_every_doubt_is_blocked_in_words_without_the_text(protection, body):
    answer = Guardrail(protection).answer(body)
    assert answer["action"] == "BLOCKED"
    assert "ebulon" not in json.dumps(answer)


def test_messages_that_hold_just_the_texts_pass(protection):
    parts = [{"type": "text", "text": TEXT}, {"type": "text", "text": "hello"}]
    messages = [SYSTEM, {"role": "user", "content": parts}]
    answer = Guardrail(protection).answer(
        request("be brief", TEXT, "hello", structured_messages=messages)
    )
    assert answer["texts"] == ["be brief", "I am [NAME_1], [EMAIL_1]", "hello"]


@pytest.mark.parametrize("where", ["protect", "count"])
def test_whatever_raises_is_blocked(protection, monkeypatch, where):
    def fail(*_):
        raise KeyError(TEXT)

    monkeypatch.setattr(PromptProtection, where, fail)
    answer = Guardrail(protection).answer(request(TEXT))
    assert answer == {
        "action": "BLOCKED",
        "blocked_reason": "sottovoce: unexpected KeyError; the call was stopped",
    }


# Over HTTP


@pytest.fixture(scope="module")
def address(protection):
    listening = bind("127.0.0.1", 0)
    settings = Settings(port=listening.getsockname()[1], token=TOKEN)
    service = PromptService(settings, protection, show=lambda _: None)
    with served(create_app(service), listening):
        yield f"http://127.0.0.1:{settings.port}"


def post(address: str, body: bytes, **headers: str) -> dict:
    asked = urllib.request.Request(address + GUARDRAIL, body, headers)
    with urllib.request.urlopen(asked) as answer:
        assert answer.status == 200
        return json.load(answer)


def test_a_request_that_fails_on_its_way_is_blocked_and_no_error(address):
    good = json.dumps(request(TEXT)).encode()
    assert post(address, good, **{"x-api-key": TOKEN})["action"] == "GUARDRAIL_INTERVENED"
    refused = [
        post(address, good),
        post(address, good, **{"x-api-key": "wrong"}),
        post(address, good, **{"x-api-key": TOKEN, "Host": "evil.example"}),
        post(address, good, **{"x-api-key": TOKEN, "Origin": "http://evil.example"}),
        post(address, b"{zebulon", **{"x-api-key": TOKEN}),
    ]
    assert {answer["action"] for answer in refused} == {"BLOCKED"}
    assert "needs the token" in refused[0]["blocked_reason"]
    assert "zebulon" not in json.dumps(refused)


def litellm_python() -> str:
    named = os.environ.get("SOTTOVOCE_LITELLM_PYTHON")
    if named is None and importlib.util.find_spec("litellm") is None:
        pytest.skip(
            "no litellm: set SOTTOVOCE_LITELLM_PYTHON to the Python of an environment of it"
        )
    return named or sys.executable


def test_litellms_own_client_sees_what_it_should(address):
    lax = {"fail_on_error": False, "unreachable_fallback": "fail_open"}
    messages = [{"role": "user", "content": TEXT}]
    inputs = {"texts": [TEXT], "structured_messages": messages, "model": "m"}

    def case(call, inputs, input_type="request", **more):
        return {"call": call, "inputs": inputs, "input_type": input_type, **more}

    cases = [
        case("a", inputs),
        case("a", {"texts": ["Dear [NAME_1], [EM"]}, "response"),
        case("b", {"texts": ["hello"]}),
        case("c", {**inputs, "images": ["data:zebulon"]}, settings=lax),
        case("d", {"texts": ["⟦zebulon"]}, settings=lax),
        case("e", inputs, token="wrong", settings=lax),
    ]
    done = subprocess.run(
        [litellm_python(), str(Path(__file__).with_name("litellm_client.py")), address, TOKEN],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "PYTHONPATH": ""},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    before, after, unchanged, *ended = json.loads(done.stdout)
    assert before["texts"] == ["I am [NAME_1], [EMAIL_1]"]
    assert after["texts"] == ["Dear Zebulon, [EM"]
    assert after["stream_holdback_chars"] == [3]
    assert unchanged["texts"] == ["hello"]
    for error in ended:  # Though it was told to go on after errors.
        assert error["error"] == "GuardrailRaisedException"
        assert "ebulon" not in error["message"]


GATEWAY = """
model_list:
  - model_name: m
    litellm_params: {{model: openai/m, api_base: "{upstream}/v1", api_key: x}}
guardrails:
  - guardrail_name: sottovoce
    litellm_params:
      guardrail: generic_guardrail_api
      mode: [pre_call, post_call]
      api_base: {guardrail}
      api_key: {token}
      unreachable_fallback: fail_closed
      streaming_transform_mode: incremental_diff
      default_on: true
general_settings: {{master_key: {key}}}
"""


@pytest.mark.slow
def test_litellms_gateway_sends_no_identifier_and_shows_them_again(address, tmp_path):
    openai = pytest.importorskip("openai", reason="pip install openai")
    from test_proxy import Model

    program = Path(litellm_python()).with_name("litellm")
    if not program.exists():
        pytest.skip("no gateway: pip install 'litellm[proxy]' in the environment of litellm")
    key, port = f"sk-{secrets.token_hex(24)}", servers.free_port()
    environment = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "PYTHONPATH": ""}
    settings = tmp_path / "litellm.yaml"
    command = [str(program), "--config", str(settings), "--host", "127.0.0.1", "--port", str(port)]
    with servers.web(Model()) as upstream:
        settings.write_text(
            GATEWAY.format(upstream=upstream.url, guardrail=address, token=TOKEN, key=key)
        )
        with servers.running(command, port, tmp_path / "log", environment, within=300):
            base = f"http://127.0.0.1:{port}/v1"
            with openai.OpenAI(base_url=base, api_key=key, max_retries=0) as client:

                def ask(text, **more):
                    messages = [{"role": "user", "content": text}]
                    return client.chat.completions.create(model="m", messages=messages, **more)

                assert ask(TEXT).choices[0].message.content == f"You said: {TEXT}"
                pieces = [piece.choices[0].delta.content for piece in ask(TEXT, stream=True)]
                assert "".join(filter(None, pieces)) == TEXT
                with pytest.raises(openai.BadRequestError, match="do not match"):
                    ask("⟦Zebulon")
        sent = [asked.body.decode() for asked in upstream.requests if asked.method == "POST"]
    assert len(sent) == 2
    assert "ebulon" not in "".join(sent)
