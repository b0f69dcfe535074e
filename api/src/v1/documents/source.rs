//! The file that a document was uploaded with.

use std::io;

use axum::{
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::IntoResponse,
};
use bytes::{Bytes, BytesMut};
use futures::{Stream, stream};
use lectern_shared::{blobs::BlobReader, ids::DocumentId, model::document::DocumentType, secrets::hex};
use tokio::io::AsyncReadExt;
use utoipa::ToSchema;

use super::file_name;
use crate::{
    auth::Caller, error::ApiError, extract::PathId, response::ApiResult, services::documents::DocumentService,
};

/// Bytes that are read at a time.
const PIECE: usize = 64 << 10;

/// Bytes.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "it is written down for the documentation only")]
struct SourceFileSchema(Vec<u8>);

/// Get a document's file
///
/// Gives back the bytes that the document was uploaded with, under the media type that was told when they came. `ETag` is their
/// SHA-256; with `If-None-Match`, the answer is 304 when they are the same. A document that was not uploaded has no file.
#[utoipa::path(
    get,
    path = "/documents/{id}/source",
    tag = "Documents",
    operation_id = "getDocumentSource",
    params(("id" = String, Path, description = "The document's id")),
    responses(
        (
            status = 200,
            description = "The file, as it was uploaded",
            content((inline(SourceFileSchema) = "*/*")),
            headers(
                ("Content-Disposition" = String, description = "A name to save the file under"),
                ("ETag" = String, description = "SHA-256 of the file, in hexadecimal"),
            ),
        ),
        (status = 304, description = "The file is the one that `If-None-Match` names"),
    ),
)]
pub(super) async fn download(
    State(documents): State<DocumentService>,
    caller: Caller,
    headers: HeaderMap,
    PathId(id): PathId<DocumentId>,
) -> ApiResult {
    let file = documents.file(&caller.actor(), id).await?;
    let tag = format!("\"{}\"", hex(&file.source_sha256));
    let value = |text: String| HeaderValue::from_str(&text).map_err(|_| ApiError::internal());
    let etag = value(tag.clone())?;
    if headers.get_all(header::IF_NONE_MATCH).iter().any(|known| names(known, &tag)) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, etag)]).into_response());
    }
    let reader = documents.open_file(id, &file).await?;
    let media_type = file.source_mime.as_deref().unwrap_or_else(|| media_type(file.r#type));
    let disposition = file_name::disposition(&file.name, media_type, file.source_name.as_deref());
    let headers = [
        (header::CONTENT_TYPE, value(media_type.to_owned())?),
        (header::CONTENT_LENGTH, HeaderValue::from(file.source_bytes)),
        (header::CONTENT_DISPOSITION, value(disposition)?),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::ETAG, etag),
    ];
    Ok((headers, Body::from_stream(pieces(reader))).into_response())
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
