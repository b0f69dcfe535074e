// The reference client of the Model Context Protocol, in JavaScript: lists and calls every tool, by the handshake that its SDK
// speaks.
//
//     node mcp_client.mjs BASE_URL TOKEN AGENT QUESTION FACT
//
// The token may edit documents. FACT are words of a document of the agent's that the answer to QUESTION has to hold. It ends with
// another status than 0 when anything is wrong.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [baseUrl, token, agent, question, fact] = process.argv.slice(2);
const TOOLS = ["add_document", "ask_agent", "fetch", "list_agents", "list_documents", "search"];
const WRITING = ["add_document", "ask_agent"];

function check(holds, what) {
  if (!holds) {
    throw new Error(`wrong: ${typeof what === "string" ? what : JSON.stringify(what)}`);
  }
}

if (!fact) {
  console.error("node mcp_client.mjs BASE_URL TOKEN AGENT QUESTION FACT");
  process.exit(2);
}

const transport = new StreamableHTTPClientTransport(new URL(`${baseUrl}/mcp`), {
  requestInit: { headers: { authorization: `Bearer ${token}` } },
});
const client = new Client({ name: "lectern-check", version: "1.0.0" });
await client.connect(transport);
check(transport.sessionId?.length === 32, "the server named no session");
check(client.getServerVersion().name === "lectern", client.getServerVersion());
check(client.getInstructions().length > 0, "there are no instructions");

// Listed first: from then on the SDK holds results to the schemas.
const { tools } = await client.listTools();
check(tools.map((tool) => tool.name).sort().join() === TOOLS.join(), tools);
for (const tool of tools) {
  check(tool.title && tool.description && tool.inputSchema.type === "object", tool);
  check(tool.annotations.readOnlyHint === !WRITING.includes(tool.name), tool);
}

async function call(name, args, options) {
  const result = await client.callTool({ name, arguments: args }, undefined, options);
  check(!result.isError, result);
  check(result.content.length === 1 && result.content[0].type === "text", result);
  return { text: result.content[0].text, data: result.structuredContent };
}

const found = JSON.parse((await call("search", { query: fact, limit: 5 })).text);
check(found.results.length > 0, found);
for (const result of found.results) {
  check(Object.keys(result).join() === "id,title,url" && result.url.includes("/cite/"), result);
}
const passage = JSON.parse((await call("fetch", { id: found.results[0].id })).text);
check(Object.keys(passage).join() === "id,title,text,url,metadata", passage);
check(passage.text.includes(fact), passage);

const { agents } = (await call("list_agents", {})).data;
check(agents.some((shown) => [shown.id, shown.name].includes(agent)), agents);
const reports = [];
const asked = await call("ask_agent", { agent, question }, { onprogress: (report) => reports.push(report) });
check(reports.length > 0 && reports.every((report) => report.progress > 0 && report.message), reports);
check(asked.data.answer.includes(fact) && asked.text.includes("Sources:"), asked);
for (const source of asked.data.citations) {
  check(source.verified && source.quote && source.url.includes("/cite/"), source);
}
check((await fetch(asked.data.citations[0].url)).status === 200, "the link of a source opens nothing");

const words = "The lighthouse keeper is called Ottilie.";
const added = (await call("add_document", { name: "Lighthouse", text: words })).data;
let status = added.status;
for (let tries = 0; ["QUEUED", "RUNNING"].includes(status) && tries < 600; tries += 1) {
  const { documents } = (await call("list_documents", { limit: 100 })).data;
  status = documents.find((shown) => shown.id === added.id).status;
  await new Promise((later) => setTimeout(later, 100));
}
check(status === "SUCCEEDED", status);

const uri = `lectern://documents/${passage.metadata.documentId}`;
const { resources } = await client.listResources();
check(resources.some((resource) => resource.uri === uri), resources);
const { resourceTemplates } = await client.listResourceTemplates();
check(resourceTemplates[0].uriTemplate === "lectern://documents/{id}", resourceTemplates);
const { contents } = await client.readResource({ uri });
check(contents[0].text.includes(fact), contents);

const wrong = await client.callTool({ name: "search", arguments: { limit: 5 } });
check(wrong.isError && wrong.content[0].text.includes("query"), wrong);
const refused = await client.callTool({ name: "no_such_tool", arguments: {} }).then(() => undefined, String);
check(refused?.includes("no_such_tool"), refused);

await client.close();
console.log(JSON.stringify({ ok: true, revision: transport.protocolVersion }));
