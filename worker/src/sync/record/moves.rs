//! What a run makes of things that are elsewhere than they were: their documents stay, and are known by where they are now.

use lectern_db::{
    Tx,
    documents::{
        self,
        uploads::{self, FilePlace},
    },
    sync::items,
};
use lectern_runtime::Runtime;
use lectern_shared::{
    file_name::extension,
    format::FileIdentity,
    media_type,
    model::{
        Json,
        document::{Document, DocumentType, StoredFile},
        job::JobState,
        sync::{SyncCounts, SyncItem, SyncOutcome},
    },
};
use url::Url;

use super::{Durability, RunRecorder, document_name, document_type, notes::as_it_was};
use crate::sync::{failure::RunFailure, item::FoundItem};

impl RunRecorder<'_> {
    /// Has what is known by these keys be looked for elsewhere, where there is something new: it is not where it was.
    pub(in crate::sync) async fn vanish(&mut self, keys: Vec<String>) -> Result<(), RunFailure> {
        for key in keys {
            let known = items::find(&self.runtime.db, self.run.source_id, &key).await?;
            if let Some(known) = known.filter(|known| self.may_be_elsewhere(known)) {
                self.vanished.add(known);
            }
        }
        Ok(())
    }

    /// Has something new be what is known by another key, since the source says so.
    pub(in crate::sync) async fn expect_at(&mut self, key: &str, former: &str) -> Result<(), RunFailure> {
        let known = items::find(&self.runtime.db, self.run.source_id, former).await?;
        if let Some(known) = known.filter(|known| self.may_be_elsewhere(known)) {
            self.vanished.add_told(key, known);
        }
        Ok(())
    }

    /// Whether something that is not where it was may be found elsewhere.
    fn may_be_elsewhere(&self, known: &SyncItem) -> bool {
        if known.is_alive {
            // A dry run remembers no new place of what it has found. Any other one may have seen it where it was before it was cut off, or
            // before it was confirmed.
            !self.run.dry_run || known.seen_run != Some(self.run.id)
        } else {
            // A full run makes documents again that somebody deleted.
            !self.run.is_full
        }
    }

    /// What something new was before, as the source says, or by its bytes, with the file of its document; without one where somebody deleted
    /// the document here.
    pub(super) async fn found_again(
        &mut self,
        item: &FoundItem<'_>,
        version: &str,
    ) -> Result<Option<(SyncItem, Option<StoredFile>)>, RunFailure> {
        if let Some(former) = self.vanished.take_told(item.key)
            && let Some(found) = self.with_file(former).await?
        {
            return Ok(Some(found));
        }
        while let Some(former) = self.vanished.take(version, item.key, item.moves) {
            let has_its_bytes = |file: &StoredFile| file.source_sha256 == item.staged.sha256;
            let found = self.with_file(former).await?;
            if let Some(found) = found.filter(|(_, file)| file.as_ref().is_none_or(has_its_bytes)) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Something that is not where it was, with the file of its document; without one where somebody deleted that here, if only since it was
    /// looked up. None where it is to have a new document.
    async fn with_file(
        &self,
        former: SyncItem,
    ) -> Result<Option<(SyncItem, Option<StoredFile>)>, RunFailure> {
        let (db, workspace) = (&self.runtime.db, self.run.workspace_id);
        let file =
            if former.is_alive { uploads::find(db, workspace, former.document_id).await? } else { None };
        let is_alive = file.is_some();
        // A full run makes documents again that somebody deleted.
        Ok((is_alive || !self.run.is_full).then_some((SyncItem { is_alive, ..former }, file)))
    }

    /// Leaves something away whose document somebody deleted here when it was elsewhere.
    pub(super) async fn stay_away(
        &mut self,
        former: &SyncItem,
        item: &FoundItem<'_>,
        version: &str,
    ) -> Result<(), RunFailure> {
        // A run that was cut off may find it again.
        let was_counted = former.seen_run == Some(self.run.id);
        let more = if was_counted { SyncCounts::default() } else { as_it_was(former) };
        let more = SyncCounts { bytes: item.staged.bytes.cast_signed(), ..more };
        let mut tx = self.begin(&more, Durability::Relaxed).await?;
        if self.run.dry_run {
            items::see(&mut tx, self.run, &former.item_key).await?;
        } else {
            items::forget(&mut tx, self.run.source_id, &former.item_key).await?;
            let named = (former.document_id, former.name.as_deref());
            self.put(&mut tx, item.key, named, item.validators, version).await?;
        }
        self.commit(tx, more).await
    }

    /// Notes that something is elsewhere than it was. Its document is read anew only if it holds something else there, or its new name says
    /// that it is of another kind.
    pub(super) async fn follow(
        &mut self,
        former: SyncItem,
        file: &StoredFile,
        item: FoundItem<'_>,
        identity: FileIdentity,
        version: &str,
    ) -> Result<(), RunFailure> {
        let more = SyncCounts { moved: 1, bytes: item.staged.bytes.cast_signed(), ..SyncCounts::default() };
        if self.run.dry_run {
            let mut tx = self.begin(&more, Durability::Relaxed).await?;
            // Else it would be gone.
            items::see(&mut tx, self.run, &former.item_key).await?;
            items::take_back(&mut tx, self.run.id, &former.item_key).await?;
            self.note_moved(&mut tx, &former, item.key).await?;
            return self.commit(tx, more).await;
        }
        let mime = media_type::with_charset(identity.media_type, item.charset);
        let former_end = file.source_name.as_deref().and_then(extension);
        let is_alike = file.source_sha256 == item.staged.sha256
            && former_end == item.file_name.as_deref().and_then(extension)
            && file.source_mime.as_deref() == Some(mime.as_str())
            && file.r#type == document_type(identity, item.url.is_some());
        if is_alike {
            self.keep_moved(&former, &item, version, more).await
        } else {
            self.change(former, item, identity, version, more).await
        }
    }

    /// Keeps a document as it is, but for its address, and for its name, unless somebody gave it that.
    async fn keep_moved(
        &mut self,
        former: &SyncItem,
        item: &FoundItem<'_>,
        version: &str,
        more: SyncCounts,
    ) -> Result<(), RunFailure> {
        let Runtime { jobs, .. } = self.runtime;
        let (workspace, id) = (self.run.workspace_id, former.document_id);
        let mut tx = self.begin(&more, Durability::Promised).await?;
        let Some((document, _)) = documents::find_locked(&mut tx, workspace, id).await? else {
            // Somebody has just deleted it.
            drop(tx);
            return self.unchanged(&SyncItem { is_alive: false, ..former.clone() }).await;
        };
        let is_renamed = is_unnamed(&document, former) && document.name != item.name;
        let place = FilePlace {
            name: is_renamed.then_some(item.name.as_str()),
            file_name: item.file_name.as_deref(),
            url: item.url.map(Url::as_str),
        };
        // Citations show the name and lead to the address.
        if is_renamed || place.url.is_some_and(|url| url != document.url) {
            documents::bump_search_epoch(&mut tx, workspace).await?;
        }
        uploads::relocate(&mut tx, workspace, id, place, jobs.now()).await?;
        if is_renamed {
            self.queue_renamed(&mut tx, &document).await?;
        }
        self.put(&mut tx, item.key, (id, Some(item.name.as_str())), item.validators, version).await?;
        self.note_move(&mut tx, former, item.key).await?;
        self.commit(tx, more).await?;
        if is_renamed {
            jobs.doorbell().ring(1);
        }
        Ok(())
    }

    /// Has a document be found by its new name. Its passages are taken as they are stored, where they are those of its file.
    async fn queue_renamed(&self, tx: &mut Tx, document: &Document) -> Result<(), RunFailure> {
        let (workspace, ingestion) = (self.run.workspace_id, &document.ingestion);
        if !self.runtime.jobs.enqueue_ingest(tx, workspace, document.id).await? {
            return Err(RunFailure::Lost);
        }
        if document.search_index.is_some() && ingestion.state == JobState::Done {
            documents::from_stored(tx, document.id, &ingestion.warnings.0).await?;
        }
        Ok(())
    }

    /// Notes that something is elsewhere than it was, and forgets that it was there, and that it was gone.
    pub(super) async fn note_move(
        &self,
        tx: &mut Tx,
        former: &SyncItem,
        key: &str,
    ) -> Result<(), RunFailure> {
        items::forget(tx, self.run.source_id, &former.item_key).await?;
        // Also of a run that asks nothing: it was cut off when it had noted what was gone.
        items::take_back(tx, self.run.id, &former.item_key).await?;
        self.note_moved(tx, former, key).await
    }

    async fn note_moved(&self, tx: &mut Tx, former: &SyncItem, key: &str) -> Result<(), RunFailure> {
        let (reason, id) = (format!("It was at {}.", former.item_key), Some(former.document_id));
        items::note(tx, self.run, key, SyncOutcome::Moved, Some(&reason), id).await?;
        Ok(())
    }
}

/// Whether nobody has named a document: it is called as its source last called it. Where that was not noted yet, a page has a title of its
/// own, and nothing else is called by what is in it.
pub(super) fn is_unnamed(document: &Document, known: &SyncItem) -> bool {
    if let Some(name) = &known.name {
        return document.name == *name;
    }
    let source = document.ingestion.source.as_ref().filter(|_| document.r#type == DocumentType::Url);
    let title = source.and_then(|Json(source)| source.title.as_deref());
    [title, None].iter().any(|said| document.name == document_name(*said, &known.item_key))
}
