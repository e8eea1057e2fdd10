#!/usr/bin/env python3
"""Calls the tools of `stepscope mcp` by the official SDK (pip install mcp==2.3.0).

    python3 mcp_client.py PROGRAM < requests > answers

A request is a line of JSON: [TOOL, ARGUMENTS]. The first line of the answers is the server's name, the next the tools with their
required arguments; then one for each request: {"text": ..., "is_error": ...}.
"""
import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def field(value, name, other):
    """A field, which newer versions of the SDK name by Python's rules."""
    return getattr(value, name) if hasattr(value, name) else getattr(value, other)


async def main():
    server = StdioServerParameters(command=sys.argv[1], args=["mcp"])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        begun = await session.initialize()
        print(field(begun, "serverInfo", "server_info").name)
        tools = (await session.list_tools()).tools
        print(json.dumps({tool.name: field(tool, "inputSchema", "input_schema")["required"] for tool in tools}))
        await session.send_ping()
        for line in sys.stdin:
            name, arguments = json.loads(line)
            try:
                result = await session.call_tool(name, arguments)
                text = "".join(part.text for part in result.content)
                print(json.dumps({"text": text, "is_error": field(result, "isError", "is_error")}))
            except Exception as error:  # what the SDK makes of an error of the protocol
                print(json.dumps({"text": str(error), "is_error": True}))


asyncio.run(main())
