//! The origins of the pages that may use API tokens. Browsers ask before they send a token, so whoever asks is unknown, and what the
//! answer costs must not be up to them: what is remembered is read again once in a while, however many ask.

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

use lectern_db::{Db, DbError, api_tokens};
use lectern_shared::{clock::Clock, model::Json};
use parking_lot::RwLock;
use tokio::sync::Mutex;

/// How soon after a reading the next one may come, for an origin that was not found.
const AT_MOST_EVERY: Duration = Duration::from_secs(1);
/// After this time what was found is read again.
const STALE: Duration = Duration::from_mins(1);
/// Tokens whose origins are read.
const TOKENS: u32 = 10_000;
/// Beyond so many origins, those of new tokens wait for the next reading: tokens that are made and deleted over and over leave theirs
/// behind until then.
const KNOWN: usize = 50_000;

/// The origins that are known. Cheap to clone; clones share them.
#[derive(Clone)]
pub(crate) struct PageOrigins {
    db: Db,
    clock: Clock,
    /// None until they were read for the first time.
    known: Arc<RwLock<Option<HashSet<String>>>>,
    /// When they were read last. Held by whoever reads them.
    read_at: Arc<Mutex<Option<Instant>>>,
}

impl PageOrigins {
    pub(crate) fn new(db: Db, clock: Clock) -> Self {
        Self { db, clock, known: Arc::default(), read_at: Arc::default() }
    }

    /// Adds those of a new token, which counts at once, or a moment later where very many are known.
    pub(super) fn add(&self, origins: &[String]) {
        // What was not read yet will be, these included.
        if let Some(known) = self.known.write().as_mut().filter(|known| known.len() < KNOWN) {
            known.extend(origins.iter().cloned());
        }
    }

    /// Whether pages of this origin may use some token.
    pub(crate) async fn allows(&self, origin: &str) -> bool {
        let look = || self.known.read().as_ref().map(|known| known.contains(origin));
        let is_known = || look().unwrap_or(false);
        let mut read_at = match (Arc::clone(&self.read_at).try_lock_owned(), look()) {
            (Ok(read_at), _) => read_at,
            // Somebody is reading them: a database that is slow does not keep those waiting of whom something is known.
            (Err(_), Some(is_found)) => return is_found,
            (Err(_), None) => Arc::clone(&self.read_at).lock_owned().await,
        };
        let age = read_at.map(|at| at.elapsed());
        let is_found = is_known();
        let is_due = age.is_none_or(|age| age > if is_found { STALE } else { AT_MOST_EVERY });
        if !is_due {
            return is_found;
        }
        // Noted before it is tried: a database that is away is not asked by every request.
        *read_at = Some(Instant::now());
        let origins = self.clone();
        // In a task of its own, which has the lock: whoever hangs up meanwhile would leave them noted as read, for everybody.
        let reading = tokio::spawn(async move {
            if let Err(error) = origins.read().await {
                tracing::warn!(%error, "the origins that may use API tokens cannot be read");
            }
            drop(read_at);
        });
        // It fails only when the process is ending.
        let _ = reading.await;
        is_known()
    }

    async fn read(&self) -> Result<(), DbError> {
        let origins = api_tokens::page_origins(&self.db, self.clock.now(), TOKENS).await?;
        *self.known.write() = Some(origins.into_iter().flat_map(|Json(origins)| origins).collect());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use futures::poll;
    use lectern_db::testing::{at, both, commit, made_in, workspace};
    use lectern_shared::{ids::ApiTokenId, model::user::ApiToken};

    use super::*;

    const PAGE: &str = "https://page.example";

    #[tokio::test]
    async fn a_client_that_hangs_up_while_origins_are_read_keeps_nobody_elses_page_out() {
        for t in &both().await {
            let id = ApiTokenId::generate();
            let token = ApiToken {
                id,
                owner: made_in(workspace(&t.db, at(0)).await),
                description: String::new(),
                role: None,
                agent_id: None,
                origins: Some(Json(vec![PAGE.to_owned()])),
                expires_at: None,
                rate_per_minute: None,
                token_sealed: Vec::new(),
                created_at: at(0),
                last_used_at: None,
            };
            commit!(t.db, |tx| api_tokens::insert(tx, &token, id.as_uuid().as_bytes()));
            let origins = PageOrigins::new(t.db.clone(), Clock::manual(at(1)));
            let mut gone = Box::pin(origins.allows(PAGE));
            assert!(poll!(&mut gone).is_pending());
            drop(gone);
            assert!(origins.allows(PAGE).await, "{}", t.name);
        }
    }
}
