//! Embedding spaces.

use std::fmt;

use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Everything that decides what vectors mean: two vectors may be compared when their spaces are equal, and never otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EmbeddingSpace {
    /// Its id, made of the fingerprint: the same in every process.
    pub id: Uuid,
    /// What it is made of, one `key=value` a line: the kind of embedder, the model and its revision or the hash of its
    /// weights, dimension, pooling, prefixes, the most tokens of a text.
    pub fingerprint: String,
    /// The model's name, as people know it.
    pub model: String,
    /// Numbers in a vector.
    pub dimensions: usize,
}

impl EmbeddingSpace {
    /// The space of a model. The dimension becomes part of the fingerprint.
    pub fn new(model: impl Into<String>, dimensions: usize, facts: &[(&str, &dyn fmt::Display)]) -> Self {
        let mut fingerprint = format!("dimensions={dimensions}");
        for (key, value) in facts {
            // One line a fact, whatever is in it.
            let value = value.to_string().replace('\\', "\\\\").replace('\n', "\\n");
            fingerprint.extend(["\n", key, "=", &value]);
        }
        let hash: [u8; 32] = Sha256::digest(fingerprint.as_bytes()).into();
        let id = Uuid::new_v5(&Uuid::NAMESPACE_OID, &hash);
        Self { id, fingerprint, model: model.into(), dimensions }
    }

    /// One of the facts that it is made of.
    pub fn fact(&self, key: &str) -> Option<&str> {
        self.fingerprint.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
    }
}
