//! Whether a request is in hand on a connection: from its head until its answer is sent. A connection without one gives way when
//! there is no room for others.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use axum::body::{Body, Bytes, HttpBody};
use http_body::{Frame, SizeHint};

use crate::shares::ResourceShare;

/// What happens on a connection, for its share. Cheap to clone; clones tell of the same connection.
#[derive(Clone)]
pub(super) struct ConnectionActivity(Arc<ActivityState>);

struct ActivityState {
    share: ResourceShare,
    in_hand: AtomicUsize,
    /// Bytes that came since an answer was last made.
    received: AtomicU64,
}

impl ConnectionActivity {
    pub(super) fn new(share: ResourceShare) -> Self {
        Self(Arc::new(ActivityState { share, in_hand: AtomicUsize::new(0), received: AtomicU64::new(0) }))
    }

    /// A request has come.
    pub(super) fn begin(&self) -> InFlightRequest {
        self.0.in_hand.fetch_add(1, Ordering::Relaxed);
        self.0.share.busy();
        InFlightRequest(self.clone())
    }

    /// So many bytes have come.
    pub(super) fn received(&self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.0.received.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The bytes that have come since this was last asked.
    pub(super) fn take_received(&self) -> u64 {
        self.0.received.swap(0, Ordering::Relaxed)
    }

    /// All that there was to send is sent.
    pub(super) fn sent(&self) {
        if self.0.in_hand.load(Ordering::Relaxed) == 0 {
            self.0.share.waits();
        }
    }

    /// Waits until another client has the connection's place.
    pub(super) async fn evicted(&self) {
        self.0.share.evicted().await;
    }
}

/// A request, for as long as something of its answer is still to be made.
pub(super) struct InFlightRequest(ConnectionActivity);

impl InFlightRequest {
    /// The request stays in hand until this body has ended.
    pub(super) fn track_body(self, body: Body) -> TrackedBody {
        TrackedBody { body, _in_hand: self }
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.0.0.in_hand.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The body of an answer.
pub(super) struct TrackedBody {
    body: Body,
    _in_hand: InFlightRequest,
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
