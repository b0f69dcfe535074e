//! The receipt of a document's deletion.

use askama::Template;
use axum::{extract::State, http::StatusCode};
use lectern_derive::handler;
use lectern_shared::{ids::DocumentId, model::receipt::DeletionReceipt};

use crate::{
    dashboard::{
        PagePolicy,
        frame::{Frame, Visitor},
        html,
        text::{self, filters},
    },
    extract::PathId,
    response::ApiResult,
    services::documents::DocumentService,
};

#[derive(Template)]
#[template(path = "receipt.html")]
struct ReceiptPage {
    frame: Frame,
    receipt: DeletionReceipt,
    /// Who deleted it, as far as that is told to whoever looks.
    who: String,
    removed: [(&'static str, String); 5],
}

/// Shows it.
#[handler]
pub(super) async fn show(
    State(documents): State<DocumentService>,
    visitor: Visitor,
    PathId(id): PathId<DocumentId>,
) -> ApiResult {
    let receipt = documents.receipt(&visitor.actor(), id).await?;
    let is_own = receipt.deleted_by == visitor.caller.user.id;
    let page = ReceiptPage {
        who: if is_own { "you".to_owned() } else { receipt.deleted_by.to_string() },
        removed: [
            ("Passages", receipt.passages.to_string()),
            ("Entries of the index", receipt.index_entries.to_string()),
            ("Vectors", receipt.vectors.to_string()),
            ("Stored", text::size(receipt.bytes.unsigned_abs())),
            ("Links", receipt.links.to_string()),
        ],
        receipt,
        frame: visitor.frame,
    };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}
