//! Answers that go on for long end soon after the credential that opened them: it is looked at once when a request comes, and then
//! again for as long as the answer goes on. One task asks for all of them together, and only while there are some.

use std::{io, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use futures::{StreamExt, stream};
use lectern_shared::{ids::WorkspaceId, model::workspace::Role};
use parking_lot::Mutex;

use crate::{
    error::ApiError,
    services::credentials::{Authenticator, Credential},
    watched::{NewsSubscription, WatchList},
};

/// How often the credentials are looked at. What they opened has ended within five seconds, a slow answer of the database included.
const EVERY: Duration = Duration::from_secs(2);
/// Credentials that one question to the database is about, at most.
const BATCH: usize = 500;

/// The credentials by which something long is being answered. Cheap to clone; clones share them.
#[derive(Clone)]
pub(crate) struct CredentialMonitor(Arc<MonitorState>);

struct MonitorState {
    authenticator: Authenticator,
    /// Those that are held, and whether each has ended.
    held: WatchList<Credential, bool>,
}

/// Something that goes on as long as its credential is in force.
struct CredentialSubscription(NewsSubscription<Credential, bool>);

impl CredentialMonitor {
    pub(crate) fn new(authenticator: Authenticator) -> Self {
        Self(Arc::new(MonitorState { authenticator, held: WatchList::default() }))
    }

    fn subscribe(&self, credential: Credential) -> CredentialSubscription {
        let watch = || {
            tokio::spawn(self.clone().watch());
        };
        CredentialSubscription(self.0.held.subscribe(credential, watch))
    }

    /// Looks at what is held until nothing is.
    async fn watch(self) {
        let mut failing = false;
        loop {
            tokio::time::sleep(EVERY).await;
            let Some(held) = self.0.held.keys() else { return };
            let mut problem = None;
            for some in held.chunks(BATCH) {
                match self.0.authenticator.ended(some).await {
                    Ok(ended) => self.0.held.tell(ended.into_iter().map(|credential| (credential, true))),
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
}

impl CredentialSubscription {
    async fn ended(&mut self) {
        // The sender is there for as long as this is.
        let _ = self.0.news.wait_for(|ended| *ended).await;
    }
}

/// By what a request was opened. It goes with every request; whatever authenticates notes it here, and the last note counts.
#[derive(Clone)]
pub(crate) struct RequestCredential {
    list: CredentialMonitor,
    by: Arc<Mutex<Option<Credential>>>,
}

impl RequestCredential {
    pub(crate) fn note(&self, credential: Credential) {
        *self.by.lock() = Some(credential);
    }

    /// Notes that a sign-in opens another workspace than the request names, in which its account has this role.
    pub(crate) fn note_workspace(&self, opened: WorkspaceId, with: Role) {
        if let Some(Credential::SignIn { workspace, role, .. }) = self.by.lock().as_mut() {
            (*workspace, *role) = (opened, with);
        }
    }

    fn hold(&self) -> Option<CredentialSubscription> {
        let credential = *self.by.lock();
        credential.map(|credential| self.list.subscribe(credential))
    }

    /// Goes on with `work` as long as the credential is in force: for what takes long before there is an answer at all.
    ///
    /// # Errors
    /// 401 when the credential has ended.
    pub(crate) async fn while_in_force<T>(
        &self,
        work: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        let Some(mut held) = self.hold() else { return work.await };
        tokio::select! {
            biased;
            answer = work => answer,
            () = held.ended() => Err(ApiError::credential_ended()),
        }
    }
}

/// What an answer's stream says last when it ends before its time, in its own form. Put into the answer's extensions by whoever
/// streams; a stream without one is cut off, so that nobody takes it for whole.
#[derive(Clone)]
pub(crate) struct TerminationNotice(pub(crate) Bytes);

/// Ends answers whose length is not known beforehand soon after the credential that opened them has ended.
pub(crate) async fn guard(
    State(list): State<CredentialMonitor>,
    mut request: Request,
    next: Next,
) -> Response {
    let opened = RequestCredential { list, by: Arc::default() };
    request.extensions_mut().insert(opened.clone());
    let mut response = next.run(request).await;
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    let Some(held) = opened.hold() else { return response };
    let last = response.extensions_mut().remove::<TerminationNotice>();
    response.map(|body| end_with_credential(body, held, last))
}

fn end_with_credential(body: Body, held: CredentialSubscription, last: Option<TerminationNotice>) -> Body {
    let begin = Some((body.into_data_stream(), held, last));
    Body::from_stream(stream::unfold(begin, |going_on| async move {
        let (mut pieces, mut held, last) = going_on?;
        tokio::select! {
            biased;
            () = held.ended() => {
                let cut = || io::Error::other("the credential has ended");
                Some((last.map(|TerminationNotice(bytes)| bytes).ok_or_else(cut), None))
            }
            piece = pieces.next() => {
                Some((piece?.map_err(io::Error::other), Some((pieces, held, last))))
            }
        }
    }))
}
