//! Passwords: argon2id, off the async threads, a bounded number at once, and in turns that are fair between addresses. Of those turns
//! some are for addresses alone where the account was signed in to of late, so that no crowd of others keeps its owner waiting.

use std::{net::IpAddr, num::NonZero, thread::available_parallelism, time::Duration};

use argon2::{
    Argon2,
    password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash},
};
use secrecy::{ExposeSecret, SecretString};

use crate::{
    error::{ApiError, ApiErrorKind},
    limits::{LimitKey, PasswordAttempt},
    turns::{FairPermit, FairSemaphore, PermitError, PermitLane, PermitSlot, SemaphoreLimits},
};

/// Passwords of one address at once, where there are cores for more. Below the ten failures after which it has to wait, so that no
/// attempt of its own that is still looked at makes it wait; and a part of the cores, so that it does not fill them all.
const OF_ONE_ADDRESS: usize = 2;
/// Turns besides those that there are cores for, which a known address has when all others are taken.
const RESERVED: usize = 1;
/// How many more of one address may wait: a few seconds' worth.
const WAITING: usize = 64;
/// How long one waits for its turn at most: less than clients and proxies wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// When one that did not get its turn may try again, in seconds.
const AGAIN: u64 = 5;

/// Hashes and verifies. The parameters are those of the crate: argon2id, 19 MiB, two passes, one lane, which is the
/// current OWASP minimum.
#[derive(Clone)]
pub(crate) struct PasswordHashPool {
    turns: FairSemaphore<LimitKey>,
}

/// One address's place in the queue for a turn.
pub(crate) struct PasswordSlot(PermitSlot);

/// One address's turn to have one password looked at.
pub(crate) struct PasswordPermit(FairPermit);

/// What a password of nobody is compared with, so that an unknown account takes as long as a known one: of the same form as [`hash`]
/// makes, and of no password that anybody knows.
const NOBODY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5IGhhcyBhIG9uZQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

fn hash(password: &[u8]) -> Result<String, argon2::password_hash::Error> {
    Ok(Argon2::default().hash_password(password)?.to_string())
}

fn matches(password: &[u8], hash: &str) -> bool {
    PasswordHash::new(hash).is_ok_and(|hash| Argon2::default().verify_password(password, &hash).is_ok())
}

impl PasswordHashPool {
    pub(crate) fn new() -> Self {
        Self::on(available_parallelism().map_or(2, NonZero::get))
    }

    /// For so many cores.
    fn on(at_once: usize) -> Self {
        let of_one = at_once.div_ceil(2).min(OF_ONE_ADDRESS);
        let bounds =
            SemaphoreLimits { at_once, reserved: RESERVED, of_one, waiting: WAITING, patience: PATIENCE };
        Self { turns: FairSemaphore::new(bounds) }
    }

    /// A place of an address, in which it may look up what decides about its lane.
    ///
    /// # Errors
    /// When too many of its own wait already.
    pub(crate) fn place(&self, address: IpAddr) -> Result<PasswordSlot, ApiError> {
        self.turns.reserve_slot(LimitKey::address(address)).map(PasswordSlot).map_err(refusal)
    }

    /// Waits in the common queue until it is the turn of an address.
    ///
    /// # Errors
    /// When too many of its own wait already, and when it takes too long.
    pub(crate) async fn turn(&self, address: IpAddr) -> Result<PasswordPermit, ApiError> {
        self.turns.acquire(LimitKey::address(address)).await.map(PasswordPermit).map_err(refusal)
    }
}

fn refusal(problem: PermitError) -> ApiError {
    let (kind, code, message) = match problem {
        PermitError::QueueFull => {
            let message = "Too many sign-ins from your address at once. Wait before you try again.";
            (ApiErrorKind::RateLimited, "too_many_attempts", message)
        }
        PermitError::Late => {
            let message = "Too many sign-ins are going on at this moment; try again shortly.";
            (ApiErrorKind::Unavailable, "too_many_sign_ins", message)
        }
    };
    ApiError { retry_after: Some(AGAIN), ..ApiError::new(kind, code, message) }
}

impl PasswordSlot {
    /// Waits until it is the address's turn.
    ///
    /// # Errors
    /// When it takes too long.
    pub(crate) async fn turn(self, lane: PermitLane) -> Result<PasswordPermit, ApiError> {
        self.0.turn(lane).await.map(PasswordPermit).map_err(refusal)
    }
}

impl PasswordPermit {
    /// The password's hash, in PHC form.
    pub(crate) async fn hash(self, password: SecretString) -> Result<String, ApiError> {
        self.0.run(move || hash(password.expose_secret().as_bytes())).await?.map_err(|error| {
            tracing::error!(%error, "a password could not be hashed");
            ApiError::internal()
        })
    }

    /// Decides an attempt: whether the password fits; not without a hash, after as much work. Every later attempt sees the decision.
    pub(crate) async fn verify(
        self,
        attempt: PasswordAttempt,
        password: SecretString,
        hash: Option<String>,
    ) -> Result<bool, ApiError> {
        // The work decides: it goes on when the client hangs up, and what was looked at has to count.
        let work = move || {
            // An account without a password takes as long as one with another.
            let hash = hash.filter(|hash| !hash.is_empty());
            let known = hash.is_some();
            let fits = matches(password.expose_secret().as_bytes(), hash.as_deref().unwrap_or(NOBODY));
            if known && fits {
                return Some(attempt.succeeded());
            }
            attempt.failed();
            None
        };
        let Some(settled) = self.0.run(work).await? else { return Ok(false) };
        settled.wait().await;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use lectern_shared::clock::Timestamp;

    use super::*;
    use crate::limits::{AttemptKeys, RateLimiter};

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

    async fn guess(limits: &RateLimiter) -> Option<PasswordAttempt> {
        limits.begin(AttemptKeys::at(LimitKey::account("ada")), NOW).await.ok()
    }

    #[tokio::test]
    async fn a_password_fits_its_own_hash_only() {
        let (passwords, limits) = (PasswordHashPool::new(), RateLimiter::new(None, None));
        let turn = async || passwords.turn(HERE).await.ok().unwrap();
        let hash = turn().await.hash(SecretString::from("correct horse")).await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        let fits = async |password: &str, hash: Option<&String>| {
            let attempt = guess(&limits).await.unwrap();
            turn().await.verify(attempt, SecretString::from(password), hash.cloned()).await.unwrap()
        };
        assert!(fits("correct horse", Some(&hash)).await);
        assert!(!fits("wrong horse", Some(&hash)).await);
        assert!(!fits("", None).await);
        assert!(!fits("", Some(&String::new())).await, "an account without a password has none");
    }

    #[test]
    fn a_password_of_nobody_takes_as_much_work_as_one_of_somebody() {
        let somebodys = hash(b"correct horse").unwrap();
        assert_eq!(somebodys.len(), NOBODY.len());
        let [somebodys, nobodys] = [&somebodys, NOBODY].map(|hash| PasswordHash::new(hash).unwrap());
        assert_eq!(
            (nobodys.algorithm, nobodys.version, &nobodys.params),
            (somebodys.algorithm, somebodys.version, &somebodys.params)
        );
    }

    /// Has a password looked at, and does not wait for that.
    async fn hang_up(passwords: &PasswordHashPool, limits: &RateLimiter, password: &'static str, hash: &str) {
        let turn = passwords.turn(HERE).await.ok().unwrap();
        let attempt = guess(limits).await.expect("an attempt that is let in");
        let mut looking = Box::pin(turn.verify(attempt, SecretString::from(password), Some(hash.to_owned())));
        // It has begun.
        let _ = futures::poll!(&mut looking);
    }

    #[tokio::test]
    async fn a_guess_whose_client_hangs_up_counts_as_it_turns_out() {
        // One at a time of one address, so that the next turn comes when the work has ended.
        let (passwords, limits) = (PasswordHashPool::on(1), RateLimiter::new(None, None));
        let hash = hash(b"correct horse").unwrap();
        for _ in 0..9 {
            hang_up(&passwords, &limits, "wrong horse", &hash).await;
        }
        hang_up(&passwords, &limits, "correct horse", &hash).await;
        drop(passwords.turn(HERE).await);
        for _ in 0..10 {
            hang_up(&passwords, &limits, "wrong horse", &hash).await;
        }
        assert!(guess(&limits).await.is_none(), "while the last one is looked at");
        drop(passwords.turn(HERE).await);
        assert!(guess(&limits).await.is_none(), "and when all of them are");
    }

    #[tokio::test]
    async fn a_crowd_of_addresses_does_not_keep_a_known_one_waiting() {
        let passwords = PasswordHashPool::on(1);
        let there = |number: u8| IpAddr::V4(Ipv4Addr::new(192, 0, 2, number));
        let _first = passwords.turn(there(0)).await.ok().unwrap();
        let mut crowd: Vec<_> = (1..50).map(|number| Box::pin(passwords.turn(there(number)))).collect();
        for waiting in &mut crowd {
            assert!(futures::poll!(waiting).is_pending());
        }
        let known = passwords.place(HERE).ok().unwrap().turn(PermitLane::Reserved);
        assert!(futures::FutureExt::now_or_never(known).is_some_and(|turn| turn.is_ok()));
    }

    #[tokio::test]
    async fn an_address_that_floods_the_queue_is_refused_with_a_time_and_others_are_served() {
        let passwords = PasswordHashPool::new();
        let mut flood: Vec<_> = (0..500).map(|_| Box::pin(passwords.turn(HERE))).collect();
        let mut refused = Vec::new();
        for turn in &mut flood {
            if let std::task::Poll::Ready(Err(error)) = futures::poll!(turn) {
                refused.push((error.kind.status(), error.retry_after));
            }
        }
        // A task is made to pause after so many steps, so not all of them were asked.
        assert!(refused.len() > 300, "{}", refused.len());
        assert!(refused.iter().all(|refusal| *refusal == (429, Some(AGAIN))), "{refused:?}");
        let elsewhere = passwords.turn(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
        drop(flood);
        assert!(elsewhere.await.is_ok());
    }
}
