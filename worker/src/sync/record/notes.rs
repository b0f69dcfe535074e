//! What a run notes of things of which it makes no document: that they are as they were, could not be had, are gone or skipped.

use lectern_db::{Tx, sync::items};
use lectern_shared::model::sync::{SyncCounts, SyncItem, SyncOutcome};

use super::{Durability, ItemState, LONGEST_KEY, RunRecorder};
use crate::sync::failure::RunFailure;

/// Things of which a run notes that it has skipped them, at most.
const MOST_SKIPPED: usize = 1_000;

/// How something counts that needs nothing done.
pub(super) fn as_it_was(known: &SyncItem) -> SyncCounts {
    if known.is_alive {
        SyncCounts { unchanged: 1, ..SyncCounts::default() }
    } else {
        SyncCounts { deleted_here: 1, ..SyncCounts::default() }
    }
}

/// A key that is short enough for an index.
fn shortened(key: &str) -> &str {
    key.get(..key.floor_char_boundary(LONGEST_KEY)).unwrap_or(key)
}

impl RunRecorder<'_> {
    /// Whether new things are looked at. As many that cannot be had are enough, so that a run has an end.
    pub(super) fn has_room(&self) -> bool {
        self.has_room_for(0)
    }

    /// Whether new things are looked at besides so many that wait.
    pub(in crate::sync) fn has_room_for(&self, waiting: usize) -> bool {
        let most = i64::from(self.most());
        self.documents.saturating_add_unsigned(waiting as u64) < most && self.failed_new < most
    }

    /// How something stands, of which it may be known how many bytes it has.
    pub(in crate::sync) async fn look(
        &mut self,
        key: &str,
        bytes: Option<u64>,
    ) -> Result<ItemState, RunFailure> {
        let state = self.look_anyhow(key).await?;
        let ItemState::Open(known) = &state else { return Ok(state) };
        // A new document would be made of it.
        let is_new = known.as_ref().is_none_or(|known| !known.is_alive && self.run.is_full);
        // What was elsewhere has a document, or is to have none.
        if !is_new || self.has_room() || (known.is_none() && self.vanished.may_have(key, bytes)) {
            return Ok(state);
        }
        self.left_out += 1;
        Ok(ItemState::LeftOut)
    }

    /// [`Self::look`] at what is to be read whether or not there is room for its document.
    pub(in crate::sync) async fn look_anyhow(&self, key: &str) -> Result<ItemState, RunFailure> {
        let db = &self.runtime.db;
        let known = items::find(db, self.run.source_id, key).await?;
        let seen = known.as_ref().is_some_and(|known| known.seen_run == Some(self.run.id));
        let outcome = if seen || !self.resumed { None } else { items::outcome(db, self.run.id, key).await? };
        let settled = seen || self.settles(outcome, known.as_ref());
        Ok(if settled { ItemState::Settled(known) } else { ItemState::Open(known) })
    }

    /// Whether a run is through with something of which this was noted, and that is known.
    fn settles(&self, outcome: Option<SyncOutcome>, known: Option<&SyncItem>) -> bool {
        match outcome {
            // What is skipped may lead elsewhere.
            None | Some(SyncOutcome::Skipped) => false,
            // As long as it is not deleted it is looked for again: it may be elsewhere, or be there when somebody says that it may go.
            Some(SyncOutcome::Gone) => {
                self.run.confirmed_by.is_none() && known.is_none_or(|known| !known.is_alive)
            }
            Some(SyncOutcome::Added | SyncOutcome::Changed | SyncOutcome::Moved | SyncOutcome::Failed) => {
                true
            }
        }
    }

    /// What of an item still holds, so that what has not changed need not be read.
    pub(in crate::sync) fn current<'k>(&self, known: Option<&'k SyncItem>) -> Option<&'k SyncItem> {
        known.filter(|_| !self.run.is_full)
    }

    /// Notes that something is as it was.
    pub(in crate::sync) async fn unchanged(&mut self, known: &SyncItem) -> Result<(), RunFailure> {
        self.unchanged_entry(known, None).await
    }

    /// [`Self::unchanged`] for an entry of a feed, of which it may not be known yet what the feed calls it.
    pub(in crate::sync) async fn unchanged_entry(
        &mut self,
        known: &SyncItem,
        id: Option<&str>,
    ) -> Result<(), RunFailure> {
        let more = as_it_was(known);
        let mut tx = self.begin(&more, Durability::Relaxed).await?;
        if let Some(id) = id.filter(|id| known.entry_id.as_deref() != Some(*id) && !self.run.dry_run) {
            items::name_entry(&mut tx, self.run.source_id, &known.item_key, id).await?;
        }
        self.take_back(&mut tx, &known.item_key).await?;
        items::see(&mut tx, self.run, &known.item_key).await?;
        self.commit(tx, more).await
    }

    /// Notes that everything is as it was.
    pub(in crate::sync) async fn all_unchanged(&mut self) -> Result<(), RunFailure> {
        let mut tx = self.begin(&SyncCounts::default(), Durability::Relaxed).await?;
        let (seen, deleted_here) = items::see_all(&mut tx, self.run).await?;
        let more = SyncCounts { unchanged: seen - deleted_here, deleted_here, ..SyncCounts::default() };
        self.hold(&mut tx, &more).await?;
        self.commit(tx, more).await
    }

    /// Notes that something could not be had. Its document, if there is one, stays as it was; also that of what the source says that it was
    /// elsewhere.
    pub(in crate::sync) async fn failed(
        &mut self,
        key: &str,
        reason: &str,
        known: Option<&SyncItem>,
    ) -> Result<(), RunFailure> {
        let former = if known.is_none() { self.vanished.take_told(key) } else { None };
        let known = known.or(former.as_ref());
        let key = shortened(key);
        let more = SyncCounts { failed: 1, ..SyncCounts::default() };
        let mut tx = self.begin(&more, Durability::Relaxed).await?;
        if let Some(known) = known {
            // Of what is elsewhere it may be noted, in any run, that it is gone from where it was.
            items::take_back(&mut tx, self.run.id, &known.item_key).await?;
            items::see(&mut tx, self.run, &known.item_key).await?;
        }
        let document = known.filter(|known| known.is_alive).map(|known| known.document_id);
        items::note(&mut tx, self.run, key, SyncOutcome::Failed, Some(reason), document).await?;
        self.failed_new += i64::from(known.is_none());
        self.commit(tx, more).await
    }

    /// Notes that something is not there any more.
    pub(in crate::sync) async fn gone(&mut self, known: &SyncItem, reason: &str) -> Result<(), RunFailure> {
        if !known.is_alive {
            return Ok(());
        }
        if self.run.confirmed_by.is_some() {
            // Nobody was asked of what is gone only by now.
            self.still_gone.insert(known.item_key.clone());
            return Ok(());
        }
        let mut tx = self.begin(&SyncCounts::default(), Durability::Relaxed).await?;
        let document = Some(known.document_id);
        items::note(&mut tx, self.run, &known.item_key, SyncOutcome::Gone, Some(reason), document).await?;
        self.commit(tx, SyncCounts::default()).await
    }

    /// Notes that no document is made of something. One that was made of it before is gone.
    pub(in crate::sync) async fn skip(&mut self, key: &str, reason: &str) -> Result<(), RunFailure> {
        let key = shortened(key);
        let known = items::find(&self.runtime.db, self.run.source_id, key).await?;
        if self.run.dry_run && known.as_ref().is_some_and(|known| known.seen_run == Some(self.run.id)) {
            // It was found elsewhere, and is known by where it was as long as nothing is changed.
            return Ok(());
        }
        if let Some(known) = known.filter(|known| known.is_alive) {
            return self.gone(&known, reason).await;
        }
        if self.skipped >= MOST_SKIPPED {
            return Ok(());
        }
        self.skipped += 1;
        let mut tx = self.begin(&SyncCounts::default(), Durability::Relaxed).await?;
        items::note(&mut tx, self.run, key, SyncOutcome::Skipped, Some(reason), None).await?;
        self.commit(tx, SyncCounts::default()).await
    }

    /// Takes back that something is gone which a run that was confirmed, or cut off, has come across again.
    pub(super) async fn take_back(&self, tx: &mut Tx, key: &str) -> Result<(), RunFailure> {
        if self.resumed {
            items::take_back(tx, self.run.id, key).await?;
        }
        Ok(())
    }
}
