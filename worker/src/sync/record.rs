//! What a run makes of what it finds: documents, and what is known of their items from then on. Each is one transaction that keeps the
//! run's claim too, so that two workers never do the same thing.

mod moves;
mod notes;

use std::{collections::HashSet, io, pin::pin};

use lectern_db::{
    self as db, Tx,
    documents::{
        self, NewDocumentRow,
        uploads::{self, BlobFile, FileReplacement},
    },
    storage::{self, StorageDemand},
    sync::{
        items::{self, SeenItem},
        runs,
    },
    workspaces,
};
use lectern_runtime::{Runtime, leased::lease_end};
use lectern_shared::{
    blobs::{BlobError, BlobStore, StoredBlob},
    file_name,
    format::{FileFormat, FileIdentity},
    ids::DocumentId,
    media_type,
    model::{
        collection::apply_defaults,
        document::{DocumentType, PageRange, StoredFile},
        sync::{SyncCounts, SyncItem, SyncOutcome, SyncRun, SyncSource},
    },
    secrets::hex,
};
use tokio_util::io::ReaderStream;

use self::moves::is_unnamed;
use super::{
    failure::RunFailure,
    item::{FoundItem, ItemValidators, StagedFile},
    vanished::VanishedItems,
};

/// Bytes that the key of an item has at most: more than an index takes.
const LONGEST_KEY: usize = 2_000;

/// How something stands that was come across.
pub(super) enum ItemState {
    /// The run is through with it: it was cut off after that.
    Settled(Option<SyncItem>),
    /// It is to be looked at; what is known of it.
    Open(Option<SyncItem>),
    /// It is new, and the source may have no more documents.
    LeftOut,
}

/// Writes down what a run finds.
pub(super) struct RunRecorder<'a> {
    pub(super) runtime: &'a Runtime,
    pub(super) run: &'a SyncRun,
    pub(super) source: &'a SyncSource,
    /// So far, with what was found before the run was cut off.
    pub(super) counts: SyncCounts,
    /// How many new things were left out, since the source may have no more documents.
    pub(super) left_out: u64,
    /// Whether these may have led to more.
    pub(super) may_leave_out_more: bool,
    /// What a run that was confirmed has found gone once more.
    pub(super) still_gone: HashSet<String>,
    /// What is not where it was, and may be elsewhere.
    pub(super) vanished: VanishedItems,
    /// Documents that the source has, or would have in a dry run.
    documents: i64,
    /// New things that could not be had.
    failed_new: i64,
    /// Things that were noted as skipped.
    skipped: usize,
    resumed: bool,
    /// Why no document can be added any more.
    no_room: Option<String>,
}

impl<'a> RunRecorder<'a> {
    pub(super) fn new(runtime: &'a Runtime, run: &'a SyncRun, source: &'a SyncSource) -> Self {
        let would_be_added = if run.dry_run { run.counts.added } else { 0 };
        Self {
            runtime,
            run,
            source,
            counts: run.counts,
            left_out: 0,
            may_leave_out_more: false,
            still_gone: HashSet::new(),
            vanished: VanishedItems::default(),
            documents: source.documents + would_be_added,
            failed_new: 0,
            skipped: 0,
            resumed: run.counts != SyncCounts::default() || run.confirmed_by.is_some(),
            no_room: None,
        }
    }

    /// The most documents that the source may have.
    pub(super) fn most(&self) -> u32 {
        self.source.config.0.max_documents().min(self.runtime.settings.sync.items)
    }

    /// Whether the source has as many documents as it may.
    pub(super) fn is_full(&self) -> bool {
        self.documents >= i64::from(self.most())
    }

    /// Notes something that was found: makes a document of it, gives its document the new content, or leaves it as it is.
    pub(super) async fn found(
        &mut self,
        known: Option<SyncItem>,
        mut item: FoundItem<'_>,
    ) -> Result<(), RunFailure> {
        item.file_name = item.file_name.as_deref().and_then(file_name::cleaned);
        let identity =
            FileIdentity::of(&item.staged.head, item.file_name.as_deref(), item.content_type, item.charset);
        let refused = match identity {
            Err(why) => Some(why),
            _ if item.staged.bytes == 0 => Some("It is empty."),
            _ if item.key.len() > LONGEST_KEY => Some("Its address is too long."),
            Ok(_) => None,
        };
        let (Ok(identity), None) = (identity, refused) else {
            return self.failed(item.key, refused.unwrap_or_default(), known.as_ref()).await;
        };
        let version = item.validators.version.map_or_else(|| hex(&item.staged.sha256), str::to_owned);
        if known.is_none()
            && let Some((former, file)) = self.found_again(&item, &version).await?
        {
            return match file {
                Some(file) => Box::pin(self.follow(former, &file, item, identity, &version)).await,
                None => self.stay_away(&former, &item, &version).await,
            };
        }
        let stays = match &known {
            // Whoever deleted it does not want it back.
            Some(known) if !known.is_alive => !self.run.is_full,
            Some(known) => self.is_as_it_was(known, &item).await?,
            None => false,
        };
        match known {
            Some(known) if stays => {
                let more = SyncCounts { bytes: item.staged.bytes.cast_signed(), ..notes::as_it_was(&known) };
                let mut tx = self.begin(&more, Durability::Relaxed).await?;
                // It is called as it was, and so is what is known of that.
                let named = (known.document_id, known.name.as_deref());
                self.put(&mut tx, item.key, named, item.validators, &version).await?;
                self.commit(tx, more).await
            }
            Some(known) if known.is_alive => {
                let more = SyncCounts { changed: 1, ..SyncCounts::default() };
                self.change(known, item, identity, &version, more).await
            }
            _ => self.add(item, identity, &version).await,
        }
    }

    /// Whether something has the bytes that its document was made of.
    async fn is_as_it_was(&self, known: &SyncItem, item: &FoundItem<'_>) -> Result<bool, RunFailure> {
        let sha256 = &item.staged.sha256;
        if item.validators.version.is_none() {
            return Ok(known.sha256.as_ref() == Some(&hex(sha256)));
        }
        // A version tells when to look, not what there is: a feed says the same of a page that was written anew.
        let file = uploads::find(&self.runtime.db, self.run.workspace_id, known.document_id).await?;
        Ok(file.is_some_and(|file| file.source_sha256 == sha256))
    }

    /// Makes a document.
    async fn add(
        &mut self,
        item: FoundItem<'_>,
        identity: FileIdentity,
        version: &str,
    ) -> Result<(), RunFailure> {
        if !self.has_room() {
            self.left_out += 1;
            return Ok(());
        }
        let more = SyncCounts { added: 1, bytes: item.staged.bytes.cast_signed(), ..SyncCounts::default() };
        if self.run.dry_run {
            return self.note(item.key, SyncOutcome::Added, None, more).await;
        }
        let (id, now) = (DocumentId::generate(), self.runtime.jobs.now());
        if let Some(why) = self.no_room_yet(item.staged.bytes, 1).await? {
            return self.failed(item.key, &why, None).await;
        }
        let (db, until) = (&self.runtime.db, now.plus(uploads::RESERVED_FOR));
        uploads::reserve_alone(db, self.run.workspace_id, id, now, until).await?;
        let added = self.add_reserved(id, item, identity, version, more).await;
        if !matches!(added, Ok(true)) {
            // Nothing happens when it was completed after all.
            let mut tx = self.runtime.db.begin_essential().await?;
            uploads::give_up(&mut tx, id, self.runtime.jobs.now()).await?;
            tx.commit().await?;
        }
        added.map(drop)
    }

    /// Makes a document under an id that is reserved for it; false when there is no room after all.
    async fn add_reserved(
        &mut self,
        id: DocumentId,
        item: FoundItem<'_>,
        identity: FileIdentity,
        version: &str,
        more: SyncCounts,
    ) -> Result<bool, RunFailure> {
        let Runtime { jobs, .. } = self.runtime;
        let workspace = self.run.workspace_id;
        let (bytes, mime) = (item.staged.bytes, media_type::with_charset(identity.media_type, item.charset));
        let stored = self.store(&BlobStore::new_key(id), item.staged).await?;
        let mut tx = self.begin(&more, Durability::Promised).await?;
        if let Some(why) = self.no_room(&mut tx, bytes, 1).await? {
            drop(tx);
            self.failed(item.key, &why, None).await?;
            return Ok(false);
        }
        let collection: Vec<_> = self.source.collection_id.into_iter().collect();
        // A collection that was deleted meanwhile is none.
        let collections =
            db::collections::lock_all(&mut tx, workspace, &collection).await?.unwrap_or_default();
        let (splitter, metadata) = apply_defaults(&collections, None, None);
        let row = NewDocumentRow {
            id,
            owner: self.source.owner,
            r#type: document_type(identity, item.url.is_some()),
            name: &item.name,
            description: "",
            url: item.url.map_or("", url::Url::as_str),
            content: None,
            metadata: metadata.as_ref(),
            splitter: splitter.as_ref(),
            pages: PageRange::default(),
            authorization_sealed: None,
        };
        let file = blob_file(&stored, item.file_name.as_deref(), &mime);
        // It is admitted already.
        let nothing_more = StorageDemand::default();
        if !uploads::complete(&mut tx, &row, &file, jobs.now()).await?
            || !matches!(jobs.enqueue_new(&mut tx, workspace, id, nothing_more).await?, Ok(Some(_)))
        {
            return Err(RunFailure::Lost);
        }
        let collections: Vec<_> = collections.iter().map(|collection| collection.id).collect();
        db::collections::put_document(&mut tx, workspace, id, &collections).await?;
        self.put(&mut tx, item.key, (id, Some(item.name.as_str())), item.validators, version).await?;
        items::note(&mut tx, self.run, item.key, SyncOutcome::Added, None, Some(id)).await?;
        self.commit(tx, more).await?;
        jobs.doorbell().ring(1);
        Ok(true)
    }

    /// Gives a document another content, and counts it so, but for its bytes.
    async fn change(
        &mut self,
        known: SyncItem,
        item: FoundItem<'_>,
        identity: FileIdentity,
        version: &str,
        more: SyncCounts,
    ) -> Result<(), RunFailure> {
        let more = SyncCounts { bytes: item.staged.bytes.cast_signed(), ..more };
        let id = known.document_id;
        if self.run.dry_run {
            return self.note(item.key, SyncOutcome::Changed, Some(id), more).await;
        }
        let former = uploads::find(&self.runtime.db, self.run.workspace_id, id).await?;
        if let Some(why) = self.no_room_yet(growth(item.staged.bytes, former.as_ref()), 0).await? {
            return self.failed(item.key, &why, Some(&known)).await;
        }
        let (jobs, key) = (&self.runtime.jobs, BlobStore::new_key(id));
        let mut tx = self.runtime.db.begin().await?;
        uploads::reserve_key(&mut tx, &key, jobs.now().plus(uploads::RESERVED_FOR)).await?;
        tx.commit().await?;
        let changed = self.change_reserved(&key, &known, item, identity, version, more).await;
        if !matches!(changed, Ok(true)) {
            // Nothing happens when it took the other's place after all.
            let mut tx = self.runtime.db.begin_essential().await?;
            uploads::give_up_key(&mut tx, &key, self.runtime.jobs.now()).await?;
            tx.commit().await?;
        }
        changed.map(drop)
    }

    /// Gives a document another content, which is stored under a key that is reserved for it; false when there is no room after all, or
    /// somebody has just deleted the document.
    async fn change_reserved(
        &mut self,
        key: &str,
        known: &SyncItem,
        item: FoundItem<'_>,
        identity: FileIdentity,
        version: &str,
        more: SyncCounts,
    ) -> Result<bool, RunFailure> {
        let Runtime { jobs, .. } = self.runtime;
        let (workspace, id, bytes) = (self.run.workspace_id, known.document_id, item.staged.bytes);
        let mime = media_type::with_charset(identity.media_type, item.charset);
        let stored = self.store(key, item.staged).await?;
        let mut tx = self.begin(&more, Durability::Promised).await?;
        // Others of the workspace may have come meanwhile, and what is stored has to be counted where it is stored.
        let former = uploads::find_locked(&mut tx, workspace, id).await?;
        if let Some(why) = self.no_room(&mut tx, growth(bytes, former.as_ref()), 0).await? {
            drop(tx);
            self.failed(item.key, &why, Some(known)).await?;
            return Ok(false);
        }
        let document = documents::find_locked(&mut tx, workspace, id).await?.map(|(document, _)| document);
        let is_unnamed = document.as_ref().is_some_and(|document| is_unnamed(document, known));
        let new = FileReplacement {
            r#type: document_type(identity, item.url.is_some()),
            name: is_unnamed.then_some(item.name.as_str()),
            url: item.url.filter(|_| more.moved > 0).map(url::Url::as_str),
            file: blob_file(&stored, item.file_name.as_deref(), &mime),
        };
        if document.is_none()
            || !uploads::replace(&mut tx, workspace, id, &new, jobs.now()).await?
            || !jobs.enqueue_ingest(&mut tx, workspace, id).await?
        {
            drop(tx);
            self.unchanged(&SyncItem { is_alive: false, ..known.clone() }).await?;
            return Ok(false);
        }
        self.put(&mut tx, item.key, (id, Some(item.name.as_str())), item.validators, version).await?;
        if more.moved > 0 {
            self.note_move(&mut tx, known, item.key).await?;
        } else {
            items::note(&mut tx, self.run, item.key, SyncOutcome::Changed, None, Some(id)).await?;
        }
        self.commit(tx, more).await?;
        jobs.doorbell().ring(1);
        Ok(true)
    }

    /// Notes in a dry run what would become of something.
    async fn note(
        &mut self,
        key: &str,
        outcome: SyncOutcome,
        document: Option<DocumentId>,
        more: SyncCounts,
    ) -> Result<(), RunFailure> {
        let mut tx = self.begin(&more, Durability::Relaxed).await?;
        items::see(&mut tx, self.run, key).await?;
        items::note(&mut tx, self.run, key, outcome, None, document).await?;
        self.commit(tx, more).await
    }

    async fn put(
        &self,
        tx: &mut Tx,
        key: &str,
        (document, name): (DocumentId, Option<&str>),
        validators: ItemValidators<'_>,
        version: &str,
    ) -> Result<(), RunFailure> {
        let ItemValidators { etag, last_modified, links, entry_id, .. } = validators;
        if self.run.dry_run {
            return Ok(items::see(tx, self.run, key).await?);
        }
        self.take_back(tx, key).await?;
        let sha256 = Some(version);
        let item = SeenItem { key, document, name, etag, last_modified, sha256, links, entry_id };
        Ok(items::put(tx, self.run, &item).await?)
    }

    /// Puts bytes into the blob store.
    async fn store(&self, key: &str, staged: StagedFile) -> Result<StoredBlob, RunFailure> {
        let limit = self.runtime.settings.limits.source_bytes;
        match self.runtime.blobs.put_as::<io::Error>(key, pin!(ReaderStream::new(staged.file)), limit).await {
            Err(error @ BlobError::TooLarge { .. }) => Err(RunFailure::stop(error)),
            stored => Ok(stored?),
        }
    }

    /// Why there is no room for so many bytes and documents more, as the workspace's quotas say by now, and the settings. Once there is
    /// none, no document is added in this run any more, so that the small ones do not take the places of the large.
    async fn no_room(
        &mut self,
        tx: &mut Tx,
        bytes: u64,
        documents: u64,
    ) -> Result<Option<String>, RunFailure> {
        // Whoever has too much may have a file changed, as long as it does not become larger.
        if documents == 0 && bytes == 0 {
            return Ok(None);
        }
        if documents > 0 && self.no_room.is_some() {
            return Ok(self.no_room.clone());
        }
        let workspace = self.run.workspace_id;
        let why = async {
            let quotas = workspaces::quotas(tx, workspace).await?;
            if let Some(allowed) = quotas.documents.filter(|_| documents > 0) {
                let count = storage::count_documents(tx, workspace, allowed).await?;
                if count >= allowed {
                    return Ok(Some(format!("The workspace has {count} of {allowed} documents.")));
                }
            }
            let everybody = self.runtime.settings.limits.storage_bytes;
            let allowed = quotas.bytes.into_iter().chain(everybody).min();
            let admitted = storage::admit(tx, workspace, bytes, None, allowed).await?;
            Ok::<_, RunFailure>(admitted.err().map(|over| format!("{over}.")))
        };
        let why = why.await?;
        if documents > 0 {
            self.no_room.clone_from(&why);
        }
        Ok(why)
    }

    /// [`Self::no_room`] before anything is stored. The bytes do not count yet: they do in the transaction that stores them.
    async fn no_room_yet(&mut self, bytes: u64, documents: u64) -> Result<Option<String>, RunFailure> {
        let mut tx = self.runtime.db.begin().await?;
        self.no_room(&mut tx, bytes, documents).await
    }

    /// Begins a transaction that keeps the run's claim, and adds to what was found.
    async fn begin(&self, more: &SyncCounts, durability: Durability) -> Result<Tx, RunFailure> {
        let db = &self.runtime.db;
        let mut tx = match durability {
            Durability::Promised => db.begin().await?,
            Durability::Relaxed => db.begin_relaxed().await?,
        };
        db::locks::lock_workspace(&mut tx, self.run.workspace_id).await?;
        self.hold(&mut tx, more).await?;
        Ok(tx)
    }

    async fn hold(&self, tx: &mut Tx, more: &SyncCounts) -> Result<(), RunFailure> {
        let claim = self.run.claim_id.ok_or(RunFailure::Lost)?;
        let held = runs::hold(tx, self.run.id, claim, lease_end(&self.runtime.jobs), more).await?;
        if held { Ok(()) } else { Err(RunFailure::Lost) }
    }

    async fn commit(&mut self, tx: Tx, more: SyncCounts) -> Result<(), RunFailure> {
        tx.commit().await?;
        self.count(more);
        Ok(())
    }

    fn count(&mut self, more: SyncCounts) {
        let SyncCounts { added, changed, moved, unchanged, deleted_here, failed, bytes, gone: _ } = more;
        self.documents += added;
        self.counts.added += added;
        self.counts.changed += changed;
        self.counts.moved += moved;
        self.counts.unchanged += unchanged;
        self.counts.deleted_here += deleted_here;
        self.counts.failed += failed;
        self.counts.bytes += bytes;
    }
}

/// Whether a commit waits for the disk.
#[derive(Clone, Copy)]
enum Durability {
    /// What it makes is promised.
    Promised,
    /// What it notes would be found again.
    Relaxed,
}

/// What a document is that is made of a file: a page that was found at an address is one.
fn document_type(identity: FileIdentity, has_address: bool) -> DocumentType {
    if has_address && identity.format == FileFormat::Html { DocumentType::Url } else { identity.r#type }
}

/// How many bytes more a file has than the one that it takes the place of.
fn growth(bytes: u64, former: Option<&StoredFile>) -> u64 {
    bytes.saturating_sub(former.map_or(0, |file| file.source_bytes.unsigned_abs()))
}

fn blob_file<'b>(stored: &'b StoredBlob, name: Option<&'b str>, mime: &'b str) -> BlobFile<'b> {
    BlobFile { key: &stored.key, bytes: stored.bytes, sha256: &stored.sha256, name, mime }
}

/// What a document is called: what is said of it, in one line, or its key.
pub(super) fn document_name(said: Option<&str>, key: &str) -> String {
    said.and_then(file_name::in_one_line)
        .or_else(|| file_name::in_one_line(key))
        .unwrap_or_else(|| file_name::NAMELESS.to_owned())
}
