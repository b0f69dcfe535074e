//! What the users of the service do, and what the answers have to be.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::{sync::watch, time::Instant};

use super::corpus::{Corpus, DocumentVisibility, PublishedDocument};
use crate::{
    api::{ApiClient, RequestProblem, id_of},
    facts::{CorpusFormat, DocumentFact, DocumentLibrary, FACTS},
    judge::{self, array},
    random::SeededRandom,
    stats::{LoadOperation, StatsRecorder},
};

/// Passages that a search asks for.
const PASSAGES: u64 = 10;
/// Items on a page of a list.
const PAGE: usize = 50;
/// How often a document is asked for until it is searchable: at first, and at the longest.
const POLL: (Duration, Duration) = (Duration::from_millis(25), Duration::from_millis(500));

/// Everything that the tasks of a run share.
pub(super) struct LoadUser {
    pub(super) api: ApiClient,
    pub(super) library: DocumentLibrary,
    pub(super) corpus: Corpus,
    pub(super) recorder: StatsRecorder,
    /// The id of the agent that is asked.
    pub(super) agent: String,
    /// What marks the documents of this run in their metadata.
    pub(super) run: String,
    /// Becomes true when nobody waits for documents any longer.
    pub(super) given_up: watch::Receiver<bool>,
}

impl LoadUser {
    /// Adds a document, waits until it is searchable, and links it to the agent. `due` is when it should have been sent.
    pub(super) async fn add(&self, due: Instant) {
        let number = self.corpus.begin();
        let (name, kind) = (self.library.name(number), CorpusFormat::of(number));
        let metadata = json!({"load": self.run, "number": number, "revision": 0});
        let (operation, sent) = match kind {
            CorpusFormat::Pdf => {
                let file = self.library.pdf(number);
                let name = format!("{name}.pdf");
                (LoadOperation::Upload, self.api.upload(&name, "application/pdf", &file, &metadata).await)
            }
            CorpusFormat::Text | CorpusFormat::Table => {
                let r#type = if kind == CorpusFormat::Table { "CSV" } else { "TXT" };
                let content = self.library.text(number);
                let body = json!({"name": name, "type": r#type, "content": content, "metadata": metadata});
                (LoadOperation::Post, self.api.post("/documents", &body).await)
            }
        };
        let sent = sent.and_then(|document| id_of(&document));
        if let Err(problem) = &sent
            && problem.is_answer()
        {
            self.corpus.refused(number);
        }
        let Some(id) = self.recorder.outcome(operation, due.elapsed(), sent) else { return };
        self.corpus.taken(number, &id);
        let searchable = self.until_searchable(&id).await;
        if self.recorder.outcome(LoadOperation::Ingestion, due.elapsed(), searchable).is_none() {
            return;
        }
        let began = Instant::now();
        let body = json!({"agentId": self.agent, "documentId": id});
        let linked = self.api.post("/agent-documents", &body).await;
        if self.recorder.outcome(LoadOperation::Link, began.elapsed(), linked).is_some() {
            self.corpus.publish(number);
        }
    }

    async fn until_searchable(&self, id: &str) -> Result<(), RequestProblem> {
        let mut given_up = self.given_up.clone();
        let (mut pause, longest) = POLL;
        loop {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = given_up.wait_for(|given_up| *given_up) => {
                    return Err(RequestProblem::new("stuck", format!("document {id} is not searchable at the end")));
                }
            }
            pause = (pause * 4 / 3).min(longest);
            let began = Instant::now();
            let document = self.api.get(&format!("/documents/{id}")).await;
            let Some(document) = self.recorder.outcome(LoadOperation::Get, began.elapsed(), document) else {
                // It is counted; the document itself may be well.
                continue;
            };
            let ingestion = &document["ingestion"];
            match ingestion["status"].as_str() {
                Some("SUCCEEDED") if document["index"]["chunks"].as_u64() > Some(0) => return Ok(()),
                Some("SUCCEEDED") => {
                    return Err(RequestProblem::new("no_passages", format!("document {id}")));
                }
                Some("FAILED" | "CANCELLED") => {
                    let code = ingestion["error"]["code"].as_str().unwrap_or("cancelled");
                    return Err(RequestProblem::new(
                        &format!("failed_{code}"),
                        format!("document {id}: {ingestion}"),
                    ));
                }
                _ => {}
            }
        }
    }

    /// Searches for a fact of any document.
    pub(super) async fn search(&self, due: Instant, mut random: SeededRandom) {
        let Some((document, fact)) = self.any_fact(&mut random) else { return };
        // Both over everything that the account has, and as the agent does.
        let agent = (random.below(2) == 0).then_some(self.agent.as_str());
        let outcome = self.search_for(&document, &fact, agent).await;
        self.recorder.outcome(LoadOperation::Search, due.elapsed(), outcome);
    }

    async fn search_for(
        &self,
        document: &PublishedDocument,
        fact: &DocumentFact,
        agent: Option<&str>,
    ) -> Result<(), RequestProblem> {
        let asked = Instant::now();
        let mut body = json!({"query": fact.question, "limit": PASSAGES});
        if let Some(agent) = agent {
            body["agentId"] = json!(agent);
        }
        let passages = self.api.post("/search", &body).await?;
        let passages = array(&passages)?;
        self.none_removed(passages, "documentName", asked)?;
        let is_it =
            |passage: &Value| passage["documentId"] == document.id.as_str() && judge::says(passage, fact);
        if passages.iter().any(is_it) || !self.must_be_found(document, asked) {
            return Ok(());
        }
        let found: Vec<_> = passages.iter().filter_map(|passage| passage["documentName"].as_str()).collect();
        let name = self.library.name(document.number);
        Err(RequestProblem::new(
            "fact_not_found",
            format!("{:?} is in {name}, found was {found:?}", fact.question),
        ))
    }

    /// Asks the agent for a fact of any document.
    pub(super) async fn ask(&self, due: Instant, mut random: SeededRandom) {
        let Some((document, fact)) = self.any_fact(&mut random) else { return };
        let asked = Instant::now();
        let body = json!({"input": {"input": fact.question}});
        let path = format!("/agents/{}/predict", self.agent);
        let outcome = match self.api.call(Method::POST, &path, Some(&body)).await {
            Ok(envelope) => self.judge_answer(&document, &fact, &envelope, asked),
            Err(problem) => Err(problem),
        };
        self.recorder.outcome(LoadOperation::Predict, due.elapsed(), outcome);
    }

    fn judge_answer(
        &self,
        document: &PublishedDocument,
        fact: &DocumentFact,
        envelope: &Value,
        asked: Instant,
    ) -> Result<(), RequestProblem> {
        let citations = array(&envelope["trace"]["citations"])?;
        self.none_removed(citations, "documentName", asked)?;
        if !self.must_be_found(document, asked) {
            return Ok(());
        }
        judge::answered(envelope, &document.id, fact)
    }

    /// Reads one page of a list, or two.
    pub(super) async fn list(&self, due: Instant, mut random: SeededRandom) {
        let asked = Instant::now();
        let (operation, path) = match random.below(6) {
            0 => (LoadOperation::List, format!("/agents?limit={PAGE}")),
            1 => (LoadOperation::List, format!("/agent-documents?limit={PAGE}")),
            2 => (LoadOperation::Traces, format!("/traces?agentId={}&limit={PAGE}", self.agent)),
            _ => (LoadOperation::List, format!("/documents?limit={PAGE}")),
        };
        let first = self.page(&path, None, asked).await;
        let cursor = self.recorder.outcome(operation, due.elapsed(), first).flatten();
        if let Some((cursor, oldest)) = cursor
            && random.below(2) == 0
        {
            let began = Instant::now();
            let second = self.page(&format!("{path}&cursor={cursor}"), Some(&oldest), began).await;
            self.recorder.outcome(operation, began.elapsed(), second);
        }
    }

    /// Reads a page, and returns the next one's cursor with the id of the last item. `before` is the id that all of them follow.
    /// Ids grow with time, so the newest comes first when they fall.
    async fn page(
        &self,
        path: &str,
        before: Option<&str>,
        asked: Instant,
    ) -> Result<Option<(String, String)>, RequestProblem> {
        let envelope = self.api.call(Method::GET, path, None).await?;
        let items = array(&envelope["data"])?;
        if items.len() > PAGE {
            return Err(RequestProblem::new("page_too_long", format!("{} items: {path}", items.len())));
        }
        if path.starts_with("/documents") {
            self.none_removed(items, "name", asked)?;
        }
        let ids: Vec<&str> =
            before.into_iter().chain(items.iter().filter_map(|item| item["id"].as_str())).collect();
        if !ids.is_sorted_by(|newer, older| newer > older) {
            return Err(RequestProblem::new("list_not_in_order", format!("{path}: {ids:?}")));
        }
        let cursor = envelope["nextCursor"].as_str();
        if cursor.is_some() && items.len() != PAGE {
            return Err(RequestProblem::new(
                "page_too_short",
                format!("{} items, and more follow: {path}", items.len()),
            ));
        }
        Ok(cursor.zip(ids.last().copied()).map(|(cursor, last)| (cursor.to_owned(), last.to_owned())))
    }

    /// Changes the metadata of any document, and checks that the next search goes by it.
    pub(super) async fn change(&self, due: Instant, mut random: SeededRandom) {
        let Some((document, revision)) = self.corpus.any_to_change(&mut random) else { return };
        let metadata = json!({"load": self.run, "number": document.number, "revision": revision});
        let path = format!("/documents/{}", document.id);
        let changed = self.api.call(Method::PATCH, &path, Some(&json!({"metadata": metadata}))).await;
        let changed = changed.and_then(|envelope| {
            let now = &envelope["data"]["metadata"];
            let right = *now == metadata;
            right
                .then_some(())
                .ok_or_else(|| RequestProblem::new("not_changed", format!("{now} is not {metadata}")))
        });
        if self.recorder.outcome(LoadOperation::Patch, due.elapsed(), changed).is_some() {
            let began = Instant::now();
            let checked = self.found_by_metadata(&document, &metadata).await;
            self.recorder.outcome(LoadOperation::Check, began.elapsed(), checked);
        }
        self.corpus.changed(document.number);
    }

    async fn found_by_metadata(
        &self,
        document: &PublishedDocument,
        metadata: &Value,
    ) -> Result<(), RequestProblem> {
        let question = self.library.fact(document.number, 0).question;
        let body = json!({"query": question, "filter": metadata, "limit": 1});
        let passages = self.api.post("/search", &body).await?;
        match array(&passages)?.first() {
            Some(passage) if passage["documentId"] == document.id.as_str() => Ok(()),
            other => Err(RequestProblem::new("change_not_found", format!("{metadata} finds {other:?}"))),
        }
    }

    /// Deletes the oldest document when there are more than `keep`, and one more while there are: what came in a burst goes soon.
    pub(super) async fn remove_oldest(&self, due: Instant, keep: usize, mut random: SeededRandom) {
        if let Some(document) = self.corpus.oldest(keep) {
            self.remove(&document, due, &mut random).await;
        }
        if let Some(document) = self.corpus.oldest(keep) {
            self.remove(&document, Instant::now(), &mut random).await;
        }
    }

    /// Deletes a document, and checks that it is gone.
    async fn remove(&self, document: &PublishedDocument, due: Instant, random: &mut SeededRandom) {
        let path = format!("/documents/{}", document.id);
        let removed = self.api.call(Method::DELETE, &path, None).await;
        if self.recorder.outcome(LoadOperation::Delete, due.elapsed(), removed).is_none() {
            return;
        }
        self.corpus.removed(document.number);
        let began = Instant::now();
        let checked = self.is_gone(document, random).await;
        self.recorder.outcome(LoadOperation::Check, began.elapsed(), checked);
    }

    async fn is_gone(
        &self,
        document: &PublishedDocument,
        random: &mut SeededRandom,
    ) -> Result<(), RequestProblem> {
        match self.api.get(&format!("/documents/{}", document.id)).await {
            Err(problem) if problem.code == "not_found" => {}
            Err(problem) => return Err(problem),
            Ok(_) => return Err(RequestProblem::new("deleted_document_there", document.id.clone())),
        }
        let asked = Instant::now();
        let which = u64::try_from(random.below(3)).unwrap_or(0) % FACTS;
        let question = self.library.fact(document.number, which).question;
        let passages = self.api.post("/search", &json!({"query": question, "limit": PASSAGES})).await?;
        self.none_removed(array(&passages)?, "documentName", asked)
    }

    /// None of these is of a document that was removed before the question was asked.
    fn none_removed(&self, items: &[Value], name: &str, asked: Instant) -> Result<(), RequestProblem> {
        let numbers = items.iter().filter_map(|item| {
            let name = item[name].as_str()?;
            self.library.number(name.trim_end_matches(".pdf"))
        });
        for number in numbers {
            if self.corpus.standing(number, asked) == DocumentVisibility::Removed {
                let message = format!("{} was deleted before", self.library.name(number));
                return Err(RequestProblem::new("deleted_document_found", message));
            }
        }
        Ok(())
    }

    /// Whether the document is still one that has to be found, now that the answer is there.
    fn must_be_found(&self, document: &PublishedDocument, asked: Instant) -> bool {
        self.corpus.standing(document.number, asked) == DocumentVisibility::Published
    }

    fn any_fact(&self, random: &mut SeededRandom) -> Option<(PublishedDocument, DocumentFact)> {
        let document = self.corpus.any(random)?;
        let which = u64::try_from(random.below(usize::try_from(FACTS).unwrap_or(1))).unwrap_or(0);
        let fact = self.library.fact(document.number, which);
        Some((document, fact))
    }
}
