"""The reference client of the Model Context Protocol, in Python: lists and calls every tool, in both revisions.

    mcp_client.py BASE_URL TOKEN AGENT QUESTION FACT

The token may edit documents. FACT are words of a document of the agent's that the answer to QUESTION has to hold. It ends with
another status than 0 when anything is wrong.
"""

import asyncio
import json
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

TOOLS = {"search", "fetch", "ask_agent", "list_agents", "list_documents", "add_document"}
READ_ONLY = TOOLS - {"ask_agent", "add_document"}


def check(holds, what):
    """Unlike `assert`, also where Python runs with -O."""
    if not holds:
        raise SystemExit(f"wrong: {what}")


def text_of(result):
    check(not result.is_error, result)
    check(len(result.content) == 1 and result.content[0].type == "text", result.content)
    return result.content[0].text


async def check_tools(client):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    check(set(tools) == TOOLS, f"the tools are {sorted(tools)}")
    for name, tool in tools.items():
        check(tool.title and tool.description and tool.input_schema["type"] == "object", tool)
        check(tool.annotations.read_only_hint is (name in READ_ONLY), tool.annotations)
    for name in ["search", "fetch"]:
        check(tools[name].output_schema is None, f"{name} has an output schema")


async def check_reading(client, fact):
    found = json.loads(text_of(await client.call_tool("search", {"query": fact, "limit": 5})))
    check(list(found) == ["results"] and found["results"], found)
    for result in found["results"]:
        check(list(result) == ["id", "title", "url"] and "/cite/" in result["url"], result)
    passage = json.loads(text_of(await client.call_tool("fetch", {"id": found["results"][0]["id"]})))
    check(list(passage) == ["id", "title", "text", "url", "metadata"], passage)
    check(fact in passage["text"], passage["text"])
    document = passage["metadata"]["documentId"]
    whole = json.loads(text_of(await client.call_tool("fetch", {"id": document})))
    check(fact in whole["text"], whole["text"])
    listed = (await client.call_tool("list_documents", {"limit": 100})).structured_content
    check(document in [shown["id"] for shown in listed["documents"]], listed)
    return document


async def check_asking(client, agent, question, fact):
    agents = (await client.call_tool("list_agents", {})).structured_content["agents"]
    check(any(agent in (shown["id"], shown["name"]) for shown in agents), agents)
    reports = []

    async def note(progress, total, message):
        reports.append((progress, message))

    asked = {"agent": agent, "question": question, "history": [{"question": "Hello?", "answer": "Hello."}]}
    result = await client.call_tool("ask_agent", asked, progress_callback=note)
    text = text_of(result)
    check(fact in text and "Sources:" in text, text)
    check(reports and [n for n, _ in reports] == sorted(n for n, _ in reports), reports)
    answer = result.structured_content
    check(fact in answer["answer"] and answer["citations"], answer)
    for source in answer["citations"]:
        check(source["verified"] is True and source["quote"] and "/cite/" in source["url"], source)
        check(f"[{source['n']}]" in answer["answer"], answer)
    async with httpx2.AsyncClient() as anybody:
        page = await anybody.get(answer["citations"][0]["url"])
        check(page.status_code == 200, page.status_code)


async def check_adding(client, mode):
    # Of two passages that say the same, a search shows one.
    words = f"The keeper of the {mode} lighthouse is called Ottilie."
    added = (await client.call_tool("add_document", {"name": "Lighthouse", "text": words})).structured_content
    for _ in range(600):
        listed = (await client.call_tool("list_documents", {"limit": 100})).structured_content["documents"]
        status = next(shown["status"] for shown in listed if shown["id"] == added["id"])
        if status not in ("QUEUED", "RUNNING"):
            break
        await asyncio.sleep(0.1)
    check(status == "SUCCEEDED", status)
    found = json.loads(text_of(await client.call_tool("search", {"query": f"Who keeps the {mode} lighthouse?"})))
    check(any(result["id"].startswith(added["id"]) for result in found["results"]), found)


async def check_resources(client, document, fact):
    listed = (await client.list_resources()).resources
    uri = f"lectern://documents/{document}"
    check(uri in [str(resource.uri) for resource in listed], listed)
    templates = (await client.list_resource_templates()).resource_templates
    check([template.uri_template for template in templates] == ["lectern://documents/{id}"], templates)
    contents = (await client.read_resource(uri)).contents
    check(fact in contents[0].text, contents)


async def check_errors(client):
    wrong = await client.call_tool("search", {"limit": 5})
    check(wrong.is_error and "query" in wrong.content[0].text, wrong)
    unknown = await client.call_tool("ask_agent", {"agent": "nobody", "question": "Well?"})
    check(unknown.is_error and "agent" in unknown.content[0].text, unknown)
    try:
        await client.call_tool("no_such_tool", {})
    except MCPError as error:
        check("no_such_tool" in str(error), error)
    else:
        check(False, "an unknown tool was called")


async def main(base_url, token, agent, question, fact):
    seen = []
    for mode in ["legacy", "auto"]:
        http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=120)
        transport = streamable_http_client(f"{base_url}/mcp", http_client=http)
        async with http, Client(transport, mode=mode) as client:
            seen.append(client.protocol_version)
            check(client.server_info is None or client.server_info.name == "lectern", client.server_info)
            await check_tools(client)
            document = await check_reading(client, fact)
            await check_asking(client, agent, question, fact)
            await check_adding(client, mode)
            await check_resources(client, document, fact)
            await check_errors(client)
    check(seen[0] < "2026-07-28" <= seen[1], f"the revisions were {seen}")
    print(json.dumps({"ok": True, "revisions": seen}))


if __name__ == "__main__":
    if len(sys.argv) != 6:
        raise SystemExit(__doc__)
    asyncio.run(main(*sys.argv[1:]))
