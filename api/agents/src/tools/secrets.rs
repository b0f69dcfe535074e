//! The secret parts of a tool's configuration: which they are, and how they are sealed and read again. Its address is sealed with them, and is
//! no secret otherwise: whoever may see the tool sees it.

use lectern_shared::{
    ids::ToolId,
    model::tool::Tool,
    secrets::{CiphertextLocation, Keyring, SecretError},
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use url::form_urlencoded;

/// The part of a configuration that is shown as it is and sealed all the same: where an OpenAPI document is, which may hold a key.
const ADDRESS: &str = "openApiUrl";

/// What may lie open of a configuration, with null where a secret or its address was, and these, sealed.
pub type SealedConfiguration = (Map<String, Value>, Option<Vec<u8>>);

/// Why a stored configuration cannot be had with its secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RevealError {
    /// It cannot be decrypted.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// What it decrypts to is no configuration.
    #[error("the sealed configuration of a tool cannot be read")]
    Unreadable,
}

/// Whether the value under this key is secret.
fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    // The id of an application is what the computation engine knows its callers by.
    key == "app_id" || ["key", "token", "secret", "password"].iter().any(|end| key.ends_with(end))
}

/// Calls `visit` with every text and number that is secret, and its JSON pointer.
pub fn visit_secrets(map: &mut Map<String, Value>, visit: &mut impl FnMut(&str, &mut Value)) {
    fn walk(value: &mut Value, at: &str, secret: bool, visit: &mut impl FnMut(&str, &mut Value)) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                    walk(value, &at, secret || is_secret(key) || key.eq_ignore_ascii_case("headers"), visit);
                }
            }
            Value::Array(items) => {
                for (number, value) in items.iter_mut().enumerate() {
                    walk(value, &format!("{at}/{number}"), secret, visit);
                }
            }
            Value::String(_) | Value::Number(_) if secret => visit(at, value),
            Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {}
        }
    }
    let mut value = Value::Object(std::mem::take(map));
    walk(&mut value, "", false, visit);
    if let Value::Object(whole) = value {
        *map = whole;
    }
}

fn place(tool: &ToolId) -> CiphertextLocation<'_> {
    CiphertextLocation::tool_metadata(tool.as_uuid())
}

/// Whether the address of a stored configuration lies open: it was last changed before addresses were sealed.
pub fn is_address_open(metadata: &Map<String, Value>) -> bool {
    metadata.get(ADDRESS).is_some_and(Value::is_string)
}

/// Takes the secrets and the address out of a configuration.
///
/// # Errors
/// When they cannot be encrypted.
pub fn seal(
    keyring: &Keyring,
    tool: &ToolId,
    mut metadata: Map<String, Value>,
) -> Result<SealedConfiguration, SecretError> {
    let mut secrets = Map::new();
    visit_secrets(&mut metadata, &mut |at, value| drop(secrets.insert(at.to_owned(), value.take())));
    if let Some(address) = metadata.get_mut(ADDRESS).filter(|address| address.is_string()) {
        secrets.insert(format!("/{ADDRESS}"), address.take());
    }
    if secrets.is_empty() {
        return Ok((metadata, None));
    }
    let sealed = keyring.encrypt(place(tool), Value::Object(secrets).to_string().as_bytes())?;
    Ok((metadata, Some(sealed)))
}

/// A stored configuration with its secrets and its address.
///
/// # Errors
/// When its secrets were sealed under a key that is not configured, or are damaged.
pub fn reveal(keyring: &Keyring, tool: &Tool) -> Result<Map<String, Value>, RevealError> {
    let mut whole = Value::Object(tool.metadata.0.clone());
    if let Some(sealed) = &tool.metadata_sealed {
        let text = keyring.decrypt_text(place(&tool.id), sealed)?;
        let secrets: Map<String, Value> = serde_json::from_str(text.expose_secret()).map_err(|_| {
            tracing::error!(tool = %tool.id, "the sealed configuration of a tool cannot be read");
            RevealError::Unreadable
        })?;
        for (at, secret) in secrets {
            if let Some(slot) = whole.pointer_mut(&at) {
                *slot = secret;
            }
        }
    }
    match whole {
        Value::Object(map) => Ok(map),
        _ => Ok(Map::new()),
    }
}

/// Every secret of a configuration in each spelling in which it can turn up: as it is, without the scheme of an
/// `Authorization` value, and as queries and JSON texts write it. Blank ones are none. Longest first, so that
/// replacing them one after the other leaves nothing of a long one behind.
pub(crate) fn values(mut metadata: Map<String, Value>) -> Vec<SecretString> {
    let mut texts = Vec::new();
    visit_secrets(&mut metadata, &mut |_, value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if let Some((scheme, credentials)) = text.split_once(' ')
            && ["basic", "bearer", "token", "apikey"].contains(&scheme.to_ascii_lowercase().as_str())
        {
            texts.push(credentials.trim().to_owned());
        }
        texts.push(text);
    });
    for at in 0..texts.len() {
        let text = &texts[at];
        let query: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
        let path = super::encode::component(text);
        let json = Value::from(text.as_str()).to_string();
        let json = json[1..json.len() - 1].to_owned();
        texts.extend([query, path, json]);
    }
    texts.retain(|text| !text.trim().is_empty());
    texts.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
    texts.dedup();
    texts.into_iter().map(SecretString::from).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_address_is_sealed_and_is_no_secret_otherwise() {
        let keyring = Keyring::new(&SecretString::from("k".repeat(32)), None).unwrap();
        let Value::Object(metadata) = json!({"openApiUrl": "https://a.example?key=secret"}) else {
            panic!("no object");
        };
        assert!(is_address_open(&metadata) && values(metadata.clone()).is_empty());
        let (open, sealed) = seal(&keyring, &ToolId::generate(), metadata).unwrap();
        assert!(!is_address_open(&open) && open["openApiUrl"].is_null() && sealed.is_some());
    }

    #[test]
    fn every_secret_is_known_in_every_spelling() {
        let Value::Object(metadata) = json!({
            "openApiUrl": "https://a.example",
            "headers": {"Authorization": "Bearer a/b c", "X-Number": 1234},
            "nested": [{"api_key": "say \"hi\""}],
            "other_token": "  ",
        }) else {
            panic!("no object");
        };
        let known: Vec<_> = values(metadata).iter().map(|one| one.expose_secret().to_owned()).collect();
        for text in [
            "Bearer a/b c",
            "a/b c",
            "a%2Fb+c",
            "a%2Fb%20c",
            "1234",
            "say \"hi\"",
            "say \\\"hi\\\"",
            "say+%22hi%22",
        ] {
            assert!(known.iter().any(|one| one == text), "{text} is not among {known:?}");
        }
        assert!(known.iter().all(|text| !text.trim().is_empty() && !text.contains("a.example")));
        assert!(known.is_sorted_by_key(|text| std::cmp::Reverse(text.len())));
    }
}
