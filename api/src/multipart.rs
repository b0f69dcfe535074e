//! A form that is read while it is sent, in memory that does not grow with it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{
    body::{Body, Bytes},
    extract::{
        FromRequest, Multipart, Request,
        multipart::{Field, MultipartError},
    },
    http::header::CONTENT_DISPOSITION,
};
use futures::{StreamExt, stream};
use lectern_shared::disposition::extended_file_name;
use tokio::time::timeout;

use crate::{
    body::{BODY_SILENCE, media},
    error::{ApiError, ApiErrorKind},
    services::uploads::{SentFile, late},
};

/// Bytes that may come without being part of a part's content, or before the reader has got any of that: the headers of a part,
/// for instance. The reader of forms gathers them without an end.
const MOST_UNREAD: usize = 4 << 20;
/// More parts than any form has.
const MOST_PARTS: usize = 100;
/// Bytes of the longest word.
const WORD: usize = 255;

/// A form.
pub(crate) struct MultipartForm {
    parts: Multipart,
    unread: Arc<AtomicUsize>,
    seen: usize,
}

impl MultipartForm {
    /// # Errors
    /// When the request is no form.
    pub(crate) async fn of(request: Request) -> Result<Self, ApiError> {
        let wanted = "Send the file as a form, with Content-Type: multipart/form-data.";
        media::check(request.headers(), |kind| kind == "multipart/form-data", wanted)?;
        let unread = Arc::<AtomicUsize>::default();
        let (head, body) = request.into_parts();
        let counter = Arc::clone(&unread);
        let body = body.into_data_stream().map(move |piece| {
            let piece = piece?;
            let before = counter.fetch_add(piece.len(), Ordering::Relaxed);
            if before + piece.len() > MOST_UNREAD {
                return Err(axum::Error::new("too much of it is no content"));
            }
            Ok(piece)
        });
        let parts = Multipart::from_request(Request::from_parts(head, Body::from_stream(body)), &()).await;
        Ok(Self { parts: parts.map_err(|_| malformed())?, unread, seen: 0 })
    }

    /// The next part. The one before must have been read to its end.
    pub(crate) async fn next(&mut self) -> Result<Option<MultipartPart<'_>>, ApiError> {
        self.seen += 1;
        if self.seen > MOST_PARTS {
            return Err(malformed());
        }
        let field = in_time(self.parts.next_field()).await?;
        self.unread.store(0, Ordering::Relaxed);
        Ok(field.map(|field| MultipartPart { field, unread: Arc::clone(&self.unread) }))
    }
}

/// A part of a form.
pub(crate) struct MultipartPart<'a> {
    field: Field<'a>,
    unread: Arc<AtomicUsize>,
}

impl<'a> MultipartPart<'a> {
    pub(crate) fn name(&self) -> Option<&str> {
        self.field.name()
    }

    /// The file that is sent as this part.
    pub(crate) fn into_file(self) -> SentFile<'a> {
        let disposition = self.field.headers().get(CONTENT_DISPOSITION);
        let disposition = disposition.and_then(|value| std::str::from_utf8(value.as_bytes()).ok());
        // Forms should do without it (RFC 7578), but some clients write it, and what they put into the plain name beside it is a substitute of
        // which not even the end need be the name's.
        let name = disposition.and_then(extended_file_name).unwrap_or_else(|| {
            // How browsers write a quotation mark in a name. Source: HTML Standard, "multipart/form-data".
            self.field.file_name().unwrap_or_default().replace("%22", "\"")
        });
        let content_type = self.field.content_type().map(str::to_owned);
        let bytes = stream::try_unfold(self, |mut part| async {
            let chunk = part.chunk().await?;
            Ok::<_, ApiError>(chunk.map(|chunk| (chunk, part)))
        });
        SentFile { name, content_type, bytes: bytes.boxed() }
    }

    /// Some more of the content; none at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, ApiError> {
        let chunk = in_time(self.field.chunk()).await?;
        self.unread.store(0, Ordering::Relaxed);
        Ok(chunk)
    }
}

/// How many bytes the parts besides the file may have in sum, known or not.
pub(crate) struct PartBudget {
    limit: u64,
    room: usize,
}

impl PartBudget {
    pub(crate) fn within(limit: u64) -> Self {
        Self { limit, room: usize::try_from(limit).unwrap_or(usize::MAX) }
    }

    /// Reads a part to its end, and gives at most `kept` bytes of it.
    ///
    /// # Errors
    /// When there is no room for it.
    pub(crate) async fn read(
        &mut self,
        mut part: MultipartPart<'_>,
        kept: usize,
    ) -> Result<Vec<u8>, ApiError> {
        let mut bytes = Vec::new();
        while let Some(chunk) = part.chunk().await? {
            self.room = self.room.checked_sub(chunk.len()).ok_or_else(|| too_large(self.limit))?;
            let wanted = kept.saturating_sub(bytes.len()).min(chunk.len());
            bytes.extend_from_slice(chunk.get(..wanted).unwrap_or_default());
        }
        Ok(bytes)
    }

    /// Reads a part to its end that is one word; none when it is empty, too long or no text.
    ///
    /// # Errors
    /// When there is no room for it.
    pub(crate) async fn read_word(&mut self, part: MultipartPart<'_>) -> Result<Option<String>, ApiError> {
        let word = String::from_utf8(self.read(part, WORD + 1).await?).ok();
        Ok(word.filter(|word| (1..=WORD).contains(&word.len())))
    }
}

fn too_large(limit: u64) -> ApiError {
    let message = format!("The parts besides the file may have at most {limit} bytes.");
    ApiError::new(ApiErrorKind::TooLarge, "too_large", message)
}

async fn in_time<T>(read: impl Future<Output = Result<T, MultipartError>>) -> Result<T, ApiError> {
    timeout(BODY_SILENCE, read).await.map_err(|_| late())?.map_err(|_| malformed())
}

fn malformed() -> ApiError {
    let message = "The body is not a valid multipart/form-data form, or ended before it was complete.";
    ApiError::new(ApiErrorKind::Malformed, "malformed_form", message)
}
