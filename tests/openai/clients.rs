//! Other people's clients, as they are: what they show is what the service says. The code in docs/clients.md runs here too.

use serde_json::{Value, json};

use super::{FACT, Harbour, QUESTION, agent, script};
use crate::support::{
    client::{Client, id},
    in_both_modes,
    programs::Workbench,
    service::{Mode, Service},
};

in_both_modes!(
    the_sdk_for_python_asks_agents,
    the_sdk_for_python_keeps_files_and_searches_them,
    the_sdk_for_javascript_does_all_of_it,
    langchain_asks_agents_and_shows_citations,
    llamaindex_asks_agents_and_shows_citations,
    the_ai_sdk_asks_agents_and_shows_sources,
);

const DOCUMENT: &str = include_str!("../../docs/clients.md");

/// What a client is told: where the service is, and with which key and which agent it is to be asked.
struct ClientSettings {
    base_url: String,
    mcp_url: String,
    key: String,
    limited_key: String,
    agent: String,
}

impl ClientSettings {
    async fn of(service: &Service, owner: &Client, agent: &str) -> Self {
        let key = async |fields: Value| script(owner, fields).await.token().to_owned();
        Self {
            base_url: format!("{}/v1", service.base_url()),
            mcp_url: format!("{}/mcp", service.base_url()),
            key: key(json!({})).await,
            limited_key: key(json!({ "ratePerMinute": 1 })).await,
            agent: agent.to_owned(),
        }
    }

    fn environment(&self) -> [(&str, &str); 7] {
        [
            ("OPENAI_BASE_URL", self.base_url.as_str()),
            ("OPENAI_API_KEY", self.key.as_str()),
            ("LECTERN_MCP_URL", self.mcp_url.as_str()),
            ("LECTERN_LIMITED_KEY", self.limited_key.as_str()),
            ("LECTERN_AGENT", self.agent.as_str()),
            ("LECTERN_QUESTION", QUESTION),
            ("LECTERN_FACT", FACT.trim_end_matches('.')),
        ]
    }
}

/// Fails unless a program says at its end that all was well.
fn assert_all_well(text: &str) {
    let end = text.lines().rev().find_map(|line| serde_json::from_str::<Value>(line).ok());
    assert_eq!(end.unwrap_or_default()["ok"], true, "{text}");
}

/// Runs a program against both agents. It has to say at its end that all was well.
async fn run(program: &str, mode: Mode) {
    let harbour = Harbour::start(mode).await;
    let bench = Workbench::with_scripts();
    for agent in [&harbour.quoting, &harbour.composing] {
        let settings = ClientSettings::of(&harbour.service, &harbour.ada, agent).await;
        let Some(text) = bench.run(program, &[], &settings.environment()).await else { return };
        assert_all_well(&text);
        harbour.service.assert_no_secret_in_logs(&[&settings.key]);
    }
}

async fn the_sdk_for_python_asks_agents(mode: Mode) {
    run("openai_python.py", mode).await;
}

async fn the_sdk_for_python_keeps_files_and_searches_them(mode: Mode) {
    run("openai_files.py", mode).await;
}

async fn the_sdk_for_javascript_does_all_of_it(mode: Mode) {
    run("openai_node.mjs", mode).await;
}

async fn langchain_asks_agents_and_shows_citations(mode: Mode) {
    run("langchain_client.py", mode).await;
}

async fn llamaindex_asks_agents_and_shows_citations(mode: Mode) {
    run("llamaindex_client.py", mode).await;
}

async fn the_ai_sdk_asks_agents_and_shows_sources(mode: Mode) {
    run("ai_sdk_client.mjs", mode).await;
}

/// The programs of the document: the blocks that begin with a comment that names their file.
fn shown_programs() -> Vec<(&'static str, &'static str)> {
    let blocks = DOCUMENT.split("\n```").skip(1).step_by(2);
    let bodies = blocks.filter_map(|block| block.split_once('\n').map(|(_, body)| body));
    let named = bodies.filter_map(|body| {
        let first = body.lines().next()?;
        let name = first.strip_prefix("# file: ").or_else(|| first.strip_prefix("// file: "))?;
        Some((name, body))
    });
    named.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_document_shows_runs_as_it_stands() {
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let rules =
        "Quiet hours begin at ten in the evening. Bicycles belong in the cellar, never in the stairwell.";
    let document = ada.ingest(&json!({ "name": "House rules", "type": "TXT", "content": rules })).await;
    let caretaker =
        agent(&ada, "Caretaker", &json!({ "model": "extractive", "provider": "extractive" })).await;
    ada.link(&caretaker, id(&document)).await;
    let settings = ClientSettings::of(&service, &ada, "Caretaker").await;
    let programs = shown_programs();
    assert!(programs.len() >= 8, "only {} programs were found", programs.len());
    let bench = Workbench::empty();
    bench.write("rules.txt", rules);
    for (name, text) in programs {
        bench.write(name, text);
        if let Some(said) = bench.run(name, &[], &settings.environment()).await {
            assert!(said.contains("cellar"), "{name} does not show the answer: {said}");
        }
    }
}

#[test]
fn the_configurations_that_the_document_shows_are_json() {
    let blocks =
        DOCUMENT.split("\n```json\n").skip(1).map(|rest| rest.split("\n```").next().expect("a block"));
    let mut count = 0;
    for block in blocks {
        serde_json::from_str::<Value>(block).unwrap_or_else(|error| panic!("{error}: {block}"));
        count += 1;
    }
    assert!(count > 0, "there is a configuration for assistants");
}
