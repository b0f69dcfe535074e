//! Puts the parts together. This is the one place that picks an implementation for each part from the settings.

use std::{
    fs::File,
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
    sync::Arc,
};

use secrecy::SecretString;
use uuid::Uuid;

use crate::{
    blobs::{BlobError, Blobs},
    clock::Clock,
    compute::Compute,
    config::Settings,
    db::{self, Db, DbError, Location, migrate::MigrationError, singletons},
    egress::{Egress, EgressError, EgressPolicy},
    index::{LocalIndex, SearchIndex},
    jobs::{Doorbell, Jobs, LocalDoorbell},
    search::Search,
    secrets::{Keyring, Place, SecretError, hex},
};

/// Why the service cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory cannot be used.
    #[error("the data directory {path} cannot be used: {source}")]
    DataDir {
        /// The directory.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// Another process works on the same data directory.
    #[error(
        "the data directory {0} is in use by another process: stop it, or set LECTERN_DATA_DIR to another directory"
    )]
    InUse(String),
    /// Without the secret nothing that is encrypted could be read.
    #[error("LECTERN_SECRET_KEY must be set when DATABASE_URL is, so that every process has the same key")]
    SecretMissing,
    /// The secret is not the one under which the database was filled.
    #[error(
        "LECTERN_SECRET_KEY is not the key of this database: set the right one, or give the old one as LECTERN_SECRET_KEY_PREVIOUS"
    )]
    WrongSecret,
    /// The secret cannot be used.
    #[error("LECTERN_SECRET_KEY: {0}")]
    Secret(#[from] SecretError),
    /// The store failed.
    #[error(transparent)]
    Db(#[from] DbError),
    /// The schema cannot be used.
    #[error(transparent)]
    Migration(#[from] MigrationError),
    /// The blob store failed.
    #[error(transparent)]
    Blobs(#[from] BlobError),
    /// The outbound client cannot be built.
    #[error(transparent)]
    Egress(#[from] EgressError),
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
    pub blobs: Blobs,
    /// The queue.
    pub jobs: Jobs,
    /// The search index.
    pub index: Arc<dyn SearchIndex>,
    /// Search over it.
    pub search: Search,
    /// Blocking work on behalf of requests.
    pub compute: Compute,
    /// The way out for everything that a user can steer.
    pub egress: Egress,
    /// Held for as long as the process uses the data directory.
    _data_dir: Arc<File>,
}

impl Runtime {
    /// Opens every part, and brings the schema up to date.
    pub async fn start(settings: Settings) -> Result<Self, StartError> {
        let data_dir = lock_data_dir(&settings.data_dir)?;
        let db = db::connect(&settings.database).await?;
        db::migrate::run(&db).await?;
        let keyring = Arc::new(open_keyring(&settings, &db).await?);
        let instance = instance_id(&db).await?;
        let blobs = Blobs::open(&settings.blobs, &instance).await?;
        let jobs = Jobs::new(
            db.clone(),
            Clock::system(),
            settings.jobs.clone(),
            Doorbell::Local(LocalDoorbell::default()),
        );
        jobs.follow_database_clock().await?;
        let index: Arc<dyn SearchIndex> = Arc::new(LocalIndex::new(db.clone(), settings.index_cache));
        Ok(Self {
            clock: Clock::system(),
            search: Search::new(db.clone(), Arc::clone(&index)),
            egress: Egress::new(EgressPolicy {
                allow: settings.egress_allow.clone(),
                ..EgressPolicy::default()
            })?,
            settings: Arc::new(settings),
            compute: Compute::per_core(),
            db,
            keyring,
            blobs,
            jobs,
            index,
            _data_dir: Arc::new(data_dir),
        })
    }
}

/// Makes the data directory and takes it for this process alone: two processes over one in-process queue would each hold
/// half of the truth.
fn lock_data_dir(path: &Path) -> Result<File, StartError> {
    let fail = |source| StartError::DataDir { path: path.display().to_string(), source };
    // What is in it is nobody else's business on this machine.
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(fail)?;
    let lock =
        File::options().create(true).truncate(false).write(true).open(path.join("lock")).map_err(fail)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(std::fs::TryLockError::WouldBlock) => Err(StartError::InUse(path.display().to_string())),
        Err(std::fs::TryLockError::Error(error)) => Err(fail(error)),
    }
}

/// The keys from the settings; embedded, from a file that is made at the first start.
async fn open_keyring(settings: &Settings, db: &Db) -> Result<Keyring, StartError> {
    let secret = match (&settings.secret_key, &settings.database) {
        (Some(secret), _) => secret.clone(),
        (None, Location::Postgres(_)) => return Err(StartError::SecretMissing),
        (None, Location::Sqlite(_)) => secret_from_file(&settings.data_dir).map_err(|source| {
            StartError::DataDir { path: settings.data_dir.display().to_string(), source }
        })?,
    };
    let keyring = Keyring::new(&secret, settings.secret_key_previous.as_ref())?;
    check_canary(&keyring, db).await?;
    Ok(keyring)
}

fn secret_from_file(data_dir: &Path) -> io::Result<SecretString> {
    let path = data_dir.join("secret.key");
    match std::fs::read_to_string(&path) {
        Ok(secret) => return Ok(SecretString::from(secret.trim())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let secret = hex(&rand::random::<[u8; 32]>());
    // Written aside and renamed, so that a crash leaves no half of a key.
    let fresh = data_dir.join("secret.key.new");
    let mut file = File::options().create(true).truncate(true).write(true).mode(0o600).open(&fresh)?;
    io::Write::write_all(&mut file, secret.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&fresh, &path)?;
    File::open(data_dir)?.sync_all()?;
    Ok(SecretString::from(secret))
}

/// A known text that only the right key can read.
async fn check_canary(keyring: &Keyring, db: &Db) -> Result<(), StartError> {
    const NAME: &str = "canary";
    let place = Place { table: "singletons", row: &Uuid::nil(), column: "value" };
    let sealed = hex(&keyring.encrypt(place, NAME.as_bytes())?);
    let mut tx = db.begin().await?;
    let first = singletons::claim(&mut tx, NAME, &sealed).await?;
    tx.commit().await?;
    if first {
        return Ok(());
    }
    let stored =
        singletons::get(db, NAME).await?.and_then(|text| unhex(&text)).ok_or(StartError::WrongSecret)?;
    match keyring.decrypt(place, &stored) {
        Ok(_) => Ok(()),
        Err(SecretError::UnknownKey | SecretError::Damaged | SecretError::TooShort) => {
            Err(StartError::WrongSecret)
        }
    }
}

/// The installation's own id, made at the first start; what is stored outside the database carries it.
async fn instance_id(db: &Db) -> Result<String, DbError> {
    const NAME: &str = "instance";
    let fresh = Uuid::now_v7().to_string();
    let mut tx = db.begin().await?;
    let first = singletons::claim(&mut tx, NAME, &fresh).await?;
    tx.commit().await?;
    if first { Ok(fresh) } else { Ok(singletons::get(db, NAME).await?.unwrap_or(fresh)) }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
