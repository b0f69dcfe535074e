//! The same done to many documents: step by step, so that no request lasts long, and what was done stays done.

use std::str::FromStr;

use askama::Template;
use axum::{extract::State, http::StatusCode};
use lectern_db::documents::browse::DocumentFilter;
use lectern_derive::{RequestBody, handler};
use lectern_shared::ids::{CollectionId, DocumentId};
use utoipa::ToSchema;

use super::list::ListQuery;
use crate::{
    dashboard::{
        PagePolicy,
        confirm::UnconfirmedForm,
        frame::{Frame, SubmittedForm},
        html,
        text::documents_words,
    },
    error::ApiError,
    fields::GivenIds,
    response::ApiResult,
    services::{
        actor::Actor,
        collections::CollectionService,
        documents::{BulkAction, DocumentCount, DocumentService},
    },
};

#[derive(Template)]
#[template(path = "bulk.html")]
struct BulkPage {
    frame: Frame,
    title: &'static str,
    /// How many documents that were, in words.
    so_far: String,
    /// The filter and the order of the list.
    list: String,
    /// What the next step is sent.
    fields: Vec<(&'static str, String)>,
}

/// What is to be done, and to which documents.
#[derive(RequestBody, ToSchema)]
pub(super) struct BulkForm {
    /// `ingest`, `delete` or `collect`.
    #[schema(max_length = 20)]
    action: String,
    /// The selected ones.
    #[schema(value_type = Option<Vec<String>>, max_items = 1_000)]
    ids: Option<GivenIds<DocumentId>>,
    /// All that match, and not only the selected ones.
    #[schema(value_type = Option<bool>)]
    #[body(default)]
    all: bool,
    /// The filter of the list, as its address has it.
    #[schema(value_type = Option<String>, max_length = 10_000)]
    #[body(default)]
    filter: String,
    /// The document behind which the page of the list begins that the selected ones are on.
    #[schema(value_type = Option<String>, max_length = 100)]
    #[body(default)]
    after: String,
    /// The collection that they are put into.
    #[schema(value_type = Option<String>, max_length = 100)]
    #[body(default)]
    collection: String,
    /// Where an earlier step ended.
    #[schema(value_type = Option<String>, max_length = 100)]
    #[body(default)]
    before: String,
    /// Documents of earlier steps.
    #[schema(value_type = Option<String>, max_length = 20)]
    #[body(default)]
    done: String,
}

/// What is done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BulkKind {
    Ingest,
    Delete,
    Collect,
}

impl BulkKind {
    fn of(word: &str) -> ApiResult<Self> {
        match word {
            "ingest" => Ok(Self::Ingest),
            "delete" => Ok(Self::Delete),
            "collect" => Ok(Self::Collect),
            _ => Err(ApiError::invalid_field("action", "must be ingest, delete or collect")),
        }
    }

    /// The title of the page of a step.
    fn title(self) -> &'static str {
        match self {
            Self::Ingest => "Documents are read again",
            Self::Delete => "Documents are deleted",
            Self::Collect => "Documents are put into the collection",
        }
    }

    /// The word by which the list is told that it was done.
    fn said(self) -> &'static str {
        match self {
            Self::Ingest => "queued",
            Self::Delete => "deleted",
            Self::Collect => "added",
        }
    }
}

/// Does it to as many documents as a request is for, and goes on with the next page where there are more. A deletion is asked about
/// first.
#[handler]
pub(super) async fn apply(
    State(documents): State<DocumentService>,
    State(collections): State<CollectionService>,
    UnconfirmedForm(SubmittedForm { visitor, body, .. }, confirmation): UnconfirmedForm<BulkForm>,
) -> ApiResult {
    let actor = visitor.actor();
    let kind = BulkKind::of(&body.action)?;
    let asked = ListQuery::of_form(&body.filter)?;
    let filter = asked.filter().map_err(|problem| ApiError::invalid_field("filter", problem))?;
    let before: Option<DocumentId> = of_earlier_step(&body.before, "before")?;
    let earlier: Option<u64> = of_earlier_step(&body.done, "done")?;
    // It leads back to the page of those that were selected.
    let after = if body.all { None } else { of_earlier_step(&body.after, "after")? };
    let list = asked.query(after);
    let (ids, next) = if body.all {
        let step = documents.bulk_step(&actor, &filter, before).await?;
        (step.ids, step.next)
    } else {
        let ids = body.ids.unwrap_or_else(|| Ok(Vec::new()));
        (ids.map_err(|_| ApiError::not_found("document"))?, None)
    };
    if ids.is_empty() && earlier.is_none() {
        let said = if body.all { "unmatched" } else { "unselected" };
        return Ok(visitor.go(&format!("documents?said={said}&{list}")));
    }
    if kind == BulkKind::Delete && !confirmation.is_given() {
        let selected = if body.all { None } else { Some(ids.len() as u64) };
        let question = question(&documents, &actor, &filter, selected).await?;
        return confirmation.ask(visitor.frame, question);
    }
    let count = match kind {
        BulkKind::Ingest => documents.each(&actor, &ids, BulkAction::Ingest).await?,
        BulkKind::Delete => documents.each(&actor, &ids, BulkAction::Delete).await?,
        BulkKind::Collect => collect(&collections, &actor, &body.collection, ids).await?,
    };
    let done = earlier.unwrap_or_default().saturating_add(count);
    let Some(next) = next else {
        // Others may have deleted all of them meanwhile.
        let said = if done == 0 { "unmatched".to_owned() } else { format!("{}&count={done}", kind.said()) };
        return Ok(visitor.go(&format!("documents?said={said}&{list}")));
    };
    let fields = vec![
        ("action", body.action),
        // What goes on was confirmed when it began.
        ("confirmed", "yes".to_owned()),
        ("all:boolean", "true".to_owned()),
        ("filter", list.clone()),
        ("collection", body.collection),
        ("before", next.to_string()),
        ("done", done.to_string()),
    ];
    let so_far = documents_words(done, false);
    let page = BulkPage { frame: visitor.frame, title: kind.title(), so_far, list, fields };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

/// Puts documents into a collection, and says how many those are.
async fn collect(
    collections: &CollectionService,
    actor: &Actor,
    collection: &str,
    ids: Vec<DocumentId>,
) -> ApiResult<u64> {
    let collection: CollectionId = collection.parse().map_err(|_| ApiError::not_found("collection"))?;
    let count = ids.len() as u64;
    if !ids.is_empty() {
        collections.put_all(actor, collection, ids).await?;
    }
    Ok(count)
}

/// Where an earlier step ended, or how far it came; none at the beginning.
fn of_earlier_step<T: FromStr>(text: &str, field: &str) -> ApiResult<Option<T>> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse()
        .map(Some)
        .map_err(|_| ApiError::invalid_field(field, "must be as an earlier step has left it"))
}

/// What is asked before so many selected documents are deleted, or all that pass a filter.
async fn question(
    documents: &DocumentService,
    actor: &Actor,
    filter: &DocumentFilter,
    selected: Option<u64>,
) -> ApiResult<String> {
    let (counted, which) = match selected {
        Some(count) => (documents_words(count, false), "that you have selected"),
        None => {
            let DocumentCount { count, has_more } = documents.count(actor, filter).await?;
            let is_filtered = *filter != DocumentFilter::default();
            let which =
                if is_filtered { "by this filter" } else { "of this workspace, which are ALL there are" };
            (documents_words(count, has_more), which)
        }
    };
    let them = if selected == Some(1) { "it" } else { "them" };
    Ok(format!("Delete {counted} {which}? Nothing finds {them} from then on."))
}
