//! Signing in with a password.

use std::{net::IpAddr, time::Duration};

use lectern_shared::{
    clock::Timestamp,
    db::{
        self,
        known_addresses::{self, KNOWN_FOR},
    },
    ids::UserId,
    limits::{Guess, Key},
    model::user::{User, email_key},
    runtime::Runtime,
    turns::TurnLane,
};
use secrecy::SecretString;
use tokio::time::timeout;

use crate::{error::ApiError, state::AppState};

/// Addresses that are known of one account: homes, offices, and what a phone has had of late.
const KNOWN: u32 = 20;
/// How often it is noted that a known address was met again.
const NOTE_EVERY: Duration = Duration::from_hours(24);
/// How long a sign-in waits for the note. It is right without.
const NOTING: Duration = Duration::from_secs(1);

/// Where somebody is who signs in to an account.
struct Whereabouts {
    account: Key,
    address: Key,
}

impl Whereabouts {
    fn new(email_key: &str, address: IpAddr) -> Self {
        Self { account: Key::account(email_key), address: Key::address(address) }
    }

    /// What a guess from here counts for, and where it waits for its turn. Where the account was signed in to of late, neither is up to
    /// strangers.
    fn standing(&self, seen_at: Option<Timestamp>, now: Timestamp) -> (Guess, TurnLane) {
        if seen_at.is_some_and(|seen| now.since(seen) < KNOWN_FOR) {
            (Guess::from_known(self.account, self.address), TurnLane::Reserved)
        } else {
            (Guess::from_stranger(self.account, self.address), TurnLane::Common)
        }
    }

    /// What of it is stored. Addresses are few enough to try them all, so the hash has a key.
    fn hash(&self, runtime: &Runtime) -> [u8; 32] {
        runtime.keyring.fingerprint(Key::pair(self.account, self.address).as_bytes())
    }
}

/// The account that an e-mail and a password open.
///
/// # Errors
/// 401 when they open none, 429 after too many failures or when too many wait at this address.
pub(crate) async fn sign_in(
    state: &AppState,
    email: &str,
    password: SecretString,
    address: IpAddr,
) -> Result<User, ApiError> {
    let runtime = &state.runtime;
    let email_key = email_key(email);
    let whereabouts = Whereabouts::new(&email_key, address);
    let hash = whereabouts.hash(runtime);
    // With a place first: no address looks up more accounts at once than it may have waiting.
    let place = state.passwords.place(address)?;
    let found = db::accounts::find_for_sign_in(&runtime.db, &email_key, &hash).await?;
    let seen_at = found.as_ref().and_then(|found| found.seen_there_at);
    let (guess, lane) = whereabouts.standing(seen_at, runtime.clock.now());
    // Before it is counted: what waits for its turn is no attempt yet, and does not make others of its address wait.
    let turn = place.turn(lane).await?;
    let now = runtime.clock.now();
    let attempt = state.throttle.begin(guess, now).await?;
    let (user, password_hash) =
        found.map(|found| (found.credentials.user, found.credentials.password_hash)).unzip();
    let fits = turn.verify(attempt, password, password_hash).await?;
    let Some(user) = user.filter(|_| fits) else {
        return Err(ApiError::unauthorized("The e-mail or the password is wrong."));
    };
    if seen_at.is_none_or(|seen| now.since(seen) > NOTE_EVERY) {
        note(runtime, user.id, hash, now).await;
    }
    Ok(user)
}

/// Notes that somebody has just signed in to an account that was made at this address.
pub(crate) async fn signed_up(runtime: &Runtime, user: &User, address: IpAddr) {
    let hash = Whereabouts::new(&email_key(&user.email), address).hash(runtime);
    note(runtime, user.id, hash, runtime.clock.now()).await;
}

/// Notes where an account was signed in to. A store that is away or full costs the note, not the sign-in.
async fn note(runtime: &Runtime, user: UserId, hash: [u8; 32], now: Timestamp) {
    let db = runtime.db.clone();
    // In a task of its own: it need not begin anew when nobody waits for it any more.
    let noting = tokio::spawn(async move {
        let mut tx = db.begin_relaxed().await?;
        known_addresses::remember(&mut tx, user, &hash, now, KNOWN).await?;
        tx.commit().await
    });
    let problem = match timeout(NOTING, noting).await {
        Ok(Ok(Ok(()))) => return,
        Ok(Ok(Err(error))) => error.to_string(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "it takes long".to_owned(),
    };
    tracing::debug!(problem, "where an account was signed in to could not be noted");
}
