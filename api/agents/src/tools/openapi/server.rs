//! Where the operations of a document are.

use serde_json::{Map, Value};
use url::{Origin, Position, Url};

use super::{
    document::{OpenApiDocument, OpenApiVersion},
    operation::FoundOperation,
};

/// Most servers of one list that are looked at.
const SERVERS: usize = 20;
/// Longest address, in bytes.
const ADDRESS: usize = 2_000;

/// Where an operation is to be asked for, and whether the owner's headers may go there.
pub(super) struct ServerResolver<'a> {
    pub(super) document: &'a OpenApiDocument,
    /// Where the document came from.
    pub(super) address: &'a Url,
    /// The configured server, which wins over what the document says.
    pub(super) base: Option<&'a Url>,
    /// The only origin to ask, if there is only one.
    pub(super) only: Option<&'a Origin>,
}

/// Why there is no server for an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoServer {
    /// The document names none that can be asked.
    Unusable,
    /// It names another origin than the one that the owner's headers are for.
    Elsewhere,
}

impl ServerResolver<'_> {
    pub(super) fn of(&self, found: &FoundOperation<'_>) -> Result<Url, NoServer> {
        if let Some(base) = self.base {
            return Ok(base.clone());
        }
        let named = match self.document.version {
            OpenApiVersion::Two => self.of_two(found),
            OpenApiVersion::Three => self.of_three(found),
        };
        let Some(first) = named.first() else { return Err(NoServer::Unusable) };
        match self.only {
            None => Ok(first.clone()),
            Some(only) => named.iter().find(|url| url.origin() == *only).cloned().ok_or(NoServer::Elsewhere),
        }
    }

    fn of_two(&self, found: &FoundOperation<'_>) -> Vec<Url> {
        let root = self.document.root();
        let schemes = found.operation.get("schemes").unwrap_or(&root["schemes"]);
        let schemes: Vec<_> = schemes.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let schemes = if schemes.is_empty() { vec![self.address.scheme()] } else { schemes };
        let host = match root["host"].as_str() {
            Some(host) if host.contains(['/', '?', '#', '@', '\\']) => return Vec::new(),
            Some(host) => host,
            None => &self.address[Position::BeforeHost..Position::AfterPort],
        };
        let path = root["basePath"].as_str().unwrap_or("/");
        let slash = if path.starts_with('/') { "" } else { "/" };
        ["https", "http"]
            .into_iter()
            .filter(|known| schemes.contains(known))
            .filter_map(|scheme| usable(format!("{scheme}://{host}{slash}{path}").parse().ok()?))
            .collect()
    }

    fn of_three(&self, found: &FoundOperation<'_>) -> Vec<Url> {
        let lists =
            [found.operation.get("servers"), found.item.get("servers"), self.document.root().get("servers")];
        let list = lists.into_iter().flatten().filter_map(Value::as_array).find(|list| !list.is_empty());
        let Some(list) = list else {
            // What a document without servers means.
            return self.address.join("/").ok().and_then(usable).into_iter().collect();
        };
        let named = list.iter().take(SERVERS).filter_map(Value::as_object);
        named.filter_map(|server| usable(self.address.join(&filled(server)?).ok()?)).collect()
    }
}

/// A server's address with its variables' defaults in it.
fn filled(server: &Map<String, Value>) -> Option<String> {
    let mut rest = server.get("url")?.as_str().filter(|url| url.len() <= ADDRESS)?;
    let mut filled = String::new();
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        let variable = server.get("variables")?.get(name)?;
        let value = variable.get("default").or_else(|| variable.get("enum")?.get(0))?;
        filled.push_str(before);
        match value {
            Value::String(text) => filled.push_str(text),
            Value::Number(number) => filled.push_str(&number.to_string()),
            _ => return None,
        }
        if filled.len() > ADDRESS {
            return None;
        }
        rest = after;
    }
    filled.push_str(rest);
    Some(filled)
}

fn usable(mut url: Url) -> Option<Url> {
    let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
    let is_open = url.username().is_empty() && url.password().is_none();
    url.set_query(None);
    url.set_fragment(None);
    (is_web && is_open).then_some(url)
}
