//! A new version of a document's file. The document stays what it is to all that refers to it: links, collections, agents.

use lectern_db::{
    Tx,
    documents::{
        self as db,
        uploads::{self as files, FileReplacement},
    },
};
use lectern_derive::RequestBody;
use lectern_shared::{
    ids::{DocumentId, WorkspaceId},
    model::document::{DocumentType, StoredFile},
    secrets::hex,
};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{
    FileDescription, FileKind, UploadReservation, UploadService, UploadTarget, UploadTypeSchema,
    UploadedFile, file_type, late, refuse_source,
};
use crate::{
    error::ApiError,
    fields::{FieldRule, JsonFields},
    services::{
        actor::{Actor, Permission},
        creation::{CreationOutcome, IdempotentRequest, ResponseEncoder},
        documents::{DocumentDetails, check_stored_bytes, replaceable_file},
    },
};

/// What stays as it is, unless the document itself is changed.
const KEPT: [&str; 5] = ["description", "metadata", "splitter", "from_page", "to_page"];

/// A new version of a file, and what is to be said of its document.
#[derive(RequestBody, ToSchema)]
#[body(before = refuse_kept)]
pub(crate) struct NewFile {
    /// The file, of any kind that can be uploaded. At most 100 MiB unless the service is set otherwise.
    #[schema(value_type = String, format = Binary)]
    #[body(skip)]
    #[expect(dead_code, reason = "it is stored while it is sent, and a part of the same form")]
    file: (),
    /// How to call the document from now on. Without it, its name stays.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S", value_type = String, required = false)]
    name: Option<String>,
    /// `PDF`, `TXT`, `CSV` or `VIDEO`; it must fit the file. Without it, a file with the same media type as the former one leaves the
    /// document's type as it is, and any other makes it what the file shows.
    #[schema(value_type = UploadTypeSchema, required = false)]
    #[body(with = given_type)]
    r#type: Option<DocumentType>,
}

fn refuse_kept(fields: &mut JsonFields<'_>) {
    refuse_source(fields);
    for name in KEPT {
        if fields.get(name).is_some_and(|value| value != "") {
            fields.refuse(name, "cannot be given together with a new file: it stays, and PATCH changes it");
        }
    }
    if fields.get("collectionIds").is_some_and(|value| value != "") {
        let message = "cannot be given together with a new file: the document stays in its collections; \
                       PUT and DELETE /collections/{id}/documents/{documentId} change that";
        fields.refuse("collectionIds", message);
    }
}

fn given_type(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<DocumentType> {
    fields.get(rule.name)?;
    file_type(fields, rule)
}

impl FileDescription for NewFile {
    fn fill_in(_fields: &mut Map<String, Value>, _kind: &FileKind) {}

    fn identity(&self, file: &UploadedFile) -> String {
        let identity = json!({
            "type": self.r#type,
            "name": self.name,
            "sha256": hex(&file.stored.sha256),
            "file": [file.kind.file_name.as_deref(), Some(file.kind.media_type.as_str())],
        });
        identity.to_string()
    }
}

impl UploadService {
    /// A document whose file may be replaced.
    ///
    /// # Errors
    /// When there is no such document, or its file is not one that somebody has uploaded.
    pub(crate) async fn target(&self, actor: &Actor, id: DocumentId) -> Result<UploadTarget, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let former = replaceable_file(&self.db, owner.workspace_id, id).await?;
        Ok(UploadTarget::FileOf { id, former_bytes: bytes_of(&former) })
    }

    /// Gives a document the file that was uploaded for it, and queues it to be ingested. Nothing is done when it has this file already.
    pub(crate) async fn replace(
        &self,
        actor: &Actor,
        mut file: UploadedFile,
        new: NewFile,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<DocumentDetails>,
    ) -> Result<CreationOutcome, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        if let Some(told) = self.creations.stored_response(&once).await? {
            return Ok(CreationOutcome::Before(told));
        }
        let (id, workspace) = (file.reservation.id, owner.workspace_id);
        let mut tx = self.db.begin().await?;
        if !db::lock(&mut tx, workspace, id).await? {
            return Err(unknown());
        }
        let former = files::find_locked(&mut tx, workspace, id).await?.ok_or_else(unknown)?;
        let is_new = file.differs(&former, &new);
        if is_new {
            self.put_in_place(&mut tx, actor, workspace, &former, &file, &new).await?;
        }
        let made = db::find_collected(&mut tx, workspace, id).await?.ok_or_else(unknown)?;
        let told = self.creations.commit(tx, once, &made, tell).await?;
        if is_new && matches!(told, CreationOutcome::Now(_)) {
            file.reservation.is_completed = true;
            self.jobs.doorbell().ring(1);
        }
        Ok(told)
    }

    /// Puts a file in the place of a document's, which is locked.
    async fn put_in_place(
        &self,
        tx: &mut Tx,
        actor: &Actor,
        workspace: WorkspaceId,
        former: &StoredFile,
        file: &UploadedFile,
        new: &NewFile,
    ) -> Result<(), ApiError> {
        // Citations show the name.
        if new.name.as_ref().is_some_and(|name| *name != former.name) {
            db::bump_search_epoch(tx, workspace).await?;
        }
        let more = file.stored.bytes.saturating_sub(bytes_of(former));
        // Whoever has too much may change it, as long as it does not become more.
        if more > 0 {
            check_stored_bytes(&self.settings, tx, actor, workspace, more).await?;
        }
        let id = file.reservation.id;
        if !files::replace(tx, workspace, id, &file.instead_of(former, new), self.jobs.now()).await? {
            return Err(late());
        }
        if !self.jobs.enqueue_ingest(tx, workspace, id).await? {
            return Err(unknown());
        }
        Ok(())
    }

    /// Begins an upload that is to take the place of a file.
    pub(super) async fn reserve_key(&self, reservation: &UploadReservation) -> Result<(), ApiError> {
        let until = self.jobs.now().plus(files::RESERVED_FOR);
        let mut tx = self.db.begin().await?;
        files::reserve_key(&mut tx, &reservation.key, until).await?;
        Ok(tx.commit().await?)
    }
}

impl UploadedFile {
    /// What the document is whose former file it takes the place of.
    fn resulting_type(&self, former: &StoredFile, new: &NewFile) -> DocumentType {
        let kept = || self.kind.type_instead_of(former.r#type, former.source_mime.as_deref());
        new.r#type.unwrap_or_else(kept)
    }

    /// Whether anything of a document is another by it and by what is said of it.
    fn differs(&self, former: &StoredFile, new: &NewFile) -> bool {
        former.source_sha256 != self.stored.sha256
            || former.source_name != self.kind.file_name
            || former.source_mime.as_deref() != Some(self.kind.media_type.as_str())
            || former.r#type != self.resulting_type(former, new)
            || new.name.as_ref().is_some_and(|name| *name != former.name)
    }

    fn instead_of<'a>(&'a self, former: &StoredFile, new: &'a NewFile) -> FileReplacement<'a> {
        FileReplacement {
            r#type: self.resulting_type(former, new),
            name: new.name.as_deref(),
            url: None,
            file: self.as_blob_file(),
        }
    }
}

fn unknown() -> ApiError {
    ApiError::not_found("document")
}

fn bytes_of(file: &StoredFile) -> u64 {
    u64::try_from(file.source_bytes).unwrap_or(0)
}
