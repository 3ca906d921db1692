"""The Python client of the protocol, as somebody else's program: lists, calls, has an effect approved, cancels. Says what it saw, as JSON."""
import asyncio, json, sys

import anyio
import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

url, token, mode, note = sys.argv[1:5]
asked = []


async def person(_context, params):
    asked.append(params.message)
    return types.ElicitResult(action="accept", content={"keep": True})


def seen(result):
    return {"error": bool(result.is_error), "structured": result.structured_content, "content": [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content]}


async def main():
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=60) as http:
        async with Client(streamable_http_client(url, http_client=http), mode=mode, elicitation_callback=person) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            called = await client.call_tool("json.query", {"filter": ".a", "document": {"a": 7}})
            kept = await client.call_tool("fixture.act", {"verb": "write", "args": [f"notes/{note}", "yes"]})
            with anyio.move_on_after(2) as scope:
                await client.call_tool("fixture.act", {"verb": "sleep", "args": [f"notes/{note}.slept"]})
            after = await client.call_tool("json.query", {"filter": ".b", "document": {"b": 8}})
            print(json.dumps({"tools": tools, "called": seen(called), "kept": seen(kept), "asked": asked, "left": scope.cancelled_caught, "after": seen(after)}))


asyncio.run(main())
