//! What the workspace holds.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::{
    feed::{self, DocumentPage, by_clients},
    figure::GrowthTable,
};
use crate::{
    api::{ApiClient, RequestProblem, id_of},
    bench::until_idle,
    facts::DocumentLibrary,
    stats::rate,
};

/// About what a document has, in bytes: so many that it becomes ten passages.
const SIZE: usize = 14_300;
/// Of so many documents one meets a filter.
const SHELVES: u64 = 20;
/// Documents that are linked to the one agent, at most.
const LINKED: usize = 1_000;
/// Documents that are put into a collection at once.
const BATCH: usize = 1_000;
/// Documents on a page of a list.
pub(super) const PAGE: usize = 50;

/// A place in the list of documents.
pub(super) struct ListPlace {
    /// Where the page begins.
    pub(super) cursor: String,
    /// Documents on it.
    pub(super) documents: usize,
}

/// How quickly documents became searchable.
#[derive(Clone, Copy, Debug)]
pub(super) struct IngestionRate {
    /// Documents a second.
    pub(super) documents: f64,
    /// Passages a second.
    pub(super) passages: f64,
}

/// A workspace, its documents, and two agents that answer from them.
pub(super) struct GrowingWorkspace {
    pub(super) api: ApiClient,
    pub(super) library: DocumentLibrary,
    /// The documents by their numbers.
    pub(super) ids: Vec<String>,
    passages: u64,
    /// All pages of the list but the first.
    pub(super) places: Vec<ListPlace>,
    /// The agent that is linked to the first documents, and how many these are.
    pub(super) some: (String, usize),
    /// The agent that is linked to a collection, and how many documents this has: all but the newest.
    pub(super) all: (String, usize),
    collection: String,
}

impl GrowingWorkspace {
    /// A new account with nothing but its agents.
    pub(super) async fn new(api: &ApiClient) -> Result<Self, RequestProblem> {
        let api = api.sign_up("grow@example.com", "correct horse battery staple").await?;
        let collection = id_of(&api.post("/collections", &json!({"name": "Everything"})).await?)?;
        let (some, all) = (agent(&api, "Some").await?, agent(&api, "Everything").await?);
        api.post("/agent-collections", &json!({"agentId": all, "collectionId": collection})).await?;
        Ok(Self {
            api,
            library: DocumentLibrary::new("Grow", 1),
            ids: Vec::new(),
            passages: 0,
            places: Vec::new(),
            some: (some, 0),
            all: (all, 0),
            collection,
        })
    }

    /// How many documents there are, and how many passages there were when they were last counted.
    pub(super) fn held(&self) -> (u64, u64) {
        (self.ids.len() as u64, self.passages)
    }

    /// What marks a document in its metadata.
    pub(super) fn shelf(number: u64) -> Value {
        json!({"shelf": number % SHELVES})
    }

    /// Adds documents until there are so many, by several clients at once, and checks all that there are.
    pub(super) async fn ingest(
        &mut self,
        until: u64,
        table: &GrowthTable,
    ) -> Result<IngestionRate, RequestProblem> {
        let (from, passages) = (self.ids.len() as u64, self.passages);
        let count = until.saturating_sub(from);
        let began = Instant::now();
        let ids = by_clients(count, table, async |number| self.send(from + number).await).await?;
        table.note("waiting until all are ingested");
        until_idle(&self.api).await?;
        let lasted = began.elapsed();
        self.ids.extend(ids);
        table.note("checking them");
        self.walk().await?;
        let passages = self.passages.saturating_sub(passages);
        Ok(IngestionRate { documents: rate(count, lasted), passages: rate(passages, lasted) })
    }

    /// Adds one document. The time from its POST until it was ingested, and that of the search which then finds it.
    pub(super) async fn add_one(&mut self) -> Result<(Duration, Duration), RequestProblem> {
        let number = self.ids.len() as u64;
        let began = Instant::now();
        let id = self.send(number).await?;
        feed::until_searchable(&self.api, &id).await?;
        let searchable = began.elapsed();
        self.ids.push(id);
        Ok((searchable, self.search_for(number, 0, json!({"mode": "lexical"})).await?.0))
    }

    async fn send(&self, number: u64) -> Result<String, RequestProblem> {
        let content = self.library.text_of_size(number, SIZE);
        feed::add(&self.api, &self.library.name(number), &content, &Self::shelf(number)).await
    }

    /// Reads the whole list: every document is in it once, and can be searched.
    async fn walk(&mut self) -> Result<(), RequestProblem> {
        let mut is_there = vec![false; self.ids.len()];
        self.passages = 0;
        self.places.clear();
        let mut cursor: Option<String> = None;
        loop {
            let page = DocumentPage::read(&self.api, PAGE, cursor.as_deref()).await?;
            for document in &page.documents {
                let number = self.number_of(document)?;
                self.passages += document["index"]["chunks"].as_u64().unwrap_or(0);
                is_there[number] = true;
            }
            if let Some(cursor) = cursor {
                self.places.push(ListPlace { cursor, documents: page.documents.len() });
            }
            let Some(next) = page.next else { break };
            cursor = Some(next);
        }
        let lost = is_there.iter().filter(|is_there| !**is_there).count();
        if lost == 0 {
            return Ok(());
        }
        Err(RequestProblem::new("lost", format!("{lost} of {} documents are not listed", is_there.len())))
    }

    fn number_of(&self, document: &Value) -> Result<usize, RequestProblem> {
        let number = document["name"].as_str().and_then(|name| self.library.number(name));
        let number = number.and_then(|number| usize::try_from(number).ok());
        number
            .filter(|number| self.ids.get(*number).is_some_and(|id| document["id"] == id.as_str()))
            .ok_or_else(|| RequestProblem::new("unknown_document", document["name"].to_string()))
    }

    /// Links what is new: the first documents to the one agent, all of them to the other, by its collection.
    pub(super) async fn link(&mut self, table: &GrowthTable) -> Result<(), RequestProblem> {
        let (agent, linked) = (&self.some.0, self.some.1);
        let until = self.ids.len().min(LINKED);
        let new = &self.ids[linked.min(until)..until];
        by_clients(new.len() as u64, table, async |number| {
            let document = usize::try_from(number).ok().and_then(|number| new.get(number));
            self.api.post("/agent-documents", &json!({"agentId": agent, "documentId": document})).await
        })
        .await?;
        let path = format!("/collections/{}/documents", self.collection);
        for new in self.ids[self.all.1..].chunks(BATCH) {
            self.api.call(Method::POST, &path, Some(&json!({"documentIds": new}))).await?;
        }
        self.some.1 = until;
        self.all.1 = self.ids.len();
        Ok(())
    }
}

/// An agent that quotes.
async fn agent(api: &ApiClient, name: &str) -> Result<String, RequestProblem> {
    let llm = json!({"provider": "extractive", "model": "extractive"});
    id_of(&api.post("/agents", &json!({"name": name, "type": "CHATVENDOR", "llm": llm})).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_twenty_documents_one_meets_a_filter() {
        let shelf = GrowingWorkspace::shelf(7);
        let same = (0..200).filter(|number| GrowingWorkspace::shelf(*number) == shelf).count();
        assert_eq!(same, 10);
    }
}
