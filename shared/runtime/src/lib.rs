//! Puts the parts together: opens, as the settings say, one implementation of each. Models are picked where they are opened, in
//! `lectern_embed`, since a local one may have to be downloaded first.

pub(crate) mod data_dir;
pub mod health;
mod index;
mod key_notice;
mod keyring;
pub mod leased;
pub mod metrics;
pub mod process;
mod start_error;

use std::{fs::File, path::Path, sync::Arc, time::Duration};

use futures::future::LocalBoxFuture;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use lectern_db::{self as db, Db, DbError, jobs::ReindexTarget, migrate::SchemaStatus, singletons};
use lectern_embed::{EmbeddingModels, RerankModel};
use lectern_index::SearchIndex;
use lectern_jobs::{Doorbell, JobQueue};
use lectern_shared::{
    blobs::{BlobError, BlobLocation, BlobStore},
    cache_budget::CacheBudget,
    clock::Clock,
    compute::ComputePool,
    config::{DatabaseLocation, Settings},
    egress::{Egress, EgressPolicy, SiteScope},
    ids::WorkspaceId,
    metrics::Metrics,
    redis::Redis,
    secrets::Keyring,
};
use tokio::time::Instant;
use uuid::Uuid;

pub use crate::{
    data_dir::make_private,
    index::{INDEX, index_name},
    key_notice::{KEY_NOTICE_STANDS, forget_gone_writers},
    keyring::{opens_canary, secret_file, stored_secret},
    start_error::RuntimeStartError,
};
use crate::{health::WriteProbe, index::IndexOpenMode, key_notice::KeyNotice};

/// How long a start waits for the servers that it needs: they may be starting too.
const WAIT_FOR_SERVERS: Duration = Duration::from_mins(1);
/// The pause before such a server is tried again.
const SERVER_PAUSE: Duration = Duration::from_secs(2);

/// What else there may be of this installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessRole {
    /// The API and the worker in one process.
    Whole,
    /// One of several processes.
    Part,
    /// A command of the operator's on an installation that is there already, whose service may be running meanwhile: it changes
    /// no schema and makes nothing new.
    Command,
    /// A command like that which needs a SQLite file for itself, because it does the service's work.
    ExclusiveCommand,
}

/// Everything that both sides of the service share. Cheap to clone.
#[derive(Clone)]
pub struct Runtime {
    /// The settings.
    pub settings: Arc<Settings>,
    /// The time.
    pub clock: Clock,
    /// The relational store.
    pub db: Db,
    /// The keys.
    pub keyring: Arc<Keyring>,
    /// Blobs.
    pub blobs: BlobStore,
    /// Redis, when it is used.
    pub redis: Option<Redis>,
    /// The queue.
    pub jobs: JobQueue,
    /// The search index.
    pub index: Arc<dyn SearchIndex>,
    /// The embedding models.
    pub models: EmbeddingModels,
    /// The reranker.
    pub reranker: RerankModel,
    /// The memory for what is kept of the index and of what is searched.
    pub cache_budget: CacheBudget,
    /// Whether the store can be written.
    pub(crate) writes: Arc<WriteProbe>,
    /// What is counted and timed.
    pub metrics: Arc<Metrics>,
    /// Blocking work on behalf of requests.
    pub compute: ComputePool,
    /// The way out for everything that a user can steer.
    pub egress: Egress,
    /// The way to hosts that the operator's settings name, wherever they are. Never for an address that a user can steer.
    pub operator_egress: Egress,
    /// The way to the video site alone, through the operator's proxy when there is one.
    pub video_egress: Egress,
    /// What a service says of its key while it runs; a command says nothing.
    key_notice: Option<KeyNotice>,
    /// Held for as long as the process has the data directory for itself.
    data_dir_lock: Option<Arc<File>>,
}

impl Runtime {
    /// Opens every part, and brings the schema up to date. Servers that do not answer yet are waited for.
    /// Boxed here: it is large, and compiled once so.
    pub fn start(
        settings: Settings,
        role: ProcessRole,
    ) -> LocalBoxFuture<'static, Result<Self, RuntimeStartError>> {
        Box::pin(Self::open(settings, role, IndexOpenMode::AsBefore))
    }

    /// Makes the index that is set the one of this installation, and queues every searchable document to be indexed in it from
    /// its stored passages; how many there are. The service does that when it runs the next time, and must not run now.
    pub async fn reindex(settings: Settings) -> Result<u64, RuntimeStartError> {
        let role = ProcessRole::ExclusiveCommand;
        let runtime = Box::pin(Self::open(settings, role, IndexOpenMode::Anew)).await?;
        let mut tx = runtime.db.begin().await?;
        singletons::set(&mut tx, INDEX, index_name(&runtime.settings)).await?;
        let queued = db::jobs::enqueue_again(&mut tx, ReindexTarget::All, runtime.jobs.now()).await?;
        tx.commit().await?;
        runtime.close().await;
        Ok(queued)
    }

    async fn open(
        settings: Settings,
        role: ProcessRole,
        index_is: IndexOpenMode,
    ) -> Result<Self, RuntimeStartError> {
        let database = settings.database.clone();
        let opened = Box::pin(Self::open_parts(settings, role, index_is)).await;
        opened.map_err(|error| error.with_setting(&database))
    }

    async fn open_parts(
        settings: Settings,
        role: ProcessRole,
        index_is: IndexOpenMode,
    ) -> Result<Self, RuntimeStartError> {
        let data_dir = lock_data_dir(&settings, role)?;
        lectern_shared::tls::install();
        // They are many files, and the clients at the end are the first that need them.
        tokio::task::spawn_blocking(lectern_shared::tls::prepare);
        let database = || db::connect(&settings.database);
        let db = retry_while_away("the database", database, DbError::is_connection_failure).await?;
        if matches!(role, ProcessRole::Whole | ProcessRole::ExclusiveCommand) {
            db.keep_reserve().await;
        }
        let is_service = matches!(role, ProcessRole::Whole | ProcessRole::Part);
        if is_service {
            db.prepare_probes();
        }
        let is_behind = is_schema_behind(&settings, &db, is_service).await?;
        let keyring = Arc::new(keyring::open(&settings, &db).await?);
        let instance = instance_id(&db).await?;
        let redis = settings.redis.as_ref().map(|url| Redis::new(url, &instance)).transpose()?;
        let blobs = BlobStore::open(&settings.blobs).await?;
        let taken = take_blobs(&blobs, &settings, &db, &instance);
        let (taken, ()) = tokio::join!(taken, greet_redis(redis.as_ref()));
        taken?;
        // Only now that the key and the blobs are known to be of this installation: there is no way back.
        if is_behind {
            db::migrate::run(&db).await?;
        }
        // Before the index is asked for: a process with another one need not wait for it.
        let index_known = index_is == IndexOpenMode::AsBefore && index::check(&settings, &db).await?;
        let doorbell = redis.clone().map_or_else(Doorbell::local, Doorbell::redis);
        let jobs = JobQueue::new(&db, Clock::system(), settings.jobs.clone(), doorbell);
        jobs.follow_database_clock().await?;
        let clock = Clock::system();
        let metrics = Arc::new(Metrics::new(clock.now()));
        let budget = CacheBudget::new(settings.index_cache);
        let index = index::open(&settings, &db, &instance, index_known, &budget, &metrics).await?;
        if index_is == IndexOpenMode::AsBefore {
            // Only now: an address that was wrong at the first start must not be held against the right one.
            index::claim(&settings, &db).await?;
        }
        let models = EmbeddingModels::new(&settings.embedding);
        let reranker = RerankModel::new(&settings.rerank);
        Ok(Self {
            clock,
            cache_budget: budget,
            models,
            reranker,
            metrics,
            egress: Egress::new(users_policy(&settings))?,
            operator_egress: Egress::new(operators_policy())?,
            video_egress: Egress::new(video_policy(&settings))?,
            settings: Arc::new(settings),
            compute: ComputePool::per_core(),
            writes: Arc::new(WriteProbe::new()),
            db,
            keyring,
            blobs,
            redis,
            jobs,
            index,
            key_notice: None,
            data_dir_lock: data_dir,
        })
    }

    /// The same for work that nobody waits for at the other end of a connection: see [`Db::in_background`].
    #[must_use]
    pub fn in_background(&self) -> Self {
        Self { db: self.db.in_background(), ..self.clone() }
    }

    /// The same on behalf of a workspace: see [`Db::on_behalf_of`].
    #[must_use]
    pub fn on_behalf_of(&self, workspace: WorkspaceId) -> Self {
        Self { db: self.db.on_behalf_of(workspace), ..self.clone() }
    }

    /// Sends what is not sent yet, and closes every connection.
    pub async fn close(&self) {
        self.jobs.doorbell().flush().await;
        if let Some(notice) = &self.key_notice {
            notice.withdraw().await;
        }
        self.db.close().await;
    }
}

/// Where requests may go that users can steer.
fn users_policy(settings: &Settings) -> EgressPolicy {
    EgressPolicy { allow: settings.egress_allow.clone(), ..EgressPolicy::default() }
}

/// Where requests may go to hosts that the operator's settings name: anywhere.
fn operators_policy() -> EgressPolicy {
    let allow = vec![IpNet::from(Ipv4Net::default()), IpNet::from(Ipv6Net::default())];
    EgressPolicy { allow, ..EgressPolicy::default() }
}

/// To the video site alone, through the operator's proxy when there is one.
fn video_policy(settings: &Settings) -> EgressPolicy {
    EgressPolicy {
        allow: settings.egress_allow.clone(),
        site: SiteScope::of(&settings.video.site),
        proxy: settings.video.proxy.clone(),
        ..EgressPolicy::default()
    }
}

/// Whether the schema has to be brought up to date. Where there is none, a service makes it at once.
async fn is_schema_behind(settings: &Settings, db: &Db, is_service: bool) -> Result<bool, RuntimeStartError> {
    match db::migrate::standing(db).await? {
        SchemaStatus::Current => Ok(false),
        SchemaStatus::Newer(version) => Err(RuntimeStartError::NewerSchema(version)),
        SchemaStatus::Empty if is_service => {
            db::migrate::run(db).await?;
            Ok(false)
        }
        SchemaStatus::Empty => Err(RuntimeStartError::Nothing(place_of(&settings.database))),
        SchemaStatus::Older(_) | SchemaStatus::Altered(_) if is_service => Ok(true),
        SchemaStatus::Older(_) | SchemaStatus::Altered(_) => Err(RuntimeStartError::OtherSchema),
    }
}

/// Where a store is, for the operator.
fn place_of(database: &DatabaseLocation) -> String {
    match database {
        DatabaseLocation::Sqlite(file) => whole_path(file),
        // The URL may hold a password.
        DatabaseLocation::Postgres(_) => "the place that DATABASE_URL names".to_owned(),
    }
}

/// A path as it is from any folder: one in the folder that a command is run in looks right, and is not where the service's is.
pub fn whole_path(path: &Path) -> String {
    std::path::absolute(path).as_deref().unwrap_or(path).display().to_string()
}

/// Makes sure that there is a database, where it is a file. A command that makes one would work on an installation that nobody uses.
///
/// # Errors
/// [`RuntimeStartError::Nothing`], which says where it was looked for.
pub fn require_file(settings: &Settings) -> Result<(), RuntimeStartError> {
    let DatabaseLocation::Sqlite(file) = &settings.database else { return Ok(()) };
    let fail = |source| RuntimeStartError::DataDir { path: file.display().to_string(), source };
    if file.try_exists().map_err(fail)? {
        Ok(())
    } else {
        Err(RuntimeStartError::Nothing(place_of(&settings.database)))
    }
}

/// Locks the data directory where the store is in it, and closes it to others. None where it is not, or where a command works beside
/// the service.
fn lock_data_dir(settings: &Settings, role: ProcessRole) -> Result<Option<Arc<File>>, RuntimeStartError> {
    Ok(match (&settings.database, role) {
        (DatabaseLocation::Sqlite(_), ProcessRole::Part) => return Err(RuntimeStartError::SqliteInParts),
        (DatabaseLocation::Sqlite(_), ProcessRole::Whole) => {
            let lock = data_dir::lock(&settings.data_dir)?;
            data_dir::close_to_others(&settings.data_dir)?;
            Some(Arc::new(lock))
        }
        (DatabaseLocation::Sqlite(_), ProcessRole::Command | ProcessRole::ExclusiveCommand) => {
            require_file(settings)?;
            match data_dir::lock(&settings.data_dir) {
                Ok(lock) => {
                    if role == ProcessRole::ExclusiveCommand {
                        data_dir::close_to_others(&settings.data_dir)?;
                    }
                    Some(Arc::new(lock))
                }
                // The service runs. SQLite lets another process write beside it.
                Err(RuntimeStartError::InUse(_)) if role == ProcessRole::Command => None,
                Err(error) => return Err(error),
            }
        }
        (DatabaseLocation::Postgres(_), _) => None,
    })
}

/// The name under which the mark of the blob store is recorded.
pub const BLOBS: &str = "blobs";

/// Says in the log when Redis cannot be used. Nothing fails for that.
async fn greet_redis(redis: Option<&Redis>) {
    if let Some(redis) = redis
        && let Err(error) = redis.ping().await
    {
        tracing::warn!(%error, "Redis cannot be used; going on without until it can");
    }
}

/// Opens a part that another server holds, and tries again for a while when that is not there yet.
async fn retry_while_away<T, E: std::fmt::Display>(
    part: &str,
    mut open: impl AsyncFnMut() -> Result<T, E>,
    is_away: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let began = Instant::now();
    loop {
        match open().await {
            Err(error) if is_away(&error) && began.elapsed() < WAIT_FOR_SERVERS => {
                tracing::warn!(%error, "{part} does not answer yet; waiting");
                tokio::time::sleep(SERVER_PAUSE).await;
            }
            end => return end,
        }
    }
}

/// Makes the blob store this installation's, once it answers.
async fn take_blobs(
    blobs: &BlobStore,
    settings: &Settings,
    db: &Db,
    instance: &str,
) -> Result<(), RuntimeStartError> {
    let take = || claim_blob_store(blobs, &settings.blobs, db, instance);
    let is_away =
        |error: &RuntimeStartError| matches!(error, RuntimeStartError::Blobs(BlobError::Unavailable { .. }));
    retry_while_away("the blob store", take, is_away).await
}

/// Makes sure that the blob store is the one that every other process of this installation uses: a worker without
/// the shared folder must not quietly find nothing in a folder of its own.
async fn claim_blob_store(
    blobs: &BlobStore,
    location: &BlobLocation,
    db: &Db,
    instance: &str,
) -> Result<(), RuntimeStartError> {
    const NAME: &str = BLOBS;
    let elsewhere = |mark: String| RuntimeStartError::BlobsElsewhere { place: location.to_string(), mark };
    // In this order: what the database knows of was written to the store before.
    let known = singletons::get(db, NAME).await?;
    let mark = match (blobs.owner().await?, &known) {
        (Some(mark), _) => mark,
        (None, Some(mark)) => return Err(elsewhere(mark.clone())),
        (None, None) => {
            let fresh = format!("{instance}.{}", Uuid::now_v7().simple());
            match blobs.claim(&fresh).await {
                Ok(()) => fresh,
                // Another process was quicker; it may be one of this installation.
                Err(foreign @ BlobError::Foreign(_)) => blobs.owner().await?.ok_or(foreign)?,
                Err(error) => return Err(error.into()),
            }
        }
    };
    if !mark.starts_with(instance) {
        return Err(BlobError::Foreign(location.to_string()).into());
    }
    // The rule. What is recorded stays.
    if let Some(known) = known {
        return if known == mark { Ok(()) } else { Err(elsewhere(known)) };
    }
    let mut tx = db.begin_essential().await?;
    singletons::claim(&mut tx, NAME, &mark).await?;
    tx.commit().await?;
    match singletons::get(db, NAME).await? {
        Some(other) if other != mark => Err(elsewhere(other)),
        Some(_) | None => Ok(()),
    }
}

/// The name under which the installation's own id is recorded.
pub const INSTANCE: &str = "instance";

/// The installation's own id, made at the first start; what is stored outside the database carries it.
async fn instance_id(db: &Db) -> Result<String, DbError> {
    const NAME: &str = INSTANCE;
    if let Some(known) = singletons::get(db, NAME).await? {
        return Ok(known);
    }
    let fresh = Uuid::now_v7().to_string();
    let mut tx = db.begin_essential().await?;
    let first = singletons::claim(&mut tx, NAME, &fresh).await?;
    tx.commit().await?;
    if first { Ok(fresh) } else { Ok(singletons::get(db, NAME).await?.unwrap_or(fresh)) }
}
