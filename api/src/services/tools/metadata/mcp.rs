//! The configuration of an MCP tool: a server at an address, or a program that the operator has named.

use serde_json::{Map, Value};

use super::{TEXT, address, headers, is_own_header, named};
use crate::{error::ApiError, fields::JsonFields};

/// Headers of the protocol, which the service sets itself.
const PROTOCOL_HEADERS: [&str; 6] =
    ["accept", "last-event-id", "mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id"];

pub(super) fn check(fields: &mut JsonFields<'_>) {
    match (fields.get("url").is_some(), fields.get("server").is_some()) {
        (false, false) => fields.refuse(
            "url",
            "is required: the address of the server; or `server`, the name of one that the operator has set up",
        ),
        (true, true) => fields.refuse("server", "cannot stand beside `url`: a tool has one server"),
        (true, false) => {
            if address(fields, "url").is_some_and(|url| url.query().is_some()) {
                fields.refuse("url", "must not have a query, which would be shown: put keys into `headers`");
            }
            headers(fields, |name| {
                is_own_header(name)
                    || PROTOCOL_HEADERS.contains(&name.as_str())
                    || name.as_str().starts_with("mcp-param-")
            });
        }
        (false, true) => {
            fields.text("server", TEXT);
            if fields.get("headers").is_some() {
                fields.refuse("headers", "are for a server at a `url`");
            }
        }
    }
    named(
        fields,
        "tools",
        "must name a tool; leave it out to allow all of them",
        "must be an array of names",
    );
}

/// Refuses a program that the operator has not named.
pub(in super::super) fn check_server(
    metadata: &Map<String, Value>,
    named: &[String],
) -> Result<(), ApiError> {
    let Some(server) = metadata.get("server").and_then(Value::as_str).map(str::trim) else { return Ok(()) };
    if named.iter().any(|known| known == server) {
        return Ok(());
    }
    let message =
        "is no program that the operator lets tools use: the operator must name it in LECTERN_MCP_SERVERS";
    Err(ApiError::invalid_field("metadata.server", message))
}

#[cfg(test)]
mod tests {
    use lectern_shared::model::tool::ToolType;
    use serde_json::json;

    use super::{super::check_alone, *};

    fn map(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    fn wrong(metadata: &Value) -> Vec<String> {
        let Err(error) = check_alone(ToolType::Mcp, &map(metadata)) else { return Vec::new() };
        error.fields.into_iter().map(|field| field.path).collect()
    }

    #[test]
    fn a_tool_has_an_address_or_a_program() {
        for good in [
            json!({"url": "https://a.example/mcp"}),
            json!({"url": "http://127.0.0.1:9/", "headers": {"Authorization": "Bearer k"}, "tools": ["read"]}),
            json!({"server": "files", "tools": ["read", "list"]}),
        ] {
            assert!(wrong(&good).is_empty(), "{good}");
        }
        for (bad, path) in [
            (json!({}), "metadata.url"),
            (json!({"url": 7}), "metadata.url"),
            (json!({"url": "stdio://files"}), "metadata.url"),
            (json!({"url": "https://u:p@a.example"}), "metadata.url"),
            (json!({"url": "https://a.example/mcp?api_key=k"}), "metadata.url"),
            (json!({"url": "https://a.example", "server": "files"}), "metadata.server"),
            (json!({"server": " "}), "metadata.server"),
            (json!({"server": "files", "headers": {"X": "k"}}), "metadata.headers"),
            (json!({"url": "https://a.example", "headers": {"Host": "b"}}), "metadata.headers.Host"),
            (
                json!({"url": "https://a.example", "headers": {"Mcp-Session-Id": "b"}}),
                "metadata.headers.Mcp-Session-Id",
            ),
            (
                json!({"url": "https://a.example", "headers": {"Mcp-Param-City": "b"}}),
                "metadata.headers.Mcp-Param-City",
            ),
            (json!({"url": "https://a.example", "headers": {"X": 1}}), "metadata.headers.X"),
            (json!({"url": "https://a.example", "tools": []}), "metadata.tools"),
            (json!({"url": "https://a.example", "tools": ["a", " "]}), "metadata.tools"),
            (json!({"url": "https://a.example", "tools": "a"}), "metadata.tools"),
        ] {
            assert_eq!(wrong(&bad), [path], "{bad}");
        }
    }

    #[test]
    fn programs_are_named_by_the_operator_alone() {
        let named = ["files".to_owned()];
        assert!(check_server(&map(&json!({"server": "files"})), &named).is_ok());
        assert!(check_server(&map(&json!({"url": "https://a.example"})), &[]).is_ok());
        for (server, named) in [("clock", &named[..]), ("files", &[])] {
            let error = check_server(&map(&json!({"server": server})), named).unwrap_err();
            let field = &error.fields[0];
            assert_eq!(field.path, "metadata.server");
            assert!(field.message.contains("the operator must name it"), "{}", field.message);
        }
    }
}
