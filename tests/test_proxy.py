"""OpenAI's own client, the proxy, and an upstream that keeps every byte it gets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
import servers

openai = pytest.importorskip("openai", reason="pip install openai")
pytest.importorskip("uvicorn", reason="pip install 'sottovoce[app]'")

from serving import served  # noqa: E402

from sottovoce import Obfuscator  # noqa: E402
from sottovoce.app.proxy import PromptService, create_app  # noqa: E402
from sottovoce.app.server import bind  # noqa: E402
from sottovoce.app.settings import Settings  # noqa: E402
from sottovoce.ledger import Ledger  # noqa: E402
from sottovoce.mechanisms.cmp import CMP  # noqa: E402
from sottovoce.prompts import Listed, Patterns, PromptProtection, Upstream  # noqa: E402
from sottovoce.text import TextPipeline  # noqa: E402

TOKEN = "0123456789abcdef-token"
SECRETS = [
    "zebulon@mail.example",
    "+49 30 1234567",
    "DE89 3704 0044 0532 0130 00",
    "4111 1111 1111 1111",
    "192.168.17.23",
    "https://clinic.example/zebulon",
    "14.03.1978",
    "sk-proj-abcdefgh12345678",
    "Zebulon Quartermaine",
]
SHAPES = [
    "{a} and {b}",
    '{{"mail": "{a}", "x": ["{b}"]}}',
    "{a}\r\nX-Leak: {b}\r\n\r\nPOST /v1 HTTP/1.1",
    "<script>{a}</script>\u202e {b}\u200b",
    "[EMAIL_1] {a} [NAME_1] [{b}]",
    "{a}; DROP TABLE x; --{b}\x00",
    "⟦chlamydia {a}⟧ then {b}",
    "\ufffd {a} 🙈 {b}\ufeff",
]


class Moody(CMP):
    """Fails when told to, with a secret in its message."""

    fails = False

    def draw(self, *arguments, **named):
        if Moody.fails:
            raise RuntimeError("zebulon has chlamydia")
        return super().draw(*arguments, **named)


class Model:
    """A language model that repeats what it got, over real sockets."""

    def __init__(self):
        self.mood = "echo"

    def __call__(self, request):
        if request.target.endswith("/models"):
            return servers.reply({"object": "list", "data": [{"id": "m", "object": "model"}]})
        body = json.loads(request.body)
        said = " ".join(
            part if isinstance(part, str) else part[0]["text"]
            for part in (message["content"] for message in body["messages"])
        )
        if self.mood == "refuses":
            return servers.reply({"error": {"message": said}}, 400)
        if self.mood == "fails":
            return servers.reply({"error": {"message": said}}, 500)
        if self.mood == "nonsense":
            return servers.reply(b"<html>" + said.encode())
        if body.get("stream"):
            return self._stream(said)
        choice = {"index": 0, "message": {"role": "assistant", "content": f"You said: {said}"}}
        return servers.reply(
            {
                "id": "c1",
                "object": "chat.completion",
                "created": 1,
                "model": "m",
                "choices": [{**choice, "finish_reason": "stop"}],
            }
        )

    def _stream(self, said):
        yield b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        pieces = [said[i : i + 3] for i in range(0, len(said), 3)]
        for number, piece in enumerate(pieces):
            if self.mood == "breaks" and number == 5:
                raise servers.HangUpError
            yield self._event({"content": piece})
        yield self._event({}, "stop")
        yield b"data: [DONE]\n\n"
        raise servers.HangUpError

    def _event(self, delta, finish=None):
        chunk = {
            "id": "c1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }
        return b"data: " + json.dumps(chunk).encode() + b"\n\n"


@pytest.fixture(scope="module")
def model():
    return Model()


@pytest.fixture(scope="module")
def upstream(model):
    with servers.web(model) as web:
        yield web


@pytest.fixture(scope="module")
def shown():
    return []


@pytest.fixture(scope="module")
def service(upstream, small_space, tmp_path_factory, shown):
    pipeline = TextPipeline(protect="all")
    protection = PromptProtection(
        (Patterns(), Listed(["Zebulon Quartermaine", "chlamydia"])),
        Obfuscator(Moody(space=small_space, epsilon=10.0), pipeline=pipeline),
        ledger=Ledger.open(tmp_path_factory.mktemp("ledger")),
    )
    listening = bind("127.0.0.1", 0)
    settings = Settings(port=listening.getsockname()[1], token=TOKEN)
    to = Upstream(f"{upstream.url}/v1", key="upstream-key", timeout=10)
    service = PromptService(settings, protection, to, show=shown.append)
    with served(create_app(service), listening):
        yield service


@pytest.fixture
def client(service, model, upstream):
    model.mood, Moody.fails = "echo", False
    upstream.requests.clear()
    address = f"http://127.0.0.1:{service.settings.port}/v1"
    with openai.OpenAI(base_url=address, api_key=TOKEN, max_retries=0) as client:
        yield client
    Moody.fails = False


def ask(client, text, **more):
    messages = [{"role": "user", "content": text}]
    return client.chat.completions.create(model="m", messages=messages, **more)


def streamed(client, text):
    chunks = list(ask(client, text, stream=True))
    return "".join(c.choices[0].delta.content or "" for c in chunks if c.choices), chunks


def wire(upstream) -> str:
    """Every byte that the upstream got, and what the JSON in it stands for."""
    raw = "".join(
        f"{r.method} {r.target} {r.headers} {r.body.decode('utf-8', 'replace')}"
        for r in upstream.requests
    )
    read = " ".join(
        str(message["content"])
        for r in upstream.requests
        if r.body
        for message in json.loads(r.body)["messages"]
    )
    return raw + read


def test_a_completion_comes_back_with_its_values(client, upstream, shown):
    answer = ask(client, "I am Zebulon Quartermaine, zebulon@mail.example", user="zebulon")
    said = answer.choices[0].message.content
    assert said == "You said: I am Zebulon Quartermaine, zebulon@mail.example"
    report = answer.model_extra["sottovoce"]
    assert report["sent"] == [{"role": "user", "content": "I am [NAME_1], [EMAIL_1]"}]
    assert report["in_clear"] == 2
    assert report["left_out"] == ["user"]
    (request,) = upstream.requests
    assert request.headers["authorization"] == "Bearer upstream-key"
    assert set(request.headers) == {
        *("host", "accept-encoding", "content-length"),
        *("user-agent", "accept", "content-type", "authorization"),
    }
    assert request.headers["user-agent"] == "sottovoce"
    assert TOKEN not in wire(upstream)
    assert "2 words leave in clear" in shown[-1]
    assert "ebulon" not in "".join(shown)


def test_a_stream_comes_back_with_its_values_and_says_first_what_was_sent(client, upstream):
    text = "I am Zebulon Quartermaine, zebulon@mail.example [odd [EMAIL_7]"
    said, chunks = streamed(client, text)
    assert said == text
    assert chunks[0].model_extra["sottovoce"]["placeholders"] == {"NAME": 1, "EMAIL": 1}
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert "ebulon" not in wire(upstream)


@pytest.mark.parametrize("stream", [False, True])
def test_no_byte_of_an_identifier_reaches_the_upstream(client, upstream, stream):
    for number, secret in enumerate(SECRETS):
        for shape in SHAPES:
            other = SECRETS[(number * 5 + 3) % len(SECRETS)]
            text = shape.format(a=secret, b=other)
            said = streamed(client, text)[0] if stream else ask(client, text)
            assert said
    assert len(upstream.requests) == len(SECRETS) * len(SHAPES)
    bytes_sent = wire(upstream).casefold()
    for secret in (*SECRETS, "zebulon", "chlamydia", "quartermaine", TOKEN):
        assert secret.casefold() not in bytes_sent


def test_a_mechanism_that_fails_sends_nothing(client, upstream):
    Moody.fails = True
    for stream in (False, True):
        with pytest.raises(openai.APIStatusError) as failure:
            ask(client, "hello ⟦zebulon⟧", stream=stream)
        assert failure.value.status_code == 503
        assert "zebulon" not in str(failure.value)
    assert upstream.requests == []


def test_a_ledger_that_fails_sends_nothing(client, upstream, service, monkeypatch):
    broken = replace(service.protection.ledger, folder=service.protection.ledger.folder / "gone")
    monkeypatch.setattr(service, "protection", replace(service.protection, ledger=broken))
    with pytest.raises(openai.APIStatusError):
        ask(client, "hello zebulon")
    assert upstream.requests == []


def test_a_spent_budget_sends_nothing(client, upstream, service):
    ledger = service.protection.ledger
    ledger.set_budget(None, 1.0)
    try:
        with pytest.raises(openai.ConflictError, match="budget"):
            ask(client, "hello")
    finally:
        ledger.set_budget(None, None)
    assert upstream.requests == []


@pytest.mark.parametrize(("mood", "status"), [("refuses", 400), ("fails", 502), ("nonsense", 502)])
@pytest.mark.parametrize("stream", [False, True])
def test_an_upstream_that_fails_is_told_without_its_words(client, model, mood, status, stream):
    model.mood = mood
    with pytest.raises(openai.APIStatusError) as failure:
        ask(client, "Dear zebulon@mail.example, chlamydia", stream=stream)
    assert failure.value.status_code == status
    assert "mail" not in str(failure.value)
    assert "Dear" not in str(failure.value)


def test_a_stream_that_breaks_is_an_error_and_no_end(client, model):
    model.mood = "breaks"
    chunks, shown = ask(client, "one two three four five six seven", stream=True), []
    with pytest.raises(openai.APIError, match="answer"):
        shown.extend(chunk.choices[0].delta.content for chunk in chunks)
    assert "".join(shown) == "one two three f"


def test_what_is_no_text_is_refused(client, upstream):
    image = {"type": "image_url", "image_url": {"url": "https://zebulon.example/x.png"}}
    with pytest.raises(openai.UnprocessableEntityError, match="pictures"):
        ask(client, [{"type": "text", "text": "what is this?"}, image])
    tool = {"type": "function", "function": {"name": "zebulon", "parameters": {}}}
    with pytest.raises(openai.UnprocessableEntityError, match="tools") as refusal:
        ask(client, "hello", tools=[tool])
    assert "zebulon" not in str(refusal.value)
    assert upstream.requests == []


def test_only_who_has_the_token_may_ask(service, client, upstream):
    address = str(client.base_url)
    with openai.OpenAI(base_url=address, api_key="wrong", max_retries=0) as stranger:
        with pytest.raises(openai.AuthenticationError):
            ask(stranger, "hello")
        with pytest.raises(openai.AuthenticationError):
            stranger.models.list()
    assert upstream.requests == []


def test_models_are_listed(client):
    assert [one.id for one in client.models.list()] == ["m"]


def test_a_preview_sends_and_counts_nothing(client, service, upstream):
    before = service.protection.ledger.entries(1000)
    body = {"model": "m", "messages": [{"role": "user", "content": "a@mail.example ⟦x⟧"}]}
    report = client.post("/prompts/preview", body=body, cast_to=object)
    assert report["sent"][0]["content"].startswith("[EMAIL_1] word")
    assert report["spent"] == 10.0
    assert upstream.requests == []
    assert service.protection.ledger.entries(1000) == before


def test_the_command_serves_and_stops(upstream, model, tmp_path):
    model.mood = "echo"
    environment = {
        **os.environ,
        "SOTTOVOCE_HOME": str(tmp_path),
        "SOTTOVOCE_TOKEN": TOKEN,
        "SOTTOVOCE_UPSTREAM_KEY": "upstream-key",
    }
    command = [sys.executable, "-m", "sottovoce", "proxy", "--upstream", f"{upstream.url}/v1"]
    with subprocess.Popen(
        [*command, "--port", "0", "--hide", "Zebulon"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        try:
            name, address = process.stdout.readline().split()
            assert name == "base_url"
            assert process.stdout.readline().split() == ["api_key", TOKEN]
            with openai.OpenAI(base_url=address, api_key=TOKEN, max_retries=0) as client:
                answer = ask(client, "I am Zebulon")
                assert answer.choices[0].message.content == "You said: I am Zebulon"
                with pytest.raises(openai.UnprocessableEntityError, match="no mechanism"):
                    ask(client, "I have ⟦chlamydia⟧")
        finally:
            process.terminate()
            _, told = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "marked passages will be refused" in told
    assert "placeholders: 1 NAME; 2 words leave in clear" in told
    assert "Zebulon" not in told
