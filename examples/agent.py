"""Ask as an agent would: start `sottovoce mcp`, search through it, and see what that cost.

pip install 'sottovoce[mcp]'; sottovoce spaces add default; sottovoce ledger budget --total 150
python examples/agent.py "treatment for skin cancer"
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from mcp import StdioServerParameters
from mcp.client.client import Client

COMMAND = StdioServerParameters(
    command=sys.executable, args=["-m", "sottovoce", "mcp"], env=dict(os.environ)
)


async def ask(server: Any, query: str) -> None:
    """Search once, and print what was found, what left this machine, and what is left."""
    async with Client(server) as client:
        tools = await client.list_tools()
        print("Tools:", ", ".join(tool.name for tool in tools.tools))
        answer = await client.call_tool("private_search", {"query": query, "top": 3})
        if answer.is_error:
            print("Refused:", answer.content[0].text)
            return
        result = answer.structured_content
        for hit in result["hits"]:
            print(f"{hit['rank']}. {hit['title']}")
        print("What left:", "; ".join(result["sent"][:3]), "…")
        print(f"It cost {result['spent']} nats; {result['left']} are left.")


if __name__ == "__main__":
    asyncio.run(ask(COMMAND, sys.argv[1]))
