//! Uploads. The file goes to the blob store while it is sent; the document is made when all of the form is there. What is left
//! of an upload that comes to no good end is purged like a deleted document.

mod about;
mod form;
mod kind;

use std::{fmt, io, pin::pin, time::Duration};

use axum::{
    body::Bytes,
    extract::{DefaultBodyLimit, Request, State},
    http::StatusCode,
};
use bytes::BytesMut;
use futures::{StreamExt, stream};
use lectern_shared::{
    blobs::{BlobError, Stored},
    db::{
        documents::{NewDocument as Row, uploads},
        storage::{self, Left},
    },
    format::SNIFFED,
    ids::{DocumentId, UserId},
    model::document::DocumentType,
    runtime::Runtime,
};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use self::{
    about::{About, Texts},
    form::{Form, Part, late},
    kind::Told,
};
use super::{admit, body::PageSchema, queue_new, source, splitter::SplitterSchema, view, view::DocumentView};
use crate::{
    auth::Caller,
    error::{ApiError, FieldError},
    idempotency::IdempotencyKey,
    openapi::Data,
    response::Answer,
    state::AppState,
    upload_slots::UploadSlots,
};

/// The longest that an upload may take.
const LONGEST: Duration = Duration::from_hours(1);
/// What is stored of an upload is purged after so long, unless it has become a document. Well after the longest upload, so that
/// none is purged that is just being completed.
const RESERVED: Duration = Duration::from_hours(2);

pub(super) fn router() -> OpenApiRouter<AppState> {
    // The file is measured by the blob store, and the other parts here.
    OpenApiRouter::new().routes(routes!(upload)).layer(DefaultBodyLimit::disable())
}

/// A file, and what is to be said of the document that is made of it.
#[derive(ToSchema)]
#[schema(as = Upload)]
#[expect(dead_code, reason = "it is written down for the documentation only")]
struct UploadSchema {
    /// The file: PDF; text, Markdown, HTML, XML or JSON; a table (CSV, TSV) or a spreadsheet (XLSX, XLSM, XLSB, XLS, ODS); DOCX,
    /// PPTX, ODT or EPUB; captions (VTT, SRT, SBV, TTML). At most 100 MiB unless the service is set otherwise.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
    /// How to call the document. Without it, it is called like the file.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S", value_type = String, required = false)]
    name: Option<String>,
    /// `PDF`, `TXT`, `CSV` or `VIDEO`, where it is not what the file shows: `PDF` for a PDF, `CSV` for tables and spreadsheets,
    /// `VIDEO` for captions, else `TXT`. It must fit the file: a text can be a table or the transcript of a video too. A web page
    /// is `TXT`; `URL` is for pages that are to be fetched.
    #[schema(value_type = UploadTypeSchema, required = false)]
    r#type: Option<DocumentType>,
    /// Anything worth saying of it.
    #[schema(max_length = 10_000, value_type = String, required = false)]
    description: Option<String>,
    /// Your own values, as the text of a JSON object; at most 16 KiB.
    #[schema(value_type = Object, required = false)]
    metadata: Option<Value>,
    /// How to cut the text into passages, as the text of a JSON object.
    #[schema(value_type = SplitterSchema, required = false)]
    splitter: Option<Value>,
    /// PDF: the first page to ingest, counted from 1. Ignored for other types.
    #[schema(value_type = PageSchema, required = false)]
    from_page: Option<u32>,
    /// PDF: the last page to ingest. Ignored for other types.
    #[schema(value_type = PageSchema, required = false)]
    to_page: Option<u32>,
}

/// What an uploaded file can be.
#[derive(ToSchema)]
#[schema(as = UploadType, rename_all = "UPPERCASE")]
#[expect(dead_code, reason = "it is written down for the documentation only")]
enum UploadTypeSchema {
    Pdf,
    Txt,
    Csv,
    Video,
}

/// Upload a document
///
/// Makes a document of a file, and queues it to be ingested, as creating one does. The file is sent as the part `file` of a
/// form; the other parts may come before or after it, and those that are not known are ignored. What the file is, is told by its
/// bytes first, then by its name, then by the content type of its part; one that cannot be read is a 415. With an
/// `Idempotency-Key`, the same request is one with the same file, name and other parts.
#[utoipa::path(
    post,
    path = "/documents/upload",
    tag = "Documents",
    operation_id = "uploadDocument",
    request_body(
        content = UploadSchema,
        content_type = "multipart/form-data",
        example = json!({"file": "(the file)", "name": "Handbook", "metadata": "{\"department\": \"people\"}"}),
    ),
    responses(
        (
            status = 200,
            description = "The new document",
            body = inline(Data<DocumentView>),
            example = json!({"success": true, "data": uploaded_example()}),
        ),
        (
            status = 503,
            description = "A part of the service is away, or too many uploads are going on (`too_many_uploads`). `Retry-After` \
                           says when to try again.",
        ),
    ),
)]
async fn upload(
    State(runtime): State<Runtime>,
    State(slots): State<UploadSlots>,
    caller: Caller,
    request: Request,
) -> Answer {
    let key = IdempotencyKey::of(request.headers())?;
    let path = request.uri().path().to_owned();
    let form = Form::of(request).await?;
    // Nothing of the form is read before its turn, so that its sender waits too. Held until the document is made.
    let _slot = slots.take(caller.id()).await?;
    let reading = Box::pin(receive(&runtime, &caller, form));
    let Received { file, reservation, told, about } =
        tokio::time::timeout(LONGEST, reading).await.map_err(|_| late())??;
    let once = key.once(&caller, &path, about.identity(&told, &file).as_bytes());
    if let Some(answer) = once.earlier(&runtime).await? {
        return Ok(answer);
    }
    let id = reservation.id;
    let document = Row {
        id,
        user_id: caller.id(),
        r#type: about.r#type,
        name: &about.name,
        description: &about.description,
        url: "",
        content: None,
        metadata: about.metadata.as_ref(),
        splitter: about.splitter.as_ref(),
        pages: about.pages,
        authorization_sealed: None,
    };
    let stored = uploads::File {
        key: &file.key,
        bytes: file.bytes,
        sha256: &file.sha256,
        name: told.file_name.as_deref(),
        mime: told.media_type,
    };
    let mut tx = runtime.db.begin().await?;
    // Others of the user's may have come meanwhile.
    admit(&runtime, &mut tx, caller.id(), file.bytes).await?;
    if !uploads::complete(&mut tx, &document, &stored, runtime.jobs.now()).await? {
        return Err(late());
    }
    let view = queue_new(&runtime, &mut tx, &caller, id).await?;
    let answer = once.commit(&runtime, tx, &view).await?;
    runtime.jobs.doorbell().ring(1);
    Ok(answer)
}

/// An upload that is all there.
struct Received {
    file: Stored,
    reservation: Reservation,
    told: Told,
    about: About,
}

async fn receive(runtime: &Runtime, caller: &Caller, mut form: Form) -> Result<Received, ApiError> {
    let mut texts = Texts::within(runtime.settings.limits.body_bytes);
    let mut file = None;
    while let Some(part) = form.next().await? {
        if part.name() != Some("file") {
            texts.add(part).await?;
        } else if file.is_none() {
            file = Some(store(runtime, caller.id(), part).await?);
        } else {
            texts.refuse("file", "must be given once");
            break;
        }
    }
    let Some(Uploaded { stored, reservation, told }) = file else {
        return Err(texts.without_file());
    };
    let about = texts.read(&told)?;
    Ok(Received { file: stored, reservation, told, about })
}

/// A file that is in the blob store.
struct Uploaded {
    stored: Stored,
    reservation: Reservation,
    told: Told,
}

/// Stores a file, under the id of a document that is to be.
async fn store(runtime: &Runtime, user: UserId, mut part: Part<'_>) -> Result<Uploaded, ApiError> {
    let name = part.file_name().unwrap_or_default().to_owned();
    let content_type = part.content_type();
    let mut head = BytesMut::new();
    while head.len() < SNIFFED
        && let Some(chunk) = part.chunk().await?
    {
        head.extend_from_slice(&chunk);
    }
    if head.is_empty() {
        let field = FieldError { path: "file".to_owned(), message: "must not be empty".to_owned() };
        return Err(ApiError::invalid(vec![field]));
    }
    let told = Told::of(&head, &name, content_type.as_deref())?;
    let (reservation, left) = Reservation::new(runtime, user).await?;
    let rest = stream::try_unfold(part, |mut part| async {
        match part.chunk().await {
            Ok(chunk) => Ok(chunk.map(|chunk| (chunk, part))),
            Err(error) => Err(io::Error::other(Broken(error))),
        }
    });
    let whole = stream::iter([Ok::<Bytes, io::Error>(head.freeze())]).chain(rest);
    let limit = runtime.settings.limits.source_bytes;
    let allowed = left.map_or(limit, |left| left.bytes.min(limit));
    let stored =
        runtime.blobs.put(reservation.id, pin!(whole), allowed).await.map_err(|error| match left {
            Some(left) if allowed < limit && matches!(error, BlobError::TooLarge { .. }) => left.over.into(),
            Some(_) | None => explain(error),
        })?;
    Ok(Uploaded { stored, reservation, told })
}

/// What the sender did, on its way through the blob store.
#[derive(Debug)]
struct Broken(ApiError);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Broken {}

fn explain(error: BlobError) -> ApiError {
    match error {
        BlobError::TooLarge { limit } => {
            let message = format!("The file may have at most {limit} bytes.");
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
        }
        BlobError::Io(error) => match error.downcast::<Broken>() {
            Ok(Broken(error)) => error,
            Err(error) => source::failed(&error.into()),
        },
        error => source::failed(&error),
    }
}

/// An upload that has begun. When it is dropped, it is given up: what is stored of it is purged, unless it has become a
/// document.
struct Reservation {
    runtime: Runtime,
    id: DocumentId,
}

impl Reservation {
    /// Begins one, and tells how much the user may still store.
    async fn new(runtime: &Runtime, user: UserId) -> Result<(Self, Option<Left>), ApiError> {
        let id = DocumentId::generate();
        let now = runtime.jobs.now();
        let mut tx = runtime.db.begin().await?;
        let left = storage::left(&mut tx, user, runtime.settings.limits.storage_bytes).await??;
        uploads::reserve(&mut tx, user, id, now, now.plus(RESERVED)).await?;
        tx.commit().await?;
        Ok((Self { runtime: runtime.clone(), id }, left))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let (runtime, id) = (self.runtime.clone(), self.id);
        let give_up = async move {
            let mut tx = runtime.db.begin_essential().await?;
            uploads::give_up(&mut tx, id, runtime.jobs.now()).await?;
            tx.commit().await
        };
        if let Ok(handle) = Handle::try_current() {
            handle.spawn(async move {
                // Its time will be over by itself.
                if let Err(error) = give_up.await {
                    tracing::warn!(%error, document = %id, "an upload could not be given up yet");
                }
            });
        }
    }
}

/// A document that was just uploaded, for the documentation.
fn uploaded_example() -> Value {
    let mut document = view::queued_example();
    document["url"] = json!("");
    document["from_page"] = Value::Null;
    document["to_page"] = Value::Null;
    document
}
