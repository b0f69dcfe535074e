//! The bytes that a document was made of, as an answer.

mod file_name;

use std::io;

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::{Bytes, BytesMut};
use futures::{Stream, stream};
use lectern_shared::{
    blobs::BlobReader,
    ids::DocumentId,
    model::document::{DocumentType, StoredFile},
    secrets::hex,
};
use tokio::io::AsyncReadExt;

use crate::{error::ApiError, response::ApiResult, services::documents::DocumentService};

/// Bytes that are read at a time.
const PIECE: usize = 64 << 10;

/// A document's file; 304 when the request names it as one that its sender has.
pub(crate) async fn answer(
    documents: &DocumentService,
    id: DocumentId,
    file: &StoredFile,
    headers: &HeaderMap,
) -> ApiResult<Response> {
    let tag = format!("\"{}\"", hex(&file.source_sha256));
    let value = |text: String| HeaderValue::from_str(&text).map_err(|_| ApiError::internal());
    let caching = [
        (header::ETAG, value(tag.clone())?),
        // It is for those who may see the document, as long as they may.
        (header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache")),
    ];
    if is_known(headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, caching).into_response());
    }
    let reader = documents.open_file(id, file).await?;
    let media_type = file.source_mime.as_deref().unwrap_or_else(|| media_type(file.r#type));
    let (essence, _) = media_type.split_once(';').unwrap_or((media_type, ""));
    let disposition = file_name::disposition(&file.name, essence, file.source_name.as_deref());
    let headers = [
        (header::CONTENT_TYPE, value(media_type.to_owned())?),
        (header::CONTENT_LENGTH, HeaderValue::from(file.source_bytes)),
        (header::CONTENT_DISPOSITION, value(disposition)?),
    ];
    Ok((caching, headers, Body::from_stream(pieces(reader))).into_response())
}

/// Whether a request says that its sender has what this tag is of.
pub(crate) fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    headers.get_all(header::IF_NONE_MATCH).iter().any(|known| names(known, tag))
}

/// Whether a value of `If-None-Match` names this tag.
fn names(value: &HeaderValue, tag: &str) -> bool {
    let known = value.to_str().unwrap_or_default();
    known
        .split(',')
        .map(str::trim)
        .any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

/// What a file is sent as. Nobody knows its encoding.
fn media_type(r#type: DocumentType) -> &'static str {
    match r#type {
        DocumentType::Pdf => "application/pdf",
        DocumentType::Csv => "text/csv",
        DocumentType::Txt => "text/plain",
        DocumentType::Url | DocumentType::Video => "application/octet-stream",
    }
}

fn pieces(reader: BlobReader) -> impl Stream<Item = io::Result<Bytes>> {
    stream::try_unfold(reader, |mut reader| async {
        let mut piece = BytesMut::with_capacity(PIECE);
        let read = reader.read_buf(&mut piece).await?;
        Ok((read > 0).then(|| (piece.freeze(), reader)))
    })
}
