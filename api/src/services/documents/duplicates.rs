//! Documents of a workspace that are alike.

use std::collections::{BTreeMap, BTreeSet};

use lectern_db::documents::duplicates;
use lectern_shared::{ids::DocumentId, model::document::DuplicateDocument};
use uuid::Uuid;

use super::{
    super::actor::{Actor, Permission},
    DocumentService,
};
use crate::error::ApiError;

/// Groups that are named, of each kind of likeness.
const GROUPS: u32 = 200;
/// Documents that are named as like one.
const LIKE: u32 = 20;

/// Documents that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DuplicateGroup {
    /// Its place among all groups: about the id of its oldest document, and no other group's.
    pub(crate) key: Uuid,
    /// Whether they are made of the same bytes; else they have the same text.
    pub(crate) has_same_bytes: bool,
    /// The oldest first; at least two.
    pub(crate) documents: Vec<DuplicateDocument>,
}

impl DocumentService {
    /// At most `limit` groups of documents of the workspace that are alike, with keys below `before`, the latest first.
    pub(crate) async fn duplicates(
        &self,
        actor: &Actor,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<DuplicateGroup>, ApiError> {
        let workspace = actor.may(Permission::EditDocuments)?.workspace_id;
        let by_bytes = duplicates::with_same_bytes(&self.db, workspace, GROUPS).await?;
        let by_text = duplicates::with_same_text(&self.db, workspace, GROUPS).await?;
        let groups = grouped(by_bytes, by_text).into_iter().rev();
        Ok(groups.filter(|group| group.key < before).take(limit as usize).collect())
    }

    /// Documents that have the text, or the bytes, of one.
    pub(crate) async fn like(
        &self,
        actor: &Actor,
        id: DocumentId,
    ) -> Result<Vec<DuplicateDocument>, ApiError> {
        let workspace = actor.may(Permission::EditDocuments)?.workspace_id;
        Ok(duplicates::like(&self.db, workspace, id, LIKE).await?)
    }
}

/// Groups of documents that are alike, by their keys. Documents that are so in both are told once.
fn grouped(by_bytes: Vec<DuplicateDocument>, by_text: Vec<DuplicateDocument>) -> Vec<DuplicateGroup> {
    let text = collected(by_text, |document| document.content_hash.clone());
    let bytes = collected(by_bytes, |document| document.source_sha256.clone());
    let ids = |documents: &[DuplicateDocument]| -> BTreeSet<DocumentId> {
        documents.iter().map(|document| document.id).collect()
    };
    let told: Vec<_> = text.iter().map(|documents| ids(documents)).collect();
    let is_new = |documents: &Vec<DuplicateDocument>| !told.iter().any(|told| ids(documents).is_subset(told));
    let mut groups: BTreeMap<Uuid, DuplicateGroup> = BTreeMap::new();
    for documents in text.into_iter().chain(bytes.into_iter().filter(is_new)) {
        let Some(first) = documents.first() else { continue };
        let mut key = *first.id.as_uuid();
        while groups.contains_key(&key) {
            key = Uuid::from_u128(key.as_u128().wrapping_add(1));
        }
        let hash = first.source_sha256.clone();
        let has_same_bytes =
            hash.is_some() && documents.iter().all(|document| document.source_sha256 == hash);
        groups.insert(key, DuplicateGroup { key, has_same_bytes, documents });
    }
    groups.into_values().collect()
}

fn collected<K: Ord>(
    documents: Vec<DuplicateDocument>,
    key: impl Fn(&DuplicateDocument) -> Option<K>,
) -> Vec<Vec<DuplicateDocument>> {
    let mut groups: BTreeMap<K, Vec<DuplicateDocument>> = BTreeMap::new();
    for document in documents {
        if let Some(key) = key(&document) {
            groups.entry(key).or_default().push(document);
        }
    }
    groups.into_values().filter(|documents| documents.len() > 1).collect()
}

#[cfg(test)]
mod tests {
    use lectern_shared::clock::Timestamp;

    use super::*;

    #[test]
    fn what_is_alike_in_both_is_told_once() {
        let document = |text: &str, bytes: Option<u8>| DuplicateDocument {
            id: DocumentId::generate(),
            name: String::new(),
            url: String::new(),
            created_at: Timestamp::from_micros(0),
            content_hash: Some(text.to_owned()),
            source_sha256: bytes.map(|byte| vec![byte]),
        };
        let twins = [document("a", Some(1)), document("a", Some(1))];
        let mixed = [document("b", Some(2)), document("b", Some(2)), document("b", None)];
        // Of one file, other pages are read of the second.
        let parts = [document("c", Some(3)), document("d", Some(3)), document("c", None)];
        let by_bytes = [&twins[..], &mixed[..2], &parts[..2]].concat();
        let by_text = [&twins[..], &mixed[..], &[parts[0].clone(), parts[2].clone()]].concat();
        let found = grouped(by_bytes, by_text);
        let sizes: Vec<_> = found.iter().map(|group| (group.has_same_bytes, group.documents.len())).collect();
        assert_eq!(sizes, [(true, 2), (false, 3), (false, 2), (true, 2)]);
        assert!(found.is_sorted_by(|a, b| a.key < b.key), "{found:?}");
    }
}
