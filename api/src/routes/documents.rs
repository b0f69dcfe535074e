//! Documents and their ingestion.

use axum::{
    Router,
    extract::{FromRequestParts, State},
    http::request::Parts,
    routing::{get, post},
};
use lectern_shared::{
    db::{self, Json, chunks, documents::NewDocument},
    ids::DocumentId,
    model::{
        document::{Chunk, Document, DocumentType, PageRange, SourceAuthorization, Splitter, SplitterType},
        job::{Ingestion, JobState},
    },
    runtime::Runtime,
    secrets::Place,
};
use serde_json::{Map, Value, json};
use url::Url;

use super::{DESCRIPTION, NAME};
use crate::{
    auth::Caller,
    error::{ApiError, FieldError},
    extract::{Fields, FromFields, PathId, Valid, parameter},
    response::{Answer, Paging, data, list},
    state::AppState,
};

pub(crate) fn router() -> Router<AppState> {
    Router::new()
        .route("/documents", get(index).post(create))
        .route("/documents/{id}", get(find).delete(remove))
        .route("/documents/{id}/chunks", get(list_chunks))
        .route("/documents/{id}/ingest", post(ingest))
        .route("/documents/{id}/cancel", post(cancel))
}

/// Longest address, in characters.
const URL: usize = 8_000;

fn show(document: &Document) -> Value {
    json!({
        "id": document.id,
        "userId": document.user_id,
        "user": {},
        "type": document.r#type,
        "url": document.url,
        "name": document.name,
        "description": document.description,
        "metadata": document.metadata.as_ref().map(|Json(metadata)| metadata),
        "splitter": document.splitter.as_ref().map(|Json(splitter)| splitter),
        "from_page": document.from_page,
        "to_page": document.to_page,
        "createdAt": document.created_at,
        "updatedAt": document.updated_at,
        "index": document.search_index.as_ref().map(|Json(index)| index),
        "ingestion": show_ingestion(&document.ingestion),
        "Agent": null,
    })
}

fn show_ingestion(ingestion: &Ingestion) -> Value {
    let status = match ingestion.state {
        JobState::Queued => "QUEUED",
        JobState::Running => "RUNNING",
        JobState::Done => "SUCCEEDED",
        JobState::Dead => "FAILED",
        JobState::Cancelled => "CANCELLED",
    };
    json!({
        "status": status,
        "stage": ingestion.stage,
        "progress": ingestion.progress.as_ref().map(|Json(progress)| progress),
        "attempts": ingestion.attempts,
        "error": ingestion.last_error.as_ref().map(|Json(error)| error),
        "warnings": ingestion.warnings.0,
        "source": ingestion.source.as_ref().map(|Json(source)| source),
        "queuedAt": ingestion.queued_at,
        "startedAt": ingestion.started_at,
        "finishedAt": ingestion.finished_at,
    })
}

struct Body {
    r#type: DocumentType,
    name: String,
    description: String,
    url: String,
    content: Option<String>,
    metadata: Option<Map<String, Value>>,
    splitter: Option<Splitter>,
    pages: PageRange,
    authorization: Option<SourceAuthorization>,
}

impl FromFields for Body {
    fn from_fields(fields: &mut Fields<'_>) -> Self {
        let r#type = fields.choice("type", &DocumentType::choices()).unwrap_or(DocumentType::Txt);
        let url = fields.optional_text("url", URL).map(|url| url.trim().to_owned()).unwrap_or_default();
        let content = fields.optional_text("content", usize::MAX);
        let refused =
            ["url", "content"].iter().any(|name| fields.get(name).is_some_and(|value| !value.is_string()));
        match (url.is_empty(), &content) {
            // Of a wrong type, which was said already.
            (true, None) if refused => {}
            (true, None) => fields.refuse("url", "is required, unless the text is given as content"),
            (false, Some(_)) => fields.refuse("content", "cannot be given together with url"),
            (true, Some(_)) if !matches!(r#type, DocumentType::Txt | DocumentType::Csv) => {
                fields.refuse("content", "can be given for TXT and CSV; give a url for this type");
            }
            (true, Some(_)) => {}
            (false, None) => check_url(&url, fields),
        }
        let pages = if r#type == DocumentType::Pdf { pages(fields) } else { PageRange::default() };
        Self {
            r#type,
            name: fields.text("name", NAME),
            description: fields.optional_text("description", DESCRIPTION).unwrap_or_default(),
            url,
            content,
            metadata: metadata(fields),
            splitter: fields.nested("splitter", splitter).flatten(),
            pages,
            authorization: fields.nested("authorization", authorization).flatten(),
        }
    }
}

/// Largest metadata, in bytes of JSON: it is shown in every list.
const METADATA: usize = 16 * 1024;

fn metadata(fields: &mut Fields<'_>) -> Option<Map<String, Value>> {
    let metadata = fields.object("metadata")?;
    if json!(metadata).to_string().len() > METADATA {
        fields.refuse("metadata", format_args!("must have at most {METADATA} bytes"));
    }
    Some(metadata)
}

fn check_url(url: &str, fields: &mut Fields<'_>) {
    match Url::parse(url) {
        Ok(parsed) if !matches!(parsed.scheme(), "http" | "https") => {
            fields.refuse("url", "must begin with http:// or https://");
        }
        Ok(parsed) if !parsed.username().is_empty() || parsed.password().is_some() => {
            fields.refuse("url", "must not hold credentials; give them as authorization");
        }
        Ok(_) => {}
        Err(_) => fields.refuse("url", "must be an address such as https://example.com/file.pdf"),
    }
}

fn pages(fields: &mut Fields<'_>) -> PageRange {
    let range = PageRange { from: fields.count("from_page"), to: fields.count("to_page") };
    if let (Some(from), Some(to)) = (range.from, range.to)
        && from > to
    {
        fields.refuse("to_page", "must not be before from_page");
    }
    range
}

/// Passages of fewer characters or tokens say too little to be found.
const SMALLEST_CHUNK: u32 = 20;
const LARGEST_CHUNK: u32 = 20_000;

fn splitter(fields: &mut Fields<'_>) -> Option<Splitter> {
    let r#type: Option<SplitterType> = fields.choice("type", &SplitterType::choices());
    let token = r#type == Some(SplitterType::Token);
    let (default_size, default_overlap) = if token { (400, 60) } else { (1_600, 240) };
    let chunk_size = fields.count("chunk_size").unwrap_or(default_size);
    if !(SMALLEST_CHUNK..=LARGEST_CHUNK).contains(&chunk_size) {
        fields.refuse("chunk_size", format_args!("must be between {SMALLEST_CHUNK} and {LARGEST_CHUNK}"));
    }
    let none = fields.get("chunk_overlap").is_some_and(|value| value == 0 || value == "0");
    let given = if none { Some(0) } else { fields.count("chunk_overlap") };
    let chunk_overlap = given.unwrap_or(default_overlap.min(chunk_size / 4));
    if chunk_overlap > chunk_size / 2 {
        fields.refuse("chunk_overlap", "must be at most half of chunk_size");
    }
    Some(Splitter { r#type: r#type?, chunk_size, chunk_overlap })
}

fn authorization(fields: &mut Fields<'_>) -> Option<SourceAuthorization> {
    const LONGEST: usize = 8_000;
    let kind: String = fields.choice("type", "bearer, basic, headers")?;
    match kind.as_str() {
        "bearer" => Some(SourceAuthorization::Bearer { token: fields.text("token", LONGEST) }),
        "basic" => Some(SourceAuthorization::Basic {
            username: fields.text("username", LONGEST),
            password: fields.optional_text("password", LONGEST).unwrap_or_default(),
        }),
        "headers" => {
            let headers = fields.object("headers").unwrap_or_default();
            let text = |(name, value): (String, Value)| Some((name, value.as_str()?.to_owned()));
            let count = headers.len();
            let headers: std::collections::BTreeMap<_, _> = headers.into_iter().filter_map(text).collect();
            if count == 0 || headers.len() < count {
                fields.refuse("headers", "must be an object of header names and string values");
            }
            Some(SourceAuthorization::Headers { headers })
        }
        _ => {
            fields.refuse("type", "must be one of bearer, basic, headers");
            None
        }
    }
}

async fn create(State(runtime): State<Runtime>, caller: Caller, Valid(body): Valid<Body>) -> Answer {
    let id = DocumentId::generate();
    let authorization_sealed = match &body.authorization {
        None => None,
        Some(authorization) => {
            let json = serde_json::to_vec(authorization).map_err(|_| ApiError::internal())?;
            let place = Place { table: "documents", row: id.as_uuid(), column: "authorization" };
            Some(runtime.keyring.encrypt(place, &json)?)
        }
    };
    let document = NewDocument {
        id,
        user_id: caller.id(),
        r#type: body.r#type,
        name: &body.name,
        description: &body.description,
        url: &body.url,
        content: body.content.as_deref(),
        metadata: body.metadata.as_ref(),
        splitter: body.splitter.as_ref(),
        pages: body.pages,
        authorization_sealed: authorization_sealed.as_deref(),
    };
    let mut tx = runtime.db.begin().await?;
    db::documents::insert(&mut tx, &document, runtime.clock.now()).await?;
    if !runtime.jobs.enqueue_ingest(&mut tx, caller.id(), id).await? {
        return Err(ApiError::unauthorized("The account was deleted."));
    }
    tx.commit().await?;
    runtime.jobs.doorbell().ring(1);
    Ok(data(show(&load(&runtime, &caller, id).await?)))
}

async fn load(runtime: &Runtime, caller: &Caller, id: DocumentId) -> Result<Document, ApiError> {
    db::documents::find(&runtime.db, caller.id(), id).await?.ok_or_else(unknown)
}

fn unknown() -> ApiError {
    ApiError::not_found("document")
}

async fn index(State(runtime): State<Runtime>, caller: Caller, paging: Paging) -> Answer {
    list(paging, move |before, limit| {
        let (db, user) = (runtime.db.clone(), caller.id());
        async move {
            let documents = db::documents::list(&db, user, before.into(), limit).await?;
            Ok(documents.iter().map(|document| (*document.id.as_uuid(), show(document))).collect())
        }
    })
    .await
}

async fn find(State(runtime): State<Runtime>, caller: Caller, PathId(id): PathId<DocumentId>) -> Answer {
    let document = load(&runtime, &caller, id).await?;
    let content = db::documents::content(&runtime.db, caller.id(), id).await?;
    let mut shown = show(&document);
    if let Some(shown) = shown.as_object_mut() {
        shown.insert("content".to_owned(), json!(content));
    }
    Ok(data(shown))
}

async fn remove(State(runtime): State<Runtime>, caller: Caller, PathId(id): PathId<DocumentId>) -> Answer {
    let now = runtime.jobs.now();
    let mut tx = runtime.db.begin().await?;
    if !db::documents::delete(&mut tx, caller.id(), id, now, now).await? {
        return Err(unknown());
    }
    tx.commit().await?;
    tracing::info!(document = %id, user = %caller.id(), "document deleted");
    Ok(data(Value::Null))
}

async fn ingest(State(runtime): State<Runtime>, caller: Caller, PathId(id): PathId<DocumentId>) -> Answer {
    let mut tx = runtime.db.begin().await?;
    if !runtime.jobs.enqueue_ingest(&mut tx, caller.id(), id).await? {
        return Err(unknown());
    }
    tx.commit().await?;
    runtime.jobs.doorbell().ring(1);
    Ok(data(show(&load(&runtime, &caller, id).await?)))
}

async fn cancel(State(runtime): State<Runtime>, caller: Caller, PathId(id): PathId<DocumentId>) -> Answer {
    // Known first: what is another user's must not be told apart from what does not exist.
    load(&runtime, &caller, id).await?;
    let mut tx = runtime.db.begin().await?;
    db::jobs::cancel(&mut tx, caller.id(), id, runtime.jobs.now()).await?;
    tx.commit().await?;
    Ok(data(show(&load(&runtime, &caller, id).await?)))
}

/// Passages are listed in the order of the source, from a number on.
struct ChunkPaging {
    limit: u32,
    from: i64,
}

impl<S: Sync> FromRequestParts<S> for ChunkPaging {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let refuse = |path: &str, message: &str| {
            ApiError::invalid(vec![FieldError { path: path.to_owned(), message: message.to_owned() }])
        };
        let limit = match parameter(&parts.uri, "limit").map(|text| text.parse()) {
            None => 200,
            Some(Ok(limit @ 1..=200)) => limit,
            Some(Ok(_) | Err(_)) => return Err(refuse("limit", "must be a number between 1 and 200")),
        };
        let from = match parameter(&parts.uri, "cursor").map(|text| text.parse()) {
            None => 0,
            Some(Ok(from @ 0..)) => from,
            Some(Ok(_) | Err(_)) => {
                return Err(refuse("cursor", "must be the nextCursor of an earlier answer"));
            }
        };
        Ok(Self { limit, from })
    }
}

fn show_chunk(chunk: &Chunk) -> Value {
    json!({
        "chunkId": chunk.chunk_id,
        "ordinal": chunk.ordinal,
        "text": chunk.text,
        "place": chunk.place.0,
        "tokens": chunk.tokens,
    })
}

async fn list_chunks(
    State(runtime): State<Runtime>,
    caller: Caller,
    PathId(id): PathId<DocumentId>,
    paging: ChunkPaging,
) -> Answer {
    load(&runtime, &caller, id).await?;
    let mut chunks = chunks::list(&runtime.db, caller.id(), id, paging.from, paging.limit + 1).await?;
    let more = chunks.len() > paging.limit as usize;
    chunks.truncate(paging.limit as usize);
    let next = chunks.last().filter(|_| more).map(|chunk| (chunk.ordinal + 1).to_string());
    let mut body = json!({"success": true, "data": chunks.iter().map(show_chunk).collect::<Vec<_>>()});
    if let (Some(next), Some(body)) = (next, body.as_object_mut()) {
        body.insert("nextCursor".to_owned(), json!(next));
    }
    Ok(axum::response::IntoResponse::into_response(axum::Json(body)))
}
