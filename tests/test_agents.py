"""The tools for agents, with the protocol's own client: in memory, over HTTP, over pipes."""

from __future__ import annotations

import json
import os
import runpy
import sys
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import servers
from command_line import as_text, run_command

pytest.importorskip("mcp.server.mcpserver", reason="pip install 'sottovoce[mcp]'")
pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

import anyio
import httpx2
from browser import engine_file
from browser import home as home_with_spaces
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from sottovoce.agents.server import create_server, http_app
from sottovoce.agents.tools import AgentTools
from sottovoce.app.loaded import LoadedParts
from sottovoce.app.server import bind
from sottovoce.app.settings import Settings
from sottovoce.defaults import SEARCH_EPSILON
from sottovoce.ledger import Ledger

SPACE = "glove-840b-34k"
TOKEN = "0123456789abcdef-token"
QUERY = "treatment for skin cancer"
SECRET = "zebulonitis quartermaine"
NAMES = ["private_search", "obfuscate", "sanitize", "assess_risk", "budget"]


class Engine:
    """A search engine elsewhere, over a real socket: keeps what it is asked, may be broken."""

    def __init__(self):
        self.broken = False

    def answer(self, request):
        if self.broken:
            raise servers.HangUpError
        hits = [{"id": "http://a.example/", "title": "A title", "text": "Some text."}]
        return servers.reply({"results": hits})

    @property
    def asked(self):
        return [parse_qs(urlsplit(each.target).query)["q"][0] for each in self.seen.requests]


@pytest.fixture(scope="module")
def engine():
    there = Engine()
    with servers.web(there.answer) as seen:
        there.seen = seen
        yield there


@pytest.fixture(scope="module")
def loaded(default_space, engine, tmp_path_factory):
    _, name = engine_file(tmp_path_factory.mktemp("engine"), engine.seen.port)
    parts = LoadedParts(Settings(engine=name, reranker="none", space=SPACE, token=TOKEN))
    parts.load_named()
    parts.fitted_space()  # Tests have homes of their own, without spaces.
    return parts


@pytest.fixture
def tools(loaded, engine, tmp_path, monkeypatch):
    """The tools with a ledger of their own, and a budget for four searches."""
    monkeypatch.setenv("SOTTOVOCE_HOME", str(tmp_path))
    Ledger.open().set_budget(None, 4 * SEARCH_EPSILON)
    engine.seen.requests.clear()
    engine.broken = False
    return AgentTools(loaded, "murmur")


def asking(server, work):
    """What comes of asking a server, or a transport, with the protocol's client."""

    async def main():
        async with Client(server) as client:
            return await work(client)

    return anyio.run(main)


def text_of(result):
    return " ".join(part.text for part in result.content)


def test_the_tools_are_typed_and_say_what_they_do(tools):
    listed = asking(create_server(tools), lambda client: client.list_tools()).tools
    assert [tool.name for tool in listed] == NAMES
    hints = {tool.name: tool.annotations for tool in listed}
    assert [name for name in NAMES if hints[name].open_world_hint] == ["private_search"]
    assert [name for name in NAMES if hints[name].read_only_hint] == ["assess_risk", "budget"]
    for tool in listed:
        assert tool.description
        assert tool.output_schema["properties"]
        assert set(tool.input_schema["properties"]) <= {"query", "top", "text", "n", "texts"} | {
            "variants"
        }


def test_a_search_tells_what_was_found_and_sends_variants_alone(tools, engine):
    async def work(client):
        return await client.call_tool("private_search", {"query": QUERY, "top": 3})

    answer = asking(create_server(tools), work).structured_content
    assert answer["hits"][0]["source"] == "http://a.example/"
    assert sorted(engine.asked) == sorted(answer["sent"])
    assert QUERY not in engine.asked
    assert (answer["spent"], answer["left"]) == (SEARCH_EPSILON, 3 * SEARCH_EPSILON)


def test_agents_are_told_of_a_small_company(tools, monkeypatch):
    """It hides less, and is as small as the engine wants it."""
    company = AgentTools(tools.parts, "in-company")
    monkeypatch.setattr(tools.parts.engine(), "pause", 0.0)
    usual = company.private_search(QUERY, 1)
    assert (len(usual["sent"]), usual["small_company"]) == (20, None)
    monkeypatch.setattr(type(tools.parts), "usual_variants", 3)
    small = company.private_search("divorce lawyer cost", 1)
    assert len(small["sent"]) == 3
    assert "a company of 3 only" in small["small_company"]
    assert tools.private_search("weather tomorrow", 1)["small_company"] is None


def test_of_a_hundred_searches_the_budget_lets_four_pass(tools, engine, default_space):
    words = [
        word for word in default_space.words(range(2000, 20000)) if word.isalpha() and len(word) > 5
    ]

    async def work(client):
        return [
            await client.call_tool(
                "private_search", {"query": f"{words[2 * at]} {words[2 * at + 1]}", "top": 1}
            )
            for at in range(100)
        ]

    results = asking(create_server(tools), work)
    passed = [result for result in results if not result.is_error]
    assert results[:4] == passed
    allowed = [query for result in passed for query in result.structured_content["sent"]]
    assert sorted(engine.asked) == sorted(allowed)
    for at, result in enumerate(results[4:], start=4):
        assert "this would cost 7.5 nats, and 0 are left" in text_of(result)
        assert words[2 * at] not in text_of(result)
    assert Ledger.open().spent()[0].nats == 4 * SEARCH_EPSILON


def test_what_is_handed_out_is_counted_and_costs_nothing_again(tools):
    async def work(client):
        arguments = {"text": QUERY, "n": 3}
        first = await client.call_tool("obfuscate", arguments)
        again = await client.call_tool("obfuscate", arguments)
        texts = ["My divorce, quickly!", "A loan."]
        return first, again, await client.call_tool("sanitize", {"texts": texts})

    first, again, sanitized = asking(create_server(tools), work)
    assert len(first.structured_content["variants"]) == 3
    assert first.structured_content["spent"] == SEARCH_EPSILON
    assert again.structured_content["variants"] == first.structured_content["variants"]
    assert again.structured_content["spent"] == 0
    assert len(sanitized.structured_content["texts"]) == 2
    assert sanitized.structured_content["texts"][0].endswith("!")
    assert Ledger.open().spent()[0].nats == 3 * SEARCH_EPSILON


def test_sanitizing_is_all_or_nothing(tools):
    async def work(client):
        texts = [f"{word} lawyer" for word in ("divorce", "tax", "labour", "patent", "injury")]
        return await client.call_tool("sanitize", {"texts": texts})

    refused = asking(create_server(tools), work)
    assert refused.is_error
    assert refused.structured_content is None
    assert "lawyer" not in text_of(refused)


@pytest.mark.parametrize("failing", ["engine", "ledger", "mechanism"])
def test_whatever_fails_the_query_goes_nowhere(tools, engine, monkeypatch, failing):
    if failing == "engine":
        engine.broken = True
    elif failing == "ledger":
        (Ledger.open().folder / "ledger.db").write_bytes(b"damaged" * 1000)
    else:

        def fails(*_):
            raise ValueError(f"could not read {SECRET}")

        monkeypatch.setattr(LoadedParts, "protection", fails)

    async def work(client):
        return [
            await client.call_tool("private_search", {"query": SECRET}),
            await client.call_tool("obfuscate", {"text": SECRET}),
        ]

    for result in asking(create_server(tools), work)[: 1 if failing == "engine" else 2]:
        assert result.is_error
        assert not any(word in text_of(result) for word in SECRET.split())
    assert not any(word in repr(engine.seen.requests) for word in SECRET.split())
    assert failing == "engine" or engine.seen.requests == []


def test_arguments_that_are_wrong_are_named_and_not_repeated(tools, capfd):
    async def work(client):
        return [
            await client.call_tool("private_search", {"query": SECRET, "top": 900}),
            await client.call_tool("obfuscate", {"text": [SECRET]}),
            await client.call_tool("private_search", {"query": "  ", "voice": SECRET}),
        ]

    results = asking(create_server(tools), work)
    for result in results:
        assert result.is_error
        assert "zebulonitis" not in text_of(result)
    assert "top: less than equal" in text_of(results[0])
    assert "".join(capfd.readouterr()) == ""


def test_the_example_searches_and_says_what_is_left(tools, capsys):
    file = Path(__file__).parents[1] / "examples" / "agent.py"
    example = runpy.run_path(str(file))
    for _ in range(2):
        anyio.run(example["ask"], create_server(tools), QUERY)
        Ledger.open().set_budget(None, 1.0)
        Ledger.open().reset()
    found, refused = capsys.readouterr().out.split("Tools:")[1:]
    assert "It cost 7.5 nats; 22.5 are left." in found
    assert "this would cost 7.5 nats, and 1 are left" in refused
    assert "sottovoce ledger" not in refused


def test_over_http_the_token_and_the_name_of_this_machine_are_needed(tools):
    listening = bind("127.0.0.1", 0)
    settings = replace(tools.parts.settings, port=listening.getsockname()[1])
    url = f"http://127.0.0.1:{settings.port}/mcp"
    app = http_app(create_server(tools), settings)
    statuses = {}

    async def work():
        import uvicorn

        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", ws="none"))
        async with anyio.create_task_group() as group:
            group.start_soon(server.serve, [listening])
            while not server.started:
                await anyio.sleep(0.01)
            token = {"Authorization": f"Bearer {TOKEN}"}
            async with httpx2.AsyncClient() as stranger:
                body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
                for name, headers in {
                    "none": {},
                    "wrong": {"Authorization": "Bearer wrong"},
                    "other name": {**token, "Host": "evil.example"},
                    "other site": {**token, "Origin": "http://evil.example"},
                }.items():
                    answer = await stranger.post(url, json=body, headers=headers)
                    statuses[name] = answer.status_code
                statuses["get"] = (await stranger.get(url)).status_code
            async with (
                httpx2.AsyncClient(headers=token) as trusted,
                Client(streamable_http_client(url, http_client=trusted)) as client,
            ):
                found = await client.call_tool("private_search", {"query": QUERY})
            server.should_exit = True
        return found

    found = anyio.run(work)
    assert found.structured_content["spent"] == SEARCH_EPSILON
    assert statuses == {
        "none": 401,
        "wrong": 401,
        "other name": 421,
        "other site": 403,
        "get": 401,
    }


def test_without_a_budget_the_command_does_not_start(tmp_path):
    refused = as_text(run_command("mcp", home=tmp_path))
    assert refused.returncode == 2
    assert "sottovoce ledger budget --total" in refused.stderr
    assert refused.stdout == ""


def test_the_command_speaks_the_protocol_and_nothing_else(default_space, engine, tmp_path):
    folder = home_with_spaces(tmp_path / "home")
    Ledger.open(folder / "ledger").set_budget(None, SEARCH_EPSILON)
    engine.seen.requests.clear()
    copied, complaints = tmp_path / "stdout", tmp_path / "stderr"
    command = [sys.executable, "-m", "sottovoce", "mcp", "--rerank", "none", "--space", SPACE]
    command += engine_file(tmp_path, engine.seen.port)
    piped = StdioServerParameters(
        command="sh",
        args=["-c", '"$@" 2>"$ERRORS" | tee "$COPY"', "sh", *command],
        env={
            **os.environ,
            "SOTTOVOCE_HOME": str(folder),
            "COPY": str(copied),
            "ERRORS": str(complaints),
        },
    )

    async def work(client):
        return [
            await client.call_tool("private_search", {"query": QUERY}),
            await client.call_tool("private_search", {"query": SECRET}),
            await client.call_tool("budget", {}),
        ]

    found, refused, budget = asking(piped, work)
    assert sorted(engine.asked) == sorted(found.structured_content["sent"])
    assert refused.is_error
    assert budget.structured_content["total"] == SEARCH_EPSILON
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in copied.read_text().splitlines())
    assert complaints.read_text() == ""
    assert SECRET not in copied.read_text()
