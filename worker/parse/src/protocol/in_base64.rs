//! Bytes as a text that JSON can hold.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD.encode(bytes))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    STANDARD.decode(String::deserialize(deserializer)?).map_err(D::Error::custom)
}
