//! Models from a hub (huggingface.co, or a mirror that speaks its protocol), kept in a folder of this machine. Only the files
//! that the local encoder reads are fetched; what is used was checked against the hashes that the hub lists, for the
//! default model against those compiled in.

mod client;
mod copy;
mod download;
mod error;
mod listing;
mod model_id;
#[cfg(test)]
mod tests;

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use secrecy::SecretString;
use url::Url;

use self::{
    client::{HubClient, HubRetryPolicy},
    copy::{FolderLock, ManifestFile, ModelManifest},
    download::FileDownload,
    listing::PinnedModel,
};
pub use self::{error::HubError, model_id::ModelId};

/// The revision that is meant when none is said and none is compiled in.
const DEFAULT_REVISION: &str = "main";
/// Stands for `/` in names of folders; no revision has it.
const SLASH: &str = "~";
/// Between looks at whether another process has finished.
const LOCK_POLL: Duration = Duration::from_millis(250);

/// How far a pull is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PullProgress {
    /// The file that comes.
    pub file: &'static str,
    /// Bytes that are there, of all files of the model.
    pub bytes: u64,
    /// Bytes in all.
    pub total: u64,
}

/// A folder of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedModel {
    /// The model, with the revision that it is kept as.
    pub model: String,
    /// The commit; none while the copy is not complete.
    pub commit: Option<String>,
    /// Bytes of its files that are whole.
    pub bytes: u64,
    /// Where it is.
    pub folder: PathBuf,
}

/// The way to models: a hub, and the cache of what came from it. Cheap to clone.
#[derive(Clone)]
pub struct ModelHub {
    inner: Arc<HubState>,
    /// Whether nothing is asked of it.
    offline: bool,
}

struct HubState {
    client: HubClient,
    cache: PathBuf,
    pins: Vec<PinnedModel>,
}

impl fmt::Debug for ModelHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub")
            .field("host", &self.inner.client.host())
            .field("cache", &self.inner.cache)
            .finish_non_exhaustive()
    }
}

impl ModelHub {
    /// A hub at `address`, such as `https://huggingface.co`, and the folder `cache` for what comes from it. The token is sent to
    /// the hub only, never to where it redirects. No connection is made and no folder.
    ///
    /// # Errors
    /// [`HubError::Settings`].
    pub fn new(address: Url, token: Option<SecretString>, cache: PathBuf) -> Result<Self, HubError> {
        Self::build(address, token, cache, HubRetryPolicy::default(), PinnedModel::built_in())
    }

    fn build(
        address: Url,
        token: Option<SecretString>,
        cache: PathBuf,
        patience: HubRetryPolicy,
        pins: Vec<PinnedModel>,
    ) -> Result<Self, HubError> {
        let client = HubClient::new(address, token, patience)?;
        Ok(Self { inner: Arc::new(HubState { client, cache, pins }), offline: false })
    }

    /// The same cache, and a hub that is never asked for anything when `offline`.
    #[must_use]
    pub fn offline(self, offline: bool) -> Self {
        Self { offline, ..self }
    }

    /// Whether the hub is never asked.
    pub fn is_offline(&self) -> bool {
        self.offline
    }

    /// The folder of a complete, checked copy in the cache; nothing is asked of the hub. The manifest is read and sizes are
    /// compared: contents were checked when they came. Blocks for a few small file operations.
    pub fn cached(&self, model: &ModelId) -> Result<Option<PathBuf>, HubError> {
        let folder = self.folder(model);
        let manifest = self.manifest(model)?;
        Ok(manifest.is_some_and(|manifest| manifest.is_whole(&folder)).then_some(folder))
    }

    /// The files of the copy in the cache whose contents are not what was checked when they came; none also when there is no copy.
    /// Reads all of them, and blocks.
    pub fn altered(&self, model: &ModelId) -> Result<Vec<String>, HubError> {
        let folder = self.folder(model);
        let Some(manifest) = self.manifest(model)? else { return Ok(Vec::new()) };
        let mut altered = Vec::new();
        for file in manifest.files {
            let hash =
                copy::sha256(&folder.join(&file.path)).map_err(|error| HubError::disk(&folder, error))?;
            if hash != file.sha256 {
                altered.push(file.path);
            }
        }
        Ok(altered)
    }

    /// What was pulled as this model, whatever became of its files since.
    fn manifest(&self, model: &ModelId) -> Result<Option<ModelManifest>, HubError> {
        let folder = self.folder(model);
        let manifest = ModelManifest::read(&folder).map_err(|error| HubError::disk(&folder, error))?;
        // Names that differ in case are one folder on some file systems.
        Ok(manifest.filter(|manifest| manifest.model == self.kept_as(model)))
    }

    /// Everything in the cache, also what is not complete. Blocks for small file operations.
    pub fn list(&self) -> Result<Vec<CachedModel>, HubError> {
        let cache = &self.inner.cache;
        let read = || {
            copy::folders(cache)?.into_iter().map(|folder| describe(cache, folder)).collect::<io::Result<_>>()
        };
        read().map_err(|error| HubError::disk(cache, error))
    }

    /// Makes sure that the model is in the cache, and returns its folder. What an earlier call began is gone on with; when
    /// another process is at the same model, this waits for it. A dropped call leaves what has come for the next one.
    ///
    /// A model without a revision is at the commit that is compiled in, or stays at the one that its main branch had when
    /// it was pulled first.
    ///
    /// # Errors
    /// [`HubError`]; what passes was tried again for some minutes. [`HubError::Offline`] when the hub may not be asked and
    /// the model is not in the cache.
    pub async fn pull(
        &self,
        model: &ModelId,
        progress: &(dyn Fn(PullProgress) + Send + Sync),
    ) -> Result<PathBuf, HubError> {
        if let Some(folder) = self.off_thread(model, Self::cached).await? {
            return Ok(folder);
        }
        let client = &self.inner.client;
        if self.offline {
            return Err(HubError::Offline { model: model.clone(), host: client.host() });
        }
        // A copy that lost a file is repaired as it was.
        let before = self.off_thread(model, Self::manifest).await?.map(|manifest| manifest.commit);
        let commit = match before.filter(|commit| model_id::is_commit(commit)) {
            Some(commit) => commit,
            None => listing::commit(client, model, self.revision(model)).await?,
        };
        let pin = self.pin(model).filter(|pin| pin.commit == commit);
        let files = listing::files(client, model, &commit, pin).await?;

        let folder = self.folder(model);
        let disk = |error| HubError::disk(&folder, error);
        tokio::fs::create_dir_all(&folder).await.map_err(disk)?;
        let _lock = lock(&folder).await.map_err(disk)?;
        // Whoever had the lock may have finished it.
        if let Some(folder) = self.off_thread(model, Self::cached).await? {
            return Ok(folder);
        }

        let total = files.iter().map(|file| file.size).sum();
        let mut whole = 0;
        let mut manifest = Vec::with_capacity(files.len());
        for file in &files {
            let report = |there| progress(PullProgress { file: file.path, bytes: whole + there, total });
            let download =
                FileDownload { client, model, commit: &commit, file, folder: &folder, report: &report };
            let sha256 = download.run().await?;
            whole += file.size;
            manifest.push(ManifestFile { path: file.path.to_owned(), size: file.size, sha256 });
        }
        ModelManifest::new(self.kept_as(model), commit, manifest).write(&folder).await.map_err(disk)?;
        Ok(folder)
    }

    /// Looks into the cache off the async threads.
    async fn off_thread<T: Send + 'static>(
        &self,
        model: &ModelId,
        look: impl FnOnce(&Self, &ModelId) -> Result<T, HubError> + Send + 'static,
    ) -> Result<T, HubError> {
        let (hub, wanted) = (self.clone(), model.clone());
        let looked = tokio::task::spawn_blocking(move || look(&hub, &wanted)).await;
        looked.unwrap_or_else(|_| {
            Err(HubError::disk(&self.inner.cache, io::Error::other("the look was stopped")))
        })
    }

    fn pin(&self, model: &ModelId) -> Option<&PinnedModel> {
        self.inner.pins.iter().find(|pin| pin.is_of(model))
    }

    fn revision<'a>(&'a self, model: &'a ModelId) -> &'a str {
        model.revision().or_else(|| Some(self.pin(model)?.commit.as_str())).unwrap_or(DEFAULT_REVISION)
    }

    /// The model with its revision.
    fn kept_as(&self, model: &ModelId) -> String {
        format!("{}/{}@{}", model.owner(), model.name(), self.revision(model))
    }

    fn folder(&self, model: &ModelId) -> PathBuf {
        let revision = self.revision(model).replace('/', SLASH);
        self.inner.cache.join(model.owner()).join(model.name()).join(revision)
    }
}

async fn lock(folder: &Path) -> io::Result<FolderLock> {
    let mut told = false;
    loop {
        let at = folder.to_owned();
        let tried = tokio::task::spawn_blocking(move || FolderLock::try_take(&at)).await;
        if let Some(lock) = tried.map_err(io::Error::other)?? {
            return Ok(lock);
        }
        if !told {
            tracing::info!(folder = %folder.display(), "another process fetches this model; waiting for it");
            told = true;
        }
        tokio::time::sleep(LOCK_POLL).await;
    }
}

/// A folder of the cache, complete or not.
fn describe(cache: &Path, folder: PathBuf) -> io::Result<CachedModel> {
    if let Some(manifest) = ModelManifest::read(&folder)?.filter(|manifest| manifest.is_whole(&folder)) {
        let bytes = manifest.files.iter().map(|file| file.size).sum();
        return Ok(CachedModel { model: manifest.model, commit: Some(manifest.commit), bytes, folder });
    }
    let mut parts = folder.strip_prefix(cache).unwrap_or(&folder).components();
    let mut part =
        || parts.next().map(|part| part.as_os_str().to_string_lossy().into_owned()).unwrap_or_default();
    let model = format!("{}/{}@{}", part(), part(), part().replace(SLASH, "/"));
    Ok(CachedModel { model, commit: None, bytes: 0, folder })
}
