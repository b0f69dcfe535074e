//! Looks through everything that is searchable, slowly and all the time: whether the index holds what was published. What it does not is
//! named, and indexed again from the stored passages at once.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use lectern_db::{
    Db,
    checkup::{self, SearchableDocument},
};
use lectern_index::{
    EntryMismatch, IndexError, SearchIndex,
    audit::{self, DocumentDamage, is_under_way},
};
use lectern_jobs::JobQueue;
use lectern_shared::{
    ids::{DocumentId, GenerationId},
    metrics::{Metrics, MismatchKind},
    model::job::JobState,
};
use tokio::time::Instant;

/// The pause between two looks through everything.
const ROUND_EVERY: Duration = Duration::from_mins(10);
/// The same after one that found something: whether it was mended is to be seen soon.
const ROUND_AGAIN: Duration = Duration::from_mins(1);

/// For how long what this process has found counts while it is another that looks: as a rule that one has looked through everything by then.
const COUNTS_FOR: Duration = Duration::from_mins(20);

/// The pause after a page could not be looked at.
const AGAIN_AFTER: Duration = Duration::from_secs(30);

/// A look through everything, a page at a time.
pub(crate) struct IndexScrubber {
    db: Db,
    index: Arc<dyn SearchIndex>,
    jobs: JobQueue,
    /// The last document that was looked at.
    after: DocumentId,
    /// When the next page may be looked at.
    due: Instant,
    tally: MismatchTally,
}

/// What this process has found, for the metrics.
struct MismatchTally {
    metrics: Arc<Metrics>,
    /// What this look found so far, and what the one before it found.
    found: MismatchCounts,
    found_before: MismatchCounts,
    /// When it last looked at a page.
    looked: Instant,
}

/// How many documents have which mismatch.
#[derive(Clone, Copy, Default)]
struct MismatchCounts {
    missing: u64,
    excess: u64,
    passages: u64,
}

/// A document that something is wrong with, and nothing is under way for.
struct DamagedDocument {
    document: SearchableDocument,
    damage: DocumentDamage,
}

impl IndexScrubber {
    pub(crate) fn new(db: Db, index: Arc<dyn SearchIndex>, jobs: JobQueue, metrics: Arc<Metrics>) -> Self {
        Self {
            db,
            index,
            jobs,
            after: checkup::beginning(),
            due: Instant::now(),
            tally: MismatchTally::new(metrics),
        }
    }

    /// Whether there is anything to look at now.
    pub(crate) fn is_due(&self) -> bool {
        Instant::now() >= self.due
    }

    /// Looks at the next page, if it is time. One process at a time does. An index that is away keeps nobody from anything else: it
    /// is looked at again later.
    pub(crate) async fn go_on(&mut self) {
        if !self.is_due() {
            return;
        }
        match self.step().await {
            Ok(()) => self.tally.looked = Instant::now(),
            Err(error) => {
                tracing::debug!(%error, "what is searchable could not be compared with the index yet");
                self.due = Instant::now() + AGAIN_AFTER;
            }
        }
    }

    /// It is another process that looks now.
    pub(crate) fn give_way(&mut self) {
        self.tally.give_way(Instant::now());
    }

    async fn step(&mut self) -> Result<(), IndexError> {
        let page = checkup::answering(&self.db, self.after).await?;
        let Some(last) = page.last().map(|document| document.id) else {
            self.end_round();
            return Ok(());
        };
        let mut suspects = self.suspects(page).await?;
        if !suspects.is_empty() {
            // What was replaced or deleted between the two questions only seemed to be wrong.
            let page = checkup::answering(&self.db, self.after).await?;
            let still = self.suspects(page).await?;
            let still: BTreeSet<GenerationId> =
                still.iter().map(|suspect| suspect.document.generation).collect();
            suspects.retain(|suspect| still.contains(&suspect.document.generation));
            self.repair_page(&suspects).await?;
        }
        self.after = last;
        Ok(())
    }

    /// Everything was looked at.
    fn end_round(&mut self) {
        let was_sound = self.tally.end_round();
        self.after = checkup::beginning();
        self.due = Instant::now() + if was_sound { ROUND_EVERY } else { ROUND_AGAIN };
    }

    /// Names what is wrong, and queues what its stored passages mend.
    async fn repair_page(&mut self, suspects: &[DamagedDocument]) -> Result<(), IndexError> {
        let mut found = self.tally.found;
        let again: Vec<DocumentId> = suspects.iter().filter_map(|suspect| found.name(suspect)).collect();
        self.tally.tell(found);
        if !again.is_empty() {
            self.queue_reindex(&again).await?;
        }
        // Not before: if these could not be queued, the page is looked at again.
        self.tally.found = found;
        Ok(())
    }

    /// Queues documents to be indexed again.
    async fn queue_reindex(&self, documents: &[DocumentId]) -> Result<(), IndexError> {
        let mut tx = self.db.begin().await?;
        let queued = checkup::index_again(&mut tx, documents, self.jobs.now()).await?;
        tx.commit().await?;
        tracing::warn!(documents = queued, "documents are indexed again from their stored passages");
        let ringing = usize::try_from(queued).unwrap_or(usize::MAX);
        self.jobs.doorbell().ring(ringing.min(self.jobs.settings().concurrency));
        Ok(())
    }

    /// Those of a page that something is wrong with, and nothing is under way for.
    async fn suspects(&self, page: Vec<SearchableDocument>) -> Result<Vec<DamagedDocument>, IndexError> {
        let audited = audit::compare(&self.db, Some(&*self.index), page).await?;
        let suspect = |audited: audit::AuditedDocument| {
            let damage = audited.damage.filter(|damage| !is_under_way(&audited.document, *damage))?;
            Some(DamagedDocument { document: audited.document, damage })
        };
        Ok(audited.into_iter().filter_map(suspect).collect())
    }
}

impl MismatchTally {
    fn new(metrics: Arc<Metrics>) -> Self {
        let (found, found_before) = (MismatchCounts::default(), MismatchCounts::default());
        Self { metrics, found, found_before, looked: Instant::now() }
    }

    /// Tells of what this look found so far. That less is wrong than before is known at its end only.
    fn tell(&self, found: MismatchCounts) {
        found.max(self.found_before).tell(&self.metrics);
    }

    /// Everything was looked at; what was mended meanwhile counts no more. Whether nothing was found.
    fn end_round(&mut self) -> bool {
        let found = std::mem::take(&mut self.found);
        found.tell(&self.metrics);
        self.found_before = found;
        found.is_nothing()
    }

    /// It is another process that looks: what this one has found may be mended, and after a while is told no more.
    fn give_way(&mut self, now: Instant) {
        if now < self.looked + COUNTS_FOR || self.found.max(self.found_before).is_nothing() {
            return;
        }
        self.found = MismatchCounts::default();
        self.end_round();
    }
}

impl MismatchCounts {
    fn is_nothing(self) -> bool {
        self.missing + self.excess + self.passages == 0
    }

    /// Counts what is wrong with a document, and says so. The document, if its stored passages mend it.
    fn name(&mut self, DamagedDocument { document, damage }: &DamagedDocument) -> Option<DocumentId> {
        let generation = document.generation;
        let mismatch = match damage {
            DocumentDamage::Entries(mismatch) => *mismatch,
            // These need a source, or a decision; the doctor has both.
            DocumentDamage::Row | DocumentDamage::Passages { .. } => {
                self.passages += 1;
                tracing::error!(document = %document.id, %generation, "what is stored of a document is damaged: run `lectern doctor`");
                return None;
            }
        };
        match mismatch {
            EntryMismatch::Missing => self.missing += 1,
            EntryMismatch::Excess => self.excess += 1,
        }
        tracing::error!(document = %document.id, %generation, ?mismatch, "the index does not hold what was published of a document");
        // One that could not be indexed again is left to the operator, not tried for ever.
        let gave_up = document.job == Some(JobState::Dead) && document.from_stored == Some(true);
        (!gave_up).then_some(document.id)
    }

    fn max(self, other: Self) -> Self {
        Self {
            missing: self.missing.max(other.missing),
            excess: self.excess.max(other.excess),
            passages: self.passages.max(other.passages),
        }
    }

    fn tell(self, metrics: &Metrics) {
        for (kind, documents) in [
            (MismatchKind::Missing, self.missing),
            (MismatchKind::Excess, self.excess),
            (MismatchKind::Passages, self.passages),
        ] {
            metrics.mismatched(kind, documents);
        }
    }
}

#[cfg(test)]
mod tests {
    use lectern_shared::clock::Timestamp;

    use super::*;

    #[test]
    fn what_a_process_found_is_told_no_more_when_another_looks() {
        let metrics = Arc::new(Metrics::new(Timestamp::from_micros(0)));
        let shows = |documents: u64| {
            let line = format!("lectern_index_mismatch{{kind=\"passages\"}} {documents}\n");
            metrics.text().contains(&line)
        };
        let mut tally = MismatchTally::new(Arc::clone(&metrics));
        tally.found.passages = 1;
        assert!(!tally.end_round() && shows(1));
        let looked = tally.looked;
        tally.give_way(looked + COUNTS_FOR / 2);
        assert!(shows(1), "the other may not have looked through everything yet");
        tally.give_way(looked + COUNTS_FOR);
        assert!(shows(0));
    }
}
