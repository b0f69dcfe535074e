//! What is asked of it.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    super::feed::DocumentPage,
    fill::{GrowingWorkspace, PAGE},
};
use crate::{
    api::{ApiClient, RequestProblem},
    bench::{BenchError, RequestPlan, timed},
    judge,
    random::SeededRandom,
    stats::LatencyHistogram,
};

/// Documents that a search is restricted to.
const FEW: usize = 10;

impl GrowingWorkspace {
    /// GET of the newest documents.
    pub(super) async fn list(&self, plan: RequestPlan) -> Result<LatencyHistogram, BenchError> {
        timed(plan, async |_| self.page(None, PAGE.min(self.ids.len())).await).await
    }

    /// GET of pages from the middle half of the list; none when it has only one.
    pub(super) async fn list_middle(
        &self,
        plan: RequestPlan,
    ) -> Result<Option<LatencyHistogram>, BenchError> {
        let mut random = SeededRandom::new(4);
        let quarter = self.places.len() / 4;
        let middle = &self.places[quarter..self.places.len() - quarter];
        if middle.is_empty() {
            return Ok(None);
        }
        let latency = timed(plan, async |_| {
            let place = &middle[random.below(middle.len())];
            self.page(Some(&place.cursor), place.documents).await
        });
        latency.await.map(Some)
    }

    async fn page(&self, cursor: Option<&str>, documents: usize) -> Result<Duration, RequestProblem> {
        let page = DocumentPage::read(&self.api, PAGE, cursor).await?;
        if page.documents.len() == documents {
            return Ok(page.took);
        }
        let message = format!("{} documents instead of {documents}", page.documents.len());
        Err(RequestProblem::new("page_too_short", message))
    }

    /// POST /search in everything.
    pub(super) async fn search(&self, plan: RequestPlan, mode: &str) -> Result<LatencyHistogram, BenchError> {
        let mut random = SeededRandom::new(2);
        timed(plan, async |_| {
            let (number, which) = (random.below(self.ids.len()) as u64, random.next());
            Ok(self.search_for(number, which, json!({"mode": mode})).await?.0)
        })
        .await
    }

    /// POST /search by words in ten documents.
    pub(super) async fn search_documents(&self, plan: RequestPlan) -> Result<LatencyHistogram, BenchError> {
        let mut random = SeededRandom::new(5);
        timed(plan, async |_| {
            let numbers = some_of(self.ids.len(), FEW, &mut random);
            let asked = numbers[random.below(numbers.len())] as u64;
            let ids: Vec<&str> = numbers.into_iter().map(|number| self.ids[number].as_str()).collect();
            let body = json!({"mode": "lexical", "documentIds": ids});
            let (time, passages) = self.search_for(asked, random.next(), body).await?;
            let is_one = |passage: &Value| ids.iter().any(|id| passage["documentId"] == *id);
            only(&passages, is_one).map(|()| time)
        })
        .await
    }

    /// POST /search by words in the documents whose metadata meets a filter.
    pub(super) async fn search_filter(&self, plan: RequestPlan) -> Result<LatencyHistogram, BenchError> {
        let mut random = SeededRandom::new(6);
        timed(plan, async |_| {
            let asked = random.below(self.ids.len()) as u64;
            let shelf = Self::shelf(asked);
            let body = json!({"mode": "lexical", "filter": shelf});
            let (time, passages) = self.search_for(asked, random.next(), body).await?;
            let is_on_it = |passage: &Value| {
                let number = passage["documentName"].as_str().and_then(|name| self.library.number(name));
                number.is_some_and(|number| Self::shelf(number) == shelf)
            };
            only(&passages, is_on_it).map(|()| time)
        })
        .await
    }

    /// POST /agents/{id}/predict of the agent that is linked to some documents, about one of these.
    pub(super) async fn ask_some(&self, plan: RequestPlan) -> Result<LatencyHistogram, BenchError> {
        self.ask(plan, &self.some).await
    }

    /// The same of the agent that is linked to a collection with everything.
    pub(super) async fn ask_all(&self, plan: RequestPlan) -> Result<LatencyHistogram, BenchError> {
        self.ask(plan, &self.all).await
    }

    async fn ask(
        &self,
        plan: RequestPlan,
        (agent, documents): &(String, usize),
    ) -> Result<LatencyHistogram, BenchError> {
        let mut random = SeededRandom::new(3);
        let path = format!("/agents/{agent}/predict");
        timed(plan, async |_| {
            let number = random.below(*documents);
            let fact = self.library.fact(number as u64, random.next());
            let body = json!({"input": {"input": fact.question}});
            let began = Instant::now();
            let answer = self.api.call(Method::POST, &path, Some(&body)).await?;
            let time = began.elapsed();
            judge::answered(&answer, &self.ids[number], &fact).map(|()| time)
        })
        .await
    }

    /// The first search after a start, of the service at `api`, where requests go from now on.
    pub(super) async fn first_search(&mut self, api: &ApiClient) -> Result<Duration, RequestProblem> {
        self.api = self.api.moved_to(api);
        let number = self.ids.len() as u64 / 2;
        Ok(self.search_for(number, 1, json!({"mode": "lexical"})).await?.0)
    }

    /// Searches for a fact of a document, which has to be found, as `body` says besides; how long it took, and the passages.
    pub(super) async fn search_for(
        &self,
        number: u64,
        which: u64,
        mut body: Value,
    ) -> Result<(Duration, Value), RequestProblem> {
        let fact = self.library.fact(number, which);
        body["query"] = json!(fact.question);
        let began = Instant::now();
        let passages = self.api.post("/search", &body).await?;
        let time = began.elapsed();
        judge::found(&passages, &fact)?;
        Ok((time, passages))
    }
}

/// So many different numbers below `end`, or all of them.
fn some_of(end: usize, count: usize, random: &mut SeededRandom) -> Vec<usize> {
    let mut numbers = Vec::new();
    while numbers.len() < count.min(end) {
        let number = random.below(end);
        if !numbers.contains(&number) {
            numbers.push(number);
        }
    }
    numbers
}

/// Refuses passages of documents that were not asked.
fn only(passages: &Value, is_asked: impl Fn(&Value) -> bool) -> Result<(), RequestProblem> {
    match judge::array(passages)?.iter().find(|passage| !is_asked(passage)) {
        None => Ok(()),
        Some(other) => Err(RequestProblem::new("other_document_found", other["documentName"].to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_numbers_are_different_ones() {
        let mut random = SeededRandom::new(1);
        for end in [1, 9, 10, 11, 1_000] {
            let mut numbers = some_of(end, FEW, &mut random);
            assert_eq!(numbers.len(), FEW.min(end));
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), FEW.min(end));
            assert!(numbers.iter().all(|number| *number < end));
        }
    }

    #[test]
    fn a_passage_of_another_document_is_an_error() {
        let passages = json!([{"documentId": "a"}, {"documentId": "b", "documentName": "B"}]);
        assert!(only(&passages, |passage| passage["documentId"] != "c").is_ok());
        let problem = only(&passages, |passage| passage["documentId"] == "a").unwrap_err();
        assert_eq!(problem.code, "other_document_found");
    }
}
