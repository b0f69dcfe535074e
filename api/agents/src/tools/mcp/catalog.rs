//! What a server offers: its tools as functions. A server may write anything into its list, so each entry is looked at by
//! itself; one that cannot be offered is left out, and the others go on. A page of the list is forgotten before the next one
//! is asked for.

use std::collections::BTreeMap;

use lectern_shared::model::tool::Tool as Stored;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use super::{
    super::{ToolFunction, naming, text},
    header::{self, PromotedArguments},
    message::{McpRequest, McpRevision},
    raw::{self, RawItems, RawPart},
    schema::{self, ReadSchema},
};
use crate::{answer::redact::SecretRedactor, models::ToolSpec};

/// Most tools of a server that are offered.
const TOOLS: usize = 64;
/// Most bytes of all their schemas, and most values in them.
const SCHEMAS: usize = 256 * 1024;
const VALUES: usize = 16_384;
/// Most entries of a list that are looked at, and most bytes of a list after which no more of it is asked for.
const ENTRIES: usize = 1_000;
const LIST: usize = 1024 * 1024;
/// Longest name of a tool, in bytes.
const NAME: usize = 256;
/// Longest secret that is looked for as functions would be named by it, in bytes.
const SECRET: usize = 8 * 1024;
/// Longest description that a model is told, in characters.
const DESCRIPTION: usize = 1_000;
/// Tools that were left out and are named, and the longest name, in characters.
const TOLD: usize = 5;
const TOLD_NAME: usize = 80;

/// What was learnt of a server. It holds no secret.
pub(super) struct McpCatalog {
    /// At least one.
    pub(super) tools: Vec<ListedTool>,
    /// How the server is spoken to.
    pub(super) revision: McpRevision,
    /// How often the server had said by then that its tools are others.
    pub(super) changes: u64,
}

impl McpCatalog {
    /// As models are told of them.
    pub(super) fn functions(&self) -> Vec<ToolFunction> {
        let function = |tool: &ListedTool| {
            let spec = ToolSpec {
                name: tool.offered.clone(),
                description: tool.description.clone(),
                // It was made from a tree.
                parameters: serde_json::from_str(&tool.schema).unwrap_or_default(),
            };
            ToolFunction { spec, plain: None }
        };
        self.tools.iter().map(function).collect()
    }

    /// About how many bytes it holds.
    pub(super) fn bytes(&self) -> usize {
        let of = |tool: &ListedTool| {
            let texts = [&tool.name, &tool.offered, &tool.description, &tool.schema];
            let promoted = tool.promoted.iter().flat_map(|(path, _)| path).map(String::len).sum::<usize>();
            texts.map(String::len).iter().sum::<usize>() + promoted + size_of::<ListedTool>()
        };
        self.tools.iter().map(of).sum()
    }
}

/// A tool as its server knows it, and as models do.
#[derive(Debug)]
pub(super) struct ListedTool {
    name: String,
    promoted: PromotedArguments,
    /// The name that models call it by.
    offered: String,
    description: String,
    /// As text: a tree takes much more memory, and this is kept for a while.
    schema: String,
}

impl ListedTool {
    /// The call with these arguments.
    pub(super) fn call(&self, arguments: Map<String, Value>) -> McpRequest {
        let promoted = header::of_call(&self.promoted, &arguments);
        let call =
            McpRequest::new("tools/call").with("name", self.name.as_str()).with("arguments", arguments);
        McpRequest { promoted, ..call }
    }
}

/// A page of a server's list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListPage<'a> {
    #[serde(borrow, default)]
    tools: RawPart<'a>,
    #[serde(borrow, default)]
    next_cursor: RawPart<'a>,
}

/// One entry of it.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListEntry<'a> {
    #[serde(borrow, default)]
    name: RawPart<'a>,
    #[serde(borrow, default)]
    title: RawPart<'a>,
    #[serde(borrow, default)]
    description: RawPart<'a>,
    #[serde(borrow, default)]
    input_schema: RawPart<'a>,
}

/// A catalog that is made from one page after the other.
pub(super) struct CatalogBuilder {
    /// The tool that stands for the server.
    tool: Stored,
    /// The only tools that may be called; all when none.
    wanted: Option<Vec<String>>,
    /// Which of them were not seen yet.
    missing: Vec<String>,
    /// The tool's secrets, which the server was asked with and may write into names.
    secrets: SecretRedactor,
    usable: Vec<ListedTool>,
    left_out: LeftOut,
    /// What was looked at so far: entries, bytes of the list, bytes and values of schemas.
    entries: usize,
    read: usize,
    schemas: usize,
    values: usize,
}

impl CatalogBuilder {
    pub(super) fn new(tool: Stored, wanted: Option<Vec<String>>, secrets: Vec<SecretString>) -> Self {
        let missing = wanted.clone().unwrap_or_default();
        let mut known = SecretRedactor::default();
        for secret in secrets {
            known.add(naming::words(secret.expose_secret(), SECRET).into());
            known.add(secret);
        }
        Self {
            tool,
            wanted,
            missing,
            secrets: known,
            usable: Vec::new(),
            left_out: LeftOut::default(),
            entries: 0,
            read: 0,
            schemas: 0,
            values: 0,
        }
    }

    /// Takes a page in, and says where the next one is, if one is to be asked for.
    ///
    /// # Errors
    /// When it is no page.
    pub(super) fn add(&mut self, page: &RawValue) -> Result<Option<String>, ()> {
        self.read += page.get().len();
        let page: ListPage<'_> = raw::object(page).ok_or(())?;
        let RawItems(entries) = page.tools.items().ok_or(())?;
        for entry in entries.into_iter().take(ENTRIES - self.entries) {
            self.entries += 1;
            self.consider(&raw::object(entry).unwrap_or_default());
        }
        let is_enough = self.entries == ENTRIES || self.read >= LIST;
        Ok(page.next_cursor.text().filter(|_| !is_enough))
    }

    fn consider(&mut self, entry: &ListEntry<'_>) {
        let Some(name) = entry.name.text().filter(|name| is_name(name)) else {
            self.left_out.add("?", "it has no usable name");
            return;
        };
        let holds_secret = |text: String| self.secrets.text(text.clone()) != text;
        if holds_secret(name.clone()) || holds_secret(naming::words(&name, NAME)) {
            // Its name is told to nobody.
            self.left_out.add("?", "its name holds a secret of this tool");
            return;
        }
        if self.wanted.as_ref().is_some_and(|wanted| !wanted.contains(&name)) {
            return;
        }
        self.missing.retain(|missing| *missing != name);
        if self.usable.iter().any(|other| other.name == name) {
            self.left_out.add(&name, "another one has its name");
            return;
        }
        match read(&name, entry) {
            Err(reason) => self.left_out.add(&name, reason),
            Ok(_) if self.usable.len() == TOOLS => self.left_out.add(&name, "there are too many"),
            Ok((tool, values))
                if self.schemas + tool.schema.len() <= SCHEMAS && self.values + values <= VALUES =>
            {
                self.schemas += tool.schema.len();
                self.values += values;
                self.usable.push(tool);
            }
            Ok(_) => self.left_out.add(&name, "the schemas of all are too large together"),
        }
    }

    /// The tools that can be offered.
    ///
    /// # Errors
    /// Why there is none, as the rest of a sentence about the server.
    pub(super) fn build(self, revision: McpRevision, changes: u64) -> Result<McpCatalog, String> {
        let Self { tool, missing, usable: mut tools, mut left_out, .. } = self;
        for name in &missing {
            left_out.add(name, "the server has no such tool");
        }
        if left_out.count > 0 {
            // The names are the server's own words, so they are not for the log.
            tracing::warn!(tool = %tool.id, left_out = left_out.count, reasons = ?left_out.reasons, "tools of an MCP server are left out");
        }
        if tools.is_empty() {
            return Err(match left_out.count {
                0 => "has no tool that can be called".to_owned(),
                _ => format!("has no tool that can be called: {}", left_out.told()),
            });
        }
        let names = naming::members(&tool, tools.iter().map(|listed| listed.name.as_str()));
        let mut note = left_out.note();
        for (listed, name) in tools.iter_mut().zip(names) {
            listed.offered = name;
            listed.description = naming::describe_member(&tool, &listed.description);
            // With the first one, it is told to the model once, and kept with the record of the run.
            if let Some(note) = note.take() {
                listed.description = format!("{}\n\n{note}", listed.description);
            }
        }
        Ok(McpCatalog { tools, revision, changes })
    }
}

fn is_name(name: &str) -> bool {
    !name.trim().is_empty() && name.len() <= NAME
}

/// One entry of a server's list, and how many values its schema has.
fn read(name: &str, entry: &ListEntry<'_>) -> Result<(ListedTool, usize), &'static str> {
    let ReadSchema { map, text: schema, values } = schema::read(entry.input_schema)?;
    let promoted = header::promoted(&map)?;
    let words = |part: RawPart<'_>| text::line(&part.text().unwrap_or_default(), DESCRIPTION);
    let description =
        [words(entry.description), words(entry.title), format!("Calls {}.", text::line(name, TOLD_NAME))];
    let description = description.into_iter().find(|words| !words.is_empty()).unwrap_or_default();
    let (name, offered) = (name.to_owned(), String::new());
    Ok((ListedTool { name, promoted, offered, description, schema }, values))
}

/// Tools that are not offered, and why.
#[derive(Default)]
struct LeftOut {
    names: Vec<String>,
    count: usize,
    reasons: BTreeMap<&'static str, usize>,
}

impl LeftOut {
    fn add(&mut self, name: &str, reason: &'static str) {
        self.count += 1;
        *self.reasons.entry(reason).or_default() += 1;
        if self.names.len() < TOLD {
            self.names.push(format!("`{}` ({reason})", text::line(name, TOLD_NAME)));
        }
    }

    fn told(&self) -> String {
        let more = self.count - self.names.len();
        let told = self.names.join(", ");
        if more == 0 { told } else { format!("{told} and {more} more") }
    }

    fn note(&self) -> Option<String> {
        (self.count > 0).then(|| format!("Of this server's tools these cannot be called: {}.", self.told()))
    }
}
