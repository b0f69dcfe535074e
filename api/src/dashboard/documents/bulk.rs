//! The same done to many documents: step by step, so that no request lasts long, and what was done stays done.

use askama::Template;
use axum::{extract::State, http::StatusCode};
use lectern_derive::{RequestBody, handler};
use lectern_shared::ids::{CollectionId, DocumentId};
use utoipa::ToSchema;

use super::list::ListQuery;
use crate::{
    dashboard::{
        PagePolicy,
        frame::{Frame, SubmittedForm},
        html,
    },
    error::{ApiError, FieldError},
    fields::GivenIds,
    response::ApiResult,
    services::{
        collections::CollectionService,
        documents::{BulkAction, DocumentService},
    },
};

#[derive(Template)]
#[template(path = "bulk.html")]
struct BulkPage {
    frame: Frame,
    title: &'static str,
    done: u64,
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

/// Does it to as many documents as a request is for, and goes on with the next page where there are more.
#[handler]
pub(super) async fn apply(
    State(documents): State<DocumentService>,
    State(collections): State<CollectionService>,
    SubmittedForm { visitor, body, .. }: SubmittedForm<BulkForm>,
) -> ApiResult {
    let actor = visitor.actor();
    let (ids, next) = if body.all {
        let filter = ListQuery::of(&body.filter).filter();
        let step = documents.bulk_step(&actor, &filter, body.before.parse().ok()).await?;
        (step.ids, step.next)
    } else {
        let ids = body.ids.unwrap_or_else(|| Ok(Vec::new()));
        (ids.map_err(|_| ApiError::not_found("document"))?, None)
    };
    if ids.is_empty() && body.done.is_empty() {
        let said = if body.all { "unmatched" } else { "unselected" };
        return Ok(visitor.go(&format!("documents?said={said}&{}", body.filter)));
    }
    let (title, said, count) = match body.action.as_str() {
        "ingest" => {
            let count = documents.each(&actor, &ids, BulkAction::Ingest).await?;
            ("Documents are read again", "queued", count)
        }
        "delete" => {
            let count = documents.each(&actor, &ids, BulkAction::Delete).await?;
            ("Documents are deleted", "deleted", count)
        }
        "collect" => {
            let collection: CollectionId =
                body.collection.parse().map_err(|_| ApiError::not_found("collection"))?;
            if !ids.is_empty() {
                collections.put_all(&actor, collection, ids.clone()).await?;
            }
            ("Documents are put into the collection", "added", ids.len() as u64)
        }
        _ => {
            let message = "must be ingest, delete or collect".to_owned();
            return Err(ApiError::invalid(vec![FieldError { path: "action".to_owned(), message }]));
        }
    };
    let done = body.done.parse::<u64>().unwrap_or_default().saturating_add(count);
    let Some(next) = next else {
        // Others may have deleted all of them meanwhile.
        let said = if done == 0 { "unmatched" } else { said };
        return Ok(visitor.go(&format!("documents?said={said}&{}", body.filter)));
    };
    let fields = vec![
        ("action", body.action),
        ("all:boolean", "true".to_owned()),
        ("filter", body.filter),
        ("collection", body.collection),
        ("before", next.to_string()),
        ("done", done.to_string()),
    ];
    html(&PagePolicy::Own, StatusCode::OK, &BulkPage { frame: visitor.frame, title, done, fields })
}
