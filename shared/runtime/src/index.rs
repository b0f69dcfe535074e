//! The search index: which one it is, and that every process has the same.

use std::sync::Arc;

use lectern_db::{Db, singletons, storage};
use lectern_index::{IndexError, LocalIndex, QdrantIndex, SearchIndex, SpillSpace, metered::MeteredIndex};
use lectern_shared::{cache_budget::CacheBudget, config::Settings, metrics::Metrics};

use crate::{RuntimeStartError, retry_while_away};

/// The name under which it is recorded where the documents are indexed.
pub const INDEX: &str = "index";

/// Which index is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexOpenMode {
    /// The one that the documents are in.
    AsBefore,
    /// One that they are to be in.
    Anew,
}

/// Where the search index is, for the operator and for the record.
pub fn index_name(settings: &Settings) -> &'static str {
    if settings.qdrant.is_some() { "Qdrant" } else { "the database" }
}

/// Opens the index that is set. A server that does not answer yet is waited for; of one that is `known`, what it held must be there.
pub(crate) async fn open(
    settings: &Settings,
    db: &Db,
    instance: &str,
    known: bool,
    budget: &CacheBudget,
    metrics: &Arc<Metrics>,
) -> Result<Arc<dyn SearchIndex>, RuntimeStartError> {
    let metered = Arc::clone(metrics);
    let index: Arc<dyn SearchIndex> = match &settings.qdrant {
        None => {
            let spill = settings.index_spill;
            let spill = (spill > 0).then(|| SpillSpace::new(settings.data_dir.clone(), spill));
            Arc::new(MeteredIndex::new(
                LocalIndex::within(db.in_background(), budget.clone(), spill),
                metered,
            ))
        }
        Some(config) => {
            let open = || QdrantIndex::open(config, instance, known);
            let away = |error: &IndexError| matches!(error, IndexError::Engine(_));
            Arc::new(MeteredIndex::new(retry_while_away("Qdrant", open, away).await?, metered))
        }
    };
    Ok(index)
}

/// Makes sure that every process uses the same index: what one of them adds elsewhere would never be found. True when it
/// has been used before.
pub(crate) async fn check(settings: &Settings, db: &Db) -> Result<bool, RuntimeStartError> {
    let set = index_name(settings);
    match singletons::get(db, INDEX).await? {
        Some(known) if known != set => Err(RuntimeStartError::IndexElsewhere { known, set }),
        known => Ok(known.is_some()),
    }
}

/// Records that this is the index, unless another process was quicker; and forgets what is added up for a limit that is not set.
pub(crate) async fn claim(settings: &Settings, db: &Db) -> Result<(), RuntimeStartError> {
    let mut tx = db.begin_essential().await?;
    singletons::claim(&mut tx, INDEX, index_name(settings)).await?;
    if settings.limits.storage_bytes.is_none() {
        storage::forget_sums(&mut tx).await?;
    }
    tx.commit().await?;
    check(settings, db).await.map(drop)
}
