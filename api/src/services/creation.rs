//! Creating things once. A creating request that is sent again under the same key creates nothing again, and is answered as the first
//! time. The answer is kept in the transaction that creates, encrypted, because it can hold a token. A request that fails keeps nothing.

use std::{sync::Arc, time::Duration};

use lectern_db::{self as db, Db, Tx};
use lectern_jobs::JobQueue;
use lectern_shared::{
    ids::{ApiTokenId, UserId, WorkspaceId},
    model::workspace::Role,
    secrets::{CiphertextLocation, Keyring, idempotency_row, sha256},
};
use uuid::Uuid;

use super::actor::Actor;
use crate::error::{ApiError, ApiErrorKind};

/// How long an answer is kept.
const KEPT: Duration = Duration::from_hours(24);
/// Bytes of the hash that tells one request from another.
const HASH: usize = 32;
/// Bytes before a kept answer: the hash, and whom it is for.
const HEAD: usize = HASH + 17;

/// A creating request that is to be answered once.
#[derive(Debug)]
pub(crate) struct IdempotentRequest {
    /// The workspace in which it is made.
    workspace: WorkspaceId,
    keyed: Option<RequestFingerprint>,
}

#[derive(Debug)]
struct RequestFingerprint {
    user: UserId,
    key: String,
    hash: [u8; HASH],
    /// The hash under which 0.1 kept an answer to this request, before there was more than one kind of credential.
    former_hash: Option<[u8; HASH]>,
    /// The API token that the request came with; none for a sign-in.
    token: Option<ApiTokenId>,
    /// Whether that token has a limit which another one, shown to it, might not have.
    is_limited: bool,
    role: Role,
    audience: AnswerAudience,
}

/// Who is told an answer again, if their role is enough.
#[derive(Clone, Copy, Debug)]
struct AnswerAudience {
    /// The one API token that is, besides whoever is signed in to the account: nil for every one without limits, the highest for none.
    token: Uuid,
    /// The lowest role.
    least: Role,
}

impl IdempotentRequest {
    /// A request under the caller's own key, if it has one. It is the same one again when its workspace, its path and its content are.
    pub(crate) fn new(actor: &Actor, key: Option<String>, path: &str, content: &[u8]) -> Self {
        let (user, workspace) = (actor.user, actor.named_workspace());
        let keyed = key.map(|key| {
            // No path has a line break in it.
            let hash = sha256(&[format!("{workspace}\n{path}\n").as_bytes(), content].concat());
            let (token, role) = (actor.token(), actor.role());
            // A builder may make whatever is not restricted further. What a token made, no other one is told of.
            let audience = AnswerAudience {
                token: token.map_or(Uuid::nil(), |token| *token.as_uuid()),
                least: role.at_most(Role::Builder),
            };
            let is_limited = actor.may_handle_tokens().is_err();
            let was_possible = workspace == user.into() && role.includes(Role::Builder) && !is_limited;
            let former_hash = was_possible.then(|| sha256(&[path.as_bytes(), b"\n", content].concat()));
            RequestFingerprint { user, key, hash, former_hash, token, is_limited, role, audience }
        });
        Self { workspace, keyed }
    }

    /// The same, of which nobody is told again whose role does not include this one.
    #[must_use]
    pub(super) fn for_role(mut self, role: Role) -> Self {
        if let Some(keyed) = &mut self.keyed
            && role.includes(keyed.audience.least)
        {
            keyed.audience.least = role;
        }
        self
    }

    /// The same, of which no API token is told again.
    #[must_use]
    pub(super) fn for_sign_ins(mut self) -> Self {
        if let Some(keyed) = &mut self.keyed {
            keyed.audience.token = Uuid::max();
        }
        self
    }
}

/// How a face tells what was made.
pub(crate) trait ResponseEncoder<T>: Fn(&T) -> Result<Vec<u8>, ApiError> + Send + Sync {}

impl<T, F: Fn(&T) -> Result<Vec<u8>, ApiError> + Send + Sync> ResponseEncoder<T> for F {}

/// What came of a creating request: what the face told of it.
#[derive(Debug)]
pub(crate) enum CreationOutcome {
    /// It was made.
    Now(Vec<u8>),
    /// The same request made it before, and was told this.
    Before(Vec<u8>),
}

/// Ends transactions that create something. Cheap to clone.
#[derive(Clone)]
pub(crate) struct IdempotencyStore {
    db: Db,
    keyring: Arc<Keyring>,
    jobs: JobQueue,
}

impl IdempotencyStore {
    pub(crate) fn new(db: Db, keyring: Arc<Keyring>, jobs: JobQueue) -> Self {
        Self { db, keyring, jobs }
    }

    /// What was told of the same request before.
    ///
    /// # Errors
    /// A conflict when the key was used for another request.
    pub(crate) async fn stored_response(
        &self,
        once: &IdempotentRequest,
    ) -> Result<Option<Vec<u8>>, ApiError> {
        let Some(keyed) = &once.keyed else { return Ok(None) };
        let stored = db::idempotency::find(&self.db, keyed.user, &keyed.key, self.jobs.now()).await?;
        let Some(sealed) = stored else { return Ok(None) };
        // Whoever made it may be waiting for the disk still.
        self.db.flush().await?;
        keyed.open(&self.keyring, &sealed).map(Some)
    }

    /// Commits what was made. When the same request was quicker on another connection, nothing is made and its answer is
    /// given; nothing is made either in a workspace that was deleted meanwhile.
    pub(crate) async fn commit<T: Sync>(
        &self,
        mut tx: Tx,
        once: IdempotentRequest,
        made: &T,
        tell: impl ResponseEncoder<T>,
    ) -> Result<CreationOutcome, ApiError> {
        let told = tell(made)?;
        if let Some(keyed) = &once.keyed {
            let (sealed, now) = (keyed.seal(&self.keyring, &told)?, self.jobs.now());
            let expires_at = now.plus(KEPT);
            if !db::idempotency::insert(&mut tx, keyed.user, &keyed.key, &sealed, now, expires_at).await? {
                // Rolls back, and gives its connection back for the look at the other's answer.
                drop(tx);
                let earlier = self.stored_response(&once).await?;
                let under_way = || ApiError::conflict("The same request is being answered; try again.");
                return earlier.map(CreationOutcome::Before).ok_or_else(under_way);
            }
        }
        // At last: what was added points to the workspace, so that it cannot go any more before this ends.
        if !db::workspaces::is_active(&mut tx, once.workspace).await? {
            return Err(ApiError::credential_ended());
        }
        tx.commit().await?;
        Ok(CreationOutcome::Now(told))
    }
}

impl RequestFingerprint {
    fn row(&self) -> Uuid {
        idempotency_row(self.user, &self.key)
    }

    /// Encrypts an answer together with whom it is for, and with the hash of what was asked, which could tell a password that was in it.
    fn seal(&self, keyring: &Keyring, answer: &[u8]) -> Result<Vec<u8>, ApiError> {
        let AnswerAudience { token, least } = self.audience;
        let kept = [self.hash.as_slice(), token.as_bytes(), &[least.rank()], answer].concat();
        Ok(keyring.encrypt(CiphertextLocation::idempotent_answer(&self.row()), &kept)?)
    }

    /// The answer, if it was given to this request, and is for whoever asks.
    fn open(&self, keyring: &Keyring, sealed: &[u8]) -> Result<Vec<u8>, ApiError> {
        let mut head = keyring.decrypt(CiphertextLocation::idempotent_answer(&self.row()), sealed)?;
        if self.former_hash.is_some_and(|former| head.starts_with(&former)) {
            return Ok(head.split_off(HASH));
        }
        let answer = head.split_off(HEAD.min(head.len()));
        if self.is_told(&head) {
            return Ok(answer);
        }
        let message =
            "This Idempotency-Key was used for another request within the last 24 hours. Use a new one.";
        Err(ApiError::new(ApiErrorKind::Conflict, "idempotency_key_reused", message))
    }

    /// Whether an answer with this head was given to this request, and is for whoever asks.
    fn is_told(&self, head: &[u8]) -> bool {
        let Some((hash, [token @ .., least])) = head.split_at_checked(HASH) else { return false };
        let is_for_credential = self.token.is_none_or(|own| {
            token == own.as_uuid().as_bytes() || !self.is_limited && token == Uuid::nil().as_bytes()
        });
        hash == self.hash && is_for_credential && self.role.rank() >= *least
    }
}
