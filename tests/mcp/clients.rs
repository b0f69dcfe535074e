//! The reference clients, with the packages that other people have: each lists and calls every tool.

use serde_json::json;

use super::{agent_with_text, with_api_token};
use crate::support::{
    in_both_modes,
    programs::Workbench,
    service::{Mode, Service},
};

in_both_modes!(the_reference_clients_list_and_call_every_tool);

async fn the_reference_clients_list_and_call_every_tool(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    agent_with_text(&ada, "The harbour gate opens at half past six. The cellar is locked at night.").await;
    let editor = with_api_token(&ada, json!({ "role": "editor" })).await;
    let (question, fact) = ("When does the harbour gate open?", "half past six");
    let (url, bench) = (service.base_url(), Workbench::with_scripts());
    for program in ["mcp_client.py", "mcp_client.mjs"] {
        let said = bench.run(program, &[&url, editor.token(), "Clerk", question, fact], &[]).await;
        assert!(said.is_none_or(|said| said.contains("\"ok\"")), "{program}");
    }
}
