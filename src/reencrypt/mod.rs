//! Everything that is stored encrypted, encrypted anew under the current key, so that the previous one is needed no more. The
//! service may run meanwhile: a value is replaced only if it still is what was read. What earlier versions stored plainly is encrypted
//! likewise.

pub(crate) mod command;

use lectern_api::tool_secrets;
use lectern_db::{
    self as db, Db, DbError,
    sealed::{PlainAddress, SealedAnswer, SealedColumn, SealedValue},
};
use lectern_shared::{
    clock::Timestamp,
    ids::{ToolId, UserId, WebhookId},
    model::{Json, tool::Tool},
    secrets::{CANARY, CiphertextLocation, Keyring, SecretError, hex, idempotency_row, unhex},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Values that are read at a time. The largest are kept answers, of about the size of a request.
const BATCH: u32 = 32;
/// Times that everything is looked at. Only a process that still encrypts under the previous key brings new work each time.
const PASSES: u32 = 10;
/// Most rows that are named.
const NAMED: usize = 1_000;

/// A row whose value neither key opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnreadableRow {
    /// Its table.
    pub(crate) table: &'static str,
    /// Its id; of a kept answer, its user's.
    pub(crate) id: Uuid,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReencryptOutcome {
    /// Nothing is left that the previous key opens, or that is plain.
    Complete,
    /// It was told to stop.
    Stopped,
    /// Values were written under the previous key all the while.
    StillWritten,
    /// So many processes encrypt under another key, or did a moment ago. They may not open what is encrypted anew, and what they write
    /// is not.
    WritersLeft(i64),
}

impl ReencryptOutcome {
    /// How it ends when all else is done, and so many processes encrypt under another key.
    const fn unless_written(writers: i64) -> Self {
        if writers == 0 { Self::Complete } else { Self::WritersLeft(writers) }
    }
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReencryptReport {
    /// How it ended.
    pub(crate) end: ReencryptOutcome,
    /// Values that were encrypted anew, or were plain.
    pub(crate) renewed: u64,
    /// Values that neither key opens, and that were left as they are.
    pub(crate) unreadable: u64,
    /// The rows of the first thousand of these.
    pub(crate) named: Vec<UnreadableRow>,
}

/// Encrypts anew what is not under the current key, until nothing is left or `stop` is cancelled. What was done stays done, and
/// the next run goes on from there. `now` is the time by which leases are judged.
///
/// # Errors
/// When the store fails.
pub(crate) async fn run(
    db: &Db,
    keyring: &Keyring,
    now: impl Fn() -> Timestamp,
    stop: &CancellationToken,
) -> Result<ReencryptReport, DbError> {
    let writers = async || db::key_use::others(db, keyring.current_id(), now()).await;
    let mut renewed = 0;
    let mut end = ReencryptOutcome::StillWritten;
    let mut pass = ReencryptPass::new(db, keyring, stop);
    for _ in 0..PASSES {
        // Before the look, which sees what was written by whoever has stopped by now.
        end = ReencryptOutcome::unless_written(writers().await?);
        if end != ReencryptOutcome::Complete {
            break;
        }
        pass = ReencryptPass::new(db, keyring, stop);
        pass.run().await?;
        renewed += pass.renewed;
        if stop.is_cancelled() {
            end = ReencryptOutcome::Stopped;
            break;
        }
        // What was written or began meanwhile is looked at once more.
        if pass.renewed + pass.missed == 0 {
            break;
        }
        end = ReencryptOutcome::StillWritten;
    }
    if end == ReencryptOutcome::Complete {
        // Last: as long as it is under the previous key, no process starts without that.
        renewed += u64::from(canary(db, keyring).await?);
        // Somebody may have started with that before. Whoever starts from now on needs the current one.
        end = ReencryptOutcome::unless_written(writers().await?);
    }
    Ok(ReencryptReport { end, renewed, unreadable: pass.unreadable, named: pass.named })
}

/// One look at everything.
struct ReencryptPass<'a> {
    db: &'a Db,
    keyring: &'a Keyring,
    stop: &'a CancellationToken,
    renewed: u64,
    /// Values that were written by others between the look and the change.
    missed: u64,
    unreadable: u64,
    named: Vec<UnreadableRow>,
}

impl<'a> ReencryptPass<'a> {
    fn new(db: &'a Db, keyring: &'a Keyring, stop: &'a CancellationToken) -> Self {
        Self { db, keyring, stop, renewed: 0, missed: 0, unreadable: 0, named: Vec::new() }
    }

    async fn run(&mut self) -> Result<(), DbError> {
        for column in SealedColumn::ALL {
            self.column(column).await?;
        }
        self.addresses().await?;
        self.tools().await?;
        self.answers().await
    }

    async fn column(&mut self, column: SealedColumn) -> Result<(), DbError> {
        let (head, mut after) = (self.keyring.head(), Uuid::nil());
        while !self.stop.is_cancelled() {
            let rows = db::sealed::outdated(self.db, column, &head, after, BATCH).await?;
            let Some(last) = rows.last() else { break };
            after = last.id;
            for row in &rows {
                if self.stop.is_cancelled() {
                    break;
                }
                self.row(column, row).await?;
            }
        }
        Ok(())
    }

    async fn row(&mut self, column: SealedColumn, row: &SealedValue) -> Result<(), DbError> {
        let place = column.place(&row.id);
        let Some(anew) = self.anew(place, &row.sealed, row.id) else { return Ok(()) };
        // One row at a time, so that no request waits for two.
        let mut tx = self.db.begin().await?;
        let replaced = db::sealed::replace(&mut tx, column, row, &anew).await?;
        tx.commit().await?;
        self.count(replaced);
        Ok(())
    }

    async fn addresses(&mut self) -> Result<(), DbError> {
        let mut after = WebhookId::from(Uuid::nil());
        while !self.stop.is_cancelled() {
            let plain = db::sealed::plain_addresses(self.db, after, BATCH).await?;
            let Some(last) = plain.last() else { break };
            after = last.id;
            for address in &plain {
                if self.stop.is_cancelled() {
                    break;
                }
                self.address(address).await?;
            }
        }
        Ok(())
    }

    async fn address(&mut self, plain: &PlainAddress) -> Result<(), DbError> {
        let place = CiphertextLocation::webhook_url(plain.id.as_uuid());
        // No address is as long as what cannot be encrypted.
        let Ok(sealed) = self.keyring.encrypt(place, plain.url.as_bytes()) else { return Ok(()) };
        let mut tx = self.db.begin().await?;
        let replaced = db::sealed::seal_address(&mut tx, plain, &sealed).await?;
        tx.commit().await?;
        self.count(replaced);
        Ok(())
    }

    async fn tools(&mut self) -> Result<(), DbError> {
        let mut after = ToolId::from(Uuid::nil());
        while !self.stop.is_cancelled() {
            let tools = db::sealed::tools_with_addresses(self.db, after, BATCH).await?;
            let Some(last) = tools.last() else { break };
            after = last.id;
            for tool in tools.iter().filter(|tool| tool_secrets::is_address_open(&tool.metadata.0)) {
                if self.stop.is_cancelled() {
                    break;
                }
                self.tool(tool).await?;
            }
        }
        Ok(())
    }

    async fn tool(&mut self, before: &Tool) -> Result<(), DbError> {
        // One whose secrets no key opens was counted when its ciphertext was looked at.
        let Ok(whole) = tool_secrets::reveal(self.keyring, before) else { return Ok(()) };
        let Ok((open, sealed)) = tool_secrets::seal(self.keyring, &before.id, whole) else { return Ok(()) };
        let after = Tool { metadata: Json(open), metadata_sealed: sealed, ..before.clone() };
        let mut tx = self.db.begin().await?;
        let replaced = db::sealed::replace_configuration(&mut tx, before, &after).await?;
        tx.commit().await?;
        self.count(replaced);
        Ok(())
    }

    async fn answers(&mut self) -> Result<(), DbError> {
        let (head, mut after) = (self.keyring.head(), (UserId::from(Uuid::nil()), String::new()));
        while !self.stop.is_cancelled() {
            let place = (after.0, after.1.as_str());
            let answers = db::sealed::outdated_answers(self.db, &head, place, BATCH).await?;
            let Some(last) = answers.last() else { break };
            after = (last.user_id, last.request_key.clone());
            for answer in &answers {
                if self.stop.is_cancelled() {
                    break;
                }
                self.answer(answer).await?;
            }
        }
        Ok(())
    }

    async fn answer(&mut self, answer: &SealedAnswer) -> Result<(), DbError> {
        let row = idempotency_row(answer.user_id, &answer.request_key);
        let place = CiphertextLocation::idempotent_answer(&row);
        let Some(anew) = self.anew(place, &answer.sealed, *answer.user_id.as_uuid()) else { return Ok(()) };
        let mut tx = self.db.begin().await?;
        let replaced = db::sealed::replace_answer(&mut tx, answer, &anew).await?;
        tx.commit().await?;
        self.count(replaced);
        Ok(())
    }

    /// The value under the current key; none when neither key opens it, which is noted.
    fn anew(&mut self, place: CiphertextLocation<'_>, sealed: &[u8], id: Uuid) -> Option<Vec<u8>> {
        match self.keyring.encrypt_anew(place, sealed) {
            Ok(anew) => Some(anew),
            Err(SecretError::UnknownKey | SecretError::Damaged | SecretError::TooShort) => {
                self.unreadable += 1;
                if self.named.len() < NAMED {
                    self.named.push(UnreadableRow { table: place.table, id });
                }
                None
            }
        }
    }

    fn count(&mut self, replaced: bool) {
        let counter = if replaced { &mut self.renewed } else { &mut self.missed };
        *counter += 1;
    }
}

/// The text by which a wrong key is noticed; whether it was encrypted anew.
async fn canary(db: &Db, keyring: &Keyring) -> Result<bool, DbError> {
    let Some(stored) = db::singletons::get(db, CANARY).await? else { return Ok(false) };
    let sealed = unhex(&stored).filter(|sealed| !sealed.starts_with(&keyring.head()));
    // The start has read it already.
    let Some(anew) =
        sealed.and_then(|sealed| keyring.encrypt_anew(CiphertextLocation::canary(), &sealed).ok())
    else {
        return Ok(false);
    };
    let mut tx = db.begin().await?;
    let replaced = db::singletons::replace(&mut tx, CANARY, &stored, &hex(&anew)).await?;
    tx.commit().await?;
    Ok(replaced)
}

#[cfg(test)]
mod tests;
