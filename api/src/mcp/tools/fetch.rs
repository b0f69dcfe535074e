//! Reading a passage with what stands around it, or a document.

use std::str::FromStr;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use lectern_derive::RequestBody;
use lectern_parse::protocol::ImageFormat;
use lectern_shared::{
    ids::{DocumentId, InvalidId},
    model::document::{Chunk, Document},
};
use rmcp::model::{ContentBlock, Tool};
use serde_json::json;
use utoipa::ToSchema;

use super::{CallResult, documents::state_word, json_text, schema, search::title};
use crate::{
    error::{ApiError, ApiErrorKind},
    mcp::{context::CallContext, served::ServedServices, text::DocumentText},
    services::{
        actor::Permission,
        citations::PassageReference,
        pages::{Highlight, PageView},
    },
};

/// Passages that are given on each side of the one that was asked for.
const NEIGHBOURS: i64 = 2;
/// That one and its neighbours.
const TOGETHER: u32 = 5;
/// Pixels of an image from left to right: enough to read small print, and not too many for a model.
const IMAGE_WIDTH: u32 = 1_000;
/// Characters of a document in one answer.
const LONGEST: usize = 50_000;

/// What to read.
#[derive(RequestBody, ToSchema)]
struct FetchArguments {
    /// The id of a search result, the id of a document, or the `next` of an earlier answer.
    #[schema(min_length = 1, max_length = 100, pattern = r"\S")]
    id: String,
    /// Whether the page that the passage begins on comes too, as an image on which it is marked: for tables, drawings and whatever
    /// text does not tell. Only of the id of a search result, and of PDFs that were uploaded.
    #[schema(value_type = Option<bool>)]
    #[body(default)]
    image: bool,
}

/// What an id names.
#[derive(Debug, PartialEq, Eq)]
enum FetchTarget {
    Document(DocumentId),
    /// A passage, by its number.
    Passage(DocumentId, i64),
    /// All from a passage on.
    Rest(DocumentId, i64),
}

impl FromStr for FetchTarget {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let Some((id, number)) = text.trim().split_once(':') else {
            return text.trim().parse().map(Self::Document);
        };
        let id = id.parse::<DocumentId>()?;
        let (number, is_rest) = number.strip_suffix('+').map_or((number, false), |number| (number, true));
        let number = i64::from(number.parse::<u32>().map_err(|_| InvalidId)?);
        Ok(if is_rest { Self::Rest(id, number) } else { Self::Passage(id, number) })
    }
}

pub(super) fn described(name: &'static str) -> Tool {
    let description = "Reads the text behind an id of `search` (the passage, with the two before it and the two after it) or \
        behind the id of a document (its text from the beginning). A long text comes in parts: `metadata.next` is the id of \
        the next one.";
    Tool::new(name, description, schema::shared(schema::of::<FetchArguments>()))
        .with_title("Read a passage or document")
}

pub(super) async fn fetch(services: &ServedServices, call: &CallContext) -> CallResult {
    let FetchArguments { id, image } = call.arguments.read()?;
    match id.parse::<FetchTarget>().map_err(|_| unknown())? {
        FetchTarget::Document(document) => from_passage(services, call, &id, document, 0).await,
        FetchTarget::Rest(document, number) => from_passage(services, call, &id, document, number).await,
        FetchTarget::Passage(document, number) => passage(services, call, &id, document, number, image).await,
    }
}

fn unknown() -> ApiError {
    ApiError::not_found("document or passage")
}

/// A document's text from one of its passages on.
async fn from_passage(
    services: &ServedServices,
    call: &CallContext,
    id: &str,
    document: DocumentId,
    number: i64,
) -> CallResult {
    let details = services.documents.find(&call.actor, document).await?.details;
    let read = DocumentText::read(&services.documents, &call.actor, document, number, LONGEST).await?;
    if read.first.is_none() && number > 0 {
        return Err(unknown());
    }
    let shown = Shown { id, document: &details.document, chunk: read.first.as_ref() };
    shown.answer(services, call, &details.document.name, &read.text, read.next)
}

/// A passage and its neighbours.
async fn passage(
    services: &ServedServices,
    call: &CallContext,
    id: &str,
    document: DocumentId,
    number: i64,
    with_image: bool,
) -> CallResult {
    let from = (number - NEIGHBOURS).max(0);
    // At the beginning of a document there are fewer before it.
    let missing = u32::try_from(from - (number - NEIGHBOURS)).unwrap_or_default();
    let chunks = services.documents.chunks(&call.actor, document, from, TOGETHER - missing).await?;
    let asked = chunks.iter().find(|chunk| chunk.ordinal == number).cloned().ok_or_else(unknown)?;
    let details = services.documents.find(&call.actor, document).await?.details;
    let mut around = DocumentText::default();
    for chunk in chunks {
        around.add(chunk);
    }
    let title = title(&details.document.name, &asked.place.0);
    let shown = Shown { id, document: &details.document, chunk: Some(&asked) };
    let mut answer = shown.answer(services, call, &title, &around.text, None)?;
    if with_image {
        answer.content.push(Box::pin(page_image(services, call, &asked)).await?);
    }
    Ok(answer)
}

/// The page that a passage begins on, with the passage marked; or why there is no image of it, which is no failure of the rest.
async fn page_image(
    services: &ServedServices,
    call: &CallContext,
    chunk: &Chunk,
) -> Result<ContentBlock, ApiError> {
    let Some(page) = chunk.place.0.page else {
        return Ok(ContentBlock::text("There is no image: the document has no pages."));
    };
    let highlights = vec![Highlight::Passage(chunk.chunk_id)];
    let view = PageView { page, width: IMAGE_WIDTH, format: ImageFormat::Png, highlights };
    let drawn = match services.pages.find(&call.actor, chunk.document_id, view).await {
        Ok(shown) => services.pages.image(shown).await,
        Err(error) => Err(error),
    };
    match drawn {
        Ok(drawn) => {
            Ok(ContentBlock::image(STANDARD.encode(&drawn.image), drawn.format.media_type().to_owned()))
        }
        Err(error) if matches!(error.kind, ApiErrorKind::NotFound | ApiErrorKind::Invalid) => {
            Ok(ContentBlock::text(error.message))
        }
        Err(error) => Err(error),
    }
}

/// What is shown, and by which passage it is linked.
struct Shown<'a> {
    id: &'a str,
    document: &'a Document,
    chunk: Option<&'a Chunk>,
}

impl Shown<'_> {
    fn answer(
        &self,
        services: &ServedServices,
        call: &CallContext,
        title: &str,
        text: &str,
        next: Option<i64>,
    ) -> CallResult {
        let Self { id, document, chunk } = self;
        let workspace = call.workspace(Permission::EditDocuments)?;
        let url = match chunk {
            Some(chunk) => {
                let passage = PassageReference { document: document.id, chunk: chunk.chunk_id, quote: None };
                call.link(&services.links, workspace, &passage)?
            }
            None => call.address.link("/"),
        };
        let metadata = json!({
            "documentId": document.id,
            "documentName": document.name,
            "documentType": document.r#type,
            "status": state_word(document.ingestion.state),
            "place": chunk.map(|chunk| &chunk.place.0),
            "next": next.map(|next| format!("{}:{next}+", document.id)),
        });
        Ok(json_text(&json!({"id": id, "title": title, "text": text, "url": url, "metadata": metadata})))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_a_document_a_passage_or_the_rest_of_a_document() {
        let id = DocumentId::generate();
        assert_eq!(id.to_string().parse(), Ok(FetchTarget::Document(id)));
        assert_eq!(format!("{id}:12").parse(), Ok(FetchTarget::Passage(id, 12)));
        assert_eq!(format!("{id}:12+").parse(), Ok(FetchTarget::Rest(id, 12)));
        for wrong in
            [":1", "x", "", &format!("{id}:"), &format!("{id}:-1"), &format!("{id}:1:2"), &format!("{id}:x+")]
        {
            assert_eq!(wrong.parse::<FetchTarget>(), Err(InvalidId), "{wrong}");
        }
    }
}
