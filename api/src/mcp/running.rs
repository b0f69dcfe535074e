//! Calls that go on, so that a client can take one back by a message of its own. Clients of the revisions with a handshake do
//! that; the others hang up. Clients number their requests alike, and several may share a credential and an address: so a call is told from
//! others by the session that the handshake has named, which its client alone knows. Nothing is kept of a session itself.

use std::{collections::HashMap, sync::Arc};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use lectern_shared::ids::{ApiTokenId, UserId, WorkspaceId};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;

use crate::services::actor::Actor;

/// Where a session is named, by the answer to a handshake and by every message after it.
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// Characters of a session's name.
const NAME: usize = 32;

/// What a client's messages have in common. It cannot be guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SessionId(u128);

impl SessionId {
    /// A new one.
    pub(super) fn generate() -> Self {
        Self(rand::random())
    }

    /// The one that a message names, which does not any more: the library that reads messages knows no sessions.
    pub(super) fn take_from(headers: &mut HeaderMap) -> Option<Self> {
        let named = headers.remove(SESSION)?;
        let name = named.to_str().ok().filter(|name| name.len() == NAME)?;
        u128::from_str_radix(name, 16).ok().map(Self)
    }

    /// Names it in an answer.
    pub(super) fn put_into(self, headers: &mut HeaderMap) {
        if let Ok(name) = HeaderValue::try_from(format!("{:032x}", self.0)) {
            headers.insert(SESSION, name);
        }
    }
}

/// Calls that were made alike.
type SimilarCalls = Vec<Arc<Notify>>;

/// The calls that go on in this process. Cheap to clone; clones share them.
#[derive(Clone, Default)]
pub(super) struct RunningCalls(Arc<Mutex<HashMap<CallKey, SimilarCalls>>>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CallKey {
    user: UserId,
    workspace: WorkspaceId,
    token: Option<ApiTokenId>,
    session: SessionId,
    id: String,
}

impl CallKey {
    fn new(actor: &Actor, session: SessionId, id: &Value) -> Self {
        Self {
            user: actor.user,
            workspace: actor.named_workspace(),
            token: actor.token(),
            session,
            id: id.to_string(),
        }
    }
}

/// A call that goes on until this is dropped.
pub(super) struct RunningCall {
    calls: RunningCalls,
    key: CallKey,
    cancelled: Arc<Notify>,
}

impl RunningCalls {
    /// Notes a call.
    pub(super) fn begin(&self, actor: &Actor, session: SessionId, id: &Value) -> RunningCall {
        let (key, cancelled) = (CallKey::new(actor, session, id), Arc::new(Notify::new()));
        self.0.lock().entry(key.clone()).or_default().push(Arc::clone(&cancelled));
        RunningCall { calls: self.clone(), key, cancelled }
    }

    /// Takes a call back, if it is clear which one is meant: a client may have used an id twice.
    pub(super) fn cancel(&self, actor: &Actor, session: SessionId, id: &Value) {
        if let Some([only]) = self.0.lock().get(&CallKey::new(actor, session, id)).map(Vec::as_slice) {
            only.notify_one();
        }
    }
}

impl RunningCall {
    /// Waits until it is taken back.
    pub(super) async fn cancelled(&self) {
        self.cancelled.notified().await;
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        let mut calls = self.calls.0.lock();
        if let Some(similar) = calls.get_mut(&self.key) {
            similar.retain(|other| !Arc::ptr_eq(other, &self.cancelled));
            if similar.is_empty() {
                calls.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use lectern_shared::model::workspace::{Role, WorkspaceQuotas};
    use serde_json::json;

    use super::*;

    fn actor() -> Actor {
        let user = UserId::generate();
        Actor::new(user, user.into(), Role::Asker, WorkspaceQuotas::default(), None)
    }

    #[test]
    fn a_session_is_read_as_it_was_named_and_what_names_none_is_left_out() {
        let (session, mut headers) = (SessionId(0x2a), HeaderMap::new());
        session.put_into(&mut headers);
        assert_eq!(headers[SESSION].len(), NAME);
        assert_eq!(SessionId::take_from(&mut headers), Some(session));
        assert_eq!(SessionId::take_from(&mut headers), None, "it was taken");
        for other in ["7", "", "x".repeat(NAME).as_str()] {
            headers.insert(SESSION, other.parse().unwrap());
            assert_eq!(SessionId::take_from(&mut headers), None, "{other}");
        }
    }

    #[test]
    fn a_call_is_taken_back_in_its_session_by_whoever_made_it_and_by_its_id_alone() {
        let (calls, ada, eve) = (RunningCalls::default(), actor(), actor());
        let [session, other] = [SessionId::generate(), SessionId::generate()];
        let call = calls.begin(&ada, session, &json!(1));
        calls.cancel(&eve, session, &json!(1));
        calls.cancel(&ada, other, &json!(1));
        calls.cancel(&ada, session, &json!("1"));
        calls.cancel(&ada, session, &json!(2));
        assert!(call.cancelled().now_or_never().is_none());
        calls.cancel(&ada, session, &json!(1));
        assert!(call.cancelled().now_or_never().is_some());
    }

    #[test]
    fn of_two_calls_under_one_id_neither_is_taken_back_and_nothing_stays_of_them() {
        let (calls, ada, session) = (RunningCalls::default(), actor(), SessionId::generate());
        let begin = || calls.begin(&ada, session, &json!(1));
        let (one, two) = (begin(), begin());
        calls.cancel(&ada, session, &json!(1));
        assert!(one.cancelled().now_or_never().is_none() && two.cancelled().now_or_never().is_none());
        drop(one);
        calls.cancel(&ada, session, &json!(1));
        assert!(two.cancelled().now_or_never().is_some());
        drop(two);
        assert!(calls.0.lock().is_empty());
    }
}
