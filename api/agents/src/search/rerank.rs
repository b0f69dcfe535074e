//! A better order for the best of what was found, by a model that reads question and passage at once, for as long as there is
//! time. What it does not reach, and what it cannot judge, keeps its place.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt as _, stream::BoxStream};
use lectern_embed::{ModelState, PassageScore, RerankError, RerankModel, Reranker};
use lectern_shared::{metrics::Metrics, model::language::Language};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};

use super::PassageHit;

/// How long searches do without a model that gave nothing in time.
const SILENT_FOR: Duration = Duration::from_secs(5);

/// The longest that anything waits for a better order.
const WHOLE_WITHIN: Duration = Duration::from_mins(2);

/// How long a better order may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RerankPatience {
    /// As long as is set: somebody waits.
    Budget,
    /// As long as it takes: what is measured must not hang on how busy the machine is.
    Whole,
}

/// What became of the better order of one search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RerankReport {
    /// The model; none when there is none.
    pub model: Option<String>,
    /// The passages that it was to judge.
    pub candidates: usize,
    /// Those that it judged in time. The others kept their places.
    pub scored: usize,
    /// Milliseconds that it took.
    pub took_ms: u64,
    /// Why passages kept their places, when some did.
    pub problem: Option<String>,
}

impl RerankReport {
    /// Of a model that has judged nothing yet.
    fn by(reranker: &dyn Reranker) -> Self {
        Self { model: Some(reranker.name().to_owned()), ..Self::default() }
    }
}

/// The model, and how it did lately. Clones are the same.
#[derive(Clone)]
pub(super) struct RerankStage {
    model: RerankModel,
    metrics: Arc<Metrics>,
    /// When a model that gave nothing in time is asked again.
    silent_until: Arc<Mutex<Option<Instant>>>,
}

impl RerankStage {
    pub(super) fn new(model: RerankModel, metrics: Arc<Metrics>) -> Self {
        Self { model, metrics, silent_until: Arc::default() }
    }

    /// Whether the model is there.
    pub(super) fn is_ready(&self) -> bool {
        self.model.current().is_some()
    }

    /// The most passages that are judged.
    pub(super) const fn candidates(&self) -> usize {
        self.model.candidates()
    }

    /// Puts the best passages into the order of their scores, within the time that there is for it. The question comes with its
    /// language; `of_passage` tells a passage's, where it is known.
    pub(super) async fn apply(
        &self,
        (question, language): (&str, Language),
        patience: RerankPatience,
        passages: &mut [PassageHit],
        of_passage: impl Fn(&PassageHit) -> Option<Language>,
    ) -> RerankReport {
        let reranker = match self.model_for(language, patience) {
            Ok(reranker) => reranker,
            Err(report) => return report,
        };
        let judged: Vec<usize> = passages
            .iter()
            .enumerate()
            .take(self.model.candidates())
            .filter(|(_, passage)| of_passage(passage).is_none_or(|language| reranker.knows(language)))
            .map(|(place, _)| place)
            .collect();
        let mut report = RerankReport { candidates: judged.len(), ..RerankReport::by(&*reranker) };
        // One passage alone has no other order.
        if judged.len() < 2 {
            return report;
        }
        let within = match patience {
            RerankPatience::Budget => self.model.budget(),
            RerankPatience::Whole => WHOLE_WITHIN,
        };
        let texts = judged.iter().filter_map(|place| passages.get(*place)).map(text_of).collect();
        let began = Instant::now();
        let scoring = reranker.score(question.to_owned(), texts, within);
        let (scores, problem) = scores_until(began + within, judged.len(), scoring).await;
        report.problem = problem;
        report.scored = scores.iter().flatten().count();
        report.took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.metrics.reranked(report.candidates, report.scored, began.elapsed());
        if patience == RerankPatience::Budget && report.scored == 0 {
            *self.silent_until.lock() = Some(Instant::now() + SILENT_FOR);
        }
        let scored = judged.into_iter().zip(scores).filter_map(|(place, score)| Some((place, score?)));
        reorder(passages, scored.collect());
        report
    }

    /// The model, if it can be asked now what answers a question in this language.
    ///
    /// # Errors
    /// Why passages keep their places.
    fn model_for(
        &self,
        language: Language,
        patience: RerankPatience,
    ) -> Result<Arc<dyn Reranker>, RerankReport> {
        let Some(reranker) = self.model.current() else {
            let problem = match self.model.state() {
                ModelState::Off => "there is no reranker (LECTERN_RERANKER)".to_owned(),
                ModelState::Missing(problem) => problem,
                ModelState::Opening | ModelState::Downloading(_) | ModelState::Ready(..) => {
                    "the reranker is not there yet".to_owned()
                }
            };
            return Err(RerankReport { problem: Some(problem), ..RerankReport::default() });
        };
        let is_silent = || self.silent_until.lock().is_some_and(|until| Instant::now() < until);
        let problem = if !reranker.knows(language) {
            "the reranker does not know the question's language"
        } else if patience == RerankPatience::Budget && is_silent() {
            "the reranker did not answer in time lately"
        } else {
            return Ok(reranker);
        };
        Err(RerankReport { problem: Some(problem.to_owned()), ..RerankReport::by(&*reranker) })
    }
}

/// The scores that come until a time, by the places of the passages, and why there are not more.
async fn scores_until(
    deadline: Instant,
    passages: usize,
    mut scoring: BoxStream<'static, Result<PassageScore, RerankError>>,
) -> (Vec<Option<f32>>, Option<String>) {
    let mut scores = vec![None; passages];
    loop {
        match timeout_at(deadline, scoring.next()).await {
            Ok(None) => return (scores, None),
            Ok(Some(Ok(PassageScore { place, score }))) => {
                if let Some(slot) = scores.get_mut(place) {
                    *slot = Some(score);
                }
            }
            Ok(Some(Err(error))) => {
                tracing::warn!(%error, "passages keep the order in which they were found");
                return (scores, Some(error.to_string()));
            }
            Err(_) => return (scores, Some("the time for it was over (LECTERN_RERANK_BUDGET)".to_owned())),
        }
    }
}

/// What the model reads of a passage: what it is found by.
fn text_of(passage: &PassageHit) -> String {
    let header = passage.chunk.place.0.header(&passage.document_name, &passage.chunk.text);
    format!("{header}\n{}", passage.chunk.text)
}

/// Puts the passages at these places, given in their order with their scores, into the order of the scores; of equals the one that
/// came first stays first. All others stay where they are.
fn reorder(passages: &mut [PassageHit], scored: Vec<(usize, f32)>) {
    let places: Vec<usize> = scored.iter().map(|(place, _)| *place).collect();
    let mut ranked: Vec<PassageHit> = scored
        .into_iter()
        .filter_map(|(place, score)| Some(PassageHit { rerank: Some(score), ..passages.get(place)?.clone() }))
        .collect();
    ranked.sort_by(|a, b| b.rerank.unwrap_or_default().total_cmp(&a.rerank.unwrap_or_default()));
    for (place, passage) in places.into_iter().zip(ranked) {
        if let Some(slot) = passages.get_mut(place) {
            *slot = passage;
        }
    }
}
