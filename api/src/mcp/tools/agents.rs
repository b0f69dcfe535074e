//! Which agents there are to ask.

use lectern_shared::ids::AgentId;
use rmcp::model::Tool;
use serde_json::{Value, json};

use super::{
    CallResult,
    paging::{self, PageArguments},
    schema,
};
use crate::{
    mcp::{context::CallContext, served::ServedServices},
    services::asking::AskableAgent,
};

pub(super) fn described(name: &'static str) -> Tool {
    let description = "Lists the agents that you may ask with `ask_agent`, newest first: the id, the name and what each is for.";
    Tool::new(name, description, schema::shared(schema::of::<PageArguments>()))
        .with_title("List agents")
        .with_raw_output_schema(schema::shared(paging::output("agents", &entry())))
}

/// The schema of an agent in a result.
fn entry() -> Value {
    let text = || json!({"type": "string"});
    json!({
        "type": "object",
        "properties": {"id": text(), "name": text(), "description": text()},
        "required": ["id", "name", "description"],
    })
}

fn shown(askable: &AskableAgent) -> Value {
    json!({"id": askable.agent().id, "name": askable.agent().name, "description": askable.summary()})
}

pub(super) async fn list(services: &ServedServices, call: &CallContext) -> CallResult {
    let page: PageArguments = call.arguments.read()?;
    let before = AgentId::from(page.before()?);
    let askable = services.asking.askable(&call.actor, "", before, page.sought()).await?;
    Ok(page.answer("agents", &askable, shown))
}
