//! What a handler leaves of a request's body. A refusal is often sent before the body was read; if the connection were
//! closed on the rest, the client would see it break instead of the refusal.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::{Body, Bytes, HttpBody};
use futures::StreamExt;
use http_body::{Frame, SizeHint};
use parking_lot::Mutex;

/// The most that is read of a body nobody wants, in bytes.
const MOST: usize = 32 << 20;
/// The longest that it is read.
const LONGEST: Duration = Duration::from_secs(10);

/// A body of which two ends hold on: the handler, and whoever reads the rest.
#[derive(Clone)]
pub(crate) struct DrainableBody(Arc<Mutex<Body>>);

impl DrainableBody {
    pub(crate) fn new(body: Body) -> Self {
        Self(Arc::new(Mutex::new(body)))
    }

    /// Reads the rest in the background, within bounds; does nothing when there is none.
    pub(crate) fn drain(self) {
        if self.is_end_stream() {
            return;
        }
        tokio::spawn(tokio::time::timeout(LONGEST, async move {
            let mut parts = Body::new(self).into_data_stream();
            let mut read = 0;
            while let Some(Ok(part)) = parts.next().await {
                read += part.len();
                if read > MOST {
                    break;
                }
            }
        }));
    }
}

impl HttpBody for DrainableBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut *self.0.lock()).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.lock().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.lock().size_hint()
    }
}
