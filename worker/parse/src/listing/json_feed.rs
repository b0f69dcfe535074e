//! JSON feeds: what of one matters.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, SeqAccess, Visitor},
};
use serde_json::Value;

use crate::protocol::MAX_LISTED;

#[derive(Serialize, Deserialize)]
struct JsonFeed {
    version: String,
    title: String,
    #[serde(deserialize_with = "few_items")]
    items: Vec<JsonItem>,
}

#[derive(Serialize, Deserialize)]
struct JsonItem {
    #[serde(default, deserialize_with = "text_of_id")]
    id: Option<String>,
    url: Option<String>,
    external_url: Option<String>,
    title: Option<String>,
    content_html: Option<String>,
    content_text: Option<String>,
    summary: Option<String>,
    date_published: Option<String>,
    date_modified: Option<String>,
    attachments: Option<Vec<JsonAttachment>>,
}

/// An entry without a page is where its attachment is.
#[derive(Serialize, Deserialize)]
struct JsonAttachment {
    url: String,
    mime_type: String,
}

/// The feed without what the library would keep for each entry, or compare with all before; none when it is none, or has too many entries.
pub(super) fn reduced(bytes: &[u8]) -> Option<Vec<u8>> {
    let feed: JsonFeed = serde_json::from_slice(bytes).ok()?;
    serde_json::to_vec(&feed).ok()
}

/// An id as text, also where it is a number, as it may be.
fn text_of_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Null => None,
        Value::String(id) => Some(id),
        id => Some(id.to_string()),
    })
}

fn few_items<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<JsonItem>, D::Error> {
    deserializer.deserialize_seq(FewItems)
}

struct FewItems;

impl<'de> Visitor<'de> for FewItems {
    type Value = Vec<JsonItem>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {MAX_LISTED} items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            if items.len() == MAX_LISTED {
                return Err(A::Error::invalid_length(MAX_LISTED + 1, &self));
            }
            items.push(item);
        }
        Ok(items)
    }
}
