//! Requests one after the other, and documents as fast as they go.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    api::{ApiClient, RequestProblem, envelope, id_of},
    bench::{BenchError, CLIENTS, RequestPlan, SMALL, searchable, timed, until_idle},
    facts::DocumentLibrary,
    judge,
    random::SeededRandom,
    stats::{LatencyHistogram, rate},
};

/// Requests of each kind before those that are timed.
const WARM_UP: u64 = 50;
/// Pages of each PDF.
pub(super) const PAGES: usize = 50;

/// A service, an account there, and the documents that it has.
pub(super) struct ServiceBench {
    pub(super) api: ApiClient,
    library: DocumentLibrary,
    ids: Vec<String>,
}

impl ServiceBench {
    /// A new account.
    pub(super) async fn new(api: &ApiClient) -> Result<Self, BenchError> {
        let api = api.sign_up("table@example.com", "correct horse battery staple").await?;
        Ok(Self { api, library: DocumentLibrary::new("Table", 1), ids: Vec::new() })
    }

    /// How many small documents there are.
    pub(super) fn documents(&self) -> usize {
        self.ids.len()
    }

    /// GET /health/live: what every time holds of the client itself.
    pub(super) async fn client(&self, requests: u64) -> Result<LatencyHistogram, BenchError> {
        timed(plan(requests), async |_| {
            let began = Instant::now();
            envelope(self.api.request(Method::GET, "/health/live")).await?;
            Ok(began.elapsed())
        })
        .await
    }

    /// POST /documents one after the other. With `alone`, the one before has been ingested each time.
    pub(super) async fn post(&mut self, requests: u64, alone: bool) -> Result<LatencyHistogram, BenchError> {
        let mut ids = Vec::new();
        let from = self.ids.len() as u64;
        let latency = timed(plan(requests), async |number| {
            let body = self.body(from + number);
            let began = Instant::now();
            let document = self.api.post("/documents", &body).await?;
            let time = began.elapsed();
            ids.push(id_of(&document)?);
            if alone {
                until_idle(&self.api).await?;
            }
            Ok(time)
        })
        .await?;
        self.ids.extend(ids);
        until_idle(&self.api).await?;
        Ok(latency)
    }

    /// Adds small documents until there are so many.
    pub(super) async fn fill(&mut self, until: u64) -> Result<(), BenchError> {
        let there = self.ids.len() as u64;
        if there < until {
            self.ingest(until - there).await?;
        }
        Ok(())
    }

    /// Adds small documents by several clients at once; how many became searchable in a second.
    pub(super) async fn ingest(&mut self, count: u64) -> Result<f64, BenchError> {
        let api = &self.api;
        let from = self.ids.len() as u64;
        // Written before the clock runs.
        let bodies: Vec<Value> = (from..from + count).map(|number| self.body(number)).collect();
        let began = Instant::now();
        let posts = bodies.iter().map(|body| async move { id_of(&api.post("/documents", body).await?) });
        let ids: Vec<String> = stream::iter(posts).buffered(CLIENTS).try_collect().await?;
        until_idle(&self.api).await?;
        let lasted = began.elapsed();
        self.ids.extend(ids);
        self.all_searchable().await?;
        Ok(rate(count, lasted))
    }

    /// Uploads PDFs by several clients at once; how many pages became searchable in a second.
    pub(super) async fn ingest_pdfs(&self, count: u64) -> Result<f64, BenchError> {
        let first = 1_000_000;
        let files: Vec<(String, Vec<u8>)> = (first..first + count)
            .map(|number| {
                (format!("{}.pdf", self.library.name(number)), self.library.pdf_of_pages(number, PAGES))
            })
            .collect();
        let none = json!({});
        let none = &none;
        let began = Instant::now();
        let uploads = files.iter().map(|(name, file)| async move {
            id_of(&self.api.upload(name, "application/pdf", file, none).await?)
        });
        let ids: Vec<String> = stream::iter(uploads).buffered(CLIENTS).try_collect().await?;
        until_idle(&self.api).await?;
        let lasted = began.elapsed();
        for id in &ids {
            let document = self.api.get(&format!("/documents/{id}")).await?;
            searchable(&document)?;
        }
        Ok(rate(count * PAGES as u64, lasted))
    }

    /// GET of a page of 50 documents.
    pub(super) async fn list(&self, requests: u64) -> Result<LatencyHistogram, BenchError> {
        timed(plan(requests), async |_| {
            let began = Instant::now();
            let page = self.api.get("/documents?limit=50").await?;
            let time = began.elapsed();
            match page.as_array().map(Vec::len) {
                Some(50) => Ok(time),
                other => Err(RequestProblem::new("not_an_answer", format!("a page of {other:?} documents"))),
            }
        })
        .await
    }

    /// POST /search for a fact of any document, which has to be found.
    pub(super) async fn search(&self, requests: u64, mode: &str) -> Result<LatencyHistogram, BenchError> {
        let mut random = SeededRandom::new(2);
        timed(plan(requests), async |_| {
            let number = self.any(&mut random);
            let fact = self.library.fact(number, random.next());
            let body = json!({"query": fact.question, "mode": mode});
            let began = Instant::now();
            let passages = self.api.post("/search", &body).await?;
            let time = began.elapsed();
            judge::found(&passages, &fact).map(|()| time)
        })
        .await
    }

    /// An agent that asks the model at `base_url` and is linked to every document.
    pub(super) async fn agent(&self, base_url: &str) -> Result<String, BenchError> {
        let llm = json!({"provider": "openai-compatible", "model": "load", "base_url": base_url, "api_key": "none"});
        let agent = json!({"name": "Table", "type": "CHATVENDOR", "llm": llm});
        let agent = id_of(&self.api.post("/agents", &agent).await?)?;
        let agent = Arc::new(agent);
        let links = self.ids.iter().map(|document| {
            let body = json!({"agentId": *agent, "documentId": document});
            async move { self.api.post("/agent-documents", &body).await }
        });
        let _: Vec<Value> = stream::iter(links).buffer_unordered(CLIENTS).try_collect().await?;
        Ok(agent.to_string())
    }

    /// POST /agents/{id}/predict with a question that a document answers.
    pub(super) async fn predict(&self, agent: &str, requests: u64) -> Result<LatencyHistogram, BenchError> {
        let mut random = SeededRandom::new(3);
        let path = format!("/agents/{agent}/predict");
        timed(plan(requests), async |_| {
            let number = self.any(&mut random);
            let fact = self.library.fact(number, random.next());
            let body = json!({"input": {"input": fact.question}});
            let began = Instant::now();
            let answer = self.api.call(Method::POST, &path, Some(&body)).await?;
            let time = began.elapsed();
            match &answer["trace"]["finishReason"] {
                Value::String(reason) if reason == "stop" => Ok(time),
                other => Err(RequestProblem::new("not_an_answer", format!("a predict ended with {other}"))),
            }
        })
        .await
    }

    /// The same model, asked without the service, until its answer's end.
    pub(super) async fn model(
        &self,
        model: &ApiClient,
        requests: u64,
    ) -> Result<LatencyHistogram, BenchError> {
        let body =
            json!({"model": "load", "stream": true, "messages": [{"role": "user", "content": "When?"}]});
        timed(plan(requests), async |_| {
            let began = Instant::now();
            model.stream(&body).await?;
            Ok(began.elapsed())
        })
        .await
    }

    fn body(&self, number: u64) -> Value {
        let content = self.library.text_of_size(number, SMALL);
        json!({"name": self.library.name(number), "type": "TXT", "content": content})
    }

    fn any(&self, random: &mut SeededRandom) -> u64 {
        random.below(self.ids.len()) as u64
    }

    /// Every document was ingested, and not only taken off the queue.
    async fn all_searchable(&self) -> Result<(), RequestProblem> {
        let documents = self.api.get("/documents").await?;
        let documents = documents.as_array().map_or(&[] as &[Value], Vec::as_slice);
        if documents.len() < self.ids.len() {
            return Err(RequestProblem::new(
                "lost",
                format!("{} of {} documents", documents.len(), self.ids.len()),
            ));
        }
        documents.iter().try_for_each(searchable)
    }
}

/// So many requests, however long they take.
fn plan(requests: u64) -> RequestPlan {
    RequestPlan { warm_up: WARM_UP, requests, longest: Duration::MAX }
}
