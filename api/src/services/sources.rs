//! Sources: places whose documents are kept in step with what is there. Here they are described, and their runs asked for (`run.rs`); what
//! a run does is the worker's.

mod config;
mod place;
mod run;

use std::{sync::Arc, time::Duration};

use lectern_db::{self as db, Db, Tx, sync::runs};
use lectern_derive::RequestBody;
use lectern_runtime::Runtime;
use lectern_shared::{
    clock::{Clock, Timestamp},
    config::Settings,
    egress::Egress,
    ids::{CollectionId, SourceId},
    model::{
        Json,
        audit::{AuditAction, AuditDetails},
        sync::{SyncRun, SyncSecret, SyncSource, SyncSourceType},
    },
    secrets::{CiphertextLocation, Keyring},
};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use self::config::{GivenConfig, SourceConfigSchema};
pub(crate) use self::run::NewRun;
use super::{
    actor::{Actor, Permission},
    audit::AuditService,
    creation::{CreationOutcome, IdempotencyStore, IdempotentRequest, ResponseEncoder},
    edits::EditBase,
};
use crate::{
    error::{ApiError, ApiErrorKind},
    fields::{FieldRule, GivenId, JsonFields},
};

/// Sources of one workspace.
const MOST: u64 = 50;
/// The same, for who chooses among them.
const SHOWN: u32 = 50;
/// The least and the most time between two runs.
const LEAST_EVERY: Duration = Duration::from_mins(5);
const MOST_EVERY: Duration = Duration::from_hours(24 * 365);
/// The longest text of such a time, in characters.
const EVERY_TEXT: usize = 100;
/// How many documents may be deleted in one run, in per cent, when nothing else is said.
const DELETE_LIMIT: usize = 20;
/// Why a run is stopped that asked whether what is gone is to be deleted.
const CHANGED: &str = "The source was changed meanwhile.";

/// A new source.
#[derive(RequestBody, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct NewSource {
    /// What to call it.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S")]
    name: String,
    /// What kind of place it is: `site`, `feed`, `s3` or `folder`.
    #[schema(value_type = String)]
    r#type: SyncSourceType,
    /// Where it is, and what of it becomes documents, by its type.
    #[schema(value_type = SourceConfigSchema)]
    #[body(with = new_config)]
    config: Option<Map<String, Value>>,
    /// A collection of yours that its documents go into.
    #[schema(value_type = Option<String>)]
    collection_id: Option<GivenId<CollectionId>>,
    /// How often it runs by itself, such as `6h` or `1d`; at least `5m`. It runs only when somebody says so without it.
    #[schema(value_type = Option<String>)]
    #[body(with = every)]
    every: Option<Duration>,
    /// How many of its documents one run may delete without a question because they are gone, in per cent. 20 when left out.
    #[schema(value_type = Option<usize>, minimum = 0, maximum = 100)]
    #[body(default = DELETE_LIMIT)]
    delete_limit: usize,
}

/// What is to be different about a source. What is left out stays as it is.
#[derive(RequestBody, ToSchema)]
#[schema(rename_all = "camelCase")]
#[body(change)]
#[expect(clippy::option_option, reason = "absent, null and a value are three things")]
pub(crate) struct SourceChange {
    /// What to call it.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S", nullable = false)]
    name: Option<String>,
    /// Where it is, and what of it becomes documents: all of it, in the place of the earlier configuration. A secret that is left out stays;
    /// null takes it away. Documents of what is then no part of the source any more are gone.
    #[schema(value_type = Option<SourceConfigSchema>, nullable = false)]
    #[body(with = changed_config)]
    config: Option<Map<String, Value>>,
    /// A collection of yours that its new documents go into; null for none.
    #[schema(value_type = Option<String>)]
    collection_id: Option<Option<GivenId<CollectionId>>>,
    /// How often it runs by itself; null for not at all.
    #[schema(value_type = Option<String>)]
    #[body(with = every)]
    every: Option<Option<Duration>>,
    /// How many of its documents one run may delete without a question, in per cent.
    #[schema(minimum = 0, maximum = 100, nullable = false)]
    delete_limit: Option<usize>,
}

fn new_config(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Map<String, Value>> {
    if fields.get(rule.name).is_none() {
        fields.refuse(rule.name, "is required");
    }
    changed_config(fields, rule)
}

fn changed_config(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Map<String, Value>> {
    fields.object(rule.name)
}

fn every(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<Duration> {
    let text = fields.optional_text(rule.name, EVERY_TEXT)?;
    let every = humantime::parse_duration(text.trim()).ok();
    let every = every.filter(|every| (LEAST_EVERY..=MOST_EVERY).contains(every));
    if every.is_none() {
        fields.refuse(rule.name, "must be a time such as 30m, 6h or 1d, of at least 5m and at most 365d");
    }
    every
}

/// A source, and its last run.
#[derive(Clone)]
pub(crate) struct SourceDetails {
    pub(crate) source: SyncSource,
    pub(crate) last_run: Option<SyncRun>,
}

/// Sources. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SourceService {
    db: Db,
    clock: Clock,
    keyring: Arc<Keyring>,
    egress: Egress,
    settings: Arc<Settings>,
    creations: IdempotencyStore,
    audit: AuditService,
}

fn unknown() -> ApiError {
    ApiError::not_found("source")
}

impl SourceService {
    pub(crate) fn new(runtime: &Runtime, creations: IdempotencyStore, audit: AuditService) -> Self {
        let Runtime { db, clock, keyring, egress, settings, .. } = runtime.clone();
        Self { db, clock, keyring, egress, settings, creations, audit }
    }

    /// The folders that sources may read, as the operator has it.
    pub(crate) fn has_folders(&self) -> bool {
        !self.settings.sync.folders.is_empty()
    }

    /// The newest sources, to choose from: all of them, since there are never many.
    pub(crate) async fn choices(&self, actor: &Actor) -> Result<Vec<(SourceId, String)>, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        Ok(db::choices::sources(&self.db, owner.workspace_id, "", SHOWN).await?.newest)
    }

    /// Makes a source; its first run begins at once when it runs by itself.
    ///
    /// # Errors
    /// When what is said of it cannot be, or the workspace has as many as it may.
    pub(crate) async fn create(
        &self,
        actor: &Actor,
        new: NewSource,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<SourceDetails>,
    ) -> Result<CreationOutcome, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let given = self.read_config(new.r#type, &new.config.unwrap_or_default(), false)?;
        let (id, now) = (SourceId::generate(), self.clock.now());
        let secret = given.secret();
        let mut tx = self.db.begin().await?;
        db::locks::lock_workspace(&mut tx, owner.workspace_id).await?;
        let collection_id = self.collection(&mut tx, actor, new.collection_id).await?;
        if db::sync::count(&mut tx, owner.workspace_id).await? >= MOST {
            let message = format!("A workspace may have at most {MOST} sources.");
            return Err(ApiError::new(ApiErrorKind::Conflict, "too_many_sources", message));
        }
        let source = SyncSource {
            id,
            owner,
            name: new.name,
            collection_id,
            secret_sealed: self.seal(id, &secret)?,
            config: Json(given.config),
            every_seconds: new.every.map(seconds),
            delete_limit: limit(new.delete_limit),
            next_run_at: new.every.map(|_| now),
            etag: None,
            last_modified: None,
            created_at: now,
            updated_at: now,
            documents: 0,
        };
        db::sync::insert(&mut tx, &source).await?;
        let details =
            AuditDetails::change(None, place::told(&source.config.0)).with("type", Some(new.r#type));
        self.audit.note_with(&mut tx, actor, AuditAction::SourceCreated, "source", id, details).await?;
        if source.secret_sealed.is_some() {
            self.audit.note(&mut tx, actor, AuditAction::SecretChanged, "source", id).await?;
        }
        self.creations.commit(tx, once, &SourceDetails { source, last_run: None }, tell).await
    }

    /// The sources before an id, newest first.
    pub(crate) async fn list(
        &self,
        actor: &Actor,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<SourceDetails>, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let sources = db::sync::list(&self.db, owner.workspace_id, before.into(), limit).await?;
        let mut runs = runs::latest(&self.db, owner.workspace_id).await?;
        let details = sources.into_iter().map(|source| {
            let at = runs.iter().position(|run| run.source_id == source.id);
            SourceDetails { source, last_run: at.map(|at| runs.swap_remove(at)) }
        });
        Ok(details.collect())
    }

    /// At most `limit` sources with a run that asks whether so much is to be deleted, by id and name.
    pub(crate) async fn asking(
        &self,
        actor: &Actor,
        limit: u32,
    ) -> Result<Vec<(SourceId, String)>, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        Ok(runs::waiting(&self.db, owner.workspace_id, limit).await?)
    }

    /// At most `limit` sources that could not be read the last time, by id, name and why.
    pub(crate) async fn failing(
        &self,
        actor: &Actor,
        limit: u32,
    ) -> Result<Vec<(SourceId, String, Option<String>)>, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        Ok(runs::failing(&self.db, owner.workspace_id, limit).await?)
    }

    /// One source.
    pub(crate) async fn find(&self, actor: &Actor, id: SourceId) -> Result<SourceDetails, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let workspace = owner.workspace_id;
        let source = db::sync::find(&self.db, workspace, id).await?.ok_or_else(unknown)?;
        let runs = runs::list(&self.db, workspace, id, Uuid::max().into(), 1).await?;
        Ok(SourceDetails { source, last_run: runs.into_iter().next() })
    }

    /// Changes a source, which is as it is returned afterwards. With another configuration, its run ends that asks whether so much is to be
    /// deleted, or was told to.
    ///
    /// # Errors
    /// When what is said of it cannot be, a secret that is kept would be sent to another place, or it is not what the change begins from.
    pub(crate) async fn change(
        &self,
        actor: &Actor,
        id: SourceId,
        change: SourceChange,
        base: EditBase,
    ) -> Result<SourceDetails, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let now = self.clock.now();
        let mut tx = self.db.begin().await?;
        db::locks::lock_workspace(&mut tx, owner.workspace_id).await?;
        let mut source = db::sync::lock(&mut tx, owner.workspace_id, id).await?.ok_or_else(unknown)?;
        base.check(source.updated_at)?;
        if let Some(config) = change.config {
            let given = self.read_config(source.config.0.source_type(), &config, true)?;
            if given.says_secret {
                source.secret_sealed = self.seal(id, &given.secret())?;
                self.audit.note(&mut tx, actor, AuditAction::SecretChanged, "source", id).await?;
            } else if source.secret_sealed.is_some() {
                given.check_kept_secret(&source.config.0)?;
            }
            if place::is_another(&source.config.0, &given.config) {
                let details = AuditDetails::moved(place::told(&source.config.0), place::told(&given.config));
                self.audit
                    .note_with(&mut tx, actor, AuditAction::AddressChanged, "source", id, details)
                    .await?;
            }
            if source.config.0 != given.config {
                source.config = Json(given.config);
                (source.etag, source.last_modified) = (None, None);
                runs::cancel_deletion(&mut tx, owner.workspace_id, id, CHANGED, now).await?;
            }
        }
        if let Some(collection) = change.collection_id {
            source.collection_id = self.collection(&mut tx, actor, collection).await?;
        }
        if let Some(every) = change.every {
            let every = every.map(seconds);
            if source.every_seconds != every {
                source.every_seconds = every;
                source.next_run_at = every.map(|every| now.plus(Duration::from_secs(every.unsigned_abs())));
            }
        }
        source.name = change.name.unwrap_or(source.name);
        source.delete_limit = change.delete_limit.map_or(source.delete_limit, limit);
        source.updated_at = now;
        db::sync::update(&mut tx, &source).await?;
        tx.commit().await?;
        self.find(actor, id).await
    }

    /// Deletes a source, and stops its run. Its documents stay.
    pub(crate) async fn delete(&self, actor: &Actor, id: SourceId) -> Result<(), ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let mut tx = self.db.begin_essential().await?;
        db::locks::lock_workspace(&mut tx, owner.workspace_id).await?;
        if !db::sync::delete(&mut tx, owner.workspace_id, id).await? {
            return Err(unknown());
        }
        self.audit.note(&mut tx, actor, AuditAction::Deleted, "source", id).await?;
        Ok(tx.commit().await?)
    }

    /// The collection that was named, which is the workspace's.
    async fn collection(
        &self,
        tx: &mut Tx,
        actor: &Actor,
        named: Option<GivenId<CollectionId>>,
    ) -> Result<Option<CollectionId>, ApiError> {
        let owner = actor.may(Permission::EditDocuments)?;
        let missing = || ApiError::not_found("collection");
        let Some(id) = named.transpose().map_err(|_| missing())? else { return Ok(None) };
        db::collections::lock(tx, owner.workspace_id, id).await?.ok_or_else(missing)?;
        Ok(Some(id))
    }

    fn read_config(
        &self,
        r#type: SyncSourceType,
        config: &Map<String, Value>,
        is_change: bool,
    ) -> Result<GivenConfig, ApiError> {
        GivenConfig::read(r#type, config, is_change, &self.settings.sync, &self.egress)
    }

    fn seal(&self, id: SourceId, secret: &SyncSecret) -> Result<Option<Vec<u8>>, ApiError> {
        if secret.is_empty() {
            return Ok(None);
        }
        let text = serde_json::to_vec(secret).map_err(|_| ApiError::internal())?;
        Ok(Some(self.keyring.encrypt(CiphertextLocation::source_secret(id.as_uuid()), &text)?))
    }
}

fn seconds(every: Duration) -> i64 {
    i64::try_from(every.as_secs()).unwrap_or(i64::MAX)
}

fn limit(percent: usize) -> i64 {
    i64::try_from(percent).unwrap_or(i64::MAX)
}

/// A time between runs, as it can be given.
pub(crate) fn written_every(source: &SyncSource) -> Option<String> {
    Some(written(source.every_seconds?.unsigned_abs()))
}

/// Seconds in the largest of these units that tells them in one whole number.
fn written(seconds: u64) -> String {
    const UNITS: [(u64, char); 3] = [(24 * 60 * 60, 'd'), (60 * 60, 'h'), (60, 'm')];
    let largest = UNITS.into_iter().find(|(length, _)| seconds.is_multiple_of(*length));
    let (length, unit) = largest.unwrap_or((1, 's'));
    format!("{}{unit}", seconds / length)
}

/// When a source runs next by itself.
pub(crate) fn next_run(source: &SyncSource) -> Option<Timestamp> {
    source.next_run_at.filter(|_| source.every_seconds.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_between_runs_is_told_as_it_can_be_given() {
        for (given, told) in
            [("30m", "30m"), ("1day 12h", "36h"), ("60d", "60d"), ("365d", "365d"), ("301s", "301s")]
        {
            let every = humantime::parse_duration(given).unwrap();
            assert_eq!(written(every.as_secs()), told);
            assert_eq!(humantime::parse_duration(told).unwrap(), every);
        }
    }
}
