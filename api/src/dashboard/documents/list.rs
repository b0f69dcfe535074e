//! The list of documents.

use askama::Template;
use axum::{
    extract::State,
    http::{StatusCode, Uri},
};
use lectern_db::documents::browse::{DocumentFilter, DocumentOrder, MetadataMatch};
use lectern_derive::handler;
use lectern_shared::{
    ids::DocumentId,
    model::{document::DocumentType, job::JobState},
};
use url::form_urlencoded::Serializer;

use super::DocumentRow;
use crate::{
    dashboard::{
        PagePolicy,
        choices::{NameChoice, collection_choice},
        frame::{Frame, Visitor},
        html,
        text::filters,
    },
    error::ApiError,
    extract::parameter,
    response::ApiResult,
    services::{collections::CollectionService, documents::DocumentService},
};

/// Rows of a page.
const ROWS: u32 = 50;
/// Longest part of a name that is looked for, in characters.
const LONGEST: usize = 1_000;

/// What is said of a filter that cannot be read.
const UNCLEAR_METADATA: &str = "Metadata must be a key and a value, such as department=people.";

/// What the states of ingestions are called on the page.
const STATES: [(&str, &str); 5] = [
    ("queued", "Waits"),
    ("running", "Is being read"),
    ("done", "Ready"),
    ("dead", "Failed"),
    ("cancelled", "Stopped"),
];

#[derive(Template)]
#[template(path = "documents.html")]
struct DocumentsPage {
    frame: Frame,
    asked: ListQuery,
    is_filtered: bool,
    /// The filter alone, for what is done to all that match.
    filter: String,
    states: [(&'static str, &'static str); 5],
    types: Vec<&'static str>,
    collections: NameChoice,
    rows: Vec<DocumentRow>,
    /// Something on the page changes soon.
    is_busy: bool,
    /// The query of the next page, if there is one.
    next: Option<String>,
    /// The query of the first page, on another one.
    first: String,
}

/// What somebody looks for, as the address has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ListQuery {
    pub(super) name: String,
    pub(super) state: String,
    pub(super) r#type: String,
    pub(super) collection: String,
    pub(super) metadata: String,
    pub(super) sort: String,
    after: Option<DocumentId>,
}

impl ListQuery {
    /// Reads an address.
    pub(super) fn of(query: &str) -> Self {
        let uri: Uri = format!("/?{query}").parse().unwrap_or_default();
        let text = |name: &str| {
            let text = parameter(&uri, name).unwrap_or_default().replace('\0', "");
            text.trim().chars().take(LONGEST).collect::<String>()
        };
        Self {
            name: text("name"),
            state: text("state"),
            r#type: text("type"),
            collection: text("collection"),
            metadata: text("metadata"),
            sort: text("sort"),
            after: text("after").parse().ok(),
        }
    }

    /// What it says. A state or type that does not exist lets everything through, as the choice on the page then does.
    pub(super) fn filter(&self) -> DocumentFilter {
        let metadata = match self.metadata.split_once('=') {
            Some((key, value)) => Some(MetadataMatch::typed(key.trim(), value.trim())),
            None if self.metadata.is_empty() => None,
            // Nothing is let through: somebody meant something by it, and perhaps to delete that.
            None => Some(MetadataMatch { key: self.metadata.clone(), values: Vec::new() }),
        };
        DocumentFilter {
            name: self.name.clone(),
            state: self.state.parse::<JobState>().ok(),
            r#type: self.r#type.parse::<DocumentType>().ok(),
            collection: self.collection.parse().ok(),
            metadata,
            unlinked: None,
        }
    }

    fn order(&self) -> DocumentOrder {
        match self.sort.as_str() {
            "oldest" => DocumentOrder::Oldest,
            "name" => DocumentOrder::Name,
            _ => DocumentOrder::Newest,
        }
    }

    /// As it stands in an address.
    pub(super) fn query(&self, with_order: bool, after: Option<DocumentId>) -> String {
        let after = after.map(|after| after.to_string()).unwrap_or_default();
        let sort = if with_order { self.sort.as_str() } else { "" };
        let pairs = [
            ("name", self.name.as_str()),
            ("state", &self.state),
            ("type", &self.r#type),
            ("collection", &self.collection),
            ("metadata", &self.metadata),
            ("sort", sort),
            ("after", &after),
        ];
        let given = pairs.into_iter().filter(|(_, value)| !value.is_empty());
        Serializer::new(String::new()).extend_pairs(given).finish()
    }
}

/// Shows a page of the documents that somebody looks for.
#[handler]
pub(super) async fn show(
    State(documents): State<DocumentService>,
    State(service): State<CollectionService>,
    visitor: Visitor,
    uri: Uri,
) -> ApiResult {
    let asked = ListQuery::of(uri.query().unwrap_or_default());
    let filter = asked.filter();
    if !asked.collection.is_empty() && filter.collection.is_none() {
        return Err(ApiError::not_found("collection"));
    }
    // It lets nothing through. What was written stays in the form, to be set right there.
    let is_unclear = filter.metadata.as_ref().is_some_and(|metadata| metadata.values.is_empty());
    let problem = is_unclear.then_some(UNCLEAR_METADATA).or(visitor.frame.problem);
    let status = if is_unclear { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let actor = visitor.actor();
    // One row more than is shown tells that there are more.
    let mut found = documents.browse(&actor, &filter, asked.order(), asked.after, ROWS + 1).await?;
    let has_more = found.len() > ROWS as usize;
    found.truncate(ROWS as usize);
    let last = found.last().map(|document| document.id).filter(|_| has_more);
    let rows: Vec<DocumentRow> = found.iter().map(DocumentRow::of).collect();
    let collections = collection_choice(&service, &actor, filter.collection, &uri, "").await?;
    let mut frame = visitor.frame;
    frame.problem = problem;
    let page = DocumentsPage {
        is_filtered: filter != DocumentFilter::default(),
        filter: asked.query(false, None),
        states: STATES,
        types: DocumentType::ALL.iter().map(|kind| kind.as_str()).collect(),
        is_busy: rows.iter().any(|row| row.state.is_busy),
        next: last.map(|last| asked.query(true, Some(last))),
        first: if asked.after.is_some() { format!("{}&", asked.query(true, None)) } else { String::new() },
        frame,
        asked,
        collections,
        rows,
    };
    html(&PagePolicy::Own, status, &page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_what_is_looked_for_and_is_written_as_it_was_read() {
        let query = "name=a+%26+b&state=dead&type=PDF&metadata=year%3D2026&sort=name";
        let read = ListQuery::of(query);
        let filter = read.filter();
        assert_eq!(filter.name, "a & b");
        assert_eq!((filter.state, filter.r#type), (Some(JobState::Dead), Some(DocumentType::Pdf)));
        assert_eq!(filter.metadata, Some(MetadataMatch::typed("year", "2026")));
        assert_eq!(read.query(true, None), query);
        assert_eq!(ListQuery::of("state=%00&type=x&after=y").filter(), DocumentFilter::default());
        let unclear = ListQuery::of("metadata=department%3Apeople").filter().metadata.unwrap();
        assert!(unclear.values.is_empty(), "it lets nothing through");
    }
}
