//! Changing a document. What its index depends on is ingested again; until that is done, the index answers as before.

use axum::extract::State;
use lectern_shared::{
    db::{self, Json, Tx, documents::NewDocument as Row},
    ids::DocumentId,
    model::{
        document::{Document, DocumentType, PageRange, Source, SourceAuthorization, Splitter, addresses},
        job::JobState,
    },
    runtime::Runtime,
    secrets::Place,
};
use secrecy::ExposeSecret;
use serde_json::{Map, Value, json};
use url::Url;
use utoipa::ToSchema;

use super::{
    address, admit,
    body::{self, AuthorizationSchema, PageSchema},
    seal,
    splitter::{self, SplitterSchema},
    unknown, view,
    view::DocumentView,
};
use crate::{
    auth::Caller,
    error::{ApiError, FieldError},
    extract::{Fields, FromFields, PathId, Valid},
    openapi::Data,
    response::{Answer, data},
    routes::NAME,
};

const NAMES: [&str; 9] = [
    "name",
    "description",
    "url",
    "content",
    "metadata",
    "splitter",
    "from_page",
    "to_page",
    "authorization",
];

/// What is to be different about a document. What is left out stays as it is; null empties a field.
#[derive(ToSchema)]
#[schema(as = DocumentChange)]
#[expect(clippy::option_option, reason = "absent, null and a value are three things")]
pub(super) struct Change {
    /// How to call it.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S", value_type = String, required = false)]
    name: Option<String>,
    /// Anything worth saying of it.
    #[schema(max_length = 10_000)]
    description: Option<String>,
    /// Where the source is; for `URL`, up to 50 addresses, separated by commas. It takes the place of the content, if there is one.
    #[schema(max_length = 20_000)]
    url: Option<String>,
    /// The text itself, for TXT, CSV and VIDEO. It takes the place of the url, if there is one.
    #[schema(value_type = Option<String>)]
    content: Option<Option<String>>,
    /// Your own values, all of them: they take the place of the earlier ones.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Option<Map<String, Value>>>,
    /// How to cut the text into passages.
    #[schema(value_type = Option<SplitterSchema>)]
    splitter: Option<Option<Splitter>>,
    /// PDF: the first page to ingest. Ignored for other types.
    #[schema(value_type = Option<PageSchema>)]
    from_page: Option<Option<u32>>,
    /// PDF: the last page to ingest. Ignored for other types.
    #[schema(value_type = Option<PageSchema>)]
    to_page: Option<Option<u32>>,
    /// What opens the source.
    #[schema(value_type = Option<AuthorizationSchema>)]
    authorization: Option<Option<SourceAuthorization>>,
}

impl FromFields for Change {
    fn from_fields(fields: &mut Fields<'_>) -> Self {
        fields.only(&NAMES);
        fields.refuse_nulls(&["name"]);
        let change = Self {
            name: fields.get("name").is_some().then(|| fields.text("name", NAME)),
            description: fields.given("description").then(|| body::description(fields)),
            url: fields.given("url").then(|| url(fields)),
            content: fields.given("content").then(|| fields.optional_text("content", usize::MAX)),
            metadata: fields.given("metadata").then(|| body::metadata(fields)),
            splitter: fields.given("splitter").then(|| splitter::read(fields)),
            from_page: fields.given("from_page").then(|| fields.count("from_page")),
            to_page: fields.given("to_page").then(|| fields.count("to_page")),
            authorization: fields.given("authorization").then(|| body::authorization(fields)),
        };
        if change.new_url().is_some() && change.new_content().is_some() {
            fields.refuse("content", "cannot be given together with url");
        }
        change
    }
}

/// The new addresses. Which they may be depends on the document's type; what they can be of no type is said at once.
fn url(fields: &mut Fields<'_>) -> String {
    let url = address::read(fields).unwrap_or_default();
    let several = address::problems(DocumentType::Url, &url);
    if !address::problems(DocumentType::Txt, &url).is_empty() && !several.is_empty() {
        for problem in several {
            fields.refuse("url", problem);
        }
    }
    url
}

impl Change {
    fn new_url(&self) -> Option<&str> {
        self.url.as_deref().filter(|url| !url.is_empty())
    }

    fn new_content(&self) -> Option<&str> {
        self.content.as_ref()?.as_deref()
    }
}

/// Change a document
///
/// Changes what is given and leaves the rest as it is. `type` cannot be changed, and neither can the source of an uploaded
/// document. A new `url` takes the place of the content, and new `content` the place of the url. A `url` at another host than
/// the one that `authorization` was given for needs that anew, or null.
///
/// A change of `name`, `url`, `content`, `from_page`, `to_page`, `splitter` or `authorization` queues the document to be
/// ingested again, if it really is one; until that has succeeded, searches find it as it was. `metadata` and `description`
/// apply at once.
#[utoipa::path(
    patch,
    path = "/documents/{id}",
    tag = "Documents",
    operation_id = "updateDocument",
    params(("id" = String, Path, description = "The document's id")),
    request_body(content = Change, example = json!({"name": "Handbook", "metadata": {"department": "people", "year": 2026}})),
    responses((
        status = 200,
        description = "The document as it is now",
        body = inline(Data<DocumentView>),
        example = json!({"success": true, "data": view::example()}),
    )),
)]
pub(super) async fn change(
    State(runtime): State<Runtime>,
    caller: Caller,
    PathId(id): PathId<DocumentId>,
    Valid(change): Valid<Change>,
) -> Answer {
    let user = caller.id();
    let mut tx = runtime.db.begin().await?;
    if !db::documents::lock(&mut tx, user, id).await? {
        return Err(unknown());
    }
    let found = db::documents::find_in(&mut tx, user, id).await?;
    let source = db::documents::source_in(&mut tx, user, id).await?;
    let (Some(before), Some(source)) = (found, source) else { return Err(unknown()) };
    let work = apply(&runtime, &mut tx, &change, &before, &source).await?;
    let after = db::documents::find_in(&mut tx, user, id).await?.ok_or_else(unknown)?;
    tx.commit().await?;
    if work > Work::Nothing {
        runtime.jobs.doorbell().ring(1);
    }
    Ok(data(DocumentView::from(after)))
}

/// What a change makes necessary.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    Nothing,
    /// The passages stay as they are.
    Index,
    Ingest,
}

async fn apply(
    runtime: &Runtime,
    tx: &mut Tx,
    change: &Change,
    before: &Document,
    source: &Source,
) -> Result<Work, ApiError> {
    let (user_id, id) = (before.user_id, before.id);
    let (url, content) = resulting_source(change, source)?;
    let pages = resulting_pages(change, source)?;
    let splitter_before = source.splitter.as_ref().map(|Json(splitter)| splitter);
    let splitter = change.splitter.as_ref().map_or(splitter_before, Option::as_ref);
    let metadata_before = before.metadata.as_ref().map(|Json(metadata)| metadata);
    let metadata = change.metadata.as_ref().map_or(metadata_before, Option::as_ref);
    let authorization = match &change.authorization {
        Some(given) if !is_same(runtime, source, given.as_ref())? => {
            Some(given.as_ref().map(|given| seal(runtime, id, given)).transpose()?)
        }
        Some(_) | None => None,
    };
    if change.authorization.is_none() && source.authorization_sealed.is_some() {
        check_kept(source, url)?;
    }
    let after = Row {
        id,
        user_id,
        r#type: before.r#type,
        name: change.name.as_deref().unwrap_or(&before.name),
        description: change.description.as_deref().unwrap_or(&before.description),
        url,
        content,
        metadata,
        splitter,
        pages,
        authorization_sealed: match &authorization {
            Some(changed) => changed.as_deref(),
            None => source.authorization_sealed.as_deref(),
        },
    };
    let named_anew = after.name != before.name;
    let source_changed = after.url != source.url
        || after.content != source.content.as_deref()
        || pages != pages_of(source)
        || splitter != splitter_before
        || authorization.is_some();
    let filters_changed = metadata != metadata_before;
    if !(named_anew || source_changed || filters_changed || after.description != before.description) {
        return Ok(Work::Nothing);
    }
    // Citations show the name and lead to the url.
    if named_anew || filters_changed || after.url != source.url {
        db::documents::bump_search_epoch(tx, user_id).await?;
    }
    let bytes = |content: Option<&str>| content.map_or(0, str::len) as u64;
    let more = bytes(after.content).saturating_sub(bytes(source.content.as_deref()));
    // Whoever has too much may change it, as long as it does not become more.
    if more > 0 {
        admit(runtime, tx, user_id, more).await?;
    }
    db::documents::update(tx, &after, runtime.clock.now()).await?;
    if !(named_anew || source_changed) {
        return Ok(Work::Nothing);
    }
    if !runtime.jobs.enqueue_ingest(tx, user_id, id).await? {
        return Err(unknown());
    }
    // Its passages are those of its source only when its last ingestion ended well.
    let current = before.search_index.is_some() && before.ingestion.state == JobState::Done;
    if source_changed || !current {
        return Ok(Work::Ingest);
    }
    db::documents::from_stored(tx, id, &before.ingestion.warnings.0).await?;
    Ok(Work::Index)
}

/// Refuses to keep an authorization that would then be sent somewhere else: whoever may change the document could have it sent to
/// a host of their own, and read what is never shown.
fn check_kept(source: &Source, url: &str) -> Result<(), ApiError> {
    // It is for the origin of the first address.
    let origin = |addresses_of: &str| {
        let first = addresses(source.r#type, addresses_of).into_iter().next()?;
        Url::parse(first).ok().map(|first| first.origin())
    };
    let after = origin(url);
    if after.is_none() || after == origin(&source.url) {
        return Ok(());
    }
    let message = "was given for another host than that of the new url; send it again, or null to do without";
    Err(invalid("authorization", message))
}

fn invalid(path: &str, message: &str) -> ApiError {
    ApiError::invalid(vec![FieldError { path: path.to_owned(), message: message.to_owned() }])
}

/// The url and the content that a document has after the change: one of them, or none for an uploaded one.
fn resulting_source<'a>(
    change: &'a Change,
    source: &'a Source,
) -> Result<(&'a str, Option<&'a str>), ApiError> {
    if source.blob_key.is_some() {
        let refuse =
            |path| Err(invalid(path, "cannot be set: the document was uploaded; upload another one"));
        return match (change.new_url(), change.new_content()) {
            (Some(_), _) => refuse("url"),
            (None, Some(_)) => refuse("content"),
            (None, None) => Ok(("", None)),
        };
    }
    if let Some(url) = change.new_url() {
        return match address::problems(source.r#type, url) {
            problems if problems.is_empty() => Ok((url, None)),
            problems => {
                let wrong = |message| FieldError { path: "url".to_owned(), message };
                Err(ApiError::invalid(problems.into_iter().map(wrong).collect()))
            }
        };
    }
    if let Some(content) = change.new_content() {
        if !body::takes_content(source.r#type) {
            return Err(invalid("content", body::NO_CONTENT));
        }
        return Ok(("", Some(content)));
    }
    let url = if change.url.is_some() { "" } else { &source.url };
    let content = if change.content.is_some() { None } else { source.content.as_deref() };
    if url.is_empty() && content.is_none() {
        return Err(invalid("url", body::SOURCE_MISSING));
    }
    Ok((url, content))
}

fn resulting_pages(change: &Change, source: &Source) -> Result<PageRange, ApiError> {
    let before = pages_of(source);
    if source.r#type != DocumentType::Pdf {
        return Ok(before);
    }
    let pages =
        PageRange { from: change.from_page.unwrap_or(before.from), to: change.to_page.unwrap_or(before.to) };
    if body::are_reversed(pages) {
        return Err(invalid("to_page", body::PAGES_REVERSED));
    }
    Ok(pages)
}

fn pages_of(source: &Source) -> PageRange {
    let page = |number: Option<i64>| number.and_then(|number| u32::try_from(number).ok());
    PageRange { from: page(source.from_page), to: page(source.to_page) }
}

/// Whether a document's authorization is this one already.
fn is_same(
    runtime: &Runtime,
    source: &Source,
    given: Option<&SourceAuthorization>,
) -> Result<bool, ApiError> {
    let Some(sealed) = &source.authorization_sealed else { return Ok(given.is_none()) };
    let Some(given) = given else { return Ok(false) };
    let place = Place::document_authorization(source.id.as_uuid());
    let known = runtime.keyring.decrypt_text(place, sealed)?;
    Ok(serde_json::from_str(known.expose_secret()).is_ok_and(|known: Value| known == json!(given)))
}
