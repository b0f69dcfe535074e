//! Tags.

use lectern_db::{self as db, Db};
use lectern_derive::RequestBody;
use lectern_shared::{
    clock::Clock,
    ids::TagId,
    model::{audit::AuditAction, tag::Tag},
};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    NAME,
    actor::{Actor, Permission},
    audit::AuditService,
    creation::{CreationOutcome, IdempotencyStore, IdempotentRequest, ResponseEncoder},
};
use crate::{
    error::ApiError,
    fields::{FieldRule, JsonFields},
};

/// A new tag.
#[derive(Debug, RequestBody, ToSchema)]
pub(crate) struct NewTag {
    /// What to call it.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S")]
    pub(crate) name: String,
    /// Its color: `#` and six hexadecimal digits, in either case.
    #[schema(pattern = "^#[0-9A-Fa-f]{6}$")]
    #[body(with = color)]
    pub(crate) color: String,
}

/// What is to be different about a tag. What is left out stays as it is.
#[derive(Debug, RequestBody, ToSchema)]
#[body(change)]
pub(crate) struct TagChange {
    /// What to call it.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S", nullable = false)]
    pub(crate) name: Option<String>,
    /// Its color: `#` and six hexadecimal digits, in either case.
    #[schema(pattern = "^#[0-9A-Fa-f]{6}$", nullable = false)]
    #[body(with = color)]
    pub(crate) color: Option<String>,
}

fn color(fields: &mut JsonFields<'_>, rule: &FieldRule) -> String {
    let color = fields.text(rule.name, NAME);
    let digits = color.strip_prefix('#').filter(|digits| digits.len() == 6);
    let right = digits.is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
    if !right && !fields.is_refused(rule.name) {
        fields.refuse(rule.name, "must have the form #RRGGBB, such as #0e8a16");
    }
    color
}

/// Tags. Cheap to clone.
#[derive(Clone)]
pub(crate) struct TagService {
    db: Db,
    clock: Clock,
    creations: IdempotencyStore,
    audit: AuditService,
}

fn unknown() -> ApiError {
    ApiError::not_found("tag")
}

impl TagService {
    pub(crate) fn new(db: Db, clock: Clock, creations: IdempotencyStore, audit: AuditService) -> Self {
        Self { db, clock, creations, audit }
    }

    /// Makes a tag.
    pub(crate) async fn create(
        &self,
        actor: &Actor,
        new: NewTag,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<Tag>,
    ) -> Result<CreationOutcome, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let now = self.clock.now();
        let NewTag { name, color } = new;
        let tag = Tag { id: TagId::generate(), owner, name, color, created_at: now, updated_at: now };
        let mut tx = self.db.begin().await?;
        db::tags::insert(&mut tx, &tag).await?;
        self.creations.commit(tx, once, &tag, tell).await
    }

    /// The tags before an id, newest first.
    pub(crate) async fn list(&self, actor: &Actor, before: Uuid, limit: u32) -> Result<Vec<Tag>, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        Ok(db::tags::list(&self.db, owner.workspace_id, before.into(), limit).await?)
    }

    /// One tag.
    pub(crate) async fn find(&self, actor: &Actor, id: TagId) -> Result<Tag, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        db::tags::find(&self.db, owner.workspace_id, id).await?.ok_or_else(unknown)
    }

    /// Changes a tag, which is as it is returned afterwards.
    pub(crate) async fn change(&self, actor: &Actor, id: TagId, change: TagChange) -> Result<Tag, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let mut tx = self.db.begin().await?;
        let before = db::tags::lock(&mut tx, owner.workspace_id, id).await?.ok_or_else(unknown)?;
        let mut tag = before.clone();
        tag.name = change.name.unwrap_or(tag.name);
        tag.color = change.color.unwrap_or(tag.color);
        if tag != before {
            tag.updated_at = self.clock.now();
            db::tags::update(&mut tx, &tag).await?;
            tx.commit().await?;
        }
        Ok(tag)
    }

    /// Deletes a tag; the agents that have it lose it.
    pub(crate) async fn delete(&self, actor: &Actor, id: TagId) -> Result<(), ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let mut tx = self.db.begin_essential().await?;
        if !db::tags::delete(&mut tx, owner.workspace_id, id).await? {
            return Err(unknown());
        }
        self.audit.note(&mut tx, actor, AuditAction::Deleted, "tag", id).await?;
        Ok(tx.commit().await?)
    }
}
