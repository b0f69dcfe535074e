//! The collections that a document is made in, and what it gets of their defaults.

use lectern_shared::{
    db::{self, Json, Tx},
    ids::{CollectionId, DocumentId, WorkspaceId},
    model::{
        collection::{Collection, CollectionDefaults},
        document::SplitterConfig,
    },
};
use serde_json::{Map, Value};

use super::{
    super::documents::readers::{METADATA, is_too_large},
    unknown,
};
use crate::{
    error::{ApiError, FieldError},
    fields::GivenIds,
};

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
        let (splitter, metadata) = apply_defaults(&self.0, splitter, metadata);
        if metadata.as_ref().is_some_and(is_too_large) {
            let message =
                format!("must have at most {METADATA} bytes together with the defaults of the collections");
            return Err(ApiError::invalid(vec![FieldError { path: "metadata".to_owned(), message }]));
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

/// What a document says, and of the rest what the first collection says that says something of it.
fn apply_defaults(
    collections: &[Collection],
    splitter: Option<SplitterConfig>,
    mut metadata: Option<Map<String, Value>>,
) -> (Option<SplitterConfig>, Option<Map<String, Value>>) {
    let defaults = || collections.iter().filter_map(|collection| collection.defaults.as_ref());
    let splitter = splitter.or_else(|| defaults().find_map(|Json(defaults)| defaults.splitter.clone()));
    for Json(CollectionDefaults { metadata: values, language, .. }) in defaults() {
        for (key, value) in values.iter().flatten() {
            metadata.get_or_insert_default().entry(key.as_str()).or_insert_with(|| value.clone());
        }
        if let Some(language) = language {
            let language = || Value::from(language.as_str());
            metadata.get_or_insert_default().entry("language").or_insert_with(language);
        }
    }
    (splitter, metadata)
}

#[cfg(test)]
mod tests {
    use lectern_shared::{
        clock::Timestamp,
        ids::UserId,
        model::{document::SplitterType, workspace::RowOwner},
    };
    use serde_json::json;

    use super::*;

    fn splitter(chunk_size: u32) -> SplitterConfig {
        SplitterConfig { r#type: SplitterType::Token, chunk_size, chunk_overlap: 0, given: None }
    }

    fn object(value: &Value) -> Option<Map<String, Value>> {
        value.as_object().cloned()
    }

    fn collection(splitter: Option<SplitterConfig>, metadata: &Value, language: Option<&str>) -> Collection {
        let user = UserId::generate();
        let language = language.map(str::to_owned);
        Collection {
            id: CollectionId::generate(),
            owner: RowOwner::new(user.into(), user),
            name: "set".to_owned(),
            description: String::new(),
            defaults: Some(Json(CollectionDefaults { splitter, metadata: object(metadata), language })),
            metadata: None,
            created_at: Timestamp::from_micros(0),
            updated_at: Timestamp::from_micros(0),
            documents: 0,
        }
    }

    #[test]
    fn what_a_document_says_itself_stays() {
        let set = [collection(Some(splitter(100)), &json!({"team": "law", "year": 2026}), Some("de"))];
        let own = json!({"team": null, "language": "fr"});
        let (cut, metadata) = apply_defaults(&set, Some(splitter(50)), object(&own));
        assert_eq!(cut, Some(splitter(50)));
        assert_eq!(metadata, object(&json!({"team": null, "language": "fr", "year": 2026})));
    }

    #[test]
    fn what_it_does_not_say_is_what_the_first_collection_says_that_does() {
        let sets = [
            Collection { defaults: None, ..collection(None, &Value::Null, None) },
            collection(None, &json!({"team": "law"}), None),
            collection(Some(splitter(100)), &json!({"team": "sales", "year": 2026}), Some("de")),
            collection(Some(splitter(200)), &json!({"language": "en"}), Some("fr")),
        ];
        let (cut, metadata) = apply_defaults(&sets, None, None);
        assert_eq!(cut, Some(splitter(100)));
        assert_eq!(metadata, object(&json!({"team": "law", "year": 2026, "language": "de"})));
        let (cut, metadata) = apply_defaults(&sets[3..], None, None);
        assert_eq!(cut, Some(splitter(200)));
        assert_eq!(metadata, object(&json!({"language": "en"})), "what the metadata says comes first");
    }

    #[test]
    fn collections_that_say_nothing_give_nothing() {
        let nothing = collection(None, &Value::Null, None);
        assert_eq!(apply_defaults(&[], None, None), (None, None));
        assert_eq!(apply_defaults(&[nothing], None, object(&json!({}))), (None, object(&json!({}))));
    }

    #[test]
    fn defaults_count_for_the_size_of_the_metadata() {
        let large = |key: &str| json!({ key: "x".repeat(METADATA / 2) });
        let sets = TargetCollections(vec![collection(None, &large("theirs"), None)]);
        assert!(sets.fill_in(None, None).is_ok());
        let error = sets.fill_in(None, object(&large("own"))).unwrap_err();
        assert_eq!((error.code, error.fields[0].path.as_str()), ("invalid_fields", "metadata"));
    }
}
