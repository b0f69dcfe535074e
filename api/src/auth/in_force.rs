//! Answers that go on for long end soon after the credential that opened them: it is looked at once when a request comes, and then
//! again for as long as the answer goes on. One task asks for all of them together, and only while there are some.

use std::{
    collections::{HashMap, HashSet},
    io, mem,
    sync::{Arc, OnceLock},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use futures::{StreamExt, stream};
use lectern_shared::{
    clock::Clock,
    db::{Db, DbError, accounts},
    ids::{ApiTokenId, UserId},
};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::INVALID;
use crate::{error::ApiError, response::Answer, state::AppState};

/// How often the credentials are looked at. What they opened has ended within five seconds, a slow answer of the database included.
const EVERY: Duration = Duration::from_secs(2);
/// Credentials that one question to the database is about, at most.
const BATCH: usize = 500;

/// What opened a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Credential {
    /// A JSON web token.
    SignIn {
        user: UserId,
        /// The user's token version that it was given out under.
        version: i64,
        /// When it ends by itself, in seconds since 1970.
        ends_at: i64,
    },
    /// An API token.
    Token(ApiTokenId),
}

/// The credentials by which something long is being answered. Cheap to clone; clones share them.
#[derive(Clone)]
pub(crate) struct InForce(Arc<Inner>);

struct Inner {
    db: Db,
    clock: Clock,
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    entries: HashMap<Credential, Entry>,
    /// Whether there is a task that looks at them.
    is_watched: bool,
}

/// One credential, for as long as something that it opened goes on.
#[derive(Default)]
struct Entry {
    holders: usize,
    ended: watch::Sender<bool>,
}

/// Something that goes on as long as its credential is in force.
struct Held {
    list: InForce,
    credential: Credential,
    ended: watch::Receiver<bool>,
}

impl InForce {
    pub(crate) fn new(db: Db, clock: Clock) -> Self {
        Self(Arc::new(Inner { db, clock, list: Mutex::default() }))
    }

    fn hold(&self, credential: Credential) -> Held {
        let mut list = self.0.list.lock();
        let entry = list.entries.entry(credential).or_default();
        entry.holders += 1;
        let ended = entry.ended.subscribe();
        if !mem::replace(&mut list.is_watched, true) {
            tokio::spawn(self.clone().watch());
        }
        Held { list: self.clone(), credential, ended }
    }

    /// Looks at what is held until nothing is.
    async fn watch(self) {
        let mut failing = false;
        loop {
            tokio::time::sleep(EVERY).await;
            let held: Vec<Credential> = {
                let mut list = self.0.list.lock();
                if list.entries.is_empty() {
                    list.is_watched = false;
                    return;
                }
                list.entries.keys().copied().collect()
            };
            let mut problem = None;
            for some in held.chunks(BATCH) {
                match self.ended_of(some).await {
                    Ok(ended) => self.end(&ended),
                    // Nothing is known of these now; they are looked at again.
                    Err(error) => problem = Some(error),
                }
            }
            // One line for an outage, not one for every try.
            if let Some(error) = problem.as_ref().filter(|_| !failing) {
                tracing::warn!(%error, "whether credentials are still in force cannot be told; trying again");
            }
            failing = problem.is_some();
        }
    }

    /// Those of these credentials that open nothing any more.
    async fn ended_of(&self, credentials: &[Credential]) -> Result<Vec<Credential>, DbError> {
        let (mut users, mut tokens) = (Vec::new(), Vec::new());
        for credential in credentials {
            match credential {
                Credential::SignIn { user, .. } => users.push(*user),
                Credential::Token(id) => tokens.push(*id),
            }
        }
        let versions: HashMap<UserId, i64> = match users.as_slice() {
            [] => HashMap::new(),
            users => accounts::token_versions(&self.0.db, users).await?.into_iter().collect(),
        };
        let tokens: HashSet<ApiTokenId> = match tokens.as_slice() {
            [] => HashSet::new(),
            tokens => accounts::tokens_in_force(&self.0.db, tokens).await?.into_iter().collect(),
        };
        let now = self.0.clock.now().as_secs();
        let is_in_force = |credential: &Credential| match credential {
            Credential::SignIn { user, version, ends_at } => {
                *ends_at > now && versions.get(user) == Some(version)
            }
            Credential::Token(id) => tokens.contains(id),
        };
        Ok(credentials.iter().filter(|credential| !is_in_force(credential)).copied().collect())
    }

    fn end(&self, credentials: &[Credential]) {
        let list = self.0.list.lock();
        for entry in credentials.iter().filter_map(|credential| list.entries.get(credential)) {
            entry.ended.send_replace(true);
        }
    }
}

impl Held {
    async fn ended(&mut self) {
        // The sender is there for as long as this is.
        let _ = self.ended.wait_for(|ended| *ended).await;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut list = self.list.0.list.lock();
        if let Some(entry) = list.entries.get_mut(&self.credential) {
            entry.holders -= 1;
            if entry.holders == 0 {
                list.entries.remove(&self.credential);
            }
        }
    }
}

/// By what a request was opened. It goes with every request; whatever authenticates notes it here.
#[derive(Clone)]
pub(crate) struct Opened {
    list: InForce,
    by: Arc<OnceLock<Credential>>,
}

impl Opened {
    pub(super) fn note(&self, credential: Credential) {
        // A second look at the same request finds the same.
        let _ = self.by.set(credential);
    }

    fn hold(&self) -> Option<Held> {
        self.by.get().map(|credential| self.list.hold(*credential))
    }

    /// Goes on with `work` as long as the credential is in force: for what takes long before there is an answer at all.
    ///
    /// # Errors
    /// 401 when the credential has ended.
    pub(crate) async fn while_in_force<T>(&self, work: impl Future<Output = Answer<T>>) -> Answer<T> {
        let Some(mut held) = self.hold() else { return work.await };
        tokio::select! {
            biased;
            answer = work => answer,
            () = held.ended() => Err(over()),
        }
    }
}

/// What is said when a credential has ended.
pub(crate) fn over() -> ApiError {
    ApiError::unauthorized(INVALID)
}

/// What an answer's stream says last when it ends before its time, in its own form. Put into the answer's extensions by whoever
/// streams; a stream without one is cut off, so that nobody takes it for whole.
#[derive(Clone)]
pub(crate) struct LastWords(pub(crate) Bytes);

/// Ends answers whose length is not known beforehand soon after the credential that opened them has ended.
pub(crate) async fn guard(State(state): State<AppState>, mut request: Request, next: Next) -> Response {
    let opened = Opened { list: state.in_force, by: Arc::default() };
    request.extensions_mut().insert(opened.clone());
    let mut response = next.run(request).await;
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    let Some(held) = opened.hold() else { return response };
    let last = response.extensions_mut().remove::<LastWords>();
    response.map(|body| while_held(body, held, last))
}

fn while_held(body: Body, held: Held, last: Option<LastWords>) -> Body {
    let begin = Some((body.into_data_stream(), held, last));
    Body::from_stream(stream::unfold(begin, |going_on| async move {
        let (mut pieces, mut held, last) = going_on?;
        tokio::select! {
            biased;
            () = held.ended() => {
                let cut = || io::Error::other("the credential has ended");
                Some((last.map(|LastWords(bytes)| bytes).ok_or_else(cut), None))
            }
            piece = pieces.next() => {
                Some((piece?.map_err(io::Error::other), Some((pieces, held, last))))
            }
        }
    }))
}
