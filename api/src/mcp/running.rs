//! Calls that go on, so that a client can take one back by a message of its own. Clients of the revisions with a handshake do
//! that; the others hang up. Without sessions, a call is told from others by who made it, from where, and under which id.

use std::{collections::HashMap, net::IpAddr, sync::Arc};

use lectern_shared::ids::{ApiTokenId, UserId, WorkspaceId};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;

use crate::services::actor::Actor;

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
    address: Option<IpAddr>,
    id: String,
}

impl CallKey {
    fn new(actor: &Actor, id: &Value) -> Self {
        Self {
            user: actor.user,
            workspace: actor.named_workspace(),
            token: actor.token(),
            address: actor.origin().address,
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
    /// Notes a call; not one by a credential that many may hold. They may be behind one address, and choose the same ids.
    pub(super) fn begin(&self, actor: &Actor, id: &Value) -> Option<RunningCall> {
        if actor.is_shared() {
            return None;
        }
        let (key, cancelled) = (CallKey::new(actor, id), Arc::new(Notify::new()));
        self.0.lock().entry(key.clone()).or_default().push(Arc::clone(&cancelled));
        Some(RunningCall { calls: self.clone(), key, cancelled })
    }

    /// Takes a call back, if it is clear which one is meant: several clients with one token may use the same ids.
    pub(super) fn cancel(&self, actor: &Actor, id: &Value) {
        if let Some([only]) = self.0.lock().get(&CallKey::new(actor, id)).map(Vec::as_slice) {
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
    use lectern_shared::{
        ids::AgentId,
        model::workspace::{Role, WorkspaceQuotas},
    };
    use serde_json::json;

    use super::*;
    use crate::services::actor::TokenScope;

    fn actor() -> Actor {
        with_token(None)
    }

    fn with_token(token: Option<TokenScope>) -> Actor {
        let user = UserId::generate();
        Actor::new(user, user.into(), Role::Asker, WorkspaceQuotas::default(), token)
    }

    #[test]
    fn calls_by_a_token_that_many_hold_are_not_noted() {
        let calls = RunningCalls::default();
        let plain = TokenScope {
            id: ApiTokenId::generate(),
            agent: None,
            is_publishable: false,
            is_bounded: false,
            role: None,
        };
        assert!(calls.begin(&with_token(Some(plain)), &json!(1)).is_some());
        for shared in [
            TokenScope { is_publishable: true, ..plain },
            TokenScope { agent: Some(AgentId::generate()), ..plain },
        ] {
            assert!(calls.begin(&with_token(Some(shared)), &json!(1)).is_none(), "{shared:?}");
        }
    }

    #[test]
    fn a_call_is_taken_back_by_whoever_made_it_and_by_its_id_alone() {
        let (calls, ada, eve) = (RunningCalls::default(), actor(), actor());
        let call = calls.begin(&ada, &json!(1)).unwrap();
        calls.cancel(&eve, &json!(1));
        calls.cancel(&ada, &json!("1"));
        calls.cancel(&ada, &json!(2));
        assert!(call.cancelled().now_or_never().is_none());
        calls.cancel(&ada, &json!(1));
        assert!(call.cancelled().now_or_never().is_some());
    }

    #[test]
    fn of_two_calls_under_one_id_neither_is_taken_back_and_nothing_stays_of_them() {
        let (calls, ada) = (RunningCalls::default(), actor());
        let begin = || calls.begin(&ada, &json!(1)).unwrap();
        let (one, two) = (begin(), begin());
        calls.cancel(&ada, &json!(1));
        assert!(one.cancelled().now_or_never().is_none() && two.cancelled().now_or_never().is_none());
        drop(one);
        calls.cancel(&ada, &json!(1));
        assert!(two.cancelled().now_or_never().is_some());
        drop(two);
        assert!(calls.0.lock().is_empty());
    }
}
