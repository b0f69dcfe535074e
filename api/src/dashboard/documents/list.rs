//! The list of documents.

use std::str::FromStr;

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
use url::form_urlencoded::{Serializer, parse};

use super::DocumentRow;
use crate::{
    dashboard::{
        PagePolicy,
        choices::{NameChoice, collection_choice, told_apart},
        frame::{Frame, Visitor},
        html,
        text::{document_kind, documents_words, filters},
    },
    error::ApiError,
    response::ApiResult,
    services::{
        actor::Actor, collections::CollectionService, documents::DocumentService, sources::SourceService,
    },
};

/// Rows of a page.
const ROWS: u32 = 50;
/// Longest part of a name that is looked for, in characters.
const LONGEST: usize = 1_000;

/// What is said of a filter that cannot be read.
const UNCLEAR_METADATA: &str = "Metadata must be a key and a value, such as department=people.";
const UNCLEAR_STATE: &str = "There is no such state. Choose one of those that are offered.";
const UNCLEAR_TYPE: &str = "There is no such type. Choose one of those that are offered.";
const UNCLEAR_COLLECTION: &str = "There is no such collection. Choose one of those that are offered.";
const UNCLEAR_SOURCE: &str = "There is no such source. Choose one of those that are offered.";

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
    /// How many documents match.
    total: String,
    /// The filter and the order, for what is done to all that match, and to come back.
    filter: String,
    states: [(&'static str, &'static str); 5],
    types: Vec<(&'static str, &'static str)>,
    collections: NameChoice,
    /// By id and name.
    sources: Vec<(String, String)>,
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
    pub(super) source: String,
    pub(super) metadata: String,
    pub(super) sort: String,
    after: Option<DocumentId>,
}

impl ListQuery {
    /// Reads an address.
    fn of(query: &str) -> Self {
        let text = |name: &str| {
            let given = parse(query.as_bytes()).find(|(key, _)| key == name);
            let text = given.map(|(_, text)| text.replace('\0', "")).unwrap_or_default();
            text.trim().chars().take(LONGEST).collect::<String>()
        };
        Self {
            name: text("name"),
            state: page_state(&text("state")),
            r#type: text("type"),
            collection: text("collection"),
            source: text("source"),
            metadata: text("metadata"),
            sort: text("sort"),
            after: text("after").parse().ok(),
        }
    }

    /// Reads the filter of a form, as [`Self::query`] has written it. What is done to all that match must not be done to others, so nothing of
    /// it may be unknown, twice there or left open.
    pub(super) fn of_form(filter: &str) -> Result<Self, ApiError> {
        let mut read = Self::default();
        for (name, value) in parse(filter.as_bytes()) {
            let field = match &*name {
                "name" => &mut read.name,
                "state" => &mut read.state,
                "type" => &mut read.r#type,
                "collection" => &mut read.collection,
                "source" => &mut read.source,
                "metadata" => &mut read.metadata,
                "sort" => &mut read.sort,
                _ => return Err(unclear(&format!("must be a filter of the list, which has no `{name}`"))),
            };
            let value = value.trim();
            if value.is_empty()
                || value.contains('\0')
                || value.chars().count() > LONGEST
                || !field.is_empty()
            {
                return Err(unclear(&format!("must say once what `{name}` is to be")));
            }
            value.clone_into(field);
        }
        read.state = page_state(&read.state);
        read.filter().map_err(unclear)?;
        Ok(read)
    }

    /// What it says; in words, what of it cannot be read.
    pub(super) fn filter(&self) -> Result<DocumentFilter, &'static str> {
        let metadata = match self.metadata.split_once('=') {
            Some((key, value)) => Some(MetadataMatch::typed(key.trim(), value.trim())),
            None if self.metadata.is_empty() => None,
            None => return Err(UNCLEAR_METADATA),
        };
        Ok(DocumentFilter {
            name: self.name.clone(),
            state: given::<JobState>(&self.state, UNCLEAR_STATE)?,
            r#type: given::<DocumentType>(&self.r#type, UNCLEAR_TYPE)?,
            collection: given(&self.collection, UNCLEAR_COLLECTION)?,
            source: given(&self.source, UNCLEAR_SOURCE)?,
            metadata,
            unlinked: None,
        })
    }

    fn order(&self) -> DocumentOrder {
        match self.sort.as_str() {
            "oldest" => DocumentOrder::Oldest,
            "name" => DocumentOrder::Name,
            _ => DocumentOrder::Newest,
        }
    }

    /// As it stands in an address.
    pub(super) fn query(&self, after: Option<DocumentId>) -> String {
        let after = after.map(|after| after.to_string()).unwrap_or_default();
        let pairs = [
            ("name", self.name.as_str()),
            ("state", &self.state),
            ("type", &self.r#type),
            ("collection", &self.collection),
            ("source", &self.source),
            ("metadata", &self.metadata),
            ("sort", &self.sort),
            ("after", &after),
        ];
        let given = pairs.into_iter().filter(|(_, value)| !value.is_empty());
        Serializer::new(String::new()).extend_pairs(given).finish()
    }
}

/// A value of a filter; none when it is left empty.
fn given<T: FromStr>(text: &str, problem: &'static str) -> Result<Option<T>, &'static str> {
    if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(|_| problem) }
}

/// The page's word for a state, which may be given as the API tells it.
fn page_state(text: &str) -> String {
    let state = match text {
        "QUEUED" => JobState::Queued,
        "RUNNING" => JobState::Running,
        "SUCCEEDED" => JobState::Done,
        "FAILED" => JobState::Dead,
        "CANCELLED" => JobState::Cancelled,
        text => return text.to_owned(),
    };
    state.as_str().to_owned()
}

/// Refuses the filter of a form.
fn unclear(problem: &str) -> ApiError {
    ApiError::invalid_field("filter", problem)
}

/// Shows a page of the documents that somebody looks for.
#[handler]
pub(super) async fn show(
    State(documents): State<DocumentService>,
    State(service): State<CollectionService>,
    State(sources): State<SourceService>,
    visitor: Visitor,
    uri: Uri,
) -> ApiResult {
    let mut asked = ListQuery::of(uri.query().unwrap_or_default());
    let actor = visitor.actor();
    let mut frame = visitor.frame;
    let (status, filter, FoundPage { rows, has_more, total }) = match asked.filter() {
        Ok(filter) => {
            let found = find(&documents, &actor, &mut asked, &filter).await?;
            (StatusCode::OK, Some(filter), found)
        }
        // It lets nothing through. What was written stays in the form, to be set right there.
        Err(problem) => {
            frame.problem = Some(problem);
            (StatusCode::UNPROCESSABLE_ENTITY, None, FoundPage::default())
        }
    };
    let last = rows.last().map(|row| row.id).filter(|_| has_more);
    let chosen = filter.as_ref().and_then(|filter| filter.collection);
    let collections = collection_choice(&service, &actor, chosen, &uri, "").await?;
    let sources = told_apart(sources.choices(&actor).await?);
    let page = DocumentsPage {
        is_filtered: filter != Some(DocumentFilter::default()),
        total,
        filter: asked.query(None),
        states: STATES,
        types: DocumentType::ALL.iter().map(|kind| (kind.as_str(), document_kind(*kind))).collect(),
        is_busy: rows.iter().any(|row| row.state.is_busy),
        next: last.map(|last| asked.query(Some(last))),
        first: if asked.after.is_some() { format!("{}&", asked.query(None)) } else { String::new() },
        frame,
        asked,
        collections,
        sources: sources.into_iter().map(|(id, name)| (id.to_string(), name)).collect(),
        rows,
    };
    html(&PagePolicy::Own, status, &page)
}

/// A page of the list.
#[derive(Default)]
struct FoundPage {
    rows: Vec<DocumentRow>,
    /// There are more behind it.
    has_more: bool,
    /// How many there are in all, in words.
    total: String,
}

/// What is on a page; on the first one where all that stood on it is gone.
async fn find(
    documents: &DocumentService,
    actor: &Actor,
    asked: &mut ListQuery,
    filter: &DocumentFilter,
) -> ApiResult<FoundPage> {
    // One row more than is shown tells that there are more.
    let mut found = documents.browse(actor, filter, asked.order(), asked.after, ROWS + 1).await?;
    if found.is_empty() && asked.after.take().is_some() {
        found = documents.browse(actor, filter, asked.order(), None, ROWS + 1).await?;
    }
    let has_more = found.len() > ROWS as usize;
    found.truncate(ROWS as usize);
    let total = if has_more || asked.after.is_some() {
        let counted = documents.count(actor, filter).await?;
        documents_words(counted.count, counted.has_more)
    } else {
        documents_words(found.len() as u64, false)
    };
    Ok(FoundPage { rows: found.iter().map(DocumentRow::of).collect(), has_more, total })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_what_is_looked_for_and_is_written_as_it_was_read() {
        let query = "name=a+%26+b&state=dead&type=PDF&metadata=year%3D2026&sort=name";
        let read = ListQuery::of(query);
        let filter = read.filter().unwrap();
        assert_eq!(filter.name, "a & b");
        assert_eq!((filter.state, filter.r#type), (Some(JobState::Dead), Some(DocumentType::Pdf)));
        assert_eq!(filter.metadata, Some(MetadataMatch::typed("year", "2026")));
        assert_eq!(read.query(None), query);
        assert_eq!(ListQuery::of_form(query).unwrap(), read);
        assert_eq!(ListQuery::of("state=FAILED").filter().unwrap().state, Some(JobState::Dead));
        assert_eq!(ListQuery::of("state=%00&after=y").filter(), Ok(DocumentFilter::default()));
    }

    #[test]
    fn what_cannot_be_read_lets_nothing_through() {
        for query in
            ["state=failed", "type=x", "collection=bad", "source=bad", "metadata=department%3Apeople"]
        {
            assert!(ListQuery::of(query).filter().is_err(), "{query}");
            assert!(ListQuery::of_form(query).is_err(), "{query}");
        }
        for filter in
            ["%", "name", "name=", "name=+", "name=%00", "name=a&name=b", "nam=a", "after=a", "a b=c"]
        {
            assert!(ListQuery::of_form(filter).is_err(), "{filter}");
        }
        assert!(ListQuery::of_form(&format!("name={}", "a".repeat(LONGEST + 1))).is_err());
        // Written by hand it may have what browsers would have encoded.
        let read = ListQuery::of_form("name=Fact sheet 00&state=FAILED").unwrap();
        assert_eq!((read.name.as_str(), read.state.as_str()), ("Fact sheet 00", "dead"));
        assert_eq!(ListQuery::of_form("").unwrap(), ListQuery::default());
    }
}
