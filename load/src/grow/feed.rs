//! Many documents, as fast as they go.

use std::time::Duration;

use futures::{StreamExt as _, stream};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::figure::GrowthTable;
use crate::{
    api::{ApiClient, RequestProblem, id_of},
    bench::{CLIENTS, grouped, searchable},
    judge,
};

/// How often it is said how far it is.
const INTERVAL: Duration = Duration::from_secs(30);
/// How often a new document is looked at.
const POLL: Duration = Duration::from_millis(5);
/// The longest that one document may take to become searchable.
const PATIENCE: Duration = Duration::from_mins(2);

/// Does something `count` times, by several clients at once; what came of each, in their order.
pub(super) async fn by_clients<T>(
    count: u64,
    table: &GrowthTable,
    act: impl AsyncFn(u64) -> Result<T, RequestProblem>,
) -> Result<Vec<T>, RequestProblem> {
    let act = &act;
    let mut done = stream::iter(0..count).map(|number| act(number)).buffered(CLIENTS);
    let (mut results, mut said) = (Vec::new(), Instant::now());
    while let Some(result) = done.next().await {
        results.push(result?);
        if said.elapsed() > INTERVAL {
            said = Instant::now();
            table.note(&format!("{} of {} sent", grouped(results.len() as u64), grouped(count)));
        }
    }
    Ok(results)
}

/// Sends a text, and returns the id of its document.
pub(super) async fn add(
    api: &ApiClient,
    name: &str,
    content: &str,
    metadata: &Value,
) -> Result<String, RequestProblem> {
    let body = json!({"name": name, "type": "TXT", "content": content, "metadata": metadata});
    id_of(&api.post("/documents", &body).await?)
}

/// Waits until a document is searchable.
pub(super) async fn until_searchable(api: &ApiClient, id: &str) -> Result<(), RequestProblem> {
    let began = Instant::now();
    loop {
        let document = api.get(&format!("/documents/{id}")).await?;
        let status = &document["ingestion"]["status"];
        let is_over = matches!(status.as_str(), Some("SUCCEEDED" | "FAILED" | "CANCELLED"));
        if is_over || began.elapsed() > PATIENCE {
            return searchable(&document);
        }
        tokio::time::sleep(POLL).await;
    }
}

/// A page of a list of documents.
pub(super) struct DocumentPage {
    /// The documents, all of which can be searched.
    pub(super) documents: Vec<Value>,
    /// Where the next page begins.
    pub(super) next: Option<String>,
    /// How long its GET took.
    pub(super) took: Duration,
}

impl DocumentPage {
    /// Reads so many documents, from the place of a cursor on.
    pub(super) async fn read(
        api: &ApiClient,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Self, RequestProblem> {
        let cursor = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
        let path = format!("/documents?limit={limit}{cursor}");
        let began = Instant::now();
        let page = api.call(Method::GET, &path, None).await?;
        let took = began.elapsed();
        let documents = judge::array(&page["data"])?.clone();
        documents.iter().try_for_each(searchable)?;
        Ok(Self { documents, next: page["nextCursor"].as_str().map(str::to_owned), took })
    }
}
