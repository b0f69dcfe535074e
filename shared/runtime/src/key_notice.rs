//! What a process says of the key that it encrypts under, as long as it runs: `lectern reencrypt` gives up no key that somebody
//! writes under.

use std::time::Duration;

use lectern_db::{self as db, Db, key_use, singletons};
use lectern_jobs::JobQueue;
use lectern_shared::{
    retry::{JitterRange, jitter},
    secrets::CANARY,
    shutdown::Shutdown,
};
use uuid::Uuid;

use crate::{Runtime, RuntimeStartError, opens_canary};

/// How often it is said again: as seldom as an idle service writes to its disk.
const EVERY: Duration = Duration::from_mins(1);
/// How soon, after the store has failed.
const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// For how long it stands. Whoever is killed is taken for somebody who writes until then.
pub const KEY_NOTICE_STANDS: Duration = Duration::from_mins(3);
/// The longest that a process which ends takes for it.
const WITHDRAWN_WITHIN: Duration = Duration::from_secs(1);

/// Forgets what processes have said that are known to be gone: whoever has the data directory for itself is the only one.
///
/// # Errors
/// When the store fails.
pub async fn forget_gone_writers(runtime: &Runtime) -> db::Result<()> {
    if runtime.data_dir_lock.is_none() {
        return Ok(());
    }
    let mut tx = runtime.db.begin_essential_relaxed().await?;
    key_use::forget_all(&mut tx).await?;
    tx.commit().await
}

/// That this process encrypts under a key.
#[derive(Clone, Debug)]
pub(crate) struct KeyNotice {
    process: Uuid,
    key: [u8; 4],
    db: Db,
    jobs: JobQueue,
}

impl KeyNotice {
    /// Says it for the first time, and again and again until the process stops.
    ///
    /// # Errors
    /// When the key was given up while this process started.
    pub(crate) async fn give(runtime: &Runtime, shutdown: &Shutdown) -> Result<Self, RuntimeStartError> {
        let Runtime { db, jobs, keyring, .. } = runtime;
        let (db, jobs) = (db.in_background(), jobs.clone());
        let notice = Self { process: Uuid::now_v7(), key: keyring.current_id(), db, jobs };
        let given = match forget_gone_writers(runtime).await {
            Ok(()) => notice.say().await,
            failed => failed,
        };
        if let Err(error) = &given {
            tracing::warn!(%error, "it cannot be said under which key this process encrypts; trying again");
        }
        if let Some(stored) = singletons::get(&runtime.db, CANARY).await?
            && !opens_canary(keyring, &stored)
        {
            notice.withdraw().await;
            return Err(RuntimeStartError::WrongSecret);
        }
        notice.clone().keep(given.is_ok(), shutdown);
        Ok(notice)
    }

    async fn say(&self) -> db::Result<()> {
        let now = self.jobs.now();
        // On a full disk too: secrets may still be written then.
        let mut tx = self.db.begin_essential_relaxed().await?;
        key_use::forget_lost(&mut tx, now).await?;
        key_use::note(&mut tx, self.key, self.process, now, now.plus(KEY_NOTICE_STANDS)).await?;
        tx.commit().await
    }

    fn keep(self, mut is_said: bool, shutdown: &Shutdown) {
        let soft = shutdown.soft().clone();
        shutdown.spawn(async move {
            loop {
                let pause = if is_said { EVERY } else { AFTER_FAILURE };
                tokio::select! {
                    // What it stands for is enough for the longest drain.
                    () = soft.cancelled() => return,
                    () = tokio::time::sleep(jitter(pause, JitterRange::Fifth)) => {}
                }
                let said = self.say().await;
                if let Some(error) = said.as_ref().err().filter(|_| is_said) {
                    tracing::debug!(%error, "it cannot be said under which key this process encrypts; trying again");
                }
                is_said = said.is_ok();
            }
        });
    }

    /// Takes it back: nothing is encrypted any more.
    pub(crate) async fn withdraw(&self) {
        let withdraw = async {
            let mut tx = self.db.begin_essential_relaxed().await?;
            key_use::withdraw(&mut tx, self.key, self.process).await?;
            tx.commit().await
        };
        match tokio::time::timeout(WITHDRAWN_WITHIN, withdraw).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "the notice of this process's key was left"),
            Err(_) => tracing::debug!("the notice of this process's key was left"),
        }
    }
}
