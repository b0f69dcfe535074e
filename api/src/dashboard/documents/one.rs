//! One document: how its reading goes, its pages and passages, and what can be done to it.

use askama::Template;
use axum::{
    extract::State,
    http::{StatusCode, Uri},
};
use lectern_derive::handler;
use lectern_shared::{
    clock::Timestamp,
    ids::{AgentId, CollectionId, DocumentId, SourceId},
    model::{
        document::{Chunk, Document},
        job::JobState,
    },
};
use uuid::Uuid;

use super::{DocumentRow, fields::DocumentFields};
use crate::{
    dashboard::{
        PagePolicy,
        choices::{NameChoice, collection_choice, told_apart},
        confirm::Confirmed,
        edits::{EditForm, was_made},
        frame::{Frame, Visitor},
        html,
        text::{self, filters, place_words, stop_word},
    },
    error::ApiErrorKind,
    extract::{PathId, parameter},
    response::ApiResult,
    services::{
        actor::Actor,
        agents::AgentService,
        collections::CollectionService,
        documents::{DocumentChange, DocumentService, FullDocument},
        pages::PageService,
    },
};

/// Passages that are shown at a time.
const PASSAGES: u32 = 20;
/// Links to pages that stand around the one that is shown.
const AROUND: u32 = 4;
/// Documents in the line before one that are counted.
const MOST_BEFORE: u32 = 10_000;
/// Width in pixels that a page's image is shown with.
const WIDTH: u16 = 1_000;

#[derive(Template)]
#[template(path = "document.html")]
struct DocumentPage {
    frame: Frame,
    row: DocumentRow,
    /// Its path, from its own folder.
    here: String,
    failure: Option<Failure>,
    /// In how long and when it is tried next, where it waits for that.
    tried_next: Option<(String, Timestamp)>,
    facts: Vec<(&'static str, String)>,
    times: Vec<(&'static str, Timestamp)>,
    url: String,
    has_file: bool,
    /// The sources that keep it in step with what is there.
    sources: Vec<(SourceId, String)>,
    /// Whether the file can be replaced by another version.
    takes_file: bool,
    /// Documents with the same bytes, or the same text.
    alike: Vec<(DocumentId, String)>,
    warnings: Vec<String>,
    agents: Vec<(AgentId, String)>,
    pages: Vec<u32>,
    more_pages: bool,
    page: u32,
    /// Of the image, for the space that is kept free until it is there.
    size: (u32, u32),
    /// The passage that is marked on the page.
    marked: String,
    passages: Vec<PassageCard>,
    next_passages: Option<i64>,
    fields: DocumentFields,
    in_collections: Vec<(CollectionId, String)>,
    /// Those that it can be put into.
    collections: NameChoice,
}

/// Why it could not be read, and what to do.
struct Failure {
    message: String,
    remedy: &'static str,
}

struct PassageCard {
    number: i64,
    id: String,
    place: String,
    page: Option<u32>,
    text: String,
}

impl From<Chunk> for PassageCard {
    fn from(chunk: Chunk) -> Self {
        let place = chunk.place.0;
        let headings = place.heading.as_deref().unwrap_or_default().join(" › ");
        let words = [place_words(&place), headings].into_iter().filter(|words| !words.is_empty());
        Self {
            number: chunk.ordinal + 1,
            id: chunk.chunk_id.to_string(),
            place: words.collect::<Vec<_>>().join(" · "),
            page: place.page,
            text: chunk.text,
        }
    }
}

/// What is known of a document, besides its state.
fn facts(document: &Document) -> Vec<(&'static str, String)> {
    let mut facts = vec![("Type", text::document_kind(document.r#type).to_owned())];
    if let Some(index) = document.search_index.as_ref().map(|index| &index.0) {
        facts.extend(index.pages.map(|pages| ("Pages", pages.to_string())));
        facts.push(("Passages", index.chunks.to_string()));
        facts.extend(index.engine.map(|engine| ("Read by", engine.to_string())));
        let model = index.embedding_model.clone();
        facts.push((
            "Found by",
            model.map_or("words".to_owned(), |model| format!("words and meaning ({model})")),
        ));
    }
    let ingestion = &document.ingestion;
    if let Some(source) = ingestion.source.as_ref().map(|source| &source.0) {
        facts.extend(source.title.clone().map(|title| ("Its own title", title)));
        facts.extend(source.bytes.map(|bytes| ("Size", text::size(bytes))));
    }
    if ingestion.attempts > 1 {
        facts.push(("Tries", ingestion.attempts.to_string()));
    }
    facts
}

/// When it was read.
fn times(document: &Document) -> Vec<(&'static str, Timestamp)> {
    let ended = document.ingestion.finished_at.map(|at| ("Ended", at));
    [("Queued", document.ingestion.queued_at)].into_iter().chain(ended).collect()
}

/// The numbers of the pages around one, with the first and the last.
fn page_numbers(page: u32, last: u32) -> Vec<u32> {
    let around = page.saturating_sub(AROUND).max(1)..=page.saturating_add(AROUND).min(last);
    let mut numbers: Vec<u32> =
        [1, last].into_iter().chain(around).filter(|page| (1..=last).contains(page)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Its row, with where in the line it waits.
async fn row_of(documents: &DocumentService, actor: &Actor, document: &Document) -> ApiResult<DocumentRow> {
    let mut row = DocumentRow::of(document);
    if document.ingestion.state == JobState::Queued
        && document.ingestion.last_error.is_none()
        && let Some(before) = documents.waits_behind(actor, document.id, MOST_BEFORE).await?
    {
        row.state.detail = waits_behind(before);
    }
    Ok(row)
}

/// Why it could not be read, if it could not.
fn failure(document: &Document) -> Option<Failure> {
    let failed = document.ingestion.last_error.as_ref().filter(|_| document.ingestion.state.is_failure());
    failed.map(|error| Failure {
        message: error.0.message.clone(),
        remedy: text::remedy(&error.0.code, document.r#type),
    })
}

/// The size in pixels that the image of a page is shown with; none where a document has no images of its pages.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes of pages are within bounds"
)]
async fn image_size(
    images: &PageService,
    actor: &Actor,
    id: DocumentId,
    page: u32,
) -> ApiResult<Option<(u32, u32)>> {
    let shown = match images.list(actor, id, page.into(), 1).await {
        Ok(shown) => shown.into_iter().next(),
        Err(error) if error.kind == ApiErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    Ok(shown.map(|shown| {
        let height = f32::from(WIDTH) * shown.height / shown.width.max(1.0);
        (WIDTH.into(), height.round() as u32)
    }))
}

/// Passages from one on, and the number of the first that is not shown with them.
async fn passages_from(
    documents: &DocumentService,
    actor: &Actor,
    id: DocumentId,
    from: i64,
) -> ApiResult<(Vec<PassageCard>, Option<i64>)> {
    let mut passages = documents.chunks(actor, id, from, PASSAGES + 1).await?;
    let has_more = passages.len() > PASSAGES as usize;
    passages.truncate(PASSAGES as usize);
    let next = passages.last().map(|last| last.ordinal + 1).filter(|_| has_more);
    Ok((passages.into_iter().map(PassageCard::from).collect(), next))
}

/// Shows a document.
#[handler]
pub(super) async fn show(
    State(documents): State<DocumentService>,
    State(images): State<PageService>,
    State(service): State<CollectionService>,
    State(agents): State<AgentService>,
    visitor: Visitor,
    uri: Uri,
    PathId(id): PathId<DocumentId>,
) -> ApiResult {
    let actor = visitor.actor();
    let FullDocument { details, .. } = match documents.find(&actor, id).await {
        Ok(found) => found,
        Err(error) if error.kind == ApiErrorKind::NotFound => {
            // Runs of sources link to what they deleted, and a page may be open on it still.
            documents.receipt(&actor, id).await.map_err(|_| error)?;
            return Ok(visitor.go(&format!("documents/{id}/receipt")));
        }
        Err(error) => return Err(error),
    };
    let document = &details.document;
    let number = |name: &str| parameter(&uri, name).and_then(|text| text.parse::<u32>().ok());
    let last = document.search_index.as_ref().and_then(|index| index.0.pages).unwrap_or_default();
    let page = number("page").unwrap_or(1).clamp(1, last.max(1));
    let size = image_size(&images, &actor, id, page).await?;
    let from = i64::from(number("from").unwrap_or_default());
    let (passages, next_passages) = passages_from(&documents, &actor, id, from).await?;
    let in_collections = told_apart(service.of_document(&actor, id).await?);
    let mut collections = collection_choice(&service, &actor, None, &uri, "collections").await?;
    collections.leave_out(|id| in_collections.iter().any(|(own, _)| own.to_string() == id));
    let marked = parameter(&uri, "passage").filter(|id| Uuid::try_parse(id).is_ok());
    let row = row_of(&documents, &actor, document).await?;
    let tried_next = match document.ingestion.state {
        JobState::Queued => documents.tried_next(&actor, id).await?,
        JobState::Running | JobState::Done | JobState::Dead | JobState::Cancelled => None,
    };
    let has_file = documents.file(&actor, id).await.is_ok();
    let page = DocumentPage {
        here: id.to_string(),
        failure: failure(document),
        tried_next: tried_next.map(|(at, wait)| (text::in_time(wait), at)),
        facts: facts(document),
        times: times(document),
        url: web_address(&document.url),
        has_file,
        sources: documents.sources(&actor, id).await?,
        takes_file: has_file && documents.takes_file(&actor, id).await?,
        alike: documents.like(&actor, id).await?.into_iter().map(|like| (like.id, like.name)).collect(),
        warnings: document.ingestion.warnings.0.iter().map(|warning| warning.message.clone()).collect(),
        agents: agents.of_document(&actor, id).await?,
        pages: size.map(|_| page_numbers(page, last)).unwrap_or_default(),
        more_pages: last > 2 * AROUND + 2,
        page,
        size: size.unwrap_or((WIDTH.into(), WIDTH.into())),
        marked: marked.unwrap_or_default(),
        passages,
        next_passages,
        fields: DocumentFields::of(document, has_file)?,
        in_collections,
        collections,
        frame: visitor.frame,
        row,
    };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

/// Where in the line a document waits.
fn waits_behind(before: u64) -> String {
    match before {
        0 => "It is next.".to_owned(),
        before if before >= u64::from(MOST_BEFORE) => format!("At least {before} documents are before it."),
        before => format!("{} before it.", text::counted(before, "document is", "documents are")),
    }
}

/// An address that a browser may be sent to; empty for anything else.
fn web_address(url: &str) -> String {
    let is_web = ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme));
    if is_web { url.to_owned() } else { String::new() }
}

/// Changes what a document says of itself, where it is, or what of it is read.
#[handler]
pub(super) async fn change(
    State(documents): State<DocumentService>,
    PathId(id): PathId<DocumentId>,
    EditForm { visitor, mut body, edit }: EditForm<DocumentChange>,
) -> ApiResult {
    let actor = visitor.actor();
    // Browsers send every line end as two characters, and nobody has changed an address by that.
    body.url = body.url.map(|url| url.replace("\r\n", "\n"));
    let change = documents.change(&actor, id, body, edit.base()).await;
    if was_made(change.map_err(text::for_people))? {
        return Ok(visitor.go(&format!("documents/{id}?said=saved")));
    }
    let FullDocument { details, .. } = documents.find(&actor, id).await?;
    let has_file = documents.file(&actor, id).await.is_ok();
    let shows = DocumentFields::of(&details.document, has_file)?.shown(&details.document);
    edit.outdated(visitor, &shows, None, &format!("documents/{id}#change"))
}

/// Has it read again.
#[handler]
pub(super) async fn ingest(
    State(documents): State<DocumentService>,
    visitor: Visitor,
    PathId(id): PathId<DocumentId>,
) -> ApiResult {
    documents.ingest(&visitor.actor(), id).await?;
    Ok(visitor.go(&format!("documents/{id}?said=queued")))
}

/// Stops its reading.
#[handler]
pub(super) async fn cancel(
    State(documents): State<DocumentService>,
    visitor: Visitor,
    PathId(id): PathId<DocumentId>,
) -> ApiResult {
    let (_, is_stopped) = documents.cancel(&visitor.actor(), id).await?;
    let said = stop_word(is_stopped);
    Ok(visitor.go(&format!("documents/{id}?said={said}")))
}

/// Deletes it.
#[handler]
pub(super) async fn delete(
    State(documents): State<DocumentService>,
    PathId(id): PathId<DocumentId>,
    Confirmed(visitor): Confirmed,
) -> ApiResult {
    documents.delete(&visitor.actor(), id).await?;
    Ok(visitor.go(&format!("documents/{id}/receipt?said=deleted")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_around_one_are_linked_with_the_first_and_the_last() {
        assert_eq!(page_numbers(1, 1), [1]);
        assert_eq!(page_numbers(1, 3), [1, 2, 3]);
        assert_eq!(page_numbers(50, 100), [1, 46, 47, 48, 49, 50, 51, 52, 53, 54, 100]);
        assert_eq!(page_numbers(1, 0), [] as [u32; 0]);
    }

    #[test]
    fn the_place_in_the_line_is_told_as_people_say_it() {
        assert_eq!(waits_behind(0), "It is next.");
        assert_eq!(waits_behind(1), "1 document is before it.");
        assert_eq!(waits_behind(12), "12 documents are before it.");
        assert_eq!(waits_behind(10_000), "At least 10000 documents are before it.");
    }

    #[test]
    fn only_addresses_of_the_web_are_linked() {
        assert_eq!(web_address("https://a.example/x"), "https://a.example/x");
        assert_eq!(web_address("javascript:alert(1)"), "");
    }
}
