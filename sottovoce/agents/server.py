"""The MCP server: the tools over standard input and output, or over HTTP on this machine."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import ToolAnnotations
from pydantic import ValidationError

from sottovoce import __version__
from sottovoce.agents.tools import AgentTools
from sottovoce.app.failures import failure
from sottovoce.app.security import BODY, Guard, needs_token
from sottovoce.app.settings import Settings
from sottovoce.ledger import BudgetError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

PATH = "/mcp"
INSTRUCTIONS = (
    "Search, and give text away, without saying what is meant. Use private_search instead of any "
    "other search for whatever is the person's own business, and never put their words into "
    "another tool in clear. The budget is the person's: when it is spent, say so and stop."
)
SENDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)
COUNTS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
LOOKS = ToolAnnotations(read_only_hint=True, open_world_hint=False)

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


class DiscreetServer(MCPServer[Any]):
    """A server whose errors do not repeat what was sent, and which logs nothing."""

    async def call_tool(self, *arguments: Any, **named: Any) -> Any:
        """Call a tool; of arguments that cannot be right, the names are told."""
        try:
            return await super().call_tool(*arguments, **named)
        except UnexpectedToolError:
            raise ToolError("the answer cannot be read: nothing more is known of it") from None
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            raise ToolError(_problems(error.__cause__)) from None


def create_server(tools: AgentTools) -> DiscreetServer:
    """The server, with all tools."""
    server = DiscreetServer(
        "sottovoce",
        title="sottovoce",
        version=__version__,
        instructions=INSTRUCTIONS,
        log_level="CRITICAL",
        subscriptions=False,
    )
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    for tool, title, hints in (
        (tools.private_search, "Private search", SENDS),
        (tools.obfuscate, "Variants of a text", COUNTS),
        (tools.sanitize, "Substitutes for texts", COUNTS),
        (tools.assess_risk, "What could be read off", LOOKS),
        (tools.budget, "Budget", LOOKS),
    ):
        server.add_tool(_discreet(tool), title=title, annotations=hints, structured_output=True)
    return server


def _discreet(tool: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """The tool with errors of one sentence, which never hold what was sent."""

    @wraps(tool)
    def run(*arguments: Arguments.args, **named: Arguments.kwargs) -> Answer:
        try:
            return tool(*arguments, **named)
        except BudgetError as error:
            raise ToolError(_spent(error)) from None
        except Exception as error:
            _, body = failure(error)
            raise ToolError(body["error"]) from None

    return run


def _spent(error: BudgetError) -> str:
    """That the budget is spent; how to raise it is for the person, not for the agent."""
    if error.left is None:
        return "the budget does not cover this: nothing was sent. Tell the person"
    return (
        f"the budget is spent: this would cost {error.cost:g} nats, and {error.left:g} are left. "
        "Nothing was sent. Do not rephrase: tell the person"
    )


def _problems(error: ValidationError) -> str:
    """Which arguments are wrong, and how: by name, without their values."""
    problems = {
        f"{'.'.join(map(str, problem['loc']))}: {problem['type'].replace('_', ' ')}"
        for problem in error.errors(include_input=False, include_context=False, include_url=False)
    }
    return f"the arguments cannot be right: {'; '.join(sorted(problems))}"


def http_app(server: MCPServer[Any], settings: Settings) -> ASGIApp:
    """The server over HTTP: by the names of this machine, and with the token alone."""
    security = TransportSecuritySettings(
        allowed_hosts=sorted(settings.hosts),
        allowed_origins=[f"http://{host}" for host in sorted(settings.hosts)],
    )
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=True,
        json_response=True,
        max_request_body_size=BODY,
        transport_security=security,
    )
    return Guard(_TokenAlone(app), settings)


class _TokenAlone:
    """ASGI middleware: whoever has no token gets nothing, whatever the method."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass that the guard trusts."""
        if scope["type"] == "http" and not scope["state"]["trusted"]:
            raise needs_token()
        await self.app(scope, receive, send)
