//! Collections: named sets of documents.

mod files;

use lectern_db::{self as db, Db, choices::NamedChoices};
use lectern_derive::RequestBody;
use lectern_jobs::JobQueue;
use lectern_shared::{
    clock::Clock,
    ids::{CollectionId, DocumentId},
    model::{
        Json,
        audit::AuditAction,
        collection::{Collection, CollectionDefaults},
        document::SplitterConfig,
        language::Language,
    },
};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

pub(crate) use self::files::{CollectionDraft, CollectionWithFiles, FileAddition, FileBatch};
use super::{
    NAME,
    actor::{Actor, Permission},
    audit::AuditService,
    creation::{CreationOutcome, IdempotencyStore, IdempotentRequest, ResponseEncoder},
    documents::{
        DocumentDetails, DocumentService, readers,
        splitter::{self, NewSplitter},
    },
    edits::EditBase,
};
use crate::{
    error::ApiError,
    fields::{FieldRule, GivenIds, JsonFields},
};

/// A new collection.
#[derive(RequestBody, ToSchema)]
pub(crate) struct NewCollection {
    /// What to call it.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S")]
    name: String,
    /// Anything worth saying of it.
    #[schema(value_type = Option<String>, max_length = 10_000)]
    #[body(default)]
    description: String,
    /// What a document gets that is made in the collection and says nothing else.
    #[schema(value_type = Option<NewDefaults>)]
    defaults: Option<NewDefaults>,
}

/// What is to be different about a collection. What is left out stays as it is.
#[derive(RequestBody, ToSchema)]
#[body(change)]
#[expect(clippy::option_option, reason = "absent, null and a value are three things")]
pub(crate) struct CollectionChange {
    /// What to call it.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S", nullable = false)]
    name: Option<String>,
    /// Anything worth saying of it.
    #[schema(max_length = 10_000)]
    description: Option<String>,
    /// What a document gets that is made in the collection and says nothing else: all of it, in the place of the earlier defaults.
    /// Null for none. Documents that are there already stay as they are.
    #[schema(value_type = Option<NewDefaults>)]
    defaults: Option<Option<NewDefaults>>,
}

/// What a document gets that is made in a collection and says nothing else.
#[derive(RequestBody, ToSchema)]
#[schema(as = NewCollectionDefaults)]
pub(crate) struct NewDefaults {
    /// How to cut its text into passages.
    #[schema(value_type = Option<NewSplitter>)]
    #[body(with = splitter::read)]
    splitter: Option<SplitterConfig>,
    /// Values of its metadata, each unless the document has one of that name; at most 16 KiB.
    #[schema(value_type = Option<Object>)]
    #[body(with = readers::metadata)]
    metadata: Option<Map<String, Value>>,
    /// Its language, as an ISO 639-1 code such as `en`. It becomes `language` of its metadata, unless it has one.
    #[schema(value_type = Option<String>, pattern = "^[a-z]{2}$")]
    #[body(with = language)]
    language: Option<String>,
}

/// Documents that are to be in a collection.
#[derive(RequestBody, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct AddedDocuments {
    /// Documents of yours; those that are in it already stay.
    #[schema(value_type = Vec<String>, max_items = 1_000)]
    document_ids: GivenIds<DocumentId>,
}

fn language(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<String> {
    let code = fields.optional_text(rule.name, NAME)?;
    if code.len() != 2 || Language::from_iso(&code).is_none() {
        fields.refuse(rule.name, "must be the ISO 639-1 code of a language that is known here, such as en");
    }
    Some(code)
}

impl NewDefaults {
    /// As they are stored; none when they say nothing.
    fn stored(self) -> Option<Json<CollectionDefaults>> {
        let Self { splitter, metadata, language } = self;
        let defaults = CollectionDefaults { splitter, metadata, language };
        (defaults != CollectionDefaults::default()).then_some(Json(defaults))
    }
}

/// Collections. Cheap to clone.
#[derive(Clone)]
pub(crate) struct CollectionService {
    db: Db,
    clock: Clock,
    jobs: JobQueue,
    creations: IdempotencyStore,
    audit: AuditService,
    /// Changes what its files are.
    files: DocumentService,
}

fn unknown() -> ApiError {
    ApiError::not_found("collection")
}

fn unknown_document() -> ApiError {
    ApiError::not_found("document")
}

impl CollectionService {
    pub(crate) fn new(
        db: Db,
        clock: Clock,
        jobs: JobQueue,
        creations: IdempotencyStore,
        audit: AuditService,
        files: DocumentService,
    ) -> Self {
        Self { db, clock, jobs, creations, audit, files }
    }

    /// Makes a collection.
    pub(crate) async fn create(
        &self,
        actor: &Actor,
        new: NewCollection,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<Collection>,
    ) -> Result<CreationOutcome, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let now = self.clock.now();
        let NewCollection { name, description, defaults } = new;
        let collection = Collection {
            id: CollectionId::generate(),
            owner,
            name: name.trim().to_owned(),
            description,
            defaults: defaults.and_then(NewDefaults::stored),
            metadata: None,
            created_at: now,
            updated_at: now,
            documents: 0,
        };
        let mut tx = self.db.begin().await?;
        db::collections::insert(&mut tx, &collection).await?;
        self.creations.commit(tx, once, &collection, tell).await
    }

    /// The collections before an id whose names have something somewhere, newest first.
    pub(crate) async fn list(
        &self,
        actor: &Actor,
        name: &str,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<Collection>, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        Ok(db::collections::list(&self.db, owner.workspace_id, name, before.into(), limit).await?)
    }

    /// The collections that a document is in, by id and name, the newest first.
    pub(crate) async fn of_document(
        &self,
        actor: &Actor,
        document: DocumentId,
    ) -> Result<Vec<(CollectionId, String)>, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        Ok(db::collections::of_document(&self.db, owner.workspace_id, document).await?)
    }

    /// The newest collections whose names have something somewhere, to choose from.
    pub(crate) async fn choices(
        &self,
        actor: &Actor,
        name: &str,
        limit: u32,
    ) -> Result<NamedChoices<CollectionId>, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        Ok(db::choices::collections(&self.db, owner.workspace_id, name, limit).await?)
    }

    /// One collection.
    pub(crate) async fn find(&self, actor: &Actor, id: CollectionId) -> Result<Collection, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        db::collections::find(&self.db, owner.workspace_id, id).await?.ok_or_else(unknown)
    }

    /// Changes a collection, which is as it is returned afterwards.
    ///
    /// # Errors
    /// When it is not what the change begins from.
    pub(crate) async fn change(
        &self,
        actor: &Actor,
        id: CollectionId,
        change: CollectionChange,
        base: EditBase,
    ) -> Result<Collection, ApiError> {
        let edit = |collection: &mut Collection| {
            if let Some(name) = change.name {
                name.trim().clone_into(&mut collection.name);
            }
            if let Some(description) = change.description {
                collection.description = description;
            }
            if let Some(defaults) = change.defaults {
                collection.defaults = defaults.and_then(NewDefaults::stored);
            }
        };
        self.edit(actor, id, base, edit).await
    }

    async fn edit(
        &self,
        actor: &Actor,
        id: CollectionId,
        base: EditBase,
        edit: impl FnOnce(&mut Collection) + Send,
    ) -> Result<Collection, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let mut tx = self.db.begin().await?;
        let before = db::collections::lock(&mut tx, owner.workspace_id, id).await?.ok_or_else(unknown)?;
        base.check(before.updated_at)?;
        let mut collection = before.clone();
        edit(&mut collection);
        if collection != before {
            collection.updated_at = self.clock.now();
            db::collections::update(&mut tx, &collection).await?;
            tx.commit().await?;
        }
        Ok(collection)
    }

    /// Deletes a collection; its documents stay.
    pub(crate) async fn delete(&self, actor: &Actor, id: CollectionId) -> Result<(), ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let mut tx = self.db.begin_essential().await?;
        if !db::collections::delete(&mut tx, owner.workspace_id, id).await? {
            return Err(unknown());
        }
        self.audit.note(&mut tx, actor, AuditAction::Deleted, "collection", id).await?;
        Ok(tx.commit().await?)
    }

    /// The documents of a collection before an id, newest first.
    pub(crate) async fn documents(
        &self,
        actor: &Actor,
        id: CollectionId,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<DocumentDetails>, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let workspace = owner.workspace_id;
        if !db::collections::has_all(&self.db, workspace, &[id]).await? {
            return Err(unknown());
        }
        Ok(db::collections::list_documents(&self.db, workspace, id, before.into(), limit).await?)
    }

    /// Puts documents into a collection, all of them or none, and returns it as it is then.
    ///
    /// # Errors
    /// Not found, for a document that is not the workspace's.
    pub(crate) async fn add(
        &self,
        actor: &Actor,
        id: CollectionId,
        added: AddedDocuments,
    ) -> Result<Collection, ApiError> {
        let documents = added.document_ids.map_err(|_| unknown_document())?;
        self.put_all(actor, id, documents).await
    }

    /// Puts a document into a collection, and returns that as it is then.
    pub(crate) async fn put(
        &self,
        actor: &Actor,
        id: CollectionId,
        document: DocumentId,
    ) -> Result<Collection, ApiError> {
        self.put_all(actor, id, vec![document]).await
    }

    /// [`CollectionService::add`], of documents by their ids.
    pub(crate) async fn put_all(
        &self,
        actor: &Actor,
        id: CollectionId,
        mut documents: Vec<DocumentId>,
    ) -> Result<Collection, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let workspace = owner.workspace_id;
        documents.sort_unstable();
        documents.dedup();
        let mut tx = self.db.begin().await?;
        db::collections::lock(&mut tx, workspace, id).await?.ok_or_else(unknown)?;
        let found = db::collections::add_documents(&mut tx, workspace, id, &documents).await?;
        if found != documents.len() {
            return Err(unknown_document());
        }
        let collection = db::collections::lock(&mut tx, workspace, id).await?.ok_or_else(unknown)?;
        tx.commit().await?;
        Ok(collection)
    }

    /// Takes a document out of a collection. Both stay.
    ///
    /// # Errors
    /// Not found, for a document that is not in it.
    pub(crate) async fn take_out(
        &self,
        actor: &Actor,
        id: CollectionId,
        document: DocumentId,
    ) -> Result<(), ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let workspace = owner.workspace_id;
        let mut tx = self.db.begin_essential().await?;
        db::collections::lock(&mut tx, workspace, id).await?.ok_or_else(unknown)?;
        if !db::collections::remove_document(&mut tx, workspace, id, document).await? {
            return Err(unknown_document());
        }
        Ok(tx.commit().await?)
    }
}
