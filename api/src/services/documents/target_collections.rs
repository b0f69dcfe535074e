//! The collections that a document is made in, and what it gets of their defaults.

use lectern_db::{self as db, Tx};
use lectern_shared::{
    ids::{CollectionId, DocumentId, WorkspaceId},
    model::{
        collection::{self, Collection},
        document::SplitterConfig,
    },
};
use serde_json::{Map, Value};

use super::readers::{METADATA, is_too_large};
use crate::{error::ApiError, fields::GivenIds};

fn unknown() -> ApiError {
    ApiError::not_found("collection")
}

/// How a document is cut, and what metadata it has.
type FilledFields = (Option<SplitterConfig>, Option<Map<String, Value>>);

/// The collections that a new document goes into, in the order in which they were named.
pub(in crate::services) struct TargetCollections(Vec<Collection>);

impl TargetCollections {
    /// Reads them, and keeps them as they are until the transaction ends. To be called before any document is locked.
    ///
    /// # Errors
    /// Not found, for a collection that is not the workspace's.
    pub(in crate::services) async fn lock(
        tx: &mut Tx,
        workspace: WorkspaceId,
        named: Option<GivenIds<CollectionId>>,
    ) -> Result<Self, ApiError> {
        let ids = named.transpose().map_err(|_| unknown())?.unwrap_or_default();
        db::collections::lock_all(tx, workspace, &ids).await?.map(Self).ok_or_else(unknown)
    }

    /// How the document is cut and what metadata it has, when these are what it says itself.
    ///
    /// # Errors
    /// When it would have too much metadata.
    pub(in crate::services) fn fill_in(
        &self,
        splitter: Option<SplitterConfig>,
        metadata: Option<Map<String, Value>>,
    ) -> Result<FilledFields, ApiError> {
        let (splitter, metadata) = collection::apply_defaults(&self.0, splitter, metadata);
        if metadata.as_ref().is_some_and(is_too_large) {
            let message =
                format!("must have at most {METADATA} bytes together with the defaults of the collections");
            return Err(ApiError::invalid_field("metadata", &message));
        }
        Ok((splitter, metadata))
    }

    /// Puts the document, which was made in this transaction, into them. Returns their ids, the oldest collection's first.
    pub(in crate::services) async fn put(
        &self,
        tx: &mut Tx,
        workspace: WorkspaceId,
        document: DocumentId,
    ) -> Result<Vec<CollectionId>, ApiError> {
        let mut ids: Vec<CollectionId> = self.0.iter().map(|collection| collection.id).collect();
        ids.sort_unstable();
        db::collections::put_document(tx, workspace, document, &ids).await?;
        Ok(ids)
    }
}

#[cfg(test)]
mod tests {
    use lectern_shared::{
        clock::Timestamp,
        ids::UserId,
        model::{Json, collection::CollectionDefaults, workspace::RowOwner},
    };
    use serde_json::json;

    use super::*;

    fn object(value: &Value) -> Option<Map<String, Value>> {
        value.as_object().cloned()
    }

    fn collection(metadata: &Value) -> Collection {
        let user = UserId::generate();
        let defaults = CollectionDefaults { metadata: object(metadata), ..CollectionDefaults::default() };
        Collection {
            id: CollectionId::generate(),
            owner: RowOwner::new(user.into(), user),
            name: "set".to_owned(),
            description: String::new(),
            defaults: Some(Json(defaults)),
            metadata: None,
            created_at: Timestamp::from_micros(0),
            updated_at: Timestamp::from_micros(0),
            documents: 0,
        }
    }

    #[test]
    fn defaults_count_for_the_size_of_the_metadata() {
        let large = |key: &str| json!({ key: "x".repeat(METADATA / 2) });
        let sets = TargetCollections(vec![collection(&large("theirs"))]);
        assert!(sets.fill_in(None, None).is_ok());
        let error = sets.fill_in(None, object(&large("own"))).unwrap_err();
        assert_eq!((error.code, error.fields[0].path.as_str()), ("invalid_fields", "metadata"));
    }
}
