//! What is said of a document when it is put somewhere as a file.

use std::collections::BTreeMap;

use lectern_db::{
    self as db, Tx,
    documents::metadata::{self, DocumentDescription},
};
use lectern_shared::{
    ids::{DocumentId, WorkspaceId},
    model::{
        Json,
        document::{FileLabel, SplitterConfig},
    },
};
use serde_json::{Map, Value};

use super::{
    DocumentService,
    readers::{METADATA, is_too_large},
    splitter::USUAL,
    unknown,
};
use crate::{
    error::ApiError,
    fields::is_plain,
    services::actor::{Actor, Permission},
};

/// Values of a document's metadata, and how it is to be cut, where that is said.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FileAttributes {
    pub(crate) values: AttributeValues,
    pub(crate) splitter: Option<SplitterConfig>,
}

/// What becomes of the texts, numbers and booleans in a document's metadata. Clients know no other attributes, so the rest of it stays.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum AttributeValues {
    /// They stay.
    #[default]
    Kept,
    /// These come to them, in the place of earlier values of the same names.
    Added(Map<String, Value>),
    /// These take the place of all of them.
    Replaced(Map<String, Value>),
}

impl FileAttributes {
    /// What is said of a file that is put somewhere: whoever puts it there need not know what its document's metadata is.
    pub(crate) fn added(values: Option<Map<String, Value>>, splitter: Option<SplitterConfig>) -> Self {
        let values = match values {
            Some(values) => AttributeValues::Added(values),
            None => AttributeValues::Kept,
        };
        Self { values, splitter }
    }
}

/// What attributes make of what is said of a document.
#[derive(Debug)]
struct AttributeChange {
    after: DocumentDescription,
    /// Filters may find it otherwise.
    says_otherwise: bool,
    /// It is to be ingested again.
    cuts_anew: bool,
}

impl DocumentService {
    /// The metadata of these documents, for whoever may read documents; nothing for others, who are told what was found in them alone.
    pub(crate) async fn metadata_of(
        &self,
        actor: &Actor,
        ids: &[DocumentId],
    ) -> Result<BTreeMap<DocumentId, Map<String, Value>>, ApiError> {
        let Ok(owner) = actor.may(Permission::EditDocuments) else { return Ok(BTreeMap::new()) };
        let labels = db::documents::files::labels(&self.db, owner.workspace_id, ids).await?;
        let metadata =
            |label: FileLabel| (label.id, label.metadata.map(|Json(metadata)| metadata).unwrap_or_default());
        Ok(labels.into_iter().map(metadata).collect())
    }

    /// Gives documents of a workspace that is locked attributes, and tells whether any of them is to be ingested again. Of each, no more
    /// is read and written than what is said of it: there may be many, and others wait meanwhile.
    pub(in crate::services) async fn set_attributes(
        &self,
        tx: &mut Tx,
        workspace: WorkspaceId,
        mut given: BTreeMap<DocumentId, FileAttributes>,
    ) -> Result<bool, ApiError> {
        given.retain(|_, attributes| *attributes != FileAttributes::default());
        let ids: Vec<DocumentId> = given.keys().copied().collect();
        let described = metadata::described(tx, workspace, &ids).await?;
        if described.len() != ids.len() {
            return Err(unknown());
        }
        let mut changes = Vec::new();
        for before in described {
            let attributes = given.remove(&before.id).unwrap_or_default();
            changes.extend(changed(attributes, before)?);
        }
        if changes.iter().any(|change| change.says_otherwise) {
            db::documents::bump_search_epoch(tx, workspace).await?;
        }
        let now = self.clock.now();
        for AttributeChange { after, cuts_anew, .. } in &changes {
            metadata::describe(tx, workspace, after, now).await?;
            if *cuts_anew && !self.jobs.enqueue_ingest(tx, workspace, after.id).await? {
                return Err(unknown());
            }
        }
        Ok(changes.iter().any(|change| change.cuts_anew))
    }
}

/// What is different with these attributes; none when nothing is.
///
/// # Errors
/// When there would be too much metadata.
fn changed(
    attributes: FileAttributes,
    before: DocumentDescription,
) -> Result<Option<AttributeChange>, ApiError> {
    let FileAttributes { values, splitter } = attributes;
    let mut change = AttributeChange { after: before, says_otherwise: false, cuts_anew: false };
    let after = &mut change.after;
    let mut metadata = after.metadata.as_ref().map(|Json(before)| before.clone()).unwrap_or_default();
    match values {
        AttributeValues::Kept => {}
        AttributeValues::Added(values) => metadata.extend(values),
        AttributeValues::Replaced(values) => {
            metadata.retain(|_, value| !is_plain(value));
            metadata.extend(values);
        }
    }
    if after.metadata.as_ref().map_or(!metadata.is_empty(), |Json(before)| *before != metadata) {
        if is_too_large(&metadata) {
            let message = format!("must have at most {METADATA} bytes together with the document's metadata");
            return Err(ApiError::invalid_field("attributes", &message));
        }
        after.metadata = Some(Json(metadata));
        change.says_otherwise = true;
    }
    let cut = after.splitter.as_ref().map_or(&USUAL, |Json(before)| before);
    if let Some(splitter) = splitter.filter(|splitter| !cuts_alike(cut, splitter)) {
        after.splitter = Some(Json(splitter));
        change.cuts_anew = true;
    }
    Ok((change.says_otherwise || change.cuts_anew).then_some(change))
}

/// Whether both cut a text into the same passages.
fn cuts_alike(a: &SplitterConfig, b: &SplitterConfig) -> bool {
    let parts = |of: &SplitterConfig| (of.r#type, of.chunk_size, of.chunk_overlap);
    parts(a) == parts(b)
}

#[cfg(test)]
mod tests {
    use lectern_shared::model::document::SplitterType;
    use serde_json::json;

    use super::*;

    fn described(metadata: &Value, splitter: Option<SplitterConfig>) -> DocumentDescription {
        let metadata = metadata.as_object().cloned().map(Json);
        DocumentDescription { id: DocumentId::generate(), metadata, splitter: splitter.map(Json) }
    }

    fn values(values: &Value) -> FileAttributes {
        FileAttributes::added(values.as_object().cloned(), None)
    }

    #[test]
    fn attributes_are_merged_over_the_metadata() {
        let before = described(&json!({"team": "law", "tags": ["a"]}), None);
        let with = |given: Value| changed(values(&given), before.clone());
        let change = with(json!({"team": "sales", "year": 2026})).ok().unwrap().unwrap();
        let expected = json!({"team": "sales", "tags": ["a"], "year": 2026});
        assert_eq!(change.after, DocumentDescription { id: before.id, ..described(&expected, None) });
        assert!(change.says_otherwise && !change.cuts_anew);
        for same in [json!({}), json!({"team": "law"})] {
            assert!(with(same).ok().unwrap().is_none(), "nothing is written");
        }
        let large = with(json!({"x": "x".repeat(METADATA)})).err().unwrap();
        assert_eq!(large.fields[0].path, "attributes");
    }

    #[test]
    fn attributes_that_replace_leave_nothing_of_the_earlier_ones_and_what_is_none_of_them() {
        let before = described(&json!({"team": "law", "year": 2024, "tags": ["a"]}), None);
        let with = |given: Value| {
            let values = AttributeValues::Replaced(given.as_object().cloned().unwrap_or_default());
            let change = changed(FileAttributes { values, splitter: None }, before.clone()).ok().unwrap()?;
            assert!(change.says_otherwise && !change.cuts_anew);
            change.after.metadata.map(|Json(after)| Value::from(after))
        };
        assert_eq!(with(json!({"year": 2026})), Some(json!({"year": 2026, "tags": ["a"]})));
        assert_eq!(with(json!({"tags": "b"})), Some(json!({"tags": "b"})));
        assert_eq!(with(json!({})), Some(json!({"tags": ["a"]})));
        assert_eq!(with(json!({"team": "law", "year": 2024})), None, "nothing is written");
    }

    #[test]
    fn a_way_of_cutting_that_changes_nothing_is_no_change() {
        let token = |chunk_size| SplitterConfig {
            r#type: SplitterType::Token,
            chunk_size,
            chunk_overlap: 60,
            given: None,
        };
        let with = |splitter, before| {
            let attributes = FileAttributes::added(None, Some(splitter));
            let change = changed(attributes, described(&Value::Null, before)).ok().unwrap()?;
            assert!(change.cuts_anew && !change.says_otherwise);
            change.after.splitter.map(|Json(splitter)| splitter)
        };
        assert_eq!(with(token(400), None), None);
        let old = SplitterConfig { given: Some("TokenTextSplitter".to_owned()), ..token(300) };
        assert_eq!(with(token(300), Some(old)), None);
        assert_eq!(with(token(300), None), Some(token(300)));
        let characters = SplitterConfig { r#type: SplitterType::Recursive, ..token(300) };
        assert_eq!(with(token(300), Some(characters)), Some(token(300)));
    }
}
